#include <algorithm>
#include <cerrno>
#include <exception>

#include "cache/cache.h"
#include "cache/directory.h"
#include "cache/files.h"

namespace wavejit::cache {

namespace {

constexpr std::size_t hex_digits = 64;

// Sorted, so that lists do not change from one run to the next.
std::expected<std::vector<std::string>, int> sorted_names(IoInterface& io, const std::string& folder) {
  auto names = uninterrupted([&] { return io.read_directory(folder); });
  if (names) std::ranges::sort(*names);
  return names;
}

// An entry that another process removes while we walk, or a stray file where a folder is expected, is no failure.
bool harmless(int code) { return code == ENOENT || code == ENOTDIR; }

class Walk {
 public:
  Walk(IoInterface& io, const Layer& layer, const std::function<void(const Visited&)>& visit)
      : io_(&io), layer_(&layer), visit_(&visit) {}

  bool run() {
    const std::string root = target_directory(layer_->root, "");
    each_name(root, [&](const std::string& target) {
      if (!is_target_id(target)) return;
      const std::string folder = root + target;
      each_name(folder, [&](const std::string& shelf) {
        if (shelf.size() != 2) return;
        const std::string inner = folder + "/" + shelf;
        each_name(inner, [&](const std::string& name) { file(target, inner, name); });
      });
    });
    return complete_;
  }

 private:
  template <typename Use>
  void each_name(const std::string& folder, Use use) {
    const auto names = sorted_names(*io_, folder);
    if (!names) {
      complete_ = complete_ && harmless(names.error());
      return;
    }
    for (const std::string& name : *names) use(name);
  }

  void file(const std::string& target, const std::string& folder, const std::string& name) {
    if (name.size() != hex_digits + entry_suffix.size() || !name.ends_with(entry_suffix)) return;
    const std::string hex = name.substr(0, hex_digits);
    const auto digest = parse_digest(hex);
    if (!digest || !folder.ends_with("/" + hex.substr(0, 2))) return;
    const std::string path = folder + "/" + name;
    Visited visited = {
        .path = path, .layer = layer_->name, .key_hex = hex, .target_id = target, .entry = nullptr, .damage = {}};
    const auto bytes = read_entry_file(*io_, path);
    if (!bytes) {
      if (bytes.error().problem == ReadProblem::absent) return;
      visited.damage = bytes.error().what;
      (*visit_)(visited);
      return;
    }
    visited.file_bytes = bytes->size;
    visited.modified_unix_seconds = bytes->status.modified_unix_seconds;
    const auto entry = parse(bytes->view());
    if (!entry) {
      visited.damage = entry.error();
    } else if (digest_of(entry->key_text) != *digest) {
      visited.damage = "its name is not the SHA-256 of its key text";
    } else if (entry->target_id != target) {
      visited.damage = "it is for another target than its folder's";
    } else {
      visited.entry = &*entry;
    }
    (*visit_)(visited);
  }

  IoInterface* io_;
  const Layer* layer_;
  const std::function<void(const Visited&)>* visit_;
  bool complete_ = true;
};

}  // namespace

bool Cache::visit(const std::function<void(const Visited&)>& visit) noexcept {
  if (options_.mode == Mode::off) return true;
  bool complete = true;
  try {
    for (const Layer& layer : options_.layers) complete = Walk(*io_, layer, visit).run() && complete;
  } catch (const std::exception&) {
    return false;
  }
  return complete;
}

}  // namespace wavejit::cache
