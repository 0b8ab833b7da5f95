// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The masks of `wavejit run`, from the command line to a call and to the reference.
#pragma once

#include <CLI/CLI.hpp>
#include <array>
#include <cstdint>
#include <string>

#include "templates/attention/program/score_rules.h"
#include "tools/exit_code.h"
#include "wavejit/wavejit.h"

namespace wavejit::attention::program {

// What a family has beside a diagonal.
enum class MaskKinds : std::uint8_t { causal, windows, all };

class MaskOptions {
 public:
  // `row`: what the help calls a row, "query".
  void add_to(CLI::App& command, const std::string& row, MaskKinds kinds = MaskKinds::windows);

  // What does not go together is told by the options' names.
  tools::Result<void> check() const;
  wavejit_masking given() const;
  void describe(wavejit_masking& call) const;

 private:
  bool causal_ = false;
  std::string prefix_;
  std::string window_;
  std::array<std::string, mask_kinds.size()> numbers_;  // of the kinds of masks.def
};

}  // namespace wavejit::attention::program
