// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention/call/key_lists.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "families/call/refusal.h"
#include "templates/attention/call/limits.h"
#include "templates/attention/call/numbers.h"

namespace wavejit::attention {
namespace {

using families::fail;
using families::Failure;
using families::Result;
using families::refusal::bad;
using families::refusal::pointer_text;
using families::refusal::refuse;
using families::refusal::up_to;

constexpr std::int64_t max_row_stride = std::int64_t{1} << 40;
// A workgroup is at most 256 threads, and the threads of a row of workgroups are counted in 32 bits.
constexpr std::uint64_t most_queries = (std::uint64_t{1} << 24) - 1;
// Slots are 32 bits, of which one value says that there is none.
constexpr std::uint64_t most_slots = std::uint64_t{1} << 31;

[[gnu::cold]] std::unexpected<Failure> bad_number(const char* field, std::int64_t value, const std::string& accepted) {
  return refuse(bad(WAVEJIT_INVALID_ARGUMENT, field, std::to_string(value), accepted));
}

// Hot: without lists nothing is looked at twice, and no text is made.
bool says_nothing(const KeyListCall& call) {
  return call.list.counts == nullptr &&
         (call.list.top_k | call.list.row_stride | call.list.slots | call.list.heads) == 0;
}

[[gnu::cold, gnu::noinline]] Result<void> refuse_rest(const KeyListCall& call) {
  const std::string without = " without key_indices";
  if (call.list.counts != nullptr)
    return refuse(bad(WAVEJIT_INVALID_ARGUMENT, "key_counts", pointer_text(call.list.counts), "null" + without));
  for (const auto& [field, value] : {std::pair{"top_k", call.list.top_k},
                                     {"key_indices_row_stride", call.list.row_stride},
                                     {"key_slots", call.list.slots},
                                     {"key_list_heads", call.list.heads}})
    if (value != 0) return bad_number(field, value, "0" + without);
  return {};
}

// Slots stand where they stand, whatever sequence a query is of.
Result<void> check_slots(const KeyListCall& call) {
  for (const auto& [field, array] : {std::pair{"block_table", call.pages.block_table},
                                     {"query_starts", call.sequences.query_starts},
                                     {"key_starts", call.sequences.key_starts},
                                     {"key_lengths", call.sequences.key_lengths}})
    if (array != nullptr)
      return refuse(bad(WAVEJIT_INVALID_ARGUMENT, field, pointer_text(array),
                        "null beside key_slots = 1: an entry is the slot of its key, in any sequence"));
  if (call.mask != 0)
    return bad_number("mask", call.mask,
                      "0 beside key_slots = 1: slots have no order, so that nothing is behind a row");
  return {};
}

// Pages of one key are rows themselves.
bool is_one_piece(const wavejit_tensor& pages) {
  return pages.sizes[1] > 1 && (pages.sizes[0] == 1 || pages.strides[0] == pages.sizes[1] * pages.strides[1]);
}

std::int64_t entries_of_query(const KeyListCall& call) { return call.list.top_k * call.lists_of_query(); }

}  // namespace

Result<void> check_list_fields(const KeyListCall& call, std::int64_t kv_heads) {
  if (!call.has_lists()) [[likely]]
    return says_nothing(call) ? Result<void>() : refuse_rest(call);
  for (const auto& [field, array] : {std::pair{"key_indices", call.list.indices}, {"key_counts", call.list.counts}})
    if (reinterpret_cast<std::uintptr_t>(array) % alignof(std::int32_t) != 0)
      return refuse(
          bad(WAVEJIT_INVALID_ARGUMENT, field, pointer_text(array), "int32 in device memory, aligned to 4 bytes"));
  if (call.list.top_k < 1 || call.list.top_k > max_top_k)
    return bad_number("top_k", call.list.top_k, up_to("the entries of a list, 1", max_top_k));
  if (call.list.heads < 0 || (call.list.heads > 1 && call.list.heads != kv_heads))
    return bad_number("key_list_heads", call.list.heads,
                      "0 or 1 (all heads have one list), " + std::to_string(kv_heads) + " (kv heads)");
  if (call.list.row_stride != 0 &&
      (call.list.row_stride < entries_of_query(call) || call.list.row_stride > max_row_stride))
    return bad_number("key_indices_row_stride", call.list.row_stride,
                      std::string("0, or ") + (call.lists_of_query() > 1 ? "key_list_heads · " : "") +
                          "top_k = " + std::to_string(entries_of_query(call)) + " to " +
                          std::to_string(max_row_stride) + " entries");
  if (call.list.slots != 0 && call.list.slots != 1)
    return bad_number("key_slots", call.list.slots, "0 (numbers of keys), 1 (slots of the cache)");
  return call.names_slots() ? check_slots(call) : Result<void>();
}

Result<NamedKeys> check_named_keys(const KeyListCall& call, std::uint64_t batch, std::uint64_t queries) {
  if (queries > most_queries)
    return bad_number("q.sizes[1] (length)", static_cast<std::int64_t>(queries / batch),
                      "up to " + std::to_string(most_queries / batch) + " queries of each of " + std::to_string(batch) +
                          " sequences with lists");
  NamedKeys named;
  if (call.pages.block_table == nullptr && !call.names_slots()) return named;
  const auto page_size = static_cast<std::uint64_t>(call.k.sizes[1]);
  // A cache whose pages hold no key, as an engine's before its first: no entry is a slot of it, as no row of dense keys
  // sees any where there are none. (check_pages refuses such pages beside a table.)
  if (page_size == 0) return NamedKeys{.in_rows = true};
  const std::uint64_t slots = page_size * static_cast<std::uint64_t>(call.k.sizes[0]);
  if (call.names_slots()) {
    named.in_rows = is_one_piece(call.k) && (call.other.data == nullptr || is_one_piece(call.other));
    if (page_size != 1 && page_size % page_granule != 0 && !is_one_piece(call.k))
      return bad_number("k.sizes[1] (page size)", call.k.sizes[1],
                        "1, and multiples of " + std::to_string(page_granule) +
                            "; with key_slots = 1 any, if pages follow each other without gaps");
    named.slots = static_cast<std::uint32_t>(slots);
  }
  // A slot's page is found by multiplication, which is exact so far.
  const std::uint64_t most =
      named.in_rows || page_size == 1 ? most_slots : std::min(most_slots, (std::uint64_t{1} << 40U) / page_size);
  if (slots > most)
    return bad_number("k.sizes[0] (pages)", call.k.sizes[0],
                      up_to("with lists, 1", static_cast<std::int64_t>(most / page_size)));
  return named;
}

Result<void> check_device_counts(families::DeviceMemory& memory, const KeyListCall& call, std::uint64_t queries) {
  if (!call.has_lists() || call.list.counts == nullptr) return {};
  std::vector<std::int32_t> counts(queries * static_cast<std::uint64_t>(call.lists_of_query()));
  if (const auto read = memory.read(counts.data(), call.list.counts, counts.size() * sizeof(std::int32_t)); !read)
    return fail(WAVEJIT_INVALID_ARGUMENT, "key_counts = " + pointer_text(call.list.counts) + ", of which " +
                                              std::to_string(counts.size()) + " elements cannot be read (" +
                                              read.error() + "); accepted: device memory of that many int32");
  for (std::size_t i = 0; i < counts.size(); ++i)
    if (counts[i] < 0 || counts[i] > call.list.top_k)
      return bad_number(("key_counts[" + std::to_string(i) + "]").c_str(), counts[i],
                        up_to("0", call.list.top_k) + ", the entries of a list");
  return {};
}

KeyListArguments list_arguments(const KeyListCall& call, std::uint32_t slots, bool causal, std::uint64_t first) {
  if (!call.has_lists()) return {};
  constexpr std::uint64_t entry = sizeof(std::int32_t);
  const auto lists = static_cast<std::uint64_t>(call.lists_of_query());
  const std::int64_t row = call.list.row_stride != 0 ? call.list.row_stride : entries_of_query(call);
  const std::uint64_t row_stride = static_cast<std::uint64_t>(row) * entry;
  return {.indices = address(call.list.indices) + (first * row_stride),
          .counts = call.list.counts != nullptr ? address(call.list.counts) + (first * lists * entry) : 0,
          .row_stride = row_stride,
          .head_stride = lists > 1 ? static_cast<std::uint64_t>(call.list.top_k) * entry : 0,
          .length = static_cast<std::uint32_t>(call.list.top_k),
          .slots = slots,
          .heads = static_cast<std::uint32_t>(lists),
          .causal = causal ? 1U : 0U,
          .parts = parts_of_list(static_cast<std::uint64_t>(call.list.top_k))};
}

}  // namespace wavejit::attention
