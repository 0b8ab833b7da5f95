// The disk cache of code objects: lookup, publish, drop, visit.
//
//   cache::Cache kernels({.layers = {{.name = "user", .root = root, .writable = true}}, .mode =
//   cache::Mode::read_write}); cache::Key key(key_text, "gfx950"); if (auto hit = kernels.lookup(key))
//   load(hit->entry().code_object); else kernels.publish(key, {.kernels = {…}, .code_object = compiled});   // and use
//   what was compiled anyway
//
// Promises
//   * A hit was read whole, its checksum, key text and target id verified, by this call.
//   * No fault is an error of the call: whatever the file system or a damaged file does, a lookup is a miss and a
//     publish is not published, with a counter and one event for the log. Nothing throws.
//   * Readers take no lock. Writers publish by temporary file, fdatasync and rename in the entry's own folder, so that
//   a
//     reader sees nothing, the old entry or the new one; a writer killed at any instruction leaves at most a temporary.
//   * read_only writes nothing at all; off touches nothing at all.
//   * Every function may be called from any thread, and from any number of processes and hosts on one directory.
//
// Layers are asked in order, the first good entry wins, and only the first writable one is ever written: packaged
// read-only layers stand before the user's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cache/counters.h"
#include "cache/digest.h"
#include "cache/entry.h"
#include "cache/io.h"

namespace wavejit::cache {

enum class Mode : std::uint8_t { off, read_only, read_write };
// "off", "ro", "rw"
std::optional<Mode> parse_mode(std::string_view text);
std::string_view to_text(Mode mode);

// What is looked for. Everything that changes code is in the text; the target id is named apart because it is also
// checked against the entry's and is the folder that the entry lies in.
class Key {
 public:
  Key(std::string text, std::string target_id);

  const std::string& text() const { return text_; }
  const std::string& target_id() const { return target_id_; }
  const Digest& digest() const { return digest_; }
  std::string hex() const { return digest_.hex(); }

 private:
  std::string text_;
  std::string target_id_;
  Digest digest_;
};

struct Layer {
  std::string name;  // for people: "user", "image"
  std::string root;
  bool writable = false;
};

// One line for a log; `what` is complete: "cache: damaged entry <path>: checksum does not match".
struct Event {
  enum class Kind : std::uint8_t { damaged, refused, read_fault, publish_failure } kind;
  std::string what;
};

// A verified entry and the bytes that it points into.
class Hit {
 public:
  Hit(std::unique_ptr<std::byte[]> bytes, std::size_t size, Entry entry, std::string path, std::string layer)
      : bytes_(std::move(bytes)),
        size_(size),
        entry_(std::move(entry)),
        path_(std::move(path)),
        layer_(std::move(layer)) {}

  const Entry& entry() const { return entry_; }
  const std::string& path() const { return path_; }
  const std::string& layer() const { return layer_; }
  std::size_t file_bytes() const { return size_; }

 private:
  std::unique_ptr<std::byte[]> bytes_;
  std::size_t size_;
  Entry entry_;
  std::string path_;
  std::string layer_;
};

// What a compile made; key text and target id come from the key.
struct Compiled {
  std::vector<KernelFacts> kernels;
  std::span<const std::byte> code_object;
};

struct PublishResult {
  bool published = false;
  std::string reason;  // why not: "the cache is read-only", "cannot write <path>: No space left on device"
};

// One file met by visit(). `hit` is null exactly when `damage` is not empty.
struct Visited {
  std::string_view path;
  std::string_view layer;
  std::string_view key_hex;    // from the file's name
  std::string_view target_id;  // from the folder's name
  const Entry* entry = nullptr;
  std::string_view damage;
  std::uint64_t file_bytes = 0;
  std::int64_t modified_unix_seconds = 0;
};

struct CacheOptions {
  std::vector<Layer> layers;
  Mode mode = Mode::read_write;
  IoInterface* io = nullptr;                   // null: posix_io()
  std::function<void(const Event&)> on_event;  // called from whatever thread met it; must not throw
};

class Cache {
 public:
  explicit Cache(CacheOptions options);

  std::optional<Hit> lookup(const Key& key) noexcept;
  PublishResult publish(const Key& key, const Compiled& compiled) noexcept;
  // Removes the entry from the writable layer: for a code object that passed every check here and that the loader
  // refuses all the same. True if a file was removed.
  bool drop(const Key& key) noexcept;
  // Every file of every layer that has an entry's name, verified, in the order of layer, target id and key. Touches no
  // counter. False if a folder could not be read (`visit` saw the rest).
  bool visit(const std::function<void(const Visited&)>& visit) noexcept;

  Mode mode() const { return options_.mode; }
  const std::vector<Layer>& layers() const { return options_.layers; }
  CounterValues counters() const { return counters_.values(); }

 private:
  std::optional<Hit> lookup_in(const Layer& layer, const Key& key);
  const Layer* writable_layer() const;
  void tell(Event::Kind kind, const std::string& what);

  CacheOptions options_;
  IoInterface* io_;
  Counters counters_;
};

}  // namespace wavejit::cache
