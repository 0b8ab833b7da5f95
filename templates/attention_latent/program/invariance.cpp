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

struct Laboratory : attention::program::RowsLaboratory<Batch, Dimension, Change> {
  static constexpr auto& dimensions = all_dimensions;
  static Batch draw(const InvarianceRequest& request, const Dimension& dimension, wavejit_engine* /*engine*/) {
    Batch batch = draw_batch(request);
    if (dimension.base == Base::cached) make_cached(batch);
    return batch;
  }
};

}  // namespace

const tools::Invariance& latent_invariance() { return tools::only<tools::InvarianceOf<Laboratory>>(); }

}  // namespace wavejit::attention_latent::program
