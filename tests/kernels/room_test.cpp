// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The table of what fits into registers is what LLVM makes now: a part of it is measured anew.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "codegen/generator_id.h"
#include "kernels/room_lines.h"
#include "support/part.h"
#include "targets/targets.h"
#include "templates/attention/kernel/coverage.h"
#include "templates/attention_forward/kernel/parameters.h"

namespace wavejit::tests {
namespace {

using attention_forward::CacheType;
using attention_forward::find_room;
using attention_forward::ForwardKernel;
using attention_forward::Mask;
using attention_forward::Modifier;
using attention_forward::Pipeline;
using attention_forward::RoomLine;

std::vector<RoomKernels> measured_kernels() {
  std::vector<RoomKernels> all;
  for (const targets::Target& target : targets::all_targets())
    if (!attention::lacks_kernels(target, attention::Need::row_of_two, ForwardKernel::kernel))
      for (RoomKernels& kernels : all_room_kernels(target))
        if (kernels.line.starts_with(target.id)) all.push_back(std::move(kernels));  // else another one's line
  return all;
}

// Lines of every kind: where all cells are alike, where budgets differ, and where kernels spill.
constexpr const char* measured_anew[] = {
    "gfx1201 generic128 d64 16bits singles", "gfx1201 generic128 d192/128 cache8+tokens singles",
    "gfx942 generic64 d64 16bits pages",     "gfx942 interleaved128 d128 cache8 tiles+blocks",
    "gfx950 generic128 d64 cache8 dense",    "gfx950 generic32 d128 16bits dense+blocks",
};

TEST(Room, IsWhatIsMeasuredNow) {
  EXPECT_EQ(attention_forward::room_llvm_version(), codegen::llvm_version())
      << "another LLVM hands registers out in another way: ./dev run kernel_room measures the table anew";
  int measured = 0;
  for (const RoomKernels& kernels : measured_kernels()) {
    if (sampled() && !std::ranges::contains(measured_anew, kernels.line)) continue;
    const RoomLine* const known = find_room(kernels.line);
    ASSERT_NE(known, nullptr) << kernels.line << " is not in the table";
    const RoomTexts now = measure_room(kernels);
    EXPECT_TRUE(std::ranges::equal(known->ends, now))
        << kernels.line << " has other cells now: " << now[0] << " | " << now[1] << " | " << now[2];
    ++measured;
  }
  EXPECT_GE(measured, static_cast<int>(std::size(measured_anew)));
}

// No line too few: what rules leave of a target has a cell. No line too many: nobody reads it.
TEST(Room, HasTheLinesOfAllTargets) {
  std::set<std::string_view> lines;
  for (const RoomLine& line : attention_forward::room_table()) lines.insert(line.line);
  lines.erase("LLVM");
  std::set<std::string> wanted;
  for (const RoomKernels& kernels : measured_kernels()) wanted.insert(kernels.line);
  EXPECT_TRUE(std::ranges::equal(lines, wanted));
}

// A cell of caches of 8 bits is what the one takes that needs most. Beside scales of tokens that is floats, so that
// integers have no kernel either, and another pipeline takes both.
TEST(Room, CellsAreOfTheCacheThatNeedsMost) {
  for (const auto cache : {CacheType::e4m3, CacheType::e5m2, CacheType::i8}) {
    ForwardKernel spec;
    spec.target = "gfx950";
    spec.cache = cache;
    spec.token_scales = true;
    spec.mask = Mask::causal;
    spec.modifiers = {Modifier::softcap, Modifier::alibi};
    spec.pipeline = Pipeline::dualwave;
    spec.tile_queries = 256;
    const targets::Target& target = *targets::find_target(spec.target);
    EXPECT_EQ(attention_forward::measured_waves(spec, target), 2);
    spec.modifiers.add(Modifier::bias);
    EXPECT_EQ(attention_forward::measured_waves(spec, target), 0);
    // Pages of whole tiles look each tile up, and without a diagonal nothing is left for both.
    spec.modifiers = {Modifier::softcap, Modifier::alibi};
    spec.paged = spec.whole_tiles = true;
    EXPECT_EQ(attention_forward::measured_waves(spec, target), 2);
    spec.mask = Mask::none;
    EXPECT_EQ(attention_forward::measured_waves(spec, target), 0);
    // Without scales of tokens it is integers, which take more scalars.
    spec.token_scales = spec.whole_tiles = false;
    spec.block_lists = true;
    spec.head_dim_qk = spec.head_dim_v = 64;
    EXPECT_EQ(attention_forward::measured_waves(spec, target), 2);
    spec.mask = Mask::window;
    EXPECT_EQ(attention_forward::measured_waves(spec, target), 0);
  }
}

TEST(Room, SaysBudgetsAndNamesTheOneWordThatIsTooMuch) {
  ForwardKernel spec;
  spec.target = "gfx1201";
  const targets::Target& target = *targets::find_target(spec.target);
  EXPECT_EQ(attention_forward::measured_waves(spec, target), 6);
  EXPECT_EQ(attention_forward::resources_of(spec)->vgpr_budget, 240);
  // Other products of the same registers.
  spec.target = "gfx1200";
  EXPECT_EQ(attention_forward::resources_of(spec)->vgpr_budget, 240);
  spec.target = "gfx1201";
  spec.head_dim_qk = spec.head_dim_v = 256;
  EXPECT_EQ(attention_forward::resources_of(spec).error(),
            "head dim 256 leaves too few registers for the rest on gfx1201, as LLVM 22.1.8 hands them out; accepted: "
            "smaller head dims");
}

TEST(Room, BudgetsBeginWithWhatLdsLeaves) {
  const auto budgets = [](const char* target, int head_dim, int rows) {
    ForwardKernel spec;
    spec.target = target;
    spec.head_dim_qk = spec.head_dim_v = head_dim;
    spec.tile_queries = rows;
    return attention_forward::vgpr_budgets(spec, *targets::find_target(target));
  };
  EXPECT_EQ(budgets("gfx1201", 128, 128), (std::vector{240, 256}));
  EXPECT_EQ(budgets("gfx1201", 64, 128), (std::vector{144, 192, 240, 256}));
  EXPECT_EQ(budgets("gfx950", 64, 128), (std::vector{128, 168, 256, 512}));
  EXPECT_EQ(budgets("gfx950", 128, 128), (std::vector{256, 512}));
  EXPECT_EQ(budgets("gfx942", 256, 128), (std::vector{512}));
  // Waves of small workgroups have a SIMD to themselves. Those beyond 256 registers are for a tile that waits in them.
  EXPECT_EQ(budgets("gfx950", 128, 32), (std::vector{256, 512}));
  EXPECT_EQ(budgets("gfx942", 128, 32), (std::vector{512}));
}

}  // namespace
}  // namespace wavejit::tests
