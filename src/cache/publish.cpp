// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <cerrno>
#include <exception>
#include <utility>

#include "cache/cache.h"
#include "cache/directory.h"
#include "cache/files.h"
#include "cache/layer.h"

namespace wavejit::cache {

PublishResult Cache::publish_to(const Layer* layer, const Key& key, std::span<const std::byte> entry) {
  PublishResult result;
  if (layer == nullptr) {
    result.reason = options_.mode == Mode::read_write ? "the cache has no writable layer"
                                                      : "the cache is " + std::string(to_text(options_.mode));
  } else if (const auto distrust = distrust_of(*io_, layer->root)) {
    result.reason = "the cache folder " + layer->root + " is not used: " + distrust->what;
  } else {
    const auto written = write_file(*io_, entry_path(layer->root, key.target_id(), key.digest()), entry,
                                    options_.readable_by_all ? readable_by_all : users_own);
    if (written) {
      sweep_if_due(*layer, entry.size());
      return {.published = true, .kept_in_memory = false, .reason = {}};
    }
    result.reason = written.error();
  }
  if (options_.memory != nullptr)
    result.kept_in_memory = options_.memory->keep(key.target_id(), key.digest(), {entry.begin(), entry.end()});
  return result;
}

// Bytes of a whole entry of this key. Called with `publishes` counted.
PublishResult Cache::publish_entry(const Key& key, std::span<const std::byte> entry) {
  const Layer* layer = writable_layer();
  auto result = publish_to(layer, key, entry);
  counters_.kept_in_memory += result.kept_in_memory ? 1 : 0;
  if (layer == nullptr) {
    ++counters_.publishes_skipped;
    return result;
  }
  if (result.published) {
    ++counters_.published;
    return result;
  }
  ++counters_.publish_failures;
  tell_publish_failure(result);
  return result;
}

// A disk that is full or read-only says so at every publish; the log once.
void Cache::tell_publish_failure(const PublishResult& result) {
  if (publish_failure_told_.exchange(true)) return;
  tell(Event::Kind::publish_failure, result.reason +
                                         (result.kept_in_memory ? "; kernels stay in this process's memory" : "") +
                                         " (said once, later failures are only counted)");
}

PublishResult Cache::publish(const Key& key, const Compiled& compiled) noexcept {
  ++counters_.publishes;
  if (options_.mode == Mode::off) {
    ++counters_.publishes_skipped;
    return {.published = false, .kept_in_memory = false, .reason = "the cache is off"};
  }
  try {
    auto bytes = serialise({.key_text = key.text(),
                            .target_id = key.target_id(),
                            .kernels = compiled.kernels,
                            .code_object = compiled.code_object});
    if (!bytes) {
      ++(writable_layer() == nullptr ? counters_.publishes_skipped : counters_.publish_failures);
      PublishResult result{.published = false, .kept_in_memory = false, .reason = std::move(bytes.error())};
      if (writable_layer() != nullptr) tell_publish_failure(result);
      return result;
    }
    auto result = publish_entry(key, *bytes);
    // The fleet gets it whatever this machine's disk says.
    if (remote_ != nullptr && options_.mode == Mode::read_write)
      remote_->keep_later(key.digest(), key.target_id(), *std::move(bytes));
    return result;
  } catch (const std::exception&) {
    ++counters_.publish_failures;
    return {.published = false, .kept_in_memory = false, .reason = {}};
  }
}

bool Cache::flush_remote(std::int64_t nanoseconds) noexcept {
  try {
    return remote_ == nullptr || remote_->flush(nanoseconds);
  } catch (const std::exception&) {
    return false;
  }
}

bool Cache::drop(const Key& key) noexcept {
  try {
    const Layer* layer = writable_layer();
    if (layer == nullptr || !is_target_id(key.target_id()) || distrust_of(*io_, layer->root)) return false;
    const std::string path = entry_path(layer->root, key.target_id(), key.digest());
    const auto removed = uninterrupted([&] { return io_->unlink(path); });
    if (removed) {
      ++counters_.dropped;
    } else if (removed.error() != ENOENT) {
      tell(Event::Kind::publish_failure, "cannot remove " + path + ": " + errno_text(removed.error()));
    }
    return removed.has_value();
  } catch (const std::exception&) {
    return false;
  }
}

bool Cache::drop(const Key& key, std::size_t layer_index) noexcept {
  // What came from the remote layer was published to the user's folder on the way.
  if (layer_index == open_layers_.size() + 1) return drop(key);
  return layer_index < open_layers_.size() && open_layers_[layer_index]->description().writable && drop(key);
}

}  // namespace wavejit::cache
