// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <algorithm>
#include <cerrno>
#include <exception>

#include "cache/cache.h"
#include "cache/layer.h"
#include "cache/shelves.h"

namespace wavejit::cache {

namespace {

using Visit = std::function<bool(const Visited&)>;

// Verifies what was read under a name and tells it.
bool tell_entry(Visited& visited, const FileBytes& bytes, const Digest& digest, const Visit& visit) {
  visited.file_bytes = bytes.size;
  visited.modified_unix_seconds = bytes.status.modified_unix_nanoseconds / nanoseconds_per_second;
  const auto entry = parse_entry_named(digest, std::string(visited.target_id), bytes.view());
  if (!entry) {
    visited.damage = entry.error();
    return visit(visited);
  }
  visited.entry = &*entry;
  visited.target_id = entry->target_id;
  visited.file = bytes.view();
  return visit(visited);
}

// How a layer's visit ended.
struct Walk {
  bool complete = true;
  bool go_on = true;  // visit() wants more
};

Walk visit_folder(IoInterface& io, const Layer& layer, const Visit& visit) {
  bool go_on = true;
  const std::size_t failures = walk_shelves(
      io, layer.root,
      [&](const std::string& target, const std::string& shelf, const std::string& folder, const std::string& name) {
        const auto digest = digest_of_name(shelf, name);
        if (!digest) return true;
        const std::string path = folder + "/" + name;
        const std::string hex = name.substr(0, digest_hex_digits);
        Visited visited;
        visited.path = path;
        visited.layer = layer.name;
        visited.key_hex = hex;
        visited.target_id = target;
        const auto bytes = read_entry_file(io, path);
        if (bytes) {
          go_on = tell_entry(visited, *bytes, *digest, visit);
        } else if (bytes.error().problem != ReadProblem::absent) {
          visited.damage = bytes.error().what;
          go_on = visit(visited);
        }
        return go_on;
      });
  return {.complete = failures == 0, .go_on = go_on};
}

Walk visit_archive(const ArchiveReader& archive, const Layer& layer, const Visit& visit) {
  // In the order of the file: whoever packs an archive's entries once more gets the same archive.
  std::vector<ArchiveRecord> records = archive.records();
  std::ranges::sort(records, {}, &ArchiveRecord::offset);
  for (const ArchiveRecord& record : records) {
    const std::string hex = record.digest.hex();
    const std::string path = layer.root + "#" + hex;
    Visited visited;
    visited.path = path;
    visited.layer = layer.name;
    visited.key_hex = hex;
    const auto bytes = archive.read(record);
    if (!bytes) visited.damage = bytes.error().what;
    if (!(bytes ? tell_entry(visited, *bytes, record.digest, visit) : visit(visited))) return {.go_on = false};
  }
  return {};
}

// An archive that cannot be used is a damage of its own; a folder that is not there yet is an empty layer.
Walk visit_unusable(const LayerMiss& miss, const Layer& layer, const Visit& visit) {
  if (miss.problem == ReadProblem::absent) return {};
  Visited visited;
  visited.path = layer.root;
  visited.layer = layer.name;
  visited.damage = miss.what.empty() ? std::string_view("it cannot be used as a layer") : miss.what;
  return {.complete = miss.problem != ReadProblem::fault, .go_on = visit(visited)};
}

}  // namespace

bool Cache::visit(const std::function<void(const Visited&)>& visit) noexcept {
  return visit_while([&](const Visited& visited) {
    visit(visited);
    return true;
  });
}

bool Cache::visit_while(const Visit& visit) noexcept {
  if (options_.mode == Mode::off) return true;
  bool complete = true;
  try {
    for (const auto& layer : open_layers_) {
      const auto archive = layer->archive();
      const Layer& description = layer->description();
      const Walk walk = !archive              ? visit_unusable(archive.error(), description, visit)
                        : *archive == nullptr ? visit_folder(*io_, description, visit)
                                              : visit_archive(**archive, description, visit);
      complete = complete && walk.complete;
      if (!walk.go_on) break;
    }
  } catch (const std::exception&) {
    return false;
  }
  return complete;
}

}  // namespace wavejit::cache
