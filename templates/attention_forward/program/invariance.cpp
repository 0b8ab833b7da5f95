// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <algorithm>

#include "templates/attention_forward/program/answers.h"
#include "templates/attention_forward/program/invariance_cache.h"
#include "templates/attention_forward/program/invariance_changes.h"
#include "tools/invariance/runner.h"

namespace wavejit::attention_forward::program {
namespace {

struct Laboratory : RowsLaboratory<Batch, Dimension, Change> {
  static constexpr auto& dimensions = all_dimensions;
  static Batch draw(const InvarianceRequest& request, const Dimension& dimension, wavejit_engine* /*engine*/) {
    const bool lists = dimension.base == Base::listed || dimension.base == Base::unlisted;
    Batch batch = draw_batch(request.seed, request.batch,
                             {.sequences = request.sequences,
                              .longest = request.longest,
                              .lists = lists,
                              .byte_queries = dimension.base == Base::bytes});
    if (dimension.base == Base::cached) make_cached(batch);
    if (dimension.base == Base::bytes) make_cached_queries(batch);
    return batch;
  }
  static Change unchanged(const Batch& /*batch*/, const Dimension& dimension) {
    Change change;
    if (dimension.base == Base::listed) change.way.lists.emplace();
    change.way.eight_bits = dimension.base == Base::bytes;
    change.way.integers = dimension.base == Base::integers;
    return change;
  }
};

}  // namespace

const Invariance& attention_invariance() { return only<InvarianceOf<Laboratory>>(); }

}  // namespace wavejit::attention_forward::program
