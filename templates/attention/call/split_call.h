// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A checked call whose keys may be split, as the engine sees it: what its plan chose, and how it is planned anew where a
// capture or missing kernels ask for another way to launch it (families::Call::Way).
//
// The family has `arrivals_of(problem, splits)`, `check_workspace_of(call, problem, bytes)` and
// `check_device_lengths(memory, problem, call)`.
#pragma once

#include <cstdint>

#include "families/call/call_of.h"
#include "families/call/family.h"
#include "templates/attention/call/flags.h"
#include "templates/attention/call/split_plan.h"

namespace wavejit::attention {

// A checked call with all that its launches hang on. `Problem` has `splits` and `launches`, `Splits` is a SplitPlan.
template <typename Problem, typename Splits>
struct CallPlanOf {
  Problem problem;
  Splits splits;
  std::uint64_t code = 0;  // of the shape with its splits
  bool operator==(const CallPlanOf&) const = default;
};

// On the caller's stack. The arguments must outlive it; the plan is its own.
template <typename Arguments, typename Plan>
class SplitCall : public families::Call {
 public:
  SplitCall(const SplitCall&) = delete;
  SplitCall& operator=(const SplitCall&) = delete;

  [[gnu::cold, gnu::noinline]] void take(Way way) override {
    this->way = way;
    auto problem = problem_;
    problem.splits = way == Way::whole ? 1 : static_cast<std::uint32_t>(call_.split.splits);
    problem.launches = way == Way::two_launches ? Launches::two : launches_of(call_.head.flags);
    plan_ = plan_anew(problem);
    adopt_plan();
  }
  families::Result<void> check_workspace() const final { return check_workspace_of(call_, problem_, workspace_bytes); }
  families::Result<void> judge(families::DeviceMemory& memory) const final {
    return check_device_lengths(memory, problem_, call_);
  }
  families::WorkspaceWords workspace_words() const override { return words_of_parts(splits_); }
  WhenMissing when_missing() const override { return families::when_missing(call_.head.flags); }

 protected:
  using Problem = decltype(Plan::problem);
  using Splits = decltype(Plan::splits);

  SplitCall(const families::Family& family, const Arguments& call, const Plan& plan)
      : Call({.family = &family, .code = plan.code}), call_(call), plan_(plan) {
    workspace = call.split.workspace;
    report = call.head.report;
    judges_device_memory = (call.head.flags & WAVEJIT_CHECK_LENGTHS) != 0;
    if (plan.splits.workspace_bytes != 0) [[unlikely]]
      adopt_plan();
  }
  ~SplitCall() = default;

  virtual Plan plan_anew(const Problem& problem) const = 0;

  std::uint32_t first_sequence() const { return splits_.first_of(round); }
  std::uint32_t sequences() const { return splits_.sequences_of(round, problem_.batch); }  // of this round

  const Arguments& call_;
  Plan plan_;
  const Problem& problem_ = plan_.problem;
  const Splits& splits_ = plan_.splits;

 private:
  void adopt_plan() {
    shape_.code = plan_.code;
    workspace_bytes = splits_.workspace_bytes;
    rounds = splits_.rounds(problem_.batch);
    arrivals = arrivals_of(problem_, splits_);
    may_go_whole = splits_.may_go_whole();
    chose_to_split = splits_.reason == SplitPlan::Reason::fills_device;
    chose_one_launch = splits_.merged && problem_.launches == Launches::planned;
  }
};

}  // namespace wavejit::attention
