// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A checked call of attention_forward as the engine sees it: its kernels, their launches, its workspace, its lines.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "families/call/family.h"
#include "templates/attention/call/split_call.h"
#include "templates/attention_forward/call/checks.h"
#include "templates/attention_forward/call/problem.h"
#include "templates/attention_forward/call/splits.h"
#include "templates/attention_forward/call/walks/bool_mask.h"
#include "templates/attention_forward/kernel/arrival_arguments.h"
#include "templates/attention_forward/kernel/combine/arguments.h"
#include "templates/attention_forward/kernel/flag_arguments.h"
#include "templates/attention_forward/kernel/integer_arguments.h"
#include "templates/attention_forward/kernel/key_list_arguments.h"
#include "templates/attention_forward/kernel/output_scale_arguments.h"
#include "templates/attention_forward/kernel/query_scale_arguments.h"
#include "templates/attention_forward/kernel/row_limits.h"
#include "templates/attention_forward/kernel/token_scale_arguments.h"
#include "templates/attention_forward/kernel/walks/block_lists/arguments.h"
#include "templates/attention_forward/kernel/walks/list_arguments.h"
#include "templates/attention_forward/kernel/walks/mask_lists/arguments.h"

namespace wavejit::attention_forward {

const families::Family& family();

// The target and the toggles must outlive it, too.
class AttentionCall final : public attention::SplitCall<wavejit_attention_forward_arguments, CallPlan> {
 public:
  AttentionCall(const wavejit_attention_forward_arguments& call, const CallPlan& plan, const boards::Board& target,
                const families::Toggles& toggles)
      : SplitCall(family(), call, plan), target_(target), toggles_(toggles) {}

  Result<void> plan(Kernels kernels, const void* memory, families::LaunchPlan& plan) override;
  std::string descriptor(Line line) const override;
  families::WorkspaceWords workspace_words() const override;

 private:
  CallPlan plan_anew(const AttentionProblem& problem) const override {
    return plan_call(problem, target_, toggles_, attention::reach_of(call_.split));
  }
  Result<void> plan_mixed(Kernels kernels, const void* memory, families::LaunchPlan& plan);
  // Behind what all kernels read: walks of lists, or the flags of sequences. No kernel has both.
  struct WalkArguments {
    LimitedArguments all;
    union {
      ListArguments lists{};
      std::uint64_t causal_flags;
    };
  };
  // What a merging kernel reads: counters, and behind them the flags of sequences.
  struct MergingArguments {
    ArrivalArguments all;
    alignas(8) std::array<std::byte, causal_flags_at - sizeof(ArrivalArguments)> nothing{};
    std::uint64_t causal_flags = 0;
  };
  static_assert(offsetof(MergingArguments, causal_flags) == causal_flags_at);

  // What all kernels read alike, and what the walk of a kernel over so many runs has beside it.
  void fill(WalkArguments& arguments) const;
  void set_runs(const ForwardKernel& spec, std::uint32_t runs, const void* memory, Arguments& all) const;
  void plan_combine(Kernels kernels, const Arguments& split, std::uint32_t batch, std::uint32_t rows,
                    families::LaunchPlan& plan);
  Result<void> plan_key_lists(Kernels kernels, const void* memory, families::LaunchPlan& plan);
  families::Launch with_counters(const families::Launch& launch);
  void fill_second(std::uint64_t first_query);
  // The scales of a cache, and behind them what one kind of kernel has: distances of dims or tokens, distances of dims
  // and the scales of integers, or the scale of Q. Behind all of it: the scale of O.
  struct KeptArguments {
    CacheArguments cached;
    alignas(8) std::array<std::byte, std::max(sizeof(BehindOfIntegers), sizeof(attention::CacheScale))> behind{};
    attention::OutputScale output;
  };
  static_assert(offsetof(KeptArguments, output) == output_scale_at);
  static_assert(offsetof(KeptArguments, behind) == dim_strides_at && dim_strides_at == query_scale_at &&
                dim_strides_at == token_strides_at);
  // The launch of a kernel that walks keys, with further arguments behind the `known` bytes of those of `launch`: the
  // scales of a cache of 8 bits, the strides of dims that are not contiguous, the scale of O.
  families::Launch with_scales(const ForwardKernel& spec, const families::Launch& launch, std::size_t known,
                               std::optional<KeptArguments>& kept) const;
  // The address of the first of this round's sequences' flags.
  std::uint64_t causal_flags() const {
    return reinterpret_cast<std::uintptr_t>(call_.mask.causal_flags) + first_sequence();
  }
  std::uint32_t rows_of_grid(const ForwardKernel& spec) const;
  void plan_mask_of_few_rows(const void* memory, families::LaunchPlan& plan);
  void plan_look(const MaskPlan& mask, std::size_t kernel, families::LaunchPlan& plan);
  void plan_lists(const ForwardKernel& spec, const void* memory, families::LaunchPlan& plan);

  const boards::Board& target_;
  const families::Toggles& toggles_;
  // What launches point to.
  WalkArguments arguments_;
  std::optional<WalkArguments> few_;           // of the kernel of few rows
  std::optional<MergingArguments> merging_;    // of parts that are merged where they are left
  std::optional<KeyListedArguments> listed_;   // of listed keys
  std::optional<KeyListedArguments> second_;   // of a second list
  std::optional<KeptArguments> cached_;        // of a cache or an O of 8 bits, of scattered elements, of integers
  std::optional<KeptArguments> other_cached_;  // of few rows, or of a second list
  attention_combine::Arguments combine_;
  std::optional<attention_combine::OutputScaleArguments> scaled_combine_;  // to an O of 8 bits
  attention_block_lists::Arguments lists_;
  std::optional<attention_mask_lists::Arguments> look_;  // of a bool mask
};

}  // namespace wavejit::attention_forward
