// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The bench on which compiled kernels are compared with plain C++: one simulated device per target, one code object per
// source file and build, everything through HIP's own functions.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <ostream>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include "hip_abi/hip_functions.h"
#include "wavejit/simgpu.h"

namespace wavejit::hip_kernels {

using half = _Float16;
inline std::vector<half> to_half(const std::vector<float>& values) { return {values.begin(), values.end()}; }

struct Build {
  std::string target;
  int optimisation;
  bool wide_waves = false;  // of 64 lanes where the target's own have 32
};
std::string name_of(const Build& build);
// NOLINTNEXTLINE(readability-identifier-naming): GoogleTest looks for this name
inline void PrintTo(const Build& build, std::ostream* out) { *out << name_of(build); }

// Memory of the device that frees itself.
template <typename T>
class Buffer {
 public:
  explicit Buffer(std::size_t count) : count_(count) {
    EXPECT_EQ(hip_abi::hipMalloc(reinterpret_cast<void**>(&pointer_), count * sizeof(T)), hip_abi::hipSuccess);
  }
  explicit Buffer(const std::vector<T>& values) : Buffer(values.size()) {
    EXPECT_EQ(hip_abi::hipMemcpy(pointer_, values.data(), count_ * sizeof(T), hip_abi::hipMemcpyHostToDevice),
              hip_abi::hipSuccess);
  }
  Buffer(std::size_t count, int byte) : Buffer(count) {
    EXPECT_EQ(hip_abi::hipMemset(pointer_, byte, count * sizeof(T)), hip_abi::hipSuccess);
  }
  ~Buffer() { EXPECT_EQ(hip_abi::hipFree(pointer_), hip_abi::hipSuccess); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  T* get() const { return pointer_; }
  std::vector<T> read() const {
    std::vector<T> values(count_);
    EXPECT_EQ(hip_abi::hipMemcpy(values.data(), pointer_, count_ * sizeof(T), hip_abi::hipMemcpyDeviceToHost),
              hip_abi::hipSuccess);
    return values;
  }

 private:
  T* pointer_ = nullptr;
  std::size_t count_;
};

class Corpus : public testing::TestWithParam<Build> {
 protected:
  void SetUp() override;
  void TearDown() override;

  bool ocp_fp8() const;
  // The wave size of the build; the device's own may be another.
  std::uint32_t wave_size() const;
  bool has_mfma() const;  // else WMMA

  // `file` is the source file's stem. Waits for the kernel.
  template <typename... Arguments>
  void launch(const char* file, const char* kernel, hip_abi::dim3 grid, hip_abi::dim3 block, unsigned lds_bytes,
              Arguments... arguments) {
    void* pointers[] = {static_cast<void*>(&arguments)...};
    launch_with(file, kernel, grid, block, lds_bytes, pointers);
  }

  hip_abi::hipModule_t module(const char* file);

  // For the rest of the test this check is off, if it was on. The caller's comment says why.
  static void leave_out(wavejit_simgpu_check check);

 public:
  std::vector<std::uint32_t> random_words(std::size_t count);
  std::vector<int> random_ints(std::size_t count, int low, int high);
  std::vector<float> random_floats(std::size_t count, float low, float high);

 protected:
  // NOLINTNEXTLINE(bugprone-random-generator-seed): the same inputs on every run
  std::mt19937 random{20260101};

 private:
  wavejit_simgpu_settings settings_{};  // as they were
  void launch_with(const char* file, const char* kernel, hip_abi::dim3 grid, hip_abi::dim3 block, unsigned lds_bytes,
                   void** arguments);
  std::map<std::string, hip_abi::hipModule_t> modules_;
};

// Bit for bit: −0 is not 0, and a NaN is itself. NaN payloads are the one thing that hosts and GPUs differ in.
template <typename T>
bool same(const T& a, const T& b) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(a) && std::isnan(b)) return true;
  }
  using Bytes = std::array<std::byte, sizeof(T)>;
  return std::bit_cast<Bytes>(a) == std::bit_cast<Bytes>(b);
}

template <typename T>
void expect_same(const std::vector<T>& got, const std::vector<T>& expected, const char* what) {
  ASSERT_EQ(got.size(), expected.size()) << what;
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (same(got[i], expected[i])) continue;
    if (++wrong <= 4) ADD_FAILURE() << what << "[" << i << "]: " << +got[i] << ", expected " << +expected[i];
  }
  EXPECT_EQ(wrong, 0U) << what << ": wrong elements of " << got.size();
}

// Each element within `ulps` units in the last place of the float nearest to the expected value, or within `absolute`.
void expect_close(const std::vector<float>& got, const std::vector<double>& expected, double ulps, double absolute,
                  const char* what);

}  // namespace wavejit::hip_kernels
