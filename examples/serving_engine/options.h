// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The command line. What is not given is left to wavejit's own rules: its environment, then its defaults.
#pragma once

#include <cstdint>
#include <string>

namespace serving {

struct Options {
  std::string target = "gfx950";  // of the simulated GPUs, one a rank
  bool hip = false;               // GPUs of HIP instead
  int ranks = 1;
  int requests = 7;
  std::uint64_t seed = 7;  // its closest choice is nine times as clear as the largest error of a logit
  std::string cache_directory;
  std::string archive;  // a read-only layer; nothing else is written then either
  std::string miss_log;
  bool prepare = false;
  std::string list;  // what to prepare; empty: what the engine knows that it needs
  bool seal = false;
  bool print_list = false;
  int decode_step = 0;  // keys of the step that is reported instead of serving; 0: serve
};

// Says what is wrong, or helps, and ends the process.
Options read_options(int count, char** words);

}  // namespace serving
