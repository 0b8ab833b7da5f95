// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// cache gc, pack, unpack, import, export, push, pull: what changes a cache or makes one to be shipped.
#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <system_error>

#include "tools/commands/commands.h"
#include "tools/engine_options.h"
#include "tools/targets.h"

namespace wavejit::tools {

namespace {

struct Arguments {
  EngineOptions engine;
  std::string from;
  std::string_view source;  // what `from` is
  std::string to;
  std::string targets;
  bool archive = false;
  int remote = WAVEJIT_CACHE_NO_REMOTE;
  bool any_age = false;
  bool json = false;
};

const char* given(const std::string& text) { return text.empty() ? nullptr : text.c_str(); }

std::string count(std::uint64_t number, std::string_view one, std::string_view many) {
  return fmt::format("{} {}", number, number == 1 ? one : many);
}

Result<ExitCode> collect(const Arguments& arguments) {
  const wavejit_engine_options options = arguments.engine.options();
  wavejit_cache_sweep_result result{};
  result.size = sizeof result;
  if (auto done = checked(wavejit_cache_sweep(&options, arguments.any_age ? 1 : 0, &result)); !done)
    return std::unexpected(done.error());
  if (arguments.json) {
    const nlohmann::json json = {{"entries", result.entries},
                                 {"bytes", result.bytes},
                                 {"evicted", result.evicted},
                                 {"evicted_bytes", result.evicted_bytes},
                                 {"leftovers_removed", result.leftovers_removed},
                                 {"failures", result.failures}};
    fmt::print("{}\n", json.dump(2));
  } else {
    fmt::print("{} evicted ({} bytes), {} removed; {} ({} bytes) stay\n", count(result.evicted, "entry", "entries"),
               result.evicted_bytes, count(result.leftovers_removed, "leftover", "leftovers"),
               count(result.entries - result.evicted, "entry", "entries"), result.bytes - result.evicted_bytes);
    if (result.failures != 0)
      fmt::print("{} could not be read or removed\n", count(result.failures, "file", "files and folders"));
  }
  return result.failures == 0 ? ExitCode::ok : ExitCode::check_failed;
}

// What was left behind, and why: the source looked at once more, entry by entry.
void print_damaged(const Arguments& arguments) {
  std::error_code none;
  std::string layer = arguments.from.empty() ? "" : std::filesystem::absolute(arguments.from, none).string();
  wavejit_engine_options options = arguments.engine.options();
  if (!layer.empty()) options.cache_layers = layer.c_str();
  const auto print = [](void* context, const wavejit_cache_entry* entry) {
    const auto& only = *static_cast<std::string*>(context);
    if (entry->damage != nullptr && (only.empty() || only == entry->layer))
      fmt::print("damaged  {}: {}\n", entry->path, entry->damage);
  };
  // What cannot be looked at again has been counted all the same.
  static_cast<void>(wavejit_cache_visit(&options, print, &layer));
}

// The others are one thing: from somewhere to somewhere.
Result<ExitCode> copy(const Arguments& arguments) {
  const wavejit_engine_options options = arguments.engine.options();
  const wavejit_cache_copy_arguments request = {.size = sizeof request,
                                                .from = given(arguments.from),
                                                .to = given(arguments.to),
                                                .targets = given(arguments.targets),
                                                .archive = arguments.archive ? 1 : 0,
                                                .remote = arguments.remote};
  wavejit_cache_copy_result result{};
  result.size = sizeof result;
  if (std::error_code none; !arguments.from.empty() && !std::filesystem::exists(arguments.from, none)) {
    return failed(ExitCode::file, fmt::format("{}: there is no such {}", arguments.from, arguments.source));
  }
  const auto done = checked(wavejit_cache_copy(&options, &request, &result));
  if (!done) return std::unexpected(done.error());
  if (arguments.json) {
    const nlohmann::json json = {
        {"copied", result.copied}, {"present", result.present}, {"damaged", result.damaged}, {"bytes", result.bytes}};
    fmt::print("{}\n", json.dump(2));
  } else {
    if (result.damaged > 0 && arguments.remote != WAVEJIT_CACHE_FROM_REMOTE) print_damaged(arguments);
    fmt::print("{} copied ({} bytes), {} already there, {} damaged and left behind\n",
               count(result.copied, "entry", "entries"), result.bytes, result.present, result.damaged);
  }
  return result.damaged == 0 ? ExitCode::ok : ExitCode::check_failed;
}

// One command: what is particular to it.
struct Command {
  const char* name;
  const char* summary;
  const char* footer;          // {0} and {1}: targets
  const char* from = nullptr;  // what the argument with the source is; null: the cache or the remote layer
  const char* to = nullptr;
  bool archive_from = false;  // the source is one archive
  bool archive_to = false;    // the target is one archive
  wavejit_cache_remote remote = WAVEJIT_CACHE_NO_REMOTE;
};

constexpr const char* layer_folder = "made if it is not there; entries that it has are left alone";

constexpr std::array<Command, 6> copies = {{
    {.name = "pack",
     .summary = "Write the cache's entries into one archive",
     .footer =
         "An archive is one file that serves as a read-only layer: WAVEJIT_CACHE_LAYERS=/path/to/it. The same\n"
         "entries give the same bytes. Exit code 1 when a damaged entry was left behind, 3 when there is nothing\n"
         "to pack: then an existing archive stays.\n\n"
         "Example\n  wavejit cache pack kernels.wavejit-archive --target {1}",
     .to = "the file to write; an existing one is replaced when the new one is whole",
     .archive_to = true},
    {.name = "unpack",
     .summary = "Write an archive's entries into a folder that serves as a layer",
     .footer = "Exit code 1 when a damaged entry was left behind.\n\n"
               "Example\n  wavejit cache unpack kernels.wavejit-archive /srv/kernels",
     .from = "the archive to read",
     .to = layer_folder,
     .archive_from = true},
    {.name = "import",
     .summary = "Copy the entries of a folder or an archive into the cache",
     .footer = "Each is verified on the way; entries that the cache has are left alone. Exit code 1 when a damaged\n"
               "entry was left behind.\n\n"
               "Example\n  wavejit cache import kernels.wavejit-archive",
     .from = "a folder of entries or an archive"},
    {.name = "export",
     .summary = "Copy the cache's entries into a folder that serves as a layer",
     .footer = "What is written may be read by everybody, unlike the cache itself. Exit code 1 when a damaged entry\n"
               "was left behind.\n\n"
               "Example\n  wavejit cache export /image/kernels --target {0},{1}",
     .to = layer_folder},
    {.name = "push",
     .summary = "Send the cache's entries, its layers' too, to the remote layer",
     .footer = "Each is sealed with the key and sent, also when the remote layer has it. Compiles do the same by\n"
               "themselves in the background; this is for what was prebuilt elsewhere. Exit code 1 when a damaged\n"
               "entry was left behind.\n\n"
               "Example\n  wavejit cache push --cache-remote redis://kernels.example:6379 \\\n"
               "      --cache-remote-key-file /etc/wavejit/remote.key --target {1}",
     .remote = WAVEJIT_CACHE_TO_REMOTE},
    {.name = "pull",
     .summary = "Fetch every entry of the remote layer into the cache",
     .footer = "Only entries of this key, each verified on the way; those that the cache has are left alone. Exit\n"
               "code 1 when a damaged entry was left behind.\n\n"
               "Example\n  wavejit cache pull --cache-remote redis://kernels.example:6379 \\\n"
               "      --cache-remote-key-file /etc/wavejit/remote.key --target {1}",
     .remote = WAVEJIT_CACHE_FROM_REMOTE},
}};

CLI::App* add_one(CLI::App& parent, Chosen& chosen, const std::shared_ptr<Arguments>& arguments, const char* name,
                  const char* summary, const char* footer, Result<ExitCode> (*action)(const Arguments&)) {
  CLI::App* command = parent.add_subcommand(name, summary);
  command->add_flag("--json", arguments->json, "for programs instead of people");
  arguments->engine.add_cache(*command);
  arguments->engine.add_log_level(*command);
  const ExampleTargets targets = example_targets();
  command->footer(fmt::format(fmt::runtime(footer), targets.first, targets.last));
  command->callback([&chosen, arguments, action] { chosen = [arguments, action] { return action(*arguments); }; });
  return command;
}

void add_path(CLI::App& command, const char* name, const char* type_name, std::string& path, const char* help) {
  command.add_option(name, path, help)->required()->type_name(type_name);
}

void add_copy(CLI::App& cache, Chosen& chosen, const Command& which) {
  const auto arguments = std::make_shared<Arguments>();
  arguments->archive = which.archive_to;
  arguments->remote = which.remote;
  arguments->source = which.archive_from ? "archive" : "folder or archive";
  CLI::App* command = add_one(cache, chosen, arguments, which.name, which.summary, which.footer, copy);
  if (which.from != nullptr && which.archive_from)
    add_path(*command, "archive", "ARCHIVE", arguments->from, which.from);
  if (which.from != nullptr && !which.archive_from) add_path(*command, "from", "PATH", arguments->from, which.from);
  if (which.to != nullptr && which.archive_to) add_path(*command, "archive", "ARCHIVE", arguments->to, which.to);
  if (which.to != nullptr && !which.archive_to) add_path(*command, "folder", "FOLDER", arguments->to, which.to);
  if (which.remote != WAVEJIT_CACHE_NO_REMOTE) arguments->engine.add_cache_remote(*command);
  command
      ->add_option("--target", arguments->targets,
                   fmt::format("only entries for these targets: {} (default: all)", joined(targets_that_run(), ",")))
      ->type_name("TARGET,...");
}

}  // namespace

void add_cache_transfer(CLI::App& cache, Chosen& chosen) {
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* command = add_one(
      cache, chosen, arguments, "gc", "Evict what was used longest ago until the cache keeps its limit",
      "The same happens in the background after a compile. Never touches layers, nor, without --any-age, what was\n"
      "published within the last minute. Also removes temporary files and locks of processes that were killed more\n"
      "than an hour ago. Exit code 1 when something could not be read or removed.\n\n"
      "Example\n  wavejit cache gc --cache-limit 256MiB",
      collect);
  arguments->engine.add_cache_limit(*command);
  command->add_flag("--any-age", arguments->any_age, "evict even what was published within the last minute");
  for (const Command& each : copies) add_copy(cache, chosen, each);
}

}  // namespace wavejit::tools
