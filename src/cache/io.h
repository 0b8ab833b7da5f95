// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Every touch of the file system and the clock goes through IoInterface, so that tests can let any call fail, and so
// that each call's errno reaches one place. Functions mean exactly what POSIX means by them, one system call each, with
// no retry: callers deal with EINTR and with short reads and writes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <string>
#include <vector>

namespace wavejit::cache {

// A value or the errno.
template <typename T>
using IoResult = std::expected<T, int>;

enum class FileType : std::uint8_t { regular, directory, symbolic_link, other };

struct FileStatus {
  FileType type = FileType::other;
  std::uint32_t permissions = 0;  // the low 12 bits of st_mode
  std::uint32_t owner = 0;
  std::uint64_t size = 0;
  std::int64_t modified_unix_nanoseconds = 0;
  std::int64_t accessed_unix_nanoseconds = 0;
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::uint64_t links = 0;  // 0: no name leads to it any more
};

inline constexpr std::int64_t nanoseconds_per_second = 1'000'000'000;
inline double seconds_of(std::int64_t nanoseconds) { return static_cast<double>(nanoseconds) / nanoseconds_per_second; }
inline constexpr std::int64_t nanoseconds_per_millisecond = 1'000'000;

class IoInterface {
 public:
  IoInterface() = default;
  IoInterface(const IoInterface&) = delete;
  IoInterface& operator=(const IoInterface&) = delete;
  virtual ~IoInterface() = default;

  virtual IoResult<int> open(const std::string& path, int flags, std::uint32_t mode) = 0;
  virtual IoResult<std::size_t> read(int file, void* bytes, std::size_t size) = 0;
  virtual IoResult<std::size_t> pread(int file, void* bytes, std::size_t size, std::uint64_t offset) = 0;
  virtual IoResult<std::size_t> write(int file, const void* bytes, std::size_t size) = 0;
  virtual IoResult<FileStatus> fstat(int file) = 0;
  virtual IoResult<FileStatus> stat(const std::string& path) = 0;   // of what a symbolic link leads to
  virtual IoResult<FileStatus> lstat(const std::string& path) = 0;  // of the link itself
  virtual IoResult<void> fdatasync(int file) = 0;
  virtual IoResult<void> close(int file) = 0;
  virtual IoResult<void> rename(const std::string& from, const std::string& to) = 0;
  virtual IoResult<void> unlink(const std::string& path) = 0;
  virtual IoResult<void> mkdir(const std::string& path, std::uint32_t mode) = 0;
  // Names without "." and "..", in no order.
  virtual IoResult<std::vector<std::string>> read_directory(const std::string& path) = 0;

  // flock(2), exclusive, never waiting: EWOULDBLOCK when somebody else has it.
  virtual IoResult<void> try_lock(int file) = 0;
  virtual IoResult<void> unlock(int file) = 0;

  virtual std::int64_t process_id() = 0;
  virtual std::string host_name() = 0;
  virtual std::uint32_t effective_user() = 0;
  virtual std::int64_t now_unix_nanoseconds() = 0;
  virtual std::int64_t monotonic_nanoseconds() = 0;
  virtual void pause(std::int64_t nanoseconds) = 0;  // may be shorter
  virtual std::uint64_t random_bits() = 0;
};

// The real one; no state, safe from any thread.
IoInterface& posix_io();

}  // namespace wavejit::cache
