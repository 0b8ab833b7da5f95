// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/descriptor_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iostream>
#include <string_view>

namespace wavejit::tools {

namespace {

std::optional<int> parse_count(std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 1) return std::nullopt;
  return value;
}

}  // namespace

Result<std::vector<Line>> read_list(const std::string& path) {
  std::ifstream file;
  if (path != "-") {
    file.open(path);
    if (!file) {
      return failed(
          ExitCode::file,
          fmt::format("--list {}: cannot open it; a text file with one descriptor a line, or -, is accepted", path));
    }
  }
  std::istream& stream = path == "-" ? std::cin : file;
  std::vector<Line> lines;
  std::string text;
  for (std::size_t number = 1; std::getline(stream, text); ++number) {
    text.resize(std::min(text.find('#'), text.size()));
    const std::size_t first = text.find_first_not_of(" \t\r");
    if (first == std::string::npos) continue;
    lines.push_back({.number = number, .text = text.substr(first, text.find_last_not_of(" \t\r") - first + 1)});
  }
  if (stream.bad()) return failed(ExitCode::file, fmt::format("--list {}: cannot read it", path));
  return lines;
}

std::optional<Shard> parse_shard(const std::string& text) {
  const std::size_t slash = text.find('/');
  if (slash == std::string::npos) return std::nullopt;
  const auto part = parse_count(std::string_view(text).substr(0, slash));
  const auto parts = parse_count(std::string_view(text).substr(slash + 1));
  if (!part || !parts || *part > *parts) return std::nullopt;
  return Shard{.part = *part, .parts = *parts};
}

}  // namespace wavejit::tools
