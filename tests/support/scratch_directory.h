// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A folder of its own for a test or a benchmark, which goes with it.
#pragma once

#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

namespace wavejit::tests {

class ScratchDirectory {
 public:
  ScratchDirectory() : path_((std::filesystem::temp_directory_path() / "wavejit-scratch-XXXXXX").string()) {
    if (::mkdtemp(path_.data()) == nullptr) throw std::runtime_error("no scratch folder " + path_);
  }
  ScratchDirectory(const ScratchDirectory&) = delete;
  ScratchDirectory& operator=(const ScratchDirectory&) = delete;
  ~ScratchDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  // Names in the folder, sorted: what was left behind.
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const auto& found : std::filesystem::directory_iterator(path_))
      names.push_back(found.path().filename().string());
    std::ranges::sort(names);
    return names;
  }

 private:
  std::string path_;
};

}  // namespace wavejit::tests
