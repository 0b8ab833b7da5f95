// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The disk cache of code objects: lookup, turns, publish, drop, sweep, visit.
//
//   cache::Cache kernels({.layers = {{.name = "user", .root = root, .writable = true}}});
//   cache::Key key(key_text, "gfx950");
//   auto hit = kernels.lookup(key);
//   if (!hit) {
//     auto turn = kernels.take_turn(key);        // waits a bounded time for a process that compiles the same
//     hit = std::move(turn.hit);                 // and that may have published it meanwhile
//     if (!hit) kernels.publish(key, {.kernels = {…}, .code_object = compiled});
//   }                                            // the turn ends here
//
// Promises
//   * A hit was read whole, its checksum, key text and target id verified, by this call.
//   * No fault is an error of the call: whatever the file system or a damaged file does, a lookup is a miss and a
//     publish is not published, with a counter and one event for the log. Nothing throws.
//   * Readers take no lock. Writers publish by temporary file, fdatasync and rename in the entry's own folder, so that
//     a reader sees nothing, the old entry or the new one; a writer killed at any instruction leaves at most a
//     temporary.
//   * Locks only save work: a holder that is stopped or stuck is waited for no longer than lock_wait, a dead one not at
//     all.
//   * read_only writes nothing at all; off touches nothing at all.
//   * Every function may be called from any thread, and from any number of processes and hosts on one directory.
//
// Layers are asked in order, the first good entry wins, and only the first writable one is ever written: packaged
// read-only layers (folders or archives) stand before the user's folder, memory comes last. A user's folder that others
// could write to is not used; what cannot be written to disk is kept in memory, if there is a memory layer. Behind them
// all there may be a layer that a fleet shares (remote_layer.h): what it has is published to the user's folder.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "cache/counters.h"
#include "cache/digest.h"
#include "cache/entry.h"
#include "cache/io.h"
#include "cache/memory_layer.h"
#include "cache/remote_layer.h"

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
  std::string root;  // a folder; of a layer that is not writable, also an archive
  bool writable = false;
};

// One line for a log; `what` is complete: "cache: damaged entry <path>: checksum does not match".
struct Event {
  enum class Kind : std::uint8_t {
    damaged,
    refused,
    read_fault,
    publish_failure,
    lock_wait,  // for the curious: somebody else compiles this, we wait
    lock_fault,
    lock_timeout,
    sweep,  // for the curious: what a sweep removed
    sweep_fault,
    remote,  // for the curious: it answers again
    remote_outage
  } kind;
  std::string what;
};

// A verified entry and the bytes that it points into.
class Hit {
 public:
  Hit(std::unique_ptr<std::byte[]> bytes, std::size_t size, Entry entry, std::string path, std::string layer,
      std::size_t layer_index)
      : bytes_(std::move(bytes)),
        size_(size),
        entry_(std::move(entry)),
        path_(std::move(path)),
        layer_(std::move(layer)),
        layer_index_(layer_index) {}

  const Entry& entry() const { return entry_; }
  const std::string& path() const { return path_; }
  const std::string& layer() const { return layer_; }
  // Its place among the layers. When the loader refuses this entry, lookup() goes on behind it.
  std::size_t layer_index() const { return layer_index_; }
  // Whether the next process finds it too without asking anybody.
  bool on_disk() const { return on_disk_; }
  void not_on_disk() { on_disk_ = false; }
  void now_on_disk() { on_disk_ = true; }
  std::size_t file_bytes() const { return size_; }
  std::span<const std::byte> file() const { return {bytes_.get(), size_}; }

 private:
  std::unique_ptr<std::byte[]> bytes_;
  std::size_t size_;
  Entry entry_;
  std::string path_;
  std::string layer_;
  std::size_t layer_index_;
  bool on_disk_ = true;
};

// What a compile made; key text and target id come from the key.
struct Compiled {
  std::vector<KernelFacts> kernels;
  std::span<const std::byte> code_object;
};

struct PublishResult {
  bool published = false;
  bool kept_in_memory = false;
  std::string reason;  // why not: "the cache is read-only", "cannot write <path>: No space left on device"
};

// One file met by visit(). `hit` is null exactly when `damage` is not empty.
struct Visited {
  std::string_view path;
  std::string_view layer;
  std::string_view key_hex;    // from the file's name
  std::string_view target_id;  // from the folder's name, in archives the entry's own
  const Entry* entry = nullptr;
  std::string_view damage;
  std::span<const std::byte> file;  // all of it; empty when it is damaged
  std::uint64_t file_bytes = 0;
  std::int64_t modified_unix_seconds = 0;
};

class FileLock;

// The right, in good manners, to compile a key. Ends with the object; publish before that.
class Turn {
 public:
  Turn();
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  Turn(Turn&&) noexcept;
  Turn& operator=(Turn&&) noexcept;
  ~Turn();

  std::optional<Hit> hit;  // what somebody else published meanwhile: nothing to compile
  // Whether others wait for us. Without it (no lock to be had, or not in time) the compile is private work.
  bool exclusive() const { return lock_ != nullptr; }

 private:
  friend class Cache;
  std::unique_ptr<FileLock> lock_;
};

// What a sweep of the user's folder met and did.
struct SweepResult {
  std::uint64_t entries = 0;  // before it
  std::uint64_t bytes = 0;
  std::uint64_t evicted = 0;
  std::uint64_t evicted_bytes = 0;
  std::uint64_t leftovers_removed = 0;  // temporaries and locks of writers that are no more
  std::uint64_t failures = 0;           // files and folders that could not be read or removed
  bool complete = false;                // false: interrupted, or another process was at it
  std::string reason;                   // why nothing was done, if so
};

struct CacheOptions {
  std::vector<Layer> layers;
  Mode mode = Mode::read_write;
  IoInterface* io = nullptr;                             // null: posix_io()
  std::function<void(const Event&)> on_event = nullptr;  // called from whatever thread met it; must not throw
  bool readable_by_all = false;                          // files and folders that are made to be shipped
  MemoryLayer* memory = nullptr;                         // asked last; null: none
  std::int64_t lock_wait_nanoseconds = 0;                // for another process that compiles the same key
  // The limit of the entries in the user's folder; 0: no limit. What was used longest ago goes first, in a thread of
  // its own after a publish, never what was published less than minimum_age ago.
  std::uint64_t limit_bytes = 0;
  std::int64_t minimum_age_nanoseconds = 60 * nanoseconds_per_second;
  RemoteOptions remote = {};  // asked behind memory, given what is published; without a store: none
};

class OpenLayer;

class Cache {
 public:
  explicit Cache(CacheOptions options);
  // Waits for a sweep that is under way and for entries on their way to the remote layer, a quarter of a second each at
  // most.
  ~Cache();
  Cache(const Cache&) = delete;
  Cache& operator=(const Cache&) = delete;

  // `first_layer`: 0, or Hit::layer_index() + 1 of an entry that the loader refused, to look in the layers behind it.
  std::optional<Hit> lookup(const Key& key, std::size_t first_layer = 0) noexcept;
  Turn take_turn(const Key& key) noexcept;
  PublishResult publish(const Key& key, const Compiled& compiled) noexcept;
  // Removes the entry from the writable layer: for a code object that passed every check here and that the loader
  // refuses all the same. True if a file was removed.
  bool drop(const Key& key) noexcept;
  // The same for what Hit::layer_index() says where it was found: entries of read-only layers stay, and so does the
  // user's own copy of one.
  bool drop(const Key& key, std::size_t layer_index) noexcept;
  // Every file of every layer that has an entry's name, verified, in the order of layer, target id and key. Touches no
  // counter. False if a folder could not be read (`visit` saw the rest).
  bool visit(const std::function<void(const Visited&)>& visit) noexcept;
  // The same until `visit` answers false.
  bool visit_while(const std::function<bool(const Visited&)>& visit) noexcept;
  // Whether the writable layer has a whole entry of this name. Touches no counter.
  bool has(const Digest& digest, const std::string& target_id) noexcept;
  // Makes the user's folder keep `limit_bytes` (0: only removes leftovers), now and in this thread.
  SweepResult sweep(std::uint64_t limit_bytes) noexcept;
  // Waits until everything published so far is in the remote layer. False: not all, or not in this time.
  bool flush_remote(std::int64_t nanoseconds) noexcept;
  // Whether the remote layer has an entry that would be a hit. Publishes nothing.
  bool remote_has(const Key& key) noexcept;

  Mode mode() const { return options_.mode; }
  const std::vector<Layer>& layers() const { return options_.layers; }
  // Where publish writes to; null if nowhere.
  const Layer* writable_layer() const;
  const CacheOptions& options() const { return options_; }
  IoInterface& io() const { return *io_; }
  CounterValues counters() const { return counters_.values(); }

 private:
  std::optional<Hit> lookup_in_memory(const Key& key);
  std::optional<Hit> lookup_quietly(const Key& key);
  std::optional<Hit> lookup_remotely(const Key& key);
  Turn turn_of(const Key& key, const Layer& layer);
  PublishResult publish_entry(const Key& key, std::span<const std::byte> entry);
  void tell_publish_failure(const PublishResult& result);
  PublishResult publish_to(const Layer* layer, const Key& key, std::span<const std::byte> entry);
  void sweep_if_due(const Layer& layer, std::uint64_t published_bytes);
  void sweep_behind(const Layer& layer);
  bool sweep_once(const Layer& layer);
  void account(const SweepResult& result);
  void tell(Event::Kind kind, const std::string& what);

  CacheOptions options_;
  IoInterface* io_;
  Counters counters_;
  std::vector<std::unique_ptr<OpenLayer>> open_layers_;
  std::unique_ptr<RemoteLayer> remote_;
  std::atomic<bool> publish_failure_told_{false};
  std::atomic<bool> lock_fault_told_{false};

  // What sweeps behind publishes have not counted yet.
  std::atomic<std::uint64_t> unswept_bytes_;
  std::atomic<bool> sweeping_{false};
  std::atomic<std::int64_t> sweep_deadline_;  // monotonic
  std::int64_t sweeping_process_ = 0;
  std::mutex sweeper_mutex_;
  std::jthread sweeper_;
};

}  // namespace wavejit::cache
