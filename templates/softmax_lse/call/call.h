// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A checked call of softmax_lse on the stack of its C function.
#pragma once

#include <string>

#include "families/call/call_of.h"
#include "templates/softmax_lse/call/problem.h"

namespace wavejit::softmax_lse {

// How many rows a workgroup takes: as many as it can hold, fewer where that leaves compute units idle.
struct Geometry {
  std::uint32_t rows = 1;
  std::uint32_t tile_shift = 0;
};
Geometry geometry_of(const SoftmaxProblem& problem, std::uint64_t largest_row_stride, const boards::Board& target);

class SoftmaxCall final : public families::CallOf<wavejit_softmax_lse_arguments, SoftmaxProblem> {
 public:
  SoftmaxCall(const wavejit_softmax_lse_arguments& call, const SoftmaxProblem& problem, const boards::Board& board,
              const families::Toggles& toggles);
  Result<void> plan(Kernels kernels, const void* memory, families::LaunchPlan& plan) override;
  std::string descriptor(Line line) const override;
  Result<void> judge(families::DeviceMemory& memory) const override;

 private:
  Arguments arguments_;
};

}  // namespace wavejit::softmax_lse
