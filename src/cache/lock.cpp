// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "cache/lock.h"

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <ctime>
#include <format>
#include <tuple>
#include <utility>

namespace wavejit::cache {

namespace {

// The first look again comes soon, since compiles may be almost done; many processes that wait long must not keep the
// cores busy.
constexpr std::int64_t first_pause = 1 * nanoseconds_per_millisecond;
constexpr std::int64_t longest_pause = 10 * nanoseconds_per_millisecond;
// A file that somebody removes each time before we lock it is not waited out.
constexpr int reopenings = 1000;

std::string record_of(IoInterface& io) {
  const std::time_t seconds = io.now_unix_nanoseconds() / nanoseconds_per_second;
  std::tm parts{};
  std::array<char, 32> time{};
  if (::gmtime_r(&seconds, &parts) != nullptr)
    (void)std::strftime(time.data(), time.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  std::string record =
      std::format("process {} on {:.100} since {}", io.process_id(), io.host_name(), std::string(time.data()));
  record.resize(lock_record_bytes - 1, ' ');
  return record + '\n';
}

// Fixed length, so that the next holder's record covers it.
void write_record(IoInterface& io, int file) {
  const std::string record = record_of(io);
  std::ignore = uninterrupted([&] { return io.write(file, record.data(), record.size()); });
}

std::string read_holder(IoInterface& io, int file) {
  std::array<char, lock_record_bytes> record;
  const auto count = uninterrupted([&] { return io.pread(file, record.data(), record.size(), 0); });
  return holder_text(std::string_view(record.data(), count ? *count : 0));
}

LockOutcome unavailable(std::string what) {
  return {.kind = LockOutcome::Kind::unavailable, .lock = std::nullopt, .waited = false, .what = std::move(what)};
}

std::expected<FileHandle, std::string> open_lock(IoInterface& io, const std::string& path) {
  constexpr int flags = O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY;
  const auto open = [&] { return uninterrupted([&] { return io.open(path, flags, 0600); }); };
  auto opened = open();
  if (!opened && opened.error() == ENOENT) {
    if (auto made = make_directories(io, parent_of(path)); !made) return std::unexpected(made.error());
    opened = open();
  }
  if (!opened) return cannot("open", path, opened.error());
  FileHandle file(io, *opened);
  const auto status = uninterrupted([&] { return io.fstat(file.number()); });
  if (!status) return cannot("look at", path, status.error());
  if (status->type != FileType::regular || status->owner != io.effective_user())
    return std::unexpected(path + " is not a regular file of ours");
  return file;
}

}  // namespace

FileLock::~FileLock() {
  if (file_.number() < 0) return;
  // A child of fork() holds the same lock and is not who took it.
  if (io_->process_id() != process_) return;
  std::ignore = uninterrupted([&] { return io_->unlink(path_); });
  // close() alone would leave it locked while a forked child has the file open.
  std::ignore = uninterrupted([&] { return io_->unlock(file_.number()); });
}

std::string holder_text(std::string_view record) {
  std::string text;
  for (const char c : record.substr(0, lock_record_bytes)) {
    if (c == '\n') break;
    text.push_back(static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) >= 0x7f ? '?' : c);
  }
  text.erase(text.find_last_not_of(' ') + 1);
  return text.empty() ? "an unknown process (the lock file names none)" : text;
}

LockOutcome acquire(IoInterface& io, const LockRequest& request) {
  const std::int64_t deadline = io.monotonic_nanoseconds() + request.wait_nanoseconds;
  std::int64_t pause = first_pause;
  bool waited = false;
  for (int opening = 0; opening < reopenings; ++opening) {
    auto opened = open_lock(io, request.path);
    if (!opened) return unavailable(std::move(opened.error()));
    FileHandle file = *std::move(opened);
    for (;;) {
      const auto locked = uninterrupted([&] { return io.try_lock(file.number()); });
      if (locked) break;
      if (locked.error() != EWOULDBLOCK) return unavailable(cannot("lock", request.path, locked.error()).error());
      const std::int64_t now = io.monotonic_nanoseconds();
      if (now >= deadline) {
        return {.kind = LockOutcome::Kind::timed_out,
                .lock = std::nullopt,
                .waited = waited,
                .what = read_holder(io, file.number())};
      }
      if (!waited && request.on_wait) request.on_wait(read_holder(io, file.number()));
      waited = true;
      io.pause(std::min(pause, deadline - now));
      pause = std::min(pause + pause / 2, longest_pause);
      if (request.no_longer_needed && request.no_longer_needed())
        return {.kind = LockOutcome::Kind::not_needed, .lock = std::nullopt, .waited = true, .what = {}};
    }
    const auto status = uninterrupted([&] { return io.fstat(file.number()); });
    if (!status) return unavailable(cannot("look at", request.path, status.error()).error());
    if (status->links != 0) {
      write_record(io, file.number());
      LockOutcome outcome{.kind = LockOutcome::Kind::taken, .lock = std::nullopt, .waited = waited, .what = {}};
      outcome.lock.emplace(io, std::move(file), request.path);
      return outcome;
    }
    // Its last holder removed the file before letting go: the lock that counts is on a newer one.
  }
  return unavailable(request.path + " is removed again and again");
}

}  // namespace wavejit::cache
