// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Signals as the packet processor sees them: 64-bit values in memory that the host, kernels and other queues change.
#pragma once

#include <cstdint>

#include "simgpu/process/simulated_time.h"

namespace wavejit::simgpu::queues {

// The clock of a GPU: what packets are stamped with and what the runtime converts to host time.
using simgpu::clock_hz;
using simgpu::clock_now;

// How a barrier-value packet compares (hsa_signal_condition_t).
enum class Condition : std::uint8_t { equal = 0, not_equal = 1, less = 2, greater_or_equal = 3 };

std::int64_t value_of(std::uint64_t signal);
void set_value(std::uint64_t signal, std::int64_t value);
bool meets(std::int64_t value, Condition condition, std::int64_t wanted);

// Whoever waits for a signal's event is told through this.
using RaiseEvent = void (*)(std::uint32_t event_id);

// Stamps a signal with the time that its packet took, subtracts one and raises its event. Signal 0 is nobody's.
void complete(std::uint64_t signal, std::uint64_t start, std::uint64_t end, RaiseEvent raise);

}  // namespace wavejit::simgpu::queues
