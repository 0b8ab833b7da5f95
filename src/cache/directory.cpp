// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "cache/directory.h"

#include "cache/entry.h"

namespace wavejit::cache {

namespace {

bool given(const char* text) { return text != nullptr && *text != '\0'; }
bool absolute(const char* text) { return given(text) && *text == '/'; }

}  // namespace

std::expected<std::string, std::string> resolve_directory(const DirectoryHints& hints) {
  if (given(hints.directory)) return std::string(hints.directory);
  if (absolute(hints.xdg_cache_home)) return std::string(hints.xdg_cache_home) + "/wavejit";
  if (absolute(hints.home)) return std::string(hints.home) + "/.cache/wavejit";
  const auto shown = [](const char* text) {
    return given(text) ? "'" + std::string(text) + "'" : std::string("not set");
  };
  return std::unexpected("no place for the cache: XDG_CACHE_HOME is " + shown(hints.xdg_cache_home) + " and HOME is " +
                         shown(hints.home) + "; one of them must be an absolute path, or name a cache directory");
}

std::string target_directory(std::string_view root, std::string_view target_id) {
  std::string path(root);
  path.append("/v").append(std::to_string(entry_format_version)).append("/").append(target_id);
  return path;
}

std::string entry_path(std::string_view root, std::string_view target_id, const Digest& digest) {
  const std::string hex = digest.hex();
  std::string path = target_directory(root, target_id);
  path.append("/").append(hex, 0, 2).append("/").append(hex).append(entry_suffix);
  return path;
}

}  // namespace wavejit::cache
