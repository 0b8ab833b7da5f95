// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <exception>
#include <utility>

#include "cache/cache.h"
#include "cache/directory.h"
#include "cache/layer.h"

namespace wavejit::cache {

namespace {

// An entry that lies in no file, by the same checks as one that does.
std::expected<Hit, std::string> hit_of_bytes(std::span<const std::byte> bytes, const Key& key, const char* layer,
                                             std::size_t layer_index) {
  auto own = std::make_unique<std::byte[]>(bytes.size());
  std::ranges::copy(bytes, own.get());
  auto entry = parse_entry_of(key, {own.get(), bytes.size()});
  if (!entry) return std::unexpected(std::move(entry.error()));
  Hit hit(std::move(own), bytes.size(), *std::move(entry), layer, layer, layer_index);
  hit.not_on_disk();
  return hit;
}

}  // namespace

std::optional<Hit> Cache::lookup_in_memory(const Key& key) {
  if (options_.memory == nullptr) return std::nullopt;
  const auto bytes = options_.memory->find(key.target_id(), key.digest());
  if (!bytes) return std::nullopt;
  auto hit = hit_of_bytes(*bytes, key, "memory", open_layers_.size());
  if (!hit) return std::nullopt;
  return *std::move(hit);
}

std::optional<Hit> Cache::lookup_remotely(const Key& key) {
  std::optional<Hit> found;
  remote_->fetch(key.digest(), key.target_id(), [&](std::vector<std::byte> bytes) -> std::optional<std::string> {
    auto hit = hit_of_bytes(bytes, key, "remote", open_layers_.size() + 1);
    if (!hit) return std::move(hit.error());
    // The next process has it on disk. This one needs no telling whether that went well.
    ++counters_.publishes;
    if (publish_entry(key, bytes).published) hit->now_on_disk();
    found = *std::move(hit);
    return std::nullopt;
  });
  return found;
}

bool Cache::remote_has(const Key& key) noexcept {
  if (remote_ == nullptr || !is_target_id(key.target_id())) return false;
  try {
    return remote_->fetch(key.digest(), key.target_id(),
                          [&](std::vector<std::byte> bytes) -> std::optional<std::string> {
                            const auto entry = parse_entry_of(key, bytes);
                            if (!entry) return entry.error();
                            return std::nullopt;
                          });
  } catch (const std::exception&) {
    return false;
  }
}

bool Cache::has(const Digest& digest, const std::string& target_id) noexcept {
  try {
    const Layer* layer = writable_layer();
    if (layer == nullptr || !is_target_id(target_id) || distrust_of(*io_, layer->root)) return false;
    const auto file = read_entry_file(*io_, entry_path(layer->root, target_id, digest));
    return file && parse_entry_named(digest, target_id, file->view());
  } catch (const std::exception&) {
    return false;
  }
}

std::optional<Hit> Cache::lookup_quietly(const Key& key) {
  for (const auto& layer : open_layers_) {
    if (auto hit = layer->find(key)) return *std::move(hit);
  }
  return lookup_in_memory(key);
}

std::optional<Hit> Cache::lookup(const Key& key, std::size_t first_layer) noexcept {
  ++counters_.lookups;
  // Only memory running out can throw in here; that too is a miss.
  try {
    if (options_.mode != Mode::off && is_target_id(key.target_id())) {
      for (std::size_t i = first_layer; i < open_layers_.size(); ++i) {
        OpenLayer& layer = *open_layers_[i];
        auto hit = layer.find(key);
        if (hit) {
          ++counters_.hits;
          ++(layer.description().writable ? counters_.user_hits : counters_.layer_hits);
          return *std::move(hit);
        }
        switch (hit.error().problem) {
          case ReadProblem::absent:
            ++counters_.absent;
            tell(Event::Kind::read_fault, hit.error().what);
            break;
          case ReadProblem::refused:
            ++counters_.refused;
            tell(Event::Kind::refused, hit.error().what);
            break;
          case ReadProblem::damaged:
            ++counters_.damaged;
            tell(Event::Kind::damaged, hit.error().what);
            break;
          case ReadProblem::fault:
            ++counters_.read_faults;
            tell(Event::Kind::read_fault, hit.error().what);
            break;
        }
      }
      if (first_layer <= open_layers_.size()) {
        if (auto hit = lookup_in_memory(key)) {
          ++counters_.hits;
          ++counters_.memory_hits;
          return hit;
        }
      }
      if (remote_ != nullptr && first_layer <= open_layers_.size() + 1) {
        if (auto hit = lookup_remotely(key)) {
          ++counters_.hits;
          return hit;
        }
      }
    }
  } catch (const std::exception&) {
    ++counters_.read_faults;
  }
  ++counters_.misses;
  return std::nullopt;
}

}  // namespace wavejit::cache
