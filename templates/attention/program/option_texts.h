// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Options of `wavejit run` whose text is looked at when it is parsed and read when it is needed.
#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include "tools/engine_options.h"

namespace wavejit::attention::program {

template <typename Number>
std::optional<Number> parse_number(std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

inline std::optional<float> parse_finite(const std::string& text) {
  const auto value = parse_number<float>(text);
  return value && std::isfinite(*value) ? value : std::nullopt;
}
inline std::optional<float> parse_positive(const std::string& text) {
  const auto value = parse_finite(text);
  return value && *value > 0 ? value : std::nullopt;
}
// auto: 0, the engine's choice.
inline std::optional<std::int32_t> parse_splits(const std::string& text) {
  if (text == "auto") return 0;
  const auto value = parse_number<std::int32_t>(text);
  return value && *value >= 1 ? value : std::nullopt;
}

// `parse_text`: text → something that is false where it is not accepted.
template <typename Parse>
void add_parsed(CLI::App& command, const std::string& name, std::string& value, const std::string& type_name,
                const std::string& help, Parse parse_text, const std::string& accepted) {
  tools::limit(command.add_option(name, value, help), type_name, [parse_text, accepted](const std::string& given) {
    return parse_text(given) ? std::string() : fmt::format("'{}' is not accepted; {}", given, accepted);
  });
}

}  // namespace wavejit::attention::program
