// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "simgpu/thunk/events.h"

#include <algorithm>

#include "simgpu/device/memory.h"

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
  if (event == nullptr || events_.erase(event->id) == 0) return false;
  changed_.notify_all();
  return true;
}

bool Events::set(std::uint32_t id) {
  const std::scoped_lock lock(mutex_);
  const auto found = events_.find(id);
  if (found == events_.end()) return false;
  found->second->is_set = true;
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
bool Events::take(std::span<Event* const> events, bool all) {
  const auto is_set = [&](const Event* event) {
    const auto found = event == nullptr ? events_.end() : events_.find(event->id);
    return found != events_.end() && found->second->is_set;
  };
  if (!(all ? std::ranges::all_of(events, is_set) : std::ranges::any_of(events, is_set))) return false;
  for (const Event* event : events) {
    if (!is_set(event)) continue;
    State& state = *events_.at(event->id);
    if (!state.manual_reset) state.is_set = false;
  }
  return true;
}

KmtStatus Events::wait(std::span<Event* const> events, bool all, std::uint32_t milliseconds) {
  std::unique_lock lock(mutex_);
  constexpr std::uint32_t for_ever = 0xffff'ffff;
  if (milliseconds == for_ever) {
    changed_.wait(lock, [&] { return take(events, all); });
    return KmtStatus::success;
  }
  const bool done = changed_.wait_for(lock, std::chrono::milliseconds(milliseconds), [&] { return take(events, all); });
  return done ? KmtStatus::success : KmtStatus::wait_timeout;
}

}  // namespace wavejit::simgpu::thunk
