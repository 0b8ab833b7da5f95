// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/output_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <climits>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <system_error>
#include <utility>

namespace wavejit::tools {

namespace {

// Names of temporaries where a signal handler can reach them.
struct Slot {
  std::array<char, PATH_MAX> name{};
  std::atomic<bool> used{false};
};
std::array<Slot, 4> slots;

void remove_temporaries_and_die(int signal) {
  for (Slot& slot : slots) {
    if (slot.used) ::unlink(slot.name.data());
  }
  ::signal(signal, SIG_DFL);
  ::raise(signal);
}

void install_handlers() {
  static const bool installed = [] {
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
      struct sigaction action{};
      // A caller that ignores the signal (nohup) goes on ignoring it.
      if (::sigaction(signal, nullptr, &action) != 0 || action.sa_handler == SIG_IGN) continue;
      action = {};
      action.sa_handler = remove_temporaries_and_die;
      action.sa_flags = SA_RESTART;
      ::sigaction(signal, &action, nullptr);
    }
    return true;
  }();
  (void)installed;
}

int take_slot(const std::string& name) {
  for (std::size_t i = 0; i < slots.size(); ++i) {
    if (slots[i].used || name.size() >= slots[i].name.size()) continue;
    std::memcpy(slots[i].name.data(), name.c_str(), name.size() + 1);
    slots[i].used = true;
    return static_cast<int>(i);
  }
  return -1;
}

}  // namespace

std::unexpected<Failure> OutputFile::cannot(std::string_view verb) const {
  return failed(ExitCode::file,
                fmt::format("--{} {}: cannot {}: {}", field_, path_, verb, std::generic_category().message(errno)));
}

Result<OutputFile> OutputFile::open(const std::string& field, const std::string& path) {
  install_handlers();
  OutputFile output;
  output.field_ = field;
  output.path_ = path;
  struct stat status{};
  const bool exists = ::stat(path.c_str(), &status) == 0;
  // A name that is too long or leads through a file shows here; only a name that is free may be new.
  if (!exists && errno != ENOENT) return output.cannot("create it");
  if (path.empty() || (!exists && path.ends_with('/'))) {
    errno = path.empty() ? ENOENT : EISDIR;
    return output.cannot("create it");
  }
  if (exists && !S_ISREG(status.st_mode)) {
    return failed(
        ExitCode::file,
        fmt::format("--{} {}: it is a folder, device or pipe; a regular file or a new name is accepted", field, path));
  }
  if (exists) {
    // Renaming over a symbolic link would replace the link, not the file that its owner means.
    const std::unique_ptr<char, void (*)(void*)> resolved(::realpath(path.c_str(), nullptr), ::free);
    if (!resolved) return output.cannot("follow it");
    output.path_ = resolved.get();
    if (::access(output.path_.c_str(), W_OK) != 0) return output.cannot("write to it");
  }
  const std::size_t slash = output.path_.rfind('/');
  const std::string folder = slash == std::string::npos ? "" : output.path_.substr(0, slash + 1);
  const auto ticks = std::chrono::steady_clock::now().time_since_epoch().count();
  output.temporary_ = fmt::format("{}.wavejit-{}-{}-{}", folder, field, ::getpid(), ticks);
  output.slot_ = take_slot(output.temporary_);
  if (output.slot_ < 0) {
    errno = ENAMETOOLONG;
    output.temporary_.clear();
    return output.cannot("write beside it");
  }
  // As if the file itself were created: the caller's umask decides, or the old file's permissions.
  output.file_ = ::open(output.temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (output.file_ < 0) return output.cannot("create a file in its folder");
  if (exists) (void)::fchmod(output.file_, status.st_mode & 0777);
  return output;
}

OutputFile::OutputFile(OutputFile&& other) noexcept
    : field_(std::move(other.field_)),
      path_(std::move(other.path_)),
      temporary_(std::exchange(other.temporary_, {})),
      file_(std::exchange(other.file_, -1)),
      slot_(std::exchange(other.slot_, -1)) {}

OutputFile::~OutputFile() {
  if (file_ >= 0) {
    ::close(file_);
    ::unlink(temporary_.c_str());
  }
  if (slot_ >= 0) slots[static_cast<std::size_t>(slot_)].used = false;
}

Result<void> OutputFile::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(file_, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return cannot("write");
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  return {};
}

Result<void> OutputFile::commit() {
  if (::fdatasync(file_) != 0) return cannot("write");
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) return cannot("rename a finished file to it");
  slots[static_cast<std::size_t>(slot_)].used = false;
  slot_ = -1;
  ::close(std::exchange(file_, -1));
  return {};
}

Result<void> OutputFile::finish(std::string_view bytes) {
  if (auto written = write(bytes); !written) return written;
  return commit();
}

Result<std::optional<OutputFile>> open_if_named(const std::string& field, const std::string& path) {
  if (path.empty()) return std::nullopt;
  return OutputFile::open(field, path).transform([](OutputFile file) { return std::optional(std::move(file)); });
}

}  // namespace wavejit::tools
