// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Packed lengths, masks and modifiers of a call: every field wrong in every way is refused by name, and right ones
// become what kernels read.
#include <functional>
#include <limits>

#include "runtime_fixture.h"
#include "templates/attention_forward/call/problem.h"

namespace wavejit::tests {
namespace {

using Call = wavejit_attention_forward_arguments;

wavejit_tensor bias_of(const Call& call, bool by_batch = true, bool by_head = true) {
  const std::int64_t rows = call.q.sizes[1];
  const std::int64_t keys = call.k.sizes[1];
  const std::int64_t padded = (keys + 7) / 8 * 8;
  const std::int64_t heads = by_head ? call.q.sizes[2] : 1;
  return {.data = fake_address(6),
          .dtype = call.q.dtype,
          .reserved = 0,
          .sizes = {by_batch ? call.q.sizes[0] : 1, heads, rows, keys},
          .strides = {heads * rows * padded, rows * padded, padded, 1}};
}

wavejit_tensor per_head(const Call& call, std::uint64_t address, std::int64_t batch) {
  const std::int64_t heads = call.q.sizes[2];
  return {.data = fake_address(address),
          .dtype = WAVEJIT_FP32,
          .reserved = 0,
          .sizes = {batch, heads, 1, 1},
          .strides = {heads, 1, 1, 1}};
}

// Everything at once.
Call full_call() {
  Call call = good_call();
  call.lse = good_lse(call);
  call.mask.bits = WAVEJIT_MASK_WINDOW | WAVEJIT_MASK_PREFIX;
  call.mask.window_left = 100;
  call.mask.window_right = 3;
  call.mask.causal_prefix = 200;
  call.modifiers.bias = bias_of(call);
  call.modifiers.alibi = per_head(call, 7, call.q.sizes[0]);
  call.modifiers.sink = per_head(call, 8, 1);
  call.modifiers.softcap = 30;
  call.split.splits = 1;
  return call;
}

Call packed_call() {
  Call call = good_call(1, 1000, 3000);
  call.sequences.query_starts = static_cast<const std::int32_t*>(fake_address(9));
  call.sequences.key_starts = static_cast<const std::int32_t*>(fake_address(10));
  call.sequences.count = 5;
  call.sequences.max_query_length = 300;
  call.sequences.max_key_length = 3000;
  return call;
}

struct BadField {
  std::string name;
  Call (*base)();
  std::function<void(Call&)> spoil;
  std::string detail;
};

class BadFields : public ::testing::TestWithParam<BadField> {};

TEST(CheckedProblem, KnowsABiasInFp32) {
  Call call = full_call();
  const auto narrow = attention_forward::check_attention_forward(&call);
  ASSERT_TRUE(narrow) << narrow.error().detail;
  EXPECT_FALSE(narrow->shape.bias_fp32);
  call.modifiers.bias.dtype = WAVEJIT_FP32;
  const auto wide = attention_forward::check_attention_forward(&call);
  ASSERT_TRUE(wide) << wide.error().detail;
  EXPECT_TRUE(wide->shape.bias_fp32);
  EXPECT_NE(wide->shape.code(), narrow->shape.code());
  EXPECT_EQ(attention_forward::AttentionShape::of_code(wide->shape.code()).bias_fp32, true);
}

TEST(CheckedProblem, TakesABiasThatAllBatchesHeadsOrRowsShare) {
  for (int d = 0; d < 3; ++d) {
    Call call = full_call();
    call.modifiers.bias.strides[d] = 0;
    const auto checked = attention_forward::check_attention_forward(&call);
    EXPECT_TRUE(checked) << checked.error().detail;
  }
}

TEST_P(BadFields, AreRefusedByName) {
  Call call = GetParam().base();
  const auto good = attention_forward::check_attention_forward(&call);
  ASSERT_TRUE(good || good.error().status == WAVEJIT_UNSUPPORTED) << good.error().detail;
  GetParam().spoil(call);
  const auto problem = attention_forward::check_attention_forward(&call);
  ASSERT_FALSE(problem);
  EXPECT_EQ(problem.error().status, WAVEJIT_INVALID_ARGUMENT) << problem.error().detail;
  EXPECT_THAT(problem.error().detail, ::testing::HasSubstr(GetParam().detail));
  EXPECT_THAT(problem.error().detail, ::testing::HasSubstr("accepted"));
}

std::vector<BadField> bad_fields() {
  std::vector<BadField> list;
  const auto add = [&](std::string name, auto spoil, std::string detail) {
    list.push_back({std::move(name), full_call, spoil, std::move(detail)});
  };
  const auto add_packed = [&](std::string name, auto spoil, std::string detail) {
    list.push_back({"packed_" + std::move(name), packed_call, spoil, std::move(detail)});
  };
  add("mask_bits", [](Call& c) { c.mask.bits = 16; }, "mask = 16; accepted: 0 (none), or a sum of 1");
  add(
      "chunks_without_causal", [](Call& c) { c.mask.bits = WAVEJIT_MASK_CHUNKED; },
      "mask = 8; accepted: 8 (chunked) with 1");
  add(
      "chunks_beside_a_window",
      [](Call& c) { c.mask.bits = WAVEJIT_MASK_CHUNKED | WAVEJIT_MASK_CAUSAL | WAVEJIT_MASK_WINDOW; },
      "mask = 11; accepted: 8 (chunked) with 1 (causal) and without 2 (window)");
  add("chunk_unasked", [](Call& c) { c.mask.local_chunk = 5; }, "local_chunk = 5; accepted: 0 unless mask has");
  const auto chunked = [](std::int64_t keys) {
    return [keys](Call& c) {
      c.mask.bits = WAVEJIT_MASK_CHUNKED | WAVEJIT_MASK_CAUSAL | WAVEJIT_MASK_PREFIX;
      c.mask.window_left = c.mask.window_right = 0;
      c.mask.local_chunk = keys;
    };
  };
  add("chunk_of_nothing", chunked(0), "local_chunk = 0; accepted: 1 to 1073741824 keys");
  add("chunk_negative", chunked(-3), "local_chunk = -3");
  add("chunk_beyond_every_length", chunked((std::int64_t{1} << 30) + 1), "local_chunk = 1073741825");
  add("window_left", [](Call& c) { c.mask.window_left = -2; }, "window_left = -2");
  add(
      "window_right", [](Call& c) { c.mask.window_right = std::numeric_limits<int>::min(); },
      "window_right = -2147483648");
  add("window_unasked", [](Call& c) { c.mask.bits = WAVEJIT_MASK_CAUSAL | WAVEJIT_MASK_PREFIX; }, "window_left = 100");
  add("prefix_negative", [](Call& c) { c.mask.causal_prefix = -1; }, "causal_prefix = -1");
  add("prefix_beyond_keys", [](Call& c) { c.mask.causal_prefix = 513; }, "causal_prefix = 513; accepted: 0 to 512");
  add("prefix_unasked", [](Call& c) { c.mask.bits = WAVEJIT_MASK_WINDOW; }, "causal_prefix = 200; accepted: 0 unless");
  add(
      "prefix_without_diagonal",
      [](Call& c) {
        c.mask.bits = WAVEJIT_MASK_PREFIX;
        c.mask.window_left = c.mask.window_right = 0;
        c.modifiers.alibi.data = nullptr;
      },
      "mask = 4");
  add(
      "bias_dtype", [](Call& c) { c.modifiers.bias.dtype = WAVEJIT_BF16; },
      "bias.dtype = 2 (bf16); accepted: 1 (fp16), the dtype of q, or 3 (fp32)");
  add(
      "bias_misaligned", [](Call& c) { c.modifiers.bias.data = reinterpret_cast<void*>(0x10008); },
      "bias.data = 0x10008");
  add("bias_reserved", [](Call& c) { c.modifiers.bias.reserved = 1; }, "bias.reserved = 1");
  add("bias_batch", [](Call& c) { c.modifiers.bias.sizes[0] = 3; }, "bias.sizes[0] = 3; accepted: 1 or 2");
  add("bias_heads", [](Call& c) { c.modifiers.bias.sizes[1] = 2; }, "bias.sizes[1] = 2; accepted: 1 or 8");
  add("bias_rows", [](Call& c) { c.modifiers.bias.sizes[2] = 1; }, "bias.sizes[2] = 1; accepted: 255");
  add("bias_keys", [](Call& c) { c.modifiers.bias.sizes[3] = 511; }, "bias.sizes[3] = 511; accepted: 512");
  add("bias_row_stride_odd", [](Call& c) { c.modifiers.bias.strides[2] = 513; }, "bias.strides[2] = 513");
  add(
      "bias_row_stride_short", [](Call& c) { c.modifiers.bias.strides[2] = 256; },
      "bias.strides[2] = 256; accepted: 0, or 512");
  add(
      "bias_row_stride_huge", [](Call& c) { c.modifiers.bias.strides[2] = std::int64_t{1} << 32; },
      "bias: bytes of one batch");
  add("bias_batch_stride", [](Call& c) { c.modifiers.bias.strides[0] = -8; }, "bias.strides[0] = -8");
  add("bias_key_stride", [](Call& c) { c.modifiers.bias.strides[3] = 2; }, "bias.strides[3] = 2");
  add("bias_on_o", [](Call& c) { c.modifiers.bias.data = c.o.data; }, "o.data");
  add(
      "bias_in_the_second_half_of_an_o_in_fp32",
      [](Call& c) {
        c.o.dtype = WAVEJIT_FP32;
        const std::int64_t bytes = c.o.sizes[0] * c.o.strides[0] * std::int64_t{sizeof(float)};
        c.modifiers.bias.data = static_cast<char*>(c.o.data) + (bytes / 2);
      },
      "o.data");
  for (const auto& [name, tensor] :
       {std::pair{"alibi", &wavejit_modifiers::alibi}, {"sink", &wavejit_modifiers::sink}}) {
    const std::string field = name;
    add(field + "_dtype", [=](Call& c) { (c.modifiers.*tensor).dtype = WAVEJIT_FP16; }, field + ".dtype = 1 (fp16)");
    add(field + "_heads", [=](Call& c) { (c.modifiers.*tensor).sizes[1] = 7; }, field + ".sizes[1] = 7; accepted: 8");
    add(field + "_rows", [=](Call& c) { (c.modifiers.*tensor).sizes[2] = 2; }, field + ".sizes[2] = 2; accepted: 1");
    add(field + "_batch", [=](Call& c) { (c.modifiers.*tensor).sizes[0] = 5; }, field + ".sizes[0] = 5");
    add(
        field + "_stride", [=](Call& c) { (c.modifiers.*tensor).strides[1] = 2; },
        field + ".strides[1] = 2; accepted: 1");
    add(
        field + "_misaligned", [=](Call& c) { (c.modifiers.*tensor).data = reinterpret_cast<void*>(0x10002); },
        field + ".data = 0x10002");
  }
  add("alibi_batch_stride", [](Call& c) { c.modifiers.alibi.strides[0] = 4; }, "alibi.strides[0] = 4; accepted: 8");
  for (const float cap : {-1.0F, std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN(),
                          std::numeric_limits<float>::denorm_min()}) {
    add("softcap_" + std::to_string(list.size()), [=](Call& c) { c.modifiers.softcap = cap; }, "softcap = ");
  }
  add("splits_negative", [](Call& c) { c.split.splits = -1; }, "splits = -1");
  add("splits_absurd", [](Call& c) { c.split.splits = 65536; }, "splits = 65536");
  add(
      "workspace_misaligned", [](Call& c) { c.split.workspace = reinterpret_cast<void*>(0x10080); },
      "workspace = 0x10080");
  add("workspace_bytes_of_nothing", [](Call& c) { c.split.workspace_bytes = 1; }, "workspace_bytes = 1");
  add("flags", [](Call& c) { c.head.flags = 256; }, "flags = 256");
  add(
      "alike_without_lists", [](Call& c) { c.head.flags = WAVEJIT_LISTS_ALIKE; },
      "flags = 2; accepted: 2 (lists alike) beside list_indices or full_indices only");
  add("sequences_of_dense", [](Call& c) { c.sequences.count = 3; }, "sequences = 3; accepted: 0 or 2 (q.sizes[0])");
  add(
      "max_query_of_dense", [](Call& c) { c.sequences.max_query_length = 254; },
      "max_query_length = 254; accepted: 0 or 255");
  add("max_key_of_dense", [](Call& c) { c.sequences.max_key_length = 1; }, "max_key_length = 1; accepted: 0 or 512");
  add(
      "key_lengths_misaligned",
      [](Call& c) { c.sequences.key_lengths = reinterpret_cast<const std::int32_t*>(0x10002); },
      "key_lengths = 0x10002");

  add_packed("sequences_none", [](Call& c) { c.sequences.count = 0; }, "sequences = 0");
  add_packed("sequences_absurd", [](Call& c) { c.sequences.count = 65536; }, "sequences = 65536");
  add_packed(
      "longest_query_none", [](Call& c) { c.sequences.max_query_length = 0; },
      "max_query_length = 0; accepted: 1 to 1000");
  add_packed("longest_query_beyond", [](Call& c) { c.sequences.max_query_length = 1001; }, "max_query_length = 1001");
  add_packed("longest_key_beyond", [](Call& c) { c.sequences.max_key_length = 3001; }, "max_key_length = 3001");
  add_packed(
      "longest_key_negative", [](Call& c) { c.sequences.max_key_length = -1; },
      "max_key_length = -1; accepted: 0 to 3000");
  add_packed("q_batch", [](Call& c) { c.q.sizes[0] = c.o.sizes[0] = 2; }, "q.sizes[0] (batch) = 2; accepted: 1");
  add_packed("k_batch", [](Call& c) { c.k.sizes[0] = c.v.sizes[0] = 2; }, "k.sizes[0] (batch) = 2; accepted: 1");
  add_packed(
      "query_starts_misaligned",
      [](Call& c) { c.sequences.query_starts = reinterpret_cast<const std::int32_t*>(0x10001); },
      "query_starts = 0x10001");
  add_packed(
      "queries_with_dense_keys", [](Call& c) { c.sequences.key_starts = nullptr; },
      "sequences = 5; accepted: 1 (k.sizes[0])");
  add_packed(
      "bias_rows",
      [](Call& c) {
        c.modifiers.bias = bias_of(c);
        c.modifiers.bias.sizes[2] = 300;
      },
      "bias.sizes[2] = 300; accepted: 1000");
  return list;
}

INSTANTIATE_TEST_SUITE_P(Every, BadFields, ::testing::ValuesIn(bad_fields()),
                         [](const auto& info) { return info.param.name; });

TEST(ChooseMask, WindowsWithoutALeftLimitAreTheSimplerMasks) {
  using attention_forward::Mask;
  using attention_forward::unlimited_window;
  EXPECT_EQ(attention_forward::choose_mask(false, true, -1, -1).mask, Mask::none);
  EXPECT_EQ(attention_forward::choose_mask(false, true, -1, 0).mask, Mask::causal);
  EXPECT_EQ(attention_forward::choose_mask(true, true, -1, 7).mask, Mask::causal);
  const auto window = attention_forward::choose_mask(true, true, 7, -1);
  EXPECT_EQ(window.mask, Mask::window);
  EXPECT_EQ(window.left, 7);
  EXPECT_EQ(window.right, 0);
  const auto beyond = attention_forward::choose_mask(false, true, std::numeric_limits<std::int64_t>::max(), 2);
  EXPECT_EQ(beyond.mask, Mask::window);
  EXPECT_EQ(beyond.left, unlimited_window);
  EXPECT_EQ(beyond.right, 2);
}

}  // namespace
}  // namespace wavejit::tests
