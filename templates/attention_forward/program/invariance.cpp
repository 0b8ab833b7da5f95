// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_forward/program/invariance.h"

#include <algorithm>
#include <map>

#include "templates/attention_forward/program/invariance_cache.h"
#include "templates/attention_forward/program/invariance_changes.h"
#include "tools/invariance/scheduled.h"

namespace wavejit::attention_forward::program {
namespace {

using attention::program::cut;
using attention::program::first_difference;
using attention::program::joined;
using tools::EngineWith;
using tools::InvarianceDimension;
using tools::InvarianceRequest;
using tools::Pair;
using tools::Result;

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
    std::map<Base, Drawn> drawn;
    for (const Dimension& dimension : all_dimensions()) {
      if (std::ranges::find(request.dimensions, dimension.told.name) == request.dimensions.end()) continue;
      auto [known, is_new] = drawn.try_emplace(dimension.base);
      if (is_new) {
        const bool lists = dimension.base == Base::listed || dimension.base == Base::unlisted;
        known->second.batch = draw_batch(request.seed, request.batch,
                                         {.sequences = request.sequences,
                                          .longest = request.longest,
                                          .lists = lists,
                                          .byte_queries = dimension.base == Base::bytes});
        if (dimension.base == Base::cached) make_cached(known->second.batch);
        if (dimension.base == Base::bytes) make_cached_queries(known->second.batch);
      }
      if (auto asked = ask(dimension, request, known->second, engine_with, tell); !asked) return asked;
    }
    return {};
  }

 private:
  struct Drawn {
    Batch batch;
    std::optional<std::vector<Answer>> before = {};  // in one packed call
  };

  static Pair failed_in(const Dimension& dimension, const InvarianceRequest& request, const std::string& change) {
    return {.dimension = dimension.told.name, .batch = request.batch, .descriptor = {}, .change = change};
  }

  static Result<void> ask(const Dimension& dimension, const InvarianceRequest& request, Drawn& drawn,
                          const EngineWith& engine_with, const std::function<void(Pair)>& tell) {
    const Batch& batch = drawn.batch;
    Draws draws(~request.seed ^ request.batch);
    std::vector<Change> changes = dimension.changes(batch, draws);
    if (dimension.base == Base::cached || dimension.base == Base::bytes) over_8_bits(batch, changes);
    if (dimension.base == Base::integers) over_integers(batch, changes);
    if (changes.empty()) return {};
    if (!drawn.before) {
      const auto engine = engine_with({});
      if (!engine) return std::unexpected(engine.error());
      Way way;
      if (dimension.base == Base::listed) way.lists.emplace();
      way.eight_bits = dimension.base == Base::bytes;
      way.integers = dimension.base == Base::integers;
      auto before = run_pieces(*engine, batch, all_whole(batch), way);
      if (!before) return not_compiled(before.error(), failed_in(dimension, request, {}), tell);
      drawn.before = std::move(*before);
      if (!drawn.before) return {};
    }
    const attention::program::AnswerShape shape = batch.answer_shape();
    for (const Change& change : changes) {
      const auto engine = engine_with(change.pipeline);
      if (!engine) return std::unexpected(engine.error());
      if (*engine == nullptr) continue;
      const tools::Scheduled scheduled(change.schedule);
      const auto after = run_pieces(*engine, batch, change.pieces, change.way);
      if (!after) {
        if (auto told = not_compiled(after.error(), failed_in(dimension, request, change.text), tell); !told)
          return told;
        continue;
      }
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
                  first_difference(shape, cut(shape, (*drawn.before)[sequence], change.rows_left_out),
                                   cut(shape, joined(change.pieces, **after, sequence), change.rows_left_out))});
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
