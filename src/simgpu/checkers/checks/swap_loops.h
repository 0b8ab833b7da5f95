// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Plain loads in front of loops over compare-and-swap.
//
// Where the hardware has no atomic of a kind (the greater of two floats on CDNA, a sum of doubles on RDNA4), LLVM loads
// the place by a plain load, and makes a loop that swaps in what comes of it as long as the place still holds that. By
// the memory model the load races with atomics of others. The result does not depend on it: an old or torn value makes
// the swap fail, and the loop goes on with what the swap found.
//
// So a race between a plain load and an atomic is put aside until the launch is over. It is none when some wave was
// seen to load by that instruction and to compare and swap at the same addresses soon afterwards.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <unordered_set>
#include <vector>

#include "simgpu/machine/launch/finding.h"
#include "simgpu/machine/wave/wave.h"

namespace wavejit::simgpu {
struct Launch;
}

namespace wavejit::simgpu::checks {

// Shared by all workgroups of a launch, which may run on several threads.
class SwapLoops {
 public:
  // From the first instruction of a function on that has a compare-and-swap.
  bool follows() const { return follows_.load(std::memory_order_relaxed); }
  void follow() { follows_.store(true, std::memory_order_relaxed); }

  // The load that a race comes from: whichever of the two instructions is a plain load, if the other one is an atomic
  // that changes the value it finds. Null: neither is, or nothing is followed. `other` may be null.
  const Instruction* load_of(const Instruction& instruction, const Instruction* other) const;
  bool wants(const Wave& wave, const Instruction& instruction, const Instruction* other);
  void put_aside(const Instruction& load, Finding finding);
  void saw_swap_behind(const Instruction& load);
  // All have run: what stays is a finding.
  void finish(Launch& launch);

 private:
  struct Aside {
    const Instruction* load;
    Finding finding;
  };
  static constexpr std::size_t most_aside = 4096;
  std::atomic<bool> follows_ = false;
  std::mutex mutex_;
  std::unordered_set<const Instruction*> loads_;  // in front of swaps
  std::vector<Aside> aside_;
};

// One wave's last plain loads, and where they went.
class RecentLoads {
 public:
  template <typename Addresses>
  void note(const Instruction& load, const Addresses& addresses) {
    Load& entry = loads_[next_++ % loads_.size()];
    entry.instruction = &load;
    entry.lanes = addresses.lanes;
    for_active_lanes(addresses.lanes, [&](unsigned lane) { entry.first[lane] = addresses.first[lane]; });
  }
  // Before a compare-and-swap.
  template <typename Addresses>
  void look_behind(const Addresses& swap, SwapLoops& loops) const {
    for (const Load& load : loads_) {
      if (load.instruction == nullptr || swap.lanes == 0 || (swap.lanes & ~load.lanes) != 0) continue;
      bool same = true;
      for_active_lanes(swap.lanes, [&](unsigned lane) { same = same && load.first[lane] == swap.first[lane]; });
      if (same) loops.saw_swap_behind(*load.instruction);
    }
  }
  void clear() { loads_ = {}; }

 private:
  struct Load {
    const Instruction* instruction = nullptr;
    std::uint64_t lanes = 0;
    std::uint64_t first[lane_places] = {};
  };
  std::array<Load, 4> loads_{};
  unsigned next_ = 0;
};

}  // namespace wavejit::simgpu::checks
