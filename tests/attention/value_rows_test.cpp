// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Rows of value_rows.txt on simulated GPUs: as the engine chooses and on each pipeline that has a kernel, under every
// wave schedule, within the bounds of float64, and with the same bits throughout and in calls that say the same in
// other words (value_siblings.h, value_beside.h). `./dev check value_rows` runs all of them, ./dev test those of tests/chosen.
#include "attention/value_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <stdexcept>
#include <string>

#include "attention/modified.h"
#include "attention/value_beside.h"
#include "attention/value_siblings.h"
#include "support/attention_run.h"

namespace wavejit::tests {
namespace {

class ValueRows : public ::testing::TestWithParam<ValueRow> {
 protected:
  // Engines of a target are opened once: a row takes less time than they do.
  static RowEngines& engines_of(const std::string& target) {
    return opened().try_emplace(target, target).first->second;
  }
  static void TearDownTestSuite() { opened().clear(); }

  // Under every schedule, or one of them by turns: the same bits, nothing outside touched. Nothing: what the row says
  // may have no kernel has none.
  static std::optional<AttentionOutput> run(const Engine& engine, const ValueRow& row, const AttentionCase& which) {
    std::optional<AttentionOutput> first;
    std::size_t turn = row.name.size() % schedules.size();
    for (const Schedule& schedule : schedules) {
      if (row.says("one_schedule") && turn-- != 0) continue;
      set_schedule(schedule.order, schedule.seed);
      const AttentionOutput output = run_attention(engine.get(), which);
      if (row.says("or_refused") && output.detail.contains(" has no kernel ")) return {};
      EXPECT_EQ(output.status, WAVEJIT_OK) << output.detail << output.reports;
      EXPECT_EQ(output.reports, "");
      EXPECT_TRUE(output.fence_intact) << "something outside O, LSE or the workspace was written";
      if (!first) first = output;
      EXPECT_TRUE(output.o == first->o && bits_of(output.lse) == bits_of(first->lse)) << "an order of waves shows";
    }
    return first;
  }

  static void check(const ValueRow& row);

 private:
  static std::map<std::string, RowEngines>& opened() {
    static std::map<std::string, RowEngines> opened;
    return opened;
  }
};
class SiblingRows : public ValueRows {};

// Rows that see no key, exactly: zeros, and the sink's share alone.
void expect_nothing_where_nothing_is_seen(const AttentionCase& which, const AttentionAnswer& exact,
                                          const AttentionOutput& output) {
  const AttentionInputs& in = which.inputs;
  const std::size_t row_size = std::size_t(in.value_dim()) * (which.output_fp32 ? 2 : 1);
  for (int b = 0; b < in.batch; ++b)
    for (int i = 0; i < in.queries(b); ++i)
      for (int h = 0; h < in.query_heads; ++h) {
        const std::size_t lse = in.row_of_lse(b, i, h);
        if (exact.spread[lse] != 0) continue;
        const auto o = std::span(output.o).subspan(in.row_of_output(b, i, h) * row_size, row_size);
        ASSERT_TRUE(std::ranges::all_of(o, [](std::uint16_t bits) { return bits == 0; })) << "row " << i;
        const float sink = in.sink.empty() ? -std::numeric_limits<float>::infinity() : in.sink[std::size_t(h)];
        if (which.lse) ASSERT_EQ(output.lse[lse], sink) << "row " << i;
      }
}

// `words` as a row says them behind kernel=.
void expect_kernels(const std::set<std::string>& kernels, const std::string& words) {
  for (const std::string& said : parts_of(words)) {
    const bool wanted = !said.starts_with('!');
    const std::string word = ' ' + said.substr(wanted ? 0 : 1);
    const auto has = [&](const std::string& kernel) { return (kernel + ' ').contains(word); };
    EXPECT_EQ(std::ranges::any_of(kernels, has), wanted) << said << ": " << ::testing::PrintToString(kernels);
  }
}

void ValueRows::check(const ValueRow& row) {
  const AttentionCase which = case_of(row);
  RowEngines& engines = engines_of(row.target);
  std::set<std::string> kernels;
  std::optional<AttentionOutput> output;
  const bool one_engine = row.says("one_engine") || row.says("pinned");
  if (one_engine) {
    output = run(engines.of(row), row, which);
    if (!output) return;
    kernels.insert(output->kernel_spec);
  } else if (row.says("one_schedule")) {
    output = run(*engines.pipelines().engines().front(), row, which);
    if (output) kernels.insert(output->kernel_spec);
    for (const auto& engine : std::span(engines.pipelines().engines()).subspan<1>()) {
      const AttentionOutput other = run_attention(engine->get(), which);
      if (Pipelines::not_on_this_target(other) || !kernels.insert(other.kernel_spec).second) continue;
      EXPECT_EQ(other.status, WAVEJIT_OK) << other.detail << other.reports;
      EXPECT_EQ(other.reports, "");
      EXPECT_TRUE(other.fence_intact) << "something outside O, LSE or the workspace was written";
      EXPECT_TRUE(other.o == output->o && bits_of(other.lse) == bits_of(output->lse)) << other.kernel_spec;
    }
  } else {
    output = engines.pipelines().run(which, &kernels);
  }
  if (HasFailure()) return;
  if (!row.says("bits_alone")) {
    const AttentionAnswer exact = attention_reference(which.inputs);
    EXPECT_EQ(compare_rows(which, exact, *output).wrong(), "");
    expect_nothing_where_nothing_is_seen(which, exact, *output);
  }
  const auto is_generic = [](const std::string& kernel) { return kernel.contains(" pipeline=generic"); };
  if (!one_engine)
    EXPECT_EQ(std::ranges::all_of(kernels, is_generic), row.is_generic_only()) << ::testing::PrintToString(kernels);
  expect_kernels(kernels, row.word("kernel"));
  const ValueSiblings siblings(engines.pipelines(), which, *output);
  siblings.expect_same_bits();
  siblings.expect_same_bits_alone();
  for (const std::string& name : parts_of(row.word("beside"))) expect_bits_beside(name, engines, row, which, *output);
}

TEST_P(ValueRows, MatchFloat64) { check(GetParam()); }
TEST_P(SiblingRows, HaveTheBitsOfOtherCalls) { check(GetParam()); }

INSTANTIATE_TEST_SUITE_P(Lengths, ValueRows, ::testing::ValuesIn(value_rows("Lengths")), name_in_row);
INSTANTIATE_TEST_SUITE_P(HeadDims, ValueRows, ::testing::ValuesIn(value_rows("HeadDims")), name_in_row);
INSTANTIATE_TEST_SUITE_P(Masks, ValueRows, ::testing::ValuesIn(value_rows("Masks")), name_in_row);
INSTANTIATE_TEST_SUITE_P(Modifiers, ValueRows, ::testing::ValuesIn(value_rows("Modifiers")), name_in_row);
INSTANTIATE_TEST_SUITE_P(Sequences, ValueRows, ::testing::ValuesIn(value_rows("Sequences")), name_in_row);
INSTANTIATE_TEST_SUITE_P(Types, ValueRows, ::testing::ValuesIn(value_rows("Types")), name_in_row);
INSTANTIATE_TEST_SUITE_P(Splits, ValueRows, ::testing::ValuesIn(value_rows("Splits")), name_in_row);
INSTANTIATE_TEST_SUITE_P(Pages, ValueRows, ::testing::ValuesIn(value_rows("Pages")), name_in_row);
INSTANTIATE_TEST_SUITE_P(Padding, ValueRows, ::testing::ValuesIn(value_rows("Padding")), name_in_row);
INSTANTIATE_TEST_SUITE_P(Chunks, ValueRows, ::testing::ValuesIn(value_rows("Chunks")), name_in_row);
INSTANTIATE_TEST_SUITE_P(Caches, ValueRows, ::testing::ValuesIn(value_rows("Caches")), name_in_row);
INSTANTIATE_TEST_SUITE_P(TokenScales, ValueRows, ::testing::ValuesIn(value_rows("TokenScales")), name_in_row);
INSTANTIATE_TEST_SUITE_P(Scattered, ValueRows, ::testing::ValuesIn(value_rows("Scattered")), name_in_row);
INSTANTIATE_TEST_SUITE_P(Integers, ValueRows, ::testing::ValuesIn(value_rows("Integers")), name_in_row);
INSTANTIATE_TEST_SUITE_P(Beside, SiblingRows, ::testing::ValuesIn(sibling_rows()), name_in_row);

// A call that differs from what its row says must fail the row's check.
struct Fault {
  const char* row;
  std::function<void(AttentionCase&)> change;
  ChangeForwardCall change_call = {};  // of what the case's own arrays do not say
};

TEST(ValueRowsCheck, FindsACallThatIsAnother) {
  const Fault faults[] = {
      {"bf16 b1 q33 k300 h2/1 d64 window=5,3 lse", [](AttentionCase& which) { ++which.inputs.window_left; }},
      {"fp16 b1 q33 k300 h2/1 d64 causal lse", [](AttentionCase& which) { which.inputs.prefix = 268; }},
      {"bf16 b1 q8 k90 h1 d64 bias=h bias_type=fp32 lse : bias=fine",
       [](AttentionCase& which) { which.bias_fp32 = false; }},
      {"fp16 b1 q33 k100 h2/1 d64 softcap=1.5 lse", [](AttentionCase& which) { which.inputs.softcap = 1.6; }},
      {"bf16 b1 q33 k100 h2/1 d64 sink lse", [](AttentionCase& which) { which.inputs.sink.clear(); }},
      {"fp16 b1 q33 k100 h2/1 d64 alibi=h lse", [](AttentionCase& which) { which.inputs.alibi[1] *= 1.1F; }},
      {"bf16 b1 q65 k100 h2/1 d64 lse : padded", [](AttentionCase& which) { which.inputs.k[5] += 4; }},
      {"bf16 b2 q65 k100 h2/1 d64 lse k_lengths=100,77",
       [](AttentionCase& which) { which.told_key_lengths = {100, 76}; }},
      {"bf16 b1 q3 k100 h2/1 d64 lse cache=e4m3 : on=gfx950", [](AttentionCase&) {},
       [](auto& call) { call.k.dtype = call.v.dtype = WAVEJIT_E5M2; }},
      {"bf16 b1 q3 k100 h4/2 d64 lse cache=i8 cache_scales=h : on=gfx950", [](AttentionCase&) {},
       [](auto& call) { call.scales.v_scale = call.scales.k_scale; }},
      {"bf16 b1 q3 k100 h4/2 d64 lse cache=e4m3 cache_scales=token : numbers=any on=gfx950", [](AttentionCase&) {},
       [](auto& call) { call.scales.k_scale = call.scales.v_scale; }},
      {"fp16 b1 q33 k100 h2/1 d64 lse trans_v : odd=k",
       [](AttentionCase& which) { which.scattered.k = Scattered::rows_inside; },
       [](auto& call) { ++call.v.strides[3]; }},
      {"bf16 b1 q33 k100 h4/2 d64 lse qk=i8 : q_scales=tokens k_scales=heads", [](AttentionCase&) {},
       [](auto& call) { call.scales.q_scale.sizes[1] = 1; }},
  };
  const Engine engine("gfx950");
  for (const Fault& fault : faults) {
    SCOPED_TRACE(fault.row);
    const AttentionCase which = case_of(value_rows_of(fault.row).front());
    const AttentionAnswer exact = attention_reference(which.inputs);
    const AttentionOutput right = run_attention(engine.get(), which);
    ASSERT_EQ(right.status, WAVEJIT_OK) << right.detail;
    EXPECT_EQ(compare_rows(which, exact, right).wrong(), "");
    AttentionCase other = which;
    fault.change(other);
    const AttentionOutput wrong = run_attention(engine.get(), other, fault.change_call);
    ASSERT_EQ(wrong.status, WAVEJIT_OK) << wrong.detail;
    EXPECT_NE(compare_rows(which, exact, wrong).wrong(), "");
  }
}

// A section without an INSTANTIATE_TEST_SUITE_P would be left out in silence.
TEST(ValueRowsText, EveryRowIsATest) {
  const ::testing::UnitTest& program = *::testing::UnitTest::GetInstance();
  int tests = 0;
  for (int i = 0; i < program.total_test_suite_count(); ++i)
    if (const ::testing::TestSuite& suite = *program.GetTestSuite(i); std::string(suite.name()).ends_with("Rows"))
      tests += suite.total_test_count();
  EXPECT_EQ(tests, std::ssize(all_value_rows()));
}

TEST(ValueRowsText, ChoicesAreRowsAndNamesAreWords) {
  const auto rows =
      value_rows_of("\n(fp16|bf16) d64/128 b1 q1 k65 h4/2 (causal|) layout=paged:16 : on=gfx950 in_turn\n");
  ASSERT_EQ(rows.size(), 4);
  EXPECT_EQ(rows[0].name, "gfx950_fp16_d64x128_oneQuery_grouped_causal_paged_q1_k65");
  EXPECT_TRUE(rows[0].says("in_turn"));
  EXPECT_EQ(rows[3].name, "gfx950_bf16_d64x128_oneQuery_grouped_paged_q1_k65");
  const auto alike = value_rows_of("fp16 d64 b1 q9 k65 h1 scale=(1|2)");
  ASSERT_EQ(alike.size(), 4);
  EXPECT_EQ(alike[0].name, "gfx942_fp16_d64_fewQueries_scale_q9_k65");
  EXPECT_EQ(alike[2].name, "gfx942_fp16_d64_fewQueries_scale_q9_k65_row2");
}

TEST(ValueRowsText, WhatIsNotUnderstoodIsSaidWithItsLine) {
  const auto wrong_with = [](const std::string& text) -> std::string {
    try {
      for (const ValueRow& row : value_rows_of(text)) case_of(row);
      return "";
    } catch (const std::runtime_error& error) {
      return error.what();
    }
  };
  EXPECT_EQ(wrong_with("fp16 d64 b1 q1 k1 h1 # as it is"), "");
  EXPECT_TRUE(
      wrong_with("\nfp16 b1 q1 k1 h1 d64 : padedd").contains("line 2 (fp16 b1 q1 k1 h1 d64 : padedd): 'padedd'"));
  EXPECT_TRUE(wrong_with("fp16 d64 b1 q1 k1 h1\nfp16 d64 b1 q1 k1 h1").contains("twice"));
  EXPECT_TRUE(wrong_with("fp16 d64 b1 q1 k1 h1 casual").contains("casual"));
  EXPECT_TRUE(wrong_with("(fp16|bf16 d64").contains("parenthesis"));
  EXPECT_TRUE(wrong_with("fp16 d64 b1 q64 k64 h1 top_k=3").contains("top_k="));
  EXPECT_TRUE(wrong_with("fp16 d64 b1 q1 k1 h1 : numbers=any").contains("the row has no scales"));
  EXPECT_TRUE(wrong_with("fp16 d64 b1 q1 k1 h1 qk=i8 : q_scales=token").contains("no scales are called 'token'"));
}

}  // namespace
}  // namespace wavejit::tests
