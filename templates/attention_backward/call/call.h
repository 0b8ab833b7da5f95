// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A checked call of attention_backward on the stack of its C function: dQ (and delta), then dK and dV.
#pragma once

#include <string>

#include "families/call/call_of.h"
#include "templates/attention_backward/call/problem.h"

namespace wavejit::attention_backward {

class BackwardCall final : public families::CallOf<wavejit_attention_backward_arguments, BackwardProblem> {
 public:
  BackwardCall(const wavejit_attention_backward_arguments& call, const BackwardProblem& problem,
               const boards::Board& board, const families::Toggles& toggles);
  Result<void> plan(Kernels kernels, const void* memory, families::LaunchPlan& plan) override;
  Result<void> check_workspace() const override;
  std::string descriptor(Line line) const override;
  families::WorkspaceWords workspace_words() const override;

 private:
  Arguments arguments_;
};

}  // namespace wavejit::attention_backward
