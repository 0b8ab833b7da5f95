// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// From a checked call to the arguments of its kernels. Pure arithmetic, on the hot path.
#pragma once

#include "boards/board.h"
#include "families/kernel/toggles.h"
#include "templates/attention/call/cache_scales.h"
#include "templates/attention_forward/call/problem.h"
#include "templates/attention_forward/kernel/cache_arguments.h"
#include "templates/attention_forward/kernel/combine/arguments.h"
#include "templates/attention_forward/kernel/integer_arguments.h"
#include "templates/attention_forward/kernel/output_scale_arguments.h"
#include "templates/attention_forward/kernel/paged_arguments.h"
#include "templates/attention_forward/kernel/token_scale_arguments.h"

namespace wavejit::attention_forward {

// All but what splitting keys asks for. `arguments` is as constructed.
void fill_arguments(Arguments& arguments, const AttentionProblem& problem,
                    const wavejit_attention_forward_arguments& call, const boards::Board& target,
                    const families::Toggles& toggles);

// Where keys and values stand.
void set_keys(Arguments& arguments, const wavejit_tensor& k, const wavejit_tensor& v);

// Rows of vectorised pages, over what fill_arguments has made of strides.
void set_units(Arguments& arguments, const wavejit_attention_forward_arguments& call);

// The arguments as if the call's sequences began with this one. Packed tensors have no batch stride.
void begin_at_sequence(PagedArguments& arguments, const AttentionShape& shape, std::uint32_t sequence);

// The scales of a cache of 8 bits, from this sequence on.
CacheScales cache_scales(const wavejit_attention_forward_arguments& call, std::uint32_t first_sequence);

// The same where tokens have scales. Pages are those of all sequences.
CacheScales token_scales(const wavejit_attention_forward_arguments& call, bool paged, std::uint32_t first_sequence);
TokenStrides token_strides(const wavejit_attention_forward_arguments& call);

// How far apart the dims of a row stand.
DimStrides dim_strides(const wavejit_attention_forward_arguments& call);

// The scale of an O of 8 bits.
inline attention::OutputScale output_scale(const wavejit_attention_forward_arguments& call) {
  return attention::output_scale_argument(call.output_scale);
}

// The scales of integers, from this sequence on.
IntegerScales integer_scales(const wavejit_attention_forward_arguments& call, const AttentionProblem& problem,
                             std::uint32_t first_sequence);

// What the kernel is given that merges the parts that one of this shape leaves, with these arguments.
attention_combine::Arguments combine_arguments(const Arguments& split, const AttentionShape& shape);

}  // namespace wavejit::attention_forward
