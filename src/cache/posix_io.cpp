// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <memory>
#include <random>
#include <string_view>

#include "cache/io.h"

namespace wavejit::cache {

namespace {

std::unexpected<int> failure() { return std::unexpected(errno); }

IoResult<void> outcome(int returned) {
  if (returned != 0) return failure();
  return {};
}

FileType type_of(mode_t mode) {
  if (S_ISREG(mode)) return FileType::regular;
  if (S_ISDIR(mode)) return FileType::directory;
  if (S_ISLNK(mode)) return FileType::symbolic_link;
  return FileType::other;
}

std::int64_t nanoseconds_of(const timespec& time) { return time.tv_sec * nanoseconds_per_second + time.tv_nsec; }

FileStatus status_of(const struct stat& status) {
  return {.type = type_of(status.st_mode),
          .permissions = status.st_mode & 07777U,
          .owner = status.st_uid,
          .size = static_cast<std::uint64_t>(status.st_size),
          .modified_unix_nanoseconds = nanoseconds_of(status.st_mtim),
          .accessed_unix_nanoseconds = nanoseconds_of(status.st_atim),
          .device = status.st_dev,
          .inode = status.st_ino,
          .links = status.st_nlink};
}

struct CloseDirectory {
  void operator()(DIR* directory) const { ::closedir(directory); }
};

class PosixIo final : public IoInterface {
 public:
  IoResult<int> open(const std::string& path, int flags, std::uint32_t mode) override {
    const int file = ::open(path.c_str(), flags, static_cast<mode_t>(mode));
    if (file < 0) return failure();
    return file;
  }
  IoResult<std::size_t> read(int file, void* bytes, std::size_t size) override {
    const ssize_t count = ::read(file, bytes, size);
    if (count < 0) return failure();
    return static_cast<std::size_t>(count);
  }
  IoResult<std::size_t> write(int file, const void* bytes, std::size_t size) override {
    const ssize_t count = ::write(file, bytes, size);
    if (count < 0) return failure();
    return static_cast<std::size_t>(count);
  }
  IoResult<std::size_t> pread(int file, void* bytes, std::size_t size, std::uint64_t offset) override {
    const ssize_t count = ::pread(file, bytes, size, static_cast<off_t>(offset));
    if (count < 0) return failure();
    return static_cast<std::size_t>(count);
  }
  IoResult<FileStatus> fstat(int file) override {
    struct stat status{};
    if (::fstat(file, &status) != 0) return failure();
    return status_of(status);
  }
  IoResult<FileStatus> stat(const std::string& path) override {
    struct stat status{};
    if (::stat(path.c_str(), &status) != 0) return failure();
    return status_of(status);
  }
  IoResult<FileStatus> lstat(const std::string& path) override {
    struct stat status{};
    if (::lstat(path.c_str(), &status) != 0) return failure();
    return status_of(status);
  }
  IoResult<void> fdatasync(int file) override { return outcome(::fdatasync(file)); }
  IoResult<void> close(int file) override { return outcome(::close(file)); }
  IoResult<void> rename(const std::string& from, const std::string& to) override {
    return outcome(::rename(from.c_str(), to.c_str()));
  }
  IoResult<void> unlink(const std::string& path) override { return outcome(::unlink(path.c_str())); }
  IoResult<void> mkdir(const std::string& path, std::uint32_t mode) override {
    return outcome(::mkdir(path.c_str(), static_cast<mode_t>(mode)));
  }
  IoResult<std::vector<std::string>> read_directory(const std::string& path) override {
    const std::unique_ptr<DIR, CloseDirectory> directory(::opendir(path.c_str()));
    if (!directory) return failure();
    std::vector<std::string> names;
    for (;;) {
      errno = 0;
      const dirent* found = ::readdir(directory.get());
      if (found == nullptr) {
        if (errno != 0) return failure();
        return names;
      }
      const std::string_view name = found->d_name;
      if (name != "." && name != "..") names.emplace_back(name);
    }
  }

  IoResult<void> try_lock(int file) override { return outcome(::flock(file, LOCK_EX | LOCK_NB)); }
  IoResult<void> unlock(int file) override { return outcome(::flock(file, LOCK_UN)); }

  std::int64_t process_id() override { return ::getpid(); }
  std::string host_name() override {
    std::array<char, 256> name{};
    if (::gethostname(name.data(), name.size() - 1) != 0) return "?";
    return name.data();
  }
  std::uint32_t effective_user() override { return ::geteuid(); }
  std::int64_t now_unix_nanoseconds() override {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch())
        .count();
  }
  std::int64_t monotonic_nanoseconds() override {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
  }
  void pause(std::int64_t nanoseconds) override {
    const timespec time = {.tv_sec = nanoseconds / nanoseconds_per_second,
                           .tv_nsec = nanoseconds % nanoseconds_per_second};
    (void)::nanosleep(&time, nullptr);
  }
  std::uint64_t random_bits() override {
    std::uint64_t bits = 0;
    // Kernels and sandboxes without getrandom leave the clock, which with pid and sequence is still unique in a host.
    if (::getrandom(&bits, sizeof bits, GRND_NONBLOCK) != static_cast<ssize_t>(sizeof bits)) {
      bits = static_cast<std::uint64_t>(now_unix_nanoseconds());
    }
    return bits;
  }
};

}  // namespace

IoInterface& posix_io() {
  // Never destroyed: a sweep may still be under way when a process that keeps its engines ends.
  static IoInterface& io = *new PosixIo;
  return io;
}

}  // namespace wavejit::cache
