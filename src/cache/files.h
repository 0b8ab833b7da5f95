// Private to this room: whole-file reads and writes on top of single system calls.
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "cache/io.h"

namespace wavejit::cache {

// A signal handler of the host without SA_RESTART may interrupt a call now and then; a file system that answers EINTR
// for ever must not hang us. Guess: nobody is hit by that many signals in a row.
inline constexpr int interruptions_allowed = 100;

// Repeats `call` while it answers EINTR.
template <typename Call>
auto uninterrupted(Call call) {
  auto result = call();
  for (int i = 0; i < interruptions_allowed && !result && result.error() == EINTR; ++i) result = call();
  return result;
}

// "No space left on device (errno 28)"
std::string errno_text(int code);

// Closes at the end of the scope; close() tells whether that went well, which matters after writes.
class FileHandle {
 public:
  FileHandle(IoInterface& io, int file) : io_(&io), file_(file) {}
  FileHandle(const FileHandle&) = delete;
  FileHandle& operator=(const FileHandle&) = delete;
  FileHandle(FileHandle&& other) noexcept : io_(other.io_), file_(std::exchange(other.file_, -1)) {}
  FileHandle& operator=(FileHandle&&) = delete;
  ~FileHandle() {
    if (file_ >= 0) std::ignore = io_->close(file_);
  }

  int number() const { return file_; }
  // Linux has closed the descriptor even when it answers EINTR: one call, never repeated.
  IoResult<void> close() { return io_->close(std::exchange(file_, -1)); }

 private:
  IoInterface* io_;
  int file_;
};

enum class ReadProblem : std::uint8_t { absent, refused, damaged, fault };

struct ReadFailure {
  ReadProblem problem;
  std::string what;  // without the path
};

struct FileBytes {
  std::unique_ptr<std::byte[]> bytes;
  std::size_t size = 0;
  FileStatus status;

  std::span<const std::byte> view() const { return {bytes.get(), size}; }
};

// Opens without following a symbolic link or waiting for a pipe, looks at what was opened, and reads it whole. Refuses
// what is not a regular file of ours or root's, or what everybody may write to.
std::expected<FileBytes, ReadFailure> read_entry_file(IoInterface& io, const std::string& path);

}  // namespace wavejit::cache
