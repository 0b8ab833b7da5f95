// What a cache did, as numbers that add up: the oracle of the tests and the source of wavejit_statistics.
#pragma once

#include <atomic>
#include <cstdint>

namespace wavejit::cache {

// A moment's copy.
struct CounterValues {
  // lookups = hits + misses
  std::uint64_t lookups = 0;
  std::uint64_t hits = 0;
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
  std::uint64_t dropped = 0;            // entries removed because their user found them unusable

  bool operator==(const CounterValues&) const = default;
};

struct Counters {
  std::atomic<std::uint64_t> lookups{0};
  std::atomic<std::uint64_t> hits{0};
  std::atomic<std::uint64_t> misses{0};
  std::atomic<std::uint64_t> absent{0};
  std::atomic<std::uint64_t> damaged{0};
  std::atomic<std::uint64_t> refused{0};
  std::atomic<std::uint64_t> read_faults{0};
  std::atomic<std::uint64_t> publishes{0};
  std::atomic<std::uint64_t> published{0};
  std::atomic<std::uint64_t> publish_failures{0};
  std::atomic<std::uint64_t> publishes_skipped{0};
  std::atomic<std::uint64_t> dropped{0};

  CounterValues values() const;
};

}  // namespace wavejit::cache
