// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "simgpu/checkers/clock/memory_unit.h"

#include <algorithm>

namespace wavejit::simgpu::clock {

double MemoryUnit::bytes_of(const MemoryRequest& load) const {
  const std::size_t lines = load.past_caches ? load.lines.size() : path_->missing(load.lines, load.instance, unit_);
  return static_cast<double>(lines) * rules_->line.value;
}

double MemoryUnit::room_for(double bytes, double from) {
  while (!on_their_way_.empty()) {
    const OnItsWay first = on_their_way_.top();
    const bool has_arrived = first.until <= from;
    if (!has_arrived && bytes_on_their_way_ + bytes <= rules_->in_flight.value) break;
    on_their_way_.pop();
    bytes_on_their_way_ -= first.bytes;
    from = std::max(from, first.until);
  }
  return from;
}

void MemoryUnit::begin(const MemoryRequest& request, double start) {
  address_free_ = start + request.turns;
  address_busy_ += request.turns;
  if (request.acquires) {
    address_free_ = std::max(address_free_, path_->acquire(start));
    return;
  }
  if (request.releases) {
    request.ticket.finish(path_->release(start));
    return;
  }
  if (request.atomic) {
    request.ticket.finish(path_->atomic(start, request.lines));
    return;
  }
  if (request.store) {
    request.ticket.finish(request.past_caches ? path_->coherent_store(start, request.lines)
                                              : path_->store(start, request.lines, request.instance));
    return;
  }
  const double bytes = bytes_of(request);
  const double there = request.past_caches ? path_->coherent_load(start, request.lines, unit_, request.part)
                                           : path_->load(start, request.lines, request.instance, unit_, request.part);
  on_their_way_.push({.until = there, .bytes = bytes});
  bytes_on_their_way_ += bytes;
  if (request.lds_cycles == 0) {
    request.ticket.finish(there);
    return;
  }
  arrivals_.push({.at = there,
                  .number = arrival_number_++,
                  .lds_cycles = request.lds_cycles,
                  .lds_port = request.lds_port,
                  .ticket = request.ticket});
}

void MemoryUnit::serve(double now, LdsUnit& lds) {
  for (; !arrivals_.empty() && arrivals_.top().at <= now; arrivals_.pop()) {
    const Arrival& arrival = arrivals_.top();
    lds.issue(arrival.lds_port, {.at = arrival.at, .bank_cycles = arrival.lds_cycles, .ticket = arrival.ticket});
  }
  while (!queue_.empty()) {
    const MemoryRequest& request = queue_.front();
    double start = std::max(address_free_, request.at);
    if (start > now) return;
    if (!request.store && !request.atomic) {
      start = room_for(bytes_of(request), start);
      // What it waited for is forgotten; it begins at a later call.
      if (start > now) {
        address_free_ = start;
        return;
      }
    }
    begin(request, start);
    queue_.pop_front();
  }
}

}  // namespace wavejit::simgpu::clock
