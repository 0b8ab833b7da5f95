// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/settings/config.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <expected>
#include <initializer_list>
#include <type_traits>
#include <utility>

#include "cache/directory.h"
#include "families/call/struct_size.h"
#include "families/call/words.h"
#include "runtime/settings/options.h"
#include "runtime/settings/packaged_kernels.h"
#include "runtime/settings/variables.h"

namespace wavejit::runtime {
namespace {

using families::Lowering;
using families::max_splits;

// What an option's row fills: how its texts are chosen from, what was chosen in text, and who said it.
struct Row {
  Option option;
  Result<void> (*choose)(Config&, const OptionRow&, const Texts&);
  std::string (*told)(const Config&);
  Provenance (*from)(const Config&);
};

// Why a text was not taken: most parsers only know that they do not know it.
template <typename T>
std::string_view reason(const std::optional<T>&) {
  return "not known";
}
template <typename T, typename Text>
std::string_view reason(const std::expected<T, Text>& value) {
  return value.error();
}

// Picks the text that counts. Both get the same words; who wrote them decides what a wrong one does.
template <auto setting, auto read>
Result<void> choose(Config& config, const OptionRow& row, const Texts& texts) {
  if (texts.option != nullptr && *texts.option != '\0') {
    auto value = read(std::string_view(texts.option));
    if (!value) {
      return fail(WAVEJIT_INVALID_ARGUMENT, std::string("options.") + row.name + " = \"" + texts.option + "\" is " +
                                                std::string(reason(value)) + "; accepted: " + row.values);
    }
    config.*setting = {*std::move(value), Provenance::option};
    return {};
  }
  if (texts.variable != nullptr && *texts.variable != '\0') {
    auto value = read(std::string_view(texts.variable));
    if (value) {
      config.*setting = {*std::move(value), Provenance::environment};
    } else {
      config.warnings.push_back(std::string(row.variable) + "=" + texts.variable + " is " + std::string(reason(value)) +
                                " and ignored; accepted: " + row.values);
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

std::optional<bool> parse_switch(std::string_view text) {
  if (text == "on") return true;
  if (text == "off") return false;
  return std::nullopt;
}

std::optional<std::optional<std::int32_t>> parse_splits(std::string_view text) {
  if (text == "auto") return std::optional<std::int32_t>{};
  const auto count = families::whole_number(text);
  if (!count || *count < 1 || *count > max_splits) return std::nullopt;
  return static_cast<std::int32_t>(*count);
}

Result<void> choose_device(Config& config, const OptionRow& row, const Texts& texts) {
  const bool from_option = texts.option != nullptr && *texts.option != '\0';
  const char* text = from_option ? texts.option : texts.variable;
  if (text == nullptr || *text == '\0') return {};
  auto choice = parse_device(text);
  if (!choice) {
    return fail(WAVEJIT_NO_DEVICE, (from_option ? std::string("options.") + row.name : std::string(row.variable)) +
                                       " = \"" + text + "\" names no device; " + choice.error());
  }
  config.device = {*std::move(choice), from_option ? Provenance::option : Provenance::environment};
  return {};
}

// The text is never repeated: it may hold a password.
Result<void> choose_remote(Config& config, const OptionRow& row, const Texts& texts) {
  const bool from_option = texts.option != nullptr && *texts.option != '\0';
  const char* text = from_option ? texts.option : texts.variable;
  if (text == nullptr || *text == '\0') return {};
  auto address = cache::parse_remote(text);
  if (address) {
    config.cache_remote = {*std::move(address), from_option ? Provenance::option : Provenance::environment};
    return {};
  }
  const std::string problem = " is no address of a remote layer: " + address.error() + "; accepted: " + row.values;
  if (from_option) return fail(WAVEJIT_INVALID_ARGUMENT, std::string("options.") + row.name + problem);
  config.warnings.push_back(row.variable + problem + ". It is ignored");
  return {};
}

std::optional<std::string> parse_absolute_path(std::string_view path) {
  if (!path.starts_with('/')) return std::nullopt;
  return std::string(path);
}

std::optional<std::string> parse_path(std::string_view path) { return std::string(path); }

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

std::string text_of(bool on) { return on ? "on" : "off"; }
std::string text_of(const std::string& text) { return text.empty() ? "none" : text; }
std::string text_of(std::int32_t number) { return std::to_string(number); }
std::string milliseconds(std::int64_t nanoseconds) { return std::to_string(nanoseconds / 1'000'000); }
template <typename T>
std::string text_of(const T& word)
  requires std::is_enum_v<T>
{
  return std::string(to_text(word));
}
template <typename T>
std::string text_of(const std::optional<T>& chosen) {
  return chosen ? text_of(*chosen) : "auto";
}

template <auto setting>
std::string told(const Config& config) {
  return text_of((config.*setting).value);
}
template <auto setting>
Provenance from(const Config& config) {
  return (config.*setting).from;
}
template <auto setting, auto read>
constexpr Row row(Option option, std::string (*in_text)(const Config&) = told<setting>) {
  return {option, choose<setting, read>, in_text, from<setting>};
}

// Every option, in the order in which `explain` tells them.
constexpr std::array rows = {
    Row{Option::device, choose_device, [](const Config& c) { return to_text(c.device.value); }, from<&Config::device>},
    row<&Config::cache_mode, cache::parse_mode>(
        Option::cache_mode, [](const Config& c) { return std::string(cache::to_text(c.cache_mode.value)); }),
    row<&Config::cache_directory, parse_path>(Option::cache_directory,
                                              [](const Config& c) { return c.cache_directory.value; }),
    row<&Config::cache_layers, cache::parse_layers>(Option::cache_layers,
                                                    [](const Config& c) {
                                                      std::string layers;
                                                      for (const std::string& layer : c.cache_layers.value)
                                                        layers += (layers.empty() ? "" : ":") + layer;
                                                      return layers;
                                                    }),
    row<&Config::cache_packaged, parse_switch>(Option::cache_packaged,
                                               [](const Config& c) {
                                                 return text_of(c.cache_packaged.value) + ", " +
                                                        (c.packaged_archive.empty() ? "none is there"
                                                                                    : c.packaged_archive);
                                               }),
    row<&Config::cache_limit, cache::parse_limit>(
        Option::cache_limit, [](const Config& c) { return cache::limit_text(c.cache_limit.value); }),
    row<&Config::cache_lock_wait, cache::parse_lock_wait>(
        Option::cache_lock_wait, [](const Config& c) { return milliseconds(c.cache_lock_wait.value); }),
    Row{Option::cache_remote, choose_remote,
        [](const Config& c) { return c.cache_remote.value ? cache::to_text(*c.cache_remote.value) : "none"; },
        from<&Config::cache_remote>},
    row<&Config::cache_remote_key_file, parse_absolute_path>(Option::cache_remote_key_file),
    row<&Config::cache_remote_authorities, parse_absolute_path>(Option::cache_remote_authorities,
                                                                [](const Config& c) {
                                                                  const std::string& file =
                                                                      c.cache_remote_authorities.value;
                                                                  return file.empty() ? std::string("the system's")
                                                                                      : file;
                                                                }),
    row<&Config::cache_remote_connect_timeout, cache::parse_remote_timeout>(
        Option::cache_remote_connect_timeout,
        [](const Config& c) { return milliseconds(c.cache_remote_connect_timeout.value); }),
    row<&Config::cache_remote_timeout, cache::parse_remote_timeout>(
        Option::cache_remote_timeout, [](const Config& c) { return milliseconds(c.cache_remote_timeout.value); }),
    row<&Config::lowering, parse_lowering>(Option::lowering),
    row<&Config::compile, parse_compile>(Option::compile),
    row<&Config::pipeline, parse_pipeline>(Option::pipeline, [](const Config& c) { return to_text(c.pipeline.value); }),
    row<&Config::kv_splits, parse_splits>(Option::kv_splits),
    row<&Config::miss_log, parse_path>(Option::miss_log),
    row<&Config::log_level, parse_log_level>(Option::log_level),
};
static_assert([] {
  std::array<int, option_rows.size()> told_of{};
  for (const Row& each : rows) ++told_of[static_cast<std::size_t>(each.option)];
  return std::ranges::all_of(told_of, [](int times) { return times == 1; });
}());

// Resolved from what was chosen; a process without a home still computes: it only compiles more often.
Result<void> resolve_cache_directory(Config& config, const Environment& environment) {
  const bool chosen = config.cache_directory.from != Provenance::standard;
  auto directory = cache::resolve_directory({.directory = chosen ? config.cache_directory.value.c_str() : nullptr,
                                             .xdg_cache_home = environment.xdg_cache_home,
                                             .home = environment.home});
  if (!directory && config.cache_directory.from == Provenance::option)
    return fail(WAVEJIT_INVALID_ARGUMENT, "options.cache_directory: " + directory.error());
  if (!directory && config.cache_mode.value != cache::Mode::off)
    config.warnings.push_back("no disk cache: " + directory.error() + ". Kernels compiled here stay in this process");
  config.cache_directory.value = directory ? *std::move(directory) : std::string();
  return {};
}

// Without a cache no layer is asked. One caller who gives both contradicts itself, and would compile under load what it
// thinks prebuilt. Where a variable of the environment turns the other off it is told, and so is a remote layer, which
// no call counts on.
Result<void> check_layers_are_asked(Config& config) {
  if (config.cache_mode.value != cache::Mode::off) return {};
  const auto tell = [&config](const std::string& name) {
    config.warnings.push_back("cache_mode is off: nothing asks " + name + ". ro and rw do");
  };
  if (!config.cache_layers.value.empty()) {
    if (config.cache_layers.from == Provenance::option && config.cache_mode.from == Provenance::option)
      return fail(WAVEJIT_INVALID_ARGUMENT,
                  "options.cache_mode = off beside cache_layers, which nothing asks then; "
                  "accepted: ro and rw, or off without cache_layers");
    tell("cache_layers");
  }
  if (config.cache_remote.value) tell("cache_remote");
  return {};
}

// Variables that are not of an option.
struct Variable {
  const char* name;
  const char* Environment::* text;
};
constexpr std::array other_variables = {Variable{"XDG_CACHE_HOME", &Environment::xdg_cache_home},
                                        Variable{"HOME", &Environment::home}};

const auto& names_of_variables() {
  static constexpr auto names = [] {
    std::array<std::string_view, option_rows.size()> all;
    std::ranges::transform(option_rows, all.begin(), &OptionRow::variable);
    return all;
  }();
  return names;
}

}  // namespace

std::string_view to_text(CompileMode mode) { return mode == CompileMode::isolated ? "isolated" : "inprocess"; }

const Environment& process_environment() {
  // secure_getenv: a set-uid program must not write its cache where its caller says.
  static const auto read = [] {
    Environment environment;
    const auto copy = [](const char* name) {
      const char* text = ::secure_getenv(name);
      return text == nullptr ? nullptr : ::strdup(text);
    };
    for (const OptionRow& row : option_rows) environment.*row.text = copy(row.variable);
    for (const Variable& variable : other_variables) environment.*variable.text = copy(variable.name);
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
    if (auto size = families::check_struct_size(*options, "options"); !size)
      return std::unexpected(std::move(size.error()));
    given = *options;
  }
  Config config;
  for (const std::string& name : environment.strangers)
    config.warnings.push_back(warning_of(name, names_of_variables()));
  config.cache_limit.value = cache::standard_limit_bytes;
  config.packaged_archive = environment.packaged_archive;
  Result<void> step;
  for (const Row& each : rows) {
    const OptionRow& option = option_row(each.option);
    if (step) step = each.choose(config, option, {.option = given.*option.field, .variable = environment.*option.text});
  }
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
  if (step) step = check_layers_are_asked(config);
  if (step) step = resolve_cache_directory(config, environment);
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
  const PipelineWords& words = config.pipeline.value;
  std::string pins = words.name == option_row(Option::pipeline).standard ? "" : "pipeline=" + words.name;
  if (!words.pinned.empty()) pins += (pins.empty() ? "" : " ") + words.pinned;
  return {.lowering = config.lowering.value,
          .pins = std::move(pins),
          .ways = words.ways,
          .lazy_rescale = words.lazy_rescale,
          .xcd_swizzle = words.xcd_swizzle,
          .kv_splits = config.kv_splits.value};
}

std::vector<std::string> describe(const Config& config) {
  std::vector<std::string> lines;
  lines.reserve(rows.size());
  for (const Row& each : rows) {
    const OptionRow& option = option_row(each.option);
    lines.push_back(std::string(option.name) + "=" + each.told(config) + " (" +
                    from_text(each.from(config), option.variable) + ")");
  }
  return lines;
}

}  // namespace wavejit::runtime
