// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The options of `wavejit run cache_append` that ask for a cache of 8 bits: its format, scales that are given or found,
// rows of latent attention.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "templates/cache_append/program/appended.h"
#include "tools/exit_code.h"
#include "tools/family.h"

namespace wavejit::cache_append::program {

class NarrowOptions {
 public:
  void add_to(CLI::App& command);

  // The file into which the scales of keys (0) or values (1) are written.
  const std::string& written_scales(std::size_t side) const { return written_files_[side]; }
  void add_inputs(std::vector<tools::NamedFile>& files) const;
  void add_outputs(std::vector<tools::NamedFile>& files) const;

  // Into what is said and the scales that are given; heads and dims stand there already.
  tools::Result<void> read(Appended& all) const;

 private:
  tools::Result<void> check(const Said& said) const;

  std::string format_ = "none";
  bool token_scales_ = false;
  std::string row_scales_ = "none";
  std::string given_files_[2];
  std::string written_files_[2];
};

}  // namespace wavejit::cache_append::program
