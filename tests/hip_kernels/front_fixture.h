// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Simulated devices for the tests of the HIP front: 0 and 1 are gfx950, 2 is gfx942.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "hip_abi/hip_functions.h"

namespace wavejit::hip_kernels {

using namespace hip_abi;

class Front : public testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;

  // Path of the code object of `front.hip`: "gfx950", "gfx942", or a bundle: "bundle", "compressed".
  static std::string code_path(const std::string& which);
  static std::vector<char> code_bytes(const std::string& which);
  static hipModule_t load(const std::string& which = "gfx950");
  static hipFunction_t function(hipModule_t module, const char* name);
  static std::uint32_t* device_words(std::size_t count, std::uint32_t value = 0);
  static std::vector<std::uint32_t> read(const std::uint32_t* words, std::size_t count);

  template <typename... Arguments>
  static hipError_t launch(hipFunction_t kernel, unsigned grid, unsigned block, hipStream_t stream,
                           Arguments... arguments) {
    void* pointers[] = {static_cast<void*>(&arguments)..., nullptr};
    return hipModuleLaunchKernel(kernel, grid, 1, 1, block, 1, 1, 0, stream, pointers, nullptr);
  }

  // For tests that make a kernel fail: lets the device live again and forgets the reports.
  static void forget_fault();
};

}  // namespace wavejit::hip_kernels
