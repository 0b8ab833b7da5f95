// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How the struct of a call grew: families/call/struct_size.h has the rule.
#pragma once

#include <array>
#include <cstddef>

#include "families/call/struct_size.h"
#include "wavejit/wavejit.h"

namespace wavejit::families {

template <>
struct Versions<wavejit_cache_append_arguments> {
  static constexpr std::array earlier = {offsetof(wavejit_cache_append_arguments, k_scale)};
};

}  // namespace wavejit::families
