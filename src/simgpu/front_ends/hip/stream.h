// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A stream: a queue and one worker thread that empties it in order. HIP's asynchrony is real here: a call that HIP lets
// return early returns early, and errors of kernels show up at the next call that looks.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "hip_abi/hip_abi.h"

namespace wavejit::simgpu::hip_front {

class DeviceContext;

class Stream {
 public:
  // Counts what was submitted; work is done when the counter of finished work has reached its ticket.
  using Ticket = std::uint64_t;

  // Work that must be done before: the stream it was given to, and its ticket there.
  struct Dependency {
    std::shared_ptr<Stream> stream;
    Ticket ticket;
  };

  enum class AfterError : std::uint8_t { skip, run };

  Stream(DeviceContext& context, unsigned flags, int priority);
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  Ticket submit(std::function<void()> work, std::vector<Dependency> dependencies, AfterError after_error);
  void wait(Ticket ticket);
  bool done(Ticket ticket) const;
  Ticket last_ticket() const;
  void wait_all() { wait(last_ticket()); }
  // Takes no more work, does what was submitted, ends the worker.
  void close();
  // Forgets what has not begun; whoever waits for it is let go. For the end of the process; close() follows.
  void abandon();

  DeviceContext& context() const { return context_; }
  unsigned flags() const { return flags_; }
  int priority() const { return priority_; }
  std::uint64_t id() const { return id_; }
  // Waits for, and is waited for by, the null stream of its device.
  bool blocking() const { return (flags_ & hip_abi::hipStreamNonBlocking) == 0; }

 private:
  struct Work {
    std::function<void()> run;
    std::vector<Dependency> dependencies;
    AfterError after_error;
  };
  void run();

  DeviceContext& context_;
  unsigned flags_;
  int priority_;
  std::uint64_t id_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Work> queue_;
  Ticket submitted_ = 0;
  Ticket finished_ = 0;
  bool closing_ = false;
  bool abandoned_ = false;
  std::thread worker_;
};

}  // namespace wavejit::simgpu::hip_front
