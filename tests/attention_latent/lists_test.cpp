// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Keys that a list of each query names: against float64, and bit against bit with walks over all keys.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <string>
#include <vector>

#include "attention/schedules.h"
#include "attention_latent/latent_run.h"
#include "templates/attention_latent/program/list_invariance.h"

namespace wavejit::tests {
namespace {

using ::testing::HasSubstr;

class LatentLists : public ::testing::TestWithParam<const char*> {
 protected:
  LatentOutput run(const LatentArrays& arrays, const ChangeLatentCall& change = {}) {
    LatentOutput output = run_latent(engine_.get(), arrays, change);
    EXPECT_EQ(output.status, WAVEJIT_OK) << output.detail << output.reports;
    EXPECT_EQ(output.reports, "");
    EXPECT_TRUE(output.fence_intact) << "something outside O or LSE was written";
    return output;
  }
  LatentOutput run(const std::string& words) { return run(latent_arrays(words)); }

  Engine engine_{GetParam()};
};

// A list of all keys in their order has the bits of no list while it is one chunk.
TEST_P(LatentLists, OfAllKeysHaveTheBitsOfNone) {
  for (const char* words : {"bf16 b2 q1 k256 h16 d576/512 lse", "fp16 b2 q3 k199 h40 d576/512 causal lse",
                            "bf16 b2 q2 k256 h12 d320/256 causal lse layout=paged:64 k_lengths=256,70"})
    EXPECT_EQ(run(std::string(words) + " top_k=256"), run(words)) << words;
}

// A dense kernel's walk with chunks of 256 (templates/attention/program/list_laboratory.h).
TEST_P(LatentLists, HaveTheBitsOfADenseWalkWithChunksOf256) {
  for (const char* rest : {"bf16 k1900 top_k=1100:mixed", "bf16 k700 top_k=700", "fp16 k600 top_k=513:mixed"}) {
    SCOPED_TRACE(rest);
    LatentArrays listed = latent_arrays(std::string(rest) + " b1 q1 h16 d576/512 lse");
    listed.lists.counts.clear();
    const auto batch = attention_latent::program::listed_queries(listed);
    const auto keys = walked_keys(batch, 0, 0);
    listed.q = batch.q;
    listed.k = batch.k;
    LatentArrays walk =
        latent_arrays(std::string(rest, 4) + " k" + std::to_string(keys.inner) + " b1 q1 h16 d576/512 lse");
    walk.q = batch.q;
    walk.k = keys.k;
    const LatentOutput all = run(walk);
    EXPECT_EQ(run(listed), all);
    EXPECT_EQ(run(listed, [](auto& call) { call.split.splits = 1; }), all);
    EXPECT_EQ(run(listed, [](auto& call) { call.split.splits = 2; }), all);
  }
}

TEST_P(LatentLists, ShowNoPagesNoSlotsAndNoSplits) {
  const std::string words = "bf16 b2 q2 k700 h12 d576/512 lse top_k=600";
  const LatentOutput dense = run(words + " splits=1");
  for (const char* rest :
       {" splits=2", " splits=3", " layout=paged:1", " layout=paged:16", " layout=paged:64", " apart"})
    EXPECT_EQ(run(words + rest), dense) << rest;
  EXPECT_EQ(run("bf16 b2 q2 k700 h12 d576/512 lse top_k=600:slots"), dense);
  EXPECT_EQ(run("bf16 b2 q2 k700 h12 d576/512 lse top_k=600:slots layout=paged:64"), dense);
}

// Pages that other layers' stand between: a slot is no row of one tensor.
TEST_P(LatentLists, NameSlotsOfPagesThatStandApart) {
  for (const std::int64_t page : {1, 32}) {
    const std::string words =
        "bf16 b2 q1 k96 h12 d576/512 lse top_k=70:slots:mixed layout=paged:" + std::to_string(page);
    LatentArrays arrays = latent_arrays(words);
    const LatentOutput together = run(arrays);
    const auto of_page = static_cast<std::size_t>(page * (arrays.latent() + arrays.rope()));
    std::vector<std::uint16_t> apart(arrays.k.size() * 3, 0x7FFF);
    for (std::size_t first = 0; first < arrays.k.size(); first += of_page)
      std::copy_n(arrays.k.begin() + static_cast<std::ptrdiff_t>(first), of_page,
                  apart.begin() + static_cast<std::ptrdiff_t>(first * 3));
    arrays.k = apart;
    EXPECT_EQ(run(arrays, [](auto& call) { call.k.strides[0] *= 3; }), together) << page;
  }
}

// An offset that wraps in 32 bits would read something else. Nothing stands before the keys that lists name.
TEST_P(LatentLists, NameSlotsBeyond4GiB) {
  LatentArrays arrays = latent_arrays("bf16 b1 q1 k96 h12 d576/512 lse top_k=70:slots");
  const LatentOutput near = run(arrays);
  constexpr std::int64_t stride = 584;  // with a gap: what stands there may be anything, O too
  constexpr std::int64_t pages = 42000;
  std::vector<std::uint16_t> rows;
  for (std::ptrdiff_t key = 0; key < 96; ++key) {
    rows.insert(rows.end(), arrays.k.begin() + (key * 576), arrays.k.begin() + ((key + 1) * 576));
    rows.resize(rows.size() + static_cast<std::size_t>(stride - 576), 0x7FFF);
  }
  arrays.k = rows;
  for (std::int32_t& entry : arrays.lists.indices)
    if (entry >= 0) entry += static_cast<std::int32_t>(pages * 96);
  const LatentOutput far = run(arrays, [](auto& call) {
    call.k.data = static_cast<std::uint16_t*>(call.k.data) - (pages * 96 * stride);
    call.k.sizes[0] = pages + 1;
    call.k.strides[1] = call.k.strides[2] = stride;
    call.k.strides[0] = 96 * stride;
  });
  EXPECT_EQ(far, near);
}

// An engine's cache before its first key, or a dummy run: pages of no keys have no slot that an entry could name.
TEST_P(LatentLists, OverACacheWithoutSlotsSeeNothing) {
  const auto sees_nothing = [](const LatentOutput& output) {
    const auto is = [](auto wanted) { return [wanted](auto bits) { return bits == wanted; }; };
    constexpr std::uint32_t minus_infinity = 0xFF800000;
    return std::ranges::all_of(output.o, is(std::uint16_t{0})) && std::ranges::all_of(output.lse, is(minus_infinity));
  };
  const LatentArrays one = latent_arrays("bf16 b2 q2 k96 h12 d576/512 lse top_k=70:slots");
  EXPECT_TRUE(sees_nothing(run(one, [](auto& call) { call.k.sizes[1] = 0; })));
  EXPECT_TRUE(sees_nothing(run(one, [](auto& call) {
    call.k.sizes[1] = 0;
    call.k.data = nullptr;  // what frameworks have in a tensor without elements
  })));
  const LatentArrays two = latent_arrays("bf16 b2 q1 k96 h12 d576/512 lse top_k=300:slots second_top_k=70 sink");
  const LatentOutput with_sinks = run(two, [](auto& call) {
    call.k.sizes[1] = call.second_k.sizes[1] = 0;
    call.second_k.data = nullptr;
  });
  EXPECT_TRUE(std::ranges::all_of(with_sinks.o, [](std::uint16_t bits) { return bits == 0; }));
  for (std::size_t row = 0; row < with_sinks.lse.size(); ++row)
    EXPECT_EQ(with_sinks.lse[row], std::bit_cast<std::uint32_t>(two.sinks[row % 12])) << row;
}

TEST_P(LatentLists, ShowNoOtherQueriesAndHeads) {
  const LatentArrays batch = latent_arrays("bf16 b2 q3 k400 h48 d576/512 lse top_k=300:mixed");
  const LatentOutput all = run(batch);
  const LatentOutput one = run(batch, [&](wavejit_attention_latent_arguments& call) {
    constexpr std::int64_t sequence = 1;
    constexpr std::int64_t query = 2;
    constexpr std::int64_t first_head = 20;
    const std::int64_t token = (sequence * 3) + query;
    call.q.data =
        static_cast<std::uint16_t*>(call.q.data) + (token * call.q.strides[1]) + (first_head * call.q.strides[2]);
    call.o.data =
        static_cast<std::uint16_t*>(call.o.data) + (token * call.o.strides[1]) + (first_head * call.o.strides[2]);
    call.k.data = static_cast<std::uint16_t*>(call.k.data) + (sequence * call.k.strides[0]);
    call.lse.data = static_cast<float*>(call.lse.data) + (sequence * call.lse.strides[0]) +
                    (first_head * call.lse.strides[1]) + query;
    call.key_list.indices += token * call.key_list.top_k;
    call.key_list.counts += token;
    for (wavejit_tensor* tensor : {&call.q, &call.o, &call.k, &call.lse}) tensor->sizes[0] = 1;
    call.q.sizes[1] = call.o.sizes[1] = call.lse.sizes[2] = 1;
    call.q.sizes[2] = call.o.sizes[2] = call.lse.sizes[1] = 7;
  });
  for (std::int64_t head = 20; head < 27; ++head)
    ASSERT_EQ(row_of(batch, one, 1, 2, head), row_of(batch, all, 1, 2, head)) << head;
}

// The row of an indexer's list may be longer than the list.
TEST_P(LatentLists, MayStandInWiderRows) {
  const LatentArrays arrays = latent_arrays("bf16 b2 q1 k200 h16 d576/512 lse top_k=100");
  LatentArrays wide = arrays;
  wide.lists.indices.clear();
  for (std::size_t token = 0; token < 2; ++token) {
    const auto first = arrays.lists.indices.begin() + static_cast<std::ptrdiff_t>(token * 100);
    wide.lists.indices.insert(wide.lists.indices.end(), first, first + 100);
    wide.lists.indices.insert(wide.lists.indices.end(), 28, 3);
  }
  EXPECT_EQ(run(wide, [](auto& call) { call.key_list.row_stride = 128; }), run(arrays));
}

INSTANTIATE_TEST_SUITE_P(Targets, LatentLists, ::testing::Values("gfx942", "gfx950"),
                         [](const auto& parameter) { return std::string(parameter.param); });

struct Refused {
  const char* words;
  void (*change)(wavejit_attention_latent_arguments& call);
  const char* detail;  // a part of it
};
constexpr const char* listed = "bf16 b2 q1 k70 h16 d576/512 top_k=40:mixed";
constexpr const char* slots = "bf16 b2 q1 k70 h16 d576/512 top_k=40:slots";
const Refused refusals[] = {
    {listed, [](auto& call) { call.key_list.top_k = 0; }, "top_k = 0; accepted: the entries of a list, 1 to 1048576"},
    {listed, [](auto& call) { call.key_list.top_k = -1; }, "top_k = -1"},
    {listed, [](auto& call) { call.key_list.row_stride = 39; },
     "key_indices_row_stride = 39; accepted: 0, or top_k = 40"},
    {listed, [](auto& call) { call.key_list.slots = 2; }, "key_slots = 2"},
    {listed, [](auto& call) { call.key_list.indices = nullptr; }, "null without key_indices"},
    {listed,
     [](auto& call) {
       call.key_list.indices =
           reinterpret_cast<const std::int32_t*>(reinterpret_cast<std::uintptr_t>(call.key_list.indices) + 2);
     },
     "key_indices = "},
    {slots, [](auto& call) { call.mask.bits = WAVEJIT_MASK_CAUSAL; }, "mask = 1; accepted: 0 beside key_slots"},
    {slots, [](auto& call) { call.pages.block_table = call.key_list.indices; }, "block_table = "},
    {slots, [](auto& call) { call.sequences.key_lengths = call.key_list.indices; }, "key_lengths = "},
    {slots,
     [](auto& call) {
       call.k.sizes[1] = 40;
       call.k.strides[0] = 70 * 576;
     },
     "k.sizes[1] (page size) = 40"},
};

TEST(LatentListsInterface, RefusesByField) {
  Engine engine{"gfx950"};
  for (const Refused& refused : refusals) {
    const LatentOutput output = run_latent(engine.get(), latent_arrays(refused.words), refused.change);
    EXPECT_EQ(output.status, WAVEJIT_INVALID_ARGUMENT) << refused.detail << ": " << output.detail;
    EXPECT_THAT(output.detail, HasSubstr(refused.detail));
  }
}

// What only the device knows is taken as it is, and told with the flag that reads it.
TEST(LatentListsInterface, TellsOfCountsBeyondTheList) {
  Engine engine{"gfx950"};
  LatentArrays arrays = latent_arrays(listed);
  arrays.lists.counts = {40, 41};
  const LatentOutput cut = run_latent(engine.get(), arrays);
  EXPECT_EQ(cut.status, WAVEJIT_OK) << cut.detail;
  EXPECT_EQ(cut.reports, "");
  const LatentOutput told =
      run_latent(engine.get(), arrays, [](auto& call) { call.head.flags |= WAVEJIT_CHECK_LENGTHS; });
  EXPECT_EQ(told.status, WAVEJIT_INVALID_ARGUMENT);
  EXPECT_THAT(told.detail, HasSubstr("key_counts[1] = 41; accepted: 0 to 40"));
  arrays.lists.counts = {40, 40};
  EXPECT_EQ(run_latent(engine.get(), arrays), cut);
}

TEST(LatentListsInterface, DescribeACall) {
  Engine engine{"gfx950"};
  const std::string words = "bf16 b2 q3 k150 h12 d576/512 causal lse layout=paged:64";
  std::string line;
  run_latent(engine.get(), latent_arrays(words + " top_k=100:mixed k_lengths=150,20"),
             [&](wavejit_attention_latent_arguments& call) {
               const auto keep = [](void* context, const char* text) { *static_cast<std::string*>(context) = text; };
               EXPECT_EQ(wavejit_call_describe(engine.get(), &call.head, keep, &line), WAVEJIT_OK);
               EXPECT_EQ(wavejit_call_supported(engine.get(), &call.head), WAVEJIT_OK);
               call.split.splits = -1;  // not launched
             });
  EXPECT_THAT(line, HasSubstr(words));
  EXPECT_THAT(line, HasSubstr(" top_k=100"));
  EXPECT_EQ(wavejit_describe(line.c_str(), [](void*, const char*) {}, nullptr), WAVEJIT_OK) << line;
}

}  // namespace
}  // namespace wavejit::tests
