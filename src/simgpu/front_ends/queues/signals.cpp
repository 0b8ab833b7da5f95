// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "simgpu/front_ends/queues/signals.h"

#include <atomic>

#include "simgpu/front_ends/queues/packets.h"
#include "simgpu/machine/allocations/memory.h"

namespace wavejit::simgpu::queues {

std::int64_t value_of(std::uint64_t signal) {
  return std::atomic_ref(host_pointer<Signal>(signal)->value).load(std::memory_order_acquire);
}

void set_value(std::uint64_t signal, std::int64_t value) {
  std::atomic_ref(host_pointer<Signal>(signal)->value).store(value, std::memory_order_release);
}

bool meets(std::int64_t value, Condition condition, std::int64_t wanted) {
  switch (condition) {
    case Condition::equal:
      return value == wanted;
    case Condition::not_equal:
      return value != wanted;
    case Condition::less:
      return value < wanted;
    case Condition::greater_or_equal:
      return value >= wanted;
  }
  return false;
}

void complete(std::uint64_t signal, std::uint64_t start, std::uint64_t end, RaiseEvent raise) {
  if (signal == 0) return;
  auto* const fields = host_pointer<Signal>(signal);
  // Whoever sees the value may free the signal at once: everything else is read and written before.
  const std::uint32_t event_id = fields->event_id;
  const std::uint64_t mailbox = fields->event_mailbox;
  fields->start = start;
  fields->end = end;
  std::atomic_ref(fields->value).fetch_sub(1, std::memory_order_acq_rel);
  if (mailbox != 0) std::atomic_ref(*host_pointer<std::uint64_t>(mailbox)).store(event_id, std::memory_order_release);
  if (event_id != 0 && raise != nullptr) raise(event_id);
}

}  // namespace wavejit::simgpu::queues
