// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "simgpu/checkers/checks/pace.h"

#include <algorithm>

#include "isa/matrix.h"
#include "simgpu/checkers/facts/hazard_rules.h"
#include "simgpu/checkers/facts/kind.h"
#include "targets/targets.h"

namespace wavejit::simgpu::checks {
namespace {

std::uint64_t cycles(const timing::Figure& figure) { return static_cast<std::uint64_t>(figure.cycles()); }
unsigned simd_of(const Wave& wave) { return wave.index % 4U; }

bool is_on_port(IssueKind kind) {
  return kind <= IssueKind::multiply;  // the vector ALU's, matrix instructions first
}

}  // namespace

void Pace::prepare(const targets::Target& target, std::span<Wave* const> waves) {
  pipe_ = &isa::matrix_pipe(target);
  timing_ = timing::find_timing(target);
  times_.assign(waves.size(), 0);
  port_free_.fill(0);
  pipe_free_.fill(0);
}

// When its next instruction issues: a matrix instruction waits for the pipe, other vector ones for the port alone.
std::uint64_t Pace::starts_at(const Wave& wave) const {
  const IssueKind kind = clock::kind_of(*wave.next);
  std::uint64_t time = times_[wave.index];
  if (is_on_port(kind)) time = std::max(time, port_free_[simd_of(wave)]);
  if (kind == IssueKind::matrix) time = std::max(time, pipe_free_[simd_of(wave)]);
  return time;
}

std::size_t Pace::next(std::span<Wave* const> ready) const {
  std::size_t best = 0;
  std::uint64_t earliest = starts_at(*ready[0]);
  for (std::size_t i = 1; i < ready.size(); ++i) {
    const std::uint64_t time = starts_at(*ready[i]);
    const bool goes_before = ready[i]->priority > ready[best]->priority ||
                             (ready[i]->priority == ready[best]->priority && ready[i]->index < ready[best]->index);
    if (time > earliest || (time == earliest && !goes_before)) continue;
    best = i;
    earliest = time;
  }
  return best;
}

std::uint64_t Pace::issue(const Wave& wave, const Instruction& instruction) {
  std::uint64_t& time = times_[wave.index];
  const IssueKind kind = clock::kind_of(instruction);
  const timing::WaveRules& rules = timing_->wave;
  const unsigned simd = simd_of(wave);
  if (is_on_port(kind)) {
    time = std::max(time, port_free_[simd]);
    if (kind == IssueKind::matrix) time = std::max(time, pipe_free_[simd]);
    const auto port = static_cast<std::uint64_t>(clock::port_cycles(kind, instruction, timing_->issue));
    if (kind == IssueKind::matrix) pipe_free_[simd] = time + (matrix_passes(instruction, *pipe_) * cycles(rules.pass));
    port_free_[simd] = time + port;
    time += std::max<std::uint64_t>(port, 1);
    return time;
  }
  switch (kind) {
    case IssueKind::lds_read:
    case IssueKind::lds_write:
    case IssueKind::lds_lanes:
      time += cycles(rules.lds_issue);
      return time + cycles(timing_->lds_unit.latency);
    case IssueKind::lds_dma:
    case IssueKind::load:
    case IssueKind::store:
      time += cycles(rules.memory_issue);
      return time + cycles(timing_->memory.l2_latency);
    case IssueKind::scalar_load:
      time += cycles(rules.look);
      return time + cycles(timing_->memory.scalar_latency);
    case IssueKind::branch:
      time += cycles(rules.taken_branch);
      return time;
    default: {
      const Action action = instruction.record->action;
      const std::uint64_t states = (instruction.immediate & 0xf) + 1;
      time += action == Action::nop ? states * cycles(rules.nop) : cycles(rules.look);
      if (action == Action::sleep) time += (instruction.immediate & 0x7f) * cycles(rules.sleep);
      return time;
    }
  }
}

void Pace::wait_until(const Wave& wave, std::uint64_t time) { times_[wave.index] = std::max(times_[wave.index], time); }

void Pace::barrier(std::span<Wave* const> waves) {
  std::uint64_t last = 0;
  for (const Wave* wave : waves) {
    if (wave->state == WaveState::at_barrier) last = std::max(last, times_[wave->index]);
  }
  for (const Wave* wave : waves) {
    if (wave->state == WaveState::at_barrier) times_[wave->index] = last + cycles(timing_->wave.barrier_release);
  }
}

}  // namespace wavejit::simgpu::checks
