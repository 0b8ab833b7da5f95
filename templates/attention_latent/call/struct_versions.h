// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How the struct of a call grew: families/call/struct_size.h has the rule.
#pragma once

#include <array>
#include <cstddef>

#include "families/call/struct_size.h"
#include "wavejit/wavejit.h"

namespace wavejit::families {

template <>
struct Versions<wavejit_attention_latent_arguments> {
  static constexpr std::array earlier = {
      offsetof(wavejit_attention_latent_arguments, key_indices), offsetof(wavejit_attention_latent_arguments, second_k),
      offsetof(wavejit_attention_latent_arguments, k_scale), offsetof(wavejit_attention_latent_arguments, row_scales)};
};

}  // namespace wavejit::families
