// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Why there is no answer, and the two things that bound every wait: a deadline and an interruption.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <expected>
#include <string>
#include <utility>

#include "remote/remote_api.h"
#include "system/file_descriptor.h"

namespace wavejit::remote {

struct Failure {
  wavejit_remote_status status = WAVEJIT_REMOTE_FAULT;
  std::string what;
  bool closed = false;  // the other end closed the connection before it answered anything
};

template <typename T>
using Result = std::expected<T, Failure>;

inline std::unexpected<Failure> fault(std::string what) {
  return std::unexpected(Failure{.status = WAVEJIT_REMOTE_FAULT, .what = std::move(what)});
}
inline std::unexpected<Failure> damaged(std::string what) {
  return std::unexpected(Failure{.status = WAVEJIT_REMOTE_DAMAGED, .what = std::move(what)});
}

// "Connection refused (errno 111)"
std::string errno_text(int code);

using Clock = std::chrono::steady_clock;

struct Deadline {
  Clock::time_point at;
  std::chrono::milliseconds span;  // for the message
  static Deadline in(std::chrono::milliseconds span) { return {.at = Clock::now() + span, .span = span}; }
};

// Ends every wait of a store, for good.
class Interruption {
 public:
  Interruption();
  void set();
  bool is_set() const { return set_; }
  int descriptor() const { return event_.get(); }  // readable when it is set; negative if there was none to be had

 private:
  system::FileDescriptor event_;
  std::atomic<bool> set_{false};
};

// Whether there is time left and nobody interrupts. `doing` names the work in the message: "connecting to h:6379".
Result<void> in_time(const Deadline& deadline, const Interruption& interruption, const std::string& doing);
// Until `descriptor` is ready for `events` (poll's). Of a negative one: until the deadline.
Result<void> wait_for(int descriptor, short events, const Deadline& deadline, const Interruption& interruption,
                      const std::string& doing);

}  // namespace wavejit::remote
