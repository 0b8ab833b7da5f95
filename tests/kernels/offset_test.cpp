// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Kernels launched directly, for what the public interface does not reach: offsets that align nothing. No
// reference is needed: kernels and rows that must see the same keys are compared bit for bit.
#include <gtest/gtest.h>

#include <bit>
#include <climits>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "hip_abi/hip_functions.h"
#include "kernels/facts.h"
#include "templates/attention_forward/kernel/arguments.h"
#include "templates/attention_forward/kernel/parameters.h"
#include "wavejit/simgpu.h"

namespace wavejit::tests {
namespace {

using namespace hip_abi;
using attention_forward::ForwardKernel;
using attention_forward::Mask;

constexpr int head_dim = 64;
constexpr int row_bytes = head_dim * 2;

// Device memory that holds `values`, freed at the end of the scope.
template <typename T>
class OnDevice {
 public:
  explicit OnDevice(const std::vector<T>& values) : bytes_(values.size() * sizeof(T)) {
    EXPECT_EQ(hipMalloc(&pointer_, bytes_), hipSuccess);
    EXPECT_EQ(hipMemcpy(pointer_, values.data(), bytes_, hipMemcpyHostToDevice), hipSuccess);
  }
  ~OnDevice() { static_cast<void>(hipFree(pointer_)); }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;
  std::uint64_t address() const { return reinterpret_cast<std::uint64_t>(pointer_); }
  std::vector<T> read() const {
    std::vector<T> values(bytes_ / sizeof(T));
    EXPECT_EQ(hipMemcpy(values.data(), pointer_, bytes_, hipMemcpyDeviceToHost), hipSuccess);
    return values;
  }

 private:
  std::size_t bytes_;
  void* pointer_ = nullptr;
};

struct Result {
  std::vector<std::uint16_t> o;
  std::vector<float> lse;
  bool operator==(const Result&) const = default;
};

class CausalOffset : public ::testing::TestWithParam<const char*> {
 protected:
  static constexpr int queries = 130;
  static constexpr int keys = 200;

  void SetUp() override {
    int ordinal = 0;
    ASSERT_EQ(wavejit_simgpu_open_devices(GetParam(), 1, &ordinal), 0);
    ASSERT_EQ(hipSetDevice(ordinal), hipSuccess);
    k_ = noise(keys, 1);
    v_ = noise(keys, 2);
    // Every query row the same: then what a row sees is all that tells it from another.
    const std::vector<std::uint16_t> row = noise(1, 3);
    for (int i = 0; i < queries; ++i) q_.insert(q_.end(), row.begin(), row.end());
  }

  static std::vector<std::uint16_t> noise(int rows, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    std::normal_distribution<float> normal;
    std::vector<std::uint16_t> values(static_cast<std::size_t>(rows) * head_dim);
    for (std::uint16_t& value : values) value = std::bit_cast<std::uint16_t>(static_cast<_Float16>(normal(random)));
    return values;
  }

  Result run(Mask mask, std::int32_t offset, std::int32_t left = 0, std::int32_t right = 0) {
    ForwardKernel spec{{.dtype = attention_forward::DataType::fp16,
                        .head_dim_qk = head_dim,
                        .head_dim_v = head_dim,
                        .mask = mask,
                        .lse = true},
                       {.output_store = attention_forward::default_output_store(*targets::find_target(GetParam())),
                        .target = GetParam()}};
    const CompiledKernel compiled = known_kernel(spec);
    EXPECT_EQ(compiled.error, "");

    const OnDevice q(q_);
    const OnDevice k(k_);
    const OnDevice v(v_);
    const OnDevice o(std::vector<std::uint16_t>(q_.size(), 0xFFFF));
    const OnDevice lse(std::vector<float>(queries, 1.0F));
    attention_forward::Arguments arguments;
    arguments.q = q.address();
    arguments.k = k.address();
    arguments.v = v.address();
    arguments.o = o.address();
    arguments.lse = lse.address();
    arguments.q_row_stride = arguments.k_row_stride = arguments.v_row_stride = arguments.o_row_stride = row_bytes;
    arguments.query_length = queries;
    arguments.key_length = keys;
    arguments.causal_offset = offset;  // from key 0: bottom_right_mask is 0
    arguments.window_left = left;
    arguments.window_right = right;
    arguments.scale_log2e = 0.18F;

    hipModule_t module = nullptr;
    hipFunction_t function = nullptr;
    EXPECT_EQ(hipModuleLoadData(&module, compiled.code_object.data()), hipSuccess);
    EXPECT_EQ(hipModuleGetFunction(&function, module, compiled.facts.kernel_name), hipSuccess);
    const auto grid = attention_forward::launch_geometry(spec, *targets::find_target(spec.target), 1, 1, queries);
    std::size_t size = sizeof arguments;
    // HIP's list: buffer pointer (1), buffer size (2), end (3).
    void* extra[] = {reinterpret_cast<void*>(1), &arguments, reinterpret_cast<void*>(2), &size,
                     reinterpret_cast<void*>(3)};
    EXPECT_EQ(hipModuleLaunchKernel(function, grid.grid_x, grid.grid_y, grid.grid_z, grid.threads, 1, 1,
                                    grid.dynamic_lds_bytes, nullptr, nullptr, extra),
              hipSuccess);
    EXPECT_EQ(hipDeviceSynchronize(), hipSuccess);
    EXPECT_EQ(hipModuleUnload(module), hipSuccess);
    return {.o = o.read(), .lse = lse.read()};
  }

  std::vector<std::uint16_t> q_;
  std::vector<std::uint16_t> k_;
  std::vector<std::uint16_t> v_;
};

TEST_P(CausalOffset, FarAheadShowsEveryKeyBitForBit) {
  const Result full = run(Mask::none, 0);
  for (const std::int32_t offset : {keys, 100'000, INT32_MAX}) EXPECT_EQ(run(Mask::causal, offset), full) << offset;
}

TEST_P(CausalOffset, FarBehindHidesEveryKey) {
  for (const std::int32_t offset : {-queries, -100'000, INT32_MIN}) {
    const Result empty = run(Mask::causal, offset);
    EXPECT_EQ(empty.o, std::vector<std::uint16_t>(q_.size(), 0)) << offset;
    EXPECT_EQ(empty.lse, std::vector<float>(queries, -std::numeric_limits<float>::infinity())) << offset;
  }
}

// Row r with offset f sees what row r − s sees with offset f + s, whichever lane, wave and workgroup either is in.
TEST_P(CausalOffset, OnlyTheSumOfRowAndOffsetCounts) {
  const Result base = run(Mask::causal, 10);
  for (const int shift : {1, 31, 64, 97}) {
    const Result shifted = run(Mask::causal, 10 + shift);
    for (int row = shift; row < queries; ++row) {
      EXPECT_EQ(shifted.lse[static_cast<std::size_t>(row - shift)], base.lse[static_cast<std::size_t>(row)]) << row;
      const auto of = [](const Result& result, int which) { return result.o.data() + which * head_dim; };
      EXPECT_EQ(std::memcmp(of(shifted, row - shift), of(base, row), row_bytes), 0) << "row " << row << " by " << shift;
    }
  }
}

constexpr std::int32_t unlimited = attention_forward::unlimited_window;

TEST_P(CausalOffset, WindowWithoutLimitsShowsEveryKeyBitForBit) {
  const Result full = run(Mask::none, 0);
  for (const std::int32_t offset : {INT32_MIN, -100'000, 0, 100'000, INT32_MAX})
    EXPECT_EQ(run(Mask::window, offset, unlimited, unlimited), full) << offset;
}

TEST_P(CausalOffset, WindowFarFromTheKeysHidesEveryOne) {
  for (const std::int32_t offset : {INT32_MIN, -100'000, 100'000, INT32_MAX}) {
    const Result empty = run(Mask::window, offset, 1000, 1000);
    EXPECT_EQ(empty.o, std::vector<std::uint16_t>(q_.size(), 0)) << offset;
    EXPECT_EQ(empty.lse, std::vector<float>(queries, -std::numeric_limits<float>::infinity())) << offset;
  }
}

// One limit alone: far ahead only the left one hides, far behind only the right one.
TEST_P(CausalOffset, WindowWithOneLimit) {
  const Result full = run(Mask::none, 0);
  EXPECT_EQ(run(Mask::window, INT32_MAX, unlimited, 0), full);
  EXPECT_EQ(run(Mask::window, INT32_MIN, 0, unlimited), full);
  EXPECT_EQ(run(Mask::window, 10, unlimited, 0), run(Mask::causal, 10));
}

INSTANTIATE_TEST_SUITE_P(Targets, CausalOffset, ::testing::Values("gfx942", "gfx950"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace wavejit::tests
