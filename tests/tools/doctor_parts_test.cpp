// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The doctor's probes, what they are given, and its models of sums.
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <set>
#include <string>

#include "tools/doctor/checker.h"
#include "tools/doctor/patterns.h"
#include "tools/doctor/sums.h"
#include "tools/families.h"

namespace wavejit::tools {
namespace {

using doctor::Factor;

TEST(Doctor, ProbesSayWhatTheySettleAndAreGivenSomething) {
  std::set<std::string> names;
  for (const doctor::Probe& probe : doctor::all_probes()) {
    SCOPED_TRACE(probe.name);
    EXPECT_TRUE(names.insert(std::string(probe.name) + " " + std::string(probe.target)).second);
    EXPECT_GT(probe.settles.size(), 20U);
    EXPECT_GE(probe.risk, 1);
    EXPECT_LE(probe.risk, 3);
    EXPECT_EQ(doctor::words_of(probe).size(), 64U * probe.workgroups * probe.input_words);
    EXPECT_GT(probe.code.size(), 512U);
  }
  EXPECT_GE(names.size(), 50U);
}

TEST(Doctor, WhatFamiliesHaveExaminedIsOfTheirGrammar) {
  for (const Family* family : all_families()) {
    for (const auto& list : {family->examined(), family->examined_for_time()}) {
      for (const std::string& descriptor : list) {
        const auto problem = family->parse(descriptor);
        ASSERT_TRUE(problem) << descriptor << ": " << problem.error().what;
      }
    }
  }
}

TEST(Doctor, HalvesAreTakenApart) {
  EXPECT_EQ(doctor::factor_of_f16(0x3c00).value, 1);
  EXPECT_EQ(doctor::factor_of_f16(0xc200).value, -3);
  EXPECT_EQ(doctor::factor_of_f16(0x0001).value, 0x1p-24);
  EXPECT_EQ(doctor::factor_of_f16(0x0001).exponent, -14);
  EXPECT_EQ(doctor::factor_of_f16(0x8000).exponent, -126);
  EXPECT_EQ(doctor::factor_of_bf16(0x3fc0).value, 1.5);
  EXPECT_EQ(doctor::factor_of_bf16(0x0001).value, 0x1p-133);
  EXPECT_EQ(doctor::factor_of_bf16(0x0001).exponent, -126);
}

float by(std::string_view begin, const std::array<double, 16>& products, float c) {
  std::array<Factor, 16> a{};
  std::array<Factor, 16> b{};
  for (std::size_t k = 0; k < a.size(); ++k) {
    a[k] = {.value = products[k], .exponent = products[k] == 0 ? -126 : std::ilogb(products[k])};
    b[k] = {.value = 1, .exponent = 0};
  }
  for (const doctor::SumModel& model : doctor::sum_models())
    if (model.name.starts_with(begin)) return model.add_up(a, b, c);
  ADD_FAILURE() << begin;
  return 0;
}

TEST(Doctor, ModelsOfSumsTellTheirWays) {
  // A large product goes and comes back: what is small beside it survives where it is added exactly.
  std::array<double, 16> cancel{};
  cancel[0] = 0x1p20;
  cancel[1] = 0x1p-20;
  cancel[7] = -0x1p20;
  EXPECT_EQ(by("products one after", cancel, 0), 0.0F);
  EXPECT_EQ(by("groups of 8, each added exactly", cancel, 0), 0x1p-20F);
  EXPECT_EQ(by("groups of 8, cut", cancel, 0), 0.0F) << "24 places below 2^20";
  EXPECT_EQ(by("groups of 4, each added exactly", cancel, 0), 0.0F) << "rounded in between";
  // The same over a border of eight.
  cancel[7] = 0;
  cancel[8] = -0x1p20;
  EXPECT_EQ(by("groups of 8, each added exactly", cancel, 0), 0.0F);
  EXPECT_EQ(by("groups of 16, each added exactly", cancel, 0), 0x1p-20F);
  EXPECT_EQ(by("all products", cancel, 0), 0x1p-20F);
  // A negative addend far below takes a whole unit away where it is cut down.
  std::array<double, 16> one{};
  one[0] = 1;
  EXPECT_EQ(by("products one after", one, -0x1p-40F), 1.0F);
  EXPECT_EQ(by("groups of 8, cut", one, -0x1p-40F), 1 - 0x1p-24F);
  EXPECT_EQ(by("groups of 8, each added exactly", one, 0x1p-24F), 1.0F) << "a tie, to even";
  EXPECT_EQ(by("groups of 8, each added exactly", one, 0x1.000002p-24F), 1 + 0x1p-23F);
}

doctor::Probe probe_of(std::string_view check, std::string_view pattern) {
  return {.name = "made",
          .target = "",
          .settles = "",
          .risk = 1,
          .check = check,
          .pattern = pattern,
          .input_words = 1,
          .output_words = 1,
          .workgroups = 4,
          .code = {}};
}

TEST(Doctor, UlpsAreCounted) {
  const doctor::Probe probe = probe_of("ulps root", "positive");
  const std::vector<std::uint32_t> words = doctor::words_of(probe);
  std::vector<std::uint32_t> answer;
  for (const std::uint32_t word : words)
    answer.push_back(std::bit_cast<std::uint32_t>(std::sqrt(std::bit_cast<float>(word))));
  EXPECT_EQ(doctor::check(probe, words, answer, {}).status, doctor::Status::as_expected);
  const double exact = std::sqrt(static_cast<double>(std::bit_cast<float>(words[9])));
  ASSERT_TRUE(std::isnormal(std::bit_cast<float>(words[9])));
  // The other neighbour of the exact value, then one beyond.
  answer[9] += std::bit_cast<float>(answer[9]) < exact ? 1 : -1;
  const doctor::Finding other = doctor::check(probe, words, answer, {});
  EXPECT_EQ(other.status, doctor::Status::differs) << other.text;
  EXPECT_EQ(other.data.at("beyond_simulated"), 1);
  answer[9] += std::bit_cast<float>(answer[9]) < exact ? -2 : 2;
  EXPECT_EQ(doctor::check(probe, words, answer, {}).status, doctor::Status::failed);
}

TEST(Doctor, DiesInTurnAreSeen) {
  doctor::Probe probe = probe_of("round", "numbers");
  probe.workgroups = 12;
  const auto answer = [&](auto die_of) {
    std::vector<std::uint32_t> words;
    for (unsigned i = 0; i < 64 * probe.workgroups; ++i) words.push_back(die_of(i / 64));
    return doctor::check(probe, {}, words, {});
  };
  EXPECT_TRUE(answer([](unsigned i) { return (i + 3) % 6; }).text.contains("round 6 dies"));
  EXPECT_TRUE(answer([](unsigned) { return 2U; }).text.contains("round 1 die"));
  EXPECT_EQ(answer([](unsigned i) { return i / 2 % 4; }).status, doctor::Status::differs);
}

TEST(Doctor, WithoutASimulatedGpuAnswersAreTold) {
  const doctor::Probe probe = probe_of("bits", "numbers");
  const std::vector<std::uint32_t> words = doctor::words_of(probe);
  const doctor::Finding told = doctor::check(probe, words, words, {});
  EXPECT_EQ(told.status, doctor::Status::told);
  EXPECT_EQ(told.data.at("answer").size(), 256U);
}

}  // namespace
}  // namespace wavejit::tools
