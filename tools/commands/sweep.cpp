// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sweep: many problems, each against float64, on one device.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <memory>
#include <optional>
#include <regex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tools/commands/commands.h"
#include "tools/descriptor_list.h"
#include "tools/device_array.h"
#include "tools/engine_options.h"
#include "tools/families.h"
#include "tools/progress.h"
#include "tools/row_file.h"
#include "tools/simulated_gpu.h"
#include "tools/sweep/list.h"
#include "tools/sweep/outcome_text.h"
#include "tools/sweep/run_case.h"
#include "tools/targets.h"

namespace wavejit::tools {

namespace {

// The words of --limits.
constexpr std::string_view own = "own";
constexpr std::string_view rocmlir = "rocmlir";

struct Arguments {
  EngineOptions engine;
  std::string list;
  std::vector<std::string> descriptors;
  std::vector<std::string> pipelines;
  std::vector<std::string> schedules;
  std::vector<std::string> limits;
  bool check = false;
  std::string filter;
  std::string up_to_keys;
  std::string beyond_keys;
  std::string shard;
  std::string csv;
  std::string sample = "2e9";
  std::string memory_budget;
  bool print_list = false;
  bool require_all = false;
  bool json = false;
};

template <typename Number>
std::optional<Number> parse_number(const std::string& text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return value;
}

std::optional<double> parse_sample(const std::string& text) {
  if (text == "all") return INFINITY;
  const auto value = parse_number<double>(text);
  return value && *value > 0 ? value : std::nullopt;
}

// "in_order", "reverse", "random", "unordered" (at random, and LDS DMA in any order), each with a seed of its own unless
// ":<seed>" says another.
std::optional<sweep::Schedule> parse_schedule(const std::string& text) {
  const std::size_t colon = text.find(':');
  const std::string order = text.substr(0, colon);
  std::optional<std::uint64_t> seed;
  if (colon != std::string::npos) {
    seed = parse_number<std::uint64_t>(text.substr(colon + 1));
    if (!seed) return std::nullopt;
  }
  for (const auto& [name, value, usual] :
       {std::tuple("in_order", WAVEJIT_SIMGPU_IN_ORDER, 1), std::tuple("reverse", WAVEJIT_SIMGPU_REVERSE, 2),
        std::tuple("random", WAVEJIT_SIMGPU_RANDOM, 3), std::tuple("unordered", WAVEJIT_SIMGPU_RANDOM, 4)}) {
    if (order != name) continue;
    const auto arrival = order == "unordered" ? std::optional(WAVEJIT_SIMGPU_ARRIVES_UNORDERED) : std::nullopt;
    return sweep::Schedule{
        .order = value, .arrival = arrival, .seed = seed.value_or(static_cast<std::uint64_t>(usual)), .text = text};
  }
  return std::nullopt;
}

// Bytes: "24G", "512M", "1000000".
std::optional<std::uint64_t> parse_bytes(std::string text) {
  int shift = 0;
  for (const auto& [suffix, bits] : {std::pair('K', 10), std::pair('M', 20), std::pair('G', 30)}) {
    if (!text.ends_with(suffix)) continue;
    shift = bits;
    text.pop_back();
    break;
  }
  const auto value = parse_number<std::uint64_t>(text);
  if (!value || *value == 0 || *value > std::uint64_t{1} << (62 - shift)) return std::nullopt;
  return *value << shift;
}

std::uint64_t half_of_memory() {
  return static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)) /
         2;
}

Result<std::vector<Line>> lines_of(const Arguments& arguments) {
  std::vector<Line> lines;
  if (!arguments.list.empty()) {
    auto read = read_list(arguments.list);
    if (!read) return read;
    lines = std::move(*read);
    if (lines.empty())
      return failed(
          ExitCode::usage,
          fmt::format("--list {}: it has no descriptors; leave it out to run the published list", arguments.list));
  }
  for (const std::string& descriptor : arguments.descriptors)
    lines.push_back({.number = lines.size() + 1, .text = descriptor});
  if (lines.empty()) lines = sweep::usual_list();
  return lines;
}

// What the options leave of the lines; a line that cannot be read is told whatever they say.
sweep::Cases chosen_cases(const Arguments& arguments, const std::vector<Line>& lines) {
  sweep::Cases cases = sweep::parse_lines(lines);
  const std::regex filter(arguments.filter);
  const auto unwanted = [&](const std::string& text) { return !std::regex_search(text, filter); };
  const auto most = parse_number<std::int64_t>(arguments.up_to_keys);
  const auto least = parse_number<std::int64_t>(arguments.beyond_keys);
  std::erase_if(cases.unsupported, [&](const sweep::Refused& line) { return unwanted(line.text); });
  std::erase_if(cases.good, [&](const sweep::Entry& which) {
    return unwanted(which.problem->text()) || (most && which.problem->keys() > *most) ||
           (least && which.problem->keys() <= *least);
  });
  if (const auto shard = parse_shard(arguments.shard)) {
    // Neighbours differ least: dealt like cards, every part costs about the same.
    const auto part = static_cast<std::size_t>(shard->part - 1);
    const auto parts = static_cast<std::size_t>(shard->parts);
    const auto keep = [&](auto& items) {
      std::size_t index = 0;
      std::erase_if(items, [&](const auto&) { return index++ % parts != part; });
    };
    keep(cases.good);
    keep(cases.unsupported);
  }
  return cases;
}

using Engines = std::vector<std::unique_ptr<wavejit_engine, DestroyEngine>>;

Result<Engines> make_engines(const Arguments& arguments, sweep::Settings& settings) {
  Engines engines;
  std::vector<std::string> names = arguments.pipelines;
  if (names.empty()) names.emplace_back();
  for (const std::string& name : names) {
    wavejit_engine_options options = arguments.engine.options();
    if (!name.empty()) options.pipeline = name.c_str();
    wavejit_engine* engine = nullptr;
    if (auto created = checked(wavejit_engine_create(&options, &engine)); !created)
      return std::unexpected(created.error());
    engines.emplace_back(engine);
    settings.pipelines.push_back({.name = name.empty() ? "default" : name, .engine = engine});
  }
  return engines;
}

// Nothing was compared: no line says that all is well.
bool nothing_ran(const sweep::Report& report) {
  return report.count(sweep::Verdict::set_aside) > 0 &&
         report.count(sweep::Verdict::set_aside) == report.outcomes.size();
}

Result<ExitCode> exit_code_of(const Arguments& arguments, const sweep::Report& report) {
  if (report.count(sweep::Verdict::failed) > 0) return ExitCode::check_failed;
  if (!report.bad.empty()) return ExitCode::usage;
  if (nothing_ran(report)) {
    const std::size_t aside = report.outcomes.size();
    return failed(ExitCode::unsupported,
                  fmt::format("nothing ran: {} of {} problem{} {} set aside, the first: {}: {}", aside, aside,
                              aside == 1 ? "" : "s", aside == 1 ? "is" : "are", report.outcomes.front().descriptor,
                              report.outcomes.front().reason));
  }
  if (!arguments.require_all) return ExitCode::ok;
  // A kernel that ran for another pipeline has run.
  const std::size_t aside = report.count(sweep::Verdict::set_aside);
  const auto reasons = report.set_aside();
  const auto same = reasons.find(sweep::same_kernel);
  return aside == (same == reasons.end() ? 0 : same->second) ? ExitCode::ok : ExitCode::unsupported;
}

Result<ExitCode> sweep_problems(const Arguments& arguments) {
  const auto lines = lines_of(arguments);
  if (!lines) return std::unexpected(lines.error());
  const sweep::Cases cases = chosen_cases(arguments, *lines);
  if (arguments.print_list) {
    for (const sweep::Entry& which : cases.good) fmt::print("{}\n", which.problem->text());
    return cases.bad.empty() ? ExitCode::ok : ExitCode::usage;
  }
  // A part of a short list may be empty; what somebody asked for by name may not.
  if (cases.good.empty() && cases.unsupported.empty() && cases.bad.empty() && arguments.shard.empty()) {
    return failed(ExitCode::usage,
                  fmt::format("none of {} problem{} is left by --filter, --up-to-keys and --beyond-keys; --print-list "
                              "without them shows all",
                              lines->size(), lines->size() == 1 ? "" : "s"));
  }

  std::optional<RowFile> csv;
  if (!arguments.csv.empty()) {
    auto file = RowFile::open("csv", arguments.csv);
    if (!file) return std::unexpected(file.error());
    csv.emplace(std::move(*file));
  }

  sweep::Settings settings;
  const auto engines = make_engines(arguments, settings);
  if (!engines) return std::unexpected(engines.error());
  settings.simulated = SimulatedGpu::resident();
  settings.sample = *parse_sample(arguments.sample);
  settings.memory_budget = arguments.memory_budget.empty() ? half_of_memory() : *parse_bytes(arguments.memory_budget);
  for (const std::string& text : arguments.schedules) settings.schedules.push_back(*parse_schedule(text));
  settings.rocmlir_limits = std::ranges::contains(arguments.limits, rocmlir);
  settings.own_limits = arguments.limits.empty() || std::ranges::contains(arguments.limits, own);
  if (!settings.simulated && arguments.check) {
    return failed(ExitCode::usage, fmt::format("--check: {} is no simulated GPU; --device sim:<target> is accepted",
                                               wavejit_engine_device_name(engines->front().get())));
  }
  if (!settings.simulated && !settings.schedules.empty()) {
    return failed(ExitCode::usage,
                  fmt::format("--schedule {}: {} is no simulated GPU; --device sim:<target> is accepted",
                              arguments.schedules.front(), wavejit_engine_device_name(engines->front().get())));
  }

  if (arguments.check) {
    // Before any memory is allocated: what was not followed from its beginning is not followed at all.
    wavejit_simgpu_settings checked = settings.simulated->settings();
    checked.checks = WAVEJIT_SIMGPU_CHECK_ALL;
    checked.arrival = WAVEJIT_SIMGPU_ARRIVES_LATE;
    checked.rules = WAVEJIT_SIMGPU_RULES_STRICT;
    settings.simulated->set(checked);
  }

  const auto started = std::chrono::steady_clock::now();
  sweep::Report report;
  report.device_name = wavejit_engine_device_name(engines->front().get());
  report.target = wavejit_engine_target(engines->front().get());
  report.bad = cases.bad;
  report.rocmlir_limits = settings.rocmlir_limits;
  Result<void> told;  // of the first row that could not be written, which ends the sweep
  if (csv) told = csv->write(sweep::csv_header());
  const std::uint64_t total = cases.unsupported.size() + cases.good.size();
  std::uint64_t done = 0;
  {
    Progress progress("problems");
    for (const sweep::Refused& line : cases.bad)
      progress.update(0, total, fmt::format("line {}: {}", line.line, line.why.what), true);
    const auto take = [&](sweep::Outcome outcome) {
      progress.update(done, total, sweep::table_row(outcome), outcome.verdict == sweep::Verdict::failed);
      if (csv && told) told = csv->write(sweep::csv_row(outcome, report));
      report.outcomes.push_back(std::move(outcome));
    };
    for (const sweep::Refused& line : cases.unsupported) {
      ++done;
      take(sweep::refused_outcome(line));
    }
    for (const sweep::Entry& which : cases.good) {
      ++done;
      if (auto ran = sweep::run_case(which, settings, take); !ran) return std::unexpected(ran.error());
      if (!told) return std::unexpected(told.error());
    }
  }
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();

  if (arguments.json) {
    fmt::print("{}", sweep::to_json(report));
  } else {
    fmt::print("{}\n", sweep::table_header());
    for (const sweep::Outcome& outcome : report.outcomes) fmt::print("{}\n", sweep::table_row(outcome));
    fmt::print("{}", sweep::summary(report));
  }
  return exit_code_of(arguments, report);
}

template <typename Parse>
std::function<std::string(const std::string&)> judged_by(Parse parse, std::string accepted) {
  return [parse, accepted = std::move(accepted)](const std::string& given) {
    return parse(given) ? std::string() : fmt::format("'{}' is not accepted; {} are", given, accepted);
  };
}

std::string problem_of_filter(const std::string& given) {
  try {
    static_cast<void>(std::regex(given));
    return {};
  } catch (const std::regex_error& problem) {
    return fmt::format("'{}' is no regular expression ({}); ECMAScript's are accepted", given, problem.what());
  }
}

void add_choice_of_cases(CLI::App& command, Arguments& arguments) {
  command.add_option("descriptors", arguments.descriptors, "problem descriptors, quoted (default: the published list)")
      ->type_name("DESCRIPTOR");
  command
      .add_option("--list", arguments.list, "a file with one descriptor a line, # for comments; - is standard input")
      ->type_name("FILE");
  limit(command.add_option("--filter", arguments.filter, "only problems whose descriptor matches"), "REGEX",
        problem_of_filter);
  const auto count = judged_by(
      [](const std::string& text) {
        const auto value = parse_number<std::int64_t>(text);
        return value && *value >= 0;
      },
      "counts of keys, as 1025,");
  limit(command.add_option("--up-to-keys", arguments.up_to_keys, "only problems of at most N keys"), "N", count);
  limit(command.add_option("--beyond-keys", arguments.beyond_keys, "only problems of more keys"), "N", count);
  limit(command.add_option("--shard", arguments.shard, "part P of N of the problems, for running parts side by side"),
        "P/N", judged_by(parse_shard, accepted_shards));
  command.add_flag("--print-list", arguments.print_list, "print the descriptors and run nothing");
}

}  // namespace

void add_sweep(CLI::App& program, Chosen& chosen) {
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* command = program.add_subcommand("sweep", "Compare many problems with float64 on one device");
  add_choice_of_cases(*command, *arguments);
  arguments->engine.add_device(*command);
  command
      ->add_option(
          "--pipeline", arguments->pipelines,
          "auto, generic, dualwave, interleaved; may be given several times (default: $WAVEJIT_PIPELINE, then auto)")
      ->type_name("PIPELINE")
      ->allow_extra_args(false);
  limit(command
            ->add_option(
                "--schedule", arguments->schedules,
                "simulated GPU: in_order, reverse, random, unordered (at random, and LDS DMA lands in any order), each "
                "with :<seed> if you like; may be given several times, and the bits must be the same under all")
            ->allow_extra_args(false),
        "SCHEDULE", judged_by(parse_schedule, "in_order, reverse, random, unordered, each with :<seed> or without,"));
  limit(command
            ->add_option(
                "--limits", arguments->limits,
                "own: each element, row and LSE by itself; rocmlir: as its attention sweeps do, the RMS error of "
                "all elements in units of the largest, 0.005, of bf16 0.01, 0.15 where more than 64 dims have "
                "scale=1; both: one after the other (default: own)")
            ->allow_extra_args(false),
        "own|rocmlir", [](const std::string& given) {
          return given == own || given == rocmlir
                     ? std::string()
                     : fmt::format("'{}' is not accepted; {}, {} are", given, own, rocmlir);
        });
  command->add_flag(
      "--check", arguments->check,
      "simulated GPU: run under every check, with results as late as they may arrive; a report is a failure "
      "(default: as $WAVEJIT_SIM_CHECK says)");
  limit(command
            ->add_option("--sample", arguments->sample,
                         "a problem of up to NUMBER multiplications runs and is compared whole; of a longer one the "
                         "simulated GPU runs chosen workgroups worth that much; all: everything runs whole")
            ->capture_default_str(),
        "NUMBER", judged_by(parse_sample, "numbers above 0, as 2e9, and all"));
  limit(command->add_option("--memory-budget", arguments->memory_budget,
                            "problems that take more device memory are set aside (default: half of the host's memory)"),
        "BYTES[K|M|G]", judged_by(parse_bytes, "numbers of bytes, with K, M, G or without,"));
  command->add_option("--csv", arguments->csv, "write every figure to a file, row by row")->type_name("FILE.csv");
  command->add_flag("--json", arguments->json, "report for programs instead of the table");
  command->add_flag("--require-all", arguments->require_all,
                    "exit code 4 if any problem was set aside, unless its kernel ran for another pipeline");
  arguments->engine.add_cache(*command);
  arguments->engine.add_compiler(*command, false);
  arguments->engine.add_log_level(*command);
  const ExampleTargets targets = example_targets();
  command->footer(
      "Exit code 1: a problem failed; 2: a line of the list is no problem (the others ran); 4: all were set aside.\n"
      "A problem passes when every element, row and LSE is within its own bound of the exact answer, -inf and NaN stand\n"
      "where they belong, nothing is written outside, the simulated GPU reports nothing, and the bits are the same under\n"
      "every schedule and pipeline. docs/sweep.md has the bounds.\n\n"
      "Examples\n" +
      fmt::format(
          "  wavejit sweep --device sim:{1} --up-to-keys 1025 --csv sweep.csv\n"
          "  wavejit sweep --device sim:{0} --list served.txt --schedule in_order --schedule reverse --schedule random\n"
          "  wavejit sweep --device hip \"{2}\"",
          targets.first, targets.last, all_families().front()->example()));
  command->callback([&chosen, arguments] { chosen = [arguments] { return sweep_problems(*arguments); }; });
}

}  // namespace wavejit::tools
