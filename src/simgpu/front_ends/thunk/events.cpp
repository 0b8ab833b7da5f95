// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "simgpu/front_ends/thunk/events.h"

#include <algorithm>

#include "simgpu/machine/allocations/memory.h"

namespace wavejit::simgpu::thunk {
namespace {

// Where GPUs write the number of an event before they raise it. Nobody reads it, but where there is none ROCr leaves
// out what makes copy engines raise events.
std::uint64_t mailbox() {
  static void* const place = DeviceMemory::instance().allocate(sizeof(std::uint64_t), MemoryKind::internal, 0);
  return reinterpret_cast<std::uint64_t>(place);
}

}  // namespace

Events& Events::instance() {
  // Never destroyed: threads of ROCr wait until the process ends.
  static auto* const events = new Events();
  return *events;
}

Event* Events::create(const EventDescriptor& descriptor, bool manual_reset, bool is_set) {
  const std::scoped_lock lock(mutex_);
  auto state = std::make_unique<State>();
  state->manual_reset = manual_reset;
  state->is_set = is_set;
  state->event.id = next_++;
  state->event.type = descriptor.type;
  state->event.mailbox = mailbox();
  Event* const event = &state->event;
  events_[event->id] = std::move(state);
  return event;
}

bool Events::destroy(const Event* event) {
  const std::scoped_lock lock(mutex_);
  if (event == nullptr || !events_.contains(event->id)) return false;
  wake(event);
  events_.erase(event->id);
  return true;
}

// Called with the lock.
void Events::wake(const Event* event) {
  for (Waiter* waiter : waiters_) {
    if (std::ranges::contains(waiter->events, event)) waiter->changed.notify_one();
  }
}

bool Events::set(std::uint32_t id) {
  const std::scoped_lock lock(mutex_);
  const auto found = events_.find(id);
  if (found == events_.end()) return false;
  found->second->is_set = true;
  ++found->second->age;
  wake(&found->second->event);
  return true;
}

bool Events::reset(std::uint32_t id) {
  const std::scoped_lock lock(mutex_);
  const auto found = events_.find(id);
  if (found == events_.end()) return false;
  found->second->is_set = false;
  return true;
}

// Whether the wait is over; events that reset themselves are taken then. Called with the lock.
bool Events::take(std::span<Event* const> events, bool all, std::uint64_t* ages) {
  std::size_t over = 0;
  for (std::size_t i = 0; i < events.size(); ++i) {
    const auto found = events[i] == nullptr ? events_.end() : events_.find(events[i]->id);
    if (found == events_.end()) continue;
    const State& state = *found->second;
    over += state.is_set || (ages != nullptr && ages[i] != 0 && ages[i] != state.age) ? 1 : 0;
  }
  if (all ? over != events.size() : over == 0) return false;
  for (std::size_t i = 0; i < events.size(); ++i) {
    const auto found = events[i] == nullptr ? events_.end() : events_.find(events[i]->id);
    if (found == events_.end()) continue;
    State& state = *found->second;
    if (!state.manual_reset) state.is_set = false;
    if (ages != nullptr && ages[i] != 0) ages[i] = state.age;
  }
  return true;
}

KmtStatus Events::wait(std::span<Event* const> events, bool all, std::uint32_t milliseconds, std::uint64_t* ages) {
  std::unique_lock lock(mutex_);
  if (take(events, all, ages)) return KmtStatus::success;
  Waiter waiter{.events = events, .changed = {}};
  const auto place = waiters_.insert(waiters_.end(), &waiter);
  const auto is_over = [&] { return take(events, all, ages); };
  constexpr std::uint32_t for_ever = 0xffff'ffff;
  bool done = true;
  if (milliseconds == for_ever) {
    waiter.changed.wait(lock, is_over);
  } else {
    done = waiter.changed.wait_for(lock, std::chrono::milliseconds(milliseconds), is_over);
  }
  waiters_.erase(place);
  return done ? KmtStatus::success : KmtStatus::wait_timeout;
}

}  // namespace wavejit::simgpu::thunk
