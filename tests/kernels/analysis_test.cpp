// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The tools that static figures are made with: bank rules and bank conflicts of addresses chosen by hand.
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cstdint>

#include "targets/targets.h"
#include "timing/lds_banks.h"
#include "timing/timing.h"

namespace wavejit::analysis {
namespace {

using Addresses = std::array<std::uint32_t, 64>;
constexpr std::uint64_t all_lanes = ~std::uint64_t{0};

const timing::LdsAccess& access(std::string_view target, std::string_view name) {
  const timing::Timing* timing = timing::find_timing(*targets::find_target(target));
  const timing::LdsAccess* found = timing == nullptr ? nullptr : timing::find_lds_access(*timing, name);
  EXPECT_NE(found, nullptr) << target << " " << name;
  static constexpr timing::LdsAccess none{};
  return found == nullptr ? none : *found;
}

Addresses strided(std::uint32_t bytes) {
  Addresses addresses{};
  for (std::uint32_t lane = 0; lane < addresses.size(); ++lane) addresses[lane] = lane * bytes;
  return addresses;
}

TEST(TimingTable, HasARowForEveryTargetAndServesEveryLaneOnce) {
  for (const targets::Target& target : targets::complete_targets()) {
    const timing::Timing* timing = timing::find_timing(target);
    ASSERT_NE(timing, nullptr) << target.id;
    for (const timing::LdsAccess& row : timing->lds) {
      SCOPED_TRACE(std::string(target.id) + " " + std::string(row.name));
      std::uint64_t served = 0;
      for (const std::uint64_t phase : row.phases) {
        EXPECT_EQ(served & phase, 0U);
        served |= phase;
        // What one phase asks for without conflicts is at most all banks at once.
        EXPECT_LE(std::popcount(phase) * row.bytes, row.banks * 4);
      }
      EXPECT_EQ(served, all_lanes);
    }
  }
}

TEST(LdsBanks, LanesSideBySideDoNotConflict) {
  for (const targets::Target& target : targets::complete_targets())
    for (const timing::LdsAccess& row : timing::find_timing(target)->lds) {
      const timing::BankUse use = timing::bank_use(row, strided(static_cast<std::uint32_t>(row.bytes)), all_lanes);
      EXPECT_EQ(use.extra, 0) << target.id << " " << row.name;
      EXPECT_EQ(use.phases, static_cast<int>(row.phases.size()));
    }
}

TEST(LdsBanks, EveryLaneInOneBankConflictsWithEveryOther) {
  // gfx942: two phases of 32 lanes, 32 banks of 4 bytes: 31 turns lost each.
  EXPECT_EQ(timing::bank_use(access("gfx942", "ds_read_b32"), strided(128), all_lanes).extra, 2 * 31);
  // gfx950: rows of 1 KiB read 16 bytes wide by 16 lanes at a time.
  EXPECT_EQ(timing::bank_use(access("gfx950", "ds_read_b128"), strided(1024), all_lanes).extra, 4 * 15);
}

TEST(LdsBanks, LanesThatWantTheSameShareIt) {
  EXPECT_EQ(timing::bank_use(access("gfx950", "ds_read_b128"), Addresses{}, all_lanes).extra, 0);
}

// AMD's traces: rows off by 4 bytes take a cycle a lane. Rows at multiples of 8 were measured at half the rate.
TEST(LdsBanks, WideReadsOffTheirAlignmentAreSplit) {
  const timing::LdsAccess& row = access("gfx950", "ds_read_b128");
  Addresses addresses = strided(16);
  for (std::uint32_t& address : addresses) address += 4;
  EXPECT_EQ(timing::bank_use(row, addresses, all_lanes).extra + 4, 64);
  for (std::uint32_t& address : addresses) address += 4;
  EXPECT_EQ(timing::bank_use(row, addresses, all_lanes).extra, 4);
}

TEST(LdsBanks, OnlyActiveLanesCount) {
  const timing::BankUse use = timing::bank_use(access("gfx942", "ds_read_b32"), strided(128), 0b111);
  EXPECT_EQ(use.extra, 2);
  EXPECT_EQ(use.phases, 1);
}

// Which lanes meet matters: lanes 4 to 7 and 16 to 19 are one phase of gfx942's ds_read_b128, lanes 0 to 7 are not.
TEST(LdsBanks, OnlyLanesOfOnePhaseMeet) {
  const timing::LdsAccess& row = access("gfx942", "ds_read_b128");
  Addresses addresses = strided(16);
  addresses[16] = addresses[4] + 128;
  EXPECT_EQ(timing::bank_use(row, addresses, all_lanes).extra, 1);
  addresses[16] = addresses[0] + 128;  // lane 17 and the rest keep their own banks
  EXPECT_EQ(timing::bank_use(row, addresses, all_lanes).extra, 0);
}

}  // namespace
}  // namespace wavejit::analysis
