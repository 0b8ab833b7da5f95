// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which calls' waves share each chunk of keys, and that a line prepares what calls of other batches need.
#include "templates/attention_forward/call/shared_chunks.h"

#include <set>

#include "boards/board.h"
#include "families/call/family.h"
#include "runtime_fixture.h"
#include "templates/attention_forward/call/descriptor.h"
#include "templates/attention_forward/call/route.h"
#include "templates/attention_forward/call/splits.h"

namespace wavejit::tests {
namespace {

using ::testing::HasSubstr;

const families::Toggles automatic;

attention_forward::AttentionProblem problem(const std::string& words) {
  const auto parsed = attention_forward::parse_descriptor("attention_forward bf16 " + words);
  if (!parsed) throw std::runtime_error(parsed.error().detail);
  return attention_forward::problem_of(*parsed);
}
bool shares(const std::string& words, const char* product = "gfx950", const families::Toggles& toggles = automatic) {
  const boards::Board& target = *boards::find_product(product);
  const attention_forward::AttentionProblem one = problem(words);
  return kernel_shape(one, plan_splits(one, target, toggles), target, toggles).shared_chunks;
}

// 256 compute units.
TEST(SharedChunks, AreForNoMoreWorkgroupsThanComputeUnits) {
  EXPECT_TRUE(shares("b1 q1 k8192 h16/2 d128")) << "16 runs";
  EXPECT_TRUE(shares("b1 q1 k32768 h64/8 d128")) << "256";
  EXPECT_FALSE(shares("b2 q1 k32768 h64/8 d128")) << "512";
  EXPECT_TRUE(shares("b1 q1 k1024 h64/8 d64 causal")) << "whole keys";
  EXPECT_FALSE(shares("b64 q1 k1024 h64/8 d128"));
  EXPECT_TRUE(shares("b8 q1 k8192 h16/2 d128 layout=paged:16"));
  EXPECT_TRUE(shares("b1 q1 k65 h64/8 d128"));
  EXPECT_FALSE(shares("b1 q1 k64 h64/8 d128")) << "one tile";
  EXPECT_TRUE(shares("b1 q1 k2048 h16/2 d256"));
  boards::Board half = *boards::find_product("gfx950");
  half.compute_units /= 2;
  EXPECT_FALSE(shares_chunks(problem("b1 q1 k32768 h64/8 d128"), 32, half));
}

// 304 compute units, where keys pass through registers.
TEST(SharedChunks, AreForTilesThatPassThroughRegistersToo) {
  EXPECT_TRUE(shares("b1 q1 k8192 h16/2 d128", "gfx942"));
  EXPECT_TRUE(shares("b1 q1 k32768 h64/8 d128", "gfx942")) << "256";
  EXPECT_TRUE(shares("b1 q1 k2048 h16 d192/128", "gfx942"));
  EXPECT_FALSE(shares("b64 q1 k8192 h64/8 d128", "gfx942"));
}

// 512 runs of a chunk would give some of 304 compute units twice the work of others: there are 256 of two chunks. Where
// each of 256 units has two runs nothing is to be gained.
TEST(SharedChunks, FewerRunsWhereAnotherNumberLeavesUnitsHalfEmpty) {
  const auto runs = [](const std::string& words, const char* product, bool pinned = false) {
    families::Toggles toggles = automatic;
    if (pinned) toggles.pins = "pipeline=generic";
    return plan_splits(problem(words), *boards::find_product(product), toggles).runs;
  };
  for (const char* words : {"b32 q1 k8192 h16/2 d128", "b32 q1 k8192 h16/2 d128 layout=paged:16"}) {
    EXPECT_EQ(runs(words, "gfx942"), 4U) << words;
    EXPECT_TRUE(shares(words, "gfx942")) << words;
    EXPECT_EQ(runs(words, "gfx942", true), 8U) << words << ": a pinned kernel, whose waves do not share";
    EXPECT_EQ(runs(words, "gfx950"), 8U) << words;
  }
  EXPECT_EQ(runs("b1 q1 k8192 h16/2 d128", "gfx942"), 8U) << "units enough";
  EXPECT_EQ(runs("b1 q1 k131072 h64/8 d128", "gfx942"), 32U);
  EXPECT_EQ(runs("b64 q1 k131072 h64/8 d128 layout=paged:16", "gfx942"),
            runs("b64 q1 k131072 h64/8 d128 layout=paged:16", "gfx942", true))
      << "many rounds even out lengths";
}

TEST(SharedChunks, AreForFewRowsOfSixteenBits) {
  for (const char* words : {"b1 q200 k2048 h8 d128", "b1 q1 k2048 h16/2 d128 cache=e4m3",
                            "b1 q1 k2048 h16/2 d128 layout=paged:16:vectorised"})
    EXPECT_FALSE(shares(words)) << words;
  EXPECT_FALSE(shares("b1 q1 k8192 h16/2 d128", "gfx950", {.pins = "pipeline=generic"})) << "a pinned kernel";
  EXPECT_TRUE(shares("b1 q1 k8192 h16/2 d128", "gfx950", {.pins = "pipeline=generic chunk_waves=auto"}));
  EXPECT_EQ(attention_forward::describe_sharing(problem("b1 q1 k8192 h16/2 d128"), 8, *boards::find_product("gfx950")),
            "share each chunk: 16 workgroups for 256 compute units");
  EXPECT_EQ(attention_forward::describe_sharing(problem("b1 q1 k64 h16/2 d128"), 1, *boards::find_product("gfx950")),
            "walk chunks of their own: the keys are one tile of 64");
}

TEST(SharedChunks, SayWhyTheyAreNot) {
  const auto said = [](const std::string& words, const char* product) {
    return attention_forward::describe_sharing(problem(words), 1, *boards::find_product(product));
  };
  const std::string head = "walk chunks of their own: ";
  for (const char* product : {"gfx942", "gfx950"}) {
    EXPECT_EQ(said("b1 q1 k2048 h16/2 d128 cache=e4m3", product),
              head + "cache= has no kernel beside chunk_waves=; accepted: keys in 16 bits");
    EXPECT_EQ(said("b1 q1 k2048 h16/2 d128 layout=paged:16:vectorised", product),
              head + "page_layout=vectorised has no kernel beside chunk_waves=; accepted: pages of rows");
    EXPECT_EQ(
        said("b1 q1 k2048 h16/2 d96", product),
        head + "chunk_waves= has no kernel with head dim 96, which tiles pad; accepted: a wave with rows of its own");
    EXPECT_EQ(said("b1 q200 k2048 h8 d128", product), "") << "rows are too many";
    EXPECT_THAT(said("b1 q1 k2048 h16/2 d128 bias=1 layout=paged:16", product),
                HasSubstr("a bias has no kernel beside chunk_waves= on "));
  }
}

// A call whose words leave no registers for waves that share has another kernel, never none: on gfx942 local chunks
// with softcap or alibi of 192/128 dims had none.
TEST(SharedChunks, EveryCallOfFewRowsHasAKernel) {
  int asked = 0;
  for (const char* product : {"gfx942", "gfx950"}) {
    const boards::Board& target = *boards::find_product(product);
    for (const char* dims : {" d64", " d128", " d192/128"})
      for (const char* keys : {" k1000", " k9000"})
        for (const char* layout : {"", " layout=paged:16", " layout=paged:64"})
          for (const char* mask : {"", " causal", " window=700,0", " causal chunked=700", " causal causal_flags"})
            for (const char* modifiers : {"", " softcap=30", " alibi=h", " bias=1", " softcap=30 alibi=h", " q=fp32",
                                          " bias=1 bias_type=fp32"}) {
              const std::string words = std::string("b1 q1") + keys + " h8/1" + dims + mask + modifiers + layout;
              const auto one = problem(words);
              const auto route = choose_kernel(
                  kernel_shape(one, plan_splits(one, target, automatic), target, automatic), target, automatic);
              EXPECT_TRUE(route) << product << " " << words << ": " << (route ? "" : route.error().detail);
              ++asked;
            }
  }
  EXPECT_EQ(asked, 2 * 3 * 2 * 3 * 5 * 7);
}

TEST(SharedChunks, LinesReachBothKernels) {
  const boards::Board& target = *boards::find_product("gfx950");
  for (const char* line :
       {"attention_forward bf16 b1 q1 k8192 h16/2 d128", "attention_forward bf16 b64 q1 k512 h8 d64"}) {
    const auto problems = families::parse_problems(line);
    ASSERT_TRUE(problems) << line;
    std::set<bool> shared;
    for (const auto& each : *problems) {
      const auto shape = each->shape(target, automatic);
      ASSERT_TRUE(shape);
      shared.insert(
          shape->family->route(*shape, target, automatic)->kernels[0].spec.text().contains(" chunk_waves=4 "));
    }
    EXPECT_EQ(shared.size(), 2U) << line;
  }
}

TEST(SharedChunks, ArePinnedOrRefusedNeverReplaced) {
  const boards::Board& target = *boards::find_product("gfx950");
  attention_forward::AttentionShape shape;
  shape.set_rows({.rows = attention_forward::QueryRows::up_to_32, .packed_heads = true});
  shape.shared_chunks = true;
  EXPECT_EQ(attention_forward::AttentionShape::of_code(shape.code()), shape);
  EXPECT_THAT(describe(*choose_kernel(shape, target, automatic)), HasSubstr("4 waves, which share each chunk of keys"));
  EXPECT_EQ(choose_kernel(shape, target, {.pins = "chunk_waves=1"})->spec.chunk_waves, 0);
  shape.shared_chunks = false;
  const families::Toggles four = {.pins = "pipeline=generic chunk_waves=4"};
  EXPECT_EQ(choose_kernel(shape, target, four)->spec.chunk_waves, 4);
  EXPECT_THAT(choose_kernel(shape, target, {.pins = "pipeline=generic chunk_waves=3"}).error().detail,
              HasSubstr("chunk_waves=3 has no kernel for head dim 128; accepted: 4"));
  EXPECT_EQ(choose_kernel(shape, *boards::find_product("gfx942"), four)->spec.chunk_waves, 4);
  shape.cache = attention_forward::CacheType::e4m3;
  EXPECT_THAT(choose_kernel(shape, target, four).error().detail, HasSubstr("cache= has no kernel beside chunk_waves="));
}

}  // namespace
}  // namespace wavejit::tests
