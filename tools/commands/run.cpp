// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// run: one call of a family, from a user's arrays to arrays again, through the C ABI only.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "tools/commands/commands.h"
#include "tools/commands/run_report.h"
#include "tools/device_array.h"
#include "tools/engine_options.h"
#include "tools/families.h"
#include "tools/output_file.h"
#include "tools/simulated_gpu.h"
#include "vocabulary/nearest_word.h"

namespace wavejit::tools {

namespace {

struct Arguments {
  EngineOptions engine;
  std::string family;
  std::unique_ptr<ArrayCall> call;
  bool check = false;
  bool json = false;
  bool cycles = false;
  std::string timeline;
  int repeat = 0;
};

using Clock = std::chrono::steady_clock;

// Names and times the steps around the call.
class Steps {
 public:
  explicit Steps(RunReport& report) : report_(&report), last_(Clock::now()) {}
  void ended(const char* name) {
    const auto now = Clock::now();
    report_->steps.emplace_back(name, static_cast<std::uint64_t>(std::chrono::nanoseconds(now - last_).count()));
    last_ = now;
  }

 private:
  RunReport* report_;
  Clock::time_point last_;
};

struct Outputs {
  std::vector<NamedFile> names;  // the answer's arrays, then the timeline
  std::vector<OutputFile> files;
  bool timeline = false;
};

// The arrays would be gone with the first result.
Result<void> keep_inputs(const Arguments& arguments, const std::vector<NamedFile>& outputs) {
  for (const NamedFile& output : outputs) {
    for (const NamedFile& input : arguments.call->inputs()) {
      std::error_code none;
      if (output.path == input.path || std::filesystem::equivalent(output.path, input.path, none)) {
        return failed(ExitCode::usage, fmt::format("--{} {}: it is also --{}; another name is accepted", output.field,
                                                   output.path, input.field));
      }
    }
  }
  return {};
}

// An output that cannot be written costs no work.
Result<Outputs> open_outputs(const Arguments& arguments) {
  Outputs outputs{.names = arguments.call->outputs(), .files = {}, .timeline = !arguments.timeline.empty()};
  if (outputs.timeline) outputs.names.push_back({.field = "timeline", .path = arguments.timeline});
  if (auto kept = keep_inputs(arguments, outputs.names); !kept) return std::unexpected(kept.error());
  for (const NamedFile& name : outputs.names) {
    auto file = OutputFile::open(name.field, name.path);
    if (!file) return std::unexpected(file.error());
    for (std::size_t i = 0; i < outputs.files.size(); ++i) {
      if (file->path() != outputs.files[i].path() && name.path != outputs.names[i].path) continue;
      return failed(ExitCode::usage, fmt::format("--{} {}: it is also --{}; another name is accepted", name.field,
                                                 name.path, outputs.names[i].field));
    }
    outputs.files.push_back(std::move(*file));
  }
  return outputs;
}

// The arrays are written whole before any of them gets its name.
Result<void> write_outputs(const Arguments& arguments, const std::string& trace, std::uint64_t timeline_cycles,
                           Outputs& outputs, RunReport& report) {
  const std::vector<OutputArray> answers = arguments.call->answers();
  for (std::size_t i = 0; i < answers.size(); ++i)
    if (auto written = outputs.files[i].write(answers[i].bytes); !written) return written;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    if (auto done = outputs.files[i].commit(); !done) return done;
    report.written.push_back(fmt::format("{} {} float32", outputs.names[i].path, answers[i].shape));
  }
  if (!outputs.timeline) return {};
  if (auto done = outputs.files.back().finish(trace); !done) return done;
  report.written.push_back(fmt::format("{} a timeline of {} cycles", arguments.timeline, timeline_cycles));
  return {};
}

Result<void> repeat_calls(wavejit_engine* engine, ArrayCall& call, int count, RunReport& report) {
  std::vector<std::uint64_t> times;
  wavejit_call_report last{};
  last.size = sizeof last;
  for (int i = 0; i < count; ++i) {
    const bool final = i + 1 == count;
    const auto started = Clock::now();
    if (auto launched = call.launch(final ? &last : nullptr); !launched) return launched;
    times.push_back(static_cast<std::uint64_t>(std::chrono::nanoseconds(Clock::now() - started).count()));
    if (auto waited = checked(wavejit_device_synchronize(engine)); !waited) return waited;
    const auto same = call.fetch();
    if (!same) return std::unexpected(same.error());
    report.repeats_identical = report.repeats_identical && *same;
  }
  std::ranges::sort(times);
  report.repeats = count;
  report.median_repeat_ns = times[times.size() / 2];
  report.last_origin = origin_text(last.origin);
  return {};
}

// Why the clock did not time the call, of what it says.
std::string refusal_of(const std::string& cycles) {
  std::istringstream lines(cycles);
  for (std::string line; std::getline(lines, line);) {
    const auto launch = nlohmann::json::parse(line, nullptr, false);
    if (launch.is_object() && launch.contains("refused")) return launch["refused"].get<std::string>();
  }
  return "nothing was launched";
}

std::vector<std::string> runnable_families() {
  std::vector<std::string> names;
  for (const Family* family : all_families())
    if (family->make_call() != nullptr) names.emplace_back(family->name());
  return names;
}

// Before any option is judged: options are a family's own.
std::string problem_of_family(const std::string& given) {
  const std::vector<std::string> names = runnable_families();
  if (std::ranges::find(names, given) != names.end()) return {};
  const std::string more =
      find_family(given) == nullptr ? "" : " here, since it has no call over files (`wavejit sweep` runs its lines)";
  return fmt::format("family '{}' is not accepted{}{}", given, more, vocabulary::meant_or_list(given, names, {}));
}

// Ends before its engine, also after a failure.
struct ReleaseCall {
  explicit ReleaseCall(ArrayCall& of) : call(&of) {}
  ReleaseCall(const ReleaseCall&) = delete;
  ReleaseCall& operator=(const ReleaseCall&) = delete;
  ~ReleaseCall() { call->release(); }
  ArrayCall* call;
};

Result<ExitCode> run(Arguments& arguments) {
  ArrayCall& call = *arguments.call;
  RunReport report;
  Steps steps(report);

  if (auto read = call.read(report.notes); !read) return std::unexpected(read.error());
  auto outputs = open_outputs(arguments);
  if (!outputs) return std::unexpected(outputs.error());
  steps.ended("read");

  const wavejit_engine_options options = arguments.engine.options();
  wavejit_engine* raw_engine = nullptr;
  if (auto created = checked(wavejit_engine_create(&options, &raw_engine)); !created)
    return std::unexpected(created.error());
  const std::unique_ptr<wavejit_engine, DestroyEngine> engine(raw_engine);
  const ReleaseCall release(call);
  report.target = wavejit_engine_target(raw_engine);
  report.device_name = wavejit_engine_device_name(raw_engine);
  steps.ended("open device");
  std::optional<SimulatedGpu> clock;
  if (arguments.cycles || outputs->timeline) {
    clock = SimulatedGpu::resident();
    if (!clock) {
      return failed(ExitCode::usage, fmt::format("{}: {} is not simulated; --device sim:<target> is accepted",
                                                 arguments.cycles ? "--cycles" : "--timeline", report.device_name));
    }
  }

  if (auto ready = call.prepare(raw_engine); !ready) return std::unexpected(ready.error());
  steps.ended("copy in");

  report.call.size = sizeof report.call;
  constexpr std::uint64_t timeline_cycles = 8192;  // a few turns of a loop
  if (clock) {
    clock->set_clock(sampled_workgroups);
    clock->set_timeline(outputs->timeline ? timeline_cycles : 0);
  }
  if (auto launched = call.launch(&report.call); !launched) return std::unexpected(launched.error());
  steps.ended("call");
  if (auto waited = checked(wavejit_device_synchronize(raw_engine)); !waited) return std::unexpected(waited.error());
  std::string trace;
  if (clock) {
    clock->set_clock(0);
    report.cycles = clock->take_cycles();
    clock->set_timeline(0);
    trace = clock->take_timeline();
  }
  if (outputs->timeline && trace.empty()) {
    return failed(ExitCode::usage, fmt::format("--timeline {}: the call was not timed: {}", arguments.timeline,
                                               refusal_of(report.cycles)));
  }
  steps.ended("wait");
  if (const auto fetched = call.fetch(); !fetched) return std::unexpected(fetched.error());
  steps.ended("copy out");

  if (arguments.repeat > 0) {
    if (auto repeated = repeat_calls(raw_engine, call, arguments.repeat, report); !repeated)
      return std::unexpected(repeated.error());
    steps.ended("repeat");
  }
  if (arguments.check) {
    report.comparison = call.check();
    steps.ended("check");
  }
  if (auto written = write_outputs(arguments, trace, timeline_cycles, *outputs, report); !written)
    return std::unexpected(written.error());
  steps.ended("write");

  fmt::print("{}", arguments.json ? to_json(report) : to_text(report));
  return report.passed() ? ExitCode::ok : ExitCode::check_failed;
}

}  // namespace

void add_run(CLI::App& program, Chosen& chosen, const Family& family) {
  const auto arguments = std::make_shared<Arguments>();
  arguments->call = family.make_call();
  CLI::App* command =
      program.add_subcommand("run", "Compute one call on your arrays, and check the result if you like");
  limit(command->add_option("family", arguments->family, fmt::format("{}", fmt::join(runnable_families(), ", ")))
            ->required(),
        "FAMILY", problem_of_family);
  if (arguments->call != nullptr) arguments->call->add_options(*command);
  arguments->engine.add_device(*command);
  command->add_flag("--check", arguments->check,
                    "compare with the exact answer, in float64 on the host; exit code 1 beyond the bound");
  limit_count(command->add_option("--repeat", arguments->repeat, "call N more times, and compare the bits"), 999'999);
  command->add_flag("--cycles", arguments->cycles,
                    "also predict the cycles of the call, from a sample of its workgroups; simulated devices only");
  command
      ->add_option("--timeline", arguments->timeline,
                   "the same, and cycles of one compute unit for Perfetto or chrome://tracing")
      ->type_name("FILE.json");
  command->add_flag("--json", arguments->json, "report for programs instead of people");
  arguments->engine.add_cache(*command);
  arguments->engine.add_cache_remote(*command);
  arguments->engine.add_compiler(*command);
  arguments->engine.add_log_level(*command);
  std::string footer =
      "Arrays are NumPy's: numpy.save('q.npy', q) with float16 or float32, C or Fortran order. Outputs appear whole or "
      "not at all.\n";
  if (all_families().size() > 1)
    footer +=
        fmt::format("The options of {} are shown: `wavejit run <family> --help` shows another's.\n", family.name());
  footer += "\nExamples";
  for (const std::string& example : family.run_examples()) footer += "\n  wavejit run " + example;
  command->footer(footer);
  command->callback([&chosen, arguments] { chosen = [arguments] { return run(*arguments); }; });
}

}  // namespace wavejit::tools
