// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// An I/O interface that passes calls to the real one and lets chosen ones fail.
#pragma once

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cache/io.h"

namespace wavejit::cache {

// Passes everything on; a base for the ones below.
class PassingIo : public IoInterface {
 public:
  IoResult<int> open(const std::string& path, int flags, std::uint32_t mode) override {
    return posix_io().open(path, flags, mode);
  }
  IoResult<std::size_t> read(int file, void* bytes, std::size_t size) override {
    return posix_io().read(file, bytes, size);
  }
  IoResult<std::size_t> write(int file, const void* bytes, std::size_t size) override {
    return posix_io().write(file, bytes, size);
  }
  IoResult<std::size_t> pread(int file, void* bytes, std::size_t size, std::uint64_t offset) override {
    return posix_io().pread(file, bytes, size, offset);
  }
  IoResult<FileStatus> fstat(int file) override { return posix_io().fstat(file); }
  IoResult<FileStatus> stat(const std::string& path) override { return posix_io().stat(path); }
  IoResult<FileStatus> lstat(const std::string& path) override { return posix_io().lstat(path); }
  IoResult<void> try_lock(int file) override { return posix_io().try_lock(file); }
  IoResult<void> unlock(int file) override { return posix_io().unlock(file); }
  std::string host_name() override { return posix_io().host_name(); }
  std::int64_t monotonic_nanoseconds() override { return posix_io().monotonic_nanoseconds(); }
  void pause(std::int64_t nanoseconds) override { posix_io().pause(nanoseconds); }
  // Not to the disk: no test pulls the plug, and thousands of syncs would be most of their time.
  IoResult<void> fdatasync(int /*file*/) override { return {}; }
  IoResult<void> close(int file) override { return posix_io().close(file); }
  IoResult<void> rename(const std::string& from, const std::string& to) override { return posix_io().rename(from, to); }
  IoResult<void> unlink(const std::string& path) override { return posix_io().unlink(path); }
  IoResult<void> mkdir(const std::string& path, std::uint32_t mode) override { return posix_io().mkdir(path, mode); }
  IoResult<std::vector<std::string>> read_directory(const std::string& path) override {
    return posix_io().read_directory(path);
  }
  std::int64_t process_id() override { return posix_io().process_id(); }
  std::uint32_t effective_user() override { return posix_io().effective_user(); }
  std::int64_t now_unix_nanoseconds() override { return posix_io().now_unix_nanoseconds(); }
  std::uint64_t random_bits() override { return posix_io().random_bits(); }
};

// Counts system calls and acts before the Nth (and, if sticky, before all later ones).
class CountingIo : public PassingIo {
 public:
  int calls() const { return calls_; }

  IoResult<int> open(const std::string& path, int flags, std::uint32_t mode) override {
    if (const auto code = next("open")) return std::unexpected(*code);
    return PassingIo::open(path, flags, mode);
  }
  IoResult<std::size_t> read(int file, void* bytes, std::size_t size) override {
    if (const auto code = next("read")) return std::unexpected(*code);
    return PassingIo::read(file, bytes, shortened("read", size));
  }
  IoResult<std::size_t> write(int file, const void* bytes, std::size_t size) override {
    if (const auto code = next("write")) return std::unexpected(*code);
    return PassingIo::write(file, bytes, shortened("write", size));
  }
  IoResult<std::size_t> pread(int file, void* bytes, std::size_t size, std::uint64_t offset) override {
    if (const auto code = next("pread")) return std::unexpected(*code);
    return PassingIo::pread(file, bytes, shortened("pread", size), offset);
  }
  IoResult<FileStatus> fstat(int file) override {
    if (const auto code = next("fstat")) return std::unexpected(*code);
    return PassingIo::fstat(file);
  }
  IoResult<FileStatus> stat(const std::string& path) override {
    if (const auto code = next("stat")) return std::unexpected(*code);
    return PassingIo::stat(path);
  }
  IoResult<FileStatus> lstat(const std::string& path) override {
    if (const auto code = next("lstat")) return std::unexpected(*code);
    return PassingIo::lstat(path);
  }
  IoResult<void> try_lock(int file) override {
    if (const auto code = next("lock")) return std::unexpected(*code);
    return PassingIo::try_lock(file);
  }
  IoResult<void> unlock(int file) override {
    if (const auto code = next("unlock")) return std::unexpected(*code);
    return PassingIo::unlock(file);
  }
  IoResult<void> fdatasync(int file) override {
    if (const auto code = next("fdatasync")) return std::unexpected(*code);
    return PassingIo::fdatasync(file);
  }
  // The descriptor goes whatever the answer, as Linux does it.
  IoResult<void> close(int file) override {
    const auto code = next("close");
    auto closed = PassingIo::close(file);
    if (code) return std::unexpected(*code);
    return closed;
  }
  IoResult<void> rename(const std::string& from, const std::string& to) override {
    if (const auto code = next("rename")) return std::unexpected(*code);
    return PassingIo::rename(from, to);
  }
  IoResult<void> unlink(const std::string& path) override {
    if (const auto code = next("unlink")) return std::unexpected(*code);
    return PassingIo::unlink(path);
  }
  IoResult<void> mkdir(const std::string& path, std::uint32_t mode) override {
    if (const auto code = next("mkdir")) return std::unexpected(*code);
    return PassingIo::mkdir(path, mode);
  }
  IoResult<std::vector<std::string>> read_directory(const std::string& path) override {
    if (const auto code = next("readdir")) return std::unexpected(*code);
    return PassingIo::read_directory(path);
  }

 protected:
  // The errno that this call shall give, if any.
  virtual std::optional<int> act(int /*call*/, const char* /*name*/) { return std::nullopt; }
  virtual std::size_t shortened(const char* /*name*/, std::size_t size) { return size; }

  int last_call() const { return calls_; }

 private:
  std::optional<int> next(const char* name) { return act(++calls_, name); }

  std::atomic<int> calls_{0};
};

class FaultyIo : public CountingIo {
 public:
  // An errno; or, with `short_counts`, reads and writes of at most one byte, or of nothing at all.
  enum class Kind : std::uint8_t { error, one_byte, nothing };

  FaultyIo(Kind kind, int code, int nth, bool sticky) : kind_(kind), code_(code), nth_(nth), sticky_(sticky) {}

 protected:
  std::optional<int> act(int call, const char* /*name*/) override {
    if (kind_ != Kind::error || !hit(call)) return std::nullopt;
    return code_;
  }
  std::size_t shortened(const char* /*name*/, std::size_t size) override {
    if (kind_ == Kind::error || !hit(last_call())) return size;
    return kind_ == Kind::nothing ? 0 : std::min<std::size_t>(size, 1);
  }

 private:
  bool hit(int call) const { return sticky_ ? call >= nth_ : call == nth_; }

  Kind kind_;
  int code_;
  int nth_;
  bool sticky_;
};

// Dies as by kill -9 before its Nth call; a write dies half done.
class DyingIo : public CountingIo {
 public:
  explicit DyingIo(int nth) : nth_(nth) {}

 protected:
  std::optional<int> act(int call, const char* name) override {
    if (call == nth_ && std::string_view(name) != "write") std::raise(SIGKILL);
    return std::nullopt;
  }

 public:
  IoResult<std::size_t> write(int file, const void* bytes, std::size_t size) override {
    if (calls() + 1 == nth_) {
      (void)PassingIo::write(file, bytes, size / 2);
      std::raise(SIGKILL);
    }
    return CountingIo::write(file, bytes, size);
  }

 private:
  int nth_;
};

}  // namespace wavejit::cache
