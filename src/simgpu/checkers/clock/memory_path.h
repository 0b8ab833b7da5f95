// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Vector memory as one compute unit sees it, or those that share a place for workgroups: an L1 each, their share of L2,
// of the last level cache and of memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "simgpu/checkers/clock/line_range.h"
#include "timing/timing.h"

namespace wavejit::simgpu::clock {

// Lines in sets, the least recently used one leaves.
class Cache {
 public:
  Cache(std::uint64_t lines, unsigned ways);
  struct Found {
    bool is_there = false;    // or on its way
    double* ready = nullptr;  // when its data has come: who finds it missing sets that. Good until the next touch
  };
  // The line is there afterwards.
  Found touch(std::uint64_t line);
  bool has(std::uint64_t line) const;
  void clear();

 private:
  std::uint64_t set_of(std::uint64_t line) const;
  struct Way {
    std::uint64_t line = ~std::uint64_t{0};
    std::uint64_t used = 0;
    double ready = 0;
  };
  std::uint64_t sets_;
  unsigned ways_;
  std::vector<Way> storage_;
  std::uint64_t clock_ = 0;
};

// Workgroups that read one line, in the mean of its kind.
struct LineReaders {
  double of_die = 1;
  unsigned of_unit = 1;         // of those, on this compute unit
  bool one_for_copies = false;  // workgroups that replay one trace read the same line, and not each its own like it
};

// What the rest of the GPU does to the memory of one compute unit.
struct Neighbours {
  // Compute units that share memory and the last level cache, each with as many workgroups as this one. No whole number
  // where others have fewer: of 305 workgroups on 304 units one stands beside another, and both have 2 of 305 parts.
  double compute_units = 1;
  double compute_units_of_die = 1;  // that share an L2
  unsigned busy_units_of_die = 1;   // compute units of the die that have a workgroup at least
  unsigned traces = 1;              // that the workgroups of this one replay in turn
  double l2_part = 1;               // of it, that workgroups of this one have for lines that nobody else reads
  // Lines that other workgroups of the die read too, which each pay for their part of the misses.
  std::unordered_map<std::uint64_t, LineReaders> sharers;
  // Lines that workgroups of other dies read at the same time: how many dies do. One fetches from memory, the others
  // find it in the last level cache.
  std::unordered_map<std::uint64_t, double> dies;
  // The last level cache has all that the launch reads: one before it read or wrote the same.
  bool warm = false;
  // What it has otherwise: what launches before wrote. Sorted and apart.
  std::vector<LineRange> in_last_level;
  // Lines that the die's L2 has from a launch before.
  std::unordered_set<std::uint64_t> in_l2;
};

struct MemoryCounts {
  std::uint64_t lines = 0;
  double of_l1 = 0;  // of those, what loads took from L1; a half that nobody wants does not leave it
  std::uint64_t l1_hits = 0;
  std::uint64_t l2_hits = 0;
  std::uint64_t mall_hits = 0;
  std::uint64_t memory = 0;
  std::uint64_t written = 0;  // lines that stores and atomics send back to memory
};

class MemoryPath {
 public:
  MemoryPath(const timing::MemoryRules& rules, const Neighbours& neighbours, std::size_t compute_units = 1);

  // When the data of an access is there that the address unit began at `start`. `instance` tells workgroups apart that
  // replay one trace; `unit`: whose L1; `part`: of the lines, that L1 passes on.
  double load(double start, std::span<const std::uint64_t> lines, std::uint64_t instance, std::size_t unit = 0,
              double part = 1);
  // How many of them L1 has not, nor waits for.
  std::size_t missing(std::span<const std::uint64_t> lines, std::uint64_t instance, std::size_t unit) const;
  // A scalar load, through the scalar cache.
  double scalar_load(double start, std::span<const std::uint64_t> lines, std::uint64_t instance);
  // When a store counts as done. L2 keeps what was written, as much as is this compute unit's part of it, and writes it
  // back when memory has nothing else to do; more than that waits for memory.
  double store(double start, std::span<const std::uint64_t> lines, std::uint64_t instance);
  // An atomic reads and writes where all dies see it.
  double atomic(double start, std::span<const std::uint64_t> lines);
  // A load of agent scope (sc1): past L1 and L2.
  double coherent_load(double start, std::span<const std::uint64_t> lines, std::size_t unit = 0, double part = 1);
  double coherent_store(double start, std::span<const std::uint64_t> lines);
  // buffer_wbl2. The die's L2 serves its workgroups one after the other, and they come together: with equal work they
  // are abreast, and the last of them is waited for.
  double release(double start);
  // buffer_inv: what caches hold is forgotten.
  double acquire(double start);
  // Cycles that memory takes for what is still to be written back: the launch has ended when all is.
  double write_back_cycles(double end);
  // What the busiest of L1, L2, the fabric behind it and memory needs at its rate for all that was read and is written back.
  double busiest_cycles() const;
  const MemoryCounts& counts() const { return counts_; }

 private:
  // A resource that takes `cycles_a_line` cycles for each line.
  struct Rate {
    double cycles_a_line = 0;
    double free = 0;
    double take(double now, double part = 1) {
      free = (free > now ? free : now) + (cycles_a_line * part);
      return free;
    }
  };
  // When a line that L1 has not is there.
  double fill(double now, std::uint64_t line, std::uint64_t instance);
  double from_behind_l2(double at_l2, std::uint64_t line, bool was_read);
  // The line as L2 and all behind it know it: workgroups that replay one trace have lines of their own there, too, save
  // for those that others read.
  std::uint64_t beyond_l1(std::uint64_t line, std::uint64_t instance) const;
  // Workgroups of a die fill its L2 together: lines that one alone reads have its part of it, lines of several all of it.
  Cache& l2_of(std::uint64_t line);
  // One of so many touches of lines that have so many readers is this reader's own fetch.
  using Touches = std::unordered_map<double, std::uint64_t>;
  static bool is_own(Touches& touches, double readers);
  bool fetched_by_another(std::uint64_t line);
  bool fetched_by_another_die(std::uint64_t line);
  // One more line to write back, at `now`: when there is room for it. What passed the fabric on its way does not again:
  // `now` may lie ahead then, and whoever comes before that is not to wait.
  enum class Fabric : std::uint8_t { ahead, passed };
  double write_back(double now, Fabric fabric = Fabric::ahead);
  void use_idle_memory(double now);
  // When L1 has sent `part` of a line.
  double pass_l1(double now, std::size_t unit, double part);
  double cycles_of_write_back() const;  // of a line

  const timing::MemoryRules* rules_;
  const Neighbours* neighbours_;
  std::vector<Cache> l1_;
  Cache scalar_;
  Cache l2_;
  Cache l2_part_;
  std::unordered_map<std::uint64_t, double> seen_;  // lines that were fetched from memory before, and when they came
  std::unordered_set<std::uint64_t> written_;       // lines that a store of a workgroup has written
  std::vector<Rate> l1_rate_;
  Rate l2_rate_;
  Rate mall_rate_;
  Rate memory_rate_;
  Rate release_rate_;           // a buffer_wbl2
  Touches shared_touches_;      // by the number of compute units
  Touches die_touches_;         // by the number of dies
  double room_for_writes_ = 0;  // lines
  double to_write_back_ = 0;    // lines
  bool forgotten_ = false;      // what a launch before left in L2
  MemoryCounts counts_;
};

}  // namespace wavejit::simgpu::clock
