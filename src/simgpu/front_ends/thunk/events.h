// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Events: what ROCr's threads sleep on, and what signals raise.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <span>

#include "simgpu/front_ends/thunk/abi.h"

namespace wavejit::simgpu::thunk {

// Thread-safe.
class Events {
 public:
  static Events& instance();

  Event* create(const EventDescriptor& descriptor, bool manual_reset, bool is_set);
  bool destroy(const Event* event);
  bool set(std::uint32_t id);
  bool reset(std::uint32_t id);
  // Waits for one of the events, or for all. `milliseconds` of all ones: for ever. `ages`: null, or for each event how
  // old it was when the caller looked last, at first 1. An event ages whenever it is set: one that is older than that
  // is over for this caller, whoever else was woken by it. Ages of now are written back.
  KmtStatus wait(std::span<Event* const> events, bool all, std::uint32_t milliseconds, std::uint64_t* ages = nullptr);

 private:
  struct State {
    Event event;
    bool manual_reset = false;
    bool is_set = false;
    std::uint64_t age = 1;
  };
  struct Waiter {
    std::span<Event* const> events;
    std::condition_variable changed;
  };
  bool take(std::span<Event* const> events, bool all, std::uint64_t* ages);
  void wake(const Event* event);

  std::mutex mutex_;
  std::list<Waiter*> waiters_;  // who waits for an event is woken by it, and nobody else
  std::map<std::uint32_t, std::unique_ptr<State>> events_;
  std::uint32_t next_ = 1;
};

}  // namespace wavejit::simgpu::thunk
