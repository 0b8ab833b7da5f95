// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Vector memory as one compute unit sees it: L1, its share of L2, of the last level cache and of memory.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "timing/timing.h"

namespace wavejit::simgpu::clock {

// Lines in sets, the least recently used one leaves.
class Cache {
 public:
  Cache(std::uint64_t lines, unsigned ways);
  // Whether the line is there; it is afterwards.
  bool touch(std::uint64_t line);

 private:
  struct Way {
    std::uint64_t line = ~std::uint64_t{0};
    std::uint64_t used = 0;
  };
  std::uint64_t sets_;
  unsigned ways_;
  std::vector<Way> storage_;
  std::uint64_t clock_ = 0;
};

// What the rest of the GPU does to the memory of one compute unit.
struct Neighbours {
  unsigned compute_units = 1;         // that share memory and the last level cache
  unsigned compute_units_of_die = 1;  // that share an L2
  // Of lines that other workgroups of the die read too: how many read them, which each pay for their part of the
  // misses.
  std::unordered_map<std::uint64_t, unsigned> sharers;
};

struct MemoryCounts {
  std::uint64_t lines = 0;
  std::uint64_t l1_hits = 0;
  std::uint64_t l2_hits = 0;
  std::uint64_t mall_hits = 0;
  std::uint64_t memory = 0;
};

class MemoryPath {
 public:
  MemoryPath(const timing::MemoryRules& rules, const Neighbours& neighbours);

  // When the data of an access is there that the address unit began at `start`. `instance` tells workgroups apart that
  // replay one trace.
  double load(double start, std::span<const std::uint64_t> lines, std::uint64_t instance);
  // When a store counts as done.
  double store(double start, std::span<const std::uint64_t> lines);
  const MemoryCounts& counts() const { return counts_; }

 private:
  // A resource that takes so many cycles a line.
  struct Rate {
    double cycles_a_line = 0;
    double free = 0;
    double take(double now) {
      free = (free > now ? free : now) + cycles_a_line;
      return free;
    }
  };
  double fill(double now, std::uint64_t line);
  bool fetched_by_another(std::uint64_t line);

  const timing::MemoryRules* rules_;
  const Neighbours* neighbours_;
  Cache l1_;
  Cache l2_;
  std::unordered_set<std::uint64_t> seen_;  // lines that were fetched from memory before
  Rate l1_rate_;
  Rate l2_rate_;
  Rate mall_rate_;
  Rate memory_rate_;
  std::unordered_map<unsigned, std::uint64_t> shared_touches_;  // by the number of sharers
  MemoryCounts counts_;
};

}  // namespace wavejit::simgpu::clock
