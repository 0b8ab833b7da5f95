// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Every field of a call, wrong in every way: a status, a line that names the field, the value and what is accepted, and
// nothing launched.
#include "templates/attention_forward/call/problem.h"

#include <cmath>
#include <functional>
#include <limits>
#include <numbers>
#include <set>

#include "runtime_fixture.h"

namespace wavejit::tests {
namespace {

using Call = wavejit_attention_forward_arguments;

struct BadCall {
  std::string name;
  std::function<void(Call&)> spoil;
  wavejit_status status;
  std::string detail;  // a part of it
};

class BadArguments : public RuntimeTest, public ::testing::WithParamInterface<BadCall> {
 protected:
  void SetUp() override {
    RuntimeTest::SetUp();
    config_.cache_mode.value = cache::Mode::off;
  }
};

// The same of a call whose keys stand in pages.
class BadPages : public BadArguments {
 public:
  static Call good_paged_call() {
    Call call = good_call(2, 255, 16);
    call.k.sizes[0] = call.v.sizes[0] = 70;
    call.sequences.key_lengths = static_cast<const std::int32_t*>(fake_address(6));
    call.pages.block_table = static_cast<const std::int32_t*>(fake_address(7));
    call.pages.table_columns = 32;
    call.sequences.max_key_length = 512;
    return call;
  }
};

TEST_P(BadPages, AreRefusedByNameAndLaunchNothing) {
  const auto engine = make_engine();
  Call call = good_paged_call();
  const auto good = ForwardCalls::run(*engine, &call, nullptr);
  ASSERT_TRUE(good) << "the call is good before it is spoilt: " << good.error().detail;
  ASSERT_EQ(fake_hip().launches, 1U);
  GetParam().spoil(call);
  const auto outcome = ForwardCalls::run(*engine, &call, nullptr);
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().status, GetParam().status) << outcome.error().detail;
  EXPECT_THAT(outcome.error().detail, ::testing::HasSubstr(GetParam().detail));
  EXPECT_THAT(outcome.error().detail, ::testing::HasSubstr("accepted"));
  EXPECT_EQ(fake_hip().launches, 1U);
}

void set_page_size(Call& call, std::int64_t keys) {
  for (wavejit_tensor* tensor : {&call.k, &call.v}) {
    tensor->sizes[1] = keys;
    tensor->strides[0] = keys * tensor->strides[1];
  }
}

// [pages, heads, D / 8, page, 8] and [pages, heads, D, page].
void vectorise(Call& call) {
  call.pages.page_layout = WAVEJIT_PAGES_VECTORISED;
  for (wavejit_tensor* tensor : {&call.k, &call.v}) tensor->strides[2] = tensor->sizes[1] * tensor->sizes[3];
  call.k.strides[1] = 8;
  call.v.strides[1] = 1;
  call.v.strides[3] = call.v.sizes[1];
}

// Two runs of keys, and memory for them that something else uses.
void split_with(Call& call, const void* workspace) {
  call.sequences.max_key_length = 2048;
  call.pages.table_columns = 128;
  call.split.splits = 2;
  call.split.workspace = const_cast<void*>(workspace);
  call.split.workspace_bytes = std::int64_t{1} << 30;
}

std::vector<BadCall> bad_pages() {
  constexpr auto invalid = WAVEJIT_INVALID_ARGUMENT;
  return {
      {"page_of_2", [](Call& c) { set_page_size(c, 2); }, invalid, "1, and multiples of 16 up to 8192"},
      {"too_few_columns_of_tokens", [](Call& c) { set_page_size(c, 1); }, invalid,
       "table_columns = 32; accepted: 512 and more"},
      {"misaligned_first_keys",
       [](Call& c) { c.sequences.first_keys = reinterpret_cast<const std::int32_t*>(0x7000000002); }, invalid,
       "first_keys = 0x7000000002"},
      {"page_of_0", [](Call& c) { set_page_size(c, 0); }, invalid, "k.sizes[1] (page size) = 0"},
      {"page_of_24", [](Call& c) { set_page_size(c, 24); }, invalid, "k.sizes[1] (page size) = 24"},
      {"page_of_8208", [](Call& c) { set_page_size(c, 8208); }, invalid, "multiples of 16 up to 8192"},
      {"page_of_v", [](Call& c) { c.v.sizes[1] = 32; }, invalid, "v.sizes[1]"},
      {"pages_of_v", [](Call& c) { c.v.sizes[0] = 71; }, invalid, "v.sizes[0]"},
      {"no_pages", [](Call& c) { c.k.sizes[0] = 0; }, invalid, "k.sizes[0]"},
      {"too_few_columns", [](Call& c) { c.sequences.max_key_length = 513; }, invalid,
       "table_columns = 32; accepted: 33 and more"},
      {"negative_columns", [](Call& c) { c.pages.table_columns = -1; }, invalid, "table_columns = -1"},
      {"negative_maximum", [](Call& c) { c.sequences.max_key_length = -1; }, invalid, "max_key_length = -1"},
      {"absurd_maximum", [](Call& c) { c.sequences.max_key_length = (1LL << 26) + 1; }, invalid,
       "max_key_length = 67108865"},
      {"negative_queries", [](Call& c) { c.sequences.max_query_length = -1; }, invalid, "max_query_length = -1"},
      {"rows_that_overlap", [](Call& c) { c.pages.table_row_stride = 31; }, invalid, "table_row_stride = 31"},
      {"stride_of_a_list",
       [](Call& c) {
         c.pages.table_starts = c.pages.block_table;
         c.pages.table_row_stride = 32;
       },
       invalid, "table_row_stride = 32"},
      {"misaligned_table", [](Call& c) { c.pages.block_table = reinterpret_cast<const std::int32_t*>(0x7000000002); },
       invalid, "block_table = 0x7000000002"},
      {"misaligned_starts", [](Call& c) { c.pages.table_starts = reinterpret_cast<const std::int32_t*>(0x7000000001); },
       invalid, "table_starts = 0x7000000001"},
      {"no_lengths", [](Call& c) { c.sequences.key_lengths = nullptr; }, invalid, "key_lengths = null"},
      {"key_starts_too", [](Call& c) { c.sequences.key_starts = c.sequences.key_lengths; }, invalid, "key_starts = "},
      {"sequences_differ", [](Call& c) { c.sequences.count = 3; }, invalid, "sequences = 3"},
      {"packed_without_sequences", [](Call& c) { c.sequences.query_starts = c.sequences.key_lengths; }, invalid,
       "sequences = 0"},
      {"pages_that_overlap", [](Call& c) { c.k.strides[0] -= 8; }, invalid, "k.strides = ["},
      {"keys_that_overlap", [](Call& c) { c.v.strides[1] = 128; }, invalid, "v.strides = ["},
      {"columns_without_a_table",
       [](Call& c) {
         c = good_call();
         c.pages.table_columns = 4;
       },
       invalid, "block_table = null beside other fields"},
      {"starts_without_a_table",
       [](Call& c) {
         c = good_call();
         c.pages.table_starts = static_cast<const std::int32_t*>(fake_address(6));
       },
       invalid, "block_table = null beside other fields"},
      {"page_layout_3", [](Call& c) { c.pages.page_layout = 3; }, invalid, "page_layout = 3; accepted: 0 to 2"},
      {"vectorised_without_a_table",
       [](Call& c) {
         c = good_call();
         vectorise(c);
       },
       invalid, "page_layout = 1; accepted: 0 without block_table"},
      {"vectorised_padding",
       [](Call& c) {
         vectorise(c);
         c.sequences.first_keys = c.sequences.key_lengths;
       },
       WAVEJIT_UNSUPPORTED, "page_layout = 1; accepted: 0 beside first_keys"},
      {"vectorised_tokens",
       [](Call& c) {
         set_page_size(c, 1);
         c.pages.table_columns = 512;
         vectorise(c);
       },
       invalid, "k.sizes[1] (page size) = 1; accepted: multiples of 16"},
      {"vectorised_keys_apart",
       [](Call& c) {
         vectorise(c);
         c.k.strides[1] = 16;
       },
       invalid, "k.strides[1] (from key to key inside 16 bytes) = 16; accepted: 8, which page_layout fixes"},
      {"vectorised_v_by_dims_told_by_keys",
       [](Call& c) {
         vectorise(c);
         c.pages.page_layout = WAVEJIT_PAGES_VECTORISED_KEYS;
       },
       invalid, "v.strides[3] (from dim to dim) = 16; accepted: 8"},
      {"vectorised_heads_that_overlap",
       [](Call& c) {
         vectorise(c);
         c.v.strides[2] -= 8;
       },
       invalid, "v.strides = ["},
      {"workspace_in_the_table", [](Call& c) { split_with(c, c.pages.block_table); }, invalid,
       "block_table does not use"},
      {"workspace_in_the_lengths", [](Call& c) { split_with(c, c.sequences.key_lengths); }, invalid,
       "key_lengths does not use"},
      {"workspace_in_the_cache", [](Call& c) { split_with(c, c.k.data); }, invalid, "k does not use"},
      {"workspace_in_the_output", [](Call& c) { split_with(c, c.o.data); }, invalid, "o does not use"},
  };
}

INSTANTIATE_TEST_SUITE_P(Calls, BadPages, ::testing::ValuesIn(bad_pages()),
                         [](const auto& info) { return info.param.name; });

TEST_P(BadArguments, IsRefusedByNameAndLaunchesNothing) {
  const auto engine = make_engine();
  Call call = good_call();
  call.lse = good_lse(call);
  ASSERT_TRUE(ForwardCalls::run(*engine, &call, nullptr)) << "the call is good before it is spoilt";
  ASSERT_EQ(fake_hip().launches, 1U);
  const std::uint64_t compiles = fake_codegen().compiles;
  GetParam().spoil(call);
  const auto outcome = ForwardCalls::run(*engine, &call, nullptr);
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().status, GetParam().status) << outcome.error().detail;
  EXPECT_THAT(outcome.error().detail, ::testing::HasSubstr(GetParam().detail));
  EXPECT_THAT(outcome.error().detail,
              ::testing::AnyOf(::testing::HasSubstr("accepted"), ::testing::HasSubstr("; use ")));
  EXPECT_EQ(fake_hip().launches, 1U);
  EXPECT_EQ(fake_codegen().compiles, compiles);
}

template <typename Member>
void for_tensors(Member member) {
  member("q", &Call::q);
  member("k", &Call::k);
  member("v", &Call::v);
  member("o", &Call::o);
}

std::vector<BadCall> bad_calls() {
  constexpr auto invalid = WAVEJIT_INVALID_ARGUMENT;
  constexpr std::int64_t huge = std::numeric_limits<std::int64_t>::max();
  constexpr std::int64_t least = std::numeric_limits<std::int64_t>::min();
  std::vector<BadCall> list;
  const auto add = [&](std::string name, std::function<void(Call&)> spoil, wavejit_status status, std::string detail) {
    list.push_back({std::move(name), std::move(spoil), status, std::move(detail)});
  };
  add("size_zero", [](Call& c) { c.head.size = 0; }, invalid, "head.size = 0");
  add("size_small", [](Call& c) { c.head.size -= 2; }, invalid, "head.size = " + std::to_string(sizeof(Call) - 2));
  add("size_absurd", [](Call& c) { c.head.size = 1 << 20; }, invalid, "head.size = 1048576");
  for_tensors([&](const std::string& name, wavejit_tensor Call::* tensor) {
    add(name + "_null", [=](Call& c) { (c.*tensor).data = nullptr; }, invalid, name + ".data = null");
    add(
        name + "_misaligned", [=](Call& c) { (c.*tensor).data = reinterpret_cast<void*>(0x7000000008); }, invalid,
        name + ".data = 0x7000000008");
    add(name + "_reserved", [=](Call& c) { (c.*tensor).reserved = 7; }, invalid, name + ".reserved = 7");
    add(name + "_dtype_none", [=](Call& c) { (c.*tensor).dtype = WAVEJIT_DTYPE_NONE; }, invalid, name + ".dtype = 0");
    add(name + "_dtype_unknown", [=](Call& c) { (c.*tensor).dtype = -5; }, invalid, name + ".dtype = -5");
    for (int d = 0; d < 4; ++d) {
      const std::string field = name + ".sizes[" + std::to_string(d) + "]";
      const std::string suffix = "_size" + std::to_string(d);
      for (const auto& [what, value] :
           {std::pair{"_negative", std::int64_t{-1}}, {"_huge", huge}, {"_least", least}, {"_beyond32", 1LL << 32}}) {
        add(name + suffix + what, [=](Call& c) { (c.*tensor).sizes[d] = value; }, invalid, field);
      }
      const bool keys = name == "k" || name == "v";
      if (!(keys && d == 1)) add(name + suffix + "_zero", [=](Call& c) { (c.*tensor).sizes[d] = 0; }, invalid, field);
    }
    for (int d = 0; d < 3; ++d) {
      const std::string field = name + ".strides[" + std::to_string(d) + "]";
      const std::string suffix = "_stride" + std::to_string(d);
      for (const auto& [what, value] : {std::pair{"_negative", std::int64_t{-1024}}, {"_least", least}})
        add(name + suffix + what, [=](Call& c) { (c.*tensor).strides[d] = value; }, invalid, field);
      if (name == "o") add(name + suffix + "_zero", [=](Call& c) { (c.*tensor).strides[d] = 0; }, invalid, field);
      add(name + suffix + "_overflowing", [=](Call& c) { (c.*tensor).strides[d] = huge - 7; }, invalid, field);
    }
    add(name + "_stride3", [=](Call& c) { (c.*tensor).strides[3] = 2; }, invalid, name + ".strides[3]");
    add(
        name + "_slice_of_4_GiB",
        [=](Call& c) {
          wavejit_tensor& t = c.*tensor;
          t.strides[1] = ((std::int64_t{1} << 31) / (t.sizes[1] + 255) + 8) / 8 * 8;
          t.strides[0] = std::int64_t{1} << 32;
        },
        invalid, name + ": bytes that one batch slice spans");
  });
  add(
      "fp32_inputs", [](Call& c) { c.q.dtype = c.k.dtype = c.v.dtype = c.o.dtype = WAVEJIT_FP32; }, WAVEJIT_UNSUPPORTED,
      "q.dtype = 3 (fp32)");
  add("dtypes_differ", [](Call& c) { c.k.dtype = WAVEJIT_BF16; }, invalid, "k.dtype = 2 (bf16)");
  add(
      "o_dtype_differs", [](Call& c) { c.o.dtype = WAVEJIT_BF16; }, invalid,
      "o.dtype = 2 (bf16); accepted: 1 (fp16), the dtype of q, or 3 (fp32)");
  add("k_batch", [](Call& c) { c.k.sizes[0] = 3; }, invalid, "k.sizes[0] (batch) = 3; accepted: 2 (q.sizes[0])");
  add("v_length", [](Call& c) { c.v.sizes[1] = 511; }, invalid, "v.sizes[1] (length) = 511; accepted: 512");
  add("v_heads", [](Call& c) { c.v.sizes[2] = 4; }, invalid, "v.sizes[2] (heads) = 4; accepted: 2");
  add("k_head_dim", [](Call& c) { c.k.sizes[3] = 64; }, invalid, "k.sizes[3] (head dim) = 64; accepted: 128");
  add("o_length", [](Call& c) { c.o.sizes[1] = 254; }, invalid, "o.sizes[1] (length) = 254; accepted: 255");
  add("o_head_dim", [](Call& c) { c.o.sizes[3] = 64; }, invalid, "o.sizes[3] (head dim) = 64; accepted: 128");
  add(
      "heads_do_not_divide", [](Call& c) { c.k.sizes[2] = c.v.sizes[2] = 3; }, invalid,
      "k.sizes[2] (heads) = 3; accepted: divisors of q.sizes[2] = 8");
  add("batch_of_the_grid", [](Call& c) { c.q.sizes[0] = 65536; }, invalid, "q.sizes[0] (batch) = 65536");
  add("heads_of_the_grid", [](Call& c) { c.q.sizes[2] = 65536; }, invalid, "q.sizes[2] (heads) = 65536");
  for (const float scale : {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
                            std::numeric_limits<float>::quiet_NaN(), 3e38F}) {
    add("scale_" + std::to_string(list.size()), [=](Call& c) { c.modifiers.scale = scale; }, invalid, "scale = ");
  }
  add(
      "zero_that_is_not", [](Call& c) { c.head.flags = WAVEJIT_SCALE_IS_ZERO; }, invalid,
      "scale = 0.125000; accepted: 0 beside WAVEJIT_SCALE_IS_ZERO");
  add("flags_unknown", [](Call& c) { c.head.flags = 256; }, invalid, "flags = 256");
  add(
      "launches_both", [](Call& c) { c.head.flags = WAVEJIT_ONE_LAUNCH | WAVEJIT_TWO_LAUNCHES; }, invalid,
      "flags = 96");
  add("behind_alone", [](Call& c) { c.head.flags = WAVEJIT_COMPILE_BEHIND; }, invalid, "flags = 16");
  for (const int mask : {-1, 8, 1000})
    add(
        "mask_" + std::to_string(list.size()), [=](Call& c) { c.mask.bits = mask; }, invalid,
        "mask = " + std::to_string(mask));
  add("o_on_q", [](Call& c) { c.o.data = c.q.data; }, invalid, "o.data");
  add("o_on_k", [](Call& c) { c.o.data = c.k.data; }, invalid, "o.data");
  add("o_inside_v", [](Call& c) { c.o.data = static_cast<char*>(c.v.data) + 4096; }, invalid, "o.data");
  add("q_inside_o", [](Call& c) { c.q.data = static_cast<char*>(c.o.data) + 4096; }, invalid, "o.data");
  add("o_rows_overlap", [](Call& c) { c.o.strides[1] = 64; }, invalid, "o.strides");
  add("o_heads_overlap", [](Call& c) { c.o.strides[2] = 64; }, invalid, "o.strides");
  add("o_batches_overlap", [](Call& c) { c.o.strides[0] = 1024; }, invalid, "o.strides");
  add(
      "o_in_fp32_on_q",
      [](Call& c) {
        c.o.dtype = WAVEJIT_FP32;
        c.q.data =
            static_cast<char*>(c.o.data) + (3 * c.o.sizes[0] * c.o.strides[0]);  // within its bytes, not its words
      },
      invalid, "o.data");
  add("lse_dtype", [](Call& c) { c.lse.dtype = WAVEJIT_FP16; }, invalid, "lse.dtype = 1 (fp16); accepted: 3 (fp32)");
  add("lse_misaligned", [](Call& c) { c.lse.data = reinterpret_cast<void*>(0x10002); }, invalid, "lse.data = 0x10002");
  add("lse_reserved", [](Call& c) { c.lse.reserved = 1; }, invalid, "lse.reserved = 1");
  for (int d = 0; d < 4; ++d)
    add(
        "lse_size" + std::to_string(d), [=](Call& c) { c.lse.sizes[d] += 1; }, invalid,
        "lse.sizes[" + std::to_string(d) + "]");
  add("lse_rows_apart", [](Call& c) { c.lse.strides[2] = 2; }, invalid, "lse.strides[2] (length) = 2; accepted: 1");
  add("lse_head_stride_negative", [](Call& c) { c.lse.strides[1] = -1; }, invalid, "lse.strides[1] = -1");
  add("lse_batch_stride_zero", [](Call& c) { c.lse.strides[0] = 0; }, invalid, "lse.strides[0] = 0");
  add("lse_stride_overflowing", [](Call& c) { c.lse.strides[0] = huge; }, invalid, "lse.strides[0]");
  add("lse_heads_overlap", [](Call& c) { c.lse.strides[1] = 100; }, invalid, "lse.strides");
  add("lse_on_o", [](Call& c) { c.lse.data = c.o.data; }, invalid, "lse.data");
  add(
      "head_dim_92",
      [](Call& c) {
        for (wavejit_tensor* t : {&c.q, &c.k, &c.v, &c.o}) t->sizes[3] = 92;
      },
      WAVEJIT_UNSUPPORTED, "q.sizes[3] (head dim) = 92");
  // Its strides are no multiples of 8 either, which elements that are read one by one need not have.
  add(
      "head_dim_100",
      [](Call& c) {
        for (wavejit_tensor* t : {&c.q, &c.k, &c.v, &c.o})
          *t = wavejit_dense_tensor(t->data, WAVEJIT_FP16, t->sizes[0], t->sizes[1], t->sizes[2], 100);
      },
      WAVEJIT_UNSUPPORTED, "q.sizes[3] (head dim) = 100: head dim 100 has no kernel; accepted: 96, 104 and other ");
  // 1,024 more than a head dim that has kernels: with 10 bits of a shape's code it had that one's kernel.
  add(
      "head_dim_1152",
      [](Call& c) {
        for (wavejit_tensor* t : {&c.q, &c.k, &c.v, &c.o})
          *t = wavejit_dense_tensor(t->data, WAVEJIT_FP16, t->sizes[0], t->sizes[1], t->sizes[2], 1152);
      },
      WAVEJIT_UNSUPPORTED,
      "q.sizes[3] (head dim) = 1152: head dim 1152 has no kernel; accepted: multiples of 8 up to ");
  add(
      "head_dim_of_values_1152",
      [](Call& c) {
        for (wavejit_tensor* t : {&c.v, &c.o})
          *t = wavejit_dense_tensor(t->data, WAVEJIT_FP16, t->sizes[0], t->sizes[1], t->sizes[2], 1152);
      },
      WAVEJIT_UNSUPPORTED, "v.sizes[3] (head dim) = 1152: head dim ");
  return list;
}

INSTANTIATE_TEST_SUITE_P(EveryField, BadArguments, ::testing::ValuesIn(bad_calls()),
                         [](const auto& info) { return info.param.name; });

class Problem : public RuntimeTest {};

TEST_F(Problem, NullArgumentsAreRefused) {
  const auto engine = make_engine();
  const auto outcome = ForwardCalls::run(*engine, nullptr, nullptr);
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().status, WAVEJIT_INVALID_ARGUMENT);
  EXPECT_THAT(outcome.error().detail, ::testing::HasSubstr("arguments = null"));
}

TEST_F(Problem, AReportOfTheWrongSizeIsRefusedBeforeTheLaunch) {
  const auto engine = make_engine();
  Call call = good_call();
  for (const std::size_t size : {std::size_t{0}, sizeof(wavejit_call_report) - 8, std::size_t{1} << 20U}) {
    wavejit_call_report report{};
    report.size = size;
    call.head.report = &report;
    const auto outcome = ForwardCalls::run(*engine, &call, nullptr);
    ASSERT_FALSE(outcome);
    EXPECT_THAT(outcome.error().detail, ::testing::HasSubstr("report.size = " + std::to_string(size)));
  }
  EXPECT_EQ(fake_hip().launches, 0U);
}

TEST_F(Problem, ANewerCallersUnknownFieldsMustBeZero) {
  const auto engine = make_engine();
  struct {
    Call call = good_call();
    std::uint64_t later = 0;
  } newer;
  newer.call.head.size = sizeof newer;
  newer.call.head.family = WAVEJIT_ATTENTION_FORWARD;
  EXPECT_TRUE(ForwardCalls::run(*engine, &newer.call, nullptr));
  newer.later = 1;
  const auto outcome = ForwardCalls::run(*engine, &newer.call, nullptr);
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().status, WAVEJIT_UNSUPPORTED);
}

TEST_F(Problem, NoKeysNeedNoPointers) {
  const auto engine = make_engine();
  Call call = good_call(2, 4, 0);
  call.k.data = call.v.data = nullptr;
  call.k.strides[0] = call.v.strides[2] = -7;  // of no rows: never used
  const auto outcome = ForwardCalls::run(*engine, &call, nullptr);
  ASSERT_TRUE(outcome) << outcome.error().detail;
  EXPECT_EQ(fake_hip().last.arguments.key_length, 0U);
  EXPECT_EQ(fake_hip().last.arguments.causal_offset, 0);
  EXPECT_EQ(fake_hip().last.arguments.bottom_right_mask, ~0U);
  EXPECT_EQ(fake_hip().last.arguments.k_batch_stride, 0U);
  EXPECT_EQ(fake_hip().last.arguments.v_head_stride, 0U);
}

TEST_F(Problem, WhatIsOnlyReadMayLieThereOnceForAllBatchesRowsOrHeads) {
  const auto engine = make_engine();
  for (const auto tensor : {&Call::q, &Call::k, &Call::v})
    for (int d = 0; d < 3; ++d) {
      Call call = good_call();
      (call.*tensor).strides[d] = 0;
      const auto outcome = ForwardCalls::run(*engine, &call, nullptr);
      ASSERT_TRUE(outcome) << outcome.error().detail;
    }
  const auto& a = fake_hip().last.arguments;
  EXPECT_EQ(a.v_head_stride, 0U);
  EXPECT_NE(a.k_head_stride, 0U);
}

TEST_F(Problem, StridesOfDimensionsWithOneElementNeverReachTheKernel) {
  const auto engine = make_engine();
  Call call = good_call(1, 1, 1, 1, 1);
  for (wavejit_tensor* t : {&call.q, &call.k, &call.v, &call.o}) {
    for (int d = 0; d < 3; ++d) t->strides[d] = std::numeric_limits<std::int64_t>::min() + d;
  }
  const auto outcome = ForwardCalls::run(*engine, &call, nullptr);
  ASSERT_TRUE(outcome) << outcome.error().detail;
  const auto& a = fake_hip().last.arguments;
  EXPECT_EQ(a.q_batch_stride, 0U);
  EXPECT_EQ(a.k_head_stride, 0U);
  EXPECT_EQ(a.o_row_stride, 256U) << "rows of a tile beyond the only row must not fall onto it";
  EXPECT_EQ(a.k_row_stride, 256U);
}

TEST_F(Problem, TheLargestSliceIsAcceptedAndTheTensorMayBeLarger) {
  const auto engine = make_engine();
  Call call = good_call(2, 2, 1000, 1, 1);
  // (rows − 1 + 256) · stride + head dim elements of 2 bytes: the largest legal row stride, found from the rule.
  const std::int64_t stride = ((std::int64_t{1} << 31) - 1 - 128) / (999 + 256) / 8 * 8;
  call.k.strides[1] = stride;
  call.k.strides[0] = std::int64_t{1} << 40;
  EXPECT_TRUE(ForwardCalls::run(*engine, &call, nullptr));
  EXPECT_EQ(fake_hip().last.arguments.k_row_stride, static_cast<std::uint32_t>(stride * 2));
  EXPECT_EQ(fake_hip().last.arguments.k_batch_stride, std::uint64_t{1} << 41U);
  call.k.strides[1] = stride + 8;
  EXPECT_FALSE(ForwardCalls::run(*engine, &call, nullptr));
}

TEST_F(Problem, InterleavedTensorsOfOneBufferAreNotTakenForAliases) {
  const auto engine = make_engine();
  Call call = good_call(1, 16, 16, 2, 2);
  // q, k, v and o side by side in every row: [length][4][heads][head dim].
  wavejit_tensor* tensors[] = {&call.q, &call.k, &call.v, &call.o};
  for (int i = 0; i < 4; ++i) {
    tensors[i]->data = static_cast<char*>(fake_address(1)) + i * 2 * 128 * 2;
    tensors[i]->strides[1] = 4 * 2 * 128;
  }
  const auto outcome = ForwardCalls::run(*engine, &call, nullptr);
  EXPECT_TRUE(outcome) << outcome.error().detail;
}

TEST_F(Problem, KernelArgumentsAreBytesOfTheCallersStrides) {
  const auto engine = make_engine();
  Call call = good_call(3, 300, 500, 8, 2);
  call.lse = good_lse(call);
  call.mask.bits = WAVEJIT_MASK_CAUSAL;
  // q as BHSD with padding
  call.q.strides[0] = 8 * 310 * 136;
  call.q.strides[1] = 136;
  call.q.strides[2] = 310 * 136;
  ASSERT_TRUE(ForwardCalls::run(*engine, &call, reinterpret_cast<ihipStream_t*>(0x1000)));
  const FakeLaunch& launch = fake_hip().last;
  EXPECT_EQ(launch.grid, (std::array<unsigned, 3>{8, 2, 3}));
  EXPECT_EQ(launch.block, (std::array<unsigned, 3>{512, 1, 1}));
  EXPECT_EQ(launch.stream, reinterpret_cast<ihipStream_t*>(0x1000));
  const auto& a = launch.arguments;
  EXPECT_EQ(a.q, reinterpret_cast<std::uintptr_t>(call.q.data));
  EXPECT_EQ(a.lse, reinterpret_cast<std::uintptr_t>(call.lse.data));
  EXPECT_EQ(a.q_batch_stride, 8U * 310 * 136 * 2);
  EXPECT_EQ(a.q_row_stride, 136U * 2);
  EXPECT_EQ(a.q_head_stride, 310U * 136 * 2);
  EXPECT_EQ(a.k_batch_stride, 500U * 2 * 128 * 2);
  EXPECT_EQ(a.v_row_stride, 2U * 128 * 2);
  EXPECT_EQ(a.o_head_stride, 128U * 2);
  EXPECT_EQ(a.lse_batch_stride, 8U * 300 * 4);
  EXPECT_EQ(a.lse_head_stride, 300U * 4);
  EXPECT_EQ(a.query_length, 300U);
  EXPECT_EQ(a.key_length, 500U);
  EXPECT_EQ(a.causal_offset, 0);
  EXPECT_EQ(a.bottom_right_mask, ~0U);
  EXPECT_EQ(a.scores.rescale_threshold, 8.0F);
  EXPECT_EQ(a.heads_per_die, 1U) << "eight heads of two kv heads on eight dies";
  EXPECT_EQ(a.kv_head_multiplier, 1U << 30U) << "ceil(2^32 / 4)";
  EXPECT_FLOAT_EQ(a.scale_log2e, 0.125F * 1.44269504F);
}

// What kernels of vectorised pages are told of rows (page_arguments.h).
TEST_F(Problem, VectorisedPagesHaveRowsOfUnits) {
  const auto engine = make_engine();
  Call call = BadPages::good_paged_call();
  const auto rows_of = [&] {
    const auto outcome = ForwardCalls::run(*engine, &call, nullptr);
    EXPECT_TRUE(outcome) << outcome.error().detail;
    const auto& told = fake_hip().last.arguments;
    return std::pair{told.k_row_stride, told.v_row_stride};
  };
  vectorise(call);
  EXPECT_EQ(rows_of(), (std::pair{16U, 2U}));
  call.pages.page_layout = WAVEJIT_PAGES_VECTORISED_KEYS;
  call.v.strides[3] = 8;
  EXPECT_EQ(rows_of(), (std::pair{16U, 2U * static_cast<unsigned>(call.v.sizes[3])}));
}

// A field that is zero means the default, and a flag says that it means zero.
TEST_F(Problem, AScaleOfZeroIsTheUsualOne) {
  const auto engine = make_engine();
  const auto scale_of = [&](float scale, std::uint32_t flags) {
    Call call = good_call();
    call.modifiers.scale = scale;
    call.head.flags = flags;
    const auto outcome = ForwardCalls::run(*engine, &call, nullptr);
    EXPECT_TRUE(outcome) << outcome.error().detail;
    return fake_hip().last.arguments.scale_log2e;
  };
  const float usual = static_cast<float>(1 / std::sqrt(128.0)) * std::numbers::log2e_v<float>;
  EXPECT_EQ(scale_of(0, 0), usual);
  EXPECT_EQ(scale_of(-0.0F, 0), usual);
  EXPECT_EQ(scale_of(0, WAVEJIT_SCALE_IS_ZERO), 0.0F);
  EXPECT_EQ(scale_of(1, 0), std::numbers::log2e_v<float>);
}

TEST_F(Problem, TogglesThatAreArgumentsReachTheKernel) {
  config_.pipeline.value.lazy_rescale = false;
  const auto launched = [&](std::int64_t query_heads, std::int64_t kv_heads) {
    Call call = good_call(1, 4, 4, query_heads, kv_heads);
    const auto engine = make_engine();
    EXPECT_TRUE(ForwardCalls::run(*engine, &call, nullptr));
    return fake_hip().last.arguments;
  };
  EXPECT_EQ(launched(16, 4).scores.rescale_threshold, 0.0F);
  // auto: heads that share kv heads, dealt evenly
  EXPECT_EQ(launched(16, 4).heads_per_die, 2U);
  EXPECT_EQ(launched(16, 4).die_multiplier, 1U << 29U) << "2^32 / 8";
  EXPECT_EQ(launched(16, 16).heads_per_die, 1U);
  EXPECT_EQ(launched(16, 16).die_multiplier, 0U);
  EXPECT_EQ(launched(12, 4).die_multiplier, 0U);
  config_.pipeline.value.xcd_swizzle = true;
  EXPECT_EQ(launched(16, 16).heads_per_die, 2U);
  EXPECT_EQ(launched(12, 4).die_multiplier, 0U) << "eight dies do not divide twelve heads";
  config_.pipeline.value.xcd_swizzle = false;
  EXPECT_EQ(launched(16, 4).die_multiplier, 0U);
}

// As the kernel computes it (emit/place.cpp).
std::uint32_t head_of(const attention_forward::Arguments& arguments, std::uint32_t x) {
  const auto round = static_cast<std::uint32_t>((std::uint64_t{x} * arguments.die_multiplier) >> 32U);
  return (x * arguments.heads_per_die) - (round * (arguments.query_heads - 1));
}

// Boards of few dies and partitions: heads are dealt over the dies that the device says it has.
TEST_F(Problem, HeadsAreDealtOverTheDiesOfTheDevice) {
  for (const std::uint32_t dies : {1U, 2U, 3U, 4U, 6U, 8U}) {
    auto device = fake_device();
    device.xcds = static_cast<int>(dies);
    const auto engine = runtime::Engine::assemble(config_, device, *codegen_,
                                                  std::make_unique<runtime::Logger>(runtime::LogLevel::off));
    ASSERT_TRUE(engine);
    for (const std::uint32_t heads : {dies * 2, dies * 8, dies * 2 + 2}) {
      Call call = good_call(1, 4, 4, heads, 2);
      ASSERT_TRUE(ForwardCalls::run(**engine, &call, nullptr));
      const attention_forward::Arguments arguments = fake_hip().last.arguments;
      const bool dealt = dies > 1 && heads % dies == 0;
      EXPECT_EQ(arguments.die_multiplier != 0, dealt) << heads << " heads on " << dies << " dies";
      for (std::uint32_t x = 0; x < heads; ++x) {
        const std::uint32_t head = head_of(arguments, x);
        EXPECT_EQ(head, dealt ? (x % dies * (heads / dies)) + (x / dies) : x) << heads << " heads on " << dies;
      }
    }
  }
}

TEST_F(Problem, EveryShapeHasItsOwnCode) {
  std::set<std::uint64_t> codes;
  int shapes = 0;
  for (const auto dtype : {attention_forward::DataType::bf16, attention_forward::DataType::fp16})
    for (const auto mask :
         {attention_forward::Mask::none, attention_forward::Mask::causal, attention_forward::Mask::window})
      for (const bool lse : {false, true})
        for (const int qk : {8, 64, 128, 512})
          for (const int v : {8, 64, 128, 512}) {
            for (const bool flag : {false, true}) {
              for (const auto& modifier : attention_forward::modifier_rows) {
                attention_forward::AttentionShape shape = {
                    {.dtype = dtype, .head_dim_qk = qk, .head_dim_v = v, .mask = mask, .lse = lse}};
                shape.modifiers.set(modifier.modifier, flag);
                if (!modifier.in_code || (!flag && modifier.modifier != attention_forward::Modifier::softcap)) continue;
                EXPECT_EQ(attention_forward::AttentionShape::of_code(shape.code()), shape);
                codes.insert(shape.code());
                ++shapes;
              }
            }
            attention_forward::AttentionShape wide = {
                {.dtype = dtype, .head_dim_qk = qk, .head_dim_v = v, .mask = mask, .lse = lse}};
            wide.output = attention::OutputType::fp32;
            EXPECT_EQ(attention_forward::AttentionShape::of_code(wide.code()), wide);
            codes.insert(wide.code());
            ++shapes;
            for (const auto rows : attention_forward::all_query_rows) {
              attention_forward::AttentionShape shape = {
                  {.dtype = dtype, .head_dim_qk = qk, .head_dim_v = v, .mask = mask, .lse = lse}};
              if (rows == shape.query_rows) continue;
              shape.query_rows = rows;
              codes.insert(shape.code());
              ++shapes;
            }
          }
  EXPECT_EQ(codes.size(), static_cast<std::size_t>(shapes));
  EXPECT_FALSE(codes.contains(0));
}

}  // namespace
}  // namespace wavejit::tests
