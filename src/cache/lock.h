// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Private to this folder: an advisory lock between processes that only ever saves work. It is flock(2) on a small file
// beside the entry, so that the operating system releases it when its holder dies. The file says who holds it, for
// people. A process that cannot have the lock in time works without it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "cache/files.h"
#include "cache/io.h"

namespace wavejit::cache {

inline constexpr std::string_view lock_prefix = ".lock-";
inline constexpr std::size_t lock_record_bytes = 192;

// Held until it is destroyed: the file is removed, then unlocked, in this order, so that whoever gets the lock of a
// file that has no name any more knows that it is nobody's.
class FileLock {
 public:
  FileLock(IoInterface& io, FileHandle file, std::string path)
      : io_(&io), file_(std::move(file)), path_(std::move(path)), process_(io.process_id()) {}
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;
  FileLock(FileLock&& other) noexcept
      : io_(other.io_),
        file_(std::move(other.file_)),
        path_(std::exchange(other.path_, {})),
        process_(other.process_) {}
  FileLock& operator=(FileLock&&) = delete;
  ~FileLock();

 private:
  IoInterface* io_;
  FileHandle file_;
  std::string path_;
  std::int64_t process_;
};

struct LockRequest {
  std::string path;
  std::int64_t wait_nanoseconds = 0;
  // Asked between attempts; true ends the waiting: what the lock would have saved has been done by its holder.
  std::function<bool()> no_longer_needed;
  // Told once, before the waiting, who holds it: "process 12 on host since 2026-01-01T00:00:00Z".
  std::function<void(const std::string& holder)> on_wait;
};

struct LockOutcome {
  enum class Kind : std::uint8_t { taken, not_needed, timed_out, unavailable } kind = Kind::unavailable;
  std::optional<FileLock> lock;  // exactly when taken
  bool waited = false;
  std::string what;  // of unavailable: why; of timed_out: who holds it
};

LockOutcome acquire(IoInterface& io, const LockRequest& request);

// What a lock's file may say, made fit for a log.
std::string holder_text(std::string_view record);

}  // namespace wavejit::cache
