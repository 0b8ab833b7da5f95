// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Tensors and numbers in device memory, each tensor inside a fence: rows behind the sequence's end, gaps between heads
// and what lies around hold NaN.
#pragma once

#include <cstddef>
#include <cstdint>
#include <format>
#include <stdexcept>
#include <vector>

#include "support/tensor_layouts.h"
#include "wavejit/wavejit.h"

namespace wavejit::tests::fenced {

inline constexpr std::uint16_t fence_pattern = 0x7FA5;  // NaN in fp16 (and in bf16): poisons whoever reads it

struct Placement {
  std::int64_t sizes[4];
  std::int64_t strides[4];
  std::size_t lead;   // elements before the tensor
  std::size_t total;  // elements of the whole allocation
};

// `granule`: what strides are multiples of.
Placement place(Layout layout, std::int64_t batch, std::int64_t length, std::int64_t heads, std::int64_t head_dim,
                std::int64_t granule = 8);
// `place`: where it would stand else.
Placement scatter(Scattered how, const Placement& place);

inline void require(wavejit_status status, const char* what) {
  if (status != WAVEJIT_OK) throw std::runtime_error(std::format("{}: {}", what, wavejit_last_detail()));
}

// Device memory holding a tensor inside its fence; freed at the end of the scope.
class DeviceTensor {
 public:
  DeviceTensor(wavejit_engine* engine, const Placement& placement, wavejit_dtype dtype,
               const std::vector<float>* values = nullptr);
  ~DeviceTensor() { wavejit_device_free(engine_, memory_); }
  DeviceTensor(const DeviceTensor&) = delete;
  DeviceTensor& operator=(const DeviceTensor&) = delete;

  const wavejit_tensor& descriptor() const { return descriptor_; }

  // The tensor's elements, dense, in words of 16 bits, a byte in one of its own; says whether everything around them still is as it was.
  std::vector<std::uint16_t> read_back(bool* fence_intact);

 private:
  void put(wavejit_dtype dtype, std::size_t at, float value);

  wavejit_engine* engine_;
  Placement placement_;
  std::size_t element_bytes_;
  std::vector<std::uint8_t> host_;
  void* memory_ = nullptr;
  wavejit_tensor descriptor_{};
};

// Device memory holding numbers as they are; null without any.
template <typename T>
class DeviceArray {
 public:
  DeviceArray(wavejit_engine* engine, const std::vector<T>& values) : engine_(engine) {
    if (values.empty()) return;
    require(wavejit_device_allocate(engine_, values.size() * sizeof(T), &memory_), "allocate");
    require(wavejit_device_copy_in(engine_, memory_, values.data(), values.size() * sizeof(T)), "copy in");
  }
  ~DeviceArray() {
    if (memory_ != nullptr) wavejit_device_free(engine_, memory_);
  }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;
  T* get() const { return static_cast<T*>(memory_); }

 private:
  wavejit_engine* engine_;
  void* memory_ = nullptr;
};

}  // namespace wavejit::tests::fenced
