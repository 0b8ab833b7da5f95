// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "support/kept.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <format>
#include <fstream>
#include <iterator>
#include <system_error>

namespace wavejit::tests {
namespace {

namespace fs = std::filesystem;

const std::string& folder() {
  static const std::string name = [] {
    const char* const said = std::getenv("WAVEJIT_TEST_KEPT");
    return std::string(said == nullptr ? "" : said);
  }();
  return name;
}

fs::path file_of(const std::string& key) {
  return fs::path(folder()) / "made" / std::format("{:016x}", std::hash<std::string>{}(key));
}

std::string header_of(const std::string& key) { return std::format("{}\n{}", key.size(), key); }

}  // namespace

void keep(const std::string& key, const std::vector<std::byte>& made) {
  if (folder().empty() || made.empty()) return;
  const fs::path file = file_of(key);
  std::error_code ignored;
  fs::create_directories(file.parent_path(), ignored);
  // Written beside its place and renamed: who reads sees all of it or nothing.
  const fs::path beside = file.string() + std::format(".{}", getpid());
  std::ofstream out(beside, std::ios::binary);
  out << header_of(key);
  out.write(reinterpret_cast<const char*>(made.data()), static_cast<std::streamsize>(made.size()));
  out.close();
  if (out) {
    fs::rename(beside, file, ignored);
  } else {
    fs::remove(beside, ignored);
  }
}

std::vector<std::byte> kept(const std::string& key, const std::function<std::vector<std::byte>()>& make) {
  if (folder().empty()) return make();
  if (std::ifstream in(file_of(key), std::ios::binary); in) {
    const std::string found{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
    const std::string header = header_of(key);
    if (found.size() > header.size() && found.starts_with(header)) {
      const auto* const bytes = reinterpret_cast<const std::byte*>(found.data());
      return {bytes + header.size(), bytes + found.size()};
    }
  }
  std::vector<std::byte> made = make();
  keep(key, made);
  return made;
}

const char* kept_kernels() {
  static const std::string kernels = folder().empty() ? "" : folder() + "/kernels";
  return kernels.empty() ? nullptr : kernels.c_str();
}

}  // namespace wavejit::tests
