// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A checked call of cache_append on the stack of its C function.
#pragma once

#include <string>

#include "families/call/call_of.h"
#include "templates/cache_append/call/problem.h"

namespace wavejit::cache_append {

class AppendCall final : public families::CallOf<wavejit_cache_append_arguments, AppendProblem> {
 public:
  using CallOf::CallOf;
  Result<void> plan(Kernels kernels, const void* memory, families::LaunchPlan& plan) override;
  std::string descriptor(Line line) const override;

 private:
  Side side_of(const wavejit_tensor& source, const wavejit_tensor& target, Access access, bool vectorised) const;

  void fill_latent_rows(Arguments& all) const;
  void merge_batches(std::uint32_t& batch);

  BaseArguments arguments_;
};

}  // namespace wavejit::cache_append
