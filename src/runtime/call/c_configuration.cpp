// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/call/c_configuration.h"

#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "cache/cache.h"
#include "families/call/family.h"
#include "runtime/settings/logging.h"
#include "runtime/settings/options.h"
#include "runtime/settings/pipeline_words.h"

namespace wavejit::runtime {
namespace {

// A variable that was not understood is told once a process, however many engines are made.
void tell_warnings(const Config& config) {
  static std::mutex mutex;
  static std::set<std::string> told;
  Logger logger(config.log_level.value, log_sink(config));
  for (const std::string& warning : config.warnings) {
    const bool is_new = [&] {
      const std::scoped_lock lock(mutex);
      return told.insert(warning).second;
    }();
    if (is_new) logger.write(LogLevel::warning, warning);
  }
}

// What an option pins must be known; what the variable pins is a warning.
Result<void> check_pinned(Config& config) {
  Setting<PipelineWords>& pipeline = config.pipeline;
  const auto pins = families::check_pins(pipeline.value.pinned);
  if (pins) return {};
  const OptionRow& row = option_row(Option::pipeline);
  std::string why = "\"" + to_text(pipeline.value) + "\": " + pins.error().detail;
  for (const char* between = "; also "; const PipelineWord& word : known_pipeline_words())
    why += std::exchange(between, ", ") + std::string(word.example);
  if (pipeline.from == Provenance::option) return fail(pins.error().status, "options.pipeline = " + why);
  config.warnings.push_back(row.variable + std::string("=") + why + ". It is ignored");
  pipeline = {};
  return {};
}

}  // namespace

Result<Config> configuration(const wavejit_engine_options* options) {
  auto config = make_config(options, process_environment());
  if (config) {
    if (auto pins = check_pinned(*config); !pins) return std::unexpected(std::move(pins.error()));
    tell_warnings(*config);
    config->cache_memory = &cache::process_memory();
  }
  return config;
}

}  // namespace wavejit::runtime
