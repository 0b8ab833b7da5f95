// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The words of this family's specs and descriptors are rows: what is printed parses back, and a flag is one row.
#include "templates/attention_backward/kernel/words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <format>
#include <string>
#include <utility>

#include "templates/attention_backward/call/descriptor.h"

namespace wavejit::tests {
namespace {

using namespace attention_backward;
using ::testing::HasSubstr;

constexpr const char* plain = "attention_backward_dq bf16 d128 mask=none blocks=1 target=gfx950 lowering=llvm";
constexpr const char* line = "attention_backward bf16 b1 q40 k70 h2/1 d128";

TEST(BackwardWords, AFlagOfAProblemIsOneRow) {
  const auto without = parse_query_kernel(plain);
  ASSERT_TRUE(without) << without.error();
  EXPECT_EQ(to_text(*without), plain);
  int flags = 0;
  for (const auto& word : spec_words<QueryKernel>) {
    const std::string text(word.accepted);
    if (!word.of_problem || text.find_first_of("<,") != std::string::npos || text.ends_with('=')) continue;
    const auto spec = parse_query_kernel(std::string(plain) + " " + text);
    ASSERT_TRUE(spec) << spec.error();
    EXPECT_EQ(parse_query_kernel(to_text(*spec)), *spec) << text;
    const BackwardShape shape = {{{*spec}}};
    EXPECT_NE(shape.shape().code, (BackwardShape{{{*without}}}.shape().code)) << text;
    EXPECT_EQ(BackwardShape::of(shape.shape().code), shape) << text;
    ++flags;
    if (!word.described) continue;
    // What a bias is of never stands without one.
    const std::string beside = std::string(line) + (text == "bias_type=fp32" ? " bias=h" : "");
    const auto said = parse_descriptor(beside + " " + text);
    ASSERT_TRUE(said) << said.error().detail;
    EXPECT_EQ(to_text(*said), beside + " " + text);
    EXPECT_NE(said->shape().shape().code, parse_descriptor(beside)->shape().shape().code) << text;
  }
  EXPECT_GE(flags, 5);
}

// No kernel knows of sums of several calls: they are told at launch.
TEST(BackwardWords, SumsOfSeveralCallsAreWordsBesideFp32) {
  const std::string wide = std::string(line) + " gradients=fp32";
  for (const auto& [key, member] :
       {std::pair{"sums_before", &ProblemDescriptor::sums_before}, {"sums_behind", &ProblemDescriptor::sums_behind}}) {
    for (const auto& [value, bits] : {std::pair<const char*, std::uint32_t>{"dq", WAVEJIT_SUMS_OF_DQ},
                                      {"dk_dv", WAVEJIT_SUMS_OF_DK_DV},
                                      {"dq,dk_dv", WAVEJIT_SUMS_OF_DQ | WAVEJIT_SUMS_OF_DK_DV}}) {
      const std::string text = std::format("{} {}={}", wide, key, value);
      const auto said = parse_descriptor(text);
      ASSERT_TRUE(said) << said.error().detail;
      EXPECT_EQ((*said).*member, bits) << text;
      EXPECT_EQ(to_text(*said), text);
      EXPECT_TRUE(said->shape() == parse_descriptor(wide)->shape()) << text;
    }
    EXPECT_EQ(to_text(*parse_descriptor(std::format("{} {}=dk_dv,dq", wide, key))),
              std::format("{} {}=dq,dk_dv", wide, key));
    for (const char* wrong : {"", "dk", "dq,", ",dq", "dq,dq", "3", "dq dk_dv"})
      EXPECT_THAT(parse_descriptor(std::format("{} {}={}", wide, key, wrong)).error().detail, HasSubstr("accepted"))
          << wrong;
    EXPECT_THAT(parse_descriptor(std::format("{} {}=dq", line, key)).error().detail,
                HasSubstr(std::format("{}; accepted: gradients=fp32 beside it", key)));
  }
}

TEST(BackwardWords, AreRefusedWithWhatIsAccepted) {
  const std::string spec = "attention_backward_dkdv bf16 d128 mask=none blocks=1 runs=one target=gfx950 lowering=llvm";
  EXPECT_THAT(parse_key_kernel(spec + " tall").error(),
              HasSubstr("word 9 'tall': accepted: bf16, fp16, d<n>[/<n>], mask="));
  EXPECT_THAT(parse_key_kernel(spec + " bf16").error(), HasSubstr("says again"));
  EXPECT_THAT(parse_key_kernel("attention_backward_dkdv bf16").error(), HasSubstr("no word gives the head dim"));
  EXPECT_THAT(parse_key_kernel("attention_backward_dkdv bf16 d192/x").error(), HasSubstr("d<head dim of q and k>/"));
  // Two blocks take more registers than a wave has.
  for (const auto& [dims, refusal] :
       {std::pair{"d256", "blocks=2 of d256 takes 768 registers for operands and sums and 112 for scores, of 512"},
        {"d192/128", "blocks=2 of d192/128 takes 480 registers for operands and sums and 112 for scores, of 512"}}) {
    const auto wide = parse_key_kernel(std::string("attention_backward_dkdv bf16 ") + dims +
                                       " mask=none blocks=2 runs=one target=gfx950 lowering=llvm");
    ASSERT_TRUE(wide) << wide.error();
    EXPECT_THAT(refusal_of(*wide).value_or(""), HasSubstr(refusal));
  }
  // Two waves that share keys.
  const std::string shared = spec.substr(0, spec.find("runs=")) + "keys=shared " + spec.substr(spec.find("runs="));
  ASSERT_TRUE(parse_key_kernel(shared)) << parse_key_kernel(shared).error();
  EXPECT_EQ(to_text(*parse_key_kernel(shared)), shared);
  EXPECT_EQ(refusal_of(*parse_key_kernel(shared)), std::nullopt);
  const auto with = [&](std::string_view word, std::string_view other) {
    std::string text = shared;
    text.replace(text.find(word), word.size(), other);
    return refusal_of(parse_key_kernel(text).value()).value_or("");
  };
  EXPECT_EQ(with("gfx950", "gfx942"), "");
  EXPECT_THAT(with("d128", "d256"), HasSubstr("keys=shared of d256: LDS has no room for it"));
  EXPECT_THAT(with("mask=none", "mask=none softcap"), HasSubstr("keys=shared with softcap"));
  EXPECT_THAT(with("blocks=1", "blocks=2"), HasSubstr("keys=shared blocks=2; accepted: blocks=1"));
  EXPECT_THAT(parse_key_kernel(spec + " keys=own").error(), HasSubstr("accepted after '=': shared"));
  const std::string of_two = "attention_backward_dq bf16 d192/128 mask=none blocks=2 target=gfx950 lowering=llvm";
  EXPECT_EQ(refusal_of(*parse_query_kernel(of_two)), std::nullopt);
  EXPECT_THAT(refusal_of(*parse_query_kernel(of_two + " softcap")).value_or(""), HasSubstr("more than 512 registers"));
  EXPECT_THAT(parse_query_kernel("attention_backward_dq bf16 runs=one").error(), HasSubstr("accepted before '='"));
  EXPECT_THAT(parse_key_kernel(spec + " gradients=fp16").error(), HasSubstr("accepted after '=': fp32"));
  for (const char* wrong : {"gradients=fp16", "alibi=x", "softcap=0", "bias=x", "d_bias", "bias_type=fp32",
                            "layout=paged", "tall", "b1", "k_lengths=1,2"})
    EXPECT_THAT(parse_descriptor(std::string(line) + " " + wrong).error().detail, HasSubstr("accepted")) << wrong;
}

}  // namespace
}  // namespace wavejit::tests
