// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention/program/row_reference.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <thread>
#include <utility>

#include "templates/attention/program/block_lists.h"

namespace wavejit::attention::program {

StorageFormat weight_format(const Experiment& problem) {
  return problem.byte_queries ? tools::e4m3_weights : storage_format(problem.type);
}

namespace {

// Where the sum of weights is that of rounded ones, small ones count: there are many.
double least_weight(const Experiment& problem) {
  const StorageFormat format = weight_format(problem);
  return format.summed ? std::ldexp(1.0, format.smallest_exponent) : 0;
}

}  // namespace

Reference::Reference(const Experiment& problem, const Inputs& inputs)
    : problem_(problem),
      inputs_(inputs),
      sequences_(sequences_of(problem)),
      key_lists_(joined_lists_of(problem)),
      head_values_(program::head_values(problem, inputs)) {
  for (const ProgramModifier& row : program_modifiers()) {
    if (row.given != Given::heads || row.of_head != nullptr || !problem.has(row.modifier)) continue;
    std::vector<float>& logits = head_values_[index_of(row.modifier)];
    logits.clear();  // chosen by rows without them
    logits = choose_logits();
  }
}

ScoreRules Reference::rules(std::int64_t sequence, std::int64_t head) const {
  ScoreRules rules = rules_of(problem_, sequences_[static_cast<std::size_t>(sequence)]);
  enter_modifiers(rules, problem_, head_values_, sequence, head);
  return rules;
}

std::vector<float> Reference::rows_of(Operand operand, const Placement& placement, std::int64_t first,
                                      std::int64_t count, std::int64_t head) const {
  const auto dim = static_cast<std::size_t>(placement.head_dim);
  std::vector<float> values(static_cast<std::size_t>(count) * dim);
  for (std::int64_t i = 0; i < count; ++i) {
    inputs_.fill(operand, (first + i) * placement.heads + head, i,
                 std::span(values).subspan(static_cast<std::size_t>(i) * dim, dim));
  }
  return values;
}

ExactRows Reference::attend(std::int64_t sequence, std::int64_t head, const std::vector<std::int64_t>& rows,
                            const std::vector<float>& k, const std::vector<float>& v) const {
  const Sequence& lengths = sequences_[static_cast<std::size_t>(sequence)];
  const Placement queries = queries_of(problem_);
  const auto dim = static_cast<std::size_t>(problem_.head_dim_qk);
  std::vector<float> q(rows.size() * dim);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    inputs_.fill(Operand::q, (lengths.first_query + rows[i]) * queries.heads + head, rows[i],
                 std::span(q).subspan(i * dim, dim));
  }
  HeadRows wanted{.rules = rules(sequence, head),
                  .head_dim_qk = dim,
                  .head_dim_v = static_cast<std::size_t>(problem_.head_dim_v),
                  .keys = static_cast<std::size_t>(lengths.keys),
                  .rows = rows,
                  .q = q,
                  .k = k,
                  .v = v,
                  .bias = {},
                  .least_weight = least_weight(problem_)};
  const BiasPlacement bias = bias_of(problem_);
  if (bias.rows > 0) {
    wanted.bias = [&, bias](std::int64_t row, std::int64_t key) {
      return static_cast<double>(
          bias_element(problem_, inputs_, bias.row(problem_, sequence, lengths, head, row), key));
    };
  }
  if (const BiasPlacement mask = bool_mask_of(problem_); mask.rows > 0) {
    wanted.bias = [&, mask](std::int64_t row, std::int64_t key) {
      const bool shown = is_shown(problem_, mask.row(problem_, sequence, lengths, head, row), key);
      return shown ? 0.0 : -std::numeric_limits<double>::infinity();
    };
  }
  if (problem_.list_rows != 0) {
    // A bias of −∞ hides, as lists do.
    wanted.bias = [&, others = wanted.bias](std::int64_t row, std::int64_t key) {
      if (!is_listed(problem_, sequence, head, row, key)) return -std::numeric_limits<double>::infinity();
      return others ? others(row, key) : 0.0;
    };
  }
  // A key that is named twice counts twice: as one whose score is larger by ln 2.
  std::vector<std::vector<std::int64_t>> times;
  if (key_lists_.top_k != 0) {
    for (const std::int64_t row : rows)
      times.push_back(
          key_lists_.times(static_cast<std::size_t>(lengths.first_query + row), head / problem_.group(), lengths.keys));
    wanted.bias = [&](std::int64_t row, std::int64_t key) {
      const auto at = static_cast<std::size_t>(std::ranges::find(rows, row) - rows.begin());
      return std::log(static_cast<double>(times[at][static_cast<std::size_t>(key)]));
    };
  }
  return exact_rows(wanted);
}

void Reference::compute(std::int64_t sequence, std::int64_t kv_head, const Rows& missing, bool parallel) {
  const Sequence& lengths = sequences_[static_cast<std::size_t>(sequence)];
  const auto k = rows_of(Operand::k, keys_of(problem_), lengths.first_key, lengths.keys, kv_head);
  const auto v = rows_of(Operand::v, values_of(problem_), lengths.first_key, lengths.keys, kv_head);
  // Enough rows at a time that the keys are worth being turned round, few enough to keep all cores busy.
  constexpr std::size_t chunk = 64;
  struct Piece {
    HeadOfSequence head;
    std::vector<std::int64_t> rows;
  };
  std::vector<Piece> pieces;
  for (std::int64_t head = kv_head * problem_.group(); head < (kv_head + 1) * problem_.group(); ++head) {
    const auto found = missing.find({.sequence = sequence, .head = head});
    if (found == missing.end()) continue;
    const auto& rows = found->second;
    for (std::size_t first = 0; first < rows.size(); first += chunk) {
      const auto begin = rows.begin() + static_cast<std::ptrdiff_t>(first);
      const auto count = static_cast<std::ptrdiff_t>(std::min(chunk, rows.size() - first));
      pieces.push_back({.head = found->first, .rows = {begin, begin + count}});
    }
  }
  const auto dim = static_cast<std::ptrdiff_t>(problem_.head_dim_v);
  const auto work = [&](std::size_t index) {
    const Piece& piece = pieces[index];
    const ExactRows answer = attend(sequence, piece.head.head, piece.rows, k, v);
    auto& rows = exact_.at(piece.head);  // every row's place was made before
    for (std::size_t i = 0; i < piece.rows.size(); ++i) {
      ReferenceRow& row = rows.at(piece.rows[i]);
      const auto at = static_cast<std::ptrdiff_t>(i) * dim;
      row.output.assign(answer.output.begin() + at, answer.output.begin() + at + dim);
      row.magnitude.assign(answer.magnitude.begin() + at, answer.magnitude.begin() + at + dim);
      row.spread = answer.spread[i];
      row.score = answer.score[i];
      row.lse = answer.lse[i];
      row.largest = answer.largest[i];
      row.mass = answer.mass[i];
    }
  };
  if (parallel) {
    on_all_cores(pieces.size(), work);
  } else {
    for (std::size_t i = 0; i < pieces.size(); ++i) work(i);
  }
}

void Reference::want(const Rows& rows) {
  Rows missing;
  std::vector<std::pair<std::int64_t, std::int64_t>> groups;  // sequence, kv head
  for (const auto& [head, numbers] : rows) {
    auto& there = exact_[head];
    for (const std::int64_t row : numbers) {
      if (there.try_emplace(row).second) missing[head].push_back(row);
    }
    if (!missing.contains(head)) continue;
    const std::pair group(head.sequence, head.head / problem_.group());
    if (groups.empty() || groups.back() != group) groups.push_back(group);
  }
  // Many groups: one a thread. Few: their rows.
  const bool many = groups.size() >= 2 * static_cast<std::size_t>(std::max(1U, std::thread::hardware_concurrency()));
  if (many) {
    on_all_cores(groups.size(), [&](std::size_t i) { compute(groups[i].first, groups[i].second, missing, false); });
  } else {
    for (const auto& [sequence, kv_head] : groups) compute(sequence, kv_head, missing, true);
  }
}

std::vector<float> Reference::choose_logits() {
  std::vector<float> logits(static_cast<std::size_t>(problem_.query_heads));
  const auto longest = std::ranges::max_element(sequences_, {}, &Sequence::keys);
  const auto sequence = longest - sequences_.begin();
  const std::vector<std::int64_t> row = {std::max<std::int64_t>(longest->queries - 1, 0) / 2};
  on_all_cores(static_cast<std::size_t>(problem_.kv_heads), [&](std::size_t kv_head) {
    const auto head = static_cast<std::int64_t>(kv_head);
    const auto k = rows_of(Operand::k, keys_of(problem_), longest->first_key, longest->keys, head);
    const auto v = rows_of(Operand::v, values_of(problem_), longest->first_key, longest->keys, head);
    for (std::int64_t h = head * problem_.group(); h < (head + 1) * problem_.group(); ++h) {
      const double lse = longest->queries > 0 ? attend(sequence, h, row, k, v).lse.front() : 0;
      const double share = h % 2 == 0 ? 0.25 : 0.9;
      // A row that sees nothing: any finite logit.
      logits[static_cast<std::size_t>(h)] =
          static_cast<float>((std::isfinite(lse) ? lse : 0) + std::log(share / (1 - share)));
    }
  });
  return logits;
}

}  // namespace wavejit::attention::program
