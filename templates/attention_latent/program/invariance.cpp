// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_latent/program/invariance.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "templates/attention_latent/program/invariance_bytes.h"
#include "templates/attention_latent/program/invariance_changes.h"
#include "tools/invariance/scheduled.h"

namespace wavejit::attention_latent::program {
namespace {

using attention::program::first_difference;
using attention::program::joined;
using tools::EngineWith;
using tools::InvarianceDimension;
using tools::InvarianceRequest;
using tools::Pair;
using tools::Result;

// A batch, and what it got in one packed call over 16 bits.
struct Base {
  Batch batch;
  std::optional<std::vector<Answer>> ran = std::nullopt;
};

class LatentInvariance final : public tools::Invariance {
 public:
  std::vector<InvarianceDimension> dimensions() const override {
    std::vector<InvarianceDimension> told;
    for (const Dimension& one : all_dimensions()) told.push_back(one.told);
    return told;
  }

  Result<void> run(const InvarianceRequest& request, const EngineWith& engine_with,
                   const std::function<void(Pair)>& tell) const override {
    const auto engine = engine_with({});
    if (!engine) return std::unexpected(engine.error());
    if (*engine == nullptr) return {};
    Base plain = {.batch = draw_batch(request)};
    Base cached = plain;
    make_cached(cached.batch);
    for (const Dimension& dimension : all_dimensions()) {
      if (!std::ranges::contains(request.dimensions, dimension.told.name)) continue;
      Base& base = dimension.cached ? cached : plain;
      const Batch& batch = base.batch;
      // Dimensions share what ran once.
      if (!base.ran) {
        auto answers = run_pieces(*engine, batch, all_whole(batch), {});
        if (!answers) {
          if (auto told = not_compiled(
                  answers.error(),
                  {.dimension = dimension.told.name, .batch = request.batch, .descriptor = {}, .change = {}}, tell);
              !told)
            return told;
          continue;
        }
        base.ran = *std::move(answers);
        if (!base.ran) return {};
      }
      Draws draws(~request.seed, request.batch);
      std::vector<Change> changes = dimension.changes(batch, draws);
      if (dimension.cached) over_8_bits(batch, changes);
      for (const Change& change : changes) {
        const tools::Scheduled scheduled(change.schedule);
        const auto after = run_pieces(*engine, batch, change.pieces, change.way);
        if (!after) {
          if (auto told = not_compiled(
                  after.error(),
                  {.dimension = dimension.told.name, .batch = request.batch, .descriptor = {}, .change = change.text},
                  tell);
              !told)
            return told;
          continue;
        }
        if (*after) compare(dimension, change, batch, *base.ran, **after, tell);
      }
    }
    return {};
  }

 private:
  static void compare(const Dimension& dimension, const Change& change, const Batch& batch,
                      const std::vector<Answer>& before, const std::vector<Answer>& after,
                      const std::function<void(Pair)>& tell) {
    for (std::size_t sequence = 0; sequence < batch.sequences.size(); ++sequence) {
      const auto is_of_it = [&](const RowsOf& piece) { return piece.sequence == sequence; };
      if (std::ranges::none_of(change.pieces, is_of_it)) continue;
      tell({.dimension = dimension.told.name,
            .batch = batch.number,
            .sequence = static_cast<std::int64_t>(sequence),
            .descriptor = batch.descriptor(batch.sequences[sequence]),
            .change = change.text,
            .difference =
                first_difference(batch.answer_shape(), before[sequence], joined(change.pieces, after, sequence))});
    }
  }
};

}  // namespace

const tools::Invariance& latent_invariance() {
  static const LatentInvariance only;
  return only;
}

}  // namespace wavejit::attention_latent::program
