// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A file that keeps what earlier runs found about mutated kernels. A run that was cut off continues where it stopped;
// the list of redundant mutations is compared with the file without a second run; a new problem runs only on the
// mutations that no problem noticed.
//
//   simgpu_called_mutation_tests --all --print --journal=/tmp/journal --gtest_filter=*/latent_gfx950
#pragma once

#include <cstdint>
#include <fstream>
#include <string>
#include <unordered_map>
#include <vector>

namespace wavejit::tests {

class Journal {
 public:
  struct Entry {
    std::vector<std::uint64_t> problems;  // that ran, by their whole results; the last is the one that noticed
    std::string outcome;                  // "differs", "reported ..."; empty: nobody noticed
  };

  // Without a folder nothing is kept. The file is the kernel's; a line that was cut off is left out.
  Journal(const std::string& folder, const std::string& kernel);

  // Looks up a changed code object by its digest, so an entry of another kernel is never used. Null: it has not run
  // yet.
  const Entry* find(std::uint64_t code) const;
  void add(std::uint64_t code, Entry entry);

 private:
  std::unordered_map<std::uint64_t, Entry> entries_;
  std::ofstream file_;
};

}  // namespace wavejit::tests
