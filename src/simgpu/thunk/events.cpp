// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "simgpu/thunk/events.h"

#include <algorithm>

namespace wavejit::simgpu::thunk {

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
  Event* const event = &state->event;
  events_[event->id] = std::move(state);
  return event;
}

bool Events::destroy(const Event* event) {
  const std::scoped_lock lock(mutex_);
  if (event == nullptr || events_.erase(event->id) == 0) return false;
  changed_.notify_all();
  return true;
}

bool Events::set(std::uint32_t id) {
  const std::scoped_lock lock(mutex_);
  const auto found = events_.find(id);
  if (found == events_.end()) return false;
  found->second->is_set = true;
  ++found->second->age;
  changed_.notify_all();
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
  constexpr std::uint32_t for_ever = 0xffff'ffff;
  const auto is_over = [&] { return take(events, all, ages); };
  if (milliseconds == for_ever) {
    changed_.wait(lock, is_over);
    return KmtStatus::success;
  }
  const bool done = changed_.wait_for(lock, std::chrono::milliseconds(milliseconds), is_over);
  return done ? KmtStatus::success : KmtStatus::wait_timeout;
}

}  // namespace wavejit::simgpu::thunk
