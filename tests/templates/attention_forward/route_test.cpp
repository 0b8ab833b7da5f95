// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Routes: a pure function of shape, target and toggles.
#include "templates/attention_forward/call/route.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <thread>
#include <vector>

#include "targets/targets.h"

namespace wavejit::tests {
namespace {

using ::testing::HasSubstr;
using namespace attention_forward;

const targets::Target& target(const char* name) { return *targets::find_target(name); }
constexpr AttentionShape shape = {{.dtype = DataType::bf16, .mask = Mask::causal, .lse = true}};

Toggles pinned(Pipeline pipeline) { return {.pins = "pipeline=" + std::string(to_text(pipeline))}; }

std::vector<Refusal> others(const char* name, const AttentionShape& of = shape, const Toggles& toggles = {}) {
  const auto route = choose_kernel(of, target(name), toggles);
  return route ? why_not_others(of, target(name), toggles, *route) : std::vector<Refusal>();
}

TEST(Route, SaysWhatItChoseAndWhyNotTheOther) {
  const auto cdna4 = choose_kernel(shape, target("gfx950"), {});
  ASSERT_TRUE(cdna4);
  EXPECT_EQ(cdna4->spec.output_store, OutputStore::permlane);
  const std::vector<Refusal> not_on_cdna4 = others("gfx950");
  ASSERT_EQ(not_on_cdna4.size(), 3U);
  EXPECT_THAT(not_on_cdna4[0].kernel, HasSubstr("dualwave 256x64"));
  EXPECT_THAT(not_on_cdna4[0].reason, HasSubstr("queries of 256 rows and more"));
  EXPECT_THAT(not_on_cdna4[1].kernel, HasSubstr("interleaved 128x64"));
  EXPECT_THAT(not_on_cdna4[1].reason, HasSubstr("gfx950 fills LDS by 16-byte DMA"));
  EXPECT_THAT(not_on_cdna4[2].kernel, HasSubstr("scalar"));
  EXPECT_THAT(not_on_cdna4[2].reason, HasSubstr("preferred"));
  const auto cdna3 = choose_kernel(shape, target("gfx942"), {});
  ASSERT_TRUE(cdna3);
  EXPECT_EQ(cdna3->spec.output_store, OutputStore::scalar);
  const std::vector<Refusal> not_on_cdna3 = others("gfx942");
  ASSERT_EQ(not_on_cdna3.size(), 3U);
  EXPECT_THAT(not_on_cdna3[0].kernel, HasSubstr("generic 128x64"));
  EXPECT_THAT(not_on_cdna3[0].reason, HasSubstr("interleaved is preferred"));
  EXPECT_THAT(not_on_cdna3[1].reason, HasSubstr("transpose reads of LDS and 16-byte LDS DMA"));
  EXPECT_THAT(not_on_cdna3[2].reason, HasSubstr("v_permlane32_swap"));
}

// Kinds of pages share bits of a code, since a page is of one kind.
TEST(Route, EveryKindOfPagesHasItsOwnCode) {
  std::set<std::uint64_t> codes;
  std::vector<AttentionShape> kinds(5, shape);
  for (std::size_t i = 1; i < kinds.size(); ++i) kinds[i].paged = true;
  kinds[2].whole_tiles = kinds[3].single_keys = kinds[4].vectorised = true;
  for (const AttentionShape& kind : kinds) {
    AttentionShape padded = kind;  // its bit is the next one
    padded.first_keys = true;
    for (const AttentionShape& each : {kind, padded}) {
      EXPECT_EQ(AttentionShape::of_code(each.code()), each);
      codes.insert(each.code());
    }
  }
  EXPECT_EQ(codes.size(), 2 * kinds.size());
}

TEST(Route, ForcedStoresAreTakenOrRefusedNeverReplaced) {
  const auto scalar = choose_kernel(shape, target("gfx950"), {.ways = "o_store=scalar"});
  ASSERT_TRUE(scalar);
  EXPECT_EQ(scalar->spec.output_store, OutputStore::scalar);
  EXPECT_THAT(others("gfx950", shape, {.ways = "o_store=scalar"})[2].reason, HasSubstr("was asked for"));
  const auto impossible = choose_kernel(shape, target("gfx942"), {.ways = "o_store=permlane"});
  ASSERT_FALSE(impossible);
  EXPECT_EQ(impossible.error().status, WAVEJIT_UNSUPPORTED);
  EXPECT_THAT(impossible.error().detail, HasSubstr("gfx942"));
  EXPECT_THAT(impossible.error().detail, HasSubstr("accepted: auto, scalar"));
}

TEST(Route, TakesDualWaveForLongQueriesWhereTheTargetCan) {
  AttentionShape longer = shape;
  longer.query_rows = QueryRows::more;
  EXPECT_NE(longer.code(), shape.code());
  const auto cdna4 = choose_kernel(longer, target("gfx950"), {});
  ASSERT_TRUE(cdna4);
  EXPECT_EQ(cdna4->spec.pipeline, Pipeline::dualwave);
  EXPECT_EQ(cdna4->spec.tile_queries, 256);
  EXPECT_EQ(cdna4->resources.threads, 512);
  const std::vector<Refusal> not_on_cdna4 = others("gfx950", longer);
  EXPECT_THAT(not_on_cdna4[0].kernel, HasSubstr("generic 128x64"));
  EXPECT_THAT(not_on_cdna4[0].reason, HasSubstr("dualwave is preferred"));
}

TEST(Route, TakesInterleavedForEveryLengthWhereTilesPassThroughRegisters) {
  for (const QueryRows rows : attention_forward::all_query_rows) {
    AttentionShape each = shape;
    each.query_rows = rows;
    const auto cdna3 = choose_kernel(each, target("gfx942"), {});
    ASSERT_TRUE(cdna3);
    EXPECT_EQ(cdna3->spec.pipeline, Pipeline::interleaved);
    EXPECT_EQ(cdna3->spec.tile_queries, 128);
  }
  const auto impossible = choose_kernel(shape, target("gfx950"), {.pins = "pipeline=interleaved"});
  ASSERT_FALSE(impossible);
  EXPECT_THAT(impossible.error().detail, HasSubstr("accepted: auto, generic, dualwave"));
}

TEST(Route, ForcedPipelinesAreTakenOrRefusedNeverReplaced) {
  for (const Pipeline forced : {Pipeline::generic, Pipeline::dualwave}) {
    for (const QueryRows rows : attention_forward::all_query_rows) {
      AttentionShape each = shape;
      each.query_rows = rows;
      const auto route = choose_kernel(each, target("gfx950"), pinned(forced));
      ASSERT_TRUE(route);
      EXPECT_EQ(route->spec.pipeline, forced);
      EXPECT_THAT(others("gfx950", each, pinned(forced))[0].reason,
                  HasSubstr("was asked for; accepted here too: auto"));
    }
  }
  const auto impossible = choose_kernel(shape, target("gfx942"), {.pins = "pipeline=dualwave"});
  ASSERT_FALSE(impossible);
  EXPECT_EQ(impossible.error().status, WAVEJIT_UNSUPPORTED);
  EXPECT_THAT(impossible.error().detail, HasSubstr("accepted: auto, generic, interleaved"));
}

TEST(Route, PagesOfWholeTilesAreOfThePipelinesThatLookThemUp) {
  AttentionShape paged = shape;
  paged.query_rows = QueryRows::more;
  paged.paged = true;
  for (const auto& [name, fast] :
       {std::pair{"gfx950", Pipeline::dualwave}, std::pair{"gfx942", Pipeline::interleaved}}) {
    const auto spec_of = [&](const AttentionShape& of, const Toggles& toggles) {
      return choose_kernel(of, target(name), toggles).value().spec;
    };
    const auto refusal = [&](const AttentionShape& of) {
      const auto route = choose_kernel(of, target(name), pinned(fast));
      return route ? std::string() : route.error().detail;
    };
    EXPECT_EQ(spec_of(paged, {}).pipeline, fast);
    EXPECT_EQ(refusal(paged), "");
    AttentionShape vectorised = paged;
    vectorised.vectorised = true;
    EXPECT_EQ(spec_of(vectorised, {}).pipeline, Pipeline::generic);
    EXPECT_THAT(refusal(vectorised), HasSubstr("page_layout=vectorised has no kernel with pipeline="));
    AttentionShape whole = paged;
    whole.whole_tiles = true;
    EXPECT_NE(whole.code(), paged.code());
    EXPECT_EQ(AttentionShape::of_code(whole.code()), whole);
    EXPECT_EQ(spec_of(whole, {}).pipeline, fast);
    EXPECT_TRUE(spec_of(whole, {}).whole_tiles);
    // One kernel of the generic pipeline for both.
    EXPECT_EQ(to_text(spec_of(whole, {.pins = "pipeline=generic"})),
              to_text(spec_of(paged, {.pins = "pipeline=generic"})));
    for (const auto& by_key : {&AttentionShape::first_keys, &AttentionShape::single_keys}) {
      AttentionShape each = paged;
      each.*by_key = true;
      EXPECT_EQ(spec_of(each, {}).pipeline, Pipeline::generic);
      EXPECT_THAT(refusal(each), HasSubstr("a key that is looked up by itself"));
    }
  }
}

TEST(Route, VectorisedPagesAreOfTheGenericPipeline) {
  AttentionShape paged = shape;
  paged.query_rows = QueryRows::more;
  paged.paged = true;
  paged.vectorised = true;
  for (const auto& [name, fast] :
       {std::pair{"gfx950", Pipeline::dualwave}, std::pair{"gfx942", Pipeline::interleaved}}) {
    const auto chosen = choose_kernel(paged, target(name), {});
    ASSERT_TRUE(chosen);
    EXPECT_THAT(to_text(chosen->spec), HasSubstr(" paged vectorised pipeline=generic "));
    const auto forced = choose_kernel(paged, target(name), pinned(fast));
    ASSERT_FALSE(forced);
    EXPECT_THAT(forced.error().detail, HasSubstr("page_layout=vectorised has no kernel with pipeline="));
    for (const auto& no : {&AttentionShape::first_keys, &AttentionShape::single_keys}) {
      AttentionShape each = paged;
      each.*no = true;
      EXPECT_THAT(choose_kernel(each, target(name), {}).error().detail,
                  HasSubstr("has no kernel beside page_layout=vectorised"));
    }
  }
}

TEST(Route, TogglesAreInTheKeyOfTheirPipelineOnly) {
  const Toggles off = {.pins = "pipeline=dualwave", .ways = "stagger=off setprio=off"};
  EXPECT_THAT(to_text(choose_kernel(shape, target("gfx950"), off)->spec), HasSubstr(" stagger=off setprio=off "));
  Toggles generic = off;
  generic.pins = "pipeline=generic";
  EXPECT_EQ(choose_kernel(shape, target("gfx950"), generic)->spec,
            choose_kernel(shape, target("gfx950"), {.pins = "pipeline=generic"})->spec);
}

TEST(Route, WhatADeveloperPinsIsTakenOrRefusedAndInTheKey) {
  AttentionShape longer = shape;
  longer.query_rows = QueryRows::more;
  const auto standard = choose_kernel(longer, target("gfx950"), {});
  const auto early = choose_kernel(longer, target("gfx950"), {.pins = "ladder=early"});
  ASSERT_TRUE(standard && early);
  EXPECT_THAT(to_text(early->spec), HasSubstr(" pipeline=dualwave tile=256x64 o_store=permlane ladder=early target="));
  EXPECT_NE(to_text(early->spec), to_text(standard->spec));
  // The standard one is what kernels have anyway, and has no word.
  EXPECT_EQ(choose_kernel(longer, target("gfx950"), {.pins = "ladder=standard"})->spec, standard->spec);

  const Toggles small = {.pins = "pipeline=generic tile_queries=64"};
  EXPECT_THAT(to_text(choose_kernel(longer, target("gfx950"), small)->spec), HasSubstr(" tile=64x64 "));
  // Nothing else is taken in the place of what cannot be.
  EXPECT_THAT(choose_kernel(longer, target("gfx950"), {.pins = "tile_queries=64"}).error().detail,
              HasSubstr("pipeline=dualwave on gfx950; accepted: 256"));
  EXPECT_THAT(choose_kernel(longer, target("gfx942"), {.pins = "ladder=even"}).error().detail,
              HasSubstr("ladder=even is no ladder of pipeline=interleaved; accepted: standard"));
}

TEST(Route, TheSpecHoldsWhatChangesCode) {
  for (const auto lowering : {attention_forward::Lowering::llvm, attention_forward::Lowering::comgr}) {
    for (const AttentionShape& each : supported_shapes(target("gfx950"), {})) {
      const auto route = choose_kernel(each, target("gfx950"), {.lowering = lowering});
      ASSERT_TRUE(route);
      EXPECT_EQ(route->spec.dtype, each.dtype);
      EXPECT_EQ(route->spec.mask, each.mask);
      EXPECT_EQ(route->spec.lse, each.lse);
      EXPECT_EQ(route->spec.head_dim_qk, each.head_dim_qk);
      EXPECT_EQ(route->spec.lowering, lowering);
      EXPECT_EQ(route->spec.target, "gfx950");
      EXPECT_EQ(attention_forward::parse_spec(to_text(route->spec)), route->spec);
    }
  }
}

TEST(Route, SupportsWhatTheIssueAsksFor) {
  for (const char* name : {"gfx942", "gfx950"}) {
    const auto shapes = supported_shapes(target(name), {});
    EXPECT_EQ(shapes.size(), 32U) << "2 dtypes, 4 head dims, 2 masks, with and without LSE";
    for (const int head_dim : {64, 128}) {
      for (const auto dtype : {DataType::bf16, DataType::fp16}) {
        const AttentionShape wanted = {
            {.dtype = dtype, .head_dim_qk = head_dim, .head_dim_v = head_dim, .mask = Mask::causal}};
        EXPECT_NE(std::ranges::find(shapes, wanted), shapes.end());
      }
    }
  }
  EXPECT_TRUE(supported_shapes(target("gfx942"), {.ways = "o_store=permlane"}).empty());
}

TEST(Route, UnsupportedHeadDimsSayWhatIsAccepted) {
  for (const int head_dim : {1, 20, 100, 264, 65535}) {
    const auto route = choose_kernel({{.dtype = DataType::fp16, .head_dim_qk = head_dim, .head_dim_v = head_dim}},
                                     target("gfx950"), {});
    ASSERT_FALSE(route);
    EXPECT_EQ(route.error().status, WAVEJIT_UNSUPPORTED);
    EXPECT_THAT(route.error().detail, HasSubstr("accepted: 64, 128, 192/128, 256"));
  }
}

TEST(Route, SameQuestionSameAnswerOnEveryThread) {
  const std::string once = to_text(choose_kernel(shape, target("gfx950"), {})->spec);
  std::vector<std::jthread> threads;
  threads.reserve(4);
  std::atomic<int> different{0};
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 200; ++round)
        if (to_text(choose_kernel(shape, target("gfx950"), {})->spec) != once) ++different;
    });
  }
  threads.clear();
  EXPECT_EQ(different, 0);
}

}  // namespace
}  // namespace wavejit::tests
