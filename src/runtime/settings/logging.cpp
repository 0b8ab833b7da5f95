// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/settings/logging.h"

#include <spdlog/logger.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <array>
#include <utility>

namespace wavejit::runtime {
namespace {

constexpr std::array<std::pair<LogLevel, std::string_view>, 5> level_names = {{{LogLevel::off, "off"},
                                                                               {LogLevel::error, "error"},
                                                                               {LogLevel::warning, "warning"},
                                                                               {LogLevel::info, "info"},
                                                                               {LogLevel::debug, "debug"}}};

spdlog::level::level_enum spdlog_level(LogLevel level) {
  switch (level) {
    case LogLevel::off:
      return spdlog::level::off;
    case LogLevel::error:
      return spdlog::level::err;
    case LogLevel::warning:
      return spdlog::level::warn;
    case LogLevel::info:
      return spdlog::level::info;
    case LogLevel::debug:
      return spdlog::level::debug;
  }
  return spdlog::level::off;
}

}  // namespace

std::optional<LogLevel> parse_log_level(std::string_view text) {
  for (const auto& [level, name] : level_names)
    if (name == text) return level;
  return std::nullopt;
}

std::string_view to_text(LogLevel level) {
  for (const auto& [candidate, name] : level_names)
    if (candidate == level) return name;
  return "?";
}

// A logger of our own, outside spdlog's registry: nothing global, nothing another user of spdlog could reconfigure.
struct Logger::Backend {
  spdlog::logger logger;
  explicit Backend(LogLevel level) : logger("wavejit", std::make_shared<spdlog::sinks::stderr_sink_mt>()) {
    logger.set_pattern("%H:%M:%S.%e [%n] [%l] %v");
    logger.set_level(spdlog_level(level));
    logger.flush_on(spdlog::level::trace);
  }
};

Logger::Logger(LogLevel level) : level_(level), backend_(std::make_unique<Backend>(level)) {}
Logger::Logger(LogLevel level, Sink sink) : level_(level), sink_(std::move(sink)) {
  if (!sink_) backend_ = std::make_unique<Backend>(level);
}
Logger::~Logger() = default;

void Logger::write(LogLevel level, std::string_view line) noexcept {
  if (!wants(level)) return;
  try {
    if (sink_) {
      sink_(level, line);
    } else {
      backend_->logger.log(spdlog_level(level), spdlog::string_view_t(line.data(), line.size()));
    }
  } catch (...) {  // a full disk behind standard error must not fail a call
    return;
  }
}

}  // namespace wavejit::runtime
