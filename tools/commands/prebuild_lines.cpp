// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/commands/prebuild_lines.h"

#include <fmt/format.h>

#include <cstddef>
#include <utility>

#include "tools/descriptor_list.h"
#include "tools/families.h"
#include "tools/presets.h"
#include "tools/served_options.h"

namespace wavejit::tools {

namespace {

Result<void> add_file(const std::string& path, const std::string& name, std::vector<PrebuildLine>& lines) {
  auto read = read_list(path);
  if (!read) return std::unexpected(read.error());
  if (read->empty()) {
    return failed(ExitCode::usage,
                  fmt::format("{}: it has no descriptors; leave it out to build every supported kernel", name));
  }
  for (Line& line : *read)
    lines.push_back({.text = std::move(line.text), .place = {.list = name, .number = line.number}});
  return {};
}

// The lines of a model's config.json.
Result<void> add_model(const std::string& path, ServedModel served, std::vector<PrebuildLine>& lines) {
  auto config = read_model(path);
  if (!config) return std::unexpected(config.error());
  served.config = *std::move(config);
  if (auto good = check_served(served, path); !good) return good;
  for (const std::string& line : told(served)) fmt::print("# {}\n", line);
  std::size_t number = 0;
  for (const Family* family : all_families())
    for (std::string& line : family->serving_lines(served))
      lines.push_back({.text = std::move(line), .place = {.list = "--model " + path, .number = ++number}});
  return {};
}

}  // namespace

Result<std::vector<PrebuildLine>> gather_lines(const PrebuildSources& sources) {
  std::vector<PrebuildLine> lines;
  lines.reserve(sources.descriptors.size());
  for (std::size_t i = 0; i < sources.descriptors.size(); ++i)
    lines.push_back({.text = sources.descriptors[i], .place = {.list = {}, .number = i + 1}});
  for (const std::string& name : sources.presets) {
    const auto preset = find_preset(name);
    if (!preset) return std::unexpected(preset.error());
    const std::size_t before = lines.size();
    if (auto added = add_file(preset->path, "--preset " + name, lines); !added) return std::unexpected(added.error());
    for (std::size_t i = before; i < lines.size(); ++i) lines[i].of_preset = true;
  }
  for (const std::string& path : sources.models)
    if (auto added = add_model(path, sources.served, lines); !added) return std::unexpected(added.error());
  for (const std::string& path : sources.lists) {
    if (auto added = add_file(path, "--list " + path, lines); !added) return std::unexpected(added.error());
  }
  return lines;
}

std::vector<PrebuildLine> in_8_bits(std::vector<PrebuildLine> lines, const std::string& kv, const std::string& target) {
  const EightBits kind = kv == kv_integers ? EightBits::integers : EightBits::floats;
  for (PrebuildLine& line : lines)
    if (const Family* family = family_of(line.text))
      line.text = kv == kv_rows_with_scales ? family->with_8_bit_rows(line.text, target)
                                            : family->with_8_bit_cache(line.text, target, kind);
  return lines;
}

}  // namespace wavejit::tools
