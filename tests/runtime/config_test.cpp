// Options and environment: which wins, what a wrong one does, and that each value remembers where it came from.
#include "runtime/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace wavejit::tests {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using namespace runtime;

Environment home_only() {
  Environment environment;
  environment.home = "/home/somebody";
  return environment;
}

wavejit_engine_options no_options() {
  wavejit_engine_options options{};
  options.size = sizeof options;
  return options;
}

// One setting that takes words: where it stands in each struct.
struct Variable {
  const char* name;
  const char* Environment::* variable;
  const char* wavejit_engine_options::* option;
  std::vector<std::string> accepted;
  std::string (*value)(const Config&);
  Provenance (*from)(const Config&);
  std::string standard;
};

std::vector<Variable> variables() {
  return {
      {"WAVEJIT_CACHE",
       &Environment::cache_mode,
       &wavejit_engine_options::cache_mode,
       {"off", "ro", "rw"},
       [](const Config& c) { return std::string(cache::to_text(c.cache_mode.value)); },
       [](const Config& c) { return c.cache_mode.from; },
       "rw"},
      {"WAVEJIT_LOWERING",
       &Environment::lowering,
       &wavejit_engine_options::lowering,
       {"llvm", "comgr"},
       [](const Config& c) { return std::string(to_text(c.lowering.value)); },
       [](const Config& c) { return c.lowering.from; },
       "llvm"},
      {"WAVEJIT_COMPILE",
       &Environment::compile,
       &wavejit_engine_options::compile,
       {"inprocess", "isolated"},
       [](const Config& c) { return std::string(to_text(c.compile.value)); },
       [](const Config& c) { return c.compile.from; },
       "inprocess"},
      {"WAVEJIT_O_STORE",
       &Environment::output_store,
       &wavejit_engine_options::output_store,
       {"auto", "permlane", "scalar"},
       [](const Config& c) {
         return std::string(c.output_store.value ? attention_forward::to_text(*c.output_store.value) : "auto");
       },
       [](const Config& c) { return c.output_store.from; },
       "auto"},
      {"WAVEJIT_PIPELINE",
       &Environment::pipeline,
       &wavejit_engine_options::pipeline,
       {"auto", "generic", "dualwave"},
       [](const Config& c) {
         return std::string(c.pipeline.value ? attention_forward::to_text(*c.pipeline.value) : "auto");
       },
       [](const Config& c) { return c.pipeline.from; },
       "auto"},
      {"WAVEJIT_STAGGER",
       &Environment::stagger,
       &wavejit_engine_options::stagger,
       {"on", "off"},
       [](const Config& c) { return std::string(c.stagger.value ? "on" : "off"); },
       [](const Config& c) { return c.stagger.from; },
       "on"},
      {"WAVEJIT_SETPRIO",
       &Environment::setprio,
       &wavejit_engine_options::setprio,
       {"on", "off"},
       [](const Config& c) { return std::string(c.setprio.value ? "on" : "off"); },
       [](const Config& c) { return c.setprio.from; },
       "on"},
      {"WAVEJIT_LAZY_RESCALE",
       &Environment::lazy_rescale,
       &wavejit_engine_options::lazy_rescale,
       {"on", "off"},
       [](const Config& c) { return std::string(c.lazy_rescale.value ? "on" : "off"); },
       [](const Config& c) { return c.lazy_rescale.from; },
       "on"},
      {"WAVEJIT_XCD_SWIZZLE",
       &Environment::xcd_swizzle,
       &wavejit_engine_options::xcd_swizzle,
       {"auto", "on", "off"},
       [](const Config& c) {
         return std::string(!c.xcd_swizzle.value ? "auto" : *c.xcd_swizzle.value ? "on" : "off");
       },
       [](const Config& c) { return c.xcd_swizzle.from; },
       "auto"},
      {"WAVEJIT_KV_SPLITS",
       &Environment::kv_splits,
       &wavejit_engine_options::kv_splits,
       {"auto", "1", "65535"},
       [](const Config& c) { return c.kv_splits.value ? std::to_string(*c.kv_splits.value) : std::string("auto"); },
       [](const Config& c) { return c.kv_splits.from; },
       "auto"},
      {"WAVEJIT_LOG_LEVEL",
       &Environment::log_level,
       &wavejit_engine_options::log_level,
       {"off", "error", "warning", "info", "debug"},
       [](const Config& c) { return std::string(to_text(c.log_level.value)); },
       [](const Config& c) { return c.log_level.from; },
       "warning"},
  };
}

TEST(Config, UnsetAndEmptyVariablesMeanTheDefault) {
  for (const Variable& v : variables()) {
    for (const char* text : {static_cast<const char*>(nullptr), ""}) {
      Environment environment = home_only();
      environment.*v.variable = text;
      const auto config = make_config(nullptr, environment);
      ASSERT_TRUE(config);
      EXPECT_EQ(v.value(*config), v.standard) << v.name;
      EXPECT_EQ(v.from(*config), Provenance::standard) << v.name;
      EXPECT_THAT(config->warnings, IsEmpty()) << v.name;
    }
  }
}

TEST(Config, EveryAcceptedWordIsTakenFromEitherPlace) {
  for (const Variable& v : variables()) {
    for (const std::string& word : v.accepted) {
      Environment environment = home_only();
      environment.*v.variable = word.c_str();
      const auto from_variable = make_config(nullptr, environment);
      ASSERT_TRUE(from_variable);
      EXPECT_EQ(v.value(*from_variable), word);
      EXPECT_EQ(v.from(*from_variable), Provenance::environment);

      wavejit_engine_options options = no_options();
      options.*v.option = word.c_str();
      const auto from_option = make_config(&options, home_only());
      ASSERT_TRUE(from_option);
      EXPECT_EQ(v.value(*from_option), word);
      EXPECT_EQ(v.from(*from_option), Provenance::option);
    }
  }
}

TEST(Config, AWrongVariableIsOneWarningAndTheDefaultStays) {
  for (const Variable& v : variables()) {
    for (const char* text : {"bogus", "RW", " rw", "0", "\xff\n"}) {
      Environment environment = home_only();
      environment.*v.variable = text;
      const auto config = make_config(nullptr, environment);
      ASSERT_TRUE(config);
      EXPECT_EQ(v.value(*config), v.standard);
      ASSERT_EQ(config->warnings.size(), 1U);
      EXPECT_THAT(config->warnings[0], HasSubstr(std::string(v.name) + "=" + text));
      for (const std::string& word : v.accepted) EXPECT_THAT(config->warnings[0], HasSubstr(word));
    }
  }
}

TEST(Config, AWrongOptionIsAnErrorThatNamesTheField) {
  for (const Variable& v : variables()) {
    wavejit_engine_options options = no_options();
    options.*v.option = "bogus";
    const auto config = make_config(&options, home_only());
    ASSERT_FALSE(config) << v.name;
    EXPECT_EQ(config.error().status, WAVEJIT_INVALID_ARGUMENT);
    EXPECT_THAT(config.error().detail, HasSubstr("\"bogus\""));
    for (const std::string& word : v.accepted) EXPECT_THAT(config.error().detail, HasSubstr(word));
  }
}

TEST(Config, OptionsWinOverVariablesAlsoOverWrongOnes) {
  for (const Variable& v : variables()) {
    for (const char* text : {v.accepted.back().c_str(), "bogus"}) {
      Environment environment = home_only();
      environment.*v.variable = text;
      wavejit_engine_options options = no_options();
      options.*v.option = v.accepted.front().c_str();
      const auto config = make_config(&options, environment);
      ASSERT_TRUE(config);
      EXPECT_EQ(v.value(*config), v.accepted.front());
      EXPECT_EQ(v.from(*config), Provenance::option);
      EXPECT_THAT(config->warnings, IsEmpty());
    }
  }
}

TEST(Config, OptionsWithoutTheirSizeAreRefused) {
  for (const std::size_t size : {std::size_t{0}, sizeof(wavejit_engine_options) - 8, std::size_t{1} << 30U}) {
    wavejit_engine_options options{};
    options.size = size;
    const auto config = make_config(&options, home_only());
    ASSERT_FALSE(config);
    EXPECT_THAT(config.error().detail, HasSubstr("options.size = " + std::to_string(size)));
  }
}

TEST(Config, DevicesAreReadAndPrintBack) {
  for (const char* text : {"hip", "hip:0", "hip:12", "sim:gfx942", "sim:gfx950", "sim:gfx950x2", "sim:gfx942x64",
                           "sim:gfx950x4:2", "sim:gfx950:0"}) {
    const auto device = parse_device(text);
    ASSERT_TRUE(device) << text << ": " << device.error();
    EXPECT_EQ(to_text(*device), text);
  }
  EXPECT_EQ(parse_device("sim:gfx950x8")->count, 8);
  EXPECT_EQ(parse_device("sim:gfx950x8")->target, "gfx950");
  EXPECT_EQ(parse_device("hip:3")->ordinal, 3);
}

TEST(Config, WrongDevicesAreErrorsWhereverTheyWereSaid) {
  for (const char* text : {"cuda",
                           "HIP",
                           "hip:",
                           "hip:-1",
                           "hip:x",
                           "hip:99999999999",
                           "sim",
                           "sim:",
                           "sim:gfx90a",
                           "sim:gfx950x",
                           "sim:gfx950x0",
                           "sim:gfx950x65",
                           "sim:gfx950x-1",
                           "sim:gfx950x2x2",
                           "sim:gfx950:xnack-",
                           "sim:gfx950:1",
                           "sim:gfx950x2:2",
                           "sim:gfx950x2:-1",
                           "sim:gfx950x2:",
                           "sim:x2",
                           "gfx950"}) {
    Environment environment = home_only();
    environment.device = text;
    auto config = make_config(nullptr, environment);
    ASSERT_FALSE(config) << text;
    EXPECT_EQ(config.error().status, WAVEJIT_NO_DEVICE);
    EXPECT_THAT(config.error().detail, HasSubstr("WAVEJIT_DEVICE = \"" + std::string(text) + "\""));
    EXPECT_THAT(config.error().detail, HasSubstr("sim:<target>"));
    wavejit_engine_options options = no_options();
    options.device = text;
    config = make_config(&options, home_only());
    ASSERT_FALSE(config) << text;
    EXPECT_THAT(config.error().detail, HasSubstr("options.device = \"" + std::string(text) + "\""));
  }
}

TEST(Config, TheDefaultDeviceIsHip) {
  const auto config = make_config(nullptr, home_only());
  ASSERT_TRUE(config);
  EXPECT_FALSE(config->device.value.simulated);
  EXPECT_EQ(config->device.from, Provenance::standard);
}

TEST(Config, TheCacheDirectoryFollowsOptionVariableXdgHome) {
  Environment environment = home_only();
  EXPECT_EQ(make_config(nullptr, environment)->cache_directory.value, "/home/somebody/.cache/wavejit");
  environment.xdg_cache_home = "/xdg";
  EXPECT_EQ(make_config(nullptr, environment)->cache_directory.value, "/xdg/wavejit");
  environment.cache_directory = "/variable";
  EXPECT_EQ(make_config(nullptr, environment)->cache_directory.value, "/variable");
  EXPECT_EQ(make_config(nullptr, environment)->cache_directory.from, Provenance::environment);
  wavejit_engine_options options = no_options();
  options.cache_directory = "/option";
  EXPECT_EQ(make_config(&options, environment)->cache_directory.value, "/option");
  EXPECT_EQ(make_config(&options, environment)->cache_directory.from, Provenance::option);
}

TEST(Config, WithoutAHomeTheDiskCacheIsOffAndSaysSo) {
  const auto config = make_config(nullptr, Environment{});
  ASSERT_TRUE(config);
  EXPECT_EQ(config->cache_mode.value, cache::Mode::off);
  ASSERT_EQ(config->warnings.size(), 1U);
}

// A caller that was compiled before the struct grew.
TEST(Config, TakesTheOptionsOfAnOlderCaller) {
  wavejit_engine_options options = no_options();
  options.size = offsetof(wavejit_engine_options, pipeline);
  options.output_store = "scalar";
  options.pipeline = "not to be read";
  const auto config = make_config(&options, home_only());
  ASSERT_TRUE(config) << config.error().detail;
  EXPECT_EQ(config->output_store.from, Provenance::option);
  EXPECT_EQ(config->pipeline.from, Provenance::standard);
  options.size -= 8;
  EXPECT_FALSE(make_config(&options, home_only()));
}

TEST(Config, DescribesEachSettingWithItsOrigin) {
  Environment environment = home_only();
  environment.device = "sim:gfx942";
  wavejit_engine_options options = no_options();
  options.cache_mode = "ro";
  const auto config = make_config(&options, environment);
  ASSERT_TRUE(config);
  EXPECT_THAT(
      describe(*config),
      ElementsAre("device=sim:gfx942 (WAVEJIT_DEVICE)", "cache_directory=/home/somebody/.cache/wavejit (default)",
                  "cache_mode=ro (option)", "lowering=llvm (default)", "compile=inprocess (default)",
                  "output_store=auto (default)", "pipeline=auto (default)", "stagger=on (default)",
                  "setprio=on (default)", "lazy_rescale=on (default)", "xcd_swizzle=auto (default)",
                  "kv_splits=auto (default)", "miss_log=none (default)", "log_level=warning (default)"));
}

}  // namespace
}  // namespace wavejit::tests
