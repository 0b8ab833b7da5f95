// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_forward/kernel/spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "templates/attention/call/data_type.h"

namespace wavejit::attention_forward {
namespace {

using ::testing::HasSubstr;

std::vector<ForwardKernel> many_specs() {
  std::vector<ForwardKernel> specs;
  for (const bool stagger : {true, false})
    for (const bool raised_priority : {true, false})
      specs.push_back({{},
                       {.pipeline = Pipeline::dualwave,
                        .tile_queries = 256,
                        .target = "gfx950",
                        .stagger = stagger,
                        .raised_priority = raised_priority}});
  specs.push_back({{.paged = true}, {.target = "gfx950"}});
  specs.push_back({{.output = attention::OutputType::fp32}, {.target = "gfx950"}});
  specs.push_back({{.paged = true, .vectorised = true}, {.target = "gfx950"}});
  specs.push_back({{.paged = true, .whole_tiles = true},
                   {.pipeline = Pipeline::dualwave, .tile_queries = 256, .target = "gfx950"}});
  specs.push_back({{.mask = Mask::causal},
                   {.paired_tiles = true, .pipeline = Pipeline::dualwave, .tile_queries = 256, .target = "gfx950"}});
  specs.push_back({{}, {.chunk_waves = 4, .tile_queries = 32, .target = "gfx950"}});
  for (const char* ladder : {"early", "late"})
    specs.push_back({{}, {.pipeline = Pipeline::dualwave, .tile_queries = 256, .target = "gfx950", .ladder = ladder}});
  for (const DataType dtype : {DataType::bf16, DataType::fp16})
    for (const int dim : {64, 128, 256})
      for (const int dim_v : {64, 128})
        for (const Mask mask : {Mask::none, Mask::causal})
          for (const bool lse : {false, true})
            for (const OutputStore store : {OutputStore::permlane, OutputStore::scalar})
              for (const Lowering lowering : {Lowering::llvm, Lowering::comgr})
                specs.push_back({{.dtype = dtype, .head_dim_qk = dim, .head_dim_v = dim_v, .mask = mask, .lse = lse},
                                 {.output_store = store, .target = "gfx950", .lowering = lowering}});
  return specs;
}

std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> words;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    words.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return words;
}

std::string join(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

TEST(DataTypes, HaveANumberANameASizeAndATargetThatReadsThem) {
  std::size_t narrow = 0;
  for (const auto& [type, name] : data_types) {
    EXPECT_EQ(type_of(told_type(type)), type) << name;
    EXPECT_EQ(to_text(type), name);
    EXPECT_EQ(wide_type_of(told_type(type)).has_value(), !is_narrow(type)) << name;
    if (!is_narrow(type)) {
      EXPECT_EQ(encoding_of(type), targets::Fp8::none) << name;
      continue;
    }
    ++narrow;
    EXPECT_EQ(bytes_of(type), 1) << name;
    EXPECT_EQ(encoding_of(type) == targets::Fp8::fnuz, name.ends_with("_fnuz")) << name;
    // Integers have one form on every target.
    EXPECT_EQ(encoding_of(type) == targets::Fp8::none, type == DataType::i8) << name;
    const auto readers = std::ranges::count_if(targets::complete_targets(),
                                               [&](const targets::Target& target) { return reads(target, type); });
    EXPECT_EQ(readers, type == DataType::i8 ? std::ranges::ssize(targets::complete_targets()) : 1) << name;
  }
  EXPECT_EQ(narrow, 5U);
  EXPECT_EQ(type_of(0), std::nullopt);
  EXPECT_EQ(type_of(WAVEJIT_INT8 + 1), std::nullopt);
}

const ForwardKernel plain{{.dtype = DataType::fp16, .mask = Mask::causal, .lse = true},
                          {.output_store = OutputStore::permlane, .target = "gfx950"}};

TEST(KernelSpecText, IsTheDocumentedLine) {
  EXPECT_EQ(
      to_text(plain),
      "attention_forward fp16 d128 causal lse pipeline=generic tile=128x64 o_store=permlane target=gfx950 lowering=llvm");
}

TEST(KernelSpecText, ComesBackAsTheSameSpec) {
  for (const ForwardKernel& spec : many_specs()) {
    const auto parsed = parse_spec(to_text(spec));
    ASSERT_TRUE(parsed) << parsed.error();
    EXPECT_EQ(*parsed, spec) << to_text(spec);
  }
}

TEST(KernelSpecText, IsDifferentForDifferentSpecs) {
  std::vector<std::string> texts;
  for (const ForwardKernel& spec : many_specs()) texts.push_back(to_text(spec));
  std::ranges::sort(texts);
  EXPECT_EQ(std::ranges::adjacent_find(texts), texts.end());
}

TEST(KernelSpecText, TakesWordsInAnyOrderAndPrintsThemInOne) {
  std::vector<std::string> words = words_of(to_text(plain));
  std::ranges::reverse(words.begin() + 1, words.end());
  const auto parsed = parse_spec(join(words));
  ASSERT_TRUE(parsed) << parsed.error();
  EXPECT_EQ(to_text(*parsed), to_text(plain));
}

TEST(KernelSpecText, RefusesEveryMissingWordThatIsNotAFlag) {
  const std::vector<std::string> words = words_of(to_text(plain));
  for (std::size_t gone = 0; gone < words.size(); ++gone) {
    std::vector<std::string> rest = words;
    rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(gone));
    const bool flag = words[gone] == "causal" || words[gone] == "lse";
    EXPECT_EQ(parse_spec(join(rest)).has_value(), flag) << words[gone];
  }
}

TEST(KernelSpecText, RefusesEveryWordSaidTwice) {
  const std::vector<std::string> words = words_of(to_text(plain));
  for (std::size_t twice = 1; twice < words.size(); ++twice) {
    const auto parsed = parse_spec(to_text(plain) + " " + words[twice]);
    ASSERT_FALSE(parsed) << words[twice];
    EXPECT_THAT(parsed.error(), HasSubstr("word 11 '" + words[twice] + "'"));
  }
  EXPECT_FALSE(parse_spec(to_text(plain) + " bf16"));  // another value of the same thing, too
}

struct Refusal {
  const char* word;    // the spec's word that is replaced
  const char* with;    // by this
  const char* expect;  // and the error says
};

TEST(KernelSpecText, NamesTheWordItsPositionAndWhatIsAccepted) {
  const Refusal refusals[] = {
      {"fp16", "fp32", "word 2 'fp32': accepted: bf16, fp16"},
      {"d128", "d0128", "word 3 'd0128': accepted: d<head dim>"},
      {"d128", "d128/", "word 3 'd128/'"},
      {"d128", "d99999999999", "word 3"},
      {"d128", "d12x", "word 3"},
      {"causal", "slanted", "word 4 'slanted'"},
      {"pipeline=generic", "pipeline=fast", "word 6 'pipeline=fast': accepted after '=': generic, dualwave"},
      {"tile=128x64", "tile=128", "tile=128x64"},
      {"tile=128x64", "tile=-1x64", "word 7"},
      {"o_store=permlane", "o_store=auto", "accepted after '=': permlane, scalar"},
      {"target=gfx950", "target=", "target=<processor>"},
      {"lowering=llvm", "lowering=gcc", "accepted after '=': llvm, comgr"},
      {"lowering=llvm", "speed=fast", "accepted before '='"},
      {"attention_forward", "attention_backward", "word 1 'attention_backward': accepted: attention_forward"},
  };
  for (const Refusal& refusal : refusals) {
    std::vector<std::string> words = words_of(to_text(plain));
    std::ranges::replace(words, std::string(refusal.word), std::string(refusal.with));
    const auto parsed = parse_spec(join(words));
    ASSERT_FALSE(parsed) << refusal.with;
    EXPECT_THAT(parsed.error(), HasSubstr(refusal.expect));
  }
  EXPECT_THAT(parse_spec(to_text(plain) + " stagger=on").error(), HasSubstr("accepted after '=': off"));
  // The standard ladder has no word; which others a pipeline has, resources_of knows.
  EXPECT_THAT(parse_spec(to_text(plain) + " ladder=standard").error(), HasSubstr("standard has no word"));
  EXPECT_THAT(parse_spec(to_text(plain) + " ladder=").error(), HasSubstr("accepted: ladder=<name>"));
  EXPECT_FALSE(parse_spec(""));
  EXPECT_FALSE(parse_spec("   "));
}

}  // namespace
}  // namespace wavejit::attention_forward
