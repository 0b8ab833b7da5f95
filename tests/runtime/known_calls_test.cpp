// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Calls that a thread knows (families/call/known_calls.h): what is known is what a check of the call would say,
// whatever has changed in its struct since; and the layers of a step are known.
#include "families/call/known_calls.h"

#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "runtime_fixture.h"
#include "templates/attention_forward/api/calls.h"
#include "templates/attention_forward/call/call.h"
#include "templates/attention_latent/api/calls.h"
#include "templates/attention_latent/call/call.h"

namespace wavejit::tests {
namespace {

using Forward = wavejit_attention_forward_arguments;
using Latent = wavejit_attention_latent_arguments;

const std::int32_t* numbers_at(std::uint64_t number) { return static_cast<const std::int32_t*>(fake_address(number)); }

wavejit_tensor one_number(std::uint64_t number, wavejit_dtype dtype = WAVEJIT_FP32, std::int64_t heads = 1) {
  return wavejit_dense_tensor(fake_address(number), dtype, 1, heads, 1, 1);
}

Forward paged_call(wavejit_dtype dtype) {
  Forward call = good_call(64, 1, 64, 64, 8);
  call.k = wavejit_dense_tensor(fake_address(2), dtype, 4096, 16, 8, 128);
  call.v = wavejit_dense_tensor(fake_address(3), dtype, 4096, 16, 8, 128);
  call.pages.block_table = numbers_at(6);
  call.pages.table_columns = 64;
  call.sequences.key_lengths = numbers_at(7);
  call.sequences.max_key_length = 1024;
  return call;
}

std::vector<Forward> forward_calls() {
  std::vector<Forward> calls = {good_call(), paged_call(WAVEJIT_FP16), paged_call(WAVEJIT_E4M3)};
  calls[0].lse = good_lse(calls[0]);
  calls[2].scales.k_scale = one_number(8);
  calls[2].scales.v_scale = one_number(9);
  Forward& window = calls.emplace_back(good_call());
  window.mask.bits = WAVEJIT_MASK_CAUSAL | WAVEJIT_MASK_WINDOW;
  window.mask.window_left = 128;
  window.mask.window_right = -1;
  window.modifiers.sink = one_number(10, WAVEJIT_FP32, 8);
  Forward& split = calls.emplace_back(good_call(1, 1, 8192));
  split.split.splits = 4;
  split.split.workspace = fake_address(11);
  split.split.workspace_bytes = std::size_t{1} << 24U;
  Forward& packed = calls.emplace_back(good_call(1, 640, 640));
  packed.sequences.query_starts = numbers_at(12);
  packed.sequences.key_starts = numbers_at(13);
  packed.sequences.count = 4;
  packed.sequences.max_query_length = packed.sequences.max_key_length = 320;
  packed.mask.bits = WAVEJIT_MASK_CAUSAL;
  return calls;
}

std::vector<Latent> latent_calls() {
  Latent call{};
  call.head.size = sizeof call;
  call.head.family = WAVEJIT_ATTENTION_LATENT;
  call.q = wavejit_dense_tensor(fake_address(1), WAVEJIT_BF16, 64, 1, 16, 576);
  call.k = wavejit_dense_tensor(fake_address(2), WAVEJIT_BF16, 256, 64, 1, 576);
  call.o = wavejit_dense_tensor(fake_address(3), WAVEJIT_BF16, 64, 1, 16, 512);
  call.lse = {
      .data = fake_address(4), .dtype = WAVEJIT_FP32, .reserved = 0, .sizes = {64, 16, 1, 1}, .strides = {16, 1, 1, 1}};
  call.pages.block_table = numbers_at(5);
  call.pages.table_columns = 128;
  call.sequences.key_lengths = numbers_at(6);
  call.sequences.max_key_length = 8192;
  call.modifiers.scale = 0.0721688F;
  Latent apart = call;
  apart.q = wavejit_dense_tensor(fake_address(1), WAVEJIT_BF16, 64, 1, 16, 512);
  apart.q_rope = wavejit_dense_tensor(fake_address(7), WAVEJIT_BF16, 64, 1, 16, 64);
  apart.k = wavejit_dense_tensor(fake_address(2), WAVEJIT_BF16, 256, 64, 1, 512);
  apart.k_rope = wavejit_dense_tensor(fake_address(8), WAVEJIT_BF16, 256, 64, 1, 64);
  Latent listed = call;
  listed.key_list.indices = numbers_at(9);
  listed.key_list.top_k = 2048;
  Latent narrow = call;
  narrow.k.dtype = WAVEJIT_E4M3;
  narrow.scales.k_scale = one_number(10);
  return {call, apart, listed, narrow};
}

template <typename Call>
struct CallsOf;
template <>
struct CallsOf<Forward> : attention_forward::Calls {};
template <>
struct CallsOf<Latent> : attention_latent::Calls {};
template <typename Call>
using Remembered = runtime::Remembered<CallsOf<Call>>;

// What a check says of a call: a refusal's words, or its plan.
template <typename Call, typename Plan>
std::string plan_in_words(const runtime::Engine& engine, const Call& call, Plan& plan) {
  const auto checked = CallsOf<Call>::plan(engine, &call);
  if (!checked) return checked.error().detail;
  plan = *checked;
  return {};
}
template <typename Call>
const auto* known(const runtime::Engine& engine, const Call& call) {
  return Remembered<Call>::known(engine, call);
}

template <typename Call>
std::uint64_t word_of(const Call& call, std::size_t at) {
  std::uint64_t word = 0;
  std::memcpy(&word, reinterpret_cast<const std::byte*>(&call) + at, sizeof word);
  return word;
}
template <typename Call>
Call with_word(Call call, std::size_t at, std::uint64_t word) {
  std::memcpy(reinterpret_cast<std::byte*>(&call) + at, &word, sizeof word);
  return call;
}

class KnownCalls : public RuntimeTest {
 protected:
  void SetUp() override {
    RuntimeTest::SetUp();
    engine_ = make_engine();
  }

  template <typename Call, typename Plan>
  void keep_checked(const Call& call, Plan& plan) {
    ASSERT_EQ(plan_in_words(*engine_, call, plan), "");
    Remembered<Call>::keep(*engine_, call, plan);
  }

  // Each word of the struct becomes another, and each pointer one of every other tensor's bytes.
  template <typename Plan, typename Call>
  void expect_known_is_checked(const Call& call) {
    Plan plan;
    keep_checked(call, plan);
    ASSERT_NE(known(*engine_, call), nullptr);
    int found = 0;
    for (std::size_t at = 0; at + sizeof(std::uint64_t) <= sizeof call; at += sizeof(std::uint64_t)) {
      const std::uint64_t word = word_of(call, at);
      std::vector<std::uint64_t> others = {0,         ~std::uint64_t{0}, 1,          word + 1,
                                           word - 1,  word + 2,          word + 4,   word + 8,
                                           word + 16, word + 256,        word << 1U, word ^ (std::uint64_t{1} << 32U)};
      for (const wavejit_tensor* tensor : {&call.q, &call.k, &call.o, &call.lse}) {
        const auto begin = reinterpret_cast<std::uintptr_t>(tensor->data);
        const auto bytes = static_cast<std::uint64_t>(tensor->sizes[0] * tensor->strides[0]) * 2;
        for (const std::uint64_t place :
             {begin, begin + 64, begin + bytes - 16, begin + bytes, begin - 16, begin - 4096})
          others.push_back(place);
      }
      for (const std::uint64_t other : others) {
        const Call changed = with_word(call, at, other);
        const Plan* found_plan = known(*engine_, changed);
        if (found_plan == nullptr) continue;
        ++found;
        const Plan of_known = *found_plan;
        Plan checked;
        ASSERT_EQ(plan_in_words(*engine_, changed, checked), "") << "byte " << at << " = " << other;
        EXPECT_TRUE(of_known == checked) << "byte " << at << " = " << other;
      }
    }
    EXPECT_GT(found, 20) << "tensors that stand elsewhere are known";
  }

  std::unique_ptr<runtime::Engine> engine_;
};

TEST_F(KnownCalls, WhatIsKnownOfForwardCallsIsWhatACheckSays) {
  for (const Forward& call : forward_calls()) expect_known_is_checked<attention_forward::CallPlan>(call);
}

TEST_F(KnownCalls, WhatIsKnownOfLatentCallsIsWhatACheckSays) {
  for (const Latent& call : latent_calls()) expect_known_is_checked<attention_latent::CallPlan>(call);
}

// Calls that depend on more addresses than a known call compares.
TEST_F(KnownCalls, CallsWithABiasAReportOrListsAreNotKept) {
  Forward bias = good_call();
  bias.modifiers.bias = wavejit_dense_tensor(fake_address(6), WAVEJIT_FP16, 1, 1, 255, 512);
  Forward report = good_call();
  wavejit_call_report wanted{};
  wanted.size = sizeof wanted;
  report.head.report = &wanted;
  Forward listed = paged_call(WAVEJIT_FP16);
  listed.key_list.indices = numbers_at(9);
  listed.key_list.top_k = 512;
  for (const Forward& call : {bias, report, listed}) {
    attention_forward::CallPlan plan;
    keep_checked(call, plan);
    EXPECT_EQ(known(*engine_, call), nullptr);
  }
}

TEST_F(KnownCalls, AreOfOneEngineAndOneThread) {
  const Forward call = good_call();
  attention_forward::CallPlan plan;
  keep_checked(call, plan);
  EXPECT_NE(known(*engine_, call), nullptr);
  const auto other = make_engine();
  EXPECT_NE(other->number(), engine_->number());
  EXPECT_EQ(known(*other, call), nullptr);
  const attention_forward::CallPlan* elsewhere = &plan;
  std::thread([&] { elsewhere = known(*engine_, call); }).join();
  EXPECT_EQ(elsewhere, nullptr);
}

// Four kinds of layers by turns are known, a fifth takes the place of the one that was kept first.
TEST_F(KnownCalls, TheLastFourAreKnown) {
  std::vector<Forward> calls;
  for (std::int64_t length = 1; length <= 5; ++length) calls.push_back(good_call(2, 255, 512 * length));
  for (const Forward& call : calls) {
    attention_forward::CallPlan plan;
    keep_checked(call, plan);
  }
  EXPECT_EQ(known(*engine_, calls[0]), nullptr);
  for (int turn = 0; turn < 2; ++turn)
    for (std::size_t i = 1; i < calls.size(); ++i) {
      const attention_forward::CallPlan* plan = known(*engine_, calls[i]);
      ASSERT_NE(plan, nullptr) << i;
      EXPECT_EQ(plan->problem.key_length, 512 * (i + 1));
    }
}

// Whole calls: what a known one launches is what it launched at first, elsewhere.
TEST_F(KnownCalls, LaunchTheirOwnTensors) {
  Forward call = good_call();
  ASSERT_TRUE(ForwardCalls::run(*engine_, &call, nullptr));
  const FakeLaunch first = fake_hip().last;
  call.q.data = fake_address(20);
  call.o.data = fake_address(21);
  ASSERT_TRUE(ForwardCalls::run(*engine_, &call, nullptr));
  attention_forward::Arguments moved = first.arguments;
  moved.q = std::uint64_t{20} << 32U;
  moved.o = std::uint64_t{21} << 32U;
  EXPECT_EQ(fake_hip().last.function, first.function);
  EXPECT_EQ(fake_hip().last.grid, first.grid);
  EXPECT_EQ(std::memcmp(&fake_hip().last.arguments, &moved, sizeof moved), 0);
  // And it is refused as at first.
  call.o.data = call.q.data;
  const auto refused = ForwardCalls::run(*engine_, &call, nullptr);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().detail, ::testing::HasSubstr("o.data"));
  EXPECT_EQ(fake_hip().launches, 2U);
}

}  // namespace
}  // namespace wavejit::tests
