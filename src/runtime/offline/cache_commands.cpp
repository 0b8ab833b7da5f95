// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/offline/cache_commands.h"

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "runtime/kernels/kernel_source.h"
#include "runtime/libraries/remote_library.h"
#include "runtime/settings/clock.h"
#include "runtime/settings/options.h"

namespace wavejit::runtime {
namespace {

Result<std::vector<std::string>> parse_target_ids(std::string_view text) {
  std::vector<std::string> targets;
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    const std::string_view target = text.substr(0, comma);
    // Entries may be of a target that this version does not know any more, or not yet.
    if (!cache::is_target_id(target)) {
      return fail(WAVEJIT_INVALID_ARGUMENT, "arguments.targets: \"" + std::string(target) +
                                                "\" is no target id; accepted: letters, digits and :+-_.");
    }
    targets.emplace_back(target);
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return targets;
}

Failure cache_is_off() {
  return {WAVEJIT_INVALID_ARGUMENT, "cache_mode = off: there is no cache to work on; accepted: ro, rw"};
}

Result<void> needs_folder(const Config& config) {
  if (config.cache_mode.value != cache::Mode::read_write) {
    return fail(WAVEJIT_INVALID_ARGUMENT, "cache_mode = " + std::string(cache::to_text(config.cache_mode.value)) +
                                              ": this writes to the cache; accepted: rw (WAVEJIT_CACHE)");
  }
  if (config.cache_directory.value.empty()) {
    return fail(WAVEJIT_INVALID_ARGUMENT,
                "cache_directory is not given and HOME and XDG_CACHE_HOME do not tell it; accepted: a folder");
  }
  return {};
}

// A cache that is to be copied: a folder that somebody named is there, and the standard one or a layer is.
Result<void> needs_source(const Config& config) {
  const std::string& folder = config.cache_directory.value;
  std::error_code none;
  if (!folder.empty() && std::filesystem::is_directory(folder, none)) return {};
  if (config.cache_directory.from == Provenance::standard && !config.cache_layers.value.empty()) return {};
  return fail(WAVEJIT_NOT_FOUND,
              "cache_directory = \"" + folder + "\": there is no such folder; accepted: a cache that is there");
}

// What a copy is made of: what this machine's packages have is not copied along.
cache::CacheOptions copied_options(Config config, Logger& logger) {
  config.cache_packaged.value = false;
  return cache_options(config, logger);
}

// Nothing but one place, read as a layer.
cache::CacheOptions only_layer(const std::string& path) {
  cache::CacheOptions options;
  options.layers.push_back({.name = path, .root = path, .writable = false});
  options.mode = cache::Mode::read_only;
  return options;
}

cache::CacheOptions only_folder(const std::string& path) {
  cache::CacheOptions options;
  options.layers.push_back({.name = path, .root = path, .writable = true});
  options.readable_by_all = true;
  return options;
}

// The user's own folder, whatever layers hold: what is copied there is to stand on its own.
cache::CacheOptions own_folder_only(const Config& config, Logger& logger) {
  cache::CacheOptions options = cache_options(config, logger);
  std::erase_if(options.layers, [](const cache::Layer& layer) { return !layer.writable; });
  return options;
}

CacheLayer describe_remote(const Config& config) {
  CacheLayer layer;
  layer.name = "remote";
  layer.path = cache::to_text(*config.cache_remote.value);
  layer.writable = config.cache_mode.value == cache::Mode::read_write;
  const auto remote = open_remote(config);
  if (!remote) {
    layer.state = remote.error();
    return layer;
  }
  layer.path = remote->name;
  Stopwatch watch;
  const auto answer = remote->store->ask();
  const std::uint64_t taken = watch.lap();
  layer.state = answer ? "answers in " + std::to_string(taken / 1000) + " us" : answer.error().what;
  return layer;
}

Result<cache::RemoteOptions> needs_remote(const Config& config, const CacheCopy& copy) {
  if (!copy.from.empty() || !copy.to.empty() || copy.archive) {
    return fail(WAVEJIT_INVALID_ARGUMENT,
                "arguments.remote is set beside from, to or archive; accepted: one or the other");
  }
  if (!config.cache_remote.value) {
    return fail(WAVEJIT_INVALID_ARGUMENT, "there is no remote layer (cache_remote, WAVEJIT_CACHE_REMOTE); accepted: " +
                                              std::string(option_row(Option::cache_remote).values));
  }
  auto remote = open_remote(config);
  if (!remote) return fail(WAVEJIT_INVALID_ARGUMENT, remote.error());
  return *std::move(remote);
}

Result<cache::TransferResult> copy_remotely(const Config& config, const CacheCopy& copy,
                                            const std::vector<std::string>& targets) {
  auto remote = needs_remote(config, copy);
  if (!remote) return std::unexpected(std::move(remote.error()));
  if (config.cache_mode.value == cache::Mode::off) return std::unexpected(cache_is_off());
  Logger logger(config.log_level.value, log_sink(config));
  const bool push = copy.remote == WAVEJIT_CACHE_TO_REMOTE;
  if (!push) {
    if (auto folder = needs_folder(config); !folder) return std::unexpected(std::move(folder.error()));
  }
  if (push) {
    if (auto source = needs_source(config); !source) return std::unexpected(std::move(source.error()));
  }
  auto options = push ? copied_options(config, logger) : own_folder_only(config, logger);
  options.memory = nullptr;
  cache::Cache cache(std::move(options));
  auto done =
      push ? cache::push_entries(cache, *remote->store, targets) : cache::pull_entries(*remote->store, cache, targets);
  if (!done) return fail(WAVEJIT_IO_ERROR, done.error());
  return *std::move(done);
}

}  // namespace

Result<std::vector<CacheLayer>> describe_cache(const Config& config) {
  if (config.cache_mode.value == cache::Mode::off) return std::unexpected(cache_is_off());
  Logger logger(config.log_level.value, log_sink(config));
  std::vector<CacheLayer> layers;
  const cache::CacheOptions configured = cache_options(config, logger);
  for (const cache::Layer& layer : configured.layers) {
    cache::CacheOptions options = configured;
    options.layers = {layer};
    cache::Cache one(std::move(options));
    CacheLayer& out = layers.emplace_back();
    out.name = layer.name;
    out.path = layer.root;
    out.writable = layer.writable;
    out.limit_bytes = layer.writable ? config.cache_limit.value : 0;
    const bool whole = one.visit([&](const cache::Visited& visited) {
      if (visited.entry == nullptr) {
        ++out.damaged;
        return;
      }
      ++out.entries;
      out.bytes += visited.file_bytes;
    });
    if (!whole) {
      return fail(WAVEJIT_IO_ERROR,
                  layer.root + " could not be read to the end; accepted: a folder that this user may read");
    }
  }
  if (config.cache_remote.value) layers.push_back(describe_remote(config));
  return layers;
}

Result<cache::SweepResult> sweep_cache(const Config& config, bool any_age) {
  if (auto folder = needs_folder(config); !folder) return std::unexpected(std::move(folder.error()));
  Logger logger(config.log_level.value, log_sink(config));
  auto options = cache_options(config, logger);
  if (any_age) options.minimum_age_nanoseconds = 0;
  cache::Cache cache(std::move(options));
  auto result = cache.sweep(config.cache_limit.value);
  if (!result.reason.empty()) return fail(WAVEJIT_IO_ERROR, result.reason);
  return result;
}

Result<cache::TransferResult> copy_cache(const Config& config, const CacheCopy& copy) {
  auto targets = parse_target_ids(copy.targets);
  if (!targets) return std::unexpected(std::move(targets.error()));
  if (copy.remote != WAVEJIT_CACHE_NO_REMOTE) return copy_remotely(config, copy, *targets);
  if (copy.archive && copy.to.empty()) {
    return fail(WAVEJIT_INVALID_ARGUMENT, "arguments.to = null: an archive needs a name; accepted: a path");
  }
  if (copy.from.empty() && copy.to.empty()) {
    return fail(
        WAVEJIT_INVALID_ARGUMENT,
        "arguments.from and arguments.to are null: the cache would be copied onto itself; accepted: one of them");
  }
  Logger logger(config.log_level.value, log_sink(config));
  if (copy.from.empty() && config.cache_mode.value == cache::Mode::off) return std::unexpected(cache_is_off());
  if (copy.from.empty()) {
    if (auto source = needs_source(config); !source) return std::unexpected(std::move(source.error()));
  }
  cache::Cache from(copy.from.empty() ? copied_options(config, logger) : only_layer(copy.from));
  if (!copy.from.empty() && !from.io().stat(copy.from)) {
    return fail(WAVEJIT_NOT_FOUND,
                "arguments.from = \"" + copy.from + "\" is not there; accepted: a folder of entries or an archive");
  }
  std::expected<cache::TransferResult, std::string> done;
  if (copy.archive) {
    done = cache::pack_entries(from, copy.to, *targets);
  } else {
    if (copy.to.empty()) {
      if (auto folder = needs_folder(config); !folder) return std::unexpected(std::move(folder.error()));
    }
    cache::CacheOptions destination = copy.to.empty() ? own_folder_only(config, logger) : only_folder(copy.to);
    destination.memory = nullptr;
    cache::Cache to(std::move(destination));
    done = cache::copy_entries(from, to, *targets);
  }
  if (!done) return fail(WAVEJIT_IO_ERROR, done.error());
  return *std::move(done);
}

}  // namespace wavejit::runtime
