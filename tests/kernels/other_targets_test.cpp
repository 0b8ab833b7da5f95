// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Targets that not all families have kernels for: what the compiler makes of those that there are. Their specs are the
// lines of golden/other_targets.txt, which golden_test.cpp compares.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string_view>

#include "kernels/facts.h"
#include "kernels/golden_tables.h"
#include "targets/targets.h"
#include "templates/attention_backward/kernel/spec.h"
#include "templates/attention_forward/kernel/parameters.h"
#include "templates/cache_append/kernel/spec.h"

namespace wavejit::tests {
namespace {

using ::testing::HasSubstr;

TEST(GoldenOtherTargets, HaveALineEach) {
  std::set<std::string_view> seen;
  for (const GoldenTable& table : golden_tables())
    if (table.name == "other_targets")
      for (const families::KernelSpec& spec : table.specs()) seen.insert(targets::find_target(spec.target())->id);
  for (const targets::Target& target : targets::all_targets()) EXPECT_EQ(seen.contains(target.id), !target.complete);
}

// No wave of 32 lanes may have more than 256 registers, and 240 leave three workgroups of eight on four SIMDs.
TEST(GoldenOtherTargets, WavesOf32StayBelowTheCliff) {
  for (const int head_dim : {64, 128}) {
    attention_forward::ForwardKernel spec;
    spec.head_dim_qk = spec.head_dim_v = head_dim;
    spec.target = "gfx1201";
    const CompiledKernel kernel = compile_kernel(spec);
    ASSERT_EQ(kernel.error, "");
    EXPECT_LE(kernel.facts.vgprs, 240U);
    EXPECT_EQ(kernel.facts.vgpr_spills, 0U);
    EXPECT_EQ(kernel.facts.threads, 256U);
    // Tiles of rows with 16 bytes behind each: of K as many as keys, of V as many as dims.
    EXPECT_EQ(kernel.facts.lds_bytes, (64U * (2U * static_cast<unsigned>(head_dim) + 16U)) +
                                          (static_cast<unsigned>(head_dim) * (2U * 64U + 16U)));
    // A tile of 64 keys: K by Q in blocks of 16 keys and 16 dims, and as many of V by P.
    EXPECT_EQ(kernel.facts.matrix_instructions, 2U * 4U * static_cast<unsigned>(head_dim) / 16U);
  }
}

TEST(GoldenOtherTargets, WordsWithoutAKernelAreRefusedByName) {
  const auto refusal = [](auto change) {
    attention_forward::ForwardKernel spec;
    spec.target = "gfx1201";
    change(spec);
    return refusal_of(spec).value_or("");
  };
  using Spec = attention_forward::ForwardKernel;
  EXPECT_EQ(refusal([](Spec&) {}), "");
  EXPECT_THAT(refusal([](Spec& spec) { spec.head_dim_qk = spec.head_dim_v = 256; }),
              HasSubstr("head dim 256 leaves too few registers"));
  EXPECT_THAT(refusal([](Spec& spec) { spec.head_dim_qk = spec.head_dim_v = 136; }),
              HasSubstr("head dim 136 leaves too few registers"));
  EXPECT_EQ(refusal([](Spec& spec) { spec.head_dim_qk = spec.head_dim_v = 96; }), "");
  EXPECT_EQ(refusal([](Spec& spec) { spec.head_dim_qk = 192; }), "");
  EXPECT_EQ(refusal([](Spec& spec) { spec.cache = attention_forward::CacheType::e4m3; }), "");
  EXPECT_EQ(refusal([](Spec& spec) { spec.paged = spec.single_keys = true; }), "");
  const auto scales_of_tokens = [](Spec& spec) {
    spec.cache = attention_forward::CacheType::e4m3;
    spec.token_scales = spec.paged = spec.single_keys = true;
  };
  EXPECT_EQ(refusal(scales_of_tokens), "");
  EXPECT_EQ(refusal([&](Spec& spec) {
              scales_of_tokens(spec);
              spec.modifiers.add(attention_forward::Modifier::softcap);
            }),
            "")
      << "tiles come late";
  EXPECT_THAT(refusal([](Spec& spec) { spec.listed = true; }), HasSubstr("a list of keys has no kernel"));
  EXPECT_THAT(refusal([](Spec& spec) { spec.integers = true; }), HasSubstr("qk=i8"));
  EXPECT_THAT(refusal([](Spec& spec) { spec.pipeline = attention_forward::Pipeline::interleaved; }),
              HasSubstr("nothing runs beside them"));
  EXPECT_THAT(refusal([](Spec& spec) {
                spec.pipeline = attention_forward::Pipeline::dualwave;
                spec.tile_queries = 256;
              }),
              HasSubstr("16-byte LDS DMA"));
}

// Gradients of waves with 256 registers: as many workgroups as their walks are made for, and nothing spilled.
TEST(GoldenOtherTargets, GradientsOfWavesOf32FitTheirRegisters) {
  namespace backward = attention_backward;
  const auto facts_of = [](const auto& spec) {
    const CompiledKernel kernel = compile_kernel(spec);
    EXPECT_EQ(kernel.error, "") << to_text(spec);
    EXPECT_EQ(kernel.facts.vgpr_spills, 0U) << to_text(spec);
    EXPECT_EQ(kernel.facts.threads, 256U);
    return kernel.facts;
  };
  for (const int head_dim : {64, 128}) {
    backward::KernelWords words;
    words.head_dim_qk = words.head_dim_v = head_dim;
    words.target = "gfx1201";
    // S, dP and dQ of a step of 32 keys, twice, in blocks of 16 keys and 16 dims.
    const auto blocks_of_32 = 2U * static_cast<unsigned>(head_dim) / 16U;
    const auto queries = facts_of(backward::QueryKernel{words});
    EXPECT_LE(queries.vgprs, head_dim == 64 ? 192U : 240U);
    EXPECT_EQ(queries.matrix_instructions, 2U * 3U * blocks_of_32);
    // S, dP, dV and dK; of 128 dims S and dV, then S, dP and dK.
    const auto keys = facts_of(backward::KeyKernel{words});
    EXPECT_LE(keys.vgprs, 240U);
    EXPECT_EQ(keys.matrix_instructions, (head_dim == 64 ? 4U : 5U) * blocks_of_32);
  }
}

TEST(GoldenOtherTargets, GradientsWithoutAKernelAreRefusedByName) {
  namespace backward = attention_backward;
  backward::KeyKernel keys;
  keys.target = "gfx1201";
  EXPECT_EQ(refusal_of(keys).value_or(""), "");
  keys.shared = true;
  EXPECT_EQ(refusal_of(keys).value_or(""), "keys=shared: waves of gfx1201 own 16 keys as they are; accepted: none");
  keys.shared = false;
  keys.blocks = 2;
  EXPECT_EQ(refusal_of(keys).value_or(""), "blocks=2: waves of gfx1201 have 256 registers; accepted: 1");
  keys.blocks = 1;
  keys.head_dim_qk = keys.head_dim_v = 256;
  EXPECT_EQ(refusal_of(keys).value_or(""),
            "d256 takes more than the 256 registers of a wave of gfx1201; accepted: d64, d128");
}

// Rows of latent attention have 512 dims, which are 64 lanes'.
TEST(GoldenOtherTargets, RowsOfLatentAttentionAreRefusedByName) {
  cache_append::AppendKernel spec;
  spec.target = "gfx1201";
  spec.cache = attention::DataType::e4m3;
  spec.scales = cache_append::Scales::heads;
  EXPECT_EQ(refusal_of(spec).value_or(""), "");
  for (const auto scales : {cache_append::Scales::tiles, cache_append::Scales::exponents}) {
    spec.scales = scales;
    EXPECT_THAT(refusal_of(spec).value_or(""), HasSubstr("has no kernel where waves have 32 lanes, as on gfx1201"));
  }
}

}  // namespace
}  // namespace wavejit::tests
