// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "simgpu/process/config.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <format>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "simgpu/process/check.h"
#include "simgpu/process/clock_config.h"
#include "simgpu/process/device_names.h"
#include "simgpu/process/process.h"
#include "simgpu/process/queue_config.h"
#include "vocabulary/nearest_word.h"

namespace wavejit::simgpu {
namespace {

// A device of this kind exists when nothing names another one: the widest target.
constexpr std::string_view default_target = "gfx950";

// For values without which a program's good end would mean nothing. No destructors run: those of the program may call
// this library, which is still being made.
[[noreturn]] void refuse(std::string_view variable, std::string_view value, std::string_view accepted) {
  const std::string line =
      std::format("wavejit_simgpu: {}='{}' is not understood; it takes {}\n", variable, value, accepted);
  static_cast<void>(std::fwrite(line.data(), 1, line.size(), stderr));
  static_cast<void>(std::fflush(nullptr));
  constexpr int usage_error = 2;
  std::_Exit(usage_error);
}

void warn(std::string_view variable, std::string_view value, std::string_view accepted, std::string_view kept) {
  const std::string line = std::format("wavejit_simgpu: {}='{}' is not understood; it takes {}; using {}\n", variable,
                                       value, accepted, kept);
  static_cast<void>(std::fwrite(line.data(), 1, line.size(), stderr));
}

void read_device(Config& config) {
  config.device_target = default_target;
  config.device_count = 1;
  const auto use = [&](const NamedDevices& named) {
    config.device_target = named.target;
    config.device_count = named.count;
    config.device_is_named = true;
  };
  const std::string accepted = accepted_devices();
  const std::string kept = std::format("sim:{}", default_target);
  constexpr std::string_view simulated = "sim:";
  const char* text = ::secure_getenv("WAVEJIT_DEVICE");
  // "hip" names the real library; a program that loads this one all the same gets the devices of WAVEJIT_SIM_TARGET.
  if (text != nullptr && *text != 0 && std::string_view(text) != "hip") {
    const std::string_view value = text;
    const auto named =
        value.starts_with(simulated) ? devices_named(value.substr(simulated.size())) : std::optional<NamedDevices>();
    if (named) return use(*named);
    return warn("WAVEJIT_DEVICE", text, std::format("sim:<target>[xN[:<ordinal>]] with {}", accepted), kept);
  }
  text = ::secure_getenv("WAVEJIT_SIM_TARGET");
  if (text == nullptr || *text == 0) return;
  const auto named = devices_named(text);
  if (named && !named->ordinal) return use(*named);
  warn("WAVEJIT_SIM_TARGET", text, std::format("<target>[xN] with {}", accepted), kept);
}

void read_number(const char* variable, std::uint64_t lowest, std::uint64_t highest, std::string_view kept, auto& into) {
  const char* text = ::secure_getenv(variable);
  if (text == nullptr || *text == 0) return;
  const auto value = number_in(text);
  if (value && *value >= lowest && *value <= highest) {
    into = static_cast<std::remove_reference_t<decltype(into)>>(*value);
  } else {
    warn(variable, text, std::format("a number from {} to {}", lowest, highest), kept);
  }
}

// "all", "none" or names of checks with commas between them.
std::optional<std::uint32_t> checks_named(std::string_view list) {
  if (list == "none") return 0;
  std::uint32_t checks = 0;
  while (true) {
    const std::size_t comma = list.find(',');
    const std::string_view name = list.substr(0, comma);
    if (name == "all") {
      checks |= all_checks;
    } else {
      const auto* found = std::ranges::find(named_checks, name, &NamedCheck::name);
      if (found == named_checks.end()) return std::nullopt;
      checks |= static_cast<std::uint32_t>(found->check);
    }
    if (comma == std::string_view::npos) return checks;
    list.remove_prefix(comma + 1);
  }
}

// " (did you mean 'races'?)" of a list with "race", by its first name that is none.
std::string meant_check(std::string_view list) {
  std::array<std::string_view, named_checks.size()> names;
  std::ranges::transform(named_checks, names.begin(), &NamedCheck::name);
  for (std::size_t at = 0; at <= list.size();) {
    const std::size_t end = std::min(list.find(',', at), list.size());
    const std::string_view name = list.substr(at, end - at);
    at = end + 1;
    if (std::ranges::contains(names, name)) continue;
    if (std::string meant = vocabulary::did_you_mean(name, names); !meant.empty()) return meant;
  }
  return {};
}

std::string names_of_checks() {
  std::string names;
  for (const NamedCheck& named : named_checks) names += std::format("{}{}", names.empty() ? "" : ", ", named.name);
  return names;
}

void read_checks(Settings& settings) {
  if (const char* text = ::secure_getenv("WAVEJIT_SIM_CHECK"); text != nullptr && *text != 0) {
    if (const auto checks = checks_named(text)) {
      settings.checks = *checks;
    } else {
      refuse("WAVEJIT_SIM_CHECK", text,
             std::format("all, none or a list of {} with commas between them{}", names_of_checks(), meant_check(text)));
    }
  }
  // A missing wait shows best when results come as late as they may.
  if (includes(settings.checks, Check::waits)) settings.arrival = Arrival::late;
  if (settings.schedule == Schedule::timed) settings.arrival = Arrival::timed;
  if (const char* text = ::secure_getenv("WAVEJIT_SIM_ARRIVAL"); text != nullptr && *text != 0) {
    const std::string_view value = text;
    if (value == "early") {
      settings.arrival = Arrival::early;
    } else if (value == "late") {
      settings.arrival = Arrival::late;
    } else if (value == "random") {
      settings.arrival = Arrival::random;
    } else if (value == "unordered") {
      settings.arrival = Arrival::unordered;
    } else {
      warn("WAVEJIT_SIM_ARRIVAL", value, "early, late, random or unordered",
           settings.arrival == Arrival::late ? "late" : "early");
    }
  }
}

void read_rules(Settings& settings) {
  const char* text = ::secure_getenv("WAVEJIT_SIM_RULES");
  if (text == nullptr || *text == 0) return;
  const std::string_view value = text;
  if (value == "strict") {
    settings.rules = Rules::strict;
  } else if (value != "compiler") {
    refuse("WAVEJIT_SIM_RULES", value, "compiler or strict");
  }
}

void read_ignored(Config& config) {
  const char* text = ::secure_getenv("WAVEJIT_SIM_IGNORE");
  if (text == nullptr || *text == 0) return;
  auto ignored = ignored_findings(text);
  if (ignored) {
    config.ignored = std::move(*ignored);
    return;
  }
  refuse("WAVEJIT_SIM_IGNORE", text,
         std::format("a list of {} or all, each with the kernels meant where not all are (bounds:Cijk_*), "
                     "with commas between them",
                     names_of_checks()));
}

void read_engine(Settings& settings) {
  if (const char* text = ::secure_getenv("WAVEJIT_SIM_ENGINE"); text != nullptr && *text != 0) {
    const std::string_view value = text;
    if (value == "interpret") {
      settings.engine = Engine::interpret;
    } else if (value == "compile") {
      settings.engine = Engine::compile;
    } else {
      warn("WAVEJIT_SIM_ENGINE", value, "interpret or compile", "interpret");
    }
  }
  std::uint64_t after = settings.translate_after;
  read_number("WAVEJIT_SIM_TRANSLATE_AFTER", 0, 1'000'000'000, "1000", after);
  settings.translate_after = static_cast<std::uint32_t>(after);
}

// "seeded:7" is 7; "seeded" alone takes the seed of everything else. Nothing for other words.
std::optional<std::uint64_t> seed_of(std::string_view value, const Settings& settings) {
  constexpr std::string_view word = "seeded";
  if (value == word) return settings.seed;
  if (!value.starts_with(word) || value[word.size()] != ':') return std::nullopt;
  return number_in(value.substr(word.size() + 1));
}

void read_arithmetic(Settings& settings) {
  if (const char* text = ::secure_getenv("WAVEJIT_SIM_MATRIX"); text != nullptr && *text != 0) {
    const std::string_view value = text;
    if (const auto seed = seed_of(value, settings)) {
      settings.matrix = MatrixSums::seeded;
      settings.matrix_seed = *seed;
    } else if (value == "cdna3") {
      settings.matrix = MatrixSums::cdna3;
    } else if (value != "sequential") {
      refuse("WAVEJIT_SIM_MATRIX", value, "sequential, cdna3, seeded or seeded:<number>");
    }
  }
  if (const char* text = ::secure_getenv("WAVEJIT_SIM_TRANSCENDENTALS"); text != nullptr && *text != 0) {
    const std::string_view value = text;
    if (const auto seed = seed_of(value, settings)) {
      settings.transcendentals = Transcendentals::seeded;
      settings.transcendentals_seed = *seed;
    } else if (value != "nearest") {
      refuse("WAVEJIT_SIM_TRANSCENDENTALS", value, "nearest, seeded or seeded:<number>");
    }
  }
}

void read_clock(Config& config) {
  // The workgroups of a launch that the clock looks at, as many as the tools ask for (tools/simulated_gpu.h).
  constexpr std::uint32_t sampled = 16;
  if (const char* text = ::secure_getenv("WAVEJIT_SIM_CYCLES"); text != nullptr && *text != 0) {
    const std::string_view value = text;
    if (value == "on") {
      config.clock_sample = sampled;
    } else if (value != "off") {
      warn("WAVEJIT_SIM_CYCLES", value, "on or off", "off");
    }
  }
}

// Every "%p" becomes the number of the process.
std::string with_process_number(std::string path) {
  for (std::size_t at = path.find("%p"); at != std::string::npos; at = path.find("%p", at)) {
    path.replace(at, 2, std::to_string(::getpid()));
  }
  return path;
}

void read_patience(Config& config) {
  auto seconds = static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::seconds>(config.patience).count());
  constexpr std::uint64_t most_seconds = 1'000'000;
  read_number("WAVEJIT_SIM_QUEUE_PATIENCE", 0, most_seconds, std::format("{} seconds", seconds), seconds);
  config.patience = std::chrono::seconds(seconds);
}

void read_report(Config& config) {
  if (const char* text = ::secure_getenv("WAVEJIT_SIM_REPORT"); text != nullptr && *text != 0) {
    std::error_code error;
    const std::filesystem::path path = std::filesystem::absolute(with_process_number(text), error);
    if (error || path.filename().empty() || !std::filesystem::is_directory(path.parent_path(), error)) {
      refuse("WAVEJIT_SIM_REPORT", text, "a file in a folder that exists");
    }
    config.report = path.string();
  }
  if (const char* text = ::secure_getenv("WAVEJIT_SIM_SUMMARY"); text != nullptr && *text != 0) {
    const std::string_view value = text;
    if (value == "on") {
      config.summary = Summary::on;
    } else if (value == "findings") {
      config.summary = Summary::findings;
    } else if (value != "off") {
      warn("WAVEJIT_SIM_SUMMARY", value, "off, findings or on", "off");
    }
  }
}

}  // namespace

QueueConfig read_queue_config() {
  const Config& config = Process::instance().config();
  std::uint64_t nanoseconds = 0;
  constexpr std::uint64_t most = 1'000'000'000;
  read_number("WAVEJIT_SIM_EVENT_COST", 0, most, "0 ns", nanoseconds);
  return {.patience = config.patience,
          .simulated_time = config.clock_sample != 0,
          .event_cost = std::chrono::nanoseconds(nanoseconds)};
}

ClockConfig read_clock_config() {
  ClockConfig config;
  if (const char* text = ::secure_getenv("WAVEJIT_SIM_WARM"); text != nullptr && *text != 0) {
    const std::string_view value = text;
    config.warm = value == "on";
    if (value != "on" && value != "off") warn("WAVEJIT_SIM_WARM", value, "on or off", "off");
  }
  return config;
}

Config read_config() {
  Config config;
  read_device(config);
  if (const char* text = ::secure_getenv("WAVEJIT_SIM_SCHEDULE"); text != nullptr && *text != 0) {
    const std::string_view value = text;
    if (value == "in_order") {
      config.settings.schedule = Schedule::in_order;
    } else if (value == "reverse") {
      config.settings.schedule = Schedule::reverse;
    } else if (value == "random") {
      config.settings.schedule = Schedule::random;
    } else if (value == "timed") {
      config.settings.schedule = Schedule::timed;
    } else {
      warn("WAVEJIT_SIM_SCHEDULE", value, "in_order, reverse, random or timed", "in_order");
    }
    config.order_is_open = false;
  }
  read_number("WAVEJIT_SIM_SEED", 0, ~std::uint64_t{0}, "1", config.settings.seed);
  read_number("WAVEJIT_SIM_THREADS", 0, 1024, "0 (all cores)", config.settings.threads);
  read_number("WAVEJIT_SIM_INSTRUCTION_LIMIT", 1, ~std::uint64_t{0} >> 1, "2^33", config.settings.instruction_limit);
  read_checks(config.settings);
  read_rules(config.settings);
  read_ignored(config);
  if (config.settings.checks != 0 || config.settings.arrival != Arrival::early) config.order_is_open = false;
  read_engine(config.settings);
  read_arithmetic(config.settings);
  read_clock(config);
  read_patience(config);
  read_report(config);
  return config;
}

std::string read_model_topology() {
  const char* folder = ::secure_getenv("HSA_MODEL_TOPOLOGY");
  return folder == nullptr ? "" : folder;
}

}  // namespace wavejit::simgpu
