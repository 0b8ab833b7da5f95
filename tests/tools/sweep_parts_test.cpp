// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What `wavejit sweep` is made of: lists, inputs, samples, the reference and the checker.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>

#include "templates/attention/program/experiment.h"
#include "templates/attention/program/inputs.h"
#include "templates/attention/program/row_reference.h"
#include "templates/attention/program/sampling.h"
#include "templates/attention/program/written_rows.h"
#include "templates/attention_forward/program/answers.h"
#include "templates/attention_forward/program/described_experiment.h"
#include "templates/attention_forward/program/vocabulary.h"
#include "tool_test_support.h"
#include "tools/sweep/list.h"
#include "tools/sweep/rocmlir_limits.h"

namespace wavejit::attention_forward::program {
namespace {

using tools::sweep::rocmlir_limit;
using tools::sweep::wrong_by_rms;

Experiment problem_of(const std::string& descriptor) {
  auto problem = parse_experiment(descriptor);
  EXPECT_TRUE(problem.has_value()) << problem.error().what;
  return problem.value_or(Experiment{});
}

// What `sweep --check` keeps of the published list on a host of 24 GiB: everything, as its budget of a half admits.
TEST(SweepBudgetTest, TheCheckedPublishedListFitsTwelveGibibytes) {
  constexpr double sample = 2e9;
  constexpr std::uint64_t budget = std::uint64_t{12} << 30U;
  for (const std::string& line : published_list()) {
    const auto parsed = parse_experiment(line);
    if (!parsed) continue;  // not every length of the list is supported
    const Experiment& problem = *parsed;
    const bool whole = multiplications(problem) <= sample;
    for (const std::int64_t tile_rows : {64, 128, 256}) {
      const std::uint64_t pieces = whole ? 0 : choose_workgroups(problem, tile_rows, sample).count;
      EXPECT_LE(device_bytes(problem) + race_shadow_bytes(problem, pieces, tile_rows), budget) << problem.text;
    }
  }
}

TEST(SweepBudgetTest, ASampledShadowIsThatOfItsWorkgroupsAndNoMoreThanTheWhole) {
  const Experiment problem = problem_of("attention_forward fp16 b2 q4096 k4096 h4 d64");
  const std::uint64_t whole = race_shadow_bytes(problem, 0, 128);
  EXPECT_EQ(whole, 10 * device_bytes(problem));
  const std::uint64_t one = race_shadow_bytes(problem, 1, 128);
  // Ten times the keys, the values and its own rows at least.
  EXPECT_GT(one, 10 * 2 * (4096 + 128) * 64 * 2U);
  EXPECT_LT(one, whole / 2);
  EXPECT_EQ(race_shadow_bytes(problem, 1'000'000, 128), whole);
}

// ---- Lists ----------------------------------------------------------------------------------------------------------

// 27 dense shapes, 4 split, 12 long, 12 tails, 6 unequal, 7 packed; × 8. And six callers with keys in pages, six with
// lists of keys, eight of gradients, eight of the indexer, eleven of latent attention,
// eleven of cache_append, five of attention_merge, two with queries in fp32 and two with bool masks.
TEST(SweepListTest, ThePublishedListIsWhole) {
  const auto lines = tools::sweep::usual_list();
  EXPECT_EQ(lines.size(), (27 + 4 + 12 + 12 + 6 + 7) * 8U + 64);
  std::set<std::string> texts;
  for (const Line& line : lines) texts.insert(line.text);
  EXPECT_EQ(texts.size(), lines.size());
  const tools::sweep::Cases cases = tools::sweep::parse_lines(lines);
  EXPECT_TRUE(cases.bad.empty()) << cases.bad.front().text << ": " << cases.bad.front().why.what;
  // What the list says is what the library would print.
  for (const auto& which : cases.good) EXPECT_TRUE(texts.contains(which.problem->text())) << which.problem->text();
}

TEST(SweepListTest, CommentsAndBadLines) {
  const ScratchDirectory scratch;
  write_text(scratch / "list",
             "# tails\n"
             "  attention_forward fp16 b1 q3 k5 h1 d64   # odd\r\n"
             "\n"
             "attention_forward fp16 b1 q3 k5 h1 d64 casual\n"
             "attention_forward fp16 b1 q3 k5 h1 d64 inputs=adversarial:unknown\n"
             "attention_forward fp32 b1 q3 k5 h1 d64\n");
  const auto lines = read_list(scratch / "list");
  ASSERT_TRUE(lines.has_value());
  const tools::sweep::Cases cases = tools::sweep::parse_lines(*lines);
  ASSERT_EQ(cases.good.size(), 1U);
  EXPECT_EQ(cases.good[0].line, 2U);
  EXPECT_EQ(cases.good[0].problem->keys(), 5);
  ASSERT_EQ(cases.bad.size(), 2U);
  EXPECT_EQ(cases.bad[0].line, 4U);
  EXPECT_THAT(cases.bad[0].why.what, ::testing::HasSubstr("'casual'"));
  EXPECT_EQ(cases.bad[1].line, 5U);
  EXPECT_THAT(cases.bad[1].why.what, ::testing::HasSubstr("adversarial:mixed-rescale"));
  ASSERT_EQ(cases.unsupported.size(), 1U);
  EXPECT_EQ(cases.unsupported[0].line, 6U);
  EXPECT_EQ(read_list(scratch / "none").error().code, ExitCode::file);
}

// ---- Problems -------------------------------------------------------------------------------------------------------

TEST(SweepProblemTest, EveryWordArrives) {
  const Experiment p = problem_of(
      "attention_forward bf16 b2 q7 k9 h6/3 d128/64 causal=1 window=3,-1 lse layout=packed q_lengths=7,2 k_lengths=4,9 "
      "scale=0.5 bias=h alibi=bh sink softcap=30 splits=3 seed=8 inputs=uniform");
  EXPECT_EQ(p.type, HalfType::bf16);
  EXPECT_EQ(p.head_dim_qk, 128);
  EXPECT_EQ(p.head_dim_v, 64);
  EXPECT_EQ(p.group(), 2);
  EXPECT_EQ(p.mask.bits, WAVEJIT_MASK_CAUSAL | WAVEJIT_MASK_WINDOW | WAVEJIT_MASK_PREFIX);
  EXPECT_EQ(p.mask.causal_prefix, 1);
  EXPECT_EQ(p.mask.window_left, 3);
  EXPECT_EQ(p.mask.window_right, -1);
  EXPECT_TRUE(p.lse);
  EXPECT_TRUE(p.packed_queries());
  EXPECT_EQ(p.query_lengths, (std::vector<std::int64_t>{7, 2}));
  EXPECT_EQ(p.key_lengths, (std::vector<std::int64_t>{4, 9}));
  EXPECT_EQ(p.scale, 0.5F);
  EXPECT_EQ(p.of(Modifier::bias).extent, Extent::head);
  EXPECT_EQ(p.of(Modifier::alibi).extent, Extent::batch_and_head);
  EXPECT_EQ(p.of(Modifier::softcap).number, 30);
  for (const ModifierRow& row : modifier_rows) EXPECT_TRUE(p.has(row.modifier)) << row.word;
  EXPECT_EQ(p.splits, 3);
  EXPECT_EQ(p.seed, 8U);
  EXPECT_EQ(p.inputs, "uniform");

  const auto sequences = sequences_of(p);
  EXPECT_EQ(sequences[1].first_query, 7);
  EXPECT_EQ(sequences[1].first_key, 4);
  EXPECT_EQ(sequences[1].keys, 9);
  EXPECT_EQ(queries_of(p).rows(), 9 * 6);
  EXPECT_EQ(keys_of(p).elements(), 13 * 3 * 128);
  EXPECT_EQ(bias_of(p).rows, 9);
  EXPECT_EQ(bias_of(p).row(p, 1, sequences[1], 5, 1), 5 * 9 + 8);
}

TEST(SweepProblemTest, DefaultsAreFilledIn) {
  const Experiment p = problem_of("attention_forward fp16 b1 q1 k1 h1 d64");
  EXPECT_EQ(p.scale, 0.125F);
  EXPECT_EQ(p.inputs, "normal");
  EXPECT_EQ(p.mask.bits, WAVEJIT_MASK_NONE);
  EXPECT_EQ(p.splits, 0);
  EXPECT_FALSE(p.lse);
}

TEST(SweepProblemTest, WorkCountsWhatIsSeen) {
  EXPECT_EQ(multiplications(problem_of("attention_forward fp16 b2 q4 k6 h3 d64")), 2.0 * 4 * 6 * 3 * 128);
  // Rows see 3, 4, 5, 6 keys.
  EXPECT_EQ(multiplications(problem_of("attention_forward fp16 b1 q4 k6 h1 d64 causal")), (3 + 4 + 5 + 6) * 128.0);
}

TEST(SweepProblemTest, PlacementOfLayouts) {
  const Placement bshd = queries_of(problem_of("attention_forward fp16 b2 q5 k5 h3 d64"));
  EXPECT_EQ(bshd.offset(7, 2), ((1 * 5 + 2) * 3 + 2) * 64);
  const Placement bhsd = queries_of(problem_of("attention_forward fp16 b2 q5 k5 h3 d64 layout=bhsd"));
  EXPECT_EQ(bhsd.offset(7, 2), ((1 * 3 + 2) * 5 + 2) * 64);
}

// ---- Inputs ---------------------------------------------------------------------------------------------------------

std::vector<float> row_of(const Inputs& inputs, Operand operand, std::int64_t row, std::size_t size = 256) {
  std::vector<float> values(size);
  inputs.fill(operand, row, row, values);
  return values;
}

TEST(SweepInputsTest, MomentsOfTheDistributions) {
  for (const auto& [name, variance] : {std::pair("uniform", 1.0 / 3), {"normal", 1.0}}) {
    const Inputs inputs(HalfType::fp16, name, 5);
    double sum = 0;
    double squares = 0;
    const std::int64_t rows = 400;
    for (std::int64_t row = 0; row < rows; ++row) {
      for (const float value : row_of(inputs, Operand::k, row)) {
        sum += value;
        squares += static_cast<double>(value) * value;
      }
    }
    const double count = static_cast<double>(rows) * 256;
    EXPECT_NEAR(sum / count, 0, 4 * std::sqrt(variance / count)) << name;
    EXPECT_NEAR(squares / count, variance, 0.02 * variance) << name;
  }
}

TEST(SweepInputsTest, RowsTensorsAndSeedsDiffer) {
  const Inputs inputs(HalfType::bf16, "normal", 5);
  const auto row = row_of(inputs, Operand::q, 3);
  EXPECT_EQ(row, row_of(inputs, Operand::q, 3));
  EXPECT_NE(row, row_of(inputs, Operand::q, 4));
  EXPECT_NE(row, row_of(inputs, Operand::k, 3));
  EXPECT_NE(row, row_of(Inputs(HalfType::bf16, "normal", 6), Operand::q, 3));
  std::vector<std::uint16_t> bits(256);
  inputs.fill(Operand::q, 3, 3, bits);
  for (std::size_t i = 0; i < bits.size(); ++i) EXPECT_EQ(decode(HalfType::bf16, bits[i]), row[i]);
}

TEST(SweepInputsTest, SlopesDifferByBatchAndHead) {
  const Inputs inputs(HalfType::fp16, "normal", 5);
  std::set<float> slopes;
  for (int batch = 0; batch < 4; ++batch)
    for (int head = 0; head < 16; ++head) slopes.insert(inputs.slope(batch, head, 16));
  EXPECT_EQ(slopes.size(), 64U);
}

// ---- Samples --------------------------------------------------------------------------------------------------------

TEST(SweepSamplingTest, WorkgroupsVisitEveryDimension) {
  const Experiment p = problem_of("attention_forward fp16 b4 q2048 k2048 h8 d64");
  const Workgroups chosen = choose_workgroups(p, 128, multiplications(p) / 16);
  EXPECT_EQ(chosen.total, 8 * 16 * 4U);
  EXPECT_NEAR(static_cast<double>(chosen.count), static_cast<double>(chosen.total) / 16, 2);
  std::set<std::uint64_t> heads, tiles, batches;
  std::uint64_t last = 0;
  for (std::uint64_t i = 0; i < chosen.count; ++i) {
    last = chosen.first + i * chosen.step;
    heads.insert(last % 8);
    tiles.insert(last / 8 % 16);
    batches.insert(last / 128);
  }
  EXPECT_EQ(last, chosen.total - 1);
  EXPECT_EQ(heads.size(), 8U);
  EXPECT_GE(tiles.size(), 8U);
  EXPECT_EQ(batches.size(), 4U);
}

// Most rows of more queries than keys see nothing under a causal mask; those that do begin the grid.
TEST(SweepSamplingTest, WorkgroupsReachBothEndsOfTheGrid) {
  for (const char* mask : {"", " causal"}) {
    const Experiment p = problem_of(std::string("attention_forward fp16 b1 q8192 k1024 h64/8 d128") + mask);
    for (const double part : {3.0, 4.3, 7.0, 100.0, 5000.0}) {
      const Workgroups chosen = choose_workgroups(p, 128, multiplications(p) / part);
      const std::uint64_t last = chosen.first + (chosen.count - 1) * chosen.step;
      EXPECT_LT(chosen.first, chosen.step) << mask << part;
      EXPECT_LT(chosen.total - 1 - last, chosen.step) << mask << part;
      EXPECT_EQ(std::gcd(chosen.step, chosen.total), 1U);
      EXPECT_LE(static_cast<double>(chosen.count), std::max(static_cast<double>(chosen.total) / part, 2.0) + 1);
    }
  }
}

// Two tiles a workgroup, of an odd number the middle one alone.
TEST(SweepSamplingTest, PairsOwnTwoTiles) {
  const Experiment p = problem_of("attention_forward fp16 b2 q1280 k1280 h4 d64 causal");
  const Workgroups all = choose_workgroups(p, 256, 2 * multiplications(p), true);
  EXPECT_EQ(all.total, 4 * 3 * 2U);
  EXPECT_EQ(all.count, all.total);
  EXPECT_EQ(tiles_of(p, all, 256, true), 4 * 5 * 2U);
  const Workgroups middles = {.first = 8, .step = 12, .count = 2, .total = all.total};
  EXPECT_EQ(tiles_of(p, middles, 256, true), 2U);
  EXPECT_EQ(tiles_of(p, all, 256, false), all.count);
}

TEST(SweepSamplingTest, PartialTilesAreFound) {
  const Experiment p = problem_of("attention_forward fp16 b1 q300 k300 h2 d64");
  std::vector<std::int64_t> tail(300 - 256);
  std::iota(tail.begin(), tail.end(), 256);
  std::int64_t tiles = 0;
  EXPECT_EQ(partial_tile(p, {{{0, 1}, tail}}, 128, tiles), "");
  EXPECT_EQ(tiles, 1);
  EXPECT_EQ(partial_tile(p, all_rows(p), 128, tiles), "");
  EXPECT_EQ(tiles, 6);
  tail.pop_back();
  EXPECT_EQ(partial_tile(p, {{{0, 1}, tail}}, 128, tiles), "sequence 0, head 1, rows 256 to 299");
}

TEST(SweepSamplingTest, ComparedRowsHoldTheLast) {
  const Experiment p = problem_of("attention_forward fp16 b1 q1000 k1000 h4 d64");
  EXPECT_EQ(choose_rows(p, all_rows(p), 1e12), all_rows(p));
  const Rows some = choose_rows(p, all_rows(p), multiplications(p) / 10);
  EXPECT_NEAR(static_cast<double>(count_of(some)), 400, 8);
  EXPECT_EQ(some.at({0, 3}).back(), 999);
}

TEST(SweepSamplingTest, ViewsBeginWhereADiagonalCan) {
  const Experiment p = problem_of("attention_forward fp16 b1 q3000 k1000 h4/2 d64 causal");
  for (const View& view : choose_views(p, 1e12)) EXPECT_GE(view.first_row, 2000);
  EXPECT_EQ(choose_views(p, 1).size(), 1U);
}

// ---- Reference and checker --------------------------------------------------------------------------------------------

class SweepCheckerTest : public ::testing::Test {
 protected:
  Experiment problem_ = problem_of("attention_forward fp16 b1 q5 k4 h2 d64 causal lse");
  Inputs inputs_{problem_.type, problem_.inputs, problem_.seed};
  Reference reference_{problem_, inputs_};
  Rows rows_ = all_rows(problem_);
  WrittenRows written_;

  void SetUp() override {
    reference_.want(rows_);
    for (const auto& [head, numbers] : rows_) {
      for (const std::int64_t row : numbers) {
        const ReferenceRow& exact = reference_.at(head, row);
        WrittenRow& to = written_[head][row];
        for (const double value : exact.output) to.output.push_back(encode(problem_.type, value));
        to.lse = static_cast<float>(exact.lse);
      }
    }
  }
  Comparison compared() { return compare_rows(problem_, reference_, rows_, written_); }
};

// Row 0 of five sees no key of four.
TEST_F(SweepCheckerTest, TheRoundedAnswerPasses) {
  EXPECT_EQ(reference_.at({0, 0}, 0).lse, -std::numeric_limits<double>::infinity());
  const Comparison comparison = compared();
  EXPECT_EQ(comparison.wrong(), "");
  EXPECT_EQ(comparison.rows, 10);
  EXPECT_EQ(comparison.compared, 640);
  EXPECT_GT(comparison.max_error, 0);
}

TEST_F(SweepCheckerTest, EachTensorIsHeldAgainstItsOwnPlace) {
  const WrittenRows good = written_;
  written_[{0, 1}][3].output[7] = encode(HalfType::fp16, 9);
  EXPECT_THAT(compared().wrong(), ::testing::HasSubstr("sequence 0, token 3, head 1, dim 7: 9 instead of "));
  written_ = good;
  written_[{0, 0}][4].lse += 0.01F;
  EXPECT_THAT(compared().wrong(), ::testing::HasSubstr("sequence 0, token 4, head 0, LSE: "));
  // What was not asked for is not looked at.
  problem_.lse = false;
  EXPECT_EQ(compared().wrong(), "");
}

// One number for all elements, in units of the largest: what is small beside that, only this project's limits see.
TEST_F(SweepCheckerTest, LimitsOfRocmlirAreOfTheWholeResult) {
  const double limit = rocmlir_limit(problem_.text);
  EXPECT_EQ(limit, 0.005);
  EXPECT_EQ(wrong_by_rms(compared(), limit), "");
  const WrittenRows good = written_;
  auto& element = written_[{0, 1}][3].output[7];
  element = encode(HalfType::fp16, decode(HalfType::fp16, element) + 0.05);
  EXPECT_NE(compared().wrong(), "");
  EXPECT_EQ(wrong_by_rms(compared(), limit), "");
  // 9 is the largest now: √(about 9² / 640) / 9.
  element = encode(HalfType::fp16, 9);
  EXPECT_THAT(wrong_by_rms(compared(), limit), ::testing::HasSubstr("RMS error 0.0"));
  EXPECT_NEAR(compared().relative_rms(), 1 / std::sqrt(640), 0.01);
  written_ = good;
  written_[{0, 0}][4].output[0] = encode(HalfType::fp16, std::numeric_limits<double>::quiet_NaN());
  EXPECT_THAT(wrong_by_rms(compared(), limit),
              ::testing::HasSubstr("not finite: 0 of the exact answer, 1 of the result"));
}

TEST(SweepLimitsTest, AreThoseOfRocmlirsChange) {
  EXPECT_EQ(rocmlir_limit("attention_forward fp16 b1 q1 k1 h1 d128 qk=i8"), 0.005);
  EXPECT_EQ(rocmlir_limit("attention_forward bf16 b1 q1 k1 h1 d64 trans_q"), 0.01);
  EXPECT_EQ(rocmlir_limit("attention_forward bf16 b1 q1 k1 h1 d64 scale=1"), 0.01);
  EXPECT_EQ(rocmlir_limit("attention_forward fp16 b1 q1 k1 h1 d192/128 scale=1"), 0.15);
  EXPECT_EQ(rocmlir_limit("attention_forward fp16 b1 q1 k1 h1 d128 scale=1.5"), 0.005);
}

TEST(SweepReferenceTest, SinksTakeTheirShare) {
  const Experiment without = problem_of("attention_forward fp16 b1 q9 k40 h2 d64 lse");
  const Experiment with = problem_of("attention_forward fp16 b1 q9 k40 h2 d64 lse sink");
  const Inputs inputs(without.type, without.inputs, without.seed);
  Reference plain(without, inputs);
  Reference sunk(with, inputs);
  ASSERT_EQ(sunk.head_values()[index_of(Modifier::sink)].size(), 2U);
  for (const std::int64_t head : {0, 1}) {
    plain.want({{{0, head}, {4}}});
    sunk.want({{{0, head}, {4}}});
    const double kept = std::exp(plain.at({0, head}, 4).lse - sunk.at({0, head}, 4).lse);
    EXPECT_NEAR(kept, head == 0 ? 0.75 : 0.1, 1e-6);
  }
}

// Rows asked for one by one, all at once, by many groups of heads and by few are the same.
TEST(SweepReferenceTest, RowsDoNotDependOnHowTheyAreAskedFor) {
  const Experiment p = problem_of(
      "attention_forward bf16 b3 q40 k33 h8/4 d64 causal lse layout=packed q_lengths=40,1,7 k_lengths=33,5,0 "
      "bias=bh alibi=bh softcap=20");
  const Inputs inputs(p.type, p.inputs, p.seed);
  Reference whole(p, inputs);
  whole.want(all_rows(p));
  Reference single(p, inputs);
  for (const HeadOfSequence head : {HeadOfSequence{0, 5}, HeadOfSequence{1, 0}, HeadOfSequence{2, 7}}) {
    for (const std::int64_t row : all_rows(p).at(head)) {
      single.want({{head, {row}}});
      EXPECT_EQ(single.at(head, row).output, whole.at(head, row).output);
      EXPECT_EQ(single.at(head, row).lse, whole.at(head, row).lse);
    }
  }
  EXPECT_EQ(whole.at({2, 7}, 3).lse, -std::numeric_limits<double>::infinity());
}

}  // namespace
}  // namespace wavejit::attention_forward::program
