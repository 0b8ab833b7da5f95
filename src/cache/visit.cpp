#include <cerrno>
#include <exception>

#include "cache/cache.h"
#include "cache/layer.h"
#include "cache/shelves.h"

namespace wavejit::cache {

namespace {

using Visit = std::function<void(const Visited&)>;

// Verifies what was read under a name and tells it.
void tell_entry(Visited& visited, const FileBytes& bytes, const Digest& digest, const Visit& visit) {
  visited.file_bytes = bytes.size;
  visited.modified_unix_seconds = bytes.status.modified_unix_nanoseconds / nanoseconds_per_second;
  const auto entry = parse(bytes.view());
  std::string damage;
  if (!entry) {
    damage = entry.error();
  } else if (digest_of(entry->key_text) != digest) {
    damage = "its name is not the SHA-256 of its key text";
  } else if (!visited.target_id.empty() && entry->target_id != visited.target_id) {
    damage = "it is for another target than its folder's";
  } else {
    visited.entry = &*entry;
    visited.target_id = entry->target_id;
    visited.file = bytes.view();
  }
  visited.damage = damage;
  visit(visited);
}

bool visit_folder(IoInterface& io, const Layer& layer, const Visit& visit) {
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
          tell_entry(visited, *bytes, *digest, visit);
        } else if (bytes.error().problem != ReadProblem::absent) {
          visited.damage = bytes.error().what;
          visit(visited);
        }
        return true;
      });
  return failures == 0;
}

void visit_archive(const ArchiveReader& archive, const Layer& layer, const Visit& visit) {
  for (const ArchiveRecord& record : archive.records()) {
    const std::string hex = record.digest.hex();
    const std::string path = layer.root + "#" + hex;
    Visited visited;
    visited.path = path;
    visited.layer = layer.name;
    visited.key_hex = hex;
    const auto bytes = archive.read(record);
    if (bytes) {
      tell_entry(visited, *bytes, record.digest, visit);
    } else {
      visited.damage = bytes.error().what;
      visit(visited);
    }
  }
}

}  // namespace

bool Cache::visit(const Visit& visit) noexcept {
  if (options_.mode == Mode::off) return true;
  bool complete = true;
  try {
    for (const auto& layer : open_layers_) {
      const auto archive = layer->archive();
      if (!archive) {
        // A folder that is not there yet is an empty layer; an archive that cannot be used is a damage of its own.
        if (archive.error().problem == ReadProblem::absent) continue;
        Visited visited;
        visited.path = layer->description().root;
        visited.layer = layer->description().name;
        const std::string damage = archive.error().what.empty() ? "it cannot be used as a layer" : archive.error().what;
        visited.damage = damage;
        visit(visited);
        complete = complete && archive.error().problem != ReadProblem::fault;
      } else if (*archive == nullptr) {
        complete = visit_folder(*io_, layer->description(), visit) && complete;
      } else {
        visit_archive(**archive, layer->description(), visit);
      }
    }
  } catch (const std::exception&) {
    return false;
  }
  return complete;
}

}  // namespace wavejit::cache
