// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which calls give a workgroup two query tiles, and that a line prepares what calls of other batches need.
#include "templates/attention_forward/call/pairs.h"

#include <format>
#include <set>

#include "boards/board.h"
#include "families/call/family.h"
#include "runtime_fixture.h"
#include "targets/targets.h"
#include "templates/attention_forward/call/descriptor.h"
#include "templates/attention_forward/call/route.h"

namespace wavejit::tests {
namespace {

using attention_forward::Pipeline;
using ::testing::HasSubstr;

bool pairs(const std::string& words, const boards::Board& target) {
  const auto parsed = attention_forward::parse_descriptor("attention_forward bf16 " + words);
  if (!parsed) throw std::runtime_error(parsed.error().detail);
  return attention_forward::pairs_tiles(attention_forward::problem_of(*parsed), target);
}
bool pairs(const std::string& words) { return pairs(words, *boards::find_product("gfx950")); }

// 256 compute units.
TEST(Pairs, FillWholeRoundsOfTheDevice) {
  EXPECT_TRUE(pairs("b16 q1024 k1024 h16 d128 causal")) << "512 pairs";
  EXPECT_TRUE(pairs("b4 q1024 k1024 h32/8 d128 causal")) << "256";
  EXPECT_FALSE(pairs("b1 q1024 k1024 h64/8 d128 causal")) << "128 would leave half of the device empty";
  EXPECT_TRUE(pairs("b1 q2048 k2048 h64/8 d128 causal"));
  EXPECT_FALSE(pairs("b5 q1024 k1024 h64/8 d128 causal")) << "half of the third round";
  EXPECT_TRUE(pairs("b6 q1024 k1024 h64/8 d128 causal"));
  EXPECT_TRUE(pairs("b7 q1024 k1024 h64/8 d128 causal")) << "what the second tiles save";
  EXPECT_FALSE(pairs("b7 q2048 k4096 h32/8 d128 causal")) << "several chunks: half of a round more";
  EXPECT_TRUE(pairs("b2 q768 k768 h128 d128 causal")) << "a round of pairs, one of middle tiles";
  EXPECT_TRUE(pairs("b16 q1024 k4096 h16 d128 causal=0")) << "rows see what stands before them";
  EXPECT_FALSE(pairs("b300 q256 k256 h64 d128 causal")) << "one tile";
  // The fewer units, the fewer pairs fill them.
  boards::Board half = *boards::find_product("gfx950");
  half.compute_units /= 2;
  EXPECT_TRUE(pairs("b1 q1024 k1024 h64/8 d128 causal", half));
}

TEST(Pairs, AreForADiagonalOnDualWave) {
  for (const char* words :
       {"b16 q1024 k1024 h16 d128", "b16 q1024 k1024 h16 d128 causal window=64,0",
        "b16 q1024 k1024 h16 d128 layout=paged:64 causal", "b16 q200 k1024 h16 d128 causal",
        "b16 q1024 k1024 h16 d128 layout=packed causal",
        "b4 q1024 k1024 h16 d128 layout=packed q_lengths=1024,300,7,80 k_lengths=1024,300,7,80 causal"})
    EXPECT_FALSE(pairs(words)) << words;
  EXPECT_FALSE(pairs("b16 q1024 k1024 h16 d128 causal", *boards::find_product("gfx942")));
}

// Engines are made ready from one line of a kind; calls come in batches of their own.
TEST(Pairs, LinesReachBothKernels) {
  const boards::Board& target = *boards::find_product("gfx950");
  for (const char* line : {"attention_forward bf16 b1 q4096 k4096 h8 d128 causal",
                           "attention_forward bf16 b16 q1..1024 k1024 h16 d64 causal lse"}) {
    const auto problems = families::parse_problems(line);
    ASSERT_TRUE(problems) << line;
    std::set<bool> paired;
    for (const auto& problem : *problems) {
      const auto shape = problem->shape(target, {});
      ASSERT_TRUE(shape);
      const auto route = shape->family->route(*shape, target, {});
      ASSERT_TRUE(route);
      if (route->kernels[0].spec.text().contains(" pipeline=dualwave "))
        paired.insert(route->kernels[0].spec.text().contains(" tiles=paired "));
    }
    EXPECT_EQ(paired.size(), 2U) << line;
  }
  EXPECT_EQ(families::parse_problems("attention_forward bf16 b1 q4096 k4096 h8 d128")->size(), 1U);
}

TEST(Pairs, ArePinnedOrRefusedNeverReplaced) {
  const boards::Board& target = *boards::find_product("gfx950");
  attention_forward::AttentionShape shape = {
      {.dtype = attention_forward::DataType::bf16, .mask = attention_forward::Mask::causal}};
  shape.query_rows = attention_forward::QueryRows::more;
  shape.paired_tiles = true;
  EXPECT_EQ(attention_forward::AttentionShape::of_code(shape.code()), shape);
  EXPECT_TRUE(choose_kernel(shape, target, {})->spec.paired_tiles);
  EXPECT_THAT(describe(*choose_kernel(shape, target, {})), HasSubstr("two query tiles a workgroup"));
  EXPECT_FALSE(choose_kernel(shape, target, {.pins = "tiles=single"})->spec.paired_tiles);
  EXPECT_FALSE(choose_kernel(shape, target, {.pins = "pipeline=generic"})->spec.paired_tiles);
  shape.paired_tiles = false;
  EXPECT_TRUE(choose_kernel(shape, target, {.pins = "tiles=paired"})->spec.paired_tiles);
  shape.mask = attention_forward::Mask::none;
  EXPECT_THAT(choose_kernel(shape, target, {.pins = "tiles=paired"}).error().detail,
              HasSubstr("accepted: pipeline=dualwave causal"));
  shape.mask = attention_forward::Mask::causal;
  shape.paged = shape.whole_tiles = true;
  EXPECT_THAT(choose_kernel(shape, target, {.pins = "tiles=paired"}).error().detail,
              HasSubstr("accepted: keys without pages"));
}

// A grid for pairs: half of the tiles, the odd one alone.
TEST(Pairs, HalveTheGrid) {
  attention_forward::ForwardKernel spec{
      {.mask = attention_forward::Mask::causal},
      {.paired_tiles = true, .pipeline = Pipeline::dualwave, .tile_queries = 256, .target = "gfx950"}};
  for (const auto& [rows, places] : {std::pair{1U, 1U}, {256U, 1U}, {257U, 1U}, {513U, 2U}, {1024U, 2U}, {1025U, 3U}})
    EXPECT_EQ(attention_forward::launch_geometry(spec, *targets::find_target(spec.target), 1, 1, rows).grid_y, places)
        << rows;
}

}  // namespace
}  // namespace wavejit::tests
