#include <fcntl.h>

#include <atomic>
#include <cerrno>
#include <exception>
#include <tuple>
#include <utility>

#include "cache/cache.h"
#include "cache/directory.h"
#include "cache/files.h"

namespace wavejit::cache {

namespace {

// The cache is the user's own: nobody else reads or writes it.
constexpr std::uint32_t directory_mode = 0700;
constexpr std::uint32_t file_mode = 0600;

// Somebody may remove a folder between our making it and our using it; somebody doing so for ever is not waited out.
constexpr int attempts = 3;

using Outcome = std::expected<void, std::string>;

std::unexpected<std::string> cannot(std::string_view verb, const std::string& path, int code) {
  return std::unexpected("cannot " + std::string(verb) + " " + path + ": " + errno_text(code));
}

std::string parent_of(const std::string& path) { return path.substr(0, path.rfind('/')); }

// Makes `path` and what is missing above it.
Outcome make_directories(IoInterface& io, const std::string& path) {
  const auto made = uninterrupted([&] { return io.mkdir(path, directory_mode); });
  if (made || made.error() == EEXIST) return {};
  const std::size_t slash = path.rfind('/');
  if (made.error() != ENOENT || slash == std::string::npos || slash == 0)
    return cannot("make the folder", path, made.error());
  if (auto above = make_directories(io, path.substr(0, slash)); !above) return above;
  const auto again = uninterrupted([&] { return io.mkdir(path, directory_mode); });
  if (again || again.error() == EEXIST) return {};
  return cannot("make the folder", path, again.error());
}

// Unique among the threads of a process (sequence), the processes of a host (pid) and the hosts of a shared directory
// (64 random bits); O_EXCL decides when all three meet.
std::string temporary_name(IoInterface& io) {
  static std::atomic<std::uint64_t> sequence{0};
  const std::uint64_t bits = io.random_bits();
  std::string random(16, '0');
  for (std::size_t i = 0; i < random.size(); ++i) random[i] = "0123456789abcdef"[bits >> (4 * i) & 15];
  return std::string(temporary_prefix) + random + "-" + std::to_string(io.process_id()) + "-" +
         std::to_string(++sequence);
}

Outcome write_whole(IoInterface& io, int file, const std::string& path, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const auto count = uninterrupted([&] { return io.write(file, bytes.data(), bytes.size()); });
    if (!count) return cannot("write", path, count.error());
    if (*count == 0) return cannot("write", path, EIO);
    bytes = bytes.subspan(*count);
  }
  return {};
}

struct Temporary {
  std::string path;
  FileHandle file;
};

std::expected<Temporary, std::string> create_temporary(IoInterface& io, const std::string& folder) {
  int code = 0;
  std::string path;
  for (int attempt = 0; attempt < attempts; ++attempt) {
    path = folder + "/" + temporary_name(io);
    const auto opened =
        uninterrupted([&] { return io.open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, file_mode); });
    if (opened) return Temporary{.path = path, .file = FileHandle(io, *opened)};
    code = opened.error();
    if (code == ENOENT) {
      if (auto made = make_directories(io, folder); !made) return std::unexpected(made.error());
    } else if (code != EEXIST) {
      break;
    }
  }
  return cannot("create", path, code);
}

Outcome write_and_rename(IoInterface& io, Temporary& temporary, const std::string& path,
                         std::span<const std::byte> bytes) {
  if (auto written = write_whole(io, temporary.file.number(), temporary.path, bytes); !written) return written;
  // Without it a power cut can leave a renamed file of zeros (ext4's delayed allocation); half a millisecond against a
  // compile of a hundred.
  const auto synced = uninterrupted([&] { return io.fdatasync(temporary.file.number()); });
  if (!synced) return cannot("write out", temporary.path, synced.error());
  // NFS may tell of failed writes here; an interrupted close has lost nothing after the sync.
  if (auto closed = temporary.file.close(); !closed && closed.error() != EINTR) {
    return cannot("close", temporary.path, closed.error());
  }
  const auto renamed = uninterrupted([&] { return io.rename(temporary.path, path); });
  if (!renamed) return cannot("rename a temporary file to", path, renamed.error());
  return {};
}

Outcome write_file(IoInterface& io, const std::string& path, std::span<const std::byte> bytes) {
  auto temporary = create_temporary(io, parent_of(path));
  if (!temporary) return std::unexpected(temporary.error());
  auto outcome = write_and_rename(io, *temporary, path, bytes);
  if (!outcome) std::ignore = uninterrupted([&] { return io.unlink(temporary->path); });
  return outcome;
}

}  // namespace

PublishResult Cache::publish(const Key& key, const Compiled& compiled) noexcept {
  ++counters_.publishes;
  try {
    const Layer* layer = writable_layer();
    if (layer == nullptr) {
      ++counters_.publishes_skipped;
      return {.published = false,
              .reason = options_.mode == Mode::read_write ? "the cache has no writable layer"
                                                          : "the cache is " + std::string(to_text(options_.mode))};
    }
    const auto bytes = serialise({.key_text = key.text(),
                                  .target_id = key.target_id(),
                                  .kernels = compiled.kernels,
                                  .code_object = compiled.code_object});
    Outcome outcome;
    if (!bytes) {
      outcome = std::unexpected(bytes.error());
    } else {
      outcome = write_file(*io_, entry_path(layer->root, key.target_id(), key.digest()), *bytes);
    }
    if (outcome) {
      ++counters_.published;
      return {.published = true, .reason = {}};
    }
    ++counters_.publish_failures;
    tell(Event::Kind::publish_failure, outcome.error());
    return {.published = false, .reason = std::move(outcome.error())};
  } catch (const std::exception&) {
    ++counters_.publish_failures;
    return {.published = false, .reason = {}};
  }
}

bool Cache::drop(const Key& key) noexcept {
  try {
    const Layer* layer = writable_layer();
    if (layer == nullptr || !is_target_id(key.target_id())) return false;
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

}  // namespace wavejit::cache
