// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The last writer and the last readers of each dword of device memory during one launch. Launches of a stream are
// ordered, and those of different streams are not compared.
//
// Workgroups are ordered when one releases and the other acquires (workgroup_order.h). Within a workgroup, barriers
// order waves, as in LDS. For other waves an access is over when the wave waited for it before a barrier, or, where
// waves share one path to memory (workgroup_checks.cpp), when the wave issued it before a barrier. Atomics, including
// loads and stores with a scope, do not race with atomics; those of workgroup scope do not within their workgroup. Two
// accesses race if they overlap in bytes, at least one of them is a write, and nothing orders them. Two stores of the
// same value are no race unless rules are strict: in many programs all threads that find something write the same flag.
//
// A dword remembers one writer and two readers, so that of three parties to a race two may be named. If several parties
// touch pieces of a dword, the last ones are remembered. If a line of sixteen dwords is read as a whole, which is the
// common case, its readers are remembered once for the line.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "simgpu/checkers/checks/launch_order.h"
#include "simgpu/checkers/checks/lds_shadow.h"
#include "simgpu/checkers/checks/swap_loops.h"
#include "simgpu/checkers/checks/workgroup_order.h"
#include "simgpu/checkers/facts/addresses.h"
#include "simgpu/checkers/facts/effects.h"
#include "simgpu/machine/launch/seats.h"
#include "simgpu/machine/wave/wave.h"

namespace wavejit::simgpu {
struct Launch;
struct Allocation;
}  // namespace wavejit::simgpu

namespace wavejit::simgpu::checks {

// Shared by all workgroups of a launch, which may run on several threads. Each access first leaves a mark and then
// looks for other marks, in one order for all threads: of two accesses that meet, at least one sees the other. A mark
// is two words; if two marks are set at once, the report may name the other one's instruction.
class MemoryShadow final : public SharedByCheckers {
 public:
  using WhoBits = std::atomic<std::uint64_t>;  // WorkgroupMemory::Who; 0: nobody
  using Place = std::atomic<std::uint32_t>;    // of the instruction; 0: unknown
  enum Party : std::uint8_t { last, other };
  // The last reader, and the last reader before it that was a different one.
  struct Readers {
    WhoBits who[2];
    Place place[2];
  };
  struct Writer {
    WhoBits who;
    Place place;
    std::atomic<std::uint32_t> stored;  // by the last store of each byte; changes with `who`, under writer_lock
  };
  static constexpr unsigned line_bytes = 64;
  struct Line {
    Readers readers;                        // of the whole line at once
    std::atomic<std::uint32_t> written;     // 1: some dword has a writer
    std::atomic<std::uint32_t> parts_read;  // 1: some dword has readers of its own
  };
  // The cells of one allocation.
  struct Cells {
    Line* lines;
    Writer* writers;   // a dword each
    Readers* readers;  // a dword each
  };

  // `several_threads`: several threads run workgroups of the launch.
  MemoryShadow(const Launch& launch, bool several_threads);
  ~MemoryShadow() override;

  // Null pointers if only this launch has the memory, or if there is no room.
  Cells cells(const Allocation& allocation);
  const Instruction* instruction(std::uint32_t place) const;
  std::uint32_t place(const Instruction& instruction) const;
  bool several_threads() const { return several_threads_; }
  // Held while a dword's writer and the value that it stored change. `offset`: in the allocation.
  std::mutex& writer_lock(std::uint64_t offset) { return writer_locks_[offset / 4 % writer_locks_.size()]; }
  LaunchOrder& order() { return order_; }
  SwapLoops& loops() { return loops_; }
  void finish(Launch& launch) override { loops_.finish(launch); }

 private:
  struct Block {
    std::atomic<std::uint8_t*> room{nullptr};
    std::uint64_t bytes = 0;
  };
  const Launch& launch_;
  bool several_threads_;
  std::vector<Block> blocks_;  // as MemoryView::allocations
  LaunchOrder order_;
  SwapLoops loops_;
  std::array<std::mutex, 64> writer_locks_;
  std::mutex mutex_;
};

// The state of one workgroup.
class WorkgroupMemory {
 public:
  // `shares_path`: the waves' vector memory accesses stay in order.
  void prepare(Launch& launch, std::uint64_t workgroup, unsigned waves, bool shares_path);
  // Records a vector memory instruction and reports its races. `runs`: the bytes in device memory; `lanes`: the same,
  // lane by lane.
  AccessId access(Wave& wave, const Instruction& instruction, const Effects& effects, const Runs& runs,
                  const LaneAddresses& lanes);
  // A wave has arrived at a barrier in two parts; `oldest` is its oldest access that it has not waited for.
  void signal(unsigned wave, AccessId oldest) { arrived_[wave] = oldest == no_access ? last_ + 1 : oldest; }
  // All waves passed a barrier. `oldest`: for each wave, the oldest access that it has not waited for.
  void barrier(const std::vector<AccessId>& oldest);

  WorkgroupOrder& order() { return order_; }
  WorkgroupOrder::State state(AccessId oldest) const {
    return {.last = last_, .oldest = oldest, .safe = passed_.safe, .before_barrier = before_barrier_};
  }

 private:
  struct Access {
    std::uint64_t who;
    std::uint32_t place;
    bool reads;
    bool writes;
    const Effects* effects;
  };
  // The fields of `bits`: workgroup + 1, wave, number of the access in the workgroup, whether it is atomic within its
  // workgroup, whether other workgroups read it as well, whether it is atomic for all, and the bytes.
  struct Who {
    std::uint64_t bits = 0;
    std::uint32_t bytes() const { return bits & 15; }
    bool atomic() const { return ((bits >> 4) & 1) != 0; }
    bool several() const { return ((bits >> 5) & 1) != 0; }
    bool atomic_in_workgroup() const { return atomic() || ((bits >> 6) & 1) != 0; }
    AccessId id() const { return (bits >> 7) & ((1u << 29) - 1); }
    unsigned wave() const { return (bits >> 36) & 15; }
    std::uint64_t workgroup() const { return bits >> 40; }
  };
  struct Mark {
    Who who;
    std::uint32_t place = 0;
  };
  static constexpr AccessId most_accesses = (1u << 29) - 1;
  static constexpr std::uint64_t most_workgroups = (1u << 24) - 2;

  bool enter(const Run& run);
  void touch(Wave& wave, const Instruction& instruction, const Access& access, const Run& run);
  std::uint64_t read_line(Wave& wave, const Instruction& instruction, const Access& access, const Run& run,
                          std::uint64_t offset);
  void read_dword(Wave& wave, const Instruction& instruction, const Access& access, std::uint64_t offset,
                  std::uint32_t bytes, unsigned lane);
  // `stored`: the value, at its place in the dword; null where it is unknown.
  void write_dword(Wave& wave, const Instruction& instruction, const Access& access, std::uint64_t offset,
                   std::uint32_t bytes, unsigned lane, const std::uint32_t* stored);
  static std::uint32_t keep_stored(MemoryShadow::Writer& writer, std::uint32_t bytes, std::uint32_t stored);
  bool repeats(const Mark& other, std::uint32_t bytes, std::uint32_t differing) const;
  void look_at_writer(Wave& wave, const Instruction& instruction, const Access& access, std::uint64_t offset,
                      std::uint32_t bytes, unsigned lane) const;
  // `other_reads`: the other access reads and does not write.
  bool races(const Access& access, const Mark& other, bool other_reads, std::uint32_t bytes) const;
  bool was_in_front(const Mark& other) const;
  WorkgroupOrder::Missing missing(const Access& access, Who other, bool other_reads) const;
  static Mark look(const MemoryShadow::WhoBits& who, const MemoryShadow::Place& place);
  // Replaces the mark by the one that `next` makes of it, and returns the old mark.
  template <typename Next>
  Mark leave(MemoryShadow::WhoBits& who, MemoryShadow::Place& at, std::uint32_t place, Next next) const;
  void raise(std::atomic<std::uint32_t>& flag) const;
  void mark_read(const Access& access, MemoryShadow::Readers& readers, std::uint32_t bytes) const;
  Mark mark_written(const Access& access, MemoryShadow::Writer& writer, std::uint32_t bytes) const;
  // The bytes of an earlier access of the same wave that can still race, in addition to those of this access.
  std::uint32_t kept_bytes(const Access& access, Who before) const;
  // False: the finding is put aside until the launch is over (swap_loops.h).
  bool complain(Wave& wave, const Instruction& instruction, const Access& access, const Mark& other, bool other_reads,
                std::uint64_t address, unsigned lane) const;

  Launch* launch_ = nullptr;
  MemoryShadow* shadow_ = nullptr;
  std::uint64_t workgroup_ = 0;  // + 1
  AccessId last_ = 0;
  AccessId before_barrier_ = 0;
  std::vector<AccessId> arrived_;  // for each wave that has signalled a barrier: the first access after the signal
  struct Passed {
    std::vector<AccessId> safe;      // for each wave: its accesses up to this one are over, before a barrier
    std::vector<AccessId> in_front;  // for each wave: up to this one they were issued before the others', over or not
  };
  Passed passed_;
  Passed before_;  // the state before the last barrier
  bool shares_path_ = false;
  WorkgroupOrder order_;
  std::vector<RecentLoads> recent_;  // per wave
  const Allocation* allocation_ = nullptr;
  MemoryShadow::Cells cells_{};  // of `allocation_`
};

}  // namespace wavejit::simgpu::checks
