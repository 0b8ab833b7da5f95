// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "cache/files.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <atomic>
#include <cerrno>
#include <new>
#include <system_error>

#include "cache/directory.h"
#include "cache/entry.h"

namespace wavejit::cache {

std::string errno_text(int code) {
  return std::generic_category().message(code) + " (errno " + std::to_string(code) + ")";
}

namespace {

std::unexpected<ReadFailure> failed_open(int code) {
  switch (code) {
    case ENOENT:
    case ENOTDIR:
      return read_failure(ReadProblem::absent, "no such entry");
    // open(2): ELOOP is the answer to O_NOFOLLOW on a symbolic link, ENXIO to a socket or a device that is not there.
    case ELOOP:
      return read_failure(ReadProblem::refused, "it is a symbolic link; only regular files are read");
    case ENXIO:
      return read_failure(ReadProblem::refused, "it is a socket or a device; only regular files are read");
    default:
      return read_failure(ReadProblem::fault, "cannot open: " + errno_text(code));
  }
}

}  // namespace

std::expected<OpenedFile, ReadFailure> open_trusted(IoInterface& io, const std::string& path) {
  const auto opened =
      uninterrupted([&] { return io.open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY, 0); });
  if (!opened) return failed_open(opened.error());
  FileHandle file(io, *opened);

  const auto status = uninterrupted([&] { return io.fstat(file.number()); });
  if (!status) return read_failure(ReadProblem::fault, "cannot look at it: " + errno_text(status.error()));
  if (status->type != FileType::regular) return read_failure(ReadProblem::refused, "it is not a regular file");
  if (status->owner != 0 && status->owner != io.effective_user()) {
    return read_failure(ReadProblem::refused, "it belongs to user " + std::to_string(status->owner) +
                                                  "; only files of user " + std::to_string(io.effective_user()) +
                                                  " and of root are trusted");
  }
  if ((status->permissions & S_IWOTH) != 0) return read_failure(ReadProblem::refused, "everybody may write to it");
  return OpenedFile{.file = std::move(file), .status = *status};
}

std::expected<FileBytes, ReadFailure> read_entry_file(IoInterface& io, const std::string& path) {
  const auto opened = open_trusted(io, path);
  if (!opened) return std::unexpected(opened.error());
  const FileStatus& status = opened->status;
  if (status.size > max_entry_bytes) {
    return read_failure(ReadProblem::damaged, "file size is " + std::to_string(status.size) +
                                                  "; an entry has at most " + std::to_string(max_entry_bytes) +
                                                  " bytes");
  }

  FileBytes bytes;
  bytes.size = static_cast<std::size_t>(status.size);
  bytes.status = status;
  bytes.bytes.reset(new (std::nothrow) std::byte[bytes.size]);
  if (!bytes.bytes) return read_failure(ReadProblem::fault, "no memory for " + std::to_string(bytes.size) + " bytes");
  // read(2), not mmap(2): a file cut short under a mapping is a SIGBUS in somebody else's process.
  std::size_t done = 0;
  while (done < bytes.size) {
    const auto count =
        uninterrupted([&] { return io.read(opened->file.number(), bytes.bytes.get() + done, bytes.size - done); });
    if (!count) return read_failure(ReadProblem::fault, "cannot read: " + errno_text(count.error()));
    if (*count == 0)
      return read_failure(ReadProblem::damaged, "it ends " + std::to_string(bytes.size - done) + " bytes early");
    done += *count;
  }
  return bytes;
}

namespace {

// Somebody may remove a folder between our making it and our using it; somebody doing so for ever is not waited out.
constexpr int attempts = 3;

}  // namespace

std::unexpected<std::string> cannot(std::string_view verb, const std::string& path, int code) {
  return std::unexpected("cannot " + std::string(verb) + " " + path + ": " + errno_text(code));
}

std::string parent_of(const std::string& path) { return path.substr(0, path.rfind('/')); }

Outcome make_directories(IoInterface& io, const std::string& path, const Permissions& permissions) {
  const auto made = uninterrupted([&] { return io.mkdir(path, permissions.folder); });
  if (made || made.error() == EEXIST) return {};
  const std::size_t slash = path.rfind('/');
  if (made.error() != ENOENT || slash == std::string::npos || slash == 0)
    return cannot("make the folder", path, made.error());
  if (auto above = make_directories(io, path.substr(0, slash), permissions); !above) return above;
  const auto again = uninterrupted([&] { return io.mkdir(path, permissions.folder); });
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

std::expected<Temporary, std::string> create_temporary(IoInterface& io, const std::string& folder,
                                                       const Permissions& permissions) {
  int code = 0;
  std::string path;
  for (int attempt = 0; attempt < attempts; ++attempt) {
    path = folder + "/" + temporary_name(io);
    const auto opened = uninterrupted(
        [&] { return io.open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, permissions.file); });
    if (opened) return Temporary{.path = path, .file = FileHandle(io, *opened)};
    code = opened.error();
    if (code == ENOENT) {
      if (auto made = make_directories(io, folder, permissions); !made) return std::unexpected(made.error());
    } else if (code != EEXIST) {
      break;
    }
  }
  return cannot("create", path, code);
}

void discard(IoInterface& io, const Temporary& temporary) {
  std::ignore = uninterrupted([&] { return io.unlink(temporary.path); });
}

namespace {

Outcome sync_and_rename(IoInterface& io, Temporary& temporary, const std::string& path) {
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

}  // namespace

Outcome keep_as(IoInterface& io, Temporary& temporary, const std::string& path) {
  auto outcome = sync_and_rename(io, temporary, path);
  if (!outcome) discard(io, temporary);
  return outcome;
}

Outcome write_file(IoInterface& io, const std::string& path, std::span<const std::byte> bytes,
                   const Permissions& permissions) {
  auto temporary = create_temporary(io, parent_of(path), permissions);
  if (!temporary) return std::unexpected(temporary.error());
  if (auto written = write_whole(io, temporary->file.number(), temporary->path, bytes); !written) {
    discard(io, *temporary);
    return written;
  }
  return keep_as(io, *temporary, path);
}

}  // namespace wavejit::cache
