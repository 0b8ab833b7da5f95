// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention/program/experiment.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <random>

#include "templates/attention/call/mask_words.h"
#include "templates/attention/call/modifier_words.h"
#include "templates/attention/program/block_lists.h"
#include "templates/attention/program/inputs.h"
#include "templates/attention/program/key_lists.h"

namespace wavejit::attention::program {

namespace {

std::int64_t total(const std::vector<std::int64_t>& lengths, std::int64_t batch, std::int64_t length) {
  return lengths.empty() ? batch * length : std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
}

Placement placement(const Experiment& problem, bool of_queries, std::int64_t heads, std::int64_t head_dim) {
  const std::int64_t length = of_queries ? problem.query_length : problem.key_length;
  if (of_queries ? !problem.packed_queries() : !problem.packed_keys()) {
    return {.batch = problem.batch,
            .length = length,
            .heads = heads,
            .head_dim = head_dim,
            .head_first = problem.layout == ArrayLayout::bhsd};
  }
  const auto& lengths = of_queries ? problem.query_lengths : problem.key_lengths;
  return {.batch = 1,
          .length = total(lengths, problem.batch, length),
          .heads = heads,
          .head_dim = head_dim,
          .head_first = false};
}

Placement placed(const Experiment& problem, bool of_queries, std::int64_t heads, std::int64_t head_dim,
                 bool transposed) {
  Placement made = placement(problem, of_queries, heads, head_dim);
  made.transposed = transposed;
  return made;
}

}  // namespace

std::string_view word_behind(const std::string& line, std::string_view key) {
  const std::size_t at = line.find(key);
  if (at == std::string::npos) return {};
  const std::size_t first = at + key.size();
  return std::string_view(line).substr(first, line.find(' ', first) - first);
}

std::vector<std::int64_t> drawn_first_keys(const Experiment& problem) {
  std::vector<std::int64_t> firsts;
  for (std::int64_t b = 0; b < problem.batch; ++b) {
    const std::int64_t wanted = 13 * (b + 1) % 100;
    const std::int64_t keys = problem.key_lengths.empty() ? 1 : problem.key_lengths[static_cast<std::size_t>(b)];
    firsts.push_back(problem.paged() ? wanted : std::clamp<std::int64_t>(problem.key_length - keys, 0, wanted));
  }
  return firsts;
}

void take_mask(const MaskWords& words, Experiment& to) { to.mask = masking_of(words); }

void take_modifiers(const std::array<DescribedModifier, modifier_count>& words, Experiment& to) {
  for (std::size_t i = 0; i < modifier_count; ++i)
    to.modifiers[i] = {.extent = words[i].extent, .number = number_in(words[i].number, 0.0F)};
}

Result<Experiment> with_known_inputs(Experiment problem) {
  if (Inputs::known(problem.inputs)) return problem;
  return failed(ExitCode::usage,
                fmt::format("inputs={} is not known; {} are accepted", problem.inputs, Inputs::accepted()));
}

std::vector<Sequence> sequences_of(const Experiment& problem) {
  std::vector<Sequence> sequences;
  std::int64_t query = 0;
  std::int64_t key = 0;
  for (std::int64_t b = 0; b < problem.batch; ++b) {
    const auto index = static_cast<std::size_t>(b);
    const std::int64_t queries = problem.query_lengths.empty() ? problem.query_length : problem.query_lengths[index];
    const std::int64_t padding = problem.first_keys.empty() ? 0 : problem.first_keys[index];
    const std::int64_t rows = problem.key_length - (problem.paged() ? 0 : padding);
    const std::int64_t keys = problem.key_lengths.empty() ? rows : problem.key_lengths[index];
    sequences.push_back({.first_query = query,
                         .queries = queries,
                         .first_key = key + (problem.paged() ? 0 : padding),
                         .keys = keys,
                         .padding = padding,
                         .has_diagonal = !problem.causal_flags || b % 2 == 0});
    query += queries;
    key += problem.packed_keys() ? keys : problem.key_length;
  }
  return sequences;
}

SequenceArrays sequence_arrays_of(const Experiment& problem) {
  SequenceArrays arrays;
  const auto add = [](std::vector<std::int32_t>& starts, std::int64_t length) {
    if (starts.empty()) starts.push_back(0);
    starts.push_back(starts.back() + static_cast<std::int32_t>(length));
  };
  const bool has_lengths = !problem.packed_keys() && (problem.paged() || !problem.key_lengths.empty());
  for (const Sequence& sequence : sequences_of(problem)) {
    if (problem.packed_queries()) add(arrays.query_starts, sequence.queries);
    if (problem.packed_keys()) add(arrays.key_starts, sequence.keys);
    if (has_lengths) arrays.key_lengths.push_back(static_cast<std::int32_t>(sequence.keys));
  }
  return arrays;
}

ScoreRules rules_of(const Experiment& problem, const Sequence& sequence) {
  wavejit_masking mask = problem.mask;
  if (!sequence.has_diagonal) mask.bits &= ~WAVEJIT_MASK_CAUSAL;
  ScoreRules rules = rules_of(mask, sequence.queries, sequence.keys);
  rules.scale = static_cast<double>(problem.scale);
  rules.half_scores = problem.half_scores;
  return rules;
}

Placement queries_of(const Experiment& problem) {
  return placed(problem, true, problem.query_heads, problem.head_dim_qk, problem.trans_q);
}
Placement keys_of(const Experiment& problem) {
  return placed(problem, false, problem.kv_heads, problem.head_dim_qk, problem.trans_k);
}
Placement values_of(const Experiment& problem) {
  return placed(problem, false, problem.kv_heads, problem.head_dim_v, problem.trans_v);
}
Placement outputs_of(const Experiment& problem) {
  return placed(problem, true, problem.query_heads, problem.head_dim_v, problem.trans_o);
}

PageTable page_table_of(const Experiment& problem) {
  if (!problem.paged()) return {};
  constexpr std::int32_t garbage = 0x7FFFFFFF;
  const std::int64_t size = problem.page_size;
  const auto pages_of = [&](const Sequence& sequence) {
    return sequence.keys == 0 ? 0 : (sequence.padding + sequence.keys + size - 1) / size;
  };
  const std::vector<Sequence> sequences = sequences_of(problem);
  PageTable table{.pages = 1, .columns = (problem.key_length + size - 1) / size + 1, .entries = {}};
  for (const Sequence& sequence : sequences) {
    table.pages += pages_of(sequence);
    table.columns = std::max(table.columns, pages_of(sequence) + 1);
  }
  std::vector<std::int32_t> ids(static_cast<std::size_t>(table.pages));
  std::ranges::iota(ids, 0);
  std::ranges::shuffle(ids, std::mt19937_64(problem.seed));
  auto next = ids.begin();
  for (const Sequence& sequence : sequences)
    for (std::int64_t column = 0; column < table.columns; ++column)
      table.entries.push_back(column < pages_of(sequence) ? *next++ : garbage);
  return table;
}

Placement stored(const Experiment& problem, const Placement& of_keys) {
  if (!problem.paged()) return of_keys;
  Placement placement = of_keys;
  placement.batch = page_table_of(problem).pages;
  placement.length = problem.page_size;
  placement.head_first = problem.page_heads_first || problem.page_layout != WAVEJIT_PAGES_OF_ROWS;
  return placement;
}

KeySlots::KeySlots(const Experiment& problem)
    : page_size_(problem.paged() ? problem.page_size : 0),
      sequences_(sequences_of(problem)),
      table_(page_table_of(problem)) {
  const Placement placement = stored(problem, keys_of(problem));
  count_ = placement.batch * placement.length;
}

std::int64_t KeySlots::of(std::int64_t sequence, std::int64_t key) const {
  const Sequence& of = sequences_[static_cast<std::size_t>(sequence)];
  if (page_size_ == 0) return of.first_key + key;
  const std::int64_t slot = of.padding + key;
  const std::int64_t column = (sequence * table_.columns) + (slot / page_size_);
  return (table_.entries[static_cast<std::size_t>(column)] * page_size_) + (slot % page_size_);
}

BiasPlacement bias_of(const Experiment& problem) {
  if (!problem.has(Modifier::bias)) return {};
  const Placement queries = queries_of(problem);
  // Packed sequences lie on one token axis: one batch of rows.
  return {.batches = problem.packed_queries() ? 1 : problem.batches_of(Modifier::bias),
          .heads = problem.heads_of(Modifier::bias),
          .rows = queries.length,
          .columns = problem.key_length,
          .row_stride = (problem.key_length + 7) / 8 * 8};
}

BiasPlacement bool_mask_of(const Experiment& problem) {
  if (problem.bool_mask == Extent::none) return {};
  const bool by_batch = problem.bool_mask == Extent::batch || problem.bool_mask == Extent::batch_and_head;
  const bool by_head = problem.bool_mask == Extent::head || problem.bool_mask == Extent::batch_and_head;
  return {.batches = problem.packed_queries() || !by_batch ? 1 : problem.batch,
          .heads = by_head ? problem.query_heads : 1,
          .rows = queries_of(problem).length,
          .columns = problem.key_length,
          .row_stride = problem.key_length | 1};
}

namespace {
BiasPlacement mask_of(const Experiment& problem) {
  return problem.bias_by_tile ? bias_of(problem) : bool_mask_of(problem);
}
// Every fourth tile of keys.
bool has_holes(const BiasPlacement& mask, std::int64_t row, std::int64_t column) {
  return column / 64 % 4 == (row / 64 + row / mask.rows) % 4;
}
}  // namespace

// Ten documents: a row sees the keys of its own, but one of 16 in every fourth tile of keys.
bool is_shown(const Experiment& problem, std::int64_t row, std::int64_t column) {
  constexpr std::int64_t documents = 10;
  const BiasPlacement mask = mask_of(problem);
  const std::int64_t head = row / mask.rows;  // of all batches
  const std::int64_t length = std::max(mask.rows, problem.key_length);
  const auto document = [&](std::int64_t place, std::int64_t of) {
    return (((place + 1 + (length - of)) * documents) + (head * 3)) / (length + 1);
  };
  if (document(row % mask.rows, mask.rows) != document(column, problem.key_length)) return false;
  return !has_holes(mask, row, column) || (column * 7 + row * 3 + head) % 16 != 0;
}

std::int64_t BiasPlacement::row(const Experiment& problem, std::int64_t batch, const Sequence& sequence,
                                std::int64_t head, std::int64_t row) const {
  const std::int64_t of_batch = problem.packed_queries() || batches == 1 ? 0 : batch;
  const std::int64_t within = problem.packed_queries() ? sequence.first_query + row : row;
  return (of_batch * heads + (heads == 1 ? 0 : head)) * rows + within;
}

float bias_element(const Experiment& problem, const Inputs& inputs, std::int64_t row, std::int64_t column) {
  if (problem.bias_by_tile) {
    if (!is_shown(problem, row, column)) return -std::numeric_limits<float>::infinity();
    if (!has_holes(mask_of(problem), row, column)) return 0;
  }
  const float value = inputs.bias(row, column);
  return problem.bias_fp32 ? value * (1 + 0x1p-14F) : value;
}

std::uint64_t device_bytes(const Experiment& problem) {
  const std::int64_t of_bias = bias_of(problem).elements() * (problem.bias_fp32 ? 2 : 1);
  const std::int64_t of_mask = bool_mask_of(problem).elements();
  const std::int64_t caches = second_list_words(problem.text).top_k == 0 ? 1 : 2;
  const auto bytes = [](const Placement& placement, std::size_t element) {
    return static_cast<std::uint64_t>(placement.elements()) * element;
  };
  const std::uint64_t of_keys = (bytes(stored(problem, keys_of(problem)), problem.key_bytes()) +
                                 bytes(stored(problem, values_of(problem)), problem.value_bytes())) *
                                static_cast<std::uint64_t>(caches);
  const std::int64_t lse = problem.lse ? queries_of(problem).rows() : 0;
  return static_cast<std::uint64_t>(of_bias) * 2 + static_cast<std::uint64_t>(of_mask) + of_keys +
         bytes(queries_of(problem), problem.query_bytes()) + static_cast<std::uint64_t>(lse) * 4 +
         static_cast<std::uint64_t>(outputs_of(problem).elements()) * problem.output_bytes();
}

RowWork::RowWork(const Experiment& problem, const Sequence& sequence)
    : problem_(problem),
      sequence_(sequence),
      rules_(rules_of(problem, sequence)),
      mask_(mask_of(problem)),
      of_a_key_(static_cast<double>(problem.head_dim_qk + problem.head_dim_v)) {
  if (const ListWords lists = list_words(problem.text); lists.top_k != 0)
    listed_ = lists.top_k + second_list_words(problem.text).top_k;
}

double RowWork::of(std::int64_t row) const {
  const VisibleKeys seen = visible_keys(rules_, row, sequence_.keys);
  if (listed_ != 0) return static_cast<double>(std::min(listed_, seen.end - seen.first)) * of_a_key_;
  if (mask_.rows > 0) {
    const std::int64_t of_mask = mask_.row(problem_, 0, sequence_, 0, row);
    std::int64_t shown = 0;
    for (std::int64_t key = seen.first; key < seen.end; ++key) shown += is_shown(problem_, of_mask, key) ? 1 : 0;
    return static_cast<double>(shown) * of_a_key_;
  }
  if (problem_.list_rows != 0) return static_cast<double>(listed_keys(problem_, 0, 0, row, seen)) * of_a_key_;
  return static_cast<double>(seen.end - seen.first) * of_a_key_;
}

double multiplications(const Experiment& problem) {
  double sum = 0;
  for (const Sequence& sequence : sequences_of(problem)) {
    const RowWork work(problem, sequence);
    for (std::int64_t row = 0; row < sequence.queries; ++row) sum += work.of(row);
  }
  return sum * static_cast<double>(problem.query_heads);
}

}  // namespace wavejit::attention::program
