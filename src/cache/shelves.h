// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Private to this folder: the walk over a layer's folders, <root>/v<format>/<target id>/<first 2 digits>/<name>.
#pragma once

#include <algorithm>
#include <cerrno>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cache/directory.h"
#include "cache/entry.h"
#include "cache/files.h"

namespace wavejit::cache {

inline constexpr std::size_t digest_hex_digits = 64;

// The digest that a file's name spells, if it is an entry's name in this shelf.
inline std::optional<Digest> digest_of_name(std::string_view shelf, std::string_view name) {
  if (name.size() != digest_hex_digits + entry_suffix.size() || !name.ends_with(entry_suffix)) return std::nullopt;
  if (!name.starts_with(shelf)) return std::nullopt;
  return parse_digest(name.substr(0, digest_hex_digits));
}

// Calls file(target id, shelf, folder, name) for every name in every shelf, sorted, so that lists do not change from
// one run to the next, until it answers false. Returns how many folders could not be read; one that is not there, or a
// file in its place, is no failure: others remove and add while we walk.
template <typename File>
std::size_t walk_shelves(IoInterface& io, const std::string& root, File file) {
  std::size_t failures = 0;
  const auto names_in = [&](const std::string& folder) -> std::vector<std::string> {
    auto names = uninterrupted([&] { return io.read_directory(folder); });
    if (!names) {
      failures += names.error() == ENOENT || names.error() == ENOTDIR ? 0 : 1;
      return {};
    }
    std::ranges::sort(*names);
    return *std::move(names);
  };
  const std::string top = target_directory(root, "");
  for (const std::string& target : names_in(top)) {
    if (!is_target_id(target)) continue;
    const std::string target_folder = top + target;
    for (const std::string& shelf : names_in(target_folder)) {
      if (shelf.size() != 2) continue;
      std::string folder = target_folder;
      folder += '/';
      folder += shelf;
      for (const std::string& name : names_in(folder)) {
        if (!file(target, shelf, folder, name)) return failures;
      }
    }
  }
  return failures;
}

}  // namespace wavejit::cache
