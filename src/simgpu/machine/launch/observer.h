// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// An observer sees each instruction while a launch runs.
#pragma once

#include <cstdint>

namespace wavejit::simgpu {

struct Instruction;
struct Wave;

// Sees every instruction just before a wave executes it: for analyses that want addresses or paths. Called from the
// threads that run workgroups, so an observer of several workgroups locks.
class Observer {
 public:
  virtual ~Observer() = default;
  // Whether it looks at this workgroup (linear id); the others run unobserved.
  virtual bool wants(std::uint64_t /*workgroup*/) const { return true; }
  virtual void before(const Wave& wave, const Instruction& instruction) = 0;
};

}  // namespace wavejit::simgpu
