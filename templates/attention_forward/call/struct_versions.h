// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How the struct of a call grew: families/call/struct_size.h has the rule.
#pragma once

#include <array>
#include <cstddef>

#include "families/call/struct_size.h"
#include "wavejit/wavejit.h"

namespace wavejit::families {

template <>
struct Versions<wavejit_attention_forward_arguments> {
  static constexpr std::array earlier = {offsetof(wavejit_attention_forward_arguments, window_left),
                                         offsetof(wavejit_attention_forward_arguments, block_table),
                                         offsetof(wavejit_attention_forward_arguments, first_keys),
                                         offsetof(wavejit_attention_forward_arguments, page_layout),
                                         offsetof(wavejit_attention_forward_arguments, list_counts),
                                         offsetof(wavejit_attention_forward_arguments, key_indices),
                                         offsetof(wavejit_attention_forward_arguments, second_k),
                                         offsetof(wavejit_attention_forward_arguments, k_scale),
                                         offsetof(wavejit_attention_forward_arguments, q_scale),
                                         offsetof(wavejit_attention_forward_arguments, token_scales),
                                         offsetof(wavejit_attention_forward_arguments, score_rounding),
                                         offsetof(wavejit_attention_forward_arguments, local_chunk),
                                         offsetof(wavejit_attention_forward_arguments, bool_mask)};
};

}  // namespace wavejit::families
