// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A server that does not answer is left alone for a while, and for longer each time. So no call waits twice for a
// server that is down, and one that comes back is not met by a whole fleet at once.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>

namespace wavejit::cache {

struct Pauses {
  // Guesses: a restart is over in seconds; an hour's outage costs a process sixty questions.
  std::int64_t first_nanoseconds = 1'000'000'000;
  std::int64_t longest_nanoseconds = 60'000'000'000;
};

// Safe from any thread. Times are monotonic nanoseconds.
class Breaker {
 public:
  explicit Breaker(const Pauses& pauses) : pauses_(pauses) {}

  // The right to ask, to be handed back with the outcome; none while there is a pause, nor after it until a probe has
  // succeeded.
  using Ticket = std::uint64_t;
  std::optional<Ticket> admit() const;
  // After a pause, to one at a time; without a pause the same as admit().
  std::optional<Ticket> probe(std::int64_t now);
  bool wants_probe(std::int64_t now) const;
  // Nanoseconds until wants_probe(); 0 without a pause.
  std::int64_t left(std::int64_t now) const;

  // True if this ended an outage.
  bool succeeded(Ticket ticket);
  // The length of the pause that this failure began; nothing if another failure of the same time had begun it. Each
  // pause may be twice as long as the last; `random_bits` choose between half of that and all of it.
  std::optional<std::int64_t> failed(Ticket ticket, std::int64_t now, std::uint64_t random_bits);

 private:
  const Pauses pauses_;
  mutable std::mutex mutex_;
  Ticket era_ = 1;  // a failure from before the last pause says nothing about now
  bool paused_ = false;
  bool probing_ = false;
  std::int64_t until_ = 0;
  std::int64_t next_pause_ = pauses_.first_nanoseconds;
};

}  // namespace wavejit::cache
