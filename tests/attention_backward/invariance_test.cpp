// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Bits of gradients that do not show how work is cut: batch, place, packing, padding, wave schedules. What another
// project gets from f32 atomics, in whatever order they arrive.
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "attention_backward/backward_run.h"

namespace wavejit::tests {
namespace {

class BackwardInvariance : public ::testing::TestWithParam<const char*> {
 protected:
  BackwardOutput run(const Arrays& arrays) {
    BackwardOutput output = run_backward(engine_.get(), arrays);
    EXPECT_EQ(output.status, WAVEJIT_OK) << output.detail << output.reports;
    return output;
  }
  Engine engine_{GetParam()};
};

// Sequence `batch` of dense arrays, as a call of its own.
Arrays alone(const Arrays& all, std::int64_t batch) {
  Arrays one = all;
  one.experiment.batch = 1;
  const auto cut = [&](auto& values) {
    const auto each = static_cast<std::ptrdiff_t>(values.size()) / all.experiment.batch;
    values = {values.begin() + (batch * each), values.begin() + ((batch + 1) * each)};
  };
  cut(one.q);
  cut(one.k);
  cut(one.v);
  cut(one.o);
  cut(one.d_o);
  cut(one.lse);
  return one;
}

// The same sequences, one behind the other.
Arrays packed(const Arrays& dense) {
  Arrays all = dense;
  all.experiment.layout = attention::program::ArrayLayout::packed;
  all.query_starts = all.key_starts = {0};
  for (std::int64_t b = 0; b < dense.experiment.batch; ++b) {
    all.query_starts.push_back(all.query_starts.back() + static_cast<std::int32_t>(dense.experiment.query_length));
    all.key_starts.push_back(all.key_starts.back() + static_cast<std::int32_t>(dense.experiment.key_length));
  }
  // [batch][head][row] → [head][row of all]
  const std::int64_t rows = dense.experiment.query_length;
  for (std::int64_t b = 0; b < dense.experiment.batch; ++b)
    for (std::int64_t h = 0; h < dense.experiment.query_heads; ++h)
      for (std::int64_t row = 0; row < rows; ++row)
        all.lse[static_cast<std::size_t>((((h * dense.experiment.batch) + b) * rows) + row)] =
            dense.lse[static_cast<std::size_t>((((b * dense.experiment.query_heads) + h) * rows) + row)];
  return all;
}

std::vector<std::uint32_t> slice(const std::vector<std::uint32_t>& values, std::int64_t batch, std::int64_t batches) {
  const auto each = static_cast<std::ptrdiff_t>(values.size()) / batches;
  return {values.begin() + (batch * each), values.begin() + ((batch + 1) * each)};
}

TEST_P(BackwardInvariance, ASequenceAloneInABatchAndPacked) {
  const Arrays all = backward_arrays("bf16 b3 q130 k150 h4/2 d64 causal");
  const BackwardOutput batch = run(all);
  for (std::int64_t b = 0; b < 3; ++b) {
    const BackwardOutput one = run(alone(all, b));
    EXPECT_EQ(one.dq, slice(batch.dq, b, 3)) << b;
    EXPECT_EQ(one.dk, slice(batch.dk, b, 3)) << b;
    EXPECT_EQ(one.dv, slice(batch.dv, b, 3)) << b;
  }
  EXPECT_TRUE(run(packed(all)) == batch);
}

// Rows behind the last of a sequence and keys that do not count change nothing.
TEST_P(BackwardInvariance, PaddedKeys) {
  const Arrays whole = backward_arrays("bf16 b1 q70 k90 h2/1 d128 causal");
  Arrays padded = whole;
  padded.experiment.key_length = 200;
  padded.key_lengths = {90};
  for (auto* values : {&padded.k, &padded.v}) values->resize(values->size() / 90 * 200, 0x7FFF);  // NaN
  const BackwardOutput one = run(whole);
  const BackwardOutput other = run(padded);
  EXPECT_EQ(other.dq, one.dq);
  for (const auto& [with, without] : {std::pair{&other.dk, &one.dk}, {&other.dv, &one.dv}}) {
    EXPECT_TRUE(std::equal(without->begin(), without->end(), with->begin()));
    for (std::size_t i = without->size(); i < with->size(); ++i) ASSERT_EQ((*with)[i], 0U);
  }
}

TEST_P(BackwardInvariance, WaveSchedulesAndRepeatedCalls) {
  const Arrays arrays = backward_arrays("fp16 b1 q200 k150 h2/1 d128 causal");
  const BackwardOutput first = run(arrays);
  for (const wavejit_simgpu_schedule schedule :
       {WAVEJIT_SIMGPU_IN_ORDER, WAVEJIT_SIMGPU_REVERSE, WAVEJIT_SIMGPU_RANDOM}) {
    set_schedule(schedule, 7);
    EXPECT_TRUE(run(arrays) == first);
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, BackwardInvariance, ::testing::Values("gfx942", "gfx950", "gfx1201"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace wavejit::tests
