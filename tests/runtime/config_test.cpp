// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Options and environment: which wins, what a wrong one does, and that each value remembers where it came from.
#include "runtime/settings/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "runtime/settings/variables.h"

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
      {"WAVEJIT_PIPELINE",
       &Environment::pipeline,
       &wavejit_engine_options::pipeline,
       {"auto", "generic", "dualwave", "interleaved"},
       [](const Config& c) { return to_text(c.pipeline.value); },
       [](const Config& c) { return c.pipeline.from; },
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
  for (const std::size_t size : {std::size_t{0}, offsetof(wavejit_engine_options, pipeline) - 8,
                                 sizeof(wavejit_engine_options) - 4, std::size_t{1} << 30U}) {
    wavejit_engine_options options{};
    options.size = size;
    const auto config = make_config(&options, home_only());
    ASSERT_FALSE(config);
    EXPECT_THAT(config.error().detail, HasSubstr("options.size = " + std::to_string(size)));
  }
}

TEST(Config, DevicesAreReadAndPrintBack) {
  for (const char* text : {"hip", "hip:0", "hip:12", "sim:gfx942", "sim:gfx950", "sim:gfx950x2", "sim:gfx942x64",
                           "sim:gfx950x4:2", "sim:gfx950:0", "sim:gfx942@6x38", "sim:gfx950@4x32x2:1"}) {
    const auto device = parse_device(text);
    ASSERT_TRUE(device) << text << ": " << device.error();
    EXPECT_EQ(to_text(*device), text);
  }
  EXPECT_EQ(parse_device("sim:gfx950x8")->count, 8);
  EXPECT_EQ(parse_device("sim:gfx950x8")->target, "gfx950");
  EXPECT_EQ(parse_device("sim:gfx942@1x38x8")->target, "gfx942@1x38");
  EXPECT_EQ(parse_device("sim:gfx942@1x38x8")->count, 8);
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
                           "sim:gfx942@",
                           "sim:gfx942@6",
                           "sim:gfx942@0x38",
                           "sim:gfx942@6x",
                           "sim:gfx942@6x-3",
                           "sim:gfx942@6x1000",
                           "sim:gfx942@6x38x2x2",
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

// The settings of the cache that are not one of a few words.
TEST(Config, CacheLayersLimitAndLockWaitAreReadFromEitherPlace) {
  struct Row {
    const char* Environment::* variable;
    const char* wavejit_engine_options::* option;
    const char* good;
    const char* shown;
    std::vector<const char*> wrong;
    const char* accepted;
  };
  const std::vector<Row> rows = {
      {&Environment::cache_layers,
       &wavejit_engine_options::cache_layers,
       ":/image::/opt/k.wavejit-archive:",
       "cache_layers=/image:/opt/k.wavejit-archive",
       {"image", "/image:here", "/a\nb"},
       "separated by ':'"},
      {&Environment::cache_limit,
       &wavejit_engine_options::cache_limit,
       "1536MiB",
       "cache_limit=1536MiB",
       {"1", "0", "-1MiB", "1GB", "1 GiB", "GiB", "1023KiB", "99999999999TiB", "1.5GiB"},
       "none, or a number"},
      {&Environment::cache_lock_wait,
       &wavejit_engine_options::cache_lock_wait,
       "0",
       "cache_lock_wait=0",
       {"-1", "3600001", "1s", "10.5", " 1"},
       "milliseconds"},
  };
  const auto shows = [](const Result<Config>& config, const std::string& line) {
    for (const std::string& setting : describe(*config))
      if (setting == line) return true;
    return false;
  };
  for (const Row& row : rows) {
    Environment environment = home_only();
    environment.*row.variable = row.good;
    EXPECT_TRUE(shows(make_config(nullptr, environment), std::string(row.shown) + " (WAVEJIT_" +
                                                             (row.good[0] == ':'   ? "CACHE_LAYERS)"
                                                              : row.good[0] == '1' ? "CACHE_LIMIT)"
                                                                                   : "CACHE_LOCK_WAIT)")))
        << row.shown;
    wavejit_engine_options options = no_options();
    options.*row.option = row.good;
    EXPECT_TRUE(shows(make_config(&options, home_only()), std::string(row.shown) + " (option)"));
    for (const char* wrong : row.wrong) {
      environment.*row.variable = wrong;
      const auto warned = make_config(nullptr, environment);
      ASSERT_TRUE(warned);
      ASSERT_EQ(warned->warnings.size(), 1U) << wrong;
      EXPECT_THAT(warned->warnings[0], HasSubstr(row.accepted));
      options.*row.option = wrong;
      const auto refused = make_config(&options, home_only());
      ASSERT_FALSE(refused) << wrong;
      EXPECT_EQ(refused.error().status, WAVEJIT_INVALID_ARGUMENT);
      EXPECT_THAT(refused.error().detail, HasSubstr(row.accepted));
    }
  }
  EXPECT_EQ(make_config(nullptr, home_only())->cache_limit.value, std::uint64_t{1} << 30U);
}

TEST(Config, WithoutAHomeThereIsNoFolderAndAWarningButLayersCount) {
  Environment environment;
  environment.cache_layers = "/image";
  const auto config = make_config(nullptr, environment);
  ASSERT_TRUE(config);
  EXPECT_EQ(config->cache_directory.value, "");
  EXPECT_THAT(config->cache_layers.value, ElementsAre("/image"));
  ASSERT_EQ(config->warnings.size(), 1U);
  EXPECT_THAT(config->warnings[0], HasSubstr("stay in this process"));
}

// A sealed engine whose layers nobody asks would refuse every call, long after it was opened.
TEST(Config, ALayerThatNothingAsksIsRefusedOrTold) {
  wavejit_engine_options options = {};
  options.size = sizeof options;
  options.cache_mode = "off";
  ASSERT_TRUE(make_config(&options, home_only()));
  options.cache_layers = "/image";
  const auto refused = make_config(&options, home_only());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().status, WAVEJIT_INVALID_ARGUMENT);
  EXPECT_EQ(refused.error().detail,
            "options.cache_mode = off beside cache_layers, which nothing asks then; "
            "accepted: ro and rw, or off without cache_layers");
  options.cache_layers = "";
  EXPECT_TRUE(make_config(&options, home_only())) << "no layer is none";
  options.cache_layers = nullptr;
  options.cache_remote = "unix:///run/kernels";
  EXPECT_THAT(make_config(&options, home_only()).value().warnings, ElementsAre(HasSubstr("nothing asks cache_remote")))
      << "no call counts on a remote layer";
  options.cache_remote = nullptr;
  // Variables are whoever's: to turn the cache off beside an image's layers is a way to measure.
  Environment environment = home_only();
  environment.cache_layers = "/image";
  const auto told = make_config(&options, environment);
  ASSERT_TRUE(told);
  EXPECT_THAT(told->warnings, ElementsAre("cache_mode is off: nothing asks cache_layers. ro and rw do"));
  environment.cache_mode = "off";
  EXPECT_THAT(make_config(nullptr, environment).value().warnings, ElementsAre(HasSubstr("nothing asks cache_layers")));
  options.cache_mode = nullptr;
  options.cache_layers = "/image";
  EXPECT_THAT(make_config(&options, environment).value().warnings, ElementsAre(HasSubstr("nothing asks cache_layers")));
  options.cache_mode = "ro";
  EXPECT_THAT(make_config(&options, environment).value().warnings, ::testing::IsEmpty());
}

TEST(Config, ARemoteLayersAddressIsReadAndItsPasswordNeverSaid) {
  Environment environment = home_only();
  environment.cache_remote = "rediss://reader:hunter2@kernels:7000/2";
  environment.cache_remote_key_file = "/etc/wavejit/remote.key";
  environment.cache_remote_timeout = "250";
  auto config = make_config(nullptr, environment);
  ASSERT_TRUE(config);
  ASSERT_TRUE(config->cache_remote.value);
  EXPECT_EQ(config->cache_remote.value->password, "hunter2");
  EXPECT_EQ(config->cache_remote_key_file.value, "/etc/wavejit/remote.key");
  EXPECT_EQ(config->cache_remote_timeout.value, 250'000'000);
  std::string said = ::testing::PrintToString(describe(*config));
  EXPECT_THAT(said, HasSubstr("cache_remote=rediss://reader:***@kernels:7000/2 (WAVEJIT_CACHE_REMOTE)"));

  environment.cache_remote = "redis://reader:hunter2@kernels:port";
  environment.cache_remote_key_file = "relative";
  environment.cache_remote_connect_timeout = "0";
  config = make_config(nullptr, environment);
  ASSERT_TRUE(config);
  EXPECT_FALSE(config->cache_remote.value);
  EXPECT_TRUE(config->cache_remote_key_file.value.empty());
  EXPECT_THAT(config->warnings,
              ElementsAre(HasSubstr("WAVEJIT_CACHE_REMOTE is no address"), HasSubstr("WAVEJIT_CACHE_REMOTE_KEY_FILE="),
                          HasSubstr("WAVEJIT_CACHE_REMOTE_CONNECT_TIMEOUT=0")));
  said += ::testing::PrintToString(config->warnings);

  wavejit_engine_options options = no_options();
  options.cache_remote = "redis://reader:hunter2@kernels";
  config = make_config(&options, home_only());
  ASSERT_FALSE(config);
  EXPECT_EQ(config.error().status, WAVEJIT_INVALID_ARGUMENT);
  EXPECT_THAT(config.error().detail, HasSubstr("options.cache_remote"));
  EXPECT_THAT(config.error().detail, HasSubstr("would travel in clear to another machine"));
  said += config.error().detail;
  EXPECT_THAT(said, ::testing::Not(HasSubstr("hunter2")));
}

// Where the packaged kernels lie is known before any option is read; whether they are asked, both places say.
TEST(Config, PackagedKernelsAreAskedUnlessToldOtherwise) {
  Environment environment = home_only();
  environment.packaged_archive = "/usr/share/wavejit/kernels.wavejit-archive";
  const auto standard = make_config(nullptr, environment);
  ASSERT_TRUE(standard);
  EXPECT_TRUE(standard->cache_packaged.value);
  EXPECT_EQ(standard->packaged_archive, environment.packaged_archive);
  EXPECT_THAT(describe(*standard),
              ::testing::Contains("cache_packaged=on, /usr/share/wavejit/kernels.wavejit-archive (default)"));
  environment.cache_packaged = "off";
  EXPECT_FALSE(make_config(nullptr, environment)->cache_packaged.value);
  wavejit_engine_options options = no_options();
  options.cache_packaged = "on";
  EXPECT_TRUE(make_config(&options, environment)->cache_packaged.value);
  options.cache_packaged = "sometimes";
  EXPECT_THAT(make_config(&options, environment).error().detail,
              HasSubstr("options.cache_packaged = \"sometimes\" is not known; accepted: on, off"));
}

TEST(Config, DescribesEachSettingWithItsOrigin) {
  Environment environment = home_only();
  environment.device = "sim:gfx942";
  wavejit_engine_options options = no_options();
  options.cache_mode = "ro";
  const auto config = make_config(&options, environment);
  ASSERT_TRUE(config);
  EXPECT_THAT(describe(*config),
              ElementsAre("device=sim:gfx942 (WAVEJIT_DEVICE)", "cache_mode=ro (option)",
                          "cache_directory=/home/somebody/.cache/wavejit (default)", "cache_layers= (default)",
                          "cache_packaged=on, none is there (default)", "cache_limit=1GiB (default)",
                          "cache_lock_wait=10000 (default)", "cache_remote=none (default)",
                          "cache_remote_key_file=none (default)", "cache_remote_authorities=the system's (default)",
                          "cache_remote_connect_timeout=200 (default)", "cache_remote_timeout=500 (default)",
                          "lowering=llvm (default)", "compile=inprocess (default)", "pipeline=auto (default)",
                          "kv_splits=auto (default)", "miss_log=none (default)", "log_level=warning (default)"));
}

// A typing error in a name is as silent as an unset variable, unless it is said.
TEST(Strangers, AreWarnedOfWithTheNearestName) {
  Environment environment = home_only();
  environment.strangers = {"WAVEJIT_PIPLINE", "WAVEJIT_CACHE_DIRECTORY", "WAVEJIT_SIM_CHECKS"};
  const auto config = make_config(nullptr, environment);
  ASSERT_TRUE(config);
  EXPECT_THAT(
      config->warnings,
      ElementsAre("WAVEJIT_PIPLINE is no variable of wavejit and ignored; the nearest is WAVEJIT_PIPELINE",
                  "WAVEJIT_CACHE_DIRECTORY is no variable of wavejit and ignored; the nearest is WAVEJIT_CACHE_DIR",
                  "WAVEJIT_SIM_CHECKS is no variable of wavejit and ignored; the nearest is WAVEJIT_SIM_CHECK"));
}

TEST(Strangers, AreOnlyWhatNobodyReads) {
  const std::array<std::string_view, 2> of_runtime = {"WAVEJIT_CACHE", "HOME"};
  EXPECT_THAT(strange_variables({"PATH", "WAVEJIT", "WAVEJIT_CACHES", "WAVEJIT_CACHE", "WAVEJIT_SIM_SEED",
                                 "WAVEJIT_WITHOUT_ROCM", "wavejit_cache", "WAVEJIT_"},
                                of_runtime),
              ElementsAre("WAVEJIT_", "WAVEJIT_CACHES"));
}

}  // namespace
}  // namespace wavejit::tests
