// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a wave really does: the path that it takes and the LDS addresses of its lanes, taken down while the simulated
// GPU runs the kernel.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "simgpu/machine/launch/observer.h"
#include "timing/timing.h"

namespace wavejit::analysis {

// What one LDS instruction did, over all waves and visits.
struct LdsUse {
  std::string name;  // as lds_access_name() says
  int visits = 0;
  int phases = 0;
  int extra = 0;  // turns lost to bank conflicts
};

// For a launch of one workgroup: its waves share a host thread, so nothing is locked.
class Recorder : public simgpu::Observer {
 public:
  explicit Recorder(const timing::Timing& timing) : timing_(timing) {}
  void before(const simgpu::Wave& wave, const simgpu::Instruction& instruction) override;

  // By wave: the offsets of the instructions that it ran, in order.
  const std::map<unsigned, std::vector<std::uint32_t>>& paths() const { return paths_; }
  // By offset of the instruction.
  const std::map<std::uint32_t, LdsUse>& lds() const { return lds_; }
  // Accesses that the table of timing has no rule for.
  const std::set<std::string>& unknown() const { return unknown_; }

 private:
  const timing::Timing& timing_;
  std::map<unsigned, std::vector<std::uint32_t>> paths_;
  std::map<std::uint32_t, LdsUse> lds_;
  std::set<std::string> unknown_;
};

}  // namespace wavejit::analysis
