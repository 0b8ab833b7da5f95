// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The race that was published of a prefill in 8 bits: of two groups of waves the leading one leaves a barrier before
// the other has waited for its part of the next tile, and reads what is not there yet. Planted into each place where
// the dual-wave kernel waits before a barrier: the simulated GPU reports it every time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <span>
#include <vector>

#include "byte_problems.h"
#include "planted_faults.h"

namespace wavejit::tests {
namespace {

using simgpu::Instruction;

using ::testing::HasSubstr;

// A wait for loads before a barrier.
struct Prefetch {
  const Instruction* wait = nullptr;
  std::size_t to_barrier = 0;  // the barrier comes this many instructions later: a priority may stand between
};

// Those behind whose barrier a tile is read from LDS.
std::vector<Prefetch> prefetches_of(const PlantedFaults& faults) {
  std::vector<Prefetch> found;
  std::size_t behind_reads = 0;  // how many of the found prefetches are followed by LDS reads
  const std::span<const Instruction> all = faults.instructions();
  for (std::size_t i = 0; i + 2 < all.size(); ++i) {
    if (all[i].mnemonic.starts_with("ds_read")) behind_reads = found.size();
    if (all[i].mnemonic != "s_waitcnt" || !faults.text(all[i]).contains("vmcnt")) continue;
    const std::size_t to_barrier = all[i + 1].mnemonic == "s_setprio" ? 2 : 1;
    if (all[i + to_barrier].mnemonic == "s_barrier") found.push_back({.wait = &all[i], .to_barrier = to_barrier});
  }
  found.resize(behind_reads);
  return found;
}

TEST(PrefetchFaults, AGroupThatLeavesABarrierBeforeTheOtherWaitedIsReported) {
  CalledKernel kernel("gfx950", "dualwave", {"attention_forward ", " queries=e4m3 "}, byte_queries_of_many_tiles());
  ASSERT_EQ(kernel.problem(), "");
  const PlantedFaults faults(kernel);
  const std::vector<Prefetch> prefetches = prefetches_of(faults);
  // At the first tile twice, of both tiles of the loop, and of one that is left over.
  EXPECT_EQ(prefetches.size(), 5);
  for (const Prefetch& prefetch : prefetches) {
    SCOPED_TRACE(faults.text(*prefetch.wait));
    const Outcome outcome = faults.behind_the_next(*prefetch.wait, prefetch.to_barrier);
    EXPECT_THAT(outcome.first, HasSubstr("races: "));
    EXPECT_THAT(outcome.first, HasSubstr("loads into"));
  }
}

}  // namespace
}  // namespace wavejit::tests
