// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How far a long command is: one line that is rewritten on a terminal, plain lines in a log.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace wavejit::tools {

class Progress {
 public:
  // Writes to stderr. `unit` in the plural: "kernels".
  explicit Progress(std::string unit);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress();  // leaves the cursor on a fresh line

  // `event` is the plain line for a log ("compiled <spec>"); a `problem` is printed on a terminal too. `idle` counts
  // what was there already and cost nothing: the rate and the time left leave it out.
  void update(std::uint64_t done, std::uint64_t total, const std::string& event, bool problem, std::uint64_t idle = 0);

 private:
  using Clock = std::chrono::steady_clock;

  void draw(std::uint64_t done, std::uint64_t total, std::uint64_t idle);

  std::string unit_;
  bool terminal_;
  bool drawn_ = false;
  Clock::time_point started_;
  Clock::time_point last_drawn_;
};

// "[######----]  12/64 kernels  3.4/s  15 s left", cut to `columns`.
std::string progress_line(std::uint64_t done, std::uint64_t total, const std::string& unit, double seconds, int columns,
                          std::uint64_t idle = 0);

}  // namespace wavejit::tools
