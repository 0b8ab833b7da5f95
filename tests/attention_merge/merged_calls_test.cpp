// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Attention over pieces of the keys, merged: a prefix that sequences share, keys that lie on several devices. The
// result is compared with float64 attention over all keys at once.
#include <gtest/gtest.h>

#include <bit>
#include <span>
#include <string>
#include <vector>

#include "attention_merge/merge_run.h"

namespace wavejit::tests {
namespace {

// Keys first … end − 1 of each batch, in place of all.
std::vector<float> rows_of_keys(const AttentionInputs& all, const std::vector<float>& rows, int dims, int first,
                                int end) {
  std::vector<float> cut;
  const auto row = static_cast<std::ptrdiff_t>(all.kv_heads) * dims;
  for (std::ptrdiff_t batch = 0; batch < all.batch; ++batch) {
    const auto begin = rows.begin() + (batch * all.key_length * row);
    cut.insert(cut.end(), begin + (first * row), begin + (end * row));
  }
  return cut;
}

// A call's result as a part: [batch][token][head].
MergePart part_of(const AttentionOutput& output, int batch, int tokens, int heads, Storage storage, bool in_fp32) {
  MergePart part;
  if (in_fp32)
    part.o = output_in_fp32(output);
  else
    for (const std::uint16_t bits : output.o) part.o.push_back(from_storage(storage, bits));
  const auto all = static_cast<std::size_t>(tokens);
  for (std::size_t b = 0; std::cmp_less(b, batch); ++b)
    for (std::size_t token = 0; token < all; ++token)
      for (std::size_t head = 0; std::cmp_less(head, heads); ++head)
        part.lse.push_back(output.lse[(((b * static_cast<std::size_t>(heads)) + head) * all) + token]);
  return part;
}

// What the merge gives, as a call of attention gives it.
AttentionOutput as_attention(const MergeOutput& merged, int batch, int tokens, int heads) {
  AttentionOutput output;
  for (const std::uint32_t bits : merged.o) output.o.push_back(static_cast<std::uint16_t>(bits));
  for (std::size_t b = 0; std::cmp_less(b, batch); ++b)
    for (std::size_t head = 0; std::cmp_less(head, heads); ++head)
      for (std::size_t token = 0; std::cmp_less(token, tokens); ++token)
        output.lse.push_back(
            merged.lse[(((b * static_cast<std::size_t>(tokens)) + token) * static_cast<std::size_t>(heads)) + head]);
  return output;
}

class MergedCalls : public ::testing::TestWithParam<const char*> {
 protected:
  AttentionOutput attend(const AttentionCase& which) {
    AttentionOutput output = run_attention(engine_.get(), which);
    EXPECT_EQ(output.status, WAVEJIT_OK) << output.detail << output.reports;
    return output;
  }
  Engine engine_{GetParam()};
};

// Context parallelism: each device has some of the keys, none of them in one case, and all have the queries.
TEST_P(MergedCalls, KeysOfSeveralDevices) {
  for (const bool in_fp32 : {true, false}) {
    const AttentionCase whole = make_case(Storage::bf16, 2, 3, 1500, 8, 2, 64, false, 60);
    const AttentionInputs& inputs = whole.inputs;
    MergeCase merge = {.type = in_fp32 ? WAVEJIT_FP32 : WAVEJIT_BF16,
                       .batch = inputs.batch,
                       .tokens = inputs.query_length,
                       .heads = inputs.query_heads,
                       .dims = inputs.head_dim};
    constexpr int cuts[] = {0, 700, 701, 701, 1500};
    for (std::size_t device = 0; device + 1 < std::size(cuts); ++device) {
      AttentionCase part = whole;
      part.output_fp32 = in_fp32;
      part.inputs.key_length = cuts[device + 1] - cuts[device];
      part.inputs.k = rows_of_keys(inputs, inputs.k, inputs.head_dim, cuts[device], cuts[device + 1]);
      part.inputs.v = rows_of_keys(inputs, inputs.v, inputs.head_dim, cuts[device], cuts[device + 1]);
      merge.parts.push_back(
          part_of(attend(part), inputs.batch, inputs.query_length, inputs.query_heads, whole.storage, in_fp32));
    }
    const MergeOutput merged = run_merge(engine_.get(), merge);
    ASSERT_EQ(merged.status, WAVEJIT_OK) << merged.detail;
    const AttentionOutput output = as_attention(merged, inputs.batch, inputs.query_length, inputs.query_heads);
    EXPECT_EQ(compare_rows(whole, attention_reference(inputs), output).wrong(), "") << "parts in fp32: " << in_fp32;
    // What the parts' own rounding costs shows in nothing else: their merge is exact for what they are.
    EXPECT_EQ(difference_from_exact(merge, merged), "");
  }
}

// A cascade: the prefix is attended to once, by the rows of all sequences side by side, each sequence's own keys by
// itself, causal.
TEST_P(MergedCalls, APrefixThatSequencesShare) {
  constexpr int prefix = 1100;
  constexpr int own = 70;
  constexpr int sequences = 3;
  constexpr int tokens = 4;
  AttentionCase whole = make_case(Storage::fp16, sequences, tokens, prefix + own, 4, 2, 128, true, 70);
  const auto row = static_cast<std::size_t>(whole.inputs.kv_heads) * 128;
  // One prefix for all.
  for (auto* rows : {&whole.inputs.k, &whole.inputs.v})
    for (std::size_t batch = 1; batch < sequences; ++batch)
      for (std::size_t at = 0; at < prefix * row; ++at) (*rows)[(batch * (prefix + own) * row) + at] = (*rows)[at];
  const AttentionInputs& inputs = whole.inputs;

  AttentionCase shared = whole;
  shared.output_fp32 = true;
  shared.inputs.causal = false;
  shared.inputs.batch = 1;
  shared.inputs.query_length = sequences * tokens;
  shared.inputs.key_length = prefix;
  shared.inputs.k.resize(prefix * row);
  shared.inputs.v.resize(prefix * row);
  AttentionCase each = whole;
  each.output_fp32 = true;
  each.inputs.key_length = own;
  each.inputs.k = rows_of_keys(inputs, inputs.k, 128, prefix, prefix + own);
  each.inputs.v = rows_of_keys(inputs, inputs.v, 128, prefix, prefix + own);

  MergeCase merge = {.type = WAVEJIT_FP32,
                     .out = WAVEJIT_FP16,
                     .batch = sequences,
                     .tokens = tokens,
                     .heads = inputs.query_heads,
                     .dims = 128};
  merge.parts.push_back(part_of(attend(shared), 1, sequences * tokens, inputs.query_heads, whole.storage, true));
  merge.parts.push_back(part_of(attend(each), sequences, tokens, inputs.query_heads, whole.storage, true));
  const MergeOutput merged = run_merge(engine_.get(), merge);
  ASSERT_EQ(merged.status, WAVEJIT_OK) << merged.detail;
  const AttentionOutput output = as_attention(merged, sequences, tokens, inputs.query_heads);
  EXPECT_EQ(compare_rows(whole, attention_reference(inputs), output).wrong(), "");
}

INSTANTIATE_TEST_SUITE_P(All, MergedCalls, ::testing::Values("gfx942", "gfx950", "gfx1201"));

}  // namespace
}  // namespace wavejit::tests
