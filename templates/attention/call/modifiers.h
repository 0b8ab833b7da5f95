// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The modifiers of a call's scores (kernel/modifiers.h): checked, and what kernels read of them.
#pragma once

#include <array>

#include "families/call/failure.h"
#include "templates/attention/call/sequences.h"
#include "templates/attention/kernel/arguments.h"
#include "templates/attention/kernel/modifiers.h"
#include "wavejit/wavejit.h"

namespace wavejit::attention {

// What the checks look at beside a modifier's own tensor or number.
struct ModifierCall {
  const wavejit_tensor& q;
  const Extents& extents;
  bool packed_queries;
  bool packed_keys;
  float scale_log2e;  // checked
};

// One that is given; the other of tensor and number is not looked at.
families::Result<void> check_modifier(Modifier modifier, const ModifierCall& call, const wavejit_tensor& tensor,
                                      float number);

// All that a call gives. Those that change code go into `in_code`.
families::Result<void> check_modifiers(const wavejit_modifiers& modifiers, const ModifierCall& call,
                                       Modifiers& in_code);

// What a kernel reads of one that is given and was checked. The sink's place is a family's own: it has none here.
void set_score_arguments(Modifier modifier, const wavejit_tensor& tensor, float number, float scale_log2e,
                         ScoreArguments& scores);
// What a kernel reads of all that are given.
void set_score_arguments(const wavejit_modifiers& modifiers, float scale_log2e, ScoreArguments& scores);

// What a kernel bounds of a bias with one descriptor is below 4 GiB.
families::Result<void> check_bias_slice(std::int64_t rows_of_tensor, std::int64_t row_elements,
                                        std::uint64_t element_bytes);
// Elements of a row of a bias that lies without gaps.
std::int64_t padded_bias_row(std::int64_t keys);
// Elements between the rows of a bias, whose last dimension is padded where there is one row.
std::int64_t bias_row_elements(const wavejit_tensor& bias);

}  // namespace wavejit::attention
