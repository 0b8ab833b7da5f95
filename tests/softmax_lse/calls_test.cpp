// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a call of softmax_lse may be: its fields, its descriptors, the shape of its launch.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "boards/board.h"
#include "softmax_lse/softmax_run.h"
#include "templates/softmax_lse/call/call.h"
#include "templates/softmax_lse/call/descriptor.h"

namespace wavejit::tests {
namespace {

using softmax_lse::Access;
using softmax_lse::DataType;
using softmax_lse::parse_descriptor;
using softmax_lse::Rows;
using ::testing::HasSubstr;

using Arguments = wavejit_softmax_lse_arguments;

// fp16 [2, 3, 5, 70] → bf16 and LSE, at addresses that nobody looks at.
Arguments good_call() {
  const auto tensor = [](std::uintptr_t at, std::int32_t dtype, std::int64_t last) {
    return wavejit_tensor{.data = reinterpret_cast<void*>(at),
                          .dtype = dtype,
                          .reserved = 0,
                          .sizes = {2, 3, 5, last},
                          .strides = {15 * last, 5 * last, last, 1}};
  };
  Arguments call{};
  call.head.size = sizeof call;
  call.head.family = WAVEJIT_SOFTMAX_LSE;
  call.scores = tensor(0x10000, WAVEJIT_FP16, 70);
  call.weights = tensor(0x20000, WAVEJIT_BF16, 70);
  call.lse = tensor(0x30000, WAVEJIT_FP32, 1);
  return call;
}

TEST(SoftmaxCall, IsTakenAsItStands) {
  const Arguments call = good_call();
  const auto problem = softmax_lse::check(&call);
  ASSERT_TRUE(problem) << problem.error().detail;
  EXPECT_EQ(problem->shape.scores, DataType::fp16);
  EXPECT_EQ(problem->shape.weights, DataType::bf16);
  EXPECT_EQ(problem->shape.rows, Rows::resident);
  EXPECT_EQ(problem->shape.access, Access::vectors);
  EXPECT_EQ(softmax_lse::SoftmaxShape::of(problem->shape.shape().code), problem->shape);
}

TEST(SoftmaxCall, RefusesWithFieldValueAndWhatIsAccepted) {
  struct Bad {
    std::function<void(Arguments&)> spoil;
    const char* sentence;
  };
  const Bad cases[] = {
      {[](Arguments& a) { a.head.size = 8; }, "head.size = 8"},
      {[](Arguments& a) { a.scores.dtype = 9; }, "scores.dtype = 9; accepted: 1 (fp16), 2 (bf16), 3 (fp32)"},
      {[](Arguments& a) { a.scores.data = nullptr; }, "scores.data = null; accepted: device memory aligned to 2 bytes"},
      {[](Arguments& a) { a.scores.data = reinterpret_cast<void*>(0x10001); }, "scores.data = 0x10001"},
      {[](Arguments& a) { a.scores.reserved = 1; }, "scores.reserved = 1"},
      {[](Arguments& a) { a.scores.sizes[3] = 0; }, "scores.sizes[3] (keys) = 0; accepted: 1"},
      {[](Arguments& a) { a.scores.sizes[2] = -1; }, "scores.sizes[2] (queries) = -1"},
      {[](Arguments& a) { a.scores.sizes[1] = 70000; }, "scores.sizes[1] (heads) = 70000"},
      {[](Arguments& a) { a.scores.strides[3] = 2; }, "scores.strides[3] (keys) = 2; accepted: 1"},
      {[](Arguments& a) { a.scores.strides[2] = 69; }, "scores.strides[2] (queries) = 69; accepted: 70"},
      {[](Arguments& a) { a.scores.strides[2] = std::int64_t{1} << 30; }, "rows less than 2^31 bytes apart"},
      {[](Arguments& a) { a.scores.strides[0] = 0; }, "scores.strides[0] (batch) = 0"},
      {[](Arguments& a) { a.scores.strides[1] = std::int64_t{1} << 50; }, "scores.strides[1] (heads)"},
      {[](Arguments& a) { a.weights.dtype = 0; }, "weights.dtype = 0"},
      {[](Arguments& a) { a.weights.sizes[3] = 71; }, "weights.sizes[3] (keys) = 71; accepted: 70 (as scores)"},
      {[](Arguments& a) { a.weights.data = a.scores.data; }, "memory that scores does not use"},
      {[](Arguments& a) { a.weights.strides[1] = 75; }, "with which elements overlap"},
      {[](Arguments& a) { a.lse.dtype = WAVEJIT_FP16; }, "lse.dtype = 1 (fp16)"},
      {[](Arguments& a) { a.lse.sizes[3] = 2; }, "lse.sizes[3] (keys) = 2; accepted: 1 (always)"},
      {[](Arguments& a) { a.lse.data = a.weights.data; }, "memory that weights does not use"},
      {[](Arguments& a) { a.weights.data = a.lse.data = nullptr; }, "there is nothing to write"},
      {[](Arguments& a) { a.scale = INFINITY; }, "scale = inf"},
      {[](Arguments& a) { a.mask.bits = 16; }, "mask = 16"},
      {[](Arguments& a) { a.mask.bits = 8; }, "mask = 8"},
      {[](Arguments& a) { a.mask.bits = WAVEJIT_MASK_PREFIX; }, "nothing else has a diagonal"},
      {[](Arguments& a) { a.mask.window_left = 3; }, "window_left = 3; accepted: 0 unless"},
      {[](Arguments& a) { a.mask.bits = WAVEJIT_MASK_WINDOW, a.mask.window_right = -2; }, "window_right = -2"},
      {[](Arguments& a) { a.mask.causal_prefix = 1; }, "causal_prefix = 1; accepted: 0 unless"},
      {[](Arguments& a) { a.mask.bits = WAVEJIT_MASK_CAUSAL | WAVEJIT_MASK_PREFIX, a.mask.causal_prefix = 71; },
       "causal_prefix = 71"},
      {[](Arguments& a) { a.key_lengths = reinterpret_cast<const std::int32_t*>(0x3); }, "key_lengths = 0x3"},
      {[](Arguments& a) { a.head.flags = WAVEJIT_LISTS_ALIKE; }, "flags = 2"},
      {[](Arguments& a) { a.head.flags = WAVEJIT_COMPILE_BEHIND; }, "flags = 16"},
      {[](Arguments& a) { a.head.flags = WAVEJIT_SCALE_IS_ZERO, a.scale = 1; }, "scale = 1.0"},
      {[](Arguments& a) { a.reserved = 4; }, "reserved = 4"},
  };
  for (const Bad& bad : cases) {
    Arguments call = good_call();
    bad.spoil(call);
    const auto problem = softmax_lse::check(&call);
    ASSERT_FALSE(problem) << bad.sentence;
    EXPECT_THAT(problem.error().detail, HasSubstr(bad.sentence));
  }
  EXPECT_FALSE(softmax_lse::check(nullptr));
}

TEST(SoftmaxCall, RowsThatBeginAnywhereAreTakenByElements) {
  const auto access = [](const std::function<void(Arguments&)>& change) {
    Arguments call = good_call();
    change(call);
    const auto problem = softmax_lse::check(&call);
    EXPECT_TRUE(problem) << problem.error().detail;
    return problem->shape.access;
  };
  EXPECT_EQ(access([](Arguments& a) { a.scores.data = reinterpret_cast<void*>(0x10002); }), Access::elements);
  EXPECT_EQ(
      access([](Arguments& a) { a.weights.strides[2] = 71, a.weights.strides[1] = 356, a.weights.strides[0] = 1070; }),
      Access::elements);
  EXPECT_EQ(access([](Arguments& a) { a.scores.strides[2] = 72; }), Access::vectors);
  // A stride that is never used, and fp32 tensors of any kind.
  EXPECT_EQ(access([](Arguments& a) {
              for (wavejit_tensor* t : {&a.scores, &a.weights, &a.lse}) t->sizes[0] = 1, t->strides[0] = 7;
            }),
            Access::vectors);
  EXPECT_EQ(softmax_lse::access_of(DataType::fp32, DataType::fp32, 71, true), Access::vectors);
  EXPECT_EQ(softmax_lse::access_of(DataType::fp32, DataType::bf16, 71, false), Access::elements);
}

TEST(SoftmaxDescriptor, CanonicalTextsStay) {
  for (const char* text :
       {"softmax_lse fp32 b1 h1 q1 k1", "softmax_lse bf16 b2 h8 q128 k5000 weights=fp32 causal lse",
        "softmax_lse fp16 b2 h1 q9 k1025 weights=none causal=7 window=700,-1 lse k_lengths=1025,300 scale=-0.5 seed=4",
        "softmax_lse fp16 b1 h1 q4 k640 unaligned"}) {
    const auto descriptor = parse_descriptor(text);
    ASSERT_TRUE(descriptor) << descriptor.error().detail;
    EXPECT_EQ(to_text(*descriptor), text);
  }
  // Any order, and what says nothing is left out.
  const auto descriptor = parse_descriptor("softmax_lse  k641 unaligned lse b1 weights=bf16 q2 h3 bf16");
  ASSERT_TRUE(descriptor) << descriptor.error().detail;
  EXPECT_EQ(to_text(*descriptor), "softmax_lse bf16 b1 h3 q2 k641 lse");
}

TEST(SoftmaxDescriptor, RefusesWithTheWordAndWhatIsAccepted) {
  for (const auto& [text, sentence] : {
           std::pair{"softmax_lse fp32 b1 h1 q1", "a word is missing; accepted: k<keys>"},
           {"softmax_lse b1 h1 q1 k1", "a word is missing; accepted: a data type"},
           {"softmax_lse fp32 b1 h1 q1 k0", "word 6 'k0' (column 27) is out of range; accepted: k1 to"},
           {"softmax_lse fp32 fp16 b1 h1 q1 k1", "word 3 'fp16' (column 18) says again"},
           {"softmax_lse fp32 b1 h1 q1 k1 d64",
            "is not known; accepted: what `wavejit explain \"softmax_lse help\"` lists"},
           {"softmax_lse fp32 b1 h1 q1 k1 weights=fp8", "accepted: weights=fp32"},
           {"softmax_lse fp32 b1 h1 q1 k1 weights=none", "weights=none without lse"},
           {"softmax_lse fp32 b1 h1 q1 k1 causal=2", "causal=2; accepted: 0 to 1"},
           {"softmax_lse fp32 b1 h1 q1 k1 window=1", "is no window"},
           {"softmax_lse fp32 b2 h1 q1 k1 k_lengths=1", "k_lengths: 1 lengths; accepted: 2"},
           {"softmax_lse fp32 b1 h1 q1 k1 k_lengths=2", "the longest is 2; accepted: up to 1"},
           {"softmax_lse fp32 b1 h1 q1 k1 scale=nan", "is no number"},
           {"softmax fp32", "accepted first word: softmax_lse"},
           {"", "descriptor: empty"},
       }) {
    const auto descriptor = parse_descriptor(text);
    ASSERT_FALSE(descriptor) << text;
    EXPECT_THAT(descriptor.error().detail, HasSubstr(sentence));
  }
}

TEST(SoftmaxSpec, OneTextASpec) {
  for (const char* text :
       {"softmax_lse fp32 weights=bf16 rows=streamed access=vectors target=gfx942 lowering=llvm",
        "softmax_lse bf16 weights=bf16 rows=resident access=elements target=gfx950 lowering=comgr"}) {
    const auto spec = families::parse_kernel<softmax_lse::AskedWords>(text);
    ASSERT_TRUE(spec) << spec.error();
    EXPECT_EQ(to_text(*spec), text);
    EXPECT_FALSE(refusal_of(*spec));
  }
  EXPECT_FALSE(families::parse_kernel<softmax_lse::AskedWords>("softmax_lse fp32"));
  const auto none = families::parse_kernel<softmax_lse::AskedWords>(
      "softmax_lse fp32 weights=fp32 rows=resident access=elements target=gfx950 lowering=llvm");
  ASSERT_TRUE(none);
  EXPECT_TRUE(refusal_of(*none));
}

TEST(SoftmaxGeometry, FillsWorkgroupsAndThenTheMachine) {
  const boards::Board& target = *boards::find_product("gfx950");
  const auto geometry = [&](std::uint32_t batch, std::uint32_t rows, std::uint32_t keys, std::uint64_t stride) {
    softmax_lse::SoftmaxProblem problem;
    problem.batch = batch;
    problem.heads = 1;
    problem.query_length = rows;
    problem.key_length = keys;
    const softmax_lse::Geometry of = softmax_lse::geometry_of(problem, stride, target);
    return std::pair(of.rows, 1U << of.tile_shift);
  };
  EXPECT_EQ(geometry(100, 4096, 2048, 4096), std::pair(4U, 32U));
  EXPECT_EQ(geometry(100, 4096, 2049, 4100), std::pair(2U, 64U));
  EXPECT_EQ(geometry(100, 4096, 1, 2), std::pair(32U, 4U)) << "a row takes four tiles at least";
  EXPECT_EQ(geometry(1, 1, 70001, 0), std::pair(1U, 128U));
  EXPECT_EQ(geometry(1, 100, 1024, 2048), std::pair(1U, 16U)) << "few rows: one a workgroup";
  EXPECT_EQ(geometry(100, 4096, 256, 0x60000000), std::pair(2U, 4U)) << "a descriptor spans less than 4 GiB";
}

class SoftmaxEngine : public ::testing::TestWithParam<const char*> {};

// What the C functions beside the call answer.
TEST_P(SoftmaxEngine, IsSupportedDescribedAndReady) {
  Engine engine(GetParam());
  Arguments call = good_call();
  call.scale = 0.25F;
  call.mask.bits = WAVEJIT_MASK_CAUSAL;
  EXPECT_EQ(wavejit_call_supported(engine.get(), &call.head), WAVEJIT_OK) << wavejit_last_detail();
  EXPECT_EQ(wavejit_call_ready(engine.get(), &call.head), WAVEJIT_NOT_READY);
  std::string line;
  const auto keep = [](void* to, const char* text) { *static_cast<std::string*>(to) = text; };
  ASSERT_EQ(wavejit_call_describe(engine.get(), &call.head, keep, &line), WAVEJIT_OK) << wavejit_last_detail();
  EXPECT_EQ(line, "softmax_lse fp16 b2 h3 q5 k70 weights=bf16 causal lse scale=0.25");
  const char* lines[] = {line.c_str()};
  wavejit_status status = WAVEJIT_INTERNAL;
  ASSERT_EQ(wavejit_prepare(engine.get(), lines, 1, 1, &status, nullptr, nullptr), WAVEJIT_OK) << wavejit_last_detail();
  EXPECT_EQ(wavejit_call_ready(engine.get(), &call.head), WAVEJIT_OK) << wavejit_last_detail();
  call.scores.sizes[3] = 0;
  EXPECT_EQ(wavejit_call_supported(engine.get(), &call.head), WAVEJIT_INVALID_ARGUMENT);
  EXPECT_EQ(wavejit_softmax_lse(engine.get(), &call, nullptr), WAVEJIT_INVALID_ARGUMENT);
  EXPECT_EQ(wavejit_softmax_lse(nullptr, &call, nullptr), WAVEJIT_INVALID_ARGUMENT);
}

// Lengths that lie are cut, and named when asked.
TEST_P(SoftmaxEngine, LengthsAreJudgedOnRequest) {
  Engine engine(GetParam());
  Arguments call = good_call();
  void* memory = nullptr;
  ASSERT_EQ(wavejit_device_allocate(engine.get(), 8, &memory), WAVEJIT_OK);
  const std::int32_t lengths[] = {70, 71};
  ASSERT_EQ(wavejit_device_copy_in(engine.get(), memory, lengths, sizeof lengths), WAVEJIT_OK);
  call.key_lengths = static_cast<const std::int32_t*>(memory);
  call.head.flags = WAVEJIT_CHECK_LENGTHS;
  EXPECT_EQ(wavejit_softmax_lse(engine.get(), &call, nullptr), WAVEJIT_INVALID_ARGUMENT);
  EXPECT_THAT(wavejit_last_detail(), HasSubstr("key_lengths[1] = 71; accepted: 0"));
  EXPECT_EQ(wavejit_device_free(engine.get(), memory), WAVEJIT_OK);
}

INSTANTIATE_TEST_SUITE_P(Targets, SoftmaxEngine, ::testing::Values("gfx942", "gfx950"),
                         [](const auto& info) { return std::string(info.param); });

// The C++ interface from scores to weights: equal scores share, and what a row does not see has weight 0.

}  // namespace
}  // namespace wavejit::tests
