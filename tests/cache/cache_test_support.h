// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the cache's tests share: a scratch folder, a sample entry, a picture of a folder tree.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "cache/cache.h"
#include "cache/directory.h"
#include "tests/support/scratch_directory.h"

namespace wavejit::cache {

using tests::ScratchDirectory;

inline std::vector<std::byte> sample_code(std::size_t size, std::uint32_t seed = 1) {
  std::vector<std::byte> bytes(size);
  std::uint32_t state = seed * 2654435761U + 12345U;
  for (std::byte& byte : bytes) {
    state = state * 1664525U + 1013904223U;
    byte = static_cast<std::byte>(state >> 24);
  }
  return bytes;
}

inline std::vector<KernelFacts> sample_kernels() {
  return {{.name = "attention_forward_fp16_d128",
           .kernarg_bytes = 256,
           .lds_bytes = 65536,
           .private_bytes = 0,
           .vgprs = 248,
           .agprs = 12,
           .sgprs = 96,
           .threads = 256},
          {.name = "merge",
           .kernarg_bytes = 64,
           .lds_bytes = 0,
           .private_bytes = 0,
           .vgprs = 32,
           .agprs = 0,
           .sgprs = 16,
           .threads = 64}};
}

inline Key sample_key(const std::string& more = "") {
  return {"attention_forward fp16 d128 causal lse pipeline=generic target=gfx950 lowering=llvm" + more, "gfx950"};
}

inline Cache open_cache(const std::string& root, Mode mode = Mode::read_write, IoInterface* io = nullptr) {
  return Cache({.layers = {{.name = "user", .root = root, .writable = true}}, .mode = mode, .io = io, .on_event = {}});
}

inline std::string path_of(const std::string& root, const Key& key) {
  return entry_path(root, key.target_id(), key.digest());
}

inline std::vector<std::byte> read_bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const auto* begin = reinterpret_cast<const std::byte*>(text.data());
  return {begin, begin + text.size()};
}

inline void write_bytes(const std::string& path, std::span<const std::byte> bytes) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  ASSERT_TRUE(file.good());
}

inline bool same_bytes(std::span<const std::byte> a, std::span<const std::byte> b) { return std::ranges::equal(a, b); }

// Every name below a folder with its kind, size, change time and contents: equal pictures mean that nothing was
// touched.
inline std::map<std::string, std::string> picture_of(const std::string& root) {
  std::map<std::string, std::string> picture;
  if (!std::filesystem::exists(root)) return picture;
  const auto describe = [](const std::string& path) {
    struct stat status{};
    ::lstat(path.c_str(), &status);
    std::string text = std::to_string(status.st_mode) + " " + std::to_string(status.st_size) + " " +
                       std::to_string(status.st_mtim.tv_sec) + "." + std::to_string(status.st_mtim.tv_nsec) + " " +
                       std::to_string(status.st_ctim.tv_sec) + "." + std::to_string(status.st_ctim.tv_nsec);
    if (S_ISREG(status.st_mode)) {
      for (const std::byte byte : read_bytes(path)) text.push_back(static_cast<char>(byte));
    }
    return text;
  };
  picture[root] = describe(root);
  for (const auto& found : std::filesystem::recursive_directory_iterator(root)) {
    picture[found.path().string()] = describe(found.path().string());
  }
  return picture;
}

// Names of regular files below a folder, apart into finished entries and everything else.
struct FilesBelow {
  std::vector<std::string> entries;
  std::vector<std::string> temporaries;
  std::vector<std::string> strangers;
};

inline FilesBelow files_below(const std::string& root) {
  FilesBelow files;
  if (!std::filesystem::exists(root)) return files;
  for (const auto& found : std::filesystem::recursive_directory_iterator(root)) {
    if (found.is_directory()) continue;
    const std::string name = found.path().filename().string();
    if (name.starts_with(temporary_prefix)) {
      files.temporaries.push_back(name);
    } else if (name.ends_with(entry_suffix)) {
      files.entries.push_back(name);
    } else {
      files.strangers.push_back(name);
    }
  }
  return files;
}

}  // namespace wavejit::cache
