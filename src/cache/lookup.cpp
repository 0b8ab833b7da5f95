#include <exception>
#include <utility>

#include "cache/cache.h"
#include "cache/directory.h"
#include "cache/files.h"

namespace wavejit::cache {

namespace {

// What `bytes` hold must be the entry of exactly this key: a digest only names a file, and files get copied about.
std::expected<Entry, std::string> parse_entry_of(const Key& key, std::span<const std::byte> bytes) {
  auto entry = parse(bytes);
  if (!entry) return entry;
  if (entry->key_text != key.text())
    return std::unexpected("it is the entry of another key: '" + entry->key_text + "'");
  if (entry->target_id != key.target_id()) {
    return std::unexpected("it is for target '" + entry->target_id + "', not '" + key.target_id() + "'");
  }
  return entry;
}

}  // namespace

std::optional<Hit> Cache::lookup_in(const Layer& layer, const Key& key) {
  const std::string path = entry_path(layer.root, key.target_id(), key.digest());
  auto file = read_entry_file(*io_, path);
  if (!file) {
    const ReadFailure& failure = file.error();
    switch (failure.problem) {
      case ReadProblem::absent:
        ++counters_.absent;
        break;
      case ReadProblem::refused:
        ++counters_.refused;
        tell(Event::Kind::refused, "refused " + path + ": " + failure.what);
        break;
      case ReadProblem::damaged:
        ++counters_.damaged;
        tell(Event::Kind::damaged, "damaged entry " + path + ": " + failure.what);
        break;
      case ReadProblem::fault:
        ++counters_.read_faults;
        tell(Event::Kind::read_fault, path + ": " + failure.what);
        break;
    }
    return std::nullopt;
  }
  auto entry = parse_entry_of(key, file->view());
  if (!entry) {
    ++counters_.damaged;
    tell(Event::Kind::damaged, "damaged entry " + path + ": " + entry.error());
    return std::nullopt;
  }
  return Hit(std::move(file->bytes), file->size, std::move(*entry), path, layer.name);
}

std::optional<Hit> Cache::lookup(const Key& key) noexcept {
  ++counters_.lookups;
  // Only memory running out can throw in here; that too is a miss.
  try {
    if (options_.mode != Mode::off && is_target_id(key.target_id())) {
      for (const Layer& layer : options_.layers) {
        if (auto hit = lookup_in(layer, key)) {
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
