// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "simgpu/checkers/clock/lds_unit.h"

#include <algorithm>

namespace wavejit::simgpu::clock {

LdsUnit::LdsUnit(const timing::LdsRules& rules, std::size_t simds)
    : ports_(static_cast<std::size_t>(rules.ports.cycles())),
      simds_(simds),
      depth_(static_cast<std::size_t>(rules.queue.cycles())) {}

void LdsUnit::issue(std::size_t port, const LdsRequest& request) {
  ports_[port].queue.push_back(request);
  ++waiting_;
}

void LdsUnit::serve(double now) {
  while (waiting_ != 0) {
    // The port that can begin first, among those that can; in turns when both can.
    Port* chosen = nullptr;
    double begin = 0;
    for (std::size_t i = 1; i <= ports_.size(); ++i) {
      Port& port = ports_[(last_port_ + i) % ports_.size()];
      if (port.queue.empty()) continue;
      const double start = std::max({port.free, banks_free_, port.queue.front().at});
      if (start > now || (chosen != nullptr && start >= begin)) continue;
      chosen = &port;
      begin = start;
    }
    if (chosen == nullptr) return;
    const LdsRequest request = chosen->queue.front();
    chosen->queue.pop_front();
    --waiting_;
    last_port_ = static_cast<std::size_t>(chosen - ports_.data());
    banks_free_ = begin + request.bank_cycles;
    chosen->free = begin + std::max(request.bank_cycles, request.port_cycles);
    busy_ += request.bank_cycles;
    request.ticket.finish(chosen->free + request.latency);
  }
}

}  // namespace wavejit::simgpu::clock
