// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

namespace wavejit::tools {

namespace {

constexpr int bar_cells = 24;
// More often than this only flickers.
constexpr std::chrono::milliseconds redraw_interval{80};

int terminal_columns() {
  struct winsize size{};
  if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
  return size.ws_col;
}

std::string duration_text(double seconds) {
  if (seconds < 60) return fmt::format("{:.0f} s", seconds);
  const auto whole = static_cast<std::int64_t>(seconds);
  return fmt::format("{} min {:02} s", whole / 60, whole % 60);
}

}  // namespace

std::string progress_line(std::uint64_t done, std::uint64_t total, const std::string& unit, double seconds, int columns,
                          std::uint64_t idle) {
  const double part = total == 0 ? 1.0 : static_cast<double>(done) / static_cast<double>(total);
  const int filled = std::clamp(static_cast<int>(part * bar_cells), 0, bar_cells);
  std::string line = fmt::format("[{:#<{}}{:->{}}] {}/{} {}", "", filled, "", bar_cells - filled, done, total, unit);
  if (done > idle && seconds > 0) {
    const double rate = static_cast<double>(done - idle) / seconds;
    line += fmt::format("  {:.1f}/s", rate);
    if (done < total) line += "  " + duration_text(static_cast<double>(total - done) / rate) + " left";
  }
  if (line.size() > static_cast<std::size_t>(columns)) line.resize(static_cast<std::size_t>(std::max(columns, 0)));
  return line;
}

Progress::Progress(std::string unit)
    : unit_(std::move(unit)),
      terminal_(::isatty(STDERR_FILENO) != 0),
      started_(Clock::now()),
      last_drawn_(started_ - redraw_interval) {}

Progress::~Progress() {
  if (drawn_) std::fputs("\n", stderr);
}

void Progress::update(std::uint64_t done, std::uint64_t total, const std::string& event, bool problem,
                      std::uint64_t idle) {
  if (!terminal_) {
    if (!event.empty()) fmt::print(stderr, "[{}/{}] {}\n", done, total, event);
    return;
  }
  if (problem) fmt::print(stderr, "\r\x1b[K{}\n", event);
  if (problem || done == total || Clock::now() - last_drawn_ >= redraw_interval) draw(done, total, idle);
}

void Progress::draw(std::uint64_t done, std::uint64_t total, std::uint64_t idle) {
  last_drawn_ = Clock::now();
  const double seconds = std::chrono::duration<double>(last_drawn_ - started_).count();
  fmt::print(stderr, "\r\x1b[K{}", progress_line(done, total, unit_, seconds, terminal_columns() - 1, idle));
  std::fflush(stderr);
  drawn_ = true;
}

}  // namespace wavejit::tools
