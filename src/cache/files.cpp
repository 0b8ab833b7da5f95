#include "cache/files.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <new>
#include <system_error>

#include "cache/entry.h"

namespace wavejit::cache {

std::string errno_text(int code) {
  return std::generic_category().message(code) + " (errno " + std::to_string(code) + ")";
}

namespace {

std::unexpected<ReadFailure> failed(ReadProblem problem, std::string what) {
  return std::unexpected(ReadFailure{.problem = problem, .what = std::move(what)});
}

std::unexpected<ReadFailure> failed_open(int code) {
  switch (code) {
    case ENOENT:
    case ENOTDIR:
      return failed(ReadProblem::absent, "no such entry");
    // open(2): ELOOP is the answer to O_NOFOLLOW on a symbolic link, ENXIO to a socket or a device that is not there.
    case ELOOP:
      return failed(ReadProblem::refused, "it is a symbolic link; only regular files are read");
    case ENXIO:
      return failed(ReadProblem::refused, "it is a socket or a device; only regular files are read");
    default:
      return failed(ReadProblem::fault, "cannot open: " + errno_text(code));
  }
}

}  // namespace

std::expected<FileBytes, ReadFailure> read_entry_file(IoInterface& io, const std::string& path) {
  const auto opened =
      uninterrupted([&] { return io.open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY, 0); });
  if (!opened) return failed_open(opened.error());
  const FileHandle file(io, *opened);

  const auto status = uninterrupted([&] { return io.fstat(file.number()); });
  if (!status) return failed(ReadProblem::fault, "cannot look at it: " + errno_text(status.error()));
  if (status->type != FileType::regular) return failed(ReadProblem::refused, "it is not a regular file");
  if (status->owner != 0 && status->owner != io.effective_user()) {
    return failed(ReadProblem::refused, "it belongs to user " + std::to_string(status->owner) +
                                            "; only files of user " + std::to_string(io.effective_user()) +
                                            " and of root are trusted");
  }
  if ((status->permissions & S_IWOTH) != 0) return failed(ReadProblem::refused, "everybody may write to it");
  if (status->size > max_entry_bytes) {
    return failed(ReadProblem::damaged, "file size is " + std::to_string(status->size) + "; an entry has at most " +
                                            std::to_string(max_entry_bytes) + " bytes");
  }

  FileBytes bytes;
  bytes.size = static_cast<std::size_t>(status->size);
  bytes.status = *status;
  bytes.bytes.reset(new (std::nothrow) std::byte[bytes.size]);
  if (!bytes.bytes) return failed(ReadProblem::fault, "no memory for " + std::to_string(bytes.size) + " bytes");
  // read(2), not mmap(2): a file cut short under a mapping is a SIGBUS in somebody else's process.
  std::size_t done = 0;
  while (done < bytes.size) {
    const auto count =
        uninterrupted([&] { return io.read(file.number(), bytes.bytes.get() + done, bytes.size - done); });
    if (!count) return failed(ReadProblem::fault, "cannot read: " + errno_text(count.error()));
    if (*count == 0)
      return failed(ReadProblem::damaged, "it ends " + std::to_string(bytes.size - done) + " bytes early");
    done += *count;
  }
  return bytes;
}

}  // namespace wavejit::cache
