// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Events: what ROCr's threads sleep on, and what signals raise.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>

#include "simgpu/thunk/abi.h"

namespace wavejit::simgpu::thunk {

// Thread-safe.
class Events {
 public:
  static Events& instance();

  Event* create(const EventDescriptor& descriptor, bool manual_reset, bool is_set);
  bool destroy(const Event* event);
  bool set(std::uint32_t id);
  bool reset(std::uint32_t id);
  // Waits for one of the events, or for all. `milliseconds` of all ones: for ever.
  KmtStatus wait(std::span<Event* const> events, bool all, std::uint32_t milliseconds);

 private:
  struct State {
    Event event;
    bool manual_reset = false;
    bool is_set = false;
  };
  bool take(std::span<Event* const> events, bool all);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::uint32_t, std::unique_ptr<State>> events_;
  std::uint32_t next_ = 1;
};

}  // namespace wavejit::simgpu::thunk
