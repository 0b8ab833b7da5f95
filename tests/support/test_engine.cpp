// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Engines of tests, and how the simulated GPU runs what they launch.
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

#include "support/attention_run.h"
#include "support/kept.h"
#include "support/test_device.h"

namespace wavejit::tests {

Engine::Engine(const std::string& target, const char* cache_directory, const char* pipeline, const char* lowering) {
  const std::string device = test_device(target);
  wavejit_engine_options options{};
  options.size = sizeof options;
  options.device = device.c_str();
  options.cache_directory = cache_directory != nullptr ? cache_directory : kept_kernels();
  options.cache_mode = options.cache_directory == nullptr ? "off" : "rw";
  options.pipeline = pipeline;
  options.lowering = lowering;
  if (wavejit_engine_create(&options, &engine_) != WAVEJIT_OK)
    throw std::runtime_error(std::string("engine: ") + wavejit_last_detail());
}

Engine::Engine(const std::string& target, wavejit_engine_options options) {
  const std::string device = test_device(target);
  options.size = sizeof options;
  options.device = device.c_str();
  options.cache_directory = kept_kernels();
  options.cache_mode = options.cache_directory == nullptr ? "off" : "rw";
  if (wavejit_engine_create(&options, &engine_) != WAVEJIT_OK)
    throw std::runtime_error(std::string("engine: ") + wavejit_last_detail());
}

Engine::~Engine() { wavejit_engine_destroy(engine_); }

namespace {

// Every test begins with the settings that the process began with: one that chose a schedule leaves the checks of the
// next as they were.
class SettingsOfTheProcess : public ::testing::EmptyTestEventListener {
  void OnTestProgramStart(const ::testing::UnitTest& /*program*/) override {
    settings_.size = sizeof settings_;
    wavejit_simgpu_get_settings(&settings_);
  }
  void OnTestStart(const ::testing::TestInfo& /*test*/) override { wavejit_simgpu_set_settings(&settings_); }

  wavejit_simgpu_settings settings_{};
};

[[maybe_unused]] const bool listens = [] {
  ::testing::UnitTest::GetInstance()->listeners().Append(new SettingsOfTheProcess);
  return true;
}();

}  // namespace

void set_schedule(wavejit_simgpu_schedule schedule, std::uint64_t seed) {
  wavejit_simgpu_settings settings{};
  settings.size = sizeof settings;
  wavejit_simgpu_get_settings(&settings);
  settings.schedule = schedule;
  settings.seed = seed;
  const bool checks = schedule == WAVEJIT_SIMGPU_REVERSE;
  settings.checks = checks ? WAVEJIT_SIMGPU_CHECK_ALL : 0;
  settings.arrival = checks ? WAVEJIT_SIMGPU_ARRIVES_LATE : WAVEJIT_SIMGPU_ARRIVES_EARLY;
  settings.rules = WAVEJIT_SIMGPU_RULES_STRICT;
  if (wavejit_simgpu_set_settings(&settings) != 0) throw std::runtime_error("the simulated GPU refused its settings");
}

void leave_out(wavejit_simgpu_check check) {
  wavejit_simgpu_settings settings{};
  settings.size = sizeof settings;
  wavejit_simgpu_get_settings(&settings);
  settings.checks &= ~static_cast<std::uint32_t>(check);
  if (wavejit_simgpu_set_settings(&settings) != 0) throw std::runtime_error("the simulated GPU refused its settings");
}

}  // namespace wavejit::tests
