// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_forward/emit/dualwave_state.h"

#include <algorithm>

namespace wavejit::attention_forward::dualwave {

void to_next_tile(State& state) {
  if (!state.entries.empty()) state.entries.erase(state.entries.begin());
  if (!state.images.empty()) std::ranges::rotate(state.images, state.images.begin() + 1);
  if (state.places.size() <= 1) return;
  state.places.erase(state.places.begin());
  state.places.front() = {};
}

}  // namespace wavejit::attention_forward::dualwave
