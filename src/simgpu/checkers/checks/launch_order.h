// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What one workgroup of a launch may know of another one's accesses to device memory.
//
// Dies have an L2 each, and stores stay there until somebody writes them back. So a store is another workgroup's to
// read when three things lie in between (LLVM, AMDGPUUsage, "Memory Model GFX942", agent scope):
//
//   the writer     buffer_wbl2 sc1 behind the store, and a wait for it; then the atomic, or a store with sc1
//   the reader     an atomic that returns what is there, or a load with sc1, and a wait for it; then buffer_inv sc1
//
// Each atomic leaves a note (`Release`) at its address: what its workgroup had done, and what had been written back, at
// that moment, and the notes of others that its wave had seen. Notes of one address are chained by atomics, which give
// back what they found, and replaced by stores. Who reads the address takes the note along; what it leads to is known.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "simgpu/checkers/checks/lds_shadow.h"

namespace wavejit::simgpu::checks {

using ReleaseId = std::uint32_t;
inline constexpr ReleaseId no_release = 0;

// How far one workgroup's accesses are over, a number for each wave.
struct Extents {
  std::vector<AccessId> performed;     // over for everybody: read, or written past the L2
  std::vector<AccessId> written_back;  // plain stores that have left the L2
};

struct Release {
  std::uint32_t workgroup = 0;  // + 1; 0: only what lies before
  unsigned wave = 0;
  AccessId self = no_access;  // the atomic
  std::shared_ptr<const Extents> extents = {};
  std::vector<ReleaseId> before = {};
};

// All that some notes lead to.
class Knowledge {
 public:
  struct Of {
    std::vector<AccessId> performed;
    std::vector<AccessId> written_back;
    std::unordered_set<std::uint64_t> atomics;  // wave and number
  };
  explicit Knowledge(std::vector<ReleaseId> roots) : roots_(std::move(roots)) {}
  const std::vector<ReleaseId>& roots() const { return roots_; }
  // The entry of the workgroup (+ 1), or null.
  const Of* of(std::uint32_t workgroup) const;
  static std::uint64_t atomic(unsigned wave, AccessId id) { return (std::uint64_t{wave} << 32) | id; }

 private:
  friend class LaunchOrder;
  std::vector<ReleaseId> roots_;
  bool is_complete_ = false;
  std::unordered_map<std::uint32_t, Of> of_;
};

// Shared by all workgroups of a launch. Kernels without fences never come here.
class LaunchOrder {
 public:
  // From a function's first instruction on that is there to order workgroups.
  bool follows() const { return follows_.load(std::memory_order_relaxed); }
  void follow() { follows_.store(true, std::memory_order_relaxed); }

  // Runs an access that orders, and leaves and takes notes, as one step for all threads. `places`: dwords.
  // `release`: what it leaves, where it writes. `chains`: an atomic, which gives back what it found. Notes found go to
  // `found`. Returns the note that it left.
  template <typename Execute>
  ReleaseId exchange(std::span<const std::uint64_t> places, Release* release, bool chains,
                     std::vector<ReleaseId>& found, Execute&& execute) {
    const std::scoped_lock lock(mutex_);
    execute();
    return pass_notes(places, release, chains, found);
  }
  // One note that leads to all of them.
  ReleaseId join(std::vector<ReleaseId> notes);
  // Before the first `Knowledge::of`.
  void complete(Knowledge& knowledge);

 private:
  // More than a launch under checks comes to; from there on no new notes are made.
  static constexpr std::size_t most_releases = std::size_t{1} << 24;

  ReleaseId pass_notes(std::span<const std::uint64_t> places, Release* release, bool chains,
                       std::vector<ReleaseId>& found);
  ReleaseId add(Release release);

  std::atomic<bool> follows_ = false;
  std::mutex mutex_;
  std::deque<Release> releases_;  // the first one has number 1
  std::unordered_map<std::uint64_t, ReleaseId> notes_;
};

}  // namespace wavejit::simgpu::checks
