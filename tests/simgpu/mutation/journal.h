// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What earlier runs found about changed kernels, in a file: a run that was cut off goes on where it was, a list is held
// against what was found without a second run, and a new problem is run on those alone that nobody noticed.
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

  // By the digest of the changed code object: what was found about another kernel never counts. Null: not run yet.
  const Entry* find(std::uint64_t code) const;
  void add(std::uint64_t code, Entry entry);

 private:
  std::unordered_map<std::uint64_t, Entry> entries_;
  std::ofstream file_;
};

}  // namespace wavejit::tests
