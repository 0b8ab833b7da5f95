// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/sparse_indexer/call/problem.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "families/call/call_head.h"
#include "families/call/refusal.h"
#include "families/call/tensor_memory.h"
#include "templates/attention/call/data_type.h"
#include "templates/attention/call/flags.h"
#include "templates/attention/call/mask.h"
#include "templates/attention/call/numbers.h"
#include "templates/attention/call/tensors.h"
#include "templates/attention/call/workspace.h"
#include "templates/sparse_indexer/kernel/rows.h"
#include "timing/launches.h"

namespace wavejit::sparse_indexer {
namespace {

namespace refusal = families::refusal;
using Call = wavejit_sparse_indexer_arguments;
using Check = Result<void>;
using families::Range;
using refusal::Named;
using refusal::pointer_text;
using refusal::refuse;
using refusal::refused;
using refusal::up_to;

// Sizes as `wanted`, each of them said by `sources`.
Check check_wanted(const Named& named, const std::array<std::int64_t, 4>& wanted,
                   const std::array<const char*, 4>& sources) {
  for (int d = 0; d < 4; ++d) {
    const auto at = static_cast<std::size_t>(d);
    if (named.tensor->sizes[d] != wanted[at]) return refuse(refusal::mismatch(named, d, wanted[at], sources[at]));
  }
  return {};
}

// Memory and strides of f32 numbers whose sizes are known to be in range. `inner`: the dimension whose numbers stand
// side by side; −1: none.
Check check_numbers(const Named& named, int inner) {
  if (auto kind = attention::check_kind(named, WAVEJIT_FP32, 4); !kind) return kind;
  if (auto memory = attention::check_memory(named, 4); !memory) return memory;
  const wavejit_tensor& t = *named.tensor;
  for (int d = 0; d < 4; ++d) {
    if (t.sizes[d] == 1) continue;
    if (d == inner && t.strides[d] != 1) return refuse(refusal::bad_stride(named, d, "1 (copy the tensor otherwise)"));
    if (t.strides[d] < 1 || t.strides[d] >= attention::max_batch_stride ||
        static_cast<std::uint64_t>(t.sizes[d] - 1) * static_cast<std::uint64_t>(t.strides[d]) * 4 >=
            attention::tensor_limit_bytes)
      return refuse(refusal::bad_stride(named, d, "positive, with a tensor that spans less than 2^48 bytes"));
  }
  return {};
}

Check check_queries(const Call& call) {
  const Named queries = {"queries", &call.queries};
  const wavejit_tensor& q = call.queries;
  if (const auto type = attention::type_of(q.dtype);
      !type || std::ranges::none_of(key_types, [&](const auto& known) { return known.first == *type; }))
    return refused(refusal::field(queries, "dtype"), refusal::dtype_text(q.dtype),
                   "1 (fp16), 2 (bf16), 4 (e4m3), 6 (e4m3_fnuz)");
  if (auto sizes = attention::check_sizes(queries, false, max_batch); !sizes) return sizes;
  if (q.sizes[2] > max_heads) return refuse(refusal::bad_size(queries, 2, up_to("1", max_heads)));
  if (q.sizes[3] != head_dim) return refuse(refusal::bad_size(queries, 3, std::to_string(head_dim)));
  return attention::check_tensor(queries, {.dtype = q.dtype, .read_only = true});
}

// Sizes of keys: of a sequence, or of the cache's pages.
Check check_keys(const Call& call) {
  const Named keys = {"keys", &call.keys};
  const bool paged = call.pages.block_table != nullptr;
  if (auto sizes = attention::check_sizes(keys, false, paged ? attention::max_pages : max_batch); !sizes) return sizes;
  if (!paged && call.keys.sizes[0] != call.queries.sizes[0])
    return refuse(refusal::mismatch(keys, 0, call.queries.sizes[0], "queries.sizes[0]"));
  if (call.keys.sizes[2] != 1) return refuse(refusal::bad_size(keys, 2, "1: all index heads share a key"));
  if (call.keys.sizes[3] != head_dim) return refuse(refusal::bad_size(keys, 3, std::to_string(head_dim)));
  if (!paged && call.keys.sizes[1] > max_keys) return refuse(refusal::bad_size(keys, 1, up_to("1", max_keys)));
  if (auto good = attention::check_tensor(keys, {.dtype = call.queries.dtype, .read_only = true}); !good) return good;
  if (!paged) {
    for (const auto& [name, value] : {std::pair{"max_key_length", call.max_key_length},
                                      {"table_columns", call.pages.table_columns},
                                      {"table_row_stride", call.pages.table_row_stride}})
      if (value != 0) return refused(name, std::to_string(value), "0 without block_table");
    if (call.pages.table_starts != nullptr)
      return refused("table_starts", pointer_text(call.pages.table_starts), "null without block_table");
    return {};
  }
  if (call.max_key_length < 1 || call.max_key_length > attention::max_paged_length)
    return refused("max_key_length", std::to_string(call.max_key_length), up_to("1", attention::max_paged_length));
  // By its own names; what is left for check_pages is the table.
  const std::int64_t page = call.keys.sizes[1];
  if (page != 1 && (page > attention::max_page_size || page % attention::page_granule != 0))
    return refused("keys.sizes[1] (page size)", std::to_string(page),
                   "1, and multiples of " + std::to_string(attention::page_granule) + " up to " +
                       std::to_string(attention::max_page_size));
  if (auto apart = attention::check_no_overlap(keys, 3, head_dim); !apart) return apart;
  return attention::check_pages(call.keys, call.keys, call.pages, call.max_key_length);
}

Check check_weights(const Call& call) {
  const Named weights = {"weights", &call.weights};
  const wavejit_tensor& q = call.queries;
  if (auto sizes = check_wanted(weights, {q.sizes[0], q.sizes[1], q.sizes[2], 1},
                                {"queries.sizes[0]", "queries.sizes[1]", "queries.sizes[2]", "one weight a head"});
      !sizes)
    return sizes;
  return check_numbers(weights, 2);
}

Check check_key_scales(const Call& call) {
  if (call.key_scales.data == nullptr) return {};
  const Named scales = {"key_scales", &call.key_scales};
  if (auto sizes = check_wanted(scales, {call.keys.sizes[0], call.keys.sizes[1], 1, 1},
                                {"keys.sizes[0]", "keys.sizes[1]", "one scale a key", "one scale a key"});
      !sizes)
    return sizes;
  return check_numbers(scales, -1);
}

// Where scores are given, theirs are the sizes of the call.
Check check_given(const Call& call) {
  const Named scores = {"scores", &call.scores};
  for (const auto& [name, tensor] :
       {std::pair{"keys", &call.keys}, {"weights", &call.weights}, {"key_scales", &call.key_scales}})
    if (tensor->data != nullptr)
      return refused(std::string(name) + ".data", pointer_text(tensor->data), "null where queries.data is null");
  for (const auto& [name, array] :
       {std::pair{"block_table", call.pages.block_table}, {"table_starts", call.pages.table_starts}})
    if (array != nullptr) return refused(name, pointer_text(array), "null where queries.data is null");
  for (const auto& [name, value] : {std::pair{"max_key_length", call.max_key_length},
                                    {"table_columns", call.pages.table_columns},
                                    {"table_row_stride", call.pages.table_row_stride}})
    if (value != 0) return refused(name, std::to_string(value), "0 where queries.data is null");
  if (call.scores.data == nullptr)
    return refused("queries.data", "null", "device memory here, or scores in scores.data");
  if (call.top_k == 0) return refused("top_k", "0", "1 and more where queries.data is null: scores are given already");
  static constexpr std::array<std::int64_t, 4> most = {max_batch, attention::max_length, 1, max_keys};
  for (int d = 0; d < 4; ++d)
    if (call.scores.sizes[d] < 1 || call.scores.sizes[d] > most[static_cast<std::size_t>(d)])
      return refuse(refusal::bad_size(scores, d, up_to("1", most[static_cast<std::size_t>(d)])));
  return check_numbers(scores, 3);
}

Check check_scores(const Call& call, const IndexerProblem& problem) {
  if (call.scores.data == nullptr || !problem.shape.scores) return {};
  const Named scores = {"scores", &call.scores};
  if (auto sizes = check_wanted(scores, {problem.batch, problem.query_length, 1, problem.key_length},
                                {"queries.sizes[0]", "queries.sizes[1]", "one score a row and key",
                                 problem.shape.paged ? "max_key_length" : "keys.sizes[1]"});
      !sizes)
    return sizes;
  if (auto good = check_numbers(scores, 3); !good) return good;
  if (auto apart = attention::check_no_overlap(scores, 3, static_cast<std::uint64_t>(call.scores.sizes[3])); !apart)
    return apart;
  const Range own = families::range_of(call.scores, 4);
  for (const Named& other : {Named{"queries", &call.queries}, Named{"keys", &call.keys},
                             Named{"weights", &call.weights}, Named{"key_scales", &call.key_scales}}) {
    if (other.tensor->data == nullptr) continue;
    const Range theirs = families::range_of(*other.tensor, attention::element_bytes_of(*other.tensor));
    if (auto apart = attention::check_apart(scores, own, other.name, theirs); !apart) return apart;
  }
  return {};
}

Check check_list(const Call& call, const IndexerProblem& problem) {
  if (call.top_k < 0 || call.top_k > max_top_k)
    return refused("top_k", std::to_string(call.top_k), up_to("0", max_top_k));
  struct Output {
    const char* name;
    const void* data;
    std::int64_t columns;
  };
  const std::array<Output, 3> outputs = {
      {{"indices", call.indices, call.top_k}, {"values", call.values, call.top_k}, {"counts", call.counts, 1}}};
  if (call.top_k == 0) {
    for (const Output& output : outputs)
      if (output.data != nullptr) return refused(output.name, pointer_text(output.data), "null with top_k = 0");
    if (call.indices_row_stride != 0)
      return refused("indices_row_stride", std::to_string(call.indices_row_stride), "0 with top_k = 0");
    if (call.scores.data == nullptr)
      return refused("top_k", "0", "1 and more, or device memory in scores.data: there is nothing to write");
    return {};
  }
  if (call.indices == nullptr)
    return refused("indices", "null", "device memory of " + std::to_string(call.top_k) + " int32 a row (top_k)");
  constexpr std::int64_t max_row_stride = std::int64_t{1} << 40;
  if (call.indices_row_stride != 0 &&
      (call.indices_row_stride < call.top_k || call.indices_row_stride > max_row_stride))
    return refused("indices_row_stride", std::to_string(call.indices_row_stride),
                   "0, or top_k = " + std::to_string(call.top_k) + " to " + std::to_string(max_row_stride));
  std::vector<std::pair<const char*, Range>> taken;
  for (const Named& tensor :
       {Named{"queries", &call.queries}, Named{"keys", &call.keys}, Named{"weights", &call.weights},
        Named{"key_scales", &call.key_scales}, Named{"scores", &call.scores}})
    if (tensor.tensor->data != nullptr)
      taken.emplace_back(tensor.name, families::range_of(*tensor.tensor, attention::element_bytes_of(*tensor.tensor)));
  const std::int64_t stride = call.indices_row_stride != 0 ? call.indices_row_stride : call.top_k;
  for (const Output& output : outputs) {
    if (output.data == nullptr) continue;
    if (reinterpret_cast<std::uintptr_t>(output.data) % 4 != 0)
      return refused(output.name, pointer_text(output.data), "device memory aligned to 4 bytes");
    const std::uint64_t begin = attention::address(output.data);
    const std::uint64_t span = ((problem.rows() - 1) * static_cast<std::uint64_t>(output.columns == 1 ? 1 : stride)) +
                               static_cast<std::uint64_t>(output.columns);
    const Range own = {.begin = begin, .end = begin + (span * 4), .dense = output.columns == 1 || stride == call.top_k};
    for (const auto& [name, range] : taken)
      if (families::surely_share(own, range))
        return refused(output.name, pointer_text(output.data), std::string("memory that ") + name + " does not use");
    taken.emplace_back(output.name, own);
  }
  return {};
}

Check check_row_arrays(const Call& call) {
  for (const auto& [name, array] :
       {std::pair{"key_lengths", call.key_lengths}, {"key_begins", call.key_begins}, {"key_ends", call.key_ends}})
    if (reinterpret_cast<std::uintptr_t>(array) % 4 != 0)
      return refused(name, pointer_text(array), "null, or device memory aligned to 4 bytes");
  return {};
}

Check check_workspace(const Call& call, const IndexerProblem& problem) {
  if (auto split = attention::check_split(call.split); !split) return split;
  if (call.split.workspace == nullptr) return {};
  if (problem.keeps_scores && call.split.workspace_bytes < score_row_bytes(problem))
    return refused("workspace_bytes", std::to_string(call.split.workspace_bytes),
                   std::to_string(score_row_bytes(problem)) +
                       " and more: the scores of a row (wavejit_call_workspace says what all rows take)");
  const Named tensors[] = {{"queries", &call.queries},
                           {"keys", &call.keys},
                           {"weights", &call.weights},
                           {"key_scales", &call.key_scales},
                           {"scores", &call.scores}};
  const attention::NamedNumbers arrays[] = {
      {"indices", call.indices, problem.top_k},        {"values", call.values, problem.top_k},
      {"counts", call.counts, problem.rows()},         {"key_lengths", call.key_lengths, problem.batch},
      {"key_begins", call.key_begins, problem.rows()}, {"key_ends", call.key_ends, problem.rows()},
      {"block_table", call.pages.block_table, 1}};
  return attention::check_workspace(call.split, call.split.workspace_bytes, tensors, arrays);
}

}  // namespace

void ShapeWords::set_heads(std::int64_t heads) {
  blocks = static_cast<int>((heads + block_heads - 1) / block_heads);
  cut = heads % block_heads != 0;
}

void take_rows(IndexerProblem& problem, const targets::Target& target, const families::Toggles& toggles) {
  problem.shape.shared = problem.shape.scores && sharing_of(target, toggles, problem.query_length);
}

std::uint64_t score_row_bytes(const IndexerProblem& problem) {
  constexpr std::uint64_t line = 128;
  return ((std::uint64_t{problem.key_length} * 4) + line - 1) / line * line;
}

namespace {

constexpr std::uint64_t parts_in(std::uint64_t all, std::uint64_t most) { return (all + most - 1) / most; }

// Predicted cycles of a workgroup with `keys` keys, the same on both targets.
constexpr std::uint64_t select_cycles(std::uint64_t keys) { return 14'000 + keys + (keys / 5); }
constexpr auto dependent_launch_cycles = static_cast<std::uint64_t>(timing::stream.dependent.cycles());

}  // namespace

Parts parts_of(const IndexerProblem& problem, const boards::Board& board) {
  constexpr std::uint32_t most_parts = 32;
  const auto turns = [&](std::uint64_t workgroups) {
    return parts_in(workgroups, static_cast<std::uint64_t>(board.compute_units));
  };
  Parts best = {.count = 1, .keys = problem.key_length};
  if (!problem.shape.selects) return best;
  const std::uint64_t whole = turns(problem.rows()) * select_cycles(problem.key_length);
  std::uint64_t least = whole - (whole / 10);
  for (std::uint32_t count = 2; count <= most_parts; count *= 2) {
    // Lines of scores stay whole.
    constexpr std::uint64_t line_keys = 32;
    const std::uint64_t keys = parts_in(problem.key_length, count * line_keys) * line_keys;
    if (keys <= problem.top_k) break;
    const std::uint64_t all = turns(problem.rows() * count) * select_cycles(keys) + dependent_launch_cycles +
                              turns(problem.rows()) * select_cycles(std::uint64_t{count} * problem.top_k);
    if (all >= least) continue;
    least = all;
    best = {.count = static_cast<std::uint32_t>(parts_in(problem.key_length, keys)),
            .keys = static_cast<std::uint32_t>(keys)};
  }
  return best;
}

std::uint64_t chosen_row_bytes(const IndexerProblem& problem, const Parts& parts) {
  return parts.count == 1 ? 0 : std::uint64_t{parts.count} * problem.top_k * 2 * sizeof(std::int32_t);
}

Rounds rounds_of(const IndexerProblem& problem, const Parts& chosen, std::uint64_t reach) {
  const auto parts = parts_in;
  const std::uint64_t row = (problem.keeps_scores ? score_row_bytes(problem) : 0) + chosen_row_bytes(problem, chosen);
  const std::uint64_t fitting = std::max<std::uint64_t>(reach / row, 1);
  Rounds rounds = {.sequences = problem.batch, .rows = problem.query_length};
  if (fitting >= problem.query_length) {
    // As even as whole sequences allow.
    const std::uint64_t count =
        parts(problem.batch, std::min<std::uint64_t>(fitting / problem.query_length, problem.batch));
    rounds.sequences = static_cast<std::uint32_t>(parts(problem.batch, count));
    rounds.count = static_cast<std::uint32_t>(parts(problem.batch, rounds.sequences));
  } else {
    rounds.sequences = 1;
    rounds.rows = static_cast<std::uint32_t>(parts(problem.query_length, parts(problem.query_length, fitting)));
    rounds.count = static_cast<std::uint32_t>(problem.batch * parts(problem.query_length, rounds.rows));
  }
  rounds.workspace_bytes = std::uint64_t{rounds.sequences} * rounds.rows * row;
  return rounds;
}

std::uint64_t useful_workspace(const IndexerProblem& problem, const boards::Board& board) {
  const Parts parts = parts_of(problem, board);
  const std::uint64_t chosen = chosen_row_bytes(problem, parts);
  if (problem.keeps_scores) return rounds_of(problem, parts, most_workspace).workspace_bytes;
  return chosen != 0 ? rounds_of(problem, parts, chosen * problem.rows()).workspace_bytes : 0;
}

namespace {

// What the parts have and this family has not.
constexpr auto absent_fields = attention::without_mask_kinds<wavejit_sparse_indexer_arguments>(std::array{
    families::AbsentField{"causal_flags", offsetof(wavejit_sparse_indexer_arguments, mask.causal_flags), 8},
    families::AbsentField{"page_layout", offsetof(wavejit_sparse_indexer_arguments, pages.page_layout), 8},
    families::AbsentField{"splits", offsetof(wavejit_sparse_indexer_arguments, split.splits), 8},
});

}  // namespace

Result<IndexerProblem> check(const Call* arguments) {
  if (auto head = families::check_head(arguments, WAVEJIT_SPARSE_INDEXER, "sparse_indexer", absent_fields); !head)
    return std::unexpected(std::move(head.error()));
  const Call& call = *arguments;
  IndexerProblem problem;
  problem.shape.scores = call.queries.data != nullptr;
  problem.shape.selects = call.top_k != 0;
  problem.shape.paged = call.pages.block_table != nullptr;
  Check step;
  if (problem.shape.scores) {
    step = check_queries(call);
    if (step) step = check_keys(call);
    if (step) step = check_weights(call);
    if (step) step = check_key_scales(call);
    if (!step) return std::unexpected(std::move(step.error()));
    problem.shape.type = *attention::type_of(call.queries.dtype);
    problem.shape.set_heads(call.queries.sizes[2]);
    problem.heads = static_cast<std::uint32_t>(call.queries.sizes[2]);
  } else {
    step = check_given(call);
    if (!step) return std::unexpected(std::move(step.error()));
  }
  const wavejit_tensor& rows = problem.shape.scores ? call.queries : call.scores;
  const std::int64_t keys = !problem.shape.scores ? call.scores.sizes[3]
                            : problem.shape.paged ? call.max_key_length
                                                  : call.keys.sizes[1];
  if (rows.sizes[0] * rows.sizes[1] > max_rows)
    return refuse(refusal::bad_size({problem.shape.scores ? "queries" : "scores", &rows}, 1,
                                    up_to("1", max_rows / rows.sizes[0]) + ", with the batch less than 2^31 rows"));
  problem.batch = static_cast<std::uint32_t>(rows.sizes[0]);
  problem.query_length = static_cast<std::uint32_t>(rows.sizes[1]);
  problem.key_length = static_cast<std::uint32_t>(keys);
  problem.top_k = static_cast<std::uint32_t>(std::clamp<std::int64_t>(call.top_k, 0, max_top_k));
  problem.keeps_scores = problem.shape.scores && problem.shape.selects && call.scores.data == nullptr;
  step = check_scores(call, problem);
  if (step) step = check_list(call, problem);
  if (step) step = check_row_arrays(call);
  if (step) step = check_workspace(call, problem);
  if (!step) return std::unexpected(std::move(step.error()));

  const Result<attention::SeenKeys> seen = attention::check_seen_keys(call.mask, keys);
  if (!seen) return std::unexpected(seen.error());
  problem.seen = *seen;
  constexpr std::uint32_t known = WAVEJIT_CHECK_LENGTHS | WAVEJIT_NO_COMPILE | WAVEJIT_COMPILE_BEHIND;
  step = attention::check_flags(call.head.flags, known, 0);
  if (!step) return std::unexpected(std::move(step.error()));
  return problem;
}

}  // namespace wavejit::sparse_indexer
