// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_latent/program/invariance.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

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
    const Batch batch = draw_batch(request);
    // Dimensions share what ran once: in one packed call.
    const auto before = run_pieces(*engine, batch, all_whole(batch), {});
    if (!before) return std::unexpected(before.error());
    if (!*before) return {};
    for (const Dimension& dimension : all_dimensions()) {
      if (!std::ranges::contains(request.dimensions, dimension.told.name)) continue;
      Draws draws(~request.seed, request.batch);
      for (const Change& change : dimension.changes(batch, draws)) {
        const tools::Scheduled scheduled(change.schedule);
        const auto after = run_pieces(*engine, batch, change.pieces, change.way);
        if (!after) return std::unexpected(after.error());
        if (*after) compare(dimension, change, batch, **before, **after, tell);
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
