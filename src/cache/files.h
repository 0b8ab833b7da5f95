// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Private to this folder: whole-file reads and writes on top of single system calls.
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

inline std::unexpected<ReadFailure> read_failure(ReadProblem problem, std::string what) {
  return std::unexpected(ReadFailure{.problem = problem, .what = std::move(what)});
}

struct OpenedFile {
  FileHandle file;
  FileStatus status;
};

// Opens without following a symbolic link or waiting for a pipe and looks at what was opened. Refuses what is not a
// regular file of ours or root's, or what everybody may write to.
std::expected<OpenedFile, ReadFailure> open_trusted(IoInterface& io, const std::string& path);
// The same, read whole; an entry's size at most.
std::expected<FileBytes, ReadFailure> read_entry_file(IoInterface& io, const std::string& path);

// Writing. Errors are "cannot <verb> <path>: <errno text>".
using Outcome = std::expected<void, std::string>;

// The users who may read what is written; nobody else ever writes it.
struct Permissions {
  std::uint32_t folder;
  std::uint32_t file;
};
inline constexpr Permissions users_own = {.folder = 0700, .file = 0600};
inline constexpr Permissions readable_by_all = {.folder = 0755, .file = 0644};  // what is made to be shipped

std::unexpected<std::string> cannot(std::string_view verb, const std::string& path, int code);
std::string parent_of(const std::string& path);
// Makes `path` and what is missing above it.
Outcome make_directories(IoInterface& io, const std::string& path, const Permissions& permissions = users_own);
Outcome write_whole(IoInterface& io, int file, const std::string& path, std::span<const std::byte> bytes);
// A name that no other writer uses, readers never look at, and a sweep removes when it is old.
std::string temporary_name(IoInterface& io);

struct Temporary {
  std::string path;
  FileHandle file;
};
// A new file in `folder`, which is made if it is not there.
std::expected<Temporary, std::string> create_temporary(IoInterface& io, const std::string& folder,
                                                       const Permissions& permissions = users_own);
// fdatasync, close, rename to `path`; on a failure of any the temporary is removed.
Outcome keep_as(IoInterface& io, Temporary& temporary, const std::string& path);
void discard(IoInterface& io, const Temporary& temporary);
// The whole of it: readers see what was there before, or all of `bytes`.
Outcome write_file(IoInterface& io, const std::string& path, std::span<const std::byte> bytes,
                   const Permissions& permissions = users_own);

}  // namespace wavejit::cache
