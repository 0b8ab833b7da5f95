// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Where things lie: the user's cache directory, and an entry's path below a layer's root.
#pragma once

#include <expected>
#include <string>
#include <string_view>

#include "cache/digest.h"

namespace wavejit::cache {

// The strings a program was given; null or empty means not given. This folder reads no environment itself.
struct DirectoryHints {
  const char* directory = nullptr;       // WAVEJIT_CACHE_DIR or the caller's option: used as it is
  const char* xdg_cache_home = nullptr;  // + "/wavejit"; a relative one is ignored, as the XDG specification asks
  const char* home = nullptr;            // + "/.cache/wavejit"
};

// The root of the user's layer. The error says which strings were looked at and what would do.
std::expected<std::string, std::string> resolve_directory(const DirectoryHints& hints);

// <root>/v<format>/<target id>: the folder that holds every entry of a target.
std::string target_directory(std::string_view root, std::string_view target_id);
// <root>/v<format>/<target id>/<first 2 hex>/<64 hex>.wavejit
std::string entry_path(std::string_view root, std::string_view target_id, const Digest& digest);

inline constexpr std::string_view entry_suffix = ".wavejit";
// Names that writers give to files under way; readers never look at them.
inline constexpr std::string_view temporary_prefix = ".tmp-";

}  // namespace wavejit::cache
