// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which devices tests open: simulated ones through this project's own HIP front, or those of the HIP library beneath
// which the program runs. The latter for tests/rocr, with WAVEJIT_TEST_DEVICE=hip: `wavejit sim` starts the program
// there, AMD's own HIP and ROCr have the GPUs, and what tests say to the simulated GPU goes to the one beneath ROCr.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace wavejit::tests {

// WAVEJIT_TEST_DEVICE=hip.
bool on_hip();

// What an engine's option `device` gets: GPU `ordinal` of `count` of a target. On HIP's GPUs they are those of
// WAVEJIT_SIM_TARGET. Throws where these are others or fewer.
std::string test_device(const std::string& target, int count = 1, int ordinal = 0);

// For tests to which one target is as good as another: gfx950; on HIP's GPUs theirs.
std::string a_target();

// Notes what a call gave in the file WAVEJIT_TEST_OUTPUTS, a line a call: test, number of the call in it, status,
// digest. Two runs of a program, on either kind of device, are compared by these lines. Nothing without the variable.
class Outputs {
 public:
  explicit Outputs(int status) : status_(status) {}
  // Notes it.
  ~Outputs();
  Outputs(const Outputs&) = delete;
  Outputs& operator=(const Outputs&) = delete;
  template <typename Values>
  void add(const Values& values) {
    add(values.data(), values.size() * sizeof *values.data());
  }

 private:
  void add(const void* data, std::size_t bytes);
  int status_;
  std::uint64_t digest_ = 0xcbf29ce484222325;  // FNV-1a's
};

}  // namespace wavejit::tests
