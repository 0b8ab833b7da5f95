// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/row_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

namespace wavejit::tools {

std::unexpected<Failure> RowFile::cannot(std::string_view verb) const {
  return failed(ExitCode::file,
                fmt::format("--{} {}: cannot {}: {}", field_, path_, verb, std::generic_category().message(errno)));
}

Result<RowFile> RowFile::open(const std::string& field, const std::string& path) {
  RowFile rows;
  rows.field_ = field;
  rows.path_ = path;
  // Without O_TRUNC: what is no regular file is left as it is. O_NONBLOCK: nor is a pipe's reader waited for.
  rows.file_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0666);
  struct stat status{};
  if (rows.file_ < 0 && errno != EISDIR && errno != ENXIO) return rows.cannot("write to it");
  if (rows.file_ < 0 || ::fstat(rows.file_, &status) != 0 || !S_ISREG(status.st_mode)) {
    return failed(
        ExitCode::file,
        fmt::format("--{} {}: it is a folder, device or pipe; a regular file or a new name is accepted", field, path));
  }
  if (::ftruncate(rows.file_, 0) != 0) return rows.cannot("empty it");
  return rows;
}

RowFile::RowFile(RowFile&& other) noexcept
    : field_(std::move(other.field_)), path_(std::move(other.path_)), file_(std::exchange(other.file_, -1)) {}

RowFile::~RowFile() {
  if (file_ >= 0) ::close(file_);
}

Result<void> RowFile::write(std::string_view row) {
  const off_t before = ::lseek(file_, 0, SEEK_END);
  std::string_view rest = row;
  while (!rest.empty()) {
    const ssize_t count = ::write(file_, rest.data(), rest.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      const auto failure = cannot("write");
      // Half a row would be read as a wrong one.
      if (rest.size() != row.size() && ::ftruncate(file_, before) != 0) return cannot("take half a row back");
      return failure;
    }
    rest.remove_prefix(static_cast<std::size_t>(count));
  }
  return {};
}

}  // namespace wavejit::tools
