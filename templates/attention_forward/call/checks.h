// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The parts of check_attention_forward (problem.h), one file each.
#pragma once

#include <array>
#include <cstdint>

#include "families/call/failure.h"
#include "templates/attention_forward/call/problem.h"

namespace wavejit::attention_forward {

// What the call's tensors must measure, once packed lengths are known.
struct Extents {
  std::int64_t sequences = 0;
  std::int64_t query_length = 0;  // the longest
  std::int64_t key_length = 0;
  const char* sequences_from = nullptr;  // the field that says so
};

// sequences.cpp: dense or packed, device arrays of lengths. Needs q and k with sizes in range.
// `extents` in place: hot, and a processor waits for what is read back wider than it was written.
Result<void> check_sequences(const wavejit_attention_forward_arguments& call, Extents& extents);

// paging.cpp: keys in pages. Needs k and v with sizes that agree, strides in range, and extents.
Result<void> check_pages(const wavejit_attention_forward_arguments& call, const Extents& extents);
// The same file: page_layout is not 0. Needs k and v with sizes that agree.
Result<void> check_page_layout(const wavejit_attention_forward_arguments& call);
// K and V of vectorised pages: a head of a page as one row, since nothing stands between its elements.
struct KeyTensors {
  wavejit_tensor k;
  wavejit_tensor v;
};
wavejit_tensor in_one_row(const wavejit_tensor& pages);
// Whether a call has them.
inline bool is_paged(const wavejit_attention_forward_arguments& call) { return call.block_table != nullptr; }

// modifiers.cpp: mask, window, prefix, bias, alibi, sink, softcap, splits. Fills the problem's fields; lengths,
// dtype and scale stand in it already.
Result<void> check_mask(const wavejit_attention_forward_arguments& call, AttentionProblem& problem);
Result<void> check_modifiers(const wavejit_attention_forward_arguments& call, const Extents& extents,
                             AttentionProblem& problem);

}  // namespace wavejit::attention_forward
