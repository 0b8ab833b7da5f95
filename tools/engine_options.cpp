#include "tools/engine_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace wavejit::tools {

CLI::Validator one_of(std::vector<std::string> words) {
  const std::string shown = fmt::format("{}", fmt::join(words, "|"));
  const std::string accepted = fmt::format("{}", fmt::join(words, ", "));
  return {[words = std::move(words), accepted](std::string& value) -> std::string {
            if (std::ranges::find(words, value) != words.end()) return {};
            return fmt::format("'{}' is not accepted; {} are", value, accepted);
          },
          shown};
}

void EngineOptions::add_device(CLI::App& command) {
  command
      .add_option("--device", device_,
                  "hip, hip:<ordinal>, or a simulated GPU: sim:gfx950, sim:gfx942 (default: $WAVEJIT_DEVICE, then hip)")
      ->type_name("DEVICE");
}

void EngineOptions::add_cache(CLI::App& command) {
  command
      .add_option(
          "--cache-dir", cache_directory_,
          "folder of the disk cache (default: $WAVEJIT_CACHE_DIR, then $XDG_CACHE_HOME/wavejit or ~/.cache/wavejit)")
      ->type_name("FOLDER");
  command.add_option("--cache", cache_mode_, "use the disk cache or not (default: $WAVEJIT_CACHE, then rw)")
      ->check(one_of({"off", "ro", "rw"}));
}

void EngineOptions::add_compiler(CLI::App& command) {
  command.add_option("--lowering", lowering_, "who turns IR into machine code (default: $WAVEJIT_LOWERING, then llvm)")
      ->check(one_of({"llvm", "comgr"}));
  command.add_option("--compile", compile_, "where the compiler runs (default: $WAVEJIT_COMPILE, then inprocess)")
      ->check(one_of({"inprocess", "isolated"}));
  command.add_option("--o-store", output_store_, "how O leaves the registers (default: $WAVEJIT_O_STORE, then auto)")
      ->check(one_of({"auto", "permlane", "scalar"}));
}

void EngineOptions::add_log_level(CLI::App& command) {
  command
      .add_option("--log-level", log_level_,
                  "what the library logs to stderr (default: $WAVEJIT_LOG_LEVEL, then warning)")
      ->check(one_of({"off", "error", "warning", "info", "debug"}));
}

wavejit_engine_options EngineOptions::options() const {
  const auto given = [](const std::string& text) { return text.empty() ? nullptr : text.c_str(); };
  wavejit_engine_options options{};
  options.size = sizeof options;
  options.device = given(device_);
  options.cache_directory = given(cache_directory_);
  options.cache_mode = given(cache_mode_);
  options.lowering = given(lowering_);
  options.compile = given(compile_);
  options.output_store = given(output_store_);
  options.log_level = given(log_level_);
  return options;
}

}  // namespace wavejit::tools
