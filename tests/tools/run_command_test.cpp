// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// `wavejit run` as a user calls it: arrays in, a checked result out, on both simulated targets; and what bad input
// gets.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "templates/attention/program/reference.h"
#include "tool_test_support.h"

namespace wavejit::tools {
namespace {

using attention::program::AttentionArrays;
using attention::program::exact_attention;

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

using Words = std::vector<std::string>;

class RunCommandTest : public ::testing::Test {
 protected:
  void SetUp() override {
    write("q.npy", q_shape_, q_, {.half = true});
    write("k.npy", kv_shape_, k_, {.big_endian = true});
    write("v.npy", kv_shape_, v_, {.half = true, .fortran_order = true});
  }

  void write(const std::string& name, const Shape& shape, const std::vector<float>& values, const Storage& storage) {
    write_text(scratch_ / name, npy_file(shape, values, storage));
  }

  Words call(const std::string& device, Words more = {}) {
    Words words = {"run", "attention_forward", "--q",   scratch_ / "q.npy", "--k",      scratch_ / "k.npy",
                   "--v", scratch_ / "v.npy",  "--out", scratch_ / "o.npy", "--device", device};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  Outcome run(const Words& words) { return run_program(scratch_, words); }

  // A refusal: one line, the code, and nothing new in the folder.
  void expect_refused(const Words& words, int code, const std::string& named) {
    const auto before = scratch_.names();
    const Outcome outcome = run(words);
    expect_one_line_error(outcome, code);
    EXPECT_THAT(outcome.err, HasSubstr(named));
    EXPECT_EQ(scratch_.names(), before);
  }

  ScratchDirectory scratch_;
  Shape q_shape_ = {2, 33, 4, 64};
  Shape kv_shape_ = {2, 70, 2, 64};
  std::vector<float> q_ = normal_values(q_shape_, 1);
  std::vector<float> k_ = normal_values(kv_shape_, 2);
  std::vector<float> v_ = normal_values(kv_shape_, 3);
};

// Files of three storages, against the reference computed here from the same values.
void expect_close(const ScratchDirectory& scratch, const AttentionArrays& problem) {
  const auto exact = exact_attention(problem);
  const auto output = floats_of(scratch / "o.npy", "(2, 33, 4, 64)");
  ASSERT_EQ(output.size(), exact.output.size());
  const auto lse = floats_of(scratch / "l.npy", "(2, 4, 33)");
  ASSERT_EQ(lse.size(), exact.lse.size());
  EXPECT_EQ(compare_rows(problem, exact, output, lse).wrong(), "");
}

TEST_F(RunCommandTest, ComputesAttentionOnBothTargetsAndFindsTheKernelAgain) {
  for (const std::string& target : {std::string("gfx950"), std::string("gfx942")}) {
    for (const std::string& dtype : {std::string("fp16"), std::string("bf16")}) {
      SCOPED_TRACE(target + " " + dtype);
      const Words words = call("sim:" + target, {"--dtype", dtype, "--causal", "--lse", scratch_ / "l.npy", "--check"});
      const Outcome cold = run(words);
      ASSERT_EQ(cold.code, 0) << cold.err << cold.out;
      for (const char* word :
           {"kernel   attention_forward ", "origin   compiled", "route ", "emit ", "lower ", "link ", "publish ",
            "load ", "launch ", "error    max ", " of the expected, limit 1.7", "check    passed", "wrote "}) {
        EXPECT_THAT(cold.out, HasSubstr(word));
      }
      EXPECT_THAT(cold.out, HasSubstr(target));
      const std::string cold_bytes = read_text(scratch_ / "o.npy");

      const HalfType type = *parse_half_type(dtype);
      const auto q = read_npy("q", scratch_ / "q.npy", type);
      const auto k = read_npy("k", scratch_ / "k.npy", type);
      const auto v = read_npy("v", scratch_ / "v.npy", type);
      expect_close(scratch_,
                   {.type = type, .q = &*q, .k = &*k, .v = &*v, .scale = 0.125F, .mask = mask_of(WAVEJIT_MASK_CAUSAL)});

      const Outcome warm = run(words);
      ASSERT_EQ(warm.code, 0) << warm.err;
      EXPECT_THAT(warm.out, HasSubstr("origin   on disk"));
      EXPECT_THAT(warm.out, Not(HasSubstr("emit ")));
      EXPECT_EQ(read_text(scratch_ / "o.npy"), cold_bytes) << "the same bits from the cache";
    }
  }
}

TEST_F(RunCommandTest, ScaleMaskAndRepeatsInJson) {
  const Outcome outcome =
      run(call("sim:gfx950", {"--scale", "-0.75", "--lse", scratch_ / "l.npy", "--check", "--repeat", "2", "--json"}));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto json = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(json.at("origin"), "compiled");
  EXPECT_EQ(json.at("key").get<std::string>().size(), 64U);
  EXPECT_EQ(json.at("target"), "gfx950");
  EXPECT_TRUE(json.at("passed").get<bool>());
  EXPECT_TRUE(json.at("check").at("passed").get<bool>());
  EXPECT_GT(json.at("check").at("error_of_bound").get<double>(), 0);
  EXPECT_LE(json.at("check").at("error_of_bound").get<double>(), 1);
  EXPECT_EQ(json.at("repeats").at("count"), 2);
  EXPECT_EQ(json.at("repeats").at("origin"), "in memory");
  EXPECT_TRUE(json.at("repeats").at("identical").get<bool>());
  EXPECT_GT(json.at("phases_ns").at("lower").get<std::uint64_t>(), 0U);

  const auto q = read_npy("q", scratch_ / "q.npy", HalfType::fp16);
  const auto k = read_npy("k", scratch_ / "k.npy", HalfType::fp16);
  const auto v = read_npy("v", scratch_ / "v.npy", HalfType::fp16);
  expect_close(scratch_, {.q = &*q, .k = &*k, .v = &*v, .scale = -0.75F});
}

// Beyond 2^28 nothing is promised (wavejit.h): the check says so, and has not passed where it compared nothing.
TEST_F(RunCommandTest, ScoresBeyondTheirLimitAreToldAndNotCompared) {
  const Outcome some = run(call("sim:gfx950", {"--scale", "1e7", "--check", "--json"}));
  ASSERT_EQ(some.code, 0) << some.err << some.out;
  const auto check = nlohmann::json::parse(some.out).at("check");
  EXPECT_TRUE(check.at("passed").get<bool>());
  EXPECT_GT(check.at("rows_beyond_limit_of_scores").get<int>(), 0);
  EXPECT_LT(check.at("rows_beyond_limit_of_scores").get<int>(), 2 * 4 * 33);
  const Outcome all = run(call("sim:gfx950", {"--scale", "1e9", "--check"}));
  EXPECT_EQ(all.code, 1) << all.err << all.out;
  EXPECT_THAT(all.out,
              HasSubstr("check    FAILED: nothing was compared; 264 of 264 rows not compared, because they have "
                        "scores of 2^28 and beyond"));
}

TEST_F(RunCommandTest, CyclesArePredictedAndDoNotChangeWithThreads) {
  const auto predicted = [&](const std::string& threads) {
    ::setenv("WAVEJIT_SIM_THREADS", threads.c_str(), 1);
    const Outcome outcome = run(call("sim:gfx942", {"--cycles", "--json"}));
    ::unsetenv("WAVEJIT_SIM_THREADS");
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return nlohmann::json::parse(outcome.out).at("predicted_cycles");
  };
  const auto one = predicted("1");
  ASSERT_EQ(one.size(), 1U);
  EXPECT_EQ(one[0].at("target"), "gfx942");
  EXPECT_TRUE(one[0].at("predicted").get<bool>());
  EXPECT_GT(one[0].at("cycles").get<std::uint64_t>(), 1000U);
  EXPECT_GT(one[0].at("steady_matrix_busy").get<double>(), 0.05);
  EXPECT_LT(one[0].at("steady_matrix_busy").get<double>(), 1);
  EXPECT_FALSE(one[0].at("instructions").empty());
  EXPECT_FALSE(one[0].at("clusters").empty());
  EXPECT_EQ(one.dump(), predicted("4").dump());

  const Outcome text = run(call("sim:gfx942", {"--cycles"}));
  EXPECT_THAT(text.out, HasSubstr("predicted for the launch on gfx942"));
}

TEST_F(RunCommandTest, ATimelineIsChromesTraceFormat) {
  const Outcome outcome = run(call("sim:gfx950", {"--timeline", scratch_ / "t.json"}));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto trace = nlohmann::json::parse(read_text(scratch_ / "t.json"));
  std::uint64_t first = UINT64_MAX;
  std::uint64_t last = 0;
  int matrix = 0;
  int waits = 0;
  for (const auto& event : trace.at("traceEvents")) {
    if (event.at("ph") != "X") continue;
    first = std::min(first, event.at("ts").get<std::uint64_t>());
    last = std::max(last, event.at("ts").get<std::uint64_t>());
    matrix += event.at("cat") == "matrix pipe" ? 1 : 0;
    waits += event.at("cat") == "wait" ? 1 : 0;
  }
  EXPECT_GT(matrix, 0);
  EXPECT_GT(waits, 0);
  EXPECT_LT(last - first, 8192U);
  expect_refused(call("sim:gfx950", {"--timeline", scratch_ / "o.npy"}), 2, "--timeline");
}

TEST_F(RunCommandTest, ATimelineOfACallThatWasNotTimedIsRefused) {
  const Words words = call("sim:gfx950", {"--timeline", scratch_ / "t.json", "--cache", "off"});
  const auto before = scratch_.names();
  const Outcome outcome = run_program(scratch_, words, {{"WAVEJIT_SIM_CHECK", "races"}});
  expect_one_line_error(outcome, 2);
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("--timeline"), HasSubstr("checks and late arrivals are on")));
  EXPECT_EQ(scratch_.names(), before);  // no output either
}

// q is [2, 33, 4, 64], k [2, 65, 2, 64]: refused before any device is opened, with the field, the shape and what is
// accepted.
TEST_F(RunCommandTest, ModifiersOfTheWrongShapeAreRefused) {
  const auto refused = [&](const std::string& option, const Shape& shape, const std::string& says) {
    write_text(scratch_ / "m.npy", npy_file(shape, normal_values(shape, 9), {}));
    const Outcome outcome = run(call("sim:gfx950", {option, scratch_ / "m.npy"}));
    EXPECT_EQ(outcome.code, 3) << option;
    EXPECT_THAT(outcome.err, HasSubstr(option + " " + (scratch_ / "m.npy") + ": "));
    EXPECT_THAT(outcome.err, HasSubstr(says));
  };
  const Shape keys = read_npy("k", scratch_ / "k.npy", HalfType::fp16)->shape;
  refused("--bias", {2, 4, 33, keys[1] + 1},
          "its shape is [2, 4, 33, " + std::to_string(keys[1] + 1) + "]; [2 or 1, 4 or 1, 33, " +
              std::to_string(keys[1]) + "] is accepted");
  refused("--alibi", {1, 1, 1, 4}, "its shape has 4 dimensions; 1 or 2 are accepted");
  const std::string five = npy_with_header("{'descr': '<f4', 'fortran_order': False, 'shape': (5,), }",
                                           std::string(5 * sizeof(float), '\0'));
  for (const std::string option : {"--alibi", "--sink"}) {
    write_text(scratch_ / "m.npy", five);
    const Outcome outcome = run(call("sim:gfx950", {option, scratch_ / "m.npy"}));
    EXPECT_EQ(outcome.code, 3);
    EXPECT_THAT(outcome.err, HasSubstr("its shape is [5]; [4]"));
  }
  for (const auto& [option, value] : {std::pair("--window", "7"),
                                      {"--window", "-2,0"},
                                      {"--softcap", "0"},
                                      {"--splits", "0"},
                                      {"--causal-prefix", "-1"}}) {
    const Outcome outcome = run(call("sim:gfx950", {option, value}));
    EXPECT_EQ(outcome.code, 2) << option;
    EXPECT_THAT(outcome.err, HasSubstr(std::string("'") + value + "' is not accepted"));
  }
}

// All of them together, checked by the program against float64.
TEST_F(RunCommandTest, MasksAndModifiers) {
  const std::int64_t keys = read_npy("k", scratch_ / "k.npy", HalfType::fp16)->shape[1];
  const Shape bias = {1, 4, 33, keys};
  write_text(scratch_ / "bias.npy", npy_file(bias, normal_values(bias, 9), {}));
  write_text(scratch_ / "alibi.npy", npy_bytes(normal_values({2, 4, 1, 1}, 10), std::vector<std::int64_t>{2, 4}));
  write_text(scratch_ / "sink.npy", npy_bytes(normal_values({4, 1, 1, 1}, 11), std::vector<std::int64_t>{4}));
  const Words modifiers = {"--causal-prefix", "3",
                           "--window",        "20,-1",
                           "--softcap",       "2",
                           "--bias",          scratch_ / "bias.npy",
                           "--alibi",         scratch_ / "alibi.npy",
                           "--sink",          scratch_ / "sink.npy",
                           "--check",         "--lse",
                           scratch_ / "l.npy"};
  const Outcome outcome = run(call("sim:gfx950", modifiers));
  ASSERT_EQ(outcome.code, 0) << outcome.err << outcome.out;
  for (const char* word : {" window", " softcap", " bias", " alibi", "error    max ", "lse      max "})
    EXPECT_THAT(outcome.out, HasSubstr(word));
  // What is left out shows: without the sink the LSE alone is another.
  const std::string with = read_text(scratch_ / "l.npy");
  const Outcome plain = run(call("sim:gfx950", {"--causal-prefix", "3", "--check", "--lse", scratch_ / "l.npy"}));
  ASSERT_EQ(plain.code, 0) << plain.err;
  EXPECT_NE(read_text(scratch_ / "l.npy"), with);
}

// Each against the reference computed here, and another answer than without.
TEST_F(RunCommandTest, LocalChunksAndFlagsOfSequences) {
  const auto q = read_npy("q", scratch_ / "q.npy", HalfType::fp16);
  const auto k = read_npy("k", scratch_ / "k.npy", HalfType::fp16);
  const auto v = read_npy("v", scratch_ / "v.npy", HalfType::fp16);
  const std::vector<std::int64_t> two = {2};
  const std::vector<float> flags = {0, 1};
  write_text(scratch_ / "flags.npy", npy_bytes(flags, two));
  for (const char* device : {"sim:gfx942", "sim:gfx950"}) {
    const Words causal = {"--causal", "--check", "--lse", scratch_ / "l.npy"};
    const auto with = [&](const Words& more) {
      Words words = causal;
      words.insert(words.end(), more.begin(), more.end());
      return run(call(device, words));
    };
    ASSERT_EQ(with({}).code, 0);
    const std::string plain = read_text(scratch_ / "o.npy");
    AttentionArrays problem = {.q = &*q, .k = &*k, .v = &*v, .scale = 0.125F, .mask = mask_of(WAVEJIT_MASK_CAUSAL)};

    const Outcome chunked = with({"--local-chunk", "24"});
    ASSERT_EQ(chunked.code, 0) << chunked.err << chunked.out;
    EXPECT_THAT(chunked.out, HasSubstr(" chunked"));
    EXPECT_NE(read_text(scratch_ / "o.npy"), plain);
    problem.mask = mask_of(WAVEJIT_MASK_CAUSAL | WAVEJIT_MASK_CHUNKED, 24);
    expect_close(scratch_, problem);

    const Outcome flagged = with({"--causal-flags", scratch_ / "flags.npy"});
    ASSERT_EQ(flagged.code, 0) << flagged.err << flagged.out;
    EXPECT_THAT(flagged.out, HasSubstr(" causal_flags"));
    EXPECT_NE(read_text(scratch_ / "o.npy"), plain);
    const std::vector<std::uint8_t> bytes = {0, 1};
    problem.mask = mask_of(WAVEJIT_MASK_CAUSAL);
    problem.causal_flags = bytes;
    expect_close(scratch_, problem);
  }
  expect_refused(call("sim:gfx950", {"--local-chunk", "0"}), 2, "'0' is not accepted; numbers of keys from 1 are");
  expect_refused(call("sim:gfx950", {"--local-chunk", "24"}), 2, "--local-chunk 24 needs --causal");  // no diagonal
  expect_refused(call("sim:gfx950", {"--local-chunk", "24", "--causal", "--window", "3,4"}), 2,
                 "--local-chunk 24 beside --window 3,4: one of them is accepted");
  expect_refused(call("sim:gfx950", {"--causal-flags", scratch_ / "flags.npy"}), 2, "needs --causal");
  const std::vector<std::int64_t> three = {3};
  write_text(scratch_ / "flags.npy", npy_bytes(std::vector<float>{1, 1, 1}, three));
  expect_refused(call("sim:gfx950", {"--causal", "--causal-flags", scratch_ / "flags.npy"}), 3,
                 "it has 3 numbers; 2 are accepted");
}

TEST_F(RunCommandTest, NoKeysGiveZeros) {
  write("k.npy", {2, 0, 2, 64}, {}, {});
  write("v.npy", {2, 0, 2, 64}, {}, {.half = true});
  const Outcome outcome = run(call("sim:gfx942", {"--lse", scratch_ / "l.npy", "--check"}));
  ASSERT_EQ(outcome.code, 0) << outcome.err << outcome.out;
  EXPECT_THAT(floats_of(scratch_ / "o.npy", "(2, 33, 4, 64)"), ::testing::Each(0.0F));
  EXPECT_THAT(floats_of(scratch_ / "l.npy", "(2, 4, 33)"), ::testing::Each(-std::numeric_limits<float>::infinity()));
}

TEST_F(RunCommandTest, OMayStayInFp32) {
  const Outcome rounded = run(call("sim:gfx950", {"--check", "--causal"}));
  ASSERT_EQ(rounded.code, 0) << rounded.err << rounded.out;
  std::vector<float> narrow = floats_of(scratch_ / "o.npy", "(2, 33, 4, 64)");
  const Outcome outcome = run(call("sim:gfx950", {"--check", "--causal", "--o-fp32"}));
  ASSERT_EQ(outcome.code, 0) << outcome.err << outcome.out;
  EXPECT_THAT(outcome.out, HasSubstr(" o=fp32 "));
  const std::vector<float> wide = floats_of(scratch_ / "o.npy", "(2, 33, 4, 64)");
  EXPECT_TRUE(wide != narrow);
  ASSERT_EQ(wide.size(), narrow.size());
  for (std::size_t i = 0; i < wide.size(); ++i) ASSERT_NEAR(wide[i], narrow[i], 1e-3F);
}

// What `supported` lists, run computes: keys of 192 and values of 128.
TEST_F(RunCommandTest, ValuesMayHaveAHeadDimOfTheirOwn) {
  write("q.npy", {2, 33, 4, 192}, normal_values({2, 33, 4, 192}, 1), {.half = true});
  write("k.npy", {2, 70, 2, 192}, normal_values({2, 70, 2, 192}, 2), {.half = true});
  write("v.npy", {2, 70, 2, 128}, normal_values({2, 70, 2, 128}, 3), {.half = true});
  for (const char* device : {"sim:gfx942", "sim:gfx950"}) {
    const Outcome outcome = run(call(device, {"--check", "--causal"}));
    ASSERT_EQ(outcome.code, 0) << outcome.err << outcome.out;
    EXPECT_THAT(outcome.out, HasSubstr(" d192/128 "));
    EXPECT_EQ(floats_of(scratch_ / "o.npy", "(2, 33, 4, 128)").size(), 2U * 33 * 4 * 128);
  }
}

// A result of nothing but NaN shows nothing, though the exact answer is NaN too; where some of both are, they are
// counted beside the verdict.
TEST_F(RunCommandTest, WhatIsNotFiniteIsCounted) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  write("q.npy", q_shape_, std::vector<float>(q_.size(), nan), {.half = true});
  const Outcome all = run(call("sim:gfx950", {"--check"}));
  EXPECT_EQ(all.code, 1) << all.err << all.out;
  EXPECT_THAT(all.out, HasSubstr("check    FAILED: nothing finite was compared; not finite: 16896 of the exact answer, "
                                 "16896 of the result"));
  q_[5] = nan;
  write("q.npy", q_shape_, q_, {.half = true});
  const Outcome one_row = run(call("sim:gfx950", {"--check"}));
  EXPECT_EQ(one_row.code, 0) << one_row.err << one_row.out;
  EXPECT_THAT(one_row.out, HasSubstr("check    passed; not finite: 64 of the exact answer, 64 of the result\n"));
}

TEST_F(RunCommandTest, ValuesBeyondFp16AreTold) {
  q_[5] = 1e6F;
  write("q.npy", q_shape_, q_, {});
  const Outcome outcome = run(call("sim:gfx950"));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("q has 1 values beyond the range of fp16"));
}

TEST_F(RunCommandTest, CacheOffWritesNoCache) {
  const Outcome outcome = run(call("sim:gfx950", {"--cache", "off"}));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(scratch_.names(), Not(Contains("xdg")));
}

TEST_F(RunCommandTest, ShapesThatDoNotFitAreNamed) {
  const auto with_k = [&](const Shape& shape) {
    write("k.npy", shape, normal_values(shape, 4), {});
    return call("sim:gfx950");
  };
  expect_refused(with_k({1, 70, 2, 64}), 3, "q's batch of 2 is accepted");
  expect_refused(with_k({2, 70, 2, 32}), 3, "q's head dim of 64 is accepted");
  expect_refused(with_k({2, 70, 3, 64}), 3, "a number of heads that divides q's 4 is accepted");
  expect_refused(with_k({2, 70, 0, 64}), 3, "a number of heads that divides q's 4 is accepted");
  expect_refused(with_k({2, 71, 2, 64}), 3, "--v ");
  write("q.npy", {2, 0, 4, 64}, {}, {});
  expect_refused(call("sim:gfx950"), 3, "each at least 1");
}

TEST_F(RunCommandTest, UnsupportedHeadDimIsRefusedByTheLibrary) {
  const Shape q = {1, 8, 2, 264};
  for (const char* name : {"q.npy", "k.npy", "v.npy"}) write(name, q, normal_values(q, 1), {});
  const auto before = scratch_.names();
  const Outcome outcome = run(call("sim:gfx950"));
  expect_one_line_error(outcome, 4);
  EXPECT_THAT(outcome.err, HasSubstr("264"));
  EXPECT_THAT(outcome.err, HasSubstr("64"));
  EXPECT_EQ(scratch_.names(), before);
}

TEST_F(RunCommandTest, BadFilesAreNamed) {
  const std::string whole = read_text(scratch_ / "k.npy");
  write_text(scratch_ / "k.npy", whole.substr(0, whole.size() - 3));
  expect_refused(call("sim:gfx950"), 3, "--k ");
  write_text(scratch_ / "k.npy", whole + "more");
  expect_refused(call("sim:gfx950"), 3, "needs exactly");
  write_text(scratch_ / "k.npy", npy_with_header("{'descr': '<f8', 'fortran_order': False, 'shape': (2, 70, 2, 64), }",
                                                 std::string(143360, 'x')));
  expect_refused(call("sim:gfx950"), 3, "float16 and float32 are accepted");
  std::filesystem::remove(scratch_ / "k.npy");
  expect_refused(call("sim:gfx950"), 3, "cannot open it: No such file or directory");
}

TEST_F(RunCommandTest, BadOutputsAreNamedBeforeAnyWork) {
  expect_refused(call("sim:gfx950", {"--lse", "/dev/null"}), 3, "--lse /dev/null");
  expect_refused(call("sim:gfx950", {"--lse", scratch_ / "missing/l.npy"}), 3, "--lse ");
  expect_refused(call("sim:gfx950", {"--lse", scratch_ / "o.npy"}), 2, "it is also --out");
  expect_refused(call("sim:gfx950", {"--lse", scratch_.path()}), 3, "regular file");
}

TEST_F(RunCommandTest, NoOutputReplacesAnInput) {
  const std::string before = read_text(scratch_ / "k.npy");
  expect_refused(call("sim:gfx950", {"--lse", scratch_ / "k.npy"}), 2, "it is also --k; another name is accepted");
  std::filesystem::create_symlink("k.npy", scratch_ / "link.npy");
  expect_refused(call("sim:gfx950", {"--lse", scratch_ / "link.npy"}), 2, "it is also --k; another name is accepted");
  EXPECT_EQ(read_text(scratch_ / "k.npy"), before);
  const std::vector<std::int64_t> heads = {4};
  write_text(scratch_ / "sink.npy", npy_bytes(std::vector<float>(4), heads));
  expect_refused(call("sim:gfx950", {"--sink", scratch_ / "sink.npy", "--lse", scratch_ / "sink.npy"}), 2,
                 "it is also --sink; another name is accepted");
}

TEST_F(RunCommandTest, BadDevicesAreNamed) {
  for (const char* device : {"sim:gfx1", "sim:", "cuda", "sim:gfx950x0"}) {
    const auto before = scratch_.names();
    const Outcome outcome = run(call(device));
    EXPECT_EQ(std::ranges::count(outcome.err, '\n'), 1) << outcome.err;
    EXPECT_THAT(outcome.code, ::testing::AnyOf(2, 4, 6)) << device;
    EXPECT_THAT(outcome.err, HasSubstr("sim:"));
    EXPECT_EQ(scratch_.names(), before);
  }
}

}  // namespace
}  // namespace wavejit::tools
