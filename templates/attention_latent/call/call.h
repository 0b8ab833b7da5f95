// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A checked call of attention_latent on the stack of its C function: the walk, and of several runs the merge.
#pragma once

#include <cstdint>
#include <string>

#include "templates/attention_latent/call/problem.h"
#include "templates/attention_latent/call/runs.h"
#include "templates/attention_latent/kernel/arguments.h"

namespace wavejit::attention_latent {

class LatentCall final : public families::Call {
 public:
  // What it is given must outlive it.
  LatentCall(const wavejit_attention_latent_arguments& call, const LatentProblem& problem, const Runs& runs,
             const boards::Board& board, const families::Toggles& toggles);
  LatentCall(const wavejit_attention_latent_arguments& call, const LatentProblem& problem, Runs&& runs,
             const boards::Board& board, const families::Toggles& toggles) = delete;
  // `code`: that of shape_of(problem, runs), where it is known (api/known_plans.h).
  LatentCall(const wavejit_attention_latent_arguments& call, const LatentProblem& problem, const Runs& runs,
             std::uint64_t code, const boards::Board& board, const families::Toggles& toggles);
  Result<void> plan(std::span<const families::KernelSpec* const> kernels, const void* memory,
                    families::LaunchPlan& plan) override;
  WhenMissing when_missing() const override;
  std::string descriptor(Line line) const override;
  Result<void> judge(families::DeviceMemory& memory) const override;
  families::WorkspaceWords workspace_words() const override;
  // The plan chose one launch, and not the caller: as a capture without counters left has two.
  bool may_need_two_launches() const { return runs_.merged && problem_.launches == attention::Launches::planned; }
  const LatentProblem& problem() const { return problem_; }
  const wavejit_attention_latent_arguments& arguments() const { return call_; }

 private:
  std::uint64_t skip_of_keys() const;
  TensorArgument keys_argument(const wavejit_tensor& tensor) const;
  TensorArgument behind_keys_argument(const wavejit_tensor& tensor) const;
  void fill_second(std::uint32_t first);
  void fill(const void* memory, std::uint32_t first, std::uint32_t batch);

  const wavejit_attention_latent_arguments& call_;
  const LatentProblem& problem_;
  const Runs& runs_;
  const boards::Board& board_;
  const families::Toggles& toggles_;
  Arguments arguments_;
  Arguments combine_;
  Arguments second_;  // of a second list
};

}  // namespace wavejit::attention_latent
