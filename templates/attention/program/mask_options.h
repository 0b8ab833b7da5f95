// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The masks of `wavejit run`, from the command line to a call and to the reference.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "templates/attention/program/score_rules.h"

namespace wavejit::attention::program {

class MaskOptions {
 public:
  // `row`: what the help calls a row, "query". `windows`: the family has them.
  void add_to(CLI::App& command, const std::string& row, bool windows = true);

  CallMask given() const;
  // Into a family's call, which has the masks' fields under the names that all of them have.
  template <typename Call>
  void describe(Call& call) const {
    const CallMask mask = given();
    call.mask |= mask.bits;
    call.causal_prefix = mask.causal_prefix;
    call.window_left = mask.window_left;
    call.window_right = mask.window_right;
  }

 private:
  bool causal_ = false;
  std::string prefix_;
  std::string window_;
};

}  // namespace wavejit::attention::program
