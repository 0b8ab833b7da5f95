// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/config.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "cache/directory.h"
#include "families/call/struct_size.h"
#include "runtime/packaged_kernels.h"
#include "runtime/variables.h"
#include "targets/targets.h"

namespace wavejit::runtime {
namespace {

using families::Lowering;
using families::max_splits;
using families::OutputStore;
using families::Pipeline;

std::optional<int> small_number(std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

std::string accepted_devices() {
  return "accepted: hip, hip:<ordinal>, sim:<target>, sim:<target>x<count up to " +
         std::to_string(max_simulated_devices) +
         ">, the latter with :<ordinal below the count>; targets: " + targets::known_targets() +
         ", and boards of them: <target>@<dies>x<compute units of a die>";
}

// One word with a few values: its names, the variable and the option's field.
struct WordNames {
  const char* variable;
  const char* field;
  const char* accepted;
};

// Picks the text that counts. Both parsers get the same words; who wrote them decides what a wrong one does.
template <typename T, typename Parse>
Result<void> choose(Setting<T>& setting, const char* option, const char* variable_text, const WordNames& names,
                    std::vector<std::string>& warnings, Parse parse) {
  if (option != nullptr && *option != '\0') {
    const auto value = parse(std::string_view(option));
    if (!value) {
      return fail(WAVEJIT_INVALID_ARGUMENT, std::string("options.") + names.field + " = \"" + option +
                                                "\" is not known; accepted: " + names.accepted);
    }
    setting = {*value, Provenance::option};
    return {};
  }
  if (variable_text != nullptr && *variable_text != '\0') {
    const auto value = parse(std::string_view(variable_text));
    if (value) {
      setting = {*value, Provenance::environment};
    } else {
      warnings.push_back(std::string(names.variable) + "=" + variable_text +
                         " is not known and ignored; accepted: " + names.accepted);
    }
  }
  return {};
}

std::optional<Lowering> parse_lowering(std::string_view text) { return families::value_in(families::lowerings, text); }

std::optional<CompileMode> parse_compile(std::string_view text) {
  for (const CompileMode mode : {CompileMode::in_process, CompileMode::isolated})
    if (text == to_text(mode)) return mode;
  return std::nullopt;
}

std::optional<std::optional<OutputStore>> parse_output_store(std::string_view text) {
  if (text == "auto") return std::optional<OutputStore>{};
  if (const auto store = families::value_in(families::output_stores, text)) return store;
  return std::nullopt;
}

constexpr const char* accepted_pipelines = "auto, generic, dualwave, interleaved";

std::optional<std::optional<Pipeline>> parse_pipeline(std::string_view text) {
  if (text == "auto") return std::optional<Pipeline>{};
  if (const auto pipeline = families::value_in(families::pipelines, text)) return pipeline;
  return std::nullopt;
}

bool pin(std::string_view word, Pinned& pinned) {
  const std::size_t equals = word.find('=');
  if (equals == std::string_view::npos || equals + 1 == word.size()) return false;
  const std::string_view name = word.substr(0, equals);
  const std::string_view value = word.substr(equals + 1);
  if (name == "ladder" && pinned.ladder.empty()) {
    pinned.ladder = value;
    return true;
  }
  if (name == "tiles" && !pinned.paired_tiles && (value == "paired" || value == "single")) {
    pinned.paired_tiles = value == "paired";
    return true;
  }
  if (name != "tile_queries" || pinned.tile_queries != 0) return false;
  pinned.tile_queries = small_number(value).value_or(0);
  return pinned.tile_queries != 0;
}

// The pipeline's name out of the option, or all of it when nothing stands behind; what does is pinned. Which values a
// pipeline has, the route says.
Result<std::string> take_pinned(const char* option, Pinned& pinned) {
  const std::string_view text = option == nullptr ? "" : option;
  const std::size_t space = text.find(' ');
  if (space == 0 || space == std::string_view::npos) return std::string(text);
  for (std::size_t at = space; at < text.size();) {
    const std::size_t end = std::min(text.find(' ', at + 1), text.size());
    if (!pin(text.substr(at + 1, end - at - 1), pinned)) {
      return fail(WAVEJIT_INVALID_ARGUMENT, "options.pipeline = \"" + std::string(text) + "\": '" +
                                                std::string(text.substr(at + 1, end - at - 1)) + "'; accepted behind " +
                                                accepted_pipelines +
                                                ": tile_queries=<rows>, tiles=paired or single, ladder=<name>, each "
                                                "once");
    }
    at = end;
  }
  return std::string(text.substr(0, space));
}

std::optional<bool> parse_switch(std::string_view text) {
  if (text == "on") return true;
  if (text == "off") return false;
  return std::nullopt;
}

std::optional<std::optional<bool>> parse_automatic_switch(std::string_view text) {
  if (text == "auto") return std::optional<bool>{};
  if (const auto on = parse_switch(text)) return on;
  return std::nullopt;
}

std::optional<std::optional<std::int32_t>> parse_splits(std::string_view text) {
  if (text == "auto") return std::optional<std::int32_t>{};
  const auto count = small_number(text);
  if (!count || *count < 1 || *count > max_splits) return std::nullopt;
  return count;
}

Result<void> choose_device(Setting<DeviceChoice>& setting, const char* option, const char* variable_text) {
  const bool from_option = option != nullptr && *option != '\0';
  const char* text = from_option ? option : variable_text;
  if (text == nullptr || *text == '\0') return {};
  auto choice = parse_device(text);
  if (!choice) {
    return fail(WAVEJIT_NO_DEVICE, std::string(from_option ? "options.device = \"" : "WAVEJIT_DEVICE = \"") + text +
                                       "\" names no device; " + choice.error());
  }
  setting = {*std::move(choice), from_option ? Provenance::option : Provenance::environment};
  return {};
}

// The text is never repeated: it may hold a password.
Result<void> choose_remote(Config& config, const char* option, const char* variable_text) {
  const bool from_option = option != nullptr && *option != '\0';
  const char* text = from_option ? option : variable_text;
  if (text == nullptr || *text == '\0') return {};
  auto address = cache::parse_remote(text);
  if (address) {
    config.cache_remote = {*std::move(address), from_option ? Provenance::option : Provenance::environment};
    return {};
  }
  const std::string problem =
      " is no address of a remote layer: " + address.error() + "; accepted: " + cache::accepted_remotes;
  if (from_option) return fail(WAVEJIT_INVALID_ARGUMENT, "options.cache_remote" + problem);
  config.warnings.push_back("WAVEJIT_CACHE_REMOTE" + problem + ". It is ignored");
  return {};
}

std::optional<std::string> parse_absolute_path(std::string_view path) {
  if (!path.starts_with('/')) return std::nullopt;
  return std::string(path);
}

Result<void> choose_cache_directory(Config& config, const char* option, const Environment& environment) {
  const bool from_option = option != nullptr && *option != '\0';
  const bool from_variable = environment.cache_directory != nullptr && *environment.cache_directory != '\0';
  config.cache_directory.from = from_option     ? Provenance::option
                                : from_variable ? Provenance::environment
                                                : Provenance::standard;
  auto directory = cache::resolve_directory({.directory = from_option ? option : environment.cache_directory,
                                             .xdg_cache_home = environment.xdg_cache_home,
                                             .home = environment.home});
  if (directory) {
    config.cache_directory.value = *std::move(directory);
    return {};
  }
  if (from_option) return fail(WAVEJIT_INVALID_ARGUMENT, "options.cache_directory: " + directory.error());
  // A process without a home still computes: it only compiles more often.
  if (config.cache_mode.value != cache::Mode::off)
    config.warnings.push_back("no disk cache: " + directory.error() + ". Kernels compiled here stay in this process");
  return {};
}

// " tile_queries=64 ladder=early"
std::string to_text(const Pinned& pinned) {
  return (pinned.tile_queries == 0 ? "" : " tile_queries=" + std::to_string(pinned.tile_queries)) +
         (!pinned.paired_tiles   ? ""
          : *pinned.paired_tiles ? " tiles=paired"
                                 : " tiles=single") +
         (pinned.ladder.empty() ? "" : " ladder=" + pinned.ladder);
}

std::string from_text(Provenance from, const char* variable) {
  switch (from) {
    case Provenance::standard:
      return "default";
    case Provenance::environment:
      return variable;
    case Provenance::option:
      return "option";
  }
  return "?";
}

// Every variable that is read here, and where its text goes.
struct Variable {
  const char* name;
  const char* Environment::* text;
};
constexpr std::array variables = {
    Variable{"WAVEJIT_DEVICE", &Environment::device},
    Variable{"WAVEJIT_CACHE_DIR", &Environment::cache_directory},
    Variable{"WAVEJIT_CACHE", &Environment::cache_mode},
    Variable{"WAVEJIT_CACHE_LAYERS", &Environment::cache_layers},
    Variable{"WAVEJIT_CACHE_PACKAGED", &Environment::cache_packaged},
    Variable{"WAVEJIT_CACHE_LIMIT", &Environment::cache_limit},
    Variable{"WAVEJIT_CACHE_LOCK_WAIT", &Environment::cache_lock_wait},
    Variable{"WAVEJIT_CACHE_REMOTE", &Environment::cache_remote},
    Variable{"WAVEJIT_CACHE_REMOTE_KEY_FILE", &Environment::cache_remote_key_file},
    Variable{"WAVEJIT_CACHE_REMOTE_AUTHORITIES", &Environment::cache_remote_authorities},
    Variable{"WAVEJIT_CACHE_REMOTE_CONNECT_TIMEOUT", &Environment::cache_remote_connect_timeout},
    Variable{"WAVEJIT_CACHE_REMOTE_TIMEOUT", &Environment::cache_remote_timeout},
    Variable{"WAVEJIT_LOWERING", &Environment::lowering},
    Variable{"WAVEJIT_COMPILE", &Environment::compile},
    Variable{"WAVEJIT_O_STORE", &Environment::output_store},
    Variable{"WAVEJIT_LOG_LEVEL", &Environment::log_level},
    Variable{"WAVEJIT_PIPELINE", &Environment::pipeline},
    Variable{"WAVEJIT_STAGGER", &Environment::stagger},
    Variable{"WAVEJIT_SETPRIO", &Environment::setprio},
    Variable{"WAVEJIT_LAZY_RESCALE", &Environment::lazy_rescale},
    Variable{"WAVEJIT_XCD_SWIZZLE", &Environment::xcd_swizzle},
    Variable{"WAVEJIT_KV_SPLITS", &Environment::kv_splits},
    Variable{"WAVEJIT_MISS_LOG", &Environment::miss_log},
    Variable{"XDG_CACHE_HOME", &Environment::xdg_cache_home},
    Variable{"HOME", &Environment::home}};

const auto& names_of_variables() {
  static constexpr auto names = [] {
    std::array<std::string_view, variables.size()> all;
    std::ranges::transform(variables, all.begin(), &Variable::name);
    return all;
  }();
  return names;
}

}  // namespace

std::expected<DeviceChoice, std::string> parse_device(std::string_view text) {
  DeviceChoice device;
  if (text == "hip") return device;
  if (text.starts_with("hip:")) {
    device.ordinal = small_number(text.substr(4));
    if (!device.ordinal) return std::unexpected(accepted_devices());
    return device;
  }
  if (!text.starts_with("sim:")) return std::unexpected(accepted_devices());
  device.simulated = true;
  std::string_view target = text.substr(4);
  if (const std::size_t colon = target.rfind(':'); colon != std::string_view::npos) {
    device.ordinal = small_number(target.substr(colon + 1));
    if (!device.ordinal) return std::unexpected(accepted_devices());
    target = target.substr(0, colon);
  }
  // A board's own name holds an x: the whole text first, then what stands before the last x.
  const auto known = [](std::string_view name) { return targets::find_board(name).has_value(); };
  if (!known(target)) {
    const std::size_t times = target.rfind('x');
    if (times == std::string_view::npos || !known(target.substr(0, times))) return std::unexpected(accepted_devices());
    const auto count = small_number(target.substr(times + 1));
    if (!count || *count < 1 || *count > max_simulated_devices) return std::unexpected(accepted_devices());
    device.count = *count;
    target = target.substr(0, times);
  }
  if (device.ordinal.value_or(0) >= device.count) return std::unexpected(accepted_devices());
  device.target = target;
  return device;
}

std::string to_text(const DeviceChoice& device) {
  if (!device.simulated) return device.ordinal ? "hip:" + std::to_string(*device.ordinal) : "hip";
  return "sim:" + device.target + (device.count == 1 ? "" : "x" + std::to_string(device.count)) +
         (device.ordinal ? ":" + std::to_string(*device.ordinal) : "");
}

std::string_view to_text(CompileMode mode) { return mode == CompileMode::isolated ? "isolated" : "inprocess"; }

const Environment& process_environment() {
  // secure_getenv: a set-uid program must not write its cache where its caller says.
  static const auto read = [] {
    Environment environment;
    for (const Variable& variable : variables) {
      const char* text = ::secure_getenv(variable.name);
      environment.*variable.text = text == nullptr ? nullptr : ::strdup(text);
    }
    std::vector<std::string> names;
    for (char** entry = ::environ; entry != nullptr && *entry != nullptr; ++entry) {
      const std::string_view text = *entry;
      std::string name(text.substr(0, text.find('=')));
      if (::secure_getenv(name.c_str()) != nullptr) names.push_back(std::move(name));
    }
    environment.strangers = strange_variables(names, names_of_variables());
    environment.packaged_archive = find_packaged_archive();
    return environment;
  };
  static const Environment environment = read();
  return environment;
}

Result<Config> make_config(const wavejit_engine_options* options, const Environment& environment) {
  wavejit_engine_options given = {};
  if (options != nullptr) {
    // The struct has grown at its end: what an older caller does not have, it does not set.
    constexpr std::array earlier = {
        offsetof(wavejit_engine_options, pipeline),     offsetof(wavejit_engine_options, lazy_rescale),
        offsetof(wavejit_engine_options, cache_layers), offsetof(wavejit_engine_options, cache_remote),
        offsetof(wavejit_engine_options, on_log),       offsetof(wavejit_engine_options, cache_packaged)};
    const bool is_earlier = std::ranges::find(earlier, options->size) != earlier.end();
    const std::size_t known = is_earlier ? options->size : sizeof(wavejit_engine_options);
    if (auto size = families::check_struct_size(options, "options", known); !size)
      return std::unexpected(std::move(size.error()));
    std::memcpy(&given, options, known);
  }
  Config config;
  for (const std::string& name : environment.strangers)
    config.warnings.push_back(warning_of(name, names_of_variables()));
  config.cache_limit.value = cache::standard_limit_bytes;
  Result<void> step = choose_device(config.device, given.device, environment.device);
  const auto next = [&](auto& setting, const char* option, const char* variable_text, const WordNames& names,
                        auto parse) {
    if (step) step = choose(setting, option, variable_text, names, config.warnings, parse);
  };
  next(config.cache_mode, given.cache_mode, environment.cache_mode, {"WAVEJIT_CACHE", "cache_mode", "off, ro, rw"},
       cache::parse_mode);
  next(config.cache_layers, given.cache_layers, environment.cache_layers,
       {"WAVEJIT_CACHE_LAYERS", "cache_layers", cache::accepted_layers}, cache::parse_layers);
  next(config.cache_packaged, given.cache_packaged, environment.cache_packaged,
       {"WAVEJIT_CACHE_PACKAGED", "cache_packaged", "on, off"}, parse_switch);
  config.packaged_archive = environment.packaged_archive;
  next(config.cache_limit, given.cache_limit, environment.cache_limit,
       {"WAVEJIT_CACHE_LIMIT", "cache_limit", cache::accepted_limits}, cache::parse_limit);
  next(config.cache_lock_wait, given.cache_lock_wait, environment.cache_lock_wait,
       {"WAVEJIT_CACHE_LOCK_WAIT", "cache_lock_wait", cache::accepted_lock_waits}, cache::parse_lock_wait);
  if (step) step = choose_remote(config, given.cache_remote, environment.cache_remote);
  next(config.cache_remote_key_file, given.cache_remote_key_file, environment.cache_remote_key_file,
       {"WAVEJIT_CACHE_REMOTE_KEY_FILE", "cache_remote_key_file", "an absolute path"}, parse_absolute_path);
  next(config.cache_remote_authorities, given.cache_remote_authorities, environment.cache_remote_authorities,
       {"WAVEJIT_CACHE_REMOTE_AUTHORITIES", "cache_remote_authorities", "an absolute path"}, parse_absolute_path);
  next(config.cache_remote_connect_timeout, given.cache_remote_connect_timeout,
       environment.cache_remote_connect_timeout,
       {"WAVEJIT_CACHE_REMOTE_CONNECT_TIMEOUT", "cache_remote_connect_timeout", cache::accepted_remote_timeouts},
       cache::parse_remote_timeout);
  next(config.cache_remote_timeout, given.cache_remote_timeout, environment.cache_remote_timeout,
       {"WAVEJIT_CACHE_REMOTE_TIMEOUT", "cache_remote_timeout", cache::accepted_remote_timeouts},
       cache::parse_remote_timeout);
  next(config.lowering, given.lowering, environment.lowering, {"WAVEJIT_LOWERING", "lowering", "llvm, comgr"},
       parse_lowering);
  next(config.compile, given.compile, environment.compile, {"WAVEJIT_COMPILE", "compile", "inprocess, isolated"},
       parse_compile);
  next(config.output_store, given.output_store, environment.output_store,
       {"WAVEJIT_O_STORE", "output_store", "auto, permlane, scalar"}, parse_output_store);
  const Result<std::string> pipeline = take_pinned(given.pipeline, config.pinned);
  if (step && !pipeline) step = std::unexpected(pipeline.error());
  next(config.pipeline, pipeline ? pipeline->c_str() : nullptr, environment.pipeline,
       {"WAVEJIT_PIPELINE", "pipeline", accepted_pipelines}, parse_pipeline);
  next(config.stagger, given.stagger, environment.stagger, {"WAVEJIT_STAGGER", "stagger", "on, off"}, parse_switch);
  next(config.setprio, given.setprio, environment.setprio, {"WAVEJIT_SETPRIO", "setprio", "on, off"}, parse_switch);
  next(config.lazy_rescale, given.lazy_rescale, environment.lazy_rescale,
       {"WAVEJIT_LAZY_RESCALE", "lazy_rescale", "on, off"}, parse_switch);
  next(config.xcd_swizzle, given.xcd_swizzle, environment.xcd_swizzle,
       {"WAVEJIT_XCD_SWIZZLE", "xcd_swizzle", "auto, on, off"}, parse_automatic_switch);
  next(config.kv_splits, given.kv_splits, environment.kv_splits, {"WAVEJIT_KV_SPLITS", "kv_splits", "auto, 1 to 65535"},
       parse_splits);
  next(config.log_level, given.log_level, environment.log_level,
       {"WAVEJIT_LOG_LEVEL", "log_level", "off, error, warning, info, debug"}, parse_log_level);
  next(config.miss_log, given.miss_log, environment.miss_log, {"WAVEJIT_MISS_LOG", "miss_log", "a path"},
       [](std::string_view path) { return std::optional(std::string(path)); });
  config.hooks = {.on_compile = given.on_compile,
                  .on_compile_context = given.on_compile_context,
                  .allocate = given.allocate,
                  .release = given.release,
                  .allocator_context = given.allocator_context,
                  .on_log = given.on_log,
                  .on_log_context = given.on_log_context};
  if (step && (given.allocate == nullptr) != (given.release == nullptr)) {
    step =
        fail(WAVEJIT_INVALID_ARGUMENT, std::string("options.") + (given.allocate == nullptr ? "allocate" : "release") +
                                           " = null beside the other; accepted: both allocate and release, or neither");
  }
  if (step) step = choose_cache_directory(config, given.cache_directory, environment);
  if (!step) return std::unexpected(std::move(step.error()));
  return config;
}

Logger::Sink log_sink(const Config& config) {
  if (config.hooks.on_log == nullptr) return {};
  return [tell = config.hooks.on_log, context = config.hooks.on_log_context](LogLevel level, std::string_view line) {
    tell(context, static_cast<std::int32_t>(level), std::string(line).c_str());
  };
}

families::Toggles toggles_of(const Config& config) {
  return {.output_store = config.output_store.value,
          .lowering = config.lowering.value,
          .pipeline = config.pipeline.value,
          .stagger = config.stagger.value,
          .raised_priority = config.setprio.value,
          .tile_queries = config.pinned.tile_queries,
          .paired_tiles = config.pinned.paired_tiles,
          .ladder = config.pinned.ladder,
          .lazy_rescale = config.lazy_rescale.value,
          .xcd_swizzle = config.xcd_swizzle.value,
          .kv_splits = config.kv_splits.value};
}

std::vector<std::string> describe(const Config& config) {
  const auto line = [](std::string_view name, std::string_view value, Provenance from, const char* variable) {
    return std::string(name) + "=" + std::string(value) + " (" + from_text(from, variable) + ")";
  };
  const auto& store = config.output_store.value;
  const auto& pipeline = config.pipeline.value;
  const auto& swizzle = config.xcd_swizzle.value;
  const auto& splits = config.kv_splits.value;
  const auto& remote = config.cache_remote.value;
  const std::string& key_file = config.cache_remote_key_file.value;
  const std::string& authorities = config.cache_remote_authorities.value;
  std::string layers;
  for (const std::string& layer : config.cache_layers.value) layers += (layers.empty() ? "" : ":") + layer;
  const auto switch_text = [](bool on) { return on ? "on" : "off"; };
  return {
      line("device", to_text(config.device.value), config.device.from, "WAVEJIT_DEVICE"),
      line("cache_directory", config.cache_directory.value, config.cache_directory.from, "WAVEJIT_CACHE_DIR"),
      line("cache_mode", cache::to_text(config.cache_mode.value), config.cache_mode.from, "WAVEJIT_CACHE"),
      line("cache_layers", layers, config.cache_layers.from, "WAVEJIT_CACHE_LAYERS"),
      line("cache_packaged",
           switch_text(config.cache_packaged.value) +
               (config.packaged_archive.empty() ? std::string(", none is there") : ", " + config.packaged_archive),
           config.cache_packaged.from, "WAVEJIT_CACHE_PACKAGED"),
      line("cache_limit", cache::limit_text(config.cache_limit.value), config.cache_limit.from, "WAVEJIT_CACHE_LIMIT"),
      line("cache_lock_wait", std::to_string(config.cache_lock_wait.value / 1'000'000), config.cache_lock_wait.from,
           "WAVEJIT_CACHE_LOCK_WAIT"),
      line("cache_remote", remote ? cache::to_text(*remote) : "none", config.cache_remote.from, "WAVEJIT_CACHE_REMOTE"),
      line("cache_remote_key_file", key_file.empty() ? "none" : key_file, config.cache_remote_key_file.from,
           "WAVEJIT_CACHE_REMOTE_KEY_FILE"),
      line("cache_remote_authorities", authorities.empty() ? "the system's" : authorities,
           config.cache_remote_authorities.from, "WAVEJIT_CACHE_REMOTE_AUTHORITIES"),
      line("cache_remote_connect_timeout", std::to_string(config.cache_remote_connect_timeout.value / 1'000'000),
           config.cache_remote_connect_timeout.from, "WAVEJIT_CACHE_REMOTE_CONNECT_TIMEOUT"),
      line("cache_remote_timeout", std::to_string(config.cache_remote_timeout.value / 1'000'000),
           config.cache_remote_timeout.from, "WAVEJIT_CACHE_REMOTE_TIMEOUT"),
      line("lowering", to_text(config.lowering.value), config.lowering.from, "WAVEJIT_LOWERING"),
      line("compile", to_text(config.compile.value), config.compile.from, "WAVEJIT_COMPILE"),
      line("output_store", store ? to_text(*store) : "auto", config.output_store.from, "WAVEJIT_O_STORE"),
      line("pipeline", std::string(pipeline ? to_text(*pipeline) : "auto") + to_text(config.pinned),
           config.pipeline.from, "WAVEJIT_PIPELINE"),
      line("stagger", switch_text(config.stagger.value), config.stagger.from, "WAVEJIT_STAGGER"),
      line("setprio", switch_text(config.setprio.value), config.setprio.from, "WAVEJIT_SETPRIO"),
      line("lazy_rescale", switch_text(config.lazy_rescale.value), config.lazy_rescale.from, "WAVEJIT_LAZY_RESCALE"),
      line("xcd_swizzle", swizzle ? switch_text(*swizzle) : "auto", config.xcd_swizzle.from, "WAVEJIT_XCD_SWIZZLE"),
      line("kv_splits", splits ? std::to_string(*splits) : "auto", config.kv_splits.from, "WAVEJIT_KV_SPLITS"),
      line("miss_log", config.miss_log.value.empty() ? "none" : config.miss_log.value, config.miss_log.from,
           "WAVEJIT_MISS_LOG"),
      line("log_level", to_text(config.log_level.value), config.log_level.from, "WAVEJIT_LOG_LEVEL"),
  };
}

}  // namespace wavejit::runtime
