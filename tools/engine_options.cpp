// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/engine_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "tools/targets.h"

namespace wavejit::tools {

CLI::Option* limit(CLI::Option* option, const std::string& type_name,
                   std::function<std::string(const std::string&)> problem_of) {
  return option->type_name(type_name)->check(
      CLI::Validator([problem_of = std::move(problem_of)](std::string& value) { return problem_of(value); }, ""));
}

CLI::Option* add_choice(CLI::App& command, const std::string& name, std::string& value, std::vector<std::string> words,
                        const std::string& help) {
  const std::string shown = fmt::format("{}", fmt::join(words, "|"));
  return limit(command.add_option(name, value, help), shown,
               [words = std::move(words)](const std::string& given) -> std::string {
                 if (std::ranges::find(words, given) != words.end()) return {};
                 return fmt::format("'{}' is not accepted; {} are", given, fmt::join(words, ", "));
               });
}

CLI::Option* limit_count(CLI::Option* option, int most) {
  return limit(option, "N", [most](const std::string& given) -> std::string {
    int value = 0;
    const auto [stop, error] = std::from_chars(given.data(), given.data() + given.size(), value);
    if (error == std::errc() && stop == given.data() + given.size() && value >= 0 && value <= most) return {};
    return fmt::format("'{}' is not accepted; 0 to {} are", given, most);
  });
}

struct EngineOptions::Settable {
  std::string_view name;
  std::string EngineOptions::* member;
};
const std::array<EngineOptions::Settable, 9> EngineOptions::settable = {
    {{"device", &EngineOptions::device_},
     {"pipeline", &EngineOptions::pipeline_},
     {"stagger", &EngineOptions::stagger_},
     {"setprio", &EngineOptions::setprio_},
     {"lazy-rescale", &EngineOptions::lazy_rescale_},
     {"xcd-swizzle", &EngineOptions::xcd_swizzle_},
     {"kv-splits", &EngineOptions::kv_splits_},
     {"o-store", &EngineOptions::output_store_},
     {"lowering", &EngineOptions::lowering_}}};

// Paths on a command line begin where it is typed; the library takes absolute ones alone, since a variable is handed
// down to processes that are elsewhere.
std::string absolute_layers(std::string_view layers) {
  std::string absolute;
  for (;;) {
    const std::size_t colon = std::min(layers.find(':'), layers.size());
    std::error_code none;
    const std::string layer(layers.substr(0, colon));
    absolute += layer.empty() ? layer : std::filesystem::absolute(layer, none).string();
    if (colon == layers.size()) return absolute;
    absolute += ':';
    layers.remove_prefix(colon + 1);
  }
}

void EngineOptions::add_device(CLI::App& command) {
  command
      .add_option("--device", device_,
                  fmt::format("hip, hip:<ordinal>, or a simulated GPU: {} (default: $WAVEJIT_DEVICE, then hip)",
                              joined(known_targets(), ", ", "sim:")))
      ->type_name("DEVICE");
}

void EngineOptions::add_cache(CLI::App& command) {
  command
      .add_option(
          "--cache-dir", cache_directory_,
          "folder of the disk cache (default: $WAVEJIT_CACHE_DIR, then $XDG_CACHE_HOME/wavejit or ~/.cache/wavejit)")
      ->type_name("FOLDER");
  add_choice(command, "--cache", cache_mode_, {"off", "ro", "rw"},
             "rw: read and write the disk cache; ro: only read; off: neither (default: $WAVEJIT_CACHE, then rw)");
  command
      .add_option("--cache-layers", cache_layers_,
                  "read-only folders and archives, with ':' between, that are asked first (default: "
                  "$WAVEJIT_CACHE_LAYERS, then none)")
      ->type_name("PATH:…")
      ->transform(CLI::Validator(
          [](std::string& layers) {
            layers = absolute_layers(layers);
            return std::string();
          },
          ""));
}

void EngineOptions::add_cache_remote(CLI::App& command) {
  command
      .add_option("--cache-remote", cache_remote_,
                  "the layer that a fleet shares: rediss://[[user]:password@]host[:port][/database] (TLS),\n"
                  "redis:// with the same, or unix:///path/of/socket (default: $WAVEJIT_CACHE_REMOTE, then none). A "
                  "password is better in the\n"
                  "variable, since everybody on the machine sees a command line")
      ->type_name("ADDRESS");
  command
      .add_option("--cache-remote-key-file", cache_remote_key_file_,
                  "the key that its entries are sealed with: an absolute path of a file of 64 or more hexadecimal "
                  "digits that nobody else\n"
                  "can read (default: $WAVEJIT_CACHE_REMOTE_KEY_FILE)")
      ->type_name("FILE");
}

void EngineOptions::add_cache_limit(CLI::App& command) {
  command
      .add_option("--cache-limit", cache_limit_,
                  "what the cache's folder may hold: 512MiB, 2GiB, none (default: $WAVEJIT_CACHE_LIMIT, then 1GiB)")
      ->type_name("SIZE");
}

void EngineOptions::add_compiler(CLI::App& command, bool with_pipeline) {
  add_choice(command, "--lowering", lowering_, {"llvm", "comgr"},
             "who turns IR into machine code (default: $WAVEJIT_LOWERING, then llvm)");
  add_choice(command, "--compile", compile_, {"inprocess", "isolated"},
             "where the compiler runs (default: $WAVEJIT_COMPILE, then inprocess)");
  add_choice(command, "--o-store", output_store_, {"auto", "permlane", "scalar"},
             "how O leaves the registers (default: $WAVEJIT_O_STORE, then auto)");
  if (with_pipeline) {
    add_choice(command, "--pipeline", pipeline_, {"auto", "generic", "dualwave", "interleaved"},
               "how the kernel walks its tiles (default: $WAVEJIT_PIPELINE, then auto)");
  }
  add_choice(command, "--stagger", stagger_, {"on", "off"},
             "dualwave: the second group of waves runs one cluster behind (default: $WAVEJIT_STAGGER, then on)");
  add_choice(command, "--setprio", setprio_, {"on", "off"},
             "dualwave: the computing wave issues first (default: $WAVEJIT_SETPRIO, then on)");
  add_choice(command, "--lazy-rescale", lazy_rescale_, {"on", "off"},
             "sums are rescaled only once a row's new maximum weighs more than 2^8 times the old one (default: "
             "$WAVEJIT_LAZY_RESCALE, then on)");
  add_choice(command, "--xcd-swizzle", xcd_swizzle_, {"auto", "on", "off"},
             "neighbouring query heads run on one die, where the dies divide the heads (default: $WAVEJIT_XCD_SWIZZLE, "
             "then auto)");
  command
      .add_option("--kv-splits", kv_splits_,
                  "into how many runs keys are cut: auto, or 1 to 65535 (default: $WAVEJIT_KV_SPLITS, then auto)")
      ->type_name("COUNT");
}

void EngineOptions::add_log_level(CLI::App& command) {
  add_choice(command, "--log-level", log_level_, {"off", "error", "warning", "info", "debug"},
             "what the library logs to stderr (default: $WAVEJIT_LOG_LEVEL, then warning)");
}

bool EngineOptions::set(std::string_view name, std::string value) {
  const auto found = std::ranges::find(settable, name, &Settable::name);
  if (found == settable.end()) return false;
  this->*found->member = std::move(value);
  return true;
}

std::vector<std::string_view> EngineOptions::settable_names() {
  std::vector<std::string_view> names;
  names.reserve(settable.size());
  for (const Settable& each : settable) names.push_back(each.name);
  return names;
}

std::vector<std::string> EngineOptions::given_names() const {
  std::vector<std::string> names;
  for (const Settable& each : settable)
    if (!(this->*each.member).empty()) names.emplace_back(each.name);
  return names;
}

wavejit_engine_options EngineOptions::options() const {
  const auto given = [](const std::string& text) { return text.empty() ? nullptr : text.c_str(); };
  wavejit_engine_options options{};
  options.size = sizeof options;
  options.device = given(device_);
  options.cache_directory = given(cache_directory_);
  options.cache_mode = given(cache_mode_);
  options.cache_layers = given(cache_layers_);
  options.cache_limit = given(cache_limit_);
  options.cache_remote = given(cache_remote_);
  options.cache_remote_key_file = given(cache_remote_key_file_);
  options.lowering = given(lowering_);
  options.compile = given(compile_);
  options.output_store = given(output_store_);
  options.log_level = given(log_level_);
  options.pipeline = given(pipeline_);
  options.stagger = given(stagger_);
  options.setprio = given(setprio_);
  options.lazy_rescale = given(lazy_rescale_);
  options.xcd_swizzle = given(xcd_swizzle_);
  options.kv_splits = given(kv_splits_);
  return options;
}

}  // namespace wavejit::tools
