// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// "dualwave stagger=off": a pipeline's name and words for developers, from the option and from the variable.
#include "runtime/settings/pipeline_words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cctype>
#include <cstddef>
#include <iterator>
#include <string>

#include "families/call/family.h"
#include "runtime/settings/config.h"
#include "wavejit/options.hpp"

namespace wavejit::tests {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using namespace runtime;

Environment with_home() {
  Environment environment;
  environment.home = "/home/somebody";
  return environment;
}

wavejit_engine_options with_pipeline(const char* pipeline) {
  wavejit_engine_options options{};
  options.size = sizeof options;
  options.pipeline = pipeline;
  return options;
}

TEST(PipelineWords, WordsStandBehindThePipeline) {
  struct Accepted {
    const char* text;
    const char* told;
    const char* pins;  // as families read them
    const char* ways;
  };
  const Accepted accepted[] = {
      {"dualwave ladder=early", "dualwave ladder=early", "pipeline=dualwave ladder=early", ""},
      {"generic tile_queries=64", "generic tile_queries=64", "pipeline=generic tile_queries=64", ""},
      {"dualwave", "dualwave", "pipeline=dualwave", ""},
      {"auto tiles=single ladder=late", "auto tiles=single ladder=late", "tiles=single ladder=late", ""},
      {"ladder=late", "auto ladder=late", "ladder=late", ""},
      {"auto", "auto", "", ""},
      {"auto stagger=on setprio=on o_store=auto lazy_rescale=on xcd_swizzle=auto", "auto", "", ""},
      {"auto o_store=scalar stagger=off", "auto o_store=scalar stagger=off", "", "o_store=scalar stagger=off"},
      {"stagger=off ladder=late setprio=off", "auto ladder=late stagger=off setprio=off", "ladder=late",
       "stagger=off setprio=off"},
      {"dualwave xcd_swizzle=on lazy_rescale=off", "dualwave lazy_rescale=off xcd_swizzle=on", "pipeline=dualwave", ""},
  };
  for (const Accepted& each : accepted) {
    const wavejit_engine_options options = with_pipeline(each.text);
    const auto config = make_config(&options, {});
    ASSERT_TRUE(config) << config.error().detail;
    EXPECT_EQ(toggles_of(*config).pins, each.pins);
    EXPECT_EQ(toggles_of(*config).ways, each.ways);
    EXPECT_THAT(describe(*config), ::testing::Contains(std::string("pipeline=") + each.told + " (option)"));
    EXPECT_EQ(parse_pipeline(each.told), config->pipeline.value) << each.told;

    Environment environment = with_home();
    environment.pipeline = each.text;
    const auto from_variable = make_config(nullptr, environment);
    ASSERT_TRUE(from_variable);
    EXPECT_EQ(from_variable->pipeline.value, config->pipeline.value);
    EXPECT_THAT(from_variable->warnings, IsEmpty());
  }
  for (const char* wrong : {"dualwave ", "dualwave  ladder=early", "quick ladder=early", " dualwave", "auto stagger",
                            "auto stagger=perhaps", "auto o_store=on", "auto stagger=off stagger=off"}) {
    const wavejit_engine_options options = with_pipeline(wrong);
    const auto config = make_config(&options, {});
    ASSERT_FALSE(config) << wrong;
    EXPECT_EQ(config.error().status, WAVEJIT_INVALID_ARGUMENT);
    EXPECT_THAT(config.error().detail, HasSubstr("auto, generic, dualwave, interleaved")) << wrong;
  }
}

TEST(PipelineWords, WhatIsALaunchArgumentOfEveryFamilyIsAValue) {
  const families::Toggles usual = toggles_of(*make_config(nullptr, {}));
  EXPECT_TRUE(usual.lazy_rescale);
  EXPECT_FALSE(usual.xcd_swizzle);
  for (const bool on : {true, false}) {
    const std::string text = on ? "auto xcd_swizzle=on lazy_rescale=on" : "auto xcd_swizzle=off lazy_rescale=off";
    const wavejit_engine_options options = with_pipeline(text.c_str());
    const families::Toggles toggles = toggles_of(*make_config(&options, {}));
    EXPECT_EQ(toggles.lazy_rescale, on);
    EXPECT_EQ(toggles.xcd_swizzle, on);
    EXPECT_FALSE(toggles.pins_kernels());
  }
}

// A user who takes a word for a variable or an option of its own hears how it is written.
TEST(PipelineWords, AWordOfAPipelineIsNoVariable) {
  ASSERT_EQ(known_pipeline_words().size(), std::size(pipeline_words));
  for (std::size_t i = 0; i < std::size(pipeline_words); ++i) {
    const PipelineWord& word = known_pipeline_words()[i];
    EXPECT_EQ(word.example, pipeline_words[i]);
    EXPECT_EQ(meant_pipeline(std::string(word.name)), "auto " + std::string(word.example));
    EXPECT_NE(parse_pipeline(word.example), PipelineWords()) << word.example;
    std::string name = "WAVEJIT_";
    for (const char letter : word.name) name += static_cast<char>(std::toupper(letter));
    Environment environment = with_home();
    environment.strangers = {name};
    const auto config = make_config(nullptr, environment);
    ASSERT_TRUE(config);
    EXPECT_THAT(config->warnings, ::testing::ElementsAre(name +
                                                         " is no variable of wavejit and ignored; write "
                                                         "WAVEJIT_PIPELINE=\"auto " +
                                                         std::string(word.example) + "\""));
  }
  EXPECT_EQ(meant_pipeline("lazy-rescale"), "auto lazy_rescale=off");
  EXPECT_EQ(meant_pipeline("pipeline"), "");
}

TEST(PipelineWords, FamiliesSayWhichWordsPinAKernel) {
  for (const char* good : {"", "ladder=early", "tile_queries=64", "tiles=paired ladder=late tile_queries=32"})
    EXPECT_TRUE(families::check_pins(good)) << good;
  for (const char* wrong :
       {"ladder", "ladder=", "tile=64", "tile_queries=0", "tile_queries=-1", "tile_queries=64 tile_queries=32",
        "ladder=early ladder=late", "tiles=two", "tiles=paired tiles=single", "stagger=off"}) {
    const auto checked = families::check_pins(wrong);
    ASSERT_FALSE(checked) << wrong;
    EXPECT_EQ(checked.error().status, WAVEJIT_INVALID_ARGUMENT);
    EXPECT_THAT(
        checked.error().detail,
        HasSubstr("accepted: tile_queries=<rows>, chunk_waves=<waves, 1: none share> or auto, tiles=paired or single, "
                  "ladder=<name>, each once"));
  }
}

}  // namespace
}  // namespace wavejit::tests
