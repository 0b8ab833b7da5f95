// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_forward/kernel/parameters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "templates/attention/call/numbers.h"
#include "templates/attention_forward/kernel/rules.h"

namespace wavejit::attention_forward {
namespace {

using ::testing::HasSubstr;

ForwardKernel spec_for(const std::string& target, int head_dim) {
  ForwardKernel spec;
  spec.target = target;
  spec.head_dim_qk = spec.head_dim_v = head_dim;
  spec.output_store = default_output_store(*targets::find_target(target));
  return spec;
}

struct Cost {
  const char* target;
  int head_dim;
  int lds_bytes;
  int lds_buffers;
  int workgroups;
};

TEST(Resources, StateLdsBytesAndWorkgroupsPerComputeUnit) {
  const Cost costs[] = {
      // Two buffers of 8 lines · D/64 pieces, 1040 bytes a K line and 1088 a V line.
      {"gfx950", 128, 2 * 16 * (1040 + 1088), 2, 2},
      {"gfx950", 64, 2 * 8 * (1040 + 1088), 2, 4},
      // One unpadded pair: 64 keys · D · 2 bytes twice. Two pairs of D = 128 would be all 64 KB for one workgroup.
      {"gfx942", 128, 2 * 64 * 128 * 2, 1, 2},
      {"gfx942", 64, 2 * 64 * 64 * 2, 1, 3},
  };
  for (const Cost& cost : costs) {
    SCOPED_TRACE(std::string(cost.target) + " d" + std::to_string(cost.head_dim));
    const auto resources = resources_of(spec_for(cost.target, cost.head_dim));
    ASSERT_TRUE(resources) << resources.error();
    EXPECT_EQ(resources->lds_bytes, cost.lds_bytes);
    EXPECT_EQ(resources->lds_buffers, cost.lds_buffers);
    EXPECT_EQ(resources->workgroups_per_compute_unit, cost.workgroups);
    EXPECT_EQ(resources->threads, 256);
    EXPECT_EQ(resources->waves, 4);
    // What is promised fits: LDS and registers of that many workgroups.
    const targets::Target& target = *targets::find_target(cost.target);
    EXPECT_LE(resources->lds_bytes * resources->workgroups_per_compute_unit, target.lds_bytes);
    EXPECT_LE(resources->vgpr_budget * resources->workgroups_per_compute_unit, target.vgprs_per_simd_lane);
  }
}

TEST(Resources, RefuseWithTheReasonAndWhatIsAccepted) {
  ForwardKernel spec = spec_for("gfx942", 128);
  spec.output_store = OutputStore::permlane;
  EXPECT_EQ(resources_of(spec).error(),
            "o_store=permlane needs v_permlane32_swap, which gfx942 does not have; accepted: auto, scalar");

  EXPECT_EQ(resources_of(spec_for("gfx950", 100)).error(),
            "head dim 100 has no kernel; accepted: 64, 128, 192/128, 256, and in 16 bits multiples of 8 up to 256");
  spec = spec_for("gfx1201", 256);
  EXPECT_THAT(resources_of(spec).error(), HasSubstr("head dim 256 leaves too few registers for the rest on gfx1201"));

  spec = spec_for("gfx950", 80);
  EXPECT_TRUE(resources_of(spec));
  spec.cache = attention::CacheType::e4m3;
  EXPECT_EQ(resources_of(spec).error(),
            "cache= has no kernel with head dim 80, which tiles pad; accepted: keys in 16 bits");
  spec = spec_for("gfx950", 128);
  spec.head_dim_v = 260;
  EXPECT_THAT(resources_of(spec).error(), HasSubstr("head dim 128/260 has no kernel"));

  spec = spec_for("gfx950", 128);
  spec.tile_keys = 128;
  EXPECT_THAT(resources_of(spec).error(), HasSubstr("accepted: 64"));
  spec.tile_keys = 64;
  spec.tile_queries = 96;
  EXPECT_THAT(resources_of(spec).error(), HasSubstr("pipeline=generic on gfx950; accepted: 32, 64, 128"));
  spec = spec_for("gfx942", 128);
  spec.tile_queries = 96;
  EXPECT_THAT(resources_of(spec).error(), HasSubstr("pipeline=generic on gfx942; accepted: 32, 64, 128"));

  spec.target = "gfx900";
  EXPECT_THAT(resources_of(spec).error(), HasSubstr("target=gfx900"));
  EXPECT_THAT(resources_of(spec).error(), HasSubstr(targets::known_targets()));
}

ForwardKernel dualwave_for(const std::string& target, int head_dim) {
  ForwardKernel spec = spec_for(target, head_dim);
  spec.pipeline = Pipeline::dualwave;
  spec.tile_queries = 256;
  return spec;
}

TEST(Resources, DualWaveTakesOneWorkgroupOfEightWaves) {
  for (const int head_dim : {64, 128}) {
    const auto resources = resources_of(dualwave_for("gfx950", head_dim));
    ASSERT_TRUE(resources) << resources.error();
    EXPECT_EQ(resources->waves, 8);
    EXPECT_EQ(resources->threads, 512);
    EXPECT_EQ(resources->vgpr_budget, 256);
    // Tiles as in every pipeline, and behind them room for merged rows, which leaves no other workgroup a place: there
    // is none by registers either.
    const int tiles = resources_of(spec_for("gfx950", head_dim))->lds_bytes;
    EXPECT_EQ(resources->lds_bytes, tiles + (head_dim == 64 ? 9 : 11) * 8192);
    EXPECT_EQ(resources->workgroups_per_compute_unit, 1) << "two waves a SIMD, one of each group";
  }
}

TEST(Resources, DualWaveIsRefusedInWords) {
  EXPECT_EQ(
      resources_of(dualwave_for("gfx942", 128)).error(),
      "pipeline=dualwave needs transpose reads of LDS and 16-byte LDS DMA and v_permlane32_swap, which gfx942 does "
      "not have; accepted: auto, generic, interleaved");
  ForwardKernel spec = dualwave_for("gfx950", 128);
  spec.tile_queries = 128;
  EXPECT_THAT(resources_of(spec).error(), HasSubstr("pipeline=dualwave on gfx950; accepted: 256"));
  spec = spec_for("gfx950", 128);
  spec.stagger = false;
  EXPECT_THAT(resources_of(spec).error(), HasSubstr("stagger=off belongs to pipeline=dualwave"));
}

TEST(DefaultPipeline, GoesByTargetAndQueryLengthOnly) {
  const targets::Target& cdna4 = *targets::find_target("gfx950");
  const targets::Target& cdna3 = *targets::find_target("gfx942");
  for (const QueryRows rows : all_query_rows) {
    EXPECT_EQ(default_pipeline(cdna4, rows), rows == QueryRows::more ? Pipeline::dualwave : Pipeline::generic);
    EXPECT_EQ(default_pipeline(cdna3, rows), Pipeline::interleaved);
  }
}

TEST(DefaultTile, IsSmallForFewRows) {
  const targets::Target& cdna4 = *targets::find_target("gfx950");
  const targets::Target& cdna3 = *targets::find_target("gfx942");
  const std::pair<std::uint64_t, int> tiles[] = {{1, 32},  {32, 32},  {33, 64},   {64, 64},
                                                 {65, 64}, {255, 64}, {256, 256}, {std::uint64_t{1} << 31, 256}};
  for (const auto& [length, tile] : tiles) {
    SCOPED_TRACE(length);
    const QueryRows rows = query_rows(length);
    EXPECT_EQ(default_tile_queries(cdna4, default_pipeline(cdna4, rows), rows, {128, 128}), tile);
    EXPECT_EQ(default_tile_queries(cdna4, Pipeline::generic, rows, {128, 128}), std::min(tile, 128));
    EXPECT_EQ(default_tile_queries(cdna4, Pipeline::dualwave, rows, {128, 128}), 256);
    EXPECT_EQ(default_tile_queries(cdna4, Pipeline::generic, rows, {192, 128}), 128);
    EXPECT_EQ(default_tile_queries(cdna3, Pipeline::generic, rows, {128, 128}), 128);
    EXPECT_EQ(default_tile_queries(cdna3, Pipeline::interleaved, rows, {128, 128}), 128);
  }
}

TEST(RowPlan, PacksTheHeadsOfAGroupWhereRowsAreFew) {
  EXPECT_EQ(plan_rows(1, 8), (RowPlan{.rows = QueryRows::up_to_32, .packed_heads = true}));
  EXPECT_EQ(plan_rows(5, 8), (RowPlan{.rows = QueryRows::up_to_64, .packed_heads = true}));
  EXPECT_EQ(plan_rows(32, 8), (RowPlan{.rows = QueryRows::more, .packed_heads = true}));
  EXPECT_EQ(plan_rows(33, 8), (RowPlan{.rows = QueryRows::up_to_64}));
  EXPECT_EQ(plan_rows(1, 1), (RowPlan{.rows = QueryRows::up_to_32}));
  for (const targets::Target& target : targets::complete_targets()) {
    EXPECT_EQ(packed_tile_queries(target, QueryRows::up_to_32, {128, 128}), 32);
    EXPECT_EQ(packed_tile_queries(target, QueryRows::up_to_64, {64, 64}), 64);
    EXPECT_EQ(packed_tile_queries(target, QueryRows::more, {128, 128}), 128);
    EXPECT_EQ(packed_tile_queries(target, QueryRows::up_to_32, {192, 128}), 128);
  }
}

TEST(Resources, OnlyTheGenericPipelinePacksHeads) {
  ForwardKernel spec = dualwave_for("gfx950", 128);
  spec.packed_heads = true;
  EXPECT_THAT(resources_of(spec).error(),
              HasSubstr("heads=packed has no kernel with pipeline=dualwave; accepted: pipeline=generic"));
}

TEST(LaunchGeometry, PackedHeadsAreRows) {
  ForwardKernel spec = spec_for("gfx950", 128);
  spec.packed_heads = true;
  spec.tile_queries = 32;
  const LaunchGeometry geometry = launch_geometry(spec, *targets::find_target(spec.target), 3, 64, 5, 7, 8);
  EXPECT_EQ(geometry.grid_x, 8U * 7);
  EXPECT_EQ(geometry.grid_y, 2U) << "40 rows";
  EXPECT_EQ(geometry.grid_z, 3U);
  EXPECT_EQ(geometry.threads, 64U);
}

TEST(Resources, SmallTilesAreOneWaveFor32Rows) {
  for (const int head_dim : {64, 128}) {
    for (const int rows : {32, 64}) {
      // What is in flight there waits in registers: a whole tile of a wave.
      ForwardKernel swizzled = spec_for("gfx942", head_dim);
      swizzled.tile_queries = rows;
      ASSERT_TRUE(resources_of(swizzled));
      EXPECT_EQ(resources_of(swizzled)->vgpr_budget, head_dim == 128 ? 512 : 256);
      EXPECT_EQ(resources_of(swizzled)->workgroups_per_compute_unit, head_dim == 128 ? 2 : 4);
      ForwardKernel spec = spec_for("gfx950", head_dim);
      spec.tile_queries = rows;
      const auto resources = resources_of(spec);
      ASSERT_TRUE(resources) << resources.error();
      EXPECT_EQ(resources->waves, rows / 32);
      EXPECT_EQ(resources->threads, rows * 2);
      EXPECT_EQ(resources->workgroups_per_compute_unit, head_dim == 128 ? 2 : 4) << "as many as LDS holds";
    }
  }
}

TEST(Resources, ScalarStoreIsAcceptedEverywhere) {
  for (const targets::Target& target : targets::complete_targets()) {
    ForwardKernel spec = spec_for(std::string(target.id), 64);
    spec.output_store = OutputStore::scalar;
    EXPECT_TRUE(resources_of(spec)) << target.id;
  }
}

TEST(LaunchGeometry, CoversEveryQueryRowOnce) {
  const ForwardKernel spec = spec_for("gfx950", 128);
  const std::pair<std::uint32_t, std::uint32_t> tiles[] = {
      {1, 1}, {127, 1}, {128, 1}, {129, 2}, {1024, 8}, {1025, 9}, {0xFFFFFF80U, 0x1FFFFFFU}, {0xFFFFFFFFU, 0x2000000U}};
  for (const auto& [rows, count] : tiles) {
    const LaunchGeometry geometry = launch_geometry(spec, *targets::find_target(spec.target), 3, 40, rows);
    EXPECT_EQ(geometry.grid_x, 40U);
    EXPECT_EQ(geometry.grid_y, count) << rows;
    EXPECT_EQ(geometry.grid_z, 3U);
    EXPECT_EQ(geometry.threads, 256U);
    EXPECT_EQ(geometry.dynamic_lds_bytes, 0U);
  }
}

TEST(LaunchGeometry, DualWaveHas256RowsAWorkgroup) {
  const ForwardKernel spec = dualwave_for("gfx950", 64);
  for (const auto& [rows, count] : {std::pair{1U, 1U}, {256U, 1U}, {257U, 2U}, {1024U, 4U}}) {
    const LaunchGeometry geometry = launch_geometry(spec, *targets::find_target(spec.target), 3, 40, rows);
    EXPECT_EQ(geometry.grid_y, count) << rows;
    EXPECT_EQ(geometry.threads, 512U);
  }
}

// What the kernel computes: the high half of a 32 × 32-bit product, 0 standing for a multiplier of 2³².
std::uint32_t kv_head_of(std::uint32_t head, std::uint32_t multiplier) {
  return multiplier == 0 ? head : static_cast<std::uint32_t>((std::uint64_t{head} * multiplier) >> 32);
}

TEST(KvHeadMultiplier, DividesExactlyForEveryHeadAndGroup) {
  constexpr std::uint32_t heads = 65536;
  for (std::uint32_t group = 1; group <= heads; ++group) {
    const std::uint32_t multiplier = kv_head_multiplier(group * 3, 3);
    // floor(head · multiplier / 2³²) never decreases with the head, so it equals floor(head / group) everywhere if it
    // does at the first and the last head of every group.
    for (std::uint32_t first = 0; first < heads; first += group) {
      const std::uint32_t last = std::min(first + group - 1, heads - 1);
      ASSERT_EQ(kv_head_of(first, multiplier), first / group) << group;
      ASSERT_EQ(kv_head_of(last, multiplier), first / group) << group;
    }
  }
}

}  // namespace
}  // namespace wavejit::attention_forward
