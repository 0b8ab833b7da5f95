// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// One question to a GPU's instructions: a kernel of a wave or a few, what it is given, and how its answer is checked.
// Probes are files (probes/*.s) that the build assembles for every target that has them (assemble.cmake).
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace wavejit::tools::doctor {

struct Probe {
  std::string_view name;
  std::string_view target;
  std::string_view settles;  // which sentence or guess of the project
  int risk = 1;              // 1: registers only; 2: memory of its own; 3: what no document promises
  // "bits": as the simulated GPU has them; "ulps <function>"; "sums <type> <rows> <k of a lane>";
  // "round": dies in turn (checker.cpp).
  std::string_view check;
  std::string_view pattern;             // what it is given (patterns.h)
  unsigned input_words = 0;             // of a lane
  unsigned output_words = 0;            // of a lane
  unsigned workgroups = 1;              // of 64 lanes
  std::span<const unsigned char> code;  // a code object with the kernel "probe"
};

// The probes of all targets.
std::span<const Probe> all_probes();

}  // namespace wavejit::tools::doctor
