// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A checked call of attention_merge on the stack of its C function.
#pragma once

#include <string>

#include "templates/attention_merge/call/problem.h"

namespace wavejit::attention_merge {

class MergeCall final : public families::Call {
 public:
  // What it is given must outlive it. `problem` fits_waves(target).
  MergeCall(const wavejit_attention_merge_arguments& call, const MergeProblem& problem, const targets::Target& target,
            const families::Toggles& toggles);
  Result<void> plan(std::span<const families::KernelSpec* const> kernels, const void* memory,
                    families::LaunchPlan& plan) override;
  WhenMissing when_missing() const override;
  std::string descriptor(Line line) const override;

 private:
  void merge_batches(std::uint32_t& batch);

  const wavejit_attention_merge_arguments& call_;
  const MergeProblem& problem_;
  const targets::Target& target_;
  Arguments arguments_;
};

}  // namespace wavejit::attention_merge
