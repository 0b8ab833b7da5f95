// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Gradients of head dims that no image in LDS has room for at once: 192 with 128 for v, and 256. On gfx942 there are
// halves of tiles and, of 256 dims, a walk for each of dV and dK.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "attention_backward/backward_run.h"
#include "support/part.h"

namespace wavejit::tests {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class WideHeads : public ::testing::TestWithParam<const char*> {
 protected:
  BackwardOutput run(const Arrays& arrays, const ChangeCall& change = {}, const Before& before = {}) {
    BackwardOutput output = run_backward(engine_.get(), arrays, change, before);
    EXPECT_EQ(output.status, WAVEJIT_OK) << output.detail << output.reports;
    EXPECT_EQ(output.reports, "");
    EXPECT_TRUE(output.fence_intact);
    return output;
  }
  static bool engine_of_two_blocks(const std::string& dims) {
    return GetParam() == std::string("gfx950") && dims == "d192/128";
  }
  Engine engine_{GetParam()};
};

std::vector<std::uint32_t> sequence_of(const std::vector<std::uint32_t>& values, std::ptrdiff_t batch) {
  const std::ptrdiff_t each = std::ssize(values) / 2;
  return {values.begin() + (batch * each), values.begin() + ((batch + 1) * each)};
}

// Alone, in a batch, packed, before NaN that does not count, under every wave schedule.
TEST_P(WideHeads, HaveTheSameBitsWhereverTheyStand) {
  int index = engine_of_two_blocks("d192/128") ? 1 : 0;
  for (const char* dims : {"d256", "d192/128"}) {
    if (!whole_lists() && index++ % 2 != 0) continue;
    SCOPED_TRACE(dims);
    const std::string lengths = " q40 k90 h2/1 ";
    const std::string words = "bf16 b2" + lengths + dims + " causal";
    const BackwardOutput batch = run(backward_arrays(words));
    EXPECT_TRUE(run(backward_arrays(words + " layout=packed q_lengths=40,40 k_lengths=90,90")) == batch);
    // As calls with many workgroups are done.
    wavejit_engine_options options{};
    options.size = sizeof options;
    options.pipeline = "auto tile_queries=256";
    Engine wide(GetParam(), options);
    const BackwardOutput two_blocks = run_backward(wide.get(), backward_arrays(words));
    EXPECT_TRUE(two_blocks == batch) << two_blocks.detail;
    if (engine_of_two_blocks(dims)) EXPECT_THAT(two_blocks.kernel_spec, HasSubstr("blocks=2"));
    // The first of them has the same numbers without the second.
    const Arrays first = backward_arrays("bf16 b1" + lengths + dims + " causal");
    const BackwardOutput alone = run(first);
    EXPECT_EQ(alone.dq, sequence_of(batch.dq, 0));
    EXPECT_EQ(alone.dk, sequence_of(batch.dk, 0));
    EXPECT_EQ(alone.dv, sequence_of(batch.dv, 0));

    Arrays padded = first;
    padded.experiment.key_length = 140;
    padded.key_lengths = {90};
    for (auto* values : {&padded.k, &padded.v}) values->resize(values->size() / 90 * 140, 0x7FFF);  // NaN
    const BackwardOutput other = run(padded);
    EXPECT_EQ(other.dq, alone.dq);
    for (const auto& [with, without] : {std::pair{&other.dk, &alone.dk}, {&other.dv, &alone.dv}}) {
      EXPECT_TRUE(std::equal(without->begin(), without->end(), with->begin()));
      for (std::size_t i = without->size(); i < with->size(); ++i) ASSERT_EQ((*with)[i], 0U);
    }
    for (const wavejit_simgpu_schedule schedule : {WAVEJIT_SIMGPU_REVERSE, WAVEJIT_SIMGPU_RANDOM}) {
      set_schedule(schedule, 7);
      EXPECT_TRUE(run(first) == alone);
    }
    set_schedule(WAVEJIT_SIMGPU_IN_ORDER, 0);
  }
}

// Sums that two calls make together: dK and dV of one call behind 1.5 are 1.5 more than those of one behind nothing.
TEST_P(WideHeads, GoOnWithSumsOfACallBefore) {
  const Arrays arrays = backward_arrays("bf16 b1 q40 k50 h1 d256 causal gradients=fp32");
  constexpr std::uint32_t sums = WAVEJIT_SUMS_OF_DQ | WAVEJIT_SUMS_OF_DK_DV;
  const auto continued = [](std::uint32_t before) {
    return [=](wavejit_attention_backward_arguments& call) {
      call.sums_before = before;
      call.sums_behind = sums;
    };
  };
  Before before;
  for (auto* of : {&before.dk, &before.dv}) of->assign(std::size_t{50} * 256, std::bit_cast<std::uint32_t>(1.5F));
  before.dq.assign(std::size_t{40} * 256, 0);
  const BackwardOutput alone = run(arrays, continued(0));
  const BackwardOutput output = run(arrays, continued(sums), before);
  EXPECT_EQ(output.dq, alone.dq);
  for (const auto& [with, without] : {std::pair{&output.dk, &alone.dk}, {&output.dv, &alone.dv}})
    for (std::size_t i = 0; i < with->size(); ++i)
      ASSERT_EQ(std::bit_cast<float>((*with)[i]), 1.5F + std::bit_cast<float>((*without)[i])) << i;
}

TEST_P(WideHeads, OthersAreRefusedByName) {
  const Arrays arrays = backward_arrays("bf16 b1 q40 k40 h1 d64");
  const auto with_dims = [&](std::int64_t qk, std::int64_t v) {
    const BackwardOutput output = run_backward(engine_.get(), arrays, [&](auto& call) {
      for (wavejit_tensor* tensor : {&call.q, &call.k, &call.dq, &call.dk}) tensor->sizes[3] = qk;
      for (wavejit_tensor* tensor : {&call.v, &call.o, &call.d_o, &call.dv}) tensor->sizes[3] = v;
    });
    EXPECT_EQ(output.status, WAVEJIT_UNSUPPORTED);
    return output.detail;
  };
  EXPECT_THAT(with_dims(32, 32), AllOf(HasSubstr("q.sizes[3] = 32, v.sizes[3] = 32: head dim 32 has no kernel on "),
                                       HasSubstr("; use head dim 64, 128, 192/128 or 256")));
  EXPECT_THAT(with_dims(64, 32), HasSubstr("q.sizes[3] = 64, v.sizes[3] = 32: head dim 64/32 has no kernel on "));
  // A shape's code has no bits for them: they had the kernels of 128 dims.
  const BackwardOutput output = run_backward(engine_.get(), arrays, [&](auto& call) {
    for (wavejit_tensor* t : {&call.q, &call.k, &call.dq, &call.dk, &call.v, &call.o, &call.d_o, &call.dv})
      *t = wavejit_dense_tensor(t->data, static_cast<wavejit_dtype>(t->dtype), t->sizes[0], t->sizes[1], t->sizes[2],
                                1152);
  });
  EXPECT_EQ(output.status, WAVEJIT_UNSUPPORTED);
  EXPECT_THAT(output.detail,
              HasSubstr("q.sizes[3] (head dim) = 1152: head dim 1152 has no kernel; accepted: multiples"));
}

// Half the registers of the others hold none of them.
TEST(WideHeadsOfWavesOf32, AreRefusedByName) {
  const Engine engine("gfx1201");
  for (const auto& [dims, refusal] :
       {std::pair{"d192/128", "q.sizes[3] = 192, v.sizes[3] = 128: head dim 192/128 has no kernel on gfx1201"},
        {"d256", "q.sizes[3] = 256, v.sizes[3] = 256: head dim 256 has no kernel on gfx1201"}}) {
    const BackwardOutput output =
        run_backward(engine.get(), backward_arrays(std::string("bf16 b1 q40 k40 h1 ") + dims));
    EXPECT_EQ(output.status, WAVEJIT_UNSUPPORTED);
    EXPECT_THAT(output.detail, HasSubstr(refusal));
    EXPECT_THAT(output.detail, HasSubstr("; use head dim 128 or 64; reason: " + std::string(dims) +
                                         " takes more than the 256 registers of a wave of gfx1201"));
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, WideHeads, ::testing::Values("gfx942", "gfx950"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace wavejit::tests
