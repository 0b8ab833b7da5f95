// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/call/miss_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

namespace wavejit::runtime {

void MissLog::note(const families::Shape& shape, std::string_view line) noexcept {
  if (path_.empty()) return;
  try {
    std::string problem;
    {
      const std::scoped_lock lock(mutex_);
      if (noted_.emplace(shape.family, shape.code).second) problem = append(std::string(line) + '\n');
    }
    // The log's lines may go to the caller's function.
    if (!problem.empty()) logger_.write(LogLevel::warning, problem);
  } catch (...) {  // no memory for a line of a log
    return;
  }
}

std::string MissLog::append(std::string line) {
  // Opened for each line: lines are rare, and whoever rotates the file finds it closed. O_NONBLOCK: a pipe without a
  // reader must not stop a request. One write of O_APPEND, so that lines of several processes do not mix.
  const int file = ::open(path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0644);
  ssize_t written = -1;
  int error = errno;
  if (file >= 0) {
    do {
      written = ::write(file, line.data(), line.size());
      error = errno;
    } while (written < 0 && error == EINTR);
    ::close(file);
  }
  if (std::cmp_equal(written, line.size()) || warned_) return {};
  warned_ = true;
  return "miss_log = " + path_ + ": " + (written < 0 ? std::generic_category().message(error) : "written in part") +
         "; misses are not noted there";
}

}  // namespace wavejit::runtime
