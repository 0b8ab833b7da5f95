// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Log lines of one engine, to standard error: "[wavejit] [warning] …". spdlog stands behind logging.cpp only, compiled
// in and hidden, so that the host's own spdlog or fmt is never met.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>

namespace wavejit::runtime {

enum class LogLevel : std::uint8_t { off, error, warning, info, debug };
std::optional<LogLevel> parse_log_level(std::string_view text);
std::string_view to_text(LogLevel level);

// Safe from any thread. Never throws: a log line that cannot be written is lost.
class Logger {
 public:
  using Sink = std::function<void(LogLevel, std::string_view)>;

  explicit Logger(LogLevel level);
  Logger(LogLevel level, Sink sink);  // lines go there instead of standard error, if it is not empty
  ~Logger();
  Logger(const Logger&) = delete;
  Logger& operator=(const Logger&) = delete;

  bool wants(LogLevel level) const { return level != LogLevel::off && level <= level_; }
  void write(LogLevel level, std::string_view line) noexcept;

 private:
  struct Backend;
  LogLevel level_;
  Sink sink_;
  std::unique_ptr<Backend> backend_;
};

}  // namespace wavejit::runtime
