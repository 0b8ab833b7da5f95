// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/call/c_configuration.h"

#include <mutex>
#include <set>
#include <string>

#include "cache/cache.h"
#include "families/call/family.h"
#include "runtime/settings/logging.h"
#include "runtime/settings/options.h"

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

}  // namespace

Result<Config> configuration(const wavejit_engine_options* options) {
  auto config = make_config(options, process_environment());
  if (config) {
    if (auto pins = families::check_pins(config->pinned); !pins) {
      return fail(pins.error().status, std::string("options.pipeline = \"") + options->pipeline +
                                           "\": " + pins.error().detail + "; in front of them " +
                                           option_row(Option::pipeline).values);
    }
    tell_warnings(*config);
    config->cache_memory = &cache::process_memory();
  }
  return config;
}

}  // namespace wavejit::runtime
