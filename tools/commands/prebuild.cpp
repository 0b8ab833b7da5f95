// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// prebuild: fill the cache ahead of time, with neither a GPU nor HIP on the machine; or say whether it is filled.
#include "wavejit/prebuild.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "tools/commands/commands.h"
#include "tools/commands/prebuild_lines.h"
#include "tools/descriptor_list.h"
#include "tools/engine_options.h"
#include "tools/families.h"
#include "tools/presets.h"
#include "tools/progress.h"
#include "tools/refused_lines.h"
#include "tools/served_options.h"
#include "tools/targets.h"

namespace wavejit::tools {

namespace {

// A name that ends so is written as an archive, any other as a folder.
constexpr std::string_view archive_suffix = ".wavejit-archive";

struct Arguments {
  EngineOptions engine;
  std::string targets;
  PrebuildSources sources;
  std::string shard;
  std::string output;
  std::string kv;
  std::int32_t jobs = 0;
  bool verify = false;
  bool on_device = false;
  bool list_presets = false;
  bool print_list = false;

  bool archive() const { return output.ends_with(archive_suffix); }
};

// A name with an ending that is not there was hardly meant as a folder: out.zip, served.archive. kernels-1.2 was.
std::string problem_of_output(const std::string& given) {
  if (given.empty()) return "'' is not accepted; a path is";
  const std::filesystem::path path(given);
  const std::string ending = path.extension().string();
  std::error_code none;
  const bool letters = ending.size() > 1 && std::ranges::all_of(ending.substr(1), [](unsigned char c) {
                         return std::isalpha(c) != 0 || c == '-' || c == '_';
                       });
  if (!letters || ending == archive_suffix || std::filesystem::is_directory(path, none)) return {};
  return fmt::format("'{0}' is not accepted; {1}{2} is an archive, {0}/ a folder", given,
                     (path.parent_path() / path.stem()).string(), archive_suffix);
}

struct Run {
  Run(const std::vector<PrebuildLine>& list, bool only_verify) : lines(list), verify(only_verify) {}

  const std::vector<PrebuildLine>& lines;
  bool verify;
  std::optional<Progress> progress{std::in_place, "kernels"};
  wavejit_prebuild_list_progress last{};
  RefusedLines refused;
  bool refused_are_told = false;
  std::set<std::size_t> left_out;  // lines of presets that a target has no kernel for
  bool only_left_out = true;       // no other line was refused

  // Everything else was built, and is there.
  bool has_all_but_left_out() const { return last.failed == 0 && last.total > 0 && only_left_out && !left_out.empty(); }

  // Once all lines have been looked at. With nothing to build, the failure at the end says the first.
  void tell_refused(std::uint64_t done, std::uint64_t total) {
    if (std::exchange(refused_are_told, true)) return;
    const std::vector<std::string> texts = refused.texts();
    for (std::size_t i = total == 0 ? 1 : 0; i < texts.size(); ++i)
      progress->update(done, total, (only_left_out && total != 0 ? "left out " : "refused  ") + texts[i], true);
  }

  void take(const wavejit_prebuild_list_progress& now) {
    if (now.descriptor != nullptr) {
      const PrebuildLine& line = lines[now.line];
      refused.add(line.place, now.target == nullptr ? "" : now.target, now.failure + meant_family(line.text));
      if (line.of_preset && now.target != nullptr) {
        left_out.insert(now.line);
      } else {
        only_left_out = false;
      }
      last = now;
      return;
    }
    tell_refused(now.done, now.total);
    std::string event;
    if (now.failure != nullptr) {
      // When verifying, the failure names the kernel itself.
      event = verify ? fmt::format("missing  {}", now.failure)
                     : fmt::format("failed   {}: {}", now.kernel_spec, now.failure);
    } else if (now.kernel_spec != nullptr) {
      event = fmt::format("{}{}",
                          verify                         ? "good     "
                          : now.compiled > last.compiled ? "compiled "
                          : now.copied > last.copied     ? "copied   "
                                                         : "present  ",
                          now.kernel_spec);
    }
    last = now;
    progress->update(now.done, now.total, event, now.failure != nullptr, verify ? 0 : now.present + now.copied);
  }
};

std::string summary(const Arguments& arguments, const Run& run, double seconds) {
  const wavejit_prebuild_list_progress& last = run.last;
  std::string text = fmt::format("{} kernel{}: ", last.total, last.total == 1 ? "" : "s");
  if (arguments.verify) {
    text += fmt::format("{} there and good, {} missing or broken", last.present, last.failed);
  } else {
    text += fmt::format("{} compiled, ", last.compiled);
    if (!arguments.output.empty() && !arguments.archive())
      text += fmt::format("{} copied from the cache, ", last.copied);
    text += fmt::format("{} already there, {} failed", last.present, last.failed);
  }
  if (last.refused > 0) text += fmt::format(", {} line{} without a kernel", last.refused, last.refused == 1 ? "" : "s");
  return text + fmt::format(", in {:.1f} s\n", seconds);
}

// What has just been written.
std::string size_text(const std::string& path) {
  std::error_code error;
  const std::uintmax_t bytes = std::filesystem::file_size(path, error);
  return error ? error.message() : fmt::format("{} bytes", bytes);
}

// The targets that were named, in the table's order where all were.
std::vector<std::string> targets_of(const std::string& given) {
  if (given == "all") return known_targets();
  return separated(given);
}

Result<ExitCode> print_presets() {
  const auto presets = find_presets();
  if (!presets) return std::unexpected(presets.error());
  std::size_t width = 0;
  for (const Preset& preset : *presets) width = std::max(width, preset.name.size());
  for (const Preset& preset : *presets) fmt::print("{:<{}}  {}\n", preset.name, width, preset.title);
  return ExitCode::ok;
}

Result<ExitCode> run_list(const Arguments& arguments, const std::vector<PrebuildLine>& lines) {
  std::vector<const char*> descriptors;
  descriptors.reserve(lines.size());
  for (const PrebuildLine& line : lines) descriptors.push_back(line.text.c_str());
  const Shard shard = parse_shard(arguments.shard).value_or(Shard{});
  const wavejit_engine_options options = arguments.engine.options();
  wavejit_prebuild_arguments request{};
  request.size = sizeof request;
  request.descriptors = descriptors.empty() ? nullptr : descriptors.data();
  request.count = descriptors.size();
  request.targets = arguments.targets.empty() ? nullptr : arguments.targets.c_str();
  request.mode = !arguments.verify     ? WAVEJIT_PREBUILD_COMPILE
                 : arguments.on_device ? WAVEJIT_PREBUILD_VERIFY_ON_DEVICE
                                       : WAVEJIT_PREBUILD_VERIFY;
  request.jobs = arguments.jobs;
  request.shard = shard.part;
  request.shards = shard.parts;
  request.output = arguments.output.empty() ? nullptr : arguments.output.c_str();
  request.archive = arguments.archive() ? 1 : 0;

  const auto started = std::chrono::steady_clock::now();
  Run run(lines, arguments.verify);
  const auto take = [](void* context, const wavejit_prebuild_list_progress* progress) {
    static_cast<Run*>(context)->take(*progress);
  };
  const auto done = checked(wavejit_prebuild_list(&options, &request, take, &run));
  run.tell_refused(run.last.done, run.last.total);
  run.progress.reset();
  // A request that was refused before any kernel has nothing to sum up.
  if (!done && run.last.total == 0 && run.last.refused == 0) return std::unexpected(done.error());
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  if (done || run.last.total > 0) fmt::print("{}", summary(arguments, run, seconds));
  if (done) {
    if (arguments.archive() && !arguments.verify)
      fmt::print("written {}: {}\n", arguments.output, size_text(arguments.output));
    else if (!arguments.output.empty() && !arguments.verify)
      fmt::print("written {}: a folder that serves as a layer\n", arguments.output);
    return ExitCode::ok;
  }
  if (run.has_all_but_left_out()) {
    if (!arguments.archive() || arguments.verify) return ExitCode::ok;
    // An archive holds the whole of a list: of this one, without them. Of several targets each lacks other lines.
    if (!arguments.targets.contains(',')) {
      std::vector<PrebuildLine> rest;
      for (std::size_t i = 0; i < lines.size(); ++i)
        if (!run.left_out.contains(i)) rest.push_back(lines[i]);
      return run_list(arguments, rest);
    }
  }
  if (run.last.failed > 0)
    return failed(arguments.verify ? ExitCode::check_failed : done.error().code, done.error().what);
  if (run.last.refused == 0) return std::unexpected(done.error());
  const std::string unwritten =
      arguments.archive() && !arguments.verify ? fmt::format("; {} is not written", arguments.output) : "";
  const std::vector<std::string> refused = run.refused.texts();
  return failed(done.error().code,
                fmt::format("{} of the list{} no kernel{}: {}{}",
                            run.last.refused == 1 ? "1 line" : fmt::format("{} lines", run.last.refused),
                            run.last.refused == 1 ? " has" : " have", refused.size() == 1 ? "" : ", the first",
                            refused.front(), unwritten));
}

// Formats are a target's own, so that each target has a list of its own.
Result<ExitCode> prebuild_in_8_bits(const Arguments& arguments, const std::vector<PrebuildLine>& lines) {
  if (arguments.targets.empty())
    return failed(ExitCode::usage, "--kv: formats of 8 bits are a target's; accepted with --target: all, " +
                                       joined(targets_that_run(), ","));
  const std::vector<std::string> targets = targets_of(arguments.targets);
  if (targets.size() > 1 && arguments.archive() && !arguments.print_list)
    return failed(ExitCode::usage,
                  fmt::format("--kv {}: an archive holds the list of one target; accepted with one --target, or with a "
                              "folder as --output",
                              arguments.kv));
  for (const std::string& target : targets) {
    Arguments of_target = arguments;
    of_target.targets = target;
    const std::vector<PrebuildLine> changed = in_8_bits(lines, arguments.kv, target);
    if (arguments.print_list) {
      for (const PrebuildLine& line : changed) fmt::print("{}\n", line.text);
      continue;
    }
    if (targets.size() > 1) fmt::print("{}: ", target);
    if (const auto done = run_list(of_target, changed); !done || *done != ExitCode::ok) return done;
  }
  return ExitCode::ok;
}

Result<ExitCode> prebuild(const Arguments& arguments) {
  if (arguments.list_presets) return print_presets();
  auto lines = gather_lines(arguments.sources);
  if (!lines) return std::unexpected(lines.error());
  if (!arguments.kv.empty() && lines->empty())
    return failed(ExitCode::usage,
                  "--kv: there are no lines to change; accepted with descriptors, --list, --model or --preset");
  if (arguments.kv == kv_integers)
    *lines = in_8_bits(std::move(*lines), arguments.kv, {});
  else if (!arguments.kv.empty())
    return prebuild_in_8_bits(arguments, *lines);
  if (arguments.print_list) {
    if (lines->empty())
      return failed(
          ExitCode::usage,
          "--print-list: there are no lines to print; accepted with descriptors, --list, --model or --preset");
    for (const PrebuildLine& line : *lines) fmt::print("{}\n", line.text);
    return ExitCode::ok;
  }
  if (arguments.on_device && !arguments.verify) {
    return failed(ExitCode::usage,
                  "--device: prebuild compiles without a device; accepted with --verify, to load each kernel there");
  }
  if (arguments.targets.empty() && !arguments.on_device)
    return failed(ExitCode::usage, "--target is required; all, or targets separated by commas, are accepted: " +
                                       joined(targets_that_run(), ","));
  return run_list(arguments, *lines);
}

void add_choice_of_kernels(CLI::App& command, Arguments& arguments) {
  command
      .add_option(
          "descriptors", arguments.sources.descriptors,
          "problem descriptors, quoted (default: all that calls without windows, modifiers and pages reach, and "
          "gradients with windows)")
      ->type_name("DESCRIPTOR");
  command
      .add_option("--target", arguments.targets,
                  "all (those that all families have kernels for), or targets separated by commas: " +
                      joined(targets_that_run(), ","))
      ->type_name("TARGET,...");
  command
      .add_option("--preset", arguments.sources.presets,
                  "the calls of a model that --list-presets names; several times")
      ->allow_extra_args(false)
      ->type_name("NAME");
  command
      .add_option(
          "--model", arguments.sources.models,
          "the calls of a model, from its config.json: a folder, or that file; several times. Prints what it read")
      ->allow_extra_args(false)
      ->type_name("FOLDER");
  add_served(command, arguments.sources.served);
  command
      .add_option("--list", arguments.sources.lists,
                  "a file with one descriptor a line, # for comments, or a running engine's miss log; - is standard "
                  "input; several times")
      ->allow_extra_args(false)
      ->type_name("FILE");
  limit(command.add_option(
            "--kv", arguments.kv,
            "keys and values of these lines in 8 bits, as caches of engines have them. fp8: e4m3 as each "
            "target reads it; int8: integers, on every target; fp8_ds_mla: as fp8, and those of latent "
            "attention in rows of 656 (584) bytes, which have their scales. Other scales are arguments of "
            "a call and change no kernel but those of tokens (cache_scales=token). Queries in 8 bits, too, "
            "are words of a line: queries=e4m3, qk=i8"),
        "fp8|int8|fp8_ds_mla", [](const std::string& given) {
          return given == kv_floats || given == kv_integers || given == kv_rows_with_scales
                     ? std::string()
                     : fmt::format("'{}' is not accepted; {}, {} and {} are", given, kv_floats, kv_integers,
                                   kv_rows_with_scales);
        });
  limit(
      command.add_option("--shard", arguments.shard,
                         "part P of N of the kernels, for several machines: the parts share none and are together all"),
      "P/N", [](const std::string& given) {
        return parse_shard(given) ? std::string() : fmt::format("'{}' is not accepted; {} are", given, accepted_shards);
      });
  command.add_flag("--list-presets", arguments.list_presets, "print the presets and build nothing");
  command.add_flag("--print-list", arguments.print_list, "print the descriptors and build nothing");
}

constexpr const char* footer =
    "Needs neither a GPU nor HIP. Kernels that are already there are left alone: an interrupted run goes on where it\n"
    "was, and two at once share the work. A kernel is built once, however many lines lead to it. A line without a kernel\n"
    "is told with its number, with those that have its reason, and the others are built; "
    "the exit code is then 2 (it is no descriptor) or 4 (not\n"
    "supported).\n\n"
    "With --output kernels are compiled into the cache as without, and copied from there. A folder serves as a layer. An\n"
    "archive is written when every line's kernels are there, whole or not at all.\n\n"
    "--verify compiles and writes nothing. It looks in the cache, or in --output if given. Exit code 0: every kernel of\n"
    "every line is there and good; 1: one is missing or broken. Of each it checks the file's owner and kind, checksum,\n"
    "key text and target, as before every load; then the code object: an ELF file of the target that has the kernel, its\n"
    "segments inside the file. With --device each is loaded there too. What a GPU's driver would say of a kernel, only a\n"
    "GPU's driver knows.\n\n"
    "Examples\n"
    "  wavejit prebuild --target {1},{2}\n"
    "  wavejit prebuild --target {2} --preset llama-3-8b --preset gpt-oss --jobs 4\n"
    "  wavejit prebuild --target {2} \"{0}\"\n"
    "  wavejit prebuild --target {2} --list misses.txt --output served.wavejit-archive\n"
    "  wavejit prebuild --target {2} --list misses.txt --output served.wavejit-archive --verify --device sim:{2}\n"
    "  wavejit prebuild --target {2} --model ~/models/Qwen3-8B --tp 2 --kv fp8 --output served.wavejit-archive\n"
    "  wavejit prebuild --target {1} --preset mistral-7b --shard 2/8 --output /srv/kernels\n"
    "  wavejit prebuild --preset qwen3-8b --print-list | sed s/bf16/fp16/ | wavejit prebuild --target {2} --list -";

}  // namespace

void add_prebuild(CLI::App& program, Chosen& chosen) {
  const auto arguments = std::make_shared<Arguments>();
  const ExampleTargets targets = example_targets();
  CLI::App* command = program.add_subcommand("prebuild", "Compile kernels into the disk cache ahead of time");
  add_choice_of_kernels(*command, *arguments);
  limit_count(command->add_option("--jobs,-j", arguments->jobs, "compiles at a time, 0 for all cores (default: 0)"),
              9999);
  limit(
      command->add_option("--output", arguments->output,
                          "a folder, or an archive NAME.wavejit-archive, that gets what the list needs from the cache"),
      "PATH", problem_of_output);
  command->add_flag("--verify", arguments->verify,
                    "build nothing, say whether everything is there and good; with --device, that it loads");
  arguments->engine.add_device(*command);
  command->get_option("--device")
      ->description("with --verify: load each kernel on hip, hip:<ordinal> or a simulated GPU, sim:" + targets.last);
  arguments->engine.add_cache(*command);
  arguments->engine.add_cache_remote(*command);
  arguments->engine.add_compiler(*command);
  arguments->engine.add_log_level(*command);
  command->footer(fmt::format(fmt::runtime(footer), all_families().front()->example(), targets.first, targets.last));
  command->callback([&chosen, arguments, command] {
    arguments->on_device = command->count("--device") > 0;
    chosen = [arguments] { return prebuild(*arguments); };
  });
}

}  // namespace wavejit::tools
