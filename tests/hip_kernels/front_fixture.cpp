// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "front_fixture.h"

#include <fstream>
#include <iterator>

#include "support/test_device.h"
#include "wavejit/simgpu.h"

namespace wavejit::hip_kernels {

void Front::SetUp() {
  int ordinals[2] = {-1, -1};
  if (tests::on_hip()) {  // all of one target there: two of gfx950
    ASSERT_EQ(tests::test_device("gfx950", 2), "hip:0");
    ASSERT_EQ(hipSetDevice(0), hipSuccess);
    (void)hipGetLastError();
    return;
  }
  ASSERT_EQ(wavejit_simgpu_open_devices("gfx950", 2, ordinals), 0);
  ASSERT_EQ(ordinals[0], 0);
  ASSERT_EQ(ordinals[1], 1);
  ASSERT_EQ(wavejit_simgpu_open_devices("gfx942", 1, ordinals), 0);
  ASSERT_EQ(ordinals[0], 2);
  ASSERT_EQ(hipSetDevice(0), hipSuccess);
  (void)hipGetLastError();
}

void Front::TearDown() {
  EXPECT_EQ(wavejit_simgpu_take_reports(nullptr, 0), 0U);
  ASSERT_EQ(hipSetDevice(0), hipSuccess);
  EXPECT_EQ(hipDeviceSynchronize(), hipSuccess);
}

std::string Front::code_path(const std::string& which) {
  return std::string(WAVEJIT_TEST_KERNELS) + "/front." + which + ".co";
}

std::vector<char> Front::code_bytes(const std::string& which) {
  std::ifstream file(code_path(which), std::ios::binary);
  std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
  EXPECT_FALSE(bytes.empty()) << code_path(which);
  return bytes;
}

hipModule_t Front::load(const std::string& which) {
  hipModule_t module = nullptr;
  EXPECT_EQ(hipModuleLoad(&module, code_path(which).c_str()), hipSuccess);
  return module;
}

hipFunction_t Front::function(hipModule_t module, const char* name) {
  hipFunction_t found = nullptr;
  EXPECT_EQ(hipModuleGetFunction(&found, module, name), hipSuccess) << name;
  return found;
}

std::uint32_t* Front::device_words(std::size_t count, std::uint32_t value) {
  std::uint32_t* words = nullptr;
  EXPECT_EQ(hipMalloc(reinterpret_cast<void**>(&words), count * sizeof(std::uint32_t)), hipSuccess);
  EXPECT_EQ(hipMemsetD32(words, static_cast<int>(value), count), hipSuccess);
  return words;
}

std::vector<std::uint32_t> Front::read(const std::uint32_t* words, std::size_t count) {
  std::vector<std::uint32_t> copy(count);
  EXPECT_EQ(hipMemcpy(copy.data(), words, count * sizeof(std::uint32_t), hipMemcpyDeviceToHost), hipSuccess);
  return copy;
}

void Front::forget_fault() {
  std::string reports(wavejit_simgpu_take_reports(nullptr, 0) + 1, 0);
  wavejit_simgpu_take_reports(reports.data(), reports.size());
  EXPECT_EQ(hipDeviceReset(), hipSuccess);
  (void)hipGetLastError();
}

}  // namespace wavejit::hip_kernels
