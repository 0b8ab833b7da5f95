// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A checked call of attention_merge on the stack of its C function.
#pragma once

#include <string>

#include "families/call/call_of.h"
#include "templates/attention_merge/call/problem.h"

namespace wavejit::attention_merge {

class MergeCall final : public families::CallOf<wavejit_attention_merge_arguments, MergeProblem> {
 public:
  // `problem` fits_waves(board).
  using CallOf::CallOf;
  Result<void> plan(Kernels kernels, const void* memory, families::LaunchPlan& plan) override;
  std::string descriptor(Line line) const override;

 private:
  void merge_batches(std::uint32_t& batch);

  Arguments arguments_;
};

}  // namespace wavejit::attention_merge
