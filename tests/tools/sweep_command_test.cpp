// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// `wavejit sweep` as a user starts it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tool_test_support.h"

namespace wavejit::tools {
namespace {

using ::testing::HasSubstr;

class SweepCommandTest : public ::testing::Test {
 protected:
  ScratchDirectory scratch_;

  Outcome sweep(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"sweep", "--device", "sim:gfx950"});
    return run_program(scratch_, arguments);
  }
};

TEST_F(SweepCommandTest, ProblemsPassUnderEverySchedule) {
  const auto outcome =
      sweep({"attention_forward fp16 b1 q33 k65 h2/1 d64 causal lse",
             "attention_forward bf16 b2 q64 k33 h2 d128 inputs=adversarial:mixed-rescale layout=bhsd", "--schedule",
             "in_order", "--schedule", "reverse", "--schedule", "random:7", "--json", "--csv", scratch_ / "sweep.csv"});
  ASSERT_EQ(outcome.code, 0) << outcome.out << outcome.err;
  const auto json = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(json.at("target"), "gfx950");
  EXPECT_EQ(json.at("passed"), 2);
  const auto& first = json.at("outcomes").at(0);
  EXPECT_EQ(first.at("verdict"), "ok");
  EXPECT_EQ(first.at("schedules"), "in_order reverse random:7");
  EXPECT_EQ(first.at("rows_compared"), 66);
  EXPECT_EQ(first.at("ran"), "whole");
  EXPECT_EQ(first.at("key").get<std::string>().size(), 64U);
  EXPECT_GT(first.at("max_error").get<double>(), 0);
  EXPECT_GT(first.at("error_of_bound").get<double>(), 0);
  EXPECT_LE(first.at("error_of_bound").get<double>(), 1);
  EXPECT_GT(first.at("compile_ms").get<double>(), 0);

  const std::string csv = read_text(scratch_ / "sweep.csv");
  EXPECT_THAT(csv, ::testing::StartsWith("target,device,line,descriptor,pipeline,verdict,"));
  EXPECT_THAT(csv, HasSubstr("attention_forward fp16 b1 q33 k65 h2/1 d64 causal lse,default,ok,"));
  EXPECT_EQ(std::ranges::count(csv, '\n'), 3);
}

// In place of this project's limits, and beside them.
TEST_F(SweepCommandTest, LimitsOfRocmlir) {
  const std::vector<std::string> problems = {"attention_forward fp16 b1 q33 k65 h2 d64 qk=i8 scores=fp16 trans_q",
                                             "softmax_lse fp16 b1 h1 q3 k64"};
  for (const std::vector<std::string>& limits :
       {std::vector<std::string>{"--limits", "rocmlir"}, {"--limits", "own", "--limits", "rocmlir"}}) {
    std::vector<std::string> words = problems;
    words.insert(words.end(), limits.begin(), limits.end());
    const auto outcome = sweep(words);
    EXPECT_EQ(outcome.code, 0) << outcome.out << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr("closest to rocMLIR's limit: RMS error "));
    EXPECT_THAT(outcome.out, HasSubstr(" of the largest element, limit 0.005, attention_forward fp16"));
  }
  EXPECT_THAT(sweep(problems).out, ::testing::Not(HasSubstr("rocMLIR")));
  expect_one_line_error(sweep({"--limits", "theirs", problems[0]}), 2);
}

TEST_F(SweepCommandTest, ProblemsPassUnderEveryCheck) {
  const auto outcome = sweep({"attention_forward bf16 b1 q33 k65 h2/1 d64 causal lse",
                              "attention_forward fp16 b1 q5 k2600 h2/1 d128 causal lse splits=3",
                              "attention_backward bf16 b1 q70 k129 h2/1 d64", "--check", "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.out << outcome.err;
  const auto report = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(report.at("passed"), 3);
  // Nobody knows what rounding leads to expect of a gradient's row: there is no figure, not a 0.
  EXPECT_GT(report.at("outcomes")[0].at("row_rms_of_expected").get<double>(), 0.5);
  EXPECT_TRUE(report.at("outcomes")[2].at("row_rms_of_expected").is_null());
  EXPECT_LT(report.at("outcomes")[2].at("least_row_cosine").get<double>(), 1);
}

// A bad line is told with its number and what is accepted; the others run; the exit code says so.
TEST_F(SweepCommandTest, BadLinesDoNotStopTheOthers) {
  write_text(scratch_ / "list",
             "# two problems and a slip\n"
             "attention_forward fp16 b1 q3 k5 h1 d64\n"
             "attention_forward fp16 b1 q3 k5 h1 d64 casual\n"
             "attention_forward fp16 b1 q4 k5 h1 d64\n");
  const auto outcome = sweep({"--list", scratch_ / "list"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(
      outcome.err,
      HasSubstr("line 3: descriptor: word 8 'casual' (column 40) is not known (did you mean 'causal'?); accepted: "));
  EXPECT_THAT(outcome.out, HasSubstr("2 passed, 0 failed, 0 set aside, 1 lines not understood"));
}

TEST_F(SweepCommandTest, WhatIsSetAsideIsCountedByReason) {
  const std::vector<std::string> problems = {
      "attention_forward fp16 b1 q3 k5 h1 d64", "attention_forward fp16 b4 q2000 k2000 h32 d64",
      "attention_forward fp16 b1 q3 k5 h1 d264", "attention_forward fp16 b1 q3 k5 h1 d100"};
  auto arguments = problems;
  arguments.insert(arguments.end(), {"--memory-budget", "8M"});
  const auto outcome = sweep(arguments);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("1 passed, 0 failed, 3 set aside"));
  EXPECT_THAT(outcome.out, HasSubstr("set aside  1 over the memory budget"));
  EXPECT_THAT(outcome.out, HasSubstr("set aside  2 not supported"));
  EXPECT_THAT(outcome.out, HasSubstr("the budget is 0.01 GiB"));
  arguments.emplace_back("--require-all");
  EXPECT_EQ(sweep(arguments).code, 4);
}

// Green for nothing compared would be worse than no test at all.
TEST_F(SweepCommandTest, NothingComparedIsNoSuccess) {
  const Outcome outcome =
      run_program(scratch_, {"sweep", "attention_forward bf16 b1 q16 k16 h1 d100", "--device", "sim:gfx950"});
  EXPECT_EQ(outcome.code, 4) << outcome.out;
  EXPECT_THAT(outcome.err,
              HasSubstr("nothing ran: 1 of 1 problem is set aside, the first: attention_forward bf16 b1 "));
  const Outcome none = run_program(
      scratch_, {"sweep", "attention_forward bf16 b1 q16 k16 h1 d64", "--filter", "typo", "--device", "sim:gfx950"});
  expect_one_line_error(none, 2);
  EXPECT_THAT(none.err, HasSubstr("none of 1 problem is left by --filter"));
}

// The check of races remembers 40 bytes of every dword that is touched.
TEST_F(SweepCommandTest, TheBudgetKnowsWhatChecksNeed) {
  // 32 KiB of tensors, and 320 KiB beside them.
  const std::vector<std::string> words = {"attention_forward fp16 b1 q64 k64 h1 d64", "--memory-budget", "256K"};
  auto checked = words;
  checked.emplace_back("--check");
  EXPECT_THAT(sweep(words).out, HasSubstr("1 passed, 0 failed, 0 set aside"));
  const auto outcome = sweep(checked);
  EXPECT_THAT(outcome.out, HasSubstr("0 passed, 0 failed, 1 set aside"));
  EXPECT_THAT(outcome.out, HasSubstr("of it for the check of races"));
}

// A long problem runs some workgroups and says which part that is.
TEST_F(SweepCommandTest, LongProblemsAreSampled) {
  const auto outcome = sweep({"attention_forward fp16 b1 q4096 k4096 h4 d64 causal lse", "--sample", "4e7",
                              "--schedule", "in_order", "--schedule", "random", "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.out << outcome.err;
  const auto only = nlohmann::json::parse(outcome.out).at("outcomes").at(0);
  EXPECT_THAT(only.at("ran").get<std::string>(), ::testing::MatchesRegex("[0-9]+ of 64 workgroups"));
  EXPECT_EQ(only.at("rows"), 4 * 4096);
  EXPECT_GT(only.at("rows_compared").get<int>(), 0);
  EXPECT_LE(only.at("rows_compared").get<int>(), 1024);
}

// Workgroups of packed heads write rows of several, and those of mixed calls follow no grid: runs of rows then.
TEST_F(SweepCommandTest, PackedHeadsAndMixedCallsAreSampledByRuns) {
  const auto outcome = sweep({"attention_forward bf16 b2 q1 k1100 h4/2 d64 lse layout=paged:16 splits=1",
                              "attention_forward bf16 b4 q70 k1100 h4/1 d64 causal layout=packed q_rows=73", "--sample",
                              "1e5", "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.out << outcome.err;
  const auto outcomes = nlohmann::json::parse(outcome.out).at("outcomes");
  ASSERT_EQ(outcomes.size(), 2U);
  for (const auto& each : outcomes)
    EXPECT_THAT(each.at("ran").get<std::string>(), ::testing::MatchesRegex("[0-9]+ runs? of .*"));
}

// Both pipelines, one reference, the same bits; where both would run one kernel it runs once.
TEST_F(SweepCommandTest, PipelinesAreCompared) {
  const auto outcome =
      sweep({"attention_forward fp16 b1 q300 k100 h1 d64 lse", "attention_forward fp16 b1 q30 k60 h1 d64 lse",
             "--pipeline", "auto", "--pipeline", "generic", "--require-all", "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.out << outcome.err;
  const auto json = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(json.at("outcomes").size(), 4U);
  EXPECT_EQ(json.at("passed"), 3);
  EXPECT_THAT(json.at("outcomes").at(0).at("kernel_spec").get<std::string>(), HasSubstr("pipeline=dualwave"));
  EXPECT_EQ(json.at("outcomes").at(3).at("verdict"), "aside");
}

TEST_F(SweepCommandTest, ListsFiltersAndShards) {
  const auto lines = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"sweep", "--print-list"});
    const auto outcome = run_program(scratch_, arguments);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return std::ranges::count(outcome.out, '\n');
  };
  EXPECT_EQ(lines({}), 68 * 8 + 64);
  EXPECT_EQ(lines({"--filter", " bf16 .* d64 .*causal"}), 70);
  EXPECT_EQ(lines({"--up-to-keys", "1025"}), 30 * 8 + 59);
  EXPECT_EQ(lines({"--beyond-keys", "1025"}), 38 * 8 + 5);
  EXPECT_EQ(lines({"--shard", "1/3"}) + lines({"--shard", "2/3"}) + lines({"--shard", "3/3"}), 68 * 8 + 64);
}

TEST_F(SweepCommandTest, WrongOptionsAreRefused) {
  EXPECT_THAT(sweep({"--schedule", "sorted"}).err, HasSubstr("'sorted' is not accepted; in_order, reverse, random"));
  EXPECT_THAT(sweep({"--memory-budget", "8X"}).err, HasSubstr("'8X' is not accepted"));
  EXPECT_THAT(sweep({"--sample", "0"}).err, HasSubstr("'0' is not accepted"));
  EXPECT_THAT(sweep({"--shard", "4/3"}).err, HasSubstr("'4/3' is not accepted"));
  EXPECT_THAT(sweep({"--filter", "("}).err, HasSubstr("'(' is no regular expression"));
  EXPECT_THAT(sweep({"--pipeline", "fast"}).err, HasSubstr("fast"));
  for (const std::string option : {"--schedule", "--memory-budget", "--sample", "--shard", "--pipeline"})
    EXPECT_EQ(sweep({option, "@"}).code, 2) << option;
}

}  // namespace
}  // namespace wavejit::tools
