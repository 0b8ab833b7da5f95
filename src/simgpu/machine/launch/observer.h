// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// An observer sees each instruction while a launch runs.
#pragma once

#include <cstdint>
#include <optional>

namespace wavejit::simgpu {

struct Instruction;
struct Wave;

struct GuestTime {
  std::uint64_t cycles = 0;
  std::uint64_t ticks = 0;  // of clock_hz
};

// Sees every instruction just before a wave executes it: for analyses that want addresses or paths. Called from the
// threads that run workgroups, so an observer of several workgroups locks.
class Observer {
 public:
  virtual ~Observer() = default;
  // Whether it looks at this workgroup (linear id); the others run unobserved.
  virtual bool wants(std::uint64_t /*workgroup*/) const { return true; }
  virtual void before(const Wave& wave, const Instruction& instruction) = 0;
  // What clocks show that the wave reads now, by the instruction that was seen last; nothing: this one keeps no time.
  virtual std::optional<GuestTime> time(const Wave& /*wave*/) { return std::nullopt; }
};

}  // namespace wavejit::simgpu
