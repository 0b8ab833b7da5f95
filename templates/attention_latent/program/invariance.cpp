// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_latent/program/invariance.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "templates/attention_latent/program/invariance_bytes.h"
#include "templates/attention_latent/program/invariance_changes.h"
#include "tools/invariance/runner.h"

namespace wavejit::attention_latent::program {
namespace {

using tools::InvarianceRequest;
using tools::Result;

struct Laboratory {
  static const std::vector<Dimension>& dimensions() { return all_dimensions(); }
  static int base(const Dimension& dimension) { return dimension.cached ? 1 : 0; }
  static std::vector<Change> changes(const Dimension& dimension, const Batch& batch, Draws& draws) {
    std::vector<Change> changes = dimension.changes(batch, draws);
    if (dimension.cached) over_8_bits(batch, changes);
    return changes;
  }
  static Batch draw(const InvarianceRequest& request, const Dimension& dimension, wavejit_engine* /*engine*/) {
    Batch batch = draw_batch(request);
    if (dimension.cached) make_cached(batch);
    return batch;
  }
  using Answers = std::vector<Answer>;
  // One packed call over 16 bits.
  static Change unchanged(const Batch& batch, const Dimension& /*dimension*/) {
    return {.text = {}, .pieces = all_whole(batch)};
  }
  static Result<std::optional<Answers>> changed(wavejit_engine* engine, const Batch& batch, const Change& change) {
    return run_pieces(engine, batch, change.pieces, change.way);
  }
  static void compare(const Batch& batch, const Dimension& /*dimension*/, const Change& change, const Answers& before,
                      const Answers& after, const auto& tell) {
    attention::program::compare_sequences(batch, change, before, after, tell);
  }
};

}  // namespace

const tools::Invariance& latent_invariance() { return tools::only<tools::InvarianceOf<Laboratory>>(); }

}  // namespace wavejit::attention_latent::program
