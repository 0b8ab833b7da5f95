// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A query row's output is a function of its own query, keys and values: the same bits alone or among others, in any
// batch position, behind either store path, on repeated runs; and tensors may be larger than 4 GiB.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <format>
#include <limits>
#include <string>
#include <tuple>

#include "support/attention_run.h"

namespace wavejit::tests {
namespace {

using Combination = std::tuple<std::string, Storage, int>;

class AttentionInvariance : public ::testing::TestWithParam<Combination> {
 protected:
  std::string target() const { return std::get<0>(GetParam()); }
  Storage storage() const { return std::get<1>(GetParam()); }
  int head_dim() const { return std::get<2>(GetParam()); }
};

std::vector<std::uint16_t> row_bits(const AttentionCase& which, const AttentionOutput& output, int batch, int row,
                                    int head) {
  const auto& in = which.inputs;
  const std::size_t at = ((std::size_t(batch) * in.query_length + row) * in.query_heads + head) * in.head_dim;
  return {output.o.begin() + at, output.o.begin() + at + in.head_dim};
}

AttentionOutput run(Engine& engine, const AttentionCase& which) {
  AttentionOutput output = run_attention(engine.get(), which);
  EXPECT_EQ(output.status, WAVEJIT_OK) << output.detail << output.reports;
  return output;
}

// Rows of a causal prefill, each computed alone as a decode step over the keys that it sees.
TEST_P(AttentionInvariance, RowAloneOrAmongOthers) {
  Engine engine(target());
  const AttentionCase whole = make_case(storage(), 1, 200, 200, 2, 1, head_dim(), true, 31);
  const AttentionOutput all = run(engine, whole);
  for (const int row : {0, 1, 31, 63, 64, 127, 130, 199}) {
    AttentionCase alone = whole;
    alone.inputs.query_length = 1;
    alone.inputs.key_length = row + 1;
    const std::size_t q_row = std::size_t(2) * head_dim();
    alone.inputs.q.assign(whole.inputs.q.begin() + row * q_row, whole.inputs.q.begin() + (row + 1) * q_row);
    alone.inputs.k.resize(std::size_t(row + 1) * head_dim());
    alone.inputs.v.resize(std::size_t(row + 1) * head_dim());
    const AttentionOutput one = run(engine, alone);
    for (int head = 0; head < 2; ++head) {
      EXPECT_EQ(row_bits(alone, one, 0, 0, head), row_bits(whole, all, 0, row, head))
          << "row " << row << " head " << head;
      EXPECT_EQ(one.lse[head], all.lse[head * 200 + row]) << "row " << row;
    }
  }
}

TEST_P(AttentionInvariance, BatchPositionDoesNotShow) {
  Engine engine(target());
  const AttentionCase one = make_case(storage(), 1, 70, 150, 2, 2, head_dim(), false, 32);
  const AttentionOutput alone = run(engine, one);
  AttentionCase three = make_case(storage(), 3, 70, 150, 2, 2, head_dim(), false, 33);
  for (int position = 0; position < 3; ++position) {
    AttentionCase mixed = three;
    std::ranges::copy(one.inputs.q, mixed.inputs.q.begin() + position * one.inputs.q.size());
    std::ranges::copy(one.inputs.k, mixed.inputs.k.begin() + position * one.inputs.k.size());
    std::ranges::copy(one.inputs.v, mixed.inputs.v.begin() + position * one.inputs.v.size());
    const AttentionOutput together = run(engine, mixed);
    const std::vector<std::uint16_t> slice(together.o.begin() + position * alone.o.size(),
                                           together.o.begin() + (position + 1) * alone.o.size());
    EXPECT_EQ(slice, alone.o) << "position " << position;
  }
}

// Keys beyond the causal end change nothing, whatever they hold: a chunk of a prefill equals the same rows of the
// whole.
TEST_P(AttentionInvariance, ChunkedPrefill) {
  Engine engine(target());
  const AttentionCase whole = make_case(storage(), 1, 150, 150, 1, 1, head_dim(), true, 34);
  const AttentionOutput all = run(engine, whole);
  const int begin = 50;
  const int end = 113;
  AttentionCase chunk = whole;
  chunk.inputs.query_length = end - begin;
  chunk.inputs.key_length = end;
  chunk.inputs.q.assign(whole.inputs.q.begin() + begin * head_dim(), whole.inputs.q.begin() + end * head_dim());
  chunk.inputs.k.resize(std::size_t(end) * head_dim());
  chunk.inputs.v.resize(std::size_t(end) * head_dim());
  const AttentionOutput part = run(engine, chunk);
  for (int row = begin; row < end; ++row) {
    EXPECT_EQ(row_bits(chunk, part, 0, row - begin, 0), row_bits(whole, all, 0, row, 0)) << "row " << row;
  }
}

TEST_P(AttentionInvariance, RepeatedRuns) {
  Engine engine(target());
  const AttentionCase which = make_case(storage(), 2, 129, 257, 4, 2, head_dim(), true, 35);
  const AttentionOutput first = run(engine, which);
  for (int i = 0; i < 3; ++i) {
    set_schedule(WAVEJIT_SIMGPU_RANDOM, 100 + i);
    EXPECT_EQ(run(engine, which).o, first.o);
  }
}

TEST_P(AttentionInvariance, StorePathsGiveTheSameBits) {
  Engine by_default(target());
  Engine scalar(target(), nullptr, "auto o_store=scalar");
  const AttentionCase which = make_case(storage(), 1, 100, 90, 2, 1, head_dim(), true, 36);
  EXPECT_EQ(run(by_default, which).o, run(scalar, which).o);
}

// NaN in the padding must not leak (support/attention_run.h puts it everywhere); NaN in one query row must stay in that
// row, on every pipeline.
TEST_P(AttentionInvariance, NanInOneQueryRowStaysThere) {
  AttentionCase which = make_case(storage(), 1, 70, 130, 1, 1, head_dim(), false, 27);
  AttentionCase with_nan = which;
  with_nan.inputs.q[(std::size_t{5} * head_dim()) + 3] = std::numeric_limits<float>::quiet_NaN();
  for (const char* pipeline : {"generic", target() == "gfx950" ? "dualwave" : "interleaved"}) {
    Engine engine(target(), nullptr, pipeline);
    const AttentionOutput clean = run(engine, which);
    const AttentionOutput dirty = run(engine, with_nan);
    for (int row = 0; row < 70; ++row) {
      const std::vector<std::uint16_t> bits = row_bits(which, dirty, 0, row, 0);
      const auto is_nan = [&](std::uint16_t element) { return std::isnan(from_storage(storage(), element)); };
      EXPECT_TRUE(row == 5 ? std::ranges::all_of(bits, is_nan) : bits == row_bits(which, clean, 0, row, 0)) << row;
    }
  }
}

// Two batch slices more than 4 GiB apart: address arithmetic of batches is 64 bits wide.
TEST_P(AttentionInvariance, TensorsLargerThanFourGigabytes) {
  Engine engine(target());
  const AttentionCase one = make_case(storage(), 1, 40, 70, 1, 1, head_dim(), false, 37);
  const AttentionOutput expected = run(engine, one);

  const std::int64_t batch_stride = (std::int64_t{5} << 30) / 2;  // 5 GiB
  const std::size_t bytes = 2 * (batch_stride + 70 * head_dim());
  void* memory[4] = {};
  const std::vector<float>* values[3] = {&one.inputs.q, &one.inputs.k, &one.inputs.v};
  wavejit_attention_forward_arguments call{};
  call.head.size = sizeof call;
  call.head.family = WAVEJIT_ATTENTION_FORWARD;
  wavejit_tensor* tensors[4] = {&call.q, &call.k, &call.v, &call.o};
  for (int i = 0; i < 4; ++i) {
    ASSERT_EQ(wavejit_device_allocate(engine.get(), bytes, &memory[i]), WAVEJIT_OK) << wavejit_last_detail();
    *tensors[i] = wavejit_dense_tensor(memory[i], storage() == Storage::fp16 ? WAVEJIT_FP16 : WAVEJIT_BF16, 2,
                                       i == 1 || i == 2 ? 70 : 40, 1, head_dim());
    tensors[i]->strides[0] = batch_stride;
    if (i == 3) continue;
    std::vector<std::uint16_t> bits(values[i]->size());
    std::ranges::transform(*values[i], bits.begin(), [&](float x) { return to_storage(storage(), x); });
    for (int batch = 0; batch < 2; ++batch) {
      auto* to = static_cast<std::uint16_t*>(memory[i]) + batch * batch_stride;
      ASSERT_EQ(wavejit_device_copy_in(engine.get(), to, bits.data(), bits.size() * 2), WAVEJIT_OK);
    }
  }
  call.modifiers.scale = static_cast<float>(one.inputs.scale);
  ASSERT_EQ(wavejit_attention_forward(engine.get(), &call, nullptr), WAVEJIT_OK) << wavejit_last_detail();
  ASSERT_EQ(wavejit_device_synchronize(engine.get()), WAVEJIT_OK) << wavejit_last_detail();
  for (int batch = 0; batch < 2; ++batch) {
    std::vector<std::uint16_t> bits(expected.o.size());
    const auto* from = static_cast<std::uint16_t*>(memory[3]) + batch * batch_stride;
    ASSERT_EQ(wavejit_device_copy_out(engine.get(), bits.data(), from, bits.size() * 2), WAVEJIT_OK);
    EXPECT_EQ(bits, expected.o) << "batch " << batch;
  }
  for (void* block : memory) EXPECT_EQ(wavejit_device_free(engine.get(), block), WAVEJIT_OK);
}

std::string name_of(const ::testing::TestParamInfo<Combination>& info) {
  const auto [target, storage, head_dim] = info.param;
  return std::format("{}_{}_d{}", target, storage == Storage::fp16 ? "fp16" : "bf16", head_dim);
}

INSTANTIATE_TEST_SUITE_P(All, AttentionInvariance,
                         ::testing::Combine(::testing::Values(std::string("gfx942"), std::string("gfx950")),
                                            ::testing::Values(Storage::fp16, Storage::bf16),
                                            ::testing::Values(64, 128)),
                         name_of);

}  // namespace
}  // namespace wavejit::tests
