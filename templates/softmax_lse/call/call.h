// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A checked call of softmax_lse on the stack of its C function.
#pragma once

#include <string>

#include "templates/softmax_lse/call/problem.h"

namespace wavejit::softmax_lse {

// How many rows a workgroup takes: as many as it can hold, fewer where that leaves compute units idle.
struct Geometry {
  std::uint32_t rows = 1;
  std::uint32_t tile_shift = 0;
};
Geometry geometry_of(const SoftmaxProblem& problem, std::uint64_t largest_row_stride, const boards::Board& target);

class SoftmaxCall final : public families::Call {
 public:
  // What it is given must outlive it.
  SoftmaxCall(const wavejit_softmax_lse_arguments& call, const SoftmaxProblem& problem, const boards::Board& target,
              const families::Toggles& toggles);
  Result<void> plan(std::span<const families::KernelSpec* const> kernels, const void* memory,
                    families::LaunchPlan& plan) override;
  WhenMissing when_missing() const override;
  std::string descriptor(Line line) const override;
  Result<void> judge(families::DeviceMemory& memory) const override;

 private:
  const wavejit_softmax_lse_arguments& call_;
  const SoftmaxProblem& problem_;
  const boards::Board& target_;
  const families::Toggles& toggles_;
  Arguments arguments_;
};

}  // namespace wavejit::softmax_lse
