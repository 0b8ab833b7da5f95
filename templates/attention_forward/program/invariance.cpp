// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_forward/program/invariance.h"

#include <algorithm>
#include <bit>

#include "templates/attention_forward/program/invariance_changes.h"

namespace wavejit::attention_forward::program {
namespace {

using tools::EngineWith;
using tools::FirstDifference;
using tools::InvarianceDimension;
using tools::InvarianceRequest;
using tools::Pair;
using tools::Result;

// Pieces of a sequence stand in its order, side by side or not.
Answer joined(std::span<const RowsOf> pieces, std::span<const Answer> answers, std::size_t sequence) {
  Answer whole;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    if (pieces[i].sequence != sequence) continue;
    whole.o.insert(whole.o.end(), answers[i].o.begin(), answers[i].o.end());
    whole.lse.insert(whole.lse.end(), answers[i].lse.begin(), answers[i].lse.end());
  }
  return whole;
}

// Without the last rows.
Answer cut(const Batch& batch, Answer answer, std::int64_t rows) {
  const auto numbers = static_cast<std::size_t>(rows * batch.query_heads);
  answer.o.resize(answer.o.size() - (numbers * static_cast<std::size_t>(batch.dim)));
  answer.lse.resize(answer.lse.size() - numbers);
  return answer;
}

std::optional<FirstDifference> first_difference(const Batch& batch, const Answer& before, const Answer& after) {
  const auto place = [&](std::size_t row_and_head) {
    const auto at = static_cast<std::int64_t>(row_and_head);
    return FirstDifference{.tensor = "O", .token = at / batch.query_heads, .head = at % batch.query_heads};
  };
  const auto [o, other_o] = std::ranges::mismatch(before.o, after.o);
  if (o != before.o.end() || other_o != after.o.end()) {
    const auto at = static_cast<std::size_t>(o - before.o.begin());
    const auto dim = static_cast<std::size_t>(batch.dim);
    FirstDifference first = place(at / dim);
    first.dim = static_cast<std::int64_t>(at % dim);
    if (o != before.o.end()) first.before = static_cast<double>(tools::decode(batch.type, *o));
    if (other_o != after.o.end()) first.after = static_cast<double>(tools::decode(batch.type, *other_o));
    return first;
  }
  const auto [lse, other_lse] = std::ranges::mismatch(before.lse, after.lse);
  if (lse == before.lse.end() && other_lse == after.lse.end()) return std::nullopt;
  FirstDifference first = place(static_cast<std::size_t>(lse - before.lse.begin()));
  first.tensor = "LSE";
  if (lse != before.lse.end()) first.before = static_cast<double>(std::bit_cast<float>(*lse));
  if (other_lse != after.lse.end()) first.after = static_cast<double>(std::bit_cast<float>(*other_lse));
  return first;
}

class AttentionInvariance final : public tools::Invariance {
 public:
  std::vector<InvarianceDimension> dimensions() const override {
    std::vector<InvarianceDimension> told;
    for (const Dimension& one : all_dimensions()) told.push_back(one.told);
    return told;
  }

  Result<void> run(const InvarianceRequest& request, const EngineWith& engine_with,
                   const std::function<void(Pair)>& tell) const override {
    // Dimensions share what ran once.
    Drawn drawn = {
        .batch = draw_batch(request.seed, request.batch, {.sequences = request.sequences, .longest = request.longest})};
    for (const Dimension& dimension : all_dimensions()) {
      if (std::ranges::find(request.dimensions, dimension.told.name) == request.dimensions.end()) continue;
      if (auto asked = ask(dimension, request, drawn, engine_with, tell); !asked) return asked;
    }
    return {};
  }

 private:
  struct Drawn {
    Batch batch;
    std::optional<std::vector<Answer>> before = {};  // in one packed call
  };

  static Result<void> ask(const Dimension& dimension, const InvarianceRequest& request, Drawn& drawn,
                          const EngineWith& engine_with, const std::function<void(Pair)>& tell) {
    const Batch& batch = drawn.batch;
    Draws draws(~request.seed ^ request.batch);
    const std::vector<Change> changes = dimension.changes(batch, draws);
    if (changes.empty()) return {};
    if (!drawn.before) {
      const auto engine = engine_with({});
      if (!engine) return std::unexpected(engine.error());
      auto before = run_pieces(*engine, batch, all_whole(batch), {});
      if (!before) return std::unexpected(before.error());
      drawn.before = std::move(*before);
      if (!drawn.before) return {};
    }
    for (const Change& change : changes) {
      const auto engine = engine_with(change.pipeline);
      if (!engine) return std::unexpected(engine.error());
      if (*engine == nullptr) continue;
      const auto after = run_pieces(*engine, batch, change.pieces, change.way);
      if (!after) return std::unexpected(after.error());
      if (!*after) continue;
      for (std::size_t sequence = 0; sequence < batch.sequences.size(); ++sequence) {
        if (std::ranges::none_of(change.pieces, [&](const RowsOf& piece) { return piece.sequence == sequence; }))
          continue;
        tell({.dimension = dimension.told.name,
              .batch = request.batch,
              .sequence = static_cast<std::int64_t>(sequence),
              .descriptor = batch.descriptor(batch.sequences[sequence]),
              .change = change.text,
              .difference =
                  first_difference(batch, cut(batch, (*drawn.before)[sequence], change.rows_left_out),
                                   cut(batch, joined(change.pieces, **after, sequence), change.rows_left_out))});
      }
    }
    return {};
  }
};

}  // namespace

const tools::Invariance& attention_invariance() {
  static const AttentionInvariance only;
  return only;
}

}  // namespace wavejit::attention_forward::program
