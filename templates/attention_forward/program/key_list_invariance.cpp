// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_forward/program/key_list_invariance.h"

#include <vector>

#include "templates/attention_forward/program/key_list_calls.h"

namespace wavejit::attention_forward::program {
namespace {

struct KeyListLaboratory : attention::program::ListLaboratory<KeyListBatch> {
  static const std::vector<attention::program::ListDimension>& dimensions() {
    static const auto all = attention::program::list_dimensions("key-list-", "lists of keys: ", 8);
    return all;
  }
  static KeyListBatch draw(const tools::InvarianceRequest& request, const attention::program::ListDimension&,
                           wavejit_engine* /*engine*/) {
    return draw_key_lists(request);
  }
  static auto changed(wavejit_engine* engine, const KeyListBatch& batch, const attention::program::ListChange& change) {
    return run_key_lists(engine, batch, change);
  }
};

}  // namespace

const tools::Invariance& key_list_invariance() { return tools::only<tools::InvarianceOf<KeyListLaboratory>>(); }

}  // namespace wavejit::attention_forward::program
