// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// LDS of a compute unit: a queue and a port for each group of SIMDs, and one set of banks.
//
// A port serves its queue in order. An access holds the port for as long as its data takes to pass, and the banks for
// the turns that its addresses need.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "simgpu/checkers/clock/counter.h"
#include "timing/timing.h"

namespace wavejit::simgpu::clock {

struct LdsRequest {
  double at = 0;  // issued, or arrived from memory
  double bank_cycles = 0;
  double port_cycles = 0;
  double latency = 0;  // from the end of the service until it counts as done
  Ticket ticket;
};

class LdsUnit {
 public:
  LdsUnit(const timing::LdsRules& rules, std::size_t simds);

  std::size_t port_of(std::size_t simd) const { return simd * ports_.size() / simds_; }
  // Whether a wave has to wait until the port has taken something out of its queue.
  bool full(std::size_t port) const { return ports_[port].queue.size() >= depth_; }
  // DMA that arrives from memory is never turned away.
  void issue(std::size_t port, const LdsRequest& request);
  // Begins what can begin up to `now`; called every cycle.
  void serve(double now);
  std::uint64_t busy() const { return static_cast<std::uint64_t>(busy_); }  // cycles of the banks

 private:
  struct Port {
    std::deque<LdsRequest> queue;
    double free = 0;
  };

  std::vector<Port> ports_;
  std::size_t simds_;
  std::size_t depth_;
  std::size_t waiting_ = 0;
  std::size_t last_port_ = 0;
  double banks_free_ = 0;
  double busy_ = 0;
};

}  // namespace wavejit::simgpu::clock
