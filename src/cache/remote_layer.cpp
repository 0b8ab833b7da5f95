// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "cache/remote_layer.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <format>
#include <tuple>
#include <utility>

#include "system/blocked_signals.h"

namespace wavejit::cache {

namespace {

// Only memory running out can throw in a store; every ticket is handed back all the same.
template <typename Call>
auto answer_of(Call call) -> decltype(call()) {
  try {
    return call();
  } catch (const std::exception& error) {
    return std::unexpected(RemoteFailure{.problem = RemoteProblem::fault, .what = error.what()});
  }
}

}  // namespace

struct RemoteLayer::Shared {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Parcel> queue;
  std::size_t queued_bytes = 0;
  bool delivering = false;
  bool probe_wanted = false;
  bool ending = false;
  bool ended = false;
  bool interrupted = false;   // the end's time was up: what fails now says nothing about the server
  std::int64_t deadline = 0;  // monotonic; of the end
  std::jthread of_the_parent;
};

RemoteLayer::RemoteLayer(IoInterface& io, RemoteOptions options, Counters& counters, Tell tell)
    : io_(io),
      options_(std::move(options)),
      counters_(counters),
      tell_(std::move(tell)),
      process_(io.process_id()),
      reading_(options_.pauses),
      writing_(options_.pauses),
      shared_(std::make_unique<Shared>()) {}

RemoteLayer::~RemoteLayer() {
  if (elsewhere()) {
    // Locks may be held and waited for by threads that are not here, and the thread is none of this process's: nothing
    // of it can be ended, all of it stays behind.
    shared_->of_the_parent = std::move(thread_);
    std::ignore = shared_.release();
    return;
  }
  if (thread_.joinable()) {
    std::unique_lock lock(shared_->mutex);
    shared_->ending = true;
    shared_->deadline = io_.monotonic_nanoseconds() + options_.farewell_nanoseconds;
    shared_->changed.notify_all();
    shared_->changed.wait_for(lock, std::chrono::nanoseconds(options_.farewell_nanoseconds),
                              [&] { return shared_->ended; });
    shared_->interrupted = true;
    lock.unlock();
    options_.store->interrupt();
    thread_.join();
  }
  counters_.remote_dropped += shared_->queue.size();
}

bool RemoteLayer::elsewhere() const { return io_.process_id() != process_; }

bool RemoteLayer::interrupted() const {
  const std::scoped_lock lock(shared_->mutex);
  return shared_->interrupted;
}

// With the mutex held. False if there is no thread to be had.
bool RemoteLayer::wake() {
  if (!thread_.joinable()) {
    const system::BlockedSignals blocked;
    try {
      thread_ = std::jthread([this] { work(); });
    } catch (const std::exception&) {  // the next one tries again
      return false;
    }
  }
  shared_->changed.notify_all();
  return true;
}

bool RemoteLayer::fetch(const Digest& digest, const std::string& target_id, const Use& use) {
  ++counters_.remote_lookups;
  const auto ticket = elsewhere() ? std::nullopt : reading_.admit();
  if (!ticket) {
    ++counters_.remote_skipped;
    if (!elsewhere() && reading_.wants_probe(io_.monotonic_nanoseconds())) {
      const std::scoped_lock lock(shared_->mutex);
      shared_->probe_wanted = true;
      wake();
    }
    return false;
  }
  auto entry = answer_of([&] { return options_.store->fetch(digest, target_id); });
  RemoteFailure failure{.problem = RemoteProblem::damaged, .what = {}};
  if (entry) {
    std::optional<std::string> problem;
    try {
      problem = use(*std::move(entry));
    } catch (const std::exception& error) {
      problem = error.what();
    }
    if (!problem) {
      ++counters_.remote_hits;
      note_success(reading_, *ticket);
      return true;
    }
    failure.what = digest.hex() + ": " + *problem;
  } else {
    failure = std::move(entry.error());
  }
  switch (failure.problem) {
    case RemoteProblem::absent:
      ++counters_.remote_misses;
      note_success(reading_, *ticket);
      return false;
    case RemoteProblem::damaged:
      ++counters_.remote_damaged;
      break;
    case RemoteProblem::fault:
      ++counters_.remote_faults;
      break;
  }
  note_failure(reading_, *ticket, failure, "kernels come from disk and the compiler");
  return false;
}

void RemoteLayer::keep_later(const Digest& digest, const std::string& target_id,
                             std::vector<std::byte> entry) noexcept {
  ++counters_.remote_publishes;
  if (elsewhere()) {
    ++counters_.remote_dropped;
    return;
  }
  const std::scoped_lock lock(shared_->mutex);
  const bool fits =
      shared_->queue.size() < options_.queue_entries && shared_->queued_bytes + entry.size() <= options_.queue_bytes;
  if (!fits || !wake()) {
    ++counters_.remote_dropped;
    return;
  }
  const std::size_t bytes = entry.size();
  try {
    shared_->queue.push_back({.digest = digest, .target_id = target_id, .entry = std::move(entry)});
    shared_->queued_bytes += bytes;
  } catch (const std::exception&) {  // out of memory
    ++counters_.remote_dropped;
  }
}

bool RemoteLayer::flush(std::int64_t nanoseconds) {
  if (elsewhere()) return false;
  std::unique_lock lock(shared_->mutex);
  const auto delivered = [&] { return shared_->queue.empty() && !shared_->delivering; };
  shared_->changed.wait_for(lock, std::chrono::nanoseconds(nanoseconds),
                            [&] { return delivered() || !writing_.admit(); });
  return delivered() && counters_.remote_publish_failures == 0 && counters_.remote_dropped == 0;
}

void RemoteLayer::work() {
  std::unique_lock lock(shared_->mutex);
  for (;;) {
    const std::int64_t now = io_.monotonic_nanoseconds();
    if (shared_->ending && (shared_->queue.empty() || now >= shared_->deadline)) break;
    if (shared_->probe_wanted) {
      shared_->probe_wanted = false;
      lock.unlock();
      probe();
      lock.lock();
      continue;
    }
    if (shared_->queue.empty()) {
      shared_->changed.wait(lock);
      continue;
    }
    if (const auto ticket = writing_.probe(now)) {
      const Parcel parcel = std::move(shared_->queue.front());
      shared_->queue.pop_front();
      shared_->queued_bytes -= parcel.entry.size();
      shared_->delivering = true;
      lock.unlock();
      deliver(parcel, *ticket);
      lock.lock();
      shared_->delivering = false;
      shared_->changed.notify_all();
      continue;
    }
    if (shared_->ending) break;  // a pause is not waited for at the end
    shared_->changed.wait_for(lock, std::chrono::nanoseconds(writing_.left(now)) + std::chrono::milliseconds(1));
  }
  shared_->ended = true;
  shared_->changed.notify_all();
}

void RemoteLayer::probe() {
  const auto ticket = reading_.probe(io_.monotonic_nanoseconds());
  if (!ticket) return;
  const auto answer = answer_of([&] { return options_.store->ask(); });
  if (answer) {
    note_success(reading_, *ticket);
  } else {
    note_failure(reading_, *ticket, answer.error(), "kernels come from disk and the compiler");
  }
}

void RemoteLayer::deliver(const Parcel& parcel, Breaker::Ticket ticket) {
  const auto kept = answer_of([&] { return options_.store->keep(parcel.digest, parcel.target_id, parcel.entry); });
  if (kept) {
    ++counters_.remote_published;
    note_success(writing_, ticket);
  } else {
    ++(interrupted() ? counters_.remote_dropped : counters_.remote_publish_failures);
    note_failure(writing_, ticket, kept.error(), "kernels compiled here stay here");
  }
}

void RemoteLayer::note_success(Breaker& breaker, Breaker::Ticket ticket) {
  if (breaker.succeeded(ticket)) tell_(RemoteNews::routine, "the remote layer " + options_.name + " answers again");
}

void RemoteLayer::note_failure(Breaker& breaker, Breaker::Ticket ticket, const RemoteFailure& failure,
                               std::string_view consequence) {
  const auto pause = breaker.failed(ticket, io_.monotonic_nanoseconds(), io_.random_bits());
  if (!pause || interrupted()) return;
  const std::string again = std::format("it is asked again in {:.2g} s", seconds_of(*pause));
  if (failure.problem == RemoteProblem::damaged) {
    // Rare and worth a look each time: somebody else writes there, or nobody's server answers.
    tell_(RemoteNews::damaged,
          std::format("the remote layer {} answers garbage: {}; {}", options_.name, failure.what, again));
  } else if (!outage_told_.exchange(true)) {
    tell_(RemoteNews::outage,
          std::format("the remote layer {} cannot be used now: {}; {}; {}, later less often (said once, later outages "
                      "are only counted)",
                      options_.name, failure.what, consequence, again));
  } else {
    tell_(RemoteNews::routine, std::format("the remote layer {}: {}; {}", options_.name, failure.what, again));
  }
}

}  // namespace wavejit::cache
