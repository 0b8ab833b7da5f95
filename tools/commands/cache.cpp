// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// cache list, info, stats, verify: the disk cache as people and scripts want to see it.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <ctime>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "tools/commands/commands.h"
#include "tools/engine_options.h"

namespace wavejit::tools {

namespace {

struct Row {
  std::string layer;
  std::string path;
  std::string key;
  std::string key_text;
  std::string target;
  std::string kernel_name;
  std::string damage;
  std::uint64_t file_bytes = 0;
  std::uint64_t code_object_bytes = 0;
  std::int64_t modified_unix_seconds = 0;
  std::uint32_t vgprs = 0;
  std::uint32_t lds_bytes = 0;
  std::uint32_t kernarg_bytes = 0;
};

std::string text_or_empty(const char* text) { return text == nullptr ? "" : text; }

struct Arguments {
  EngineOptions engine;
  std::string place;  // an archive or a folder to look at; empty: the cache and its layers
  bool json = false;
  std::string sort;  // of `list`: "age", "size"; empty: as the layers have them

  // A place is a layer, and nothing else is looked at: rows of other layers are left out, and the cache's own folder
  // would be where no second one is.
  wavejit_engine_options options() const {
    wavejit_engine_options options = engine.options();
    if (place.empty()) return options;
    options.cache_layers = place.c_str();
    options.cache_directory = place.c_str();
    options.cache_mode = "ro";
    options.cache_packaged = "off";
    return options;
  }
};

// A path that somebody named is there, and is what it was named as. What is merely empty is no mistake.
Result<void> check_named(const Arguments& arguments, bool nothing_found) {
  std::error_code none;
  if (!arguments.place.empty()) {
    if (arguments.place.find(':') != std::string::npos)
      return failed(ExitCode::usage, fmt::format("{}: ':' is not accepted in the path of a layer", arguments.place));
    if (!std::filesystem::exists(arguments.place, none))
      return failed(ExitCode::file, fmt::format("{}: there is no such archive or folder", arguments.place));
    return {};
  }
  const char* folder = arguments.engine.options().cache_directory;
  if (std::string_view(folder).empty() || std::filesystem::is_directory(folder, none)) return {};
  if (std::filesystem::exists(folder, none)) {
    return failed(ExitCode::file,
                  fmt::format("--cache-dir {0}: it is a file; a folder is accepted, and an archive without the option: "
                              "wavejit cache list {0}",
                              folder));
  }
  if (nothing_found) return failed(ExitCode::file, fmt::format("--cache-dir {}: there is no such folder", folder));
  return {};
}

Result<std::vector<Row>> visit_cache(const Arguments& arguments) {
  std::vector<Row> rows;
  const wavejit_engine_options options = arguments.options();
  const auto add = [](void* context, const wavejit_cache_entry* entry) {
    static_cast<std::vector<Row>*>(context)->push_back({.layer = text_or_empty(entry->layer),
                                                        .path = text_or_empty(entry->path),
                                                        .key = text_or_empty(entry->key),
                                                        .key_text = text_or_empty(entry->key_text),
                                                        .target = text_or_empty(entry->target),
                                                        .kernel_name = text_or_empty(entry->kernel_name),
                                                        .damage = text_or_empty(entry->damage),
                                                        .file_bytes = entry->file_bytes,
                                                        .code_object_bytes = entry->code_object_bytes,
                                                        .modified_unix_seconds = entry->modified_unix_seconds,
                                                        .vgprs = entry->vgprs,
                                                        .lds_bytes = entry->lds_bytes,
                                                        .kernarg_bytes = entry->kernarg_bytes});
  };
  if (auto named = check_named(arguments, false); !named) return std::unexpected(named.error());
  if (auto done = checked(wavejit_cache_visit(&options, add, &rows)); !done) return std::unexpected(done.error());
  if (!arguments.place.empty()) std::erase_if(rows, [&](const Row& row) { return row.layer != arguments.place; });
  if (auto named = check_named(arguments, rows.empty()); !named) return std::unexpected(named.error());
  return rows;
}

std::string time_text(std::int64_t seconds) {
  const std::time_t time = seconds;
  std::tm parts{};
  if (::gmtime_r(&time, &parts) == nullptr) return "?";
  // Not fmt/chrono.h: its 10.1 in Debian does not compile with clang 22.
  std::array<char, 32> text{};
  const std::size_t length = std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%SZ", &parts);
  return {text.data(), length};
}

nlohmann::json json_of(const Row& row) {
  nlohmann::json json = {{"layer", row.layer},
                         {"path", row.path},
                         {"key", row.key},
                         {"target", row.target},
                         {"file_bytes", row.file_bytes},
                         {"modified", time_text(row.modified_unix_seconds)},
                         {"damage", row.damage.empty() ? nlohmann::json() : nlohmann::json(row.damage)}};
  if (row.damage.empty()) {
    json["key_text"] = row.key_text;
    json["kernel_name"] = row.kernel_name;
    json["code_object_bytes"] = row.code_object_bytes;
    json["vgprs"] = row.vgprs;
    json["lds_bytes"] = row.lds_bytes;
    json["kernarg_bytes"] = row.kernarg_bytes;
  }
  return json;
}

// File names and texts come from a folder that anybody may have filled: never let one end the program.
std::string dumped(const nlohmann::json& json) {
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
}

// What people look for stands first: what was built last, what is largest.
void sort(std::vector<Row>& rows, const std::string& by) {
  if (by == "age") std::ranges::stable_sort(rows, std::ranges::greater(), &Row::modified_unix_seconds);
  if (by == "size") std::ranges::stable_sort(rows, std::ranges::greater(), &Row::file_bytes);
}

Result<ExitCode> list(const Arguments& arguments) {
  auto rows = visit_cache(arguments);
  if (!rows) return std::unexpected(rows.error());
  sort(*rows, arguments.sort);
  if (arguments.json) {
    nlohmann::json all = nlohmann::json::array();
    for (const Row& row : *rows) all.push_back(json_of(row));
    fmt::print("{}\n", dumped(all));
    return ExitCode::ok;
  }
  if (rows->empty()) {
    fmt::print("the cache is empty\n");
    return ExitCode::ok;
  }
  fmt::print("{:<12}  {:<8} {:>7} {:>6} {:>7}  {:<20}  {}\n", "key", "target", "bytes", "vgprs", "lds", "built",
             "what");
  for (const Row& row : *rows) {
    if (row.damage.empty()) {
      fmt::print("{:.12}  {:<8} {:>7} {:>6} {:>7}  {:<20}  {}\n", row.key, row.target, row.file_bytes, row.vgprs,
                 row.lds_bytes, time_text(row.modified_unix_seconds), row.key_text);
    } else {
      fmt::print("{:.12}  {:<8} {:>7} {:>6} {:>7}  {:<20}  damaged: {}\n", row.key, row.target, row.file_bytes, "-",
                 "-", time_text(row.modified_unix_seconds), row.damage);
    }
  }
  return ExitCode::ok;
}

Result<ExitCode> info(const Arguments& arguments) {
  const auto rows = visit_cache(arguments);
  if (!rows) return std::unexpected(rows.error());
  struct Sum {
    std::uint64_t entries = 0;
    std::uint64_t bytes = 0;
  };
  std::map<std::string, Sum> targets;
  Sum all;
  std::uint64_t damaged = 0;
  for (const Row& row : *rows) {
    if (!row.damage.empty()) {
      ++damaged;
      continue;
    }
    for (Sum* sum : {&all, &targets[row.target]}) {
      ++sum->entries;
      sum->bytes += row.file_bytes;
    }
  }
  if (arguments.json) {
    nlohmann::json by_target = nlohmann::json::object();
    for (const auto& [target, sum] : targets) by_target[target] = {{"entries", sum.entries}, {"bytes", sum.bytes}};
    fmt::print("{}\n",
               dumped({{"entries", all.entries}, {"bytes", all.bytes}, {"damaged", damaged}, {"targets", by_target}}));
    return ExitCode::ok;
  }
  fmt::print("entries  {}\nbytes    {}\ndamaged  {}\n", all.entries, all.bytes, damaged);
  for (const auto& [target, sum] : targets)
    fmt::print("{:<8} {} {}, {} bytes\n", target, sum.entries, sum.entries == 1 ? "entry" : "entries", sum.bytes);
  return ExitCode::ok;
}

struct LayerRow {
  std::string name;
  std::string path;
  bool writable = false;
  std::uint64_t entries = 0;
  std::uint64_t bytes = 0;
  std::uint64_t damaged = 0;
  std::uint64_t limit_bytes = 0;
  std::string state;  // of the remote one only
};

Result<ExitCode> stats(const Arguments& arguments) {
  std::vector<LayerRow> rows;
  const wavejit_engine_options options = arguments.options();
  if (auto named = check_named(arguments, false); !named) return std::unexpected(named.error());
  const auto add = [](void* context, const wavejit_cache_layer* layer) {
    static_cast<std::vector<LayerRow>*>(context)->push_back({.name = text_or_empty(layer->name),
                                                             .path = text_or_empty(layer->path),
                                                             .writable = layer->writable != 0,
                                                             .entries = layer->entries,
                                                             .bytes = layer->bytes,
                                                             .damaged = layer->damaged,
                                                             .limit_bytes = layer->limit_bytes,
                                                             .state = text_or_empty(layer->state)});
  };
  if (auto done = checked(wavejit_cache_layers(&options, add, &rows)); !done) return std::unexpected(done.error());
  if (!arguments.place.empty())
    std::erase_if(rows, [&](const LayerRow& row) { return row.writable || row.path != arguments.place; });
  const bool nothing_found =
      std::ranges::all_of(rows, [](const LayerRow& row) { return row.entries == 0 && row.damaged == 0; });
  if (auto named = check_named(arguments, nothing_found); !named) return std::unexpected(named.error());
  if (arguments.json) {
    nlohmann::json all = nlohmann::json::array();
    for (const LayerRow& row : rows) {
      if (!row.state.empty()) {
        all.push_back({{"name", row.name}, {"path", row.path}, {"writable", row.writable}, {"state", row.state}});
        continue;
      }
      all.push_back({{"name", row.name},
                     {"path", row.path},
                     {"writable", row.writable},
                     {"entries", row.entries},
                     {"bytes", row.bytes},
                     {"damaged", row.damaged},
                     {"limit_bytes", row.limit_bytes == 0 ? nlohmann::json() : nlohmann::json(row.limit_bytes)}});
    }
    fmt::print("{}\n", dumped(all));
    return ExitCode::ok;
  }
  if (rows.empty()) fmt::print("no layers and no folder: kernels stay in the memory of each process\n");
  for (const LayerRow& row : rows) {
    if (!row.state.empty()) {
      fmt::print("{:<9} {}: {}\n", row.name, row.path, row.state);
      continue;
    }
    fmt::print("{:<9} {}: {} {}, {} bytes, {} damaged{}\n", row.writable ? "folder" : "layer", row.path, row.entries,
               row.entries == 1 ? "entry" : "entries", row.bytes, row.damaged,
               row.limit_bytes == 0 ? ""
                                    : fmt::format("; {:.3g} % of its limit", 100.0 * static_cast<double>(row.bytes) /
                                                                                 static_cast<double>(row.limit_bytes)));
  }
  return ExitCode::ok;
}

Result<ExitCode> verify(const Arguments& arguments) {
  const auto rows = visit_cache(arguments);
  if (!rows) return std::unexpected(rows.error());
  std::uint64_t damaged = 0;
  std::uint64_t in_layers = 0;
  nlohmann::json found = nlohmann::json::array();
  for (const Row& row : *rows) {
    if (row.damage.empty()) continue;
    ++damaged;
    if (row.layer != "user") ++in_layers;
    if (arguments.json) {
      found.push_back(json_of(row));
    } else {
      fmt::print("damaged  {}: {}\n", row.path, row.damage);
    }
  }
  if (arguments.json) {
    fmt::print("{}\n", dumped({{"entries", rows->size()}, {"damaged", found}}));
  } else {
    fmt::print("{} {}, {} damaged{}\n", rows->size(), rows->size() == 1 ? "entry" : "entries", damaged,
               damaged == in_layers ? "" : "; each is compiled anew and replaced when it is next asked for");
    if (in_layers > 0) fmt::print("layers are never written: put a whole copy in the place of what is damaged there\n");
  }
  return damaged == 0 ? ExitCode::ok : ExitCode::check_failed;
}

void add_one(CLI::App& parent, Chosen& chosen, const char* name, const char* summary, const char* footer,
             Result<ExitCode> (*action)(const Arguments&)) {
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* command = parent.add_subcommand(name, summary);
  command
      ->add_option("place", arguments->place,
                   "an archive or a folder of entries to look at (default: the cache and its layers)")
      ->type_name("PATH")
      ->transform(CLI::Validator(
          [](std::string& path) {
            std::error_code none;
            path = std::filesystem::absolute(path, none).lexically_normal().string();
            if (path.size() > 1 && path.ends_with('/')) path.pop_back();
            return std::string();
          },
          ""));
  command->add_flag("--json", arguments->json, "for programs instead of people");
  if (action == &list)
    add_choice(*command, "--sort", arguments->sort, {"age", "size"},
               "what was built last, or what is largest, stands first (default: as it is found)");
  arguments->engine.add_cache(*command);
  if (action == &stats) arguments->engine.add_cache_remote(*command);
  arguments->engine.add_log_level(*command);
  command->footer(footer);
  command->callback([&chosen, arguments, action] { chosen = [arguments, action] { return action(*arguments); }; });
}

}  // namespace

void add_cache(CLI::App& program, Chosen& chosen) {
  CLI::App* command = program.add_subcommand("cache", "Look at the disk cache, bound it, ship it, share it");
  command->require_subcommand(1);
  command->footer(
      "One file per kernel; docs/cache-format.md describes them. list, info, stats and verify write nothing.");
  add_one(*command, chosen, "list", "List every entry",
          "Each entry is read and verified as the library would.\n\nExample\n  wavejit cache list --json | jq "
          "'.[].key_text'\n  wavejit cache list served.wavejit-archive --sort size",
          list);
  add_one(*command, chosen, "info", "Count entries and bytes by target",
          "Examples\n  wavejit cache info --cache-dir /srv/kernels\n  wavejit cache info served.wavejit-archive", info);
  add_one(*command, chosen, "stats", "Count entries and bytes by layer, in the order in which layers are asked",
          "Also whether the remote layer answers, if there is one.\n\n"
          "Example\n  wavejit cache stats --cache-layers /image/kernels",
          stats);
  add_one(*command, chosen, "verify", "Check every entry: format, key text against name, target, checksum",
          "Exit code 0 when every entry is whole, 1 when one is damaged.\n\nExample\n"
          "  wavejit cache verify || echo damaged",
          verify);
  add_cache_transfer(*command, chosen);
}

}  // namespace wavejit::tools
