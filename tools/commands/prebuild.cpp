// prebuild: fill the cache ahead of time, with neither a GPU nor HIP on the machine.
#include <fmt/format.h>

#include <chrono>
#include <cstdint>
#include <fstream>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tools/commands/commands.h"
#include "tools/engine_options.h"
#include "tools/progress.h"

namespace wavejit::tools {

namespace {

struct Arguments {
  EngineOptions engine;
  std::string targets;
  std::string list;
  std::vector<std::string> descriptors;
  std::int32_t jobs = 0;
};

// One descriptor a line; blank lines and what follows a '#' are for people.
Result<void> read_list(const std::string& path, std::vector<std::string>& descriptors) {
  std::ifstream file;
  if (path != "-") {
    file.open(path);
    if (!file)
      return failed(
          ExitCode::file,
          fmt::format("--list {}: cannot open it; a text file with one descriptor a line, or -, is accepted", path));
  }
  std::istream& lines = path == "-" ? std::cin : file;
  std::string line;
  while (std::getline(lines, line)) {
    line = line.substr(0, line.find('#'));
    const std::size_t first = line.find_first_not_of(" \t\r");
    if (first == std::string::npos) continue;
    descriptors.push_back(line.substr(first, line.find_last_not_of(" \t\r") - first + 1));
  }
  if (lines.bad()) return failed(ExitCode::file, fmt::format("--list {}: cannot read it", path));
  return {};
}

struct Run {
  std::optional<Progress> progress{std::in_place, "kernels"};
  std::uint64_t total = 0;
  std::uint64_t compiled = 0;
  std::uint64_t present = 0;
  std::uint64_t failures = 0;

  void take(const wavejit_prebuild_progress& now) {
    std::string event;
    if (now.kernel_spec != nullptr) {
      if (now.failure != nullptr) {
        event = fmt::format("failed   {}: {}", now.kernel_spec, now.failure);
      } else {
        event = fmt::format("{} {}", now.compiled > compiled ? "compiled" : "present ", now.kernel_spec);
      }
    }
    total = now.total;
    compiled = now.compiled;
    present = now.present;
    failures = now.failed;
    progress->update(now.done, now.total, event, now.failure != nullptr);
  }
};

Result<ExitCode> prebuild(Arguments& arguments) {
  std::vector<std::string> descriptors = arguments.descriptors;
  if (!arguments.list.empty()) {
    if (auto read = read_list(arguments.list, descriptors); !read) return std::unexpected(read.error());
    if (descriptors.empty()) {
      return failed(ExitCode::usage,
                    fmt::format("--list {}: it has no descriptors; leave it out to build every supported kernel",
                                arguments.list));
    }
  }
  std::vector<const char*> pointers;
  pointers.reserve(descriptors.size());
  for (const std::string& descriptor : descriptors) pointers.push_back(descriptor.c_str());

  const auto started = std::chrono::steady_clock::now();
  Run totals;
  const wavejit_engine_options options = arguments.engine.options();
  const auto take = [](void* context, const wavejit_prebuild_progress* progress) {
    static_cast<Run*>(context)->take(*progress);
  };
  const auto done = checked(wavejit_prebuild(&options, pointers.empty() ? nullptr : pointers.data(), pointers.size(),
                                             arguments.targets.c_str(), arguments.jobs, take, &totals));
  totals.progress.reset();
  // A request that was refused before any kernel has nothing to sum up.
  if (totals.total == 0 && !done) return std::unexpected(done.error());
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  fmt::print("{} kernel{}: {} compiled, {} already there, {} failed, in {:.1f} s\n", totals.total,
             totals.total == 1 ? "" : "s", totals.compiled, totals.present, totals.failures, seconds);
  if (!done) return std::unexpected(done.error());
  return ExitCode::ok;
}

}  // namespace

void add_prebuild(CLI::App& program, Chosen& chosen) {
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* command = program.add_subcommand("prebuild", "Compile kernels into the disk cache ahead of time");
  command
      ->add_option("descriptors", arguments->descriptors,
                   "problem descriptors, quoted (default: all that is supported)")
      ->type_name("DESCRIPTOR");
  command->add_option("--target", arguments->targets, "targets, separated by commas: gfx942,gfx950")
      ->required()
      ->type_name("TARGET,…");
  command
      ->add_option("--list", arguments->list, "a file with one descriptor a line, # for comments; - is standard input")
      ->type_name("FILE");
  limit_count(command->add_option("--jobs,-j", arguments->jobs, "compiles at a time, 0 for all cores (default: 0)"),
              9999);
  arguments->engine.add_cache(*command);
  arguments->engine.add_cache_remote(*command);
  arguments->engine.add_compiler(*command);
  arguments->engine.add_log_level(*command);
  command->footer(
      "Needs neither a GPU nor HIP. Kernels that are already there are left alone; an interrupted run goes on where it "
      "was.\n\n"
      "Examples\n"
      "  wavejit prebuild --target gfx942,gfx950\n"
      "  wavejit prebuild --target gfx950 \"attention_forward bf16 b1 q1 k1 h64/8 d128 causal\"\n"
      "  wavejit prebuild --target gfx950 --list served.txt --cache-dir /srv/kernels --jobs 4");
  command->callback([&chosen, arguments] { chosen = [arguments] { return prebuild(*arguments); }; });
}

}  // namespace wavejit::tools
