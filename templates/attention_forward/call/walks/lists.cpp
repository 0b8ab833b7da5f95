// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_forward/call/walks/lists.h"

#include <algorithm>
#include <array>
#include <bit>
#include <string>

#include "families/call/refusal.h"
#include "templates/attention/call/hints.h"
#include "templates/attention/call/numbers.h"
#include "templates/attention_forward/call/walks/bool_mask.h"
#include "templates/attention_forward/kernel/walks/block_lists/walks.h"

namespace wavejit::attention_forward {
namespace {

using attention::ceil_div;
using refusal::bad;
using refusal::refuse;

constexpr std::int64_t most_capacity = 0x3FFFFFFF;
constexpr std::uint64_t most_walk_entries = std::uint64_t{1} << 31;

// One kind of list as the call gives it.
struct Kind {
  const char* indices_name;
  const char* counts_name;
  const char* starts_name;
  const char* capacity_name;
  const std::int32_t* indices;
  const std::int32_t* counts;
  const std::int32_t* starts;
  std::int64_t capacity;
};
std::array<Kind, 2> kinds_of(const wavejit_attention_forward_arguments& call) {
  return {{{"list_indices", "list_counts", "list_starts", "list_capacity", call.blocks.list_indices,
            call.blocks.list_counts, call.blocks.list_starts, call.blocks.list_capacity},
           {"full_indices", "full_counts", "full_starts", "full_capacity", call.blocks.full_indices,
            call.blocks.full_counts, call.blocks.full_starts, call.blocks.full_capacity}}};
}

[[gnu::cold]] std::unexpected<Failure> refuse_number(const char* field, std::int64_t value,
                                                     const std::string& accepted) {
  return refuse(bad(WAVEJIT_INVALID_ARGUMENT, field, std::to_string(value), accepted));
}
[[gnu::cold]] std::unexpected<Failure> refuse_array(const char* field, const void* array, const std::string& accepted) {
  return refuse(bad(WAVEJIT_INVALID_ARGUMENT, field, refusal::pointer_text(array), accepted));
}

Result<void> check_kind(const Kind& kind) {
  if (kind.indices == nullptr) {
    const std::string without = std::string("null without ") + kind.indices_name;
    if (kind.counts != nullptr) return refuse_array(kind.counts_name, kind.counts, without);
    if (kind.starts != nullptr) return refuse_array(kind.starts_name, kind.starts, without);
    if (kind.capacity != 0)
      return refuse_number(kind.capacity_name, kind.capacity, std::string("0 without ") + kind.indices_name);
    return {};
  }
  for (const auto& [name, array] :
       {std::pair{kind.indices_name, kind.indices}, {kind.counts_name, kind.counts}, {kind.starts_name, kind.starts}})
    if (reinterpret_cast<std::uintptr_t>(array) % alignof(std::int32_t) != 0)
      return refuse_array(name, array, "int32 in device memory, aligned to 4 bytes");
  if (kind.counts != nullptr && kind.starts != nullptr)
    return refuse_array(kind.starts_name, kind.starts, std::string("null beside ") + kind.counts_name);
  if (kind.capacity < (kind.starts != nullptr ? 0 : 1) || kind.capacity > most_capacity)
    return refuse_number(kind.capacity_name, kind.capacity, refusal::up_to("the entries of a list, 1", most_capacity));
  return {};
}

constexpr std::uint32_t hints_of_lists = attention::hints_of(true) & ~attention::hints_of(false);

[[gnu::cold, gnu::noinline]] Result<void> refuse_rest(const wavejit_attention_forward_arguments& call) {
  for (const Kind& kind : kinds_of(call))
    if (auto good = check_kind(kind); !good) return good;
  constexpr std::string_view without = "0 without list_indices and full_indices";
  const auto zero = [&](const char* field, std::int64_t value) -> Result<void> {
    if (value == 0) return {};
    return refuse_number(field, value, std::string(without));
  };
  for (const auto& [field, value] : {std::pair{"list_row_blocks", call.blocks.list_row_blocks},
                                     {"list_rows", std::int64_t{call.blocks.list_rows}},
                                     {"list_keys", std::int64_t{call.blocks.list_keys}},
                                     {"list_batches", std::int64_t{call.blocks.list_batches}},
                                     {"list_heads", std::int64_t{call.blocks.list_heads}}})
    if (auto good = zero(field, value); !good) return good;
  for (const attention::Hint& hint : attention::hints)
    if ((call.head.flags & hint.bit & hints_of_lists) != 0)
      return refuse_number(
          "flags", call.head.flags,
          std::to_string(hint.bit) + " (" + std::string(hint.told) + ") beside list_indices or full_indices only");
  return {};
}

// A call without lists. Hot: looked at once.
bool says_nothing_of_lists(const wavejit_attention_forward_arguments& call) {
  return ((reinterpret_cast<std::uintptr_t>(call.blocks.list_counts) |
           reinterpret_cast<std::uintptr_t>(call.blocks.list_starts) |
           reinterpret_cast<std::uintptr_t>(call.blocks.full_counts) |
           reinterpret_cast<std::uintptr_t>(call.blocks.full_starts)) |
          static_cast<std::uint64_t>(call.blocks.list_row_blocks | call.blocks.list_capacity |
                                     call.blocks.full_capacity) |
          (static_cast<std::uint32_t>(call.blocks.list_rows | call.blocks.list_keys | call.blocks.list_batches |
                                      call.blocks.list_heads) |
           (call.head.flags & hints_of_lists))) == 0;
}

bool is_block_size(std::int64_t size) { return size == 64 || size == 128; }

std::uint64_t tiles_of_block(const BlockLists& lists) { return lists.keys / static_cast<unsigned>(tile_keys); }

struct WalkSizes {
  std::uint64_t units = 0;         // of a head
  std::uint64_t unit_entries = 0;  // 0: by starts
  std::uint64_t batch_entries = 0;
  std::uint64_t entries = 0;  // of all
  std::uint64_t headers = 0;
};
WalkSizes sizes_of(const AttentionProblem& problem, std::uint32_t unit_rows, bool pairs) {
  const BlockLists& lists = problem.lists;
  const std::uint64_t doubled = pairs ? 2 : 1;
  WalkSizes sizes;
  sizes.units = ceil_div(problem.query_length, unit_rows);
  sizes.headers = std::uint64_t{problem.batch} * lists.heads * sizes.units;
  if (lists.ragged) {
    sizes.batch_entries = (lists.capacity + lists.full_capacity) * tiles_of_block(lists) * doubled;
    sizes.entries = (lists.batches == 1 ? problem.batch : 1) * sizes.batch_entries + sizes.headers;
    return sizes;
  }
  const std::uint64_t named = (lists.capacity + lists.full_capacity) * tiles_of_block(lists) * (unit_rows / lists.rows);
  const std::uint64_t tiles = ceil_div(problem.key_length, static_cast<unsigned>(tile_keys));
  sizes.unit_entries = std::min(named, tiles) * doubled + 1;
  sizes.entries = sizes.headers * sizes.unit_entries;
  return sizes;
}

// Headers, the order of units, entries.
constexpr std::uint64_t headers_bytes(const WalkSizes& sizes) {
  return ceil_div(sizes.headers * sizeof(attention_block_lists::Header), 256) * 256;
}
constexpr std::uint64_t order_bytes(const WalkSizes& sizes) {
  return ceil_div(sizes.headers * sizeof(std::uint32_t), 256) * 256;
}

}  // namespace

RowPlan rows_of_lists(const BlockLists& lists, std::uint64_t query_length) {
  const QueryRows rows = query_rows(query_length);
  if (lists.alike) return {.rows = rows};
  return {.rows = std::min(rows, lists.rows == 64 ? QueryRows::up_to_64 : QueryRows::up_to_255)};
}

Result<void> check_lists(const wavejit_attention_forward_arguments& call, AttentionProblem& problem) {
  const bool listed = has_lists(call);
  if (!listed && !says_nothing_of_lists(call)) [[unlikely]]
    return refuse_rest(call);
  if (call.modifiers.bool_mask.data != nullptr) [[unlikely]]
    return take_bool_mask(call, problem);
  if (problem.shape.bias_by_tile) [[unlikely]] {
    if (auto taken = take_bias_by_tile(call, problem); !taken || problem.shape.bias_by_tile) return taken;
  }
  if (!listed) [[likely]]
    return {};
  for (const Kind& kind : kinds_of(call))
    if (auto good = check_kind(kind); !good) return good;
  if ((call.blocks.list_starts != nullptr) != (call.blocks.full_starts != nullptr) &&
      call.blocks.list_indices != nullptr && call.blocks.full_indices != nullptr)
    return refuse_array("full_starts", call.blocks.full_starts, "starts of both lists, or of neither");
  if (!is_block_size(call.blocks.list_rows)) return refuse_number("list_rows", call.blocks.list_rows, "64, 128");
  if (!is_block_size(call.blocks.list_keys)) return refuse_number("list_keys", call.blocks.list_keys, "64, 128");
  if (call.blocks.list_batches != 1 && call.blocks.list_batches != static_cast<std::int64_t>(problem.batch))
    return refuse_number("list_batches", call.blocks.list_batches,
                         "1, " + std::to_string(problem.batch) + " (sequences)");
  if (call.blocks.list_heads != 1 && call.blocks.list_heads != static_cast<std::int64_t>(problem.kv_heads) &&
      call.blocks.list_heads != static_cast<std::int64_t>(problem.query_heads))
    return refuse_number("list_heads", call.blocks.list_heads,
                         "1, " + std::to_string(problem.kv_heads) + " (kv heads), " +
                             std::to_string(problem.query_heads) + " (query heads)");
  const auto least =
      static_cast<std::int64_t>(ceil_div(problem.query_length, static_cast<unsigned>(call.blocks.list_rows)));
  if (call.blocks.list_row_blocks < least || call.blocks.list_row_blocks > most_capacity)
    return refuse_number("list_row_blocks", call.blocks.list_row_blocks,
                         std::to_string(least) + " and more, for " + std::to_string(problem.query_length) +
                             " rows in blocks of " + std::to_string(call.blocks.list_rows));
  if (problem.key_length > max_paged_length)
    return refuse_number("k.sizes[1] (length)", problem.key_length, refusal::up_to("beside lists 0", max_paged_length));
  problem.lists = {.rows = static_cast<std::uint32_t>(call.blocks.list_rows),
                   .keys = static_cast<std::uint32_t>(call.blocks.list_keys),
                   .batches = static_cast<std::uint32_t>(call.blocks.list_batches),
                   .heads = static_cast<std::uint32_t>(call.blocks.list_heads),
                   .row_blocks = static_cast<std::uint32_t>(call.blocks.list_row_blocks),
                   .capacity = static_cast<std::uint64_t>(call.blocks.list_capacity),
                   .full_capacity = static_cast<std::uint64_t>(call.blocks.full_capacity),
                   .ragged = call.blocks.list_starts != nullptr || call.blocks.full_starts != nullptr,
                   .alike = (problem.hints & WAVEJIT_LISTS_ALIKE) != 0};
  problem.shape.block_lists = true;
  if (!walk_bytes(problem))
    return refuse_number("list_capacity", call.blocks.list_capacity,
                         "lists that expand to fewer than " + std::to_string(most_walk_entries) +
                             " entries, one list for each tile of rows");
  return {};
}

std::optional<std::uint64_t> walk_bytes(const AttentionProblem& problem) {
  std::uint64_t most = 0;
  for (const std::uint32_t unit_rows : {64U, 128U, 256U}) {
    if (unit_rows < problem.lists.rows) continue;
    const WalkSizes sizes = sizes_of(problem, unit_rows, true);
    if (sizes.entries >= most_walk_entries || sizes.headers >= most_walk_entries) return std::nullopt;
    most = std::max(most, headers_bytes(sizes) + order_bytes(sizes) + sizes.entries * sizeof(std::uint32_t));
  }
  return most + mask_bytes(problem.lists);
}

WalkPlan plan_walks(const AttentionProblem& problem, const wavejit_attention_forward_arguments& call,
                    const ForwardKernel& spec, const Arguments& arguments, const void* memory) {
  const BlockLists& lists = problem.lists;
  const std::uint32_t unit_rows = std::max(lists.rows, static_cast<std::uint32_t>(spec.tile_queries));
  const bool pairs = spec.pipeline != Pipeline::generic;
  const WalkSizes sizes = sizes_of(problem, unit_rows, pairs);
  const auto shift_of = [](std::uint32_t size) { return static_cast<std::uint32_t>(std::countr_zero(size)); };
  const auto address_of = [](const void* array) { return reinterpret_cast<std::uintptr_t>(array); };
  const std::uint64_t headers = address_of(memory) + mask_bytes(lists);
  const std::uint64_t order = headers + headers_bytes(sizes);
  const std::uint64_t entries = order + order_bytes(sizes);
  const auto lists_of = [&](const Kind& kind) -> attention_block_lists::Lists {
    return {.indices = address_of(kind.indices),
            .counts = address_of(kind.counts),
            .starts = address_of(kind.starts),
            .capacity = static_cast<std::uint32_t>(kind.capacity)};
  };
  const std::optional<MaskPlan> mask =
      lists.of_mask ? std::optional(plan_mask(problem, call, arguments, memory)) : std::nullopt;
  const bool has_window = problem.shape.mask == Mask::window;
  const bool is_causal = problem.shape.mask == Mask::causal;
  return {.make = {.headers = headers,
                   .entries = entries,
                   .masked = mask ? mask->masked : lists_of(kinds_of(call)[0]),
                   .whole = mask ? mask->whole : lists_of(kinds_of(call)[1]),
                   .query_starts = arguments.sequences.query_starts,
                   .key_starts = problem.shape.paged ? 0 : arguments.sequences.key_starts,
                   .key_lengths = arguments.sequences.key_lengths,
                   .query_rows = arguments.sequences.query_rows,
                   .query_length = arguments.query_length,
                   .key_rows = arguments.sequences.key_rows,
                   .key_length = arguments.key_length,
                   .causal_offset = arguments.causal_offset,
                   .bottom_right_mask = arguments.bottom_right_mask,
                   .window_left = has_window ? arguments.window_left : unlimited_window,
                   .window_right = has_window  ? arguments.window_right
                                   : is_causal ? 0
                                               : unlimited_window,
                   .heads = lists.heads,
                   .units = static_cast<std::uint32_t>(sizes.units),
                   .unit_shift = shift_of(unit_rows),
                   .rows_shift = shift_of(lists.rows),
                   .keys_shift = shift_of(lists.keys),
                   .row_blocks = lists.row_blocks,
                   .batch_mask = lists.batches == 1 ? 0 : ~std::uint32_t{0},
                   .pairs = pairs ? 1U : 0U,
                   .unit_entries = static_cast<std::uint32_t>(sizes.unit_entries),
                   .batch_entries = static_cast<std::uint32_t>(sizes.batch_entries),
                   .most_entries = static_cast<std::uint32_t>(sizes.entries),
                   .descending = problem.shape.mask == Mask::none ? 0U : 1U,
                   .order = order},
          .walk = {.headers = headers,
                   .entries = entries,
                   .heads = lists.heads,
                   .head_multiplier = kv_head_multiplier(problem.query_heads, lists.heads),
                   .units = static_cast<std::uint32_t>(sizes.units),
                   .unit_shift = shift_of(unit_rows),
                   .order = order},
          .mask = mask};
}

namespace {

// Why a bool mask of few rows has walks, whose keys are not split; nothing where it has many.
std::string why_walks(const AttentionProblem& problem) {
  if (!problem.lists.bits || problem.query_length > longest_packed_query) return {};
  const char* why = problem.lists.heads > 1    ? "heads have masks of their own"
                    : problem.shape.paged      ? "they lie in pages"
                    : problem.shape.first_keys ? "they have left padding"
                                               : "the pipeline that is asked for walks lists";
  return std::string("; keys of few rows are not split: ") + why;
}

}  // namespace

std::string describe_lists(const AttentionProblem& problem) {
  const BlockLists& lists = problem.lists;
  if (lists.of_mask)
    return "of blocks of " + std::to_string(lists.rows) + " rows by " + std::to_string(lists.keys) +
           " keys: attention_mask_lists finds in the " + (lists.bits ? "bool mask" : "bias") +
           " which are hidden, open and mixed, attention_block_lists makes a walk for each workgroup's rows" +
           why_walks(problem);
  return "of blocks of " + std::to_string(lists.rows) + " rows by " + std::to_string(lists.keys) +
         " keys: attention_block_lists makes a walk for each workgroup's rows" +
         (lists.alike ? ", as large as without lists, whose lists are said to be alike" : "");
}

// ---- What device memory says

namespace {

std::string element_of(const char* name, std::uint64_t index) {
  return std::string(name) + "[" + std::to_string(index) + "]";
}

Result<std::vector<std::int32_t>> copy_list(families::DeviceMemory& memory, const char* name, const std::int32_t* array,
                                            std::uint64_t count) {
  std::vector<std::int32_t> host(count);
  if (count == 0) return host;
  const auto copied = memory.read(host.data(), array, count * sizeof(std::int32_t));
  if (copied) return host;
  return fail(WAVEJIT_INVALID_ARGUMENT, std::string(name) + " = " + refusal::pointer_text(array) + ", of which " +
                                            std::to_string(count) + " elements cannot be read (" + copied.error() +
                                            "); accepted: device memory of that many int32");
}

// Where each list begins and ends among the entries.
struct Part {
  std::uint64_t begin;
  std::uint64_t end;
};
Result<std::vector<Part>> parts_of(families::DeviceMemory& memory, const Kind& kind, std::uint64_t lists) {
  std::vector<Part> parts;
  if (kind.starts != nullptr) {
    const auto starts = copy_list(memory, kind.starts_name, kind.starts, lists + 1);
    if (!starts) return std::unexpected(starts.error());
    std::int64_t before = 0;
    for (std::uint64_t i = 0; i <= lists; ++i) {
      const std::int64_t start = (*starts)[i];
      if (start < before || start > kind.capacity)
        return refuse(bad(WAVEJIT_INVALID_ARGUMENT, element_of(kind.starts_name, i), std::to_string(start),
                          refusal::up_to(std::to_string(before).c_str(), kind.capacity)));
      if (i > 0) parts.push_back({static_cast<std::uint64_t>(before), static_cast<std::uint64_t>(start)});
      before = start;
    }
    return parts;
  }
  std::vector<std::int32_t> counts(lists, static_cast<std::int32_t>(kind.capacity));
  if (kind.counts != nullptr) {
    auto told = copy_list(memory, kind.counts_name, kind.counts, lists);
    if (!told) return std::unexpected(told.error());
    counts = *std::move(told);
  }
  const auto capacity = static_cast<std::uint64_t>(kind.capacity);
  for (std::uint64_t i = 0; i < lists; ++i) {
    if (counts[i] < 0 || counts[i] > kind.capacity)
      return refuse(bad(WAVEJIT_INVALID_ARGUMENT, element_of(kind.counts_name, i), std::to_string(counts[i]),
                        refusal::up_to("0", kind.capacity)));
    parts.push_back({i * capacity, i * capacity + static_cast<std::uint64_t>(counts[i])});
  }
  return parts;
}

Result<void> check_entries(families::DeviceMemory& memory, const Kind& kind, std::uint64_t lists, std::int64_t blocks) {
  if (kind.indices == nullptr) return {};
  const auto parts = parts_of(memory, kind, lists);
  if (!parts) return std::unexpected(parts.error());
  const std::uint64_t all = static_cast<std::uint64_t>(kind.capacity) * (kind.starts != nullptr ? 1 : lists);
  const auto entries = copy_list(memory, kind.indices_name, kind.indices, all);
  if (!entries) return std::unexpected(entries.error());
  for (const Part& part : *parts) {
    std::int64_t least = 0;
    for (std::uint64_t i = part.begin; i < part.end; ++i) {
      const std::int64_t entry = (*entries)[i];
      if (entry == -1) continue;
      if (entry < least || entry >= blocks)
        return refuse(bad(
            WAVEJIT_INVALID_ARGUMENT, element_of(kind.indices_name, i), std::to_string(entry),
            "−1 for none, or " + refusal::up_to(std::to_string(least).c_str(), blocks - 1) + ", ascending in a list"));
      least = entry + 1;
    }
  }
  return {};
}

}  // namespace

Result<void> check_device_lists(families::DeviceMemory& memory, const AttentionProblem& problem,
                                const wavejit_attention_forward_arguments& call) {
  if (!problem.shape.block_lists || problem.lists.of_mask) return {};
  const BlockLists& lists = problem.lists;
  const std::uint64_t count = std::uint64_t{lists.batches} * lists.heads * lists.row_blocks;
  const auto blocks = static_cast<std::int64_t>(ceil_div(problem.key_length, lists.keys));
  for (const Kind& kind : kinds_of(call))
    if (auto good = check_entries(memory, kind, count, blocks); !good) return good;
  return {};
}

}  // namespace wavejit::attention_forward
