// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Calls whose Q, K and V are e4m3: against float64 on what their bytes and scales say, with the same bits on every
// pipeline and in every layout, and refused by name where there is no kernel. All around the tensors is NaN.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "attention/modified.h"
#include "support/byte_floats.h"

namespace wavejit::tests {
namespace {

// Scales that are no powers of two.
AttentionCase byte_case(Storage storage, int batch, int queries, int keys, int heads, int kv_heads, bool causal,
                        std::uint64_t seed) {
  AttentionCase which = make_case(storage, batch, queries, keys, heads, kv_heads, 128, causal, seed, 1.0, 0);
  StoredBytes bytes{.type = WAVEJIT_E4M3, .heads = kv_heads, .queries = true, .q_scale = 1.125F};
  for (int h = 0; h < kv_heads; ++h) {
    bytes.k_scale.push_back(h % 2 == 0 ? 0.8125F : 1.0625F);
    bytes.v_scale.push_back(h % 2 == 0 ? 1.375F : 0.6875F);
  }
  return stored_in_bytes(std::move(which), std::move(bytes));
}

// The signal of O to its difference from float64.
double decibels(const AttentionCase& which, const AttentionOutput& output) {
  const AttentionAnswer exact = attention_reference(which.inputs);
  const std::vector<float> wide = which.output_fp32 ? output_in_fp32(output) : std::vector<float>();
  double signal = 0;
  double noise = 0;
  for (std::size_t i = 0; i < exact.o.size(); ++i) {
    const double value = which.output_fp32 ? wide[i] : from_storage(which.storage, output.o[i]);
    signal += exact.o[i] * exact.o[i];
    noise += (value - exact.o[i]) * (value - exact.o[i]);
  }
  for (std::size_t i = 0; i < exact.lse.size(); ++i) {
    if (std::isinf(exact.lse[i])) {
      EXPECT_EQ(output.lse[i], static_cast<float>(exact.lse[i])) << i;
    } else {
      // ln(1 + 2⁻⁴), and f32.
      EXPECT_NEAR(output.lse[i], exact.lse[i], 0.0607 + (1e-6 * std::fabs(exact.lse[i]))) << i;
    }
  }
  return 10 * std::log10(signal / noise);
}

const Pipelines& pipelines() {
  static const Pipelines all("gfx950");
  return all;
}

AttentionOutput check(const AttentionCase& which, double least = 31) {
  AttentionOutput output = pipelines().run(which);
  EXPECT_NE(output.kernel_spec.find(" queries=e4m3"), std::string::npos) << output.kernel_spec << output.detail;
  if (output.status == WAVEJIT_OK && !output.o.empty()) EXPECT_GE(decibels(which, output), least);
  return output;
}

TEST(ByteQueryCalls, DenseKeysMatchFloat64) {
  check(byte_case(Storage::bf16, 2, 33, 200, 4, 2, false, 1));
  check(byte_case(Storage::fp16, 1, 260, 300, 2, 1, true, 2));
  AttentionCase which = byte_case(Storage::bf16, 2, 70, 150, 4, 2, false, 3);
  which.layout = Layout::bhsd;
  which.inputs.window = true;
  which.inputs.window_left = 50;
  which.inputs.window_right = 3;
  check(which);
  which.output_fp32 = true;
  check(which);
}

TEST(ByteQueryCalls, SinksJoinRows) {
  AttentionCase which = byte_case(Storage::bf16, 1, 40, 150, 4, 2, true, 11);
  add_sink(which, 0.5);
  check(which, 30);
}

// Rows of one key: V itself, whatever their scores are, but for the reciprocal of the one weight and a product with it,
// 2⁻²³ each.
TEST(ByteQueryCalls, ScalesOfValuesAreRoundedOnce) {
  AttentionCase which = byte_case(Storage::bf16, 1, 5, 1, 2, 2, false, 12);
  which.output_fp32 = true;
  const AttentionOutput output = check(which, 100);
  const std::vector<float> values = output_in_fp32(output);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const float wanted = which.inputs.v[i % 256];
    EXPECT_NEAR(values[i], wanted, 0x1p-22F * std::fabs(wanted)) << i;
  }
}

TEST(ByteQueryCalls, SequencesInPagesHaveTheBitsOfDenseKeys) {
  AttentionCase which = byte_case(Storage::bf16, 3, 40, 200, 4, 2, true, 21);
  which.inputs.key_lengths = {1, 77, 200};
  const AttentionOutput dense = check(which);
  for (const int size : {16, 64}) {
    which.pages = Pages{.size = size, .heads_first = size == 16, .list = size != 16};
    const AttentionOutput paged = check(which);
    EXPECT_TRUE(paged.o == dense.o) << size;
    EXPECT_TRUE(bits_of(paged.lse) == bits_of(dense.lse)) << size;
  }
}

// One long sequence, one of three rows, and one without keys.
TEST(ByteQueryCalls, PackedSequencesMatchFloat64) {
  AttentionCase which = byte_case(Storage::bf16, 1, 340, 1500, 2, 1, true, 25);
  AttentionInputs& in = which.inputs;
  in.batch = 3;
  in.query_length = 300;
  in.key_length = 1100;
  in.query_starts = {0, 3, 303, 340};
  in.key_starts = {0, 1100, 1500, 1500};
  check(which);
}

// Long keys are not split, and short rows share workgroups.
TEST(ByteQueryCalls, FewRowsOverManyKeysMatchFloat64) {
  const AttentionOutput output = check(byte_case(Storage::bf16, 1, 1, 3000, 4, 1, false, 31));
  EXPECT_EQ(output.kernel_spec.find(" split="), std::string::npos) << output.kernel_spec;
}

TEST(ByteQueryCalls, OthersAreRefusedByName) {
  Engine engine("gfx950");
  const AttentionCase which = byte_case(Storage::bf16, 1, 8, 16, 2, 1, false, 41);
  const auto refusal = [](Engine& of, const AttentionCase& asked, const ChangeForwardCall& change = {}) {
    const AttentionOutput output = run_attention(of.get(), asked, change);
    EXPECT_NE(output.status, WAVEJIT_OK);
    return output.detail;
  };
  using Call = wavejit_attention_forward_arguments;
  EXPECT_NE(refusal(engine, which, [](Call& call) { call.k.dtype = WAVEJIT_BF16; }).find("k.dtype = 2 (bf16)"),
            std::string::npos);
  EXPECT_NE(refusal(engine, which, [](Call& call) { call.v.dtype = WAVEJIT_E5M2; }).find("v.dtype"), std::string::npos);
  EXPECT_NE(refusal(engine, which, [](Call& call) { call.q.dtype = WAVEJIT_E5M2; }).find("q.dtype"), std::string::npos);
  EXPECT_NE(refusal(engine, which, [](Call& call) { call.o.dtype = WAVEJIT_E5M2; }).find("o.dtype"), std::string::npos);
  AttentionCase other = which;
  other.inputs.softcap = 5;
  EXPECT_NE(refusal(engine, other).find("softcap"), std::string::npos);
  other = which;
  add_bias(other, 1, 1, 1, 43);
  EXPECT_NE(refusal(engine, other).find("leave bias out"), std::string::npos);
  other = which;
  other.inputs.key_lengths = {16};
  other.first_keys = {3};
  EXPECT_NE(refusal(engine, other).find("first_keys"), std::string::npos);
  other = which;
  add_alibi(other, 1);
  EXPECT_NE(refusal(engine, other).find("alibi"), std::string::npos);
  AttentionCase wide = make_case(Storage::bf16, 1, 8, 16, 2, 1, 128, false, 42, 1.0, 0);
  EXPECT_NE(
      refusal(engine, wide,
              [](Call& call) { call.scales.q_scale = wavejit_dense_tensor(call.q.data, WAVEJIT_FP32, 1, 1, 1, 1); })
          .find("q_scale.data"),
      std::string::npos);
  Engine older("gfx942");
  EXPECT_NE(refusal(older, which).find("has no kernel on gfx942"), std::string::npos);
}

}  // namespace
}  // namespace wavejit::tests
