// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a cache did, as numbers that add up: the oracle of the tests and the source of wavejit_statistics.
#pragma once

#include <atomic>
#include <cstdint>

namespace wavejit::cache {

// A moment's copy.
struct CounterValues {
  // lookups = hits + misses; hits = layer_hits + user_hits + memory_hits + remote_hits
  std::uint64_t lookups = 0;
  std::uint64_t hits = 0;
  std::uint64_t layer_hits = 0;   // read-only layers
  std::uint64_t user_hits = 0;    // the writable folder
  std::uint64_t memory_hits = 0;  // the process's own memory
  std::uint64_t misses = 0;
  // Why a layer did not serve a lookup, one count a layer asked.
  std::uint64_t absent = 0;       // no such file
  std::uint64_t damaged = 0;      // not an entry, another key's entry, or a wrong checksum
  std::uint64_t refused = 0;      // not a regular file, somebody else's, or writable by everybody
  std::uint64_t read_faults = 0;  // the file system said no
  // publishes = published + publish_failures + publishes_skipped
  std::uint64_t publishes = 0;
  std::uint64_t published = 0;
  std::uint64_t publish_failures = 0;
  std::uint64_t publishes_skipped = 0;  // the cache is off or read-only
  std::uint64_t kept_in_memory = 0;     // of the failures and the skipped
  std::uint64_t dropped = 0;            // entries removed because their user found them unusable
  // turns = turns_taken + turns_answered + turns_timed_out + turns_unlocked
  std::uint64_t turns = 0;
  std::uint64_t turns_taken = 0;      // we have the lock: others wait for us
  std::uint64_t turns_answered = 0;   // somebody else had published it
  std::uint64_t turns_timed_out = 0;  // the holder took longer than we wait
  std::uint64_t turns_unlocked = 0;   // no folder to write to, or no lock to be had there
  std::uint64_t turns_waited = 0;     // of all of these, those that had to wait
  // Sweeps that this process made.
  std::uint64_t sweeps = 0;
  std::uint64_t evicted = 0;
  std::uint64_t evicted_bytes = 0;
  std::uint64_t leftovers_removed = 0;
  std::uint64_t sweep_faults = 0;
  // remote_lookups = remote_hits + remote_misses + remote_damaged + remote_faults + remote_skipped
  std::uint64_t remote_lookups = 0;
  std::uint64_t remote_hits = 0;
  std::uint64_t remote_misses = 0;   // the server has no such entry
  std::uint64_t remote_damaged = 0;  // an answer that is not the entry: garbage, a wrong seal, another entry
  std::uint64_t remote_faults = 0;   // no answer in time, or a refusal
  std::uint64_t remote_skipped = 0;  // not asked: a pause after a failure
  // remote_publishes = remote_published + remote_publish_failures + remote_dropped, when none is on its way
  std::uint64_t remote_publishes = 0;
  std::uint64_t remote_published = 0;
  std::uint64_t remote_publish_failures = 0;
  std::uint64_t remote_dropped = 0;  // what the queue had no room for, or the end no time

  bool operator==(const CounterValues&) const = default;
};

struct Counters {
  std::atomic<std::uint64_t> lookups{0};
  std::atomic<std::uint64_t> hits{0};
  std::atomic<std::uint64_t> layer_hits{0};
  std::atomic<std::uint64_t> user_hits{0};
  std::atomic<std::uint64_t> memory_hits{0};
  std::atomic<std::uint64_t> misses{0};
  std::atomic<std::uint64_t> absent{0};
  std::atomic<std::uint64_t> damaged{0};
  std::atomic<std::uint64_t> refused{0};
  std::atomic<std::uint64_t> read_faults{0};
  std::atomic<std::uint64_t> publishes{0};
  std::atomic<std::uint64_t> published{0};
  std::atomic<std::uint64_t> publish_failures{0};
  std::atomic<std::uint64_t> publishes_skipped{0};
  std::atomic<std::uint64_t> kept_in_memory{0};
  std::atomic<std::uint64_t> dropped{0};
  std::atomic<std::uint64_t> turns{0};
  std::atomic<std::uint64_t> turns_taken{0};
  std::atomic<std::uint64_t> turns_answered{0};
  std::atomic<std::uint64_t> turns_timed_out{0};
  std::atomic<std::uint64_t> turns_unlocked{0};
  std::atomic<std::uint64_t> turns_waited{0};
  std::atomic<std::uint64_t> sweeps{0};
  std::atomic<std::uint64_t> evicted{0};
  std::atomic<std::uint64_t> evicted_bytes{0};
  std::atomic<std::uint64_t> leftovers_removed{0};
  std::atomic<std::uint64_t> sweep_faults{0};
  std::atomic<std::uint64_t> remote_lookups{0};
  std::atomic<std::uint64_t> remote_hits{0};
  std::atomic<std::uint64_t> remote_misses{0};
  std::atomic<std::uint64_t> remote_damaged{0};
  std::atomic<std::uint64_t> remote_faults{0};
  std::atomic<std::uint64_t> remote_skipped{0};
  std::atomic<std::uint64_t> remote_publishes{0};
  std::atomic<std::uint64_t> remote_published{0};
  std::atomic<std::uint64_t> remote_publish_failures{0};
  std::atomic<std::uint64_t> remote_dropped{0};

  CounterValues values() const;
};

}  // namespace wavejit::cache
