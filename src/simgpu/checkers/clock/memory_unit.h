// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Vector memory of a compute unit up to its L1: a queue, an address unit that takes a few lanes at a time, and a limit
// on what is on its way. What lies behind is the memory path's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <queue>
#include <span>
#include <vector>

#include "simgpu/checkers/clock/counter.h"
#include "simgpu/checkers/clock/lds_unit.h"
#include "simgpu/checkers/clock/memory_path.h"
#include "timing/timing.h"

namespace wavejit::simgpu::clock {

struct MemoryRequest {
  double at = 0;
  double turns = 0;  // of the address unit
  std::span<const std::uint64_t> lines;
  double part = 1;             // of those lines, that L1 passes on
  std::uint64_t instance = 0;  // tells workgroups apart that replay one trace
  bool store = false;
  bool atomic = false;
  bool past_caches = false;  // of agent scope
  bool releases = false;     // buffer_wbl2
  bool acquires = false;     // buffer_inv, which no counter counts
  Ticket ticket;
  // LDS DMA: cycles that its data keeps the banks busy, and the port that it passes. 0: data goes to registers.
  double lds_cycles = 0;
  std::size_t lds_port = 0;
};

class MemoryUnit {
 public:
  // `unit`: which of those that share the path.
  MemoryUnit(const timing::MemoryRules& rules, MemoryPath& path, std::size_t unit)
      : rules_(&rules), path_(&path), unit_(unit) {}

  // Whether a wave has to wait until the address unit has taken something out of the queue.
  bool full() const { return queue_.size() >= static_cast<std::size_t>(rules_->queue.cycles()); }
  void issue(const MemoryRequest& request) { queue_.push_back(request); }
  // Begins what can begin up to `now`, and hands DMA that has arrived to `lds`; called every cycle.
  void serve(double now, LdsUnit& lds);
  std::uint64_t address_busy() const { return static_cast<std::uint64_t>(address_busy_); }

 private:
  struct Arrival {
    double at = 0;
    std::uint64_t number = 0;
    double lds_cycles = 0;
    std::size_t lds_port = 0;
    Ticket ticket;
    bool operator>(const Arrival& other) const { return at > other.at || (at == other.at && number > other.number); }
  };
  struct OnItsWay {
    double until = 0;
    double bytes = 0;
    bool operator>(const OnItsWay& other) const { return until > other.until; }
  };
  template <typename Entry>
  using EarliestFirst = std::priority_queue<Entry, std::vector<Entry>, std::greater<>>;

  // Bytes of the lines that a load asks for. One that waits for a line on its way asks for nothing.
  double bytes_of(const MemoryRequest& load) const;
  // The time from which `bytes` more bytes can be requested.
  double room_for(double bytes, double from);
  void begin(const MemoryRequest& request, double start);

  const timing::MemoryRules* rules_;
  MemoryPath* path_;
  std::size_t unit_;
  std::deque<MemoryRequest> queue_;
  double address_free_ = 0;
  double address_busy_ = 0;
  EarliestFirst<OnItsWay> on_their_way_;
  double bytes_on_their_way_ = 0;
  EarliestFirst<Arrival> arrivals_;
  std::uint64_t arrival_number_ = 0;
};

}  // namespace wavejit::simgpu::clock
