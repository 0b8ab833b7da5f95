// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "simgpu/checkers/checks/swap_loops.h"

#include <algorithm>
#include <utility>

#include "simgpu/machine/launch/launch.h"

namespace wavejit::simgpu::checks {
namespace {

bool is_plain_load(const Instruction& instruction) {
  const Record& record = *instruction.record;
  return record.loads && !record.stores && !record.to_lds && !instruction.lds && !instruction.sc0 && !instruction.sc1;
}

}  // namespace

const Instruction* SwapLoops::load_of(const Instruction& instruction, const Instruction* other) const {
  if (!follows() || other == nullptr) return nullptr;
  if (other->record->atomic && is_plain_load(instruction)) return &instruction;
  return instruction.record->atomic && is_plain_load(*other) ? other : nullptr;
}

bool SwapLoops::wants(const Wave& wave, const Instruction& instruction, const Instruction* other) {
  const std::uint64_t workgroup = wave.workgroup->linear_id;
  const std::scoped_lock lock(mutex_);
  if (aside_.size() >= most_aside) return false;
  return std::ranges::none_of(aside_, [&](const Aside& known) {
    return known.finding.place == &instruction && known.finding.source == other &&
           known.finding.linear_workgroup <= workgroup;
  });
}

void SwapLoops::put_aside(const Instruction& load, Finding finding) {
  const std::scoped_lock lock(mutex_);
  aside_.push_back({.load = &load, .finding = std::move(finding)});
}

void SwapLoops::saw_swap_behind(const Instruction& load) {
  const std::scoped_lock lock(mutex_);
  loads_.insert(&load);
}

void SwapLoops::finish(Launch& launch) {
  const std::scoped_lock lock(mutex_);
  for (Aside& aside : aside_) {
    if (!loads_.contains(aside.load)) launch.add(std::move(aside.finding));
  }
  aside_.clear();
}

}  // namespace wavejit::simgpu::checks
