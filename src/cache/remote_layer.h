// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The layer that a fleet shares: asked when no other has a kernel, before the compiler; given what is compiled, off the
// path of whoever compiled it.
//
//   reading   waits for one answer, no longer than the store's times. After a failure nobody asks until the layer's own
//             thread has seen the server answer again (breaker.h): an outage costs a process one wait.
//   writing   entries go into a bounded queue and from there, in that thread, to the server. What does not fit is
//             dropped and counted; so is what is left when the cache ends, which takes a bounded time.
//
// Reading and writing fail apart: a server that refuses writes (a full one, a replica) still answers.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "cache/breaker.h"
#include "cache/counters.h"
#include "cache/digest.h"
#include "cache/io.h"
#include "cache/remote_store.h"

namespace wavejit::cache {

struct RemoteOptions {
  std::shared_ptr<RemoteStore> store;  // null: no remote layer
  std::string name;                    // for people: "redis://host:6379/0"
  // Guesses: more than a model's kernels, less than anybody's memory.
  std::size_t queue_entries = 256;
  std::size_t queue_bytes = std::size_t{32} << 20;
  // What the end of a cache gives to entries on their way.
  std::int64_t farewell_nanoseconds = 250 * nanoseconds_per_millisecond;
  Pauses pauses;
};

enum class RemoteNews : std::uint8_t { damaged, outage, routine };

// Safe from any thread. Starts its own one when there is something to do.
class RemoteLayer {
 public:
  using Tell = std::function<void(RemoteNews, const std::string&)>;

  RemoteLayer(IoInterface& io, RemoteOptions options, Counters& counters, Tell tell);
  ~RemoteLayer();
  RemoteLayer(const RemoteLayer&) = delete;
  RemoteLayer& operator=(const RemoteLayer&) = delete;

  // Counts one of misses, damaged, faults and skipped, or, when `use` accepts the bytes, hits. `use` answers why not.
  using Use = std::function<std::optional<std::string>(std::vector<std::byte> entry)>;
  bool fetch(const Digest& digest, const std::string& target_id, const Use& use);
  void keep_later(const Digest& digest, const std::string& target_id, std::vector<std::byte> entry) noexcept;
  // Waits until nothing is on its way. False: the time was over, what is left waits for a pause to end, or something
  // did not arrive.
  bool flush(std::int64_t nanoseconds);

 private:
  struct Parcel {
    Digest digest;
    std::string target_id;
    std::vector<std::byte> entry;
  };
  struct Shared;

  bool elsewhere() const;  // in a child that was forked: the thread and its locks are the parent's
  bool interrupted() const;
  bool wake();
  void work();
  void probe();
  void deliver(const Parcel& parcel, Breaker::Ticket ticket);
  void note_success(Breaker& breaker, Breaker::Ticket ticket);
  void note_failure(Breaker& breaker, Breaker::Ticket ticket, const RemoteFailure& failure,
                    std::string_view consequence);

  IoInterface& io_;
  const RemoteOptions options_;
  Counters& counters_;
  const Tell tell_;
  const std::int64_t process_;
  Breaker reading_;
  Breaker writing_;
  std::atomic<bool> outage_told_{false};
  std::unique_ptr<Shared> shared_;
  std::jthread thread_;
};

}  // namespace wavejit::cache
