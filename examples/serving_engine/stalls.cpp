// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "stalls.h"

#include <algorithm>
#include <utility>

namespace serving {

void StallLedger::phase(Phase phase) {
  const std::scoped_lock lock(mutex_);
  phase_ = phase;
}

void StallLedger::add(Cause cause, std::uint64_t nanoseconds) {
  if (nanoseconds == 0) return;
  const std::scoped_lock lock(mutex_);
  Stall& stall = table_.at(phase_, cause);
  ++stall.count;
  stall.nanoseconds += nanoseconds;
  stall.longest = std::max(stall.longest, nanoseconds);
}

StallTable StallLedger::table() const {
  const std::scoped_lock lock(mutex_);
  return table_;
}

bool StallLedger::waited_for_a_process() {
  wavejit_statistics statistics{};
  statistics.size = sizeof statistics;
  if (wavejit_engine_statistics(engine_, &statistics) != WAVEJIT_OK) return false;
  const std::scoped_lock lock(mutex_);
  return std::exchange(lock_waits_, statistics.lock_waits) != statistics.lock_waits;
}

void StallLedger::on_compile(void* ledger, const wavejit_compile_event* event) noexcept {
  auto& self = *static_cast<StallLedger*>(ledger);
  self.add(self.waited_for_a_process() ? Cause::other_process : Cause::disk, event->lookup_ns);
  self.add(Cause::compile, event->emit_ns + event->lower_ns + event->link_ns + event->inspect_ns + event->publish_ns);
  self.add(Cause::load, event->load_ns);
}

}  // namespace serving
