// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/presets.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "vocabulary/nearest_word.h"

namespace wavejit::tools {

namespace {

namespace fs = std::filesystem;

constexpr const char* suffix = ".txt";

std::string title_of(const fs::path& file) {
  std::ifstream stream(file);
  std::string line;
  std::getline(stream, line);
  const std::size_t first = line.find_first_not_of("# ");
  return first == std::string::npos ? std::string() : line.substr(first);
}

}  // namespace

Result<std::vector<Preset>> find_presets() {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  const fs::path folder = (program.parent_path() / WAVEJIT_PRESETS_FROM_PROGRAM).lexically_normal();
  std::vector<Preset> presets;
  if (!error) {
    for (fs::directory_iterator file(folder, error), end; !error && file != end; file.increment(error)) {
      if (file->path().extension() != suffix) continue;
      presets.push_back(
          {.name = file->path().stem().string(), .path = file->path().string(), .title = title_of(file->path())});
    }
  }
  if (error)
    return failed(ExitCode::file,
                  fmt::format("presets: cannot read the folder {}: {}", folder.string(), error.message()));
  std::ranges::sort(presets, {}, &Preset::name);
  return presets;
}

Result<Preset> find_preset(const std::string& name) {
  const auto presets = find_presets();
  if (!presets) return std::unexpected(presets.error());
  const auto found = std::ranges::find(*presets, name, &Preset::name);
  if (found != presets->end()) return *found;
  std::vector<std::string> names;
  for (const Preset& preset : *presets) names.push_back(preset.name);
  return failed(ExitCode::usage,
                fmt::format("--preset {}: it is not known{}", name,
                            vocabulary::meant_or_list(name, names, "`wavejit prebuild --list-presets`")));
}

}  // namespace wavejit::tools
