// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A checked call of cache_append on the stack of its C function.
#pragma once

#include <string>

#include "templates/cache_append/call/problem.h"

namespace wavejit::cache_append {

class AppendCall final : public families::Call {
 public:
  // What it is given must outlive it.
  AppendCall(const wavejit_cache_append_arguments& call, const AppendProblem& problem, const targets::Target& target,
             const families::Toggles& toggles);
  Result<void> plan(std::span<const families::KernelSpec* const> kernels, const void* memory,
                    families::LaunchPlan& plan) override;
  WhenMissing when_missing() const override;
  std::string descriptor(Line line) const override;

 private:
  Side side_of(const wavejit_tensor& source, const wavejit_tensor& target, Access access, bool vectorised) const;

  void fill_latent_rows(Arguments& all) const;
  void merge_batches(std::uint32_t& batch);

  const wavejit_cache_append_arguments& call_;
  const AppendProblem& problem_;
  const targets::Target& target_;
  BaseArguments arguments_;
};

}  // namespace wavejit::cache_append
