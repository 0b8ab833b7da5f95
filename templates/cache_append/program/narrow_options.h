// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The options of `wavejit run cache_append` that ask for a cache of 8 bits: its format, scales that are given or found,
// rows of latent attention. Files of scales are rows of array_call.cpp.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "templates/cache_append/program/appended.h"
#include "tools/exit_code.h"

namespace wavejit::cache_append::program {

// Paths of the scales of keys (0) and values (1); empty: not given.
struct ScaleFiles {
  std::string given[2];
  std::string written[2];
};
inline constexpr const char* given_scales[2] = {"k-scale", "v-scale"};
inline constexpr const char* written_scales[2] = {"k-scale-out", "v-scale-out"};

class NarrowOptions {
 public:
  void add_to(CLI::App& command);
  // Into what is said and the scales that are given; heads and dims stand there already.
  tools::Result<void> read(const ScaleFiles& files, Appended& all) const;

 private:
  tools::Result<void> check(const ScaleFiles& files, const Said& said) const;

  std::string format_ = "none";
  bool token_scales_ = false;
  std::string row_scales_ = "none";
};

}  // namespace wavejit::cache_append::program
