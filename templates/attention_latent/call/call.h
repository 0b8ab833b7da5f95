// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A checked call of attention_latent on the stack of its C function: the walk, and of several runs the merge.
#pragma once

#include <cstdint>
#include <string>

#include "templates/attention/call/split_call.h"
#include "templates/attention_latent/call/problem.h"
#include "templates/attention_latent/call/splits.h"
#include "templates/attention_latent/kernel/arguments.h"

namespace wavejit::attention_latent {

// The board and the toggles must outlive it, too.
class LatentCall final : public attention::SplitCall<wavejit_attention_latent_arguments, CallPlan> {
 public:
  LatentCall(const wavejit_attention_latent_arguments& call, const CallPlan& plan, const boards::Board& board,
             const families::Toggles& toggles)
      : SplitCall(family(), call, plan), board_(board), toggles_(toggles) {}

  Result<void> plan(Kernels kernels, const void* memory, families::LaunchPlan& plan) override;
  std::string descriptor(Line line) const override;

 private:
  CallPlan plan_anew(const LatentProblem& problem) const override {
    return plan_call(problem, board_, attention::reach_of(call_.split));
  }
  std::uint64_t skip_of_keys() const;
  TensorArgument keys_argument(const wavejit_tensor& tensor) const;
  TensorArgument behind_keys_argument(const wavejit_tensor& tensor) const;
  void fill_second(std::uint32_t first);
  void fill(const void* memory, std::uint32_t first, std::uint32_t batch);

  const boards::Board& board_;
  const families::Toggles& toggles_;
  Arguments arguments_;
  Arguments combine_;
  Arguments second_;  // of a second list
};

}  // namespace wavejit::attention_latent
