// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Every field of a call of attention_merge that cannot be right is refused by its name; nothing is launched.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "templates/attention_merge/call/descriptor.h"
#include "wavejit/wavejit.h"

namespace wavejit::attention_merge {
namespace {

using ::testing::HasSubstr;

// Addresses of nothing: a check never looks there.
void* memory(std::uintptr_t at) { return reinterpret_cast<void*>(at << 32U); }  // NOLINT(performance-no-int-to-ptr)

wavejit_attention_merge_arguments good() {
  wavejit_attention_merge_arguments call{};
  call.head.size = sizeof call;
  call.head.family = WAVEJIT_ATTENTION_MERGE;
  for (std::uintptr_t part = 0; part < 2; ++part) {
    call.parts[part].o = wavejit_dense_tensor(memory(1 + part), WAVEJIT_BF16, 2, 100, 8, 128);
    call.parts[part].lse = wavejit_dense_tensor(memory(11 + part), WAVEJIT_FP32, 2, 8, 100, 1);
  }
  call.part_count = 2;
  call.o = wavejit_dense_tensor(memory(21), WAVEJIT_BF16, 2, 100, 8, 128);
  call.lse = wavejit_dense_tensor(memory(22), WAVEJIT_FP32, 2, 8, 100, 1);
  return call;
}

TEST(AttentionMergeRefusals, NamesTheField) {
  using Call = wavejit_attention_merge_arguments;
  ASSERT_TRUE(check(nullptr).error().detail.contains("arguments = null"));
  const auto call = good();
  ASSERT_TRUE(check(&call).has_value()) << check(&call).error().detail;
  const std::vector<std::pair<std::string, std::function<void(Call&)>>> wrong = {
      {"part_count", [](Call& c) { c.part_count = 0; }},
      {"part_count", [](Call& c) { c.part_count = 9; }},
      {"parts[0].o.dtype", [](Call& c) { c.parts[0].o.dtype = WAVEJIT_E4M3; }},
      {"parts[1].o.dtype", [](Call& c) { c.parts[1].o.dtype = WAVEJIT_FP16; }},
      {"parts[0].o.data", [](Call& c) { c.parts[0].o.data = nullptr; }},
      {"parts[1].o.data", [](Call& c) { c.parts[1].o.data = static_cast<char*>(c.parts[1].o.data) + 8; }},
      {"parts[0].o.sizes[3]", [](Call& c) { c.parts[0].o.sizes[3] = 100; }},
      {"parts[0].o.sizes[3]", [](Call& c) { c.parts[0].o.sizes[3] = 520; }},
      {"parts[0].o.sizes[0]", [](Call& c) { c.parts[0].o.sizes[0] = 0; }},
      {"parts[1].o.sizes[1]", [](Call& c) { c.parts[1].o.sizes[1] = 99; }},
      {"parts[1].o.strides[3]", [](Call& c) { c.parts[1].o.strides[3] = 2; }},
      {"parts[1].o.strides[2]", [](Call& c) { c.parts[1].o.strides[2] = 132; }},
      {"parts[1].o.strides[1]", [](Call& c) { c.parts[1].o.strides[1] = 0; }},
      {"parts[0].o.strides[2]", [](Call& c) { c.parts[0].o.strides[2] = std::int64_t{1} << 30; }},
      {"parts[0].lse.dtype", [](Call& c) { c.parts[0].lse.dtype = WAVEJIT_BF16; }},
      {"parts[0].lse.data", [](Call& c) { c.parts[0].lse.data = nullptr; }},
      {"parts[0].lse.sizes[1]", [](Call& c) { c.parts[0].lse.sizes[1] = 100; }},
      {"parts[0].lse.sizes[3]", [](Call& c) { c.parts[0].lse.sizes[3] = 2; }},
      {"parts[0].lse.strides[2]", [](Call& c) { c.parts[0].lse.strides[2] = -1; }},
      {"parts[1].count", [](Call& c) { c.parts[1].count = -1; }},
      {"parts[1].count", [](Call& c) { c.parts[1].count = 5000; }},
      {"parts[1].o_stride", [](Call& c) { c.parts[1].count = 2; }},
      {"parts[1].lse_stride",
       [](Call& c) {
         c.parts[1].count = 2;
         c.parts[1].o_stride = 8;
       }},
      {"o.dtype", [](Call& c) { c.o.dtype = WAVEJIT_FP16; }},
      {"o.dtype", [](Call& c) { c.o.dtype = WAVEJIT_E5M2; }},
      {"o.sizes[2]", [](Call& c) { c.o.sizes[2] = 4; }},
      {"o.data", [](Call& c) { c.o.data = nullptr; }},
      {"o.strides", [](Call& c) { c.o.strides[2] = 64; }},
      {"lse.sizes[0]", [](Call& c) { c.lse.sizes[0] = 1; }},
      {"lse", [](Call& c) { c.lse.strides[1] = 50; }},
      {"o", [](Call& c) { c.o.data = static_cast<char*>(c.parts[1].o.data) + 16; }},
      {"o", [](Call& c) { c.o.data = c.lse.data; }},
      {"lse", [](Call& c) { c.lse.data = c.parts[0].o.data; }},
      {"flags", [](Call& c) { c.head.flags = WAVEJIT_CHECK_LENGTHS; }},
  };
  for (const auto& [field, change] : wrong) {
    Call bad = good();
    change(bad);
    const auto checked = check(&bad);
    ASSERT_FALSE(checked.has_value()) << field;
    EXPECT_THAT(checked.error().detail, HasSubstr(field));
    EXPECT_THAT(checked.error().detail, HasSubstr("accepted"));
  }
  // In a part's own place, as it lies there.
  Call in_place = good();
  in_place.o = in_place.parts[1].o;
  in_place.lse = in_place.parts[0].lse;
  EXPECT_TRUE(check(&in_place).has_value()) << check(&in_place).error().detail;
}

TEST(AttentionMergeDescriptor, IsCanonical) {
  for (const std::string text : {"attention_merge bf16 b64 q1 h64 d128 parts=2 lse",
                                 "attention_merge fp32 b1 q9 h3 d80 parts=12 out=fp16 stacked",
                                 "attention_merge fp16 b2 q3 h5 d512 parts=8 out=fp32 lse empty seed=7"}) {
    const auto said = parse_descriptor(text);
    ASSERT_TRUE(said.has_value()) << said.error().detail;
    EXPECT_EQ(to_text(*said), text);
    EXPECT_EQ(MergeShape::of(said->shape().shape().code), said->shape());
  }
  for (const auto& [text, why] : std::vector<std::pair<std::string, std::string>>{
           {"attention_merge bf16 b1 q1 h1 d20 parts=2", "multiples of 8"},
           {"attention_merge bf16 b1 q1 h1 d64", "parts=<n>"},
           {"attention_merge bf16 b1 q1 h1 d64 parts=9", "more with stacked"},
           {"attention_merge bf16 b1 q1 h1 d64 parts=1 stacked", "parts=2"},
           {"attention_merge e4m3 b1 q1 h1 d64 parts=2", "fp32"},
           {"attention_merge bf16 b1 q1 h1 d64 parts=2 out=e5m2", "out=fp32"}}) {
    const auto said = parse_descriptor(text);
    ASSERT_FALSE(said.has_value()) << text;
    EXPECT_THAT(said.error().detail, HasSubstr(why));
  }
}

}  // namespace
}  // namespace wavejit::attention_merge
