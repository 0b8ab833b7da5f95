// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Head dims that kernels exist for: those that fill tiles, and all others in steps of 16 bytes, which tiles pad.
//
// A tile of K and V stands in LDS in pieces of 64 dims, and matrix instructions take 16 of K and 32 of V. With head dim
// 80 rows of memory have 80 elements: lanes that would fetch the rest of a piece point far outside and read nothing,
// products of K take five steps, and O's third block of dims is stored half. No tensor of the caller's is padded.
#pragma once

#include <algorithm>
#include <array>

#include "templates/attention/kernel/head_dims.h"
#include "templates/attention/kernel/types.h"

namespace wavejit::attention_forward {

inline constexpr std::array<attention::HeadDims, 4> whole_head_dims = {{{64, 64}, {128, 128}, {192, 128}, {256, 256}}};
inline constexpr int head_dim_step = 8;
inline constexpr int largest_head_dim = 256;

constexpr bool is_padded(const attention::HeadDims& dims) { return !std::ranges::contains(whole_head_dims, dims); }

// As `wavejit supported` tells them.
constexpr attention::OtherHeadDims padded_head_dims() {
  return {.one = {.qk = 96, .v = 96}, .all = "(in 16 bits all multiples of 8 up to the last)"};
}

constexpr bool has_head_dims(const attention::HeadDims& dims) {
  const auto fits = [](int each) { return each > 0 && each % head_dim_step == 0 && each <= largest_head_dim; };
  return fits(dims.qk) && fits(dims.v);
}

}  // namespace wavejit::attention_forward
