// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "support/fenced_tensor.h"

#include <algorithm>
#include <cstring>

#include "support/byte_floats.h"
#include "support/storage_types.h"

namespace wavejit::tests::fenced {
namespace {

constexpr std::uint8_t foreign_integer = 0x93;  // around integers, which have no NaN

std::uint8_t fence_byte(std::size_t at) {
  return static_cast<std::uint8_t>(at % 2 == 0 ? fence_pattern & 0xFF : fence_pattern >> 8);
}

template <typename Visit>
void for_each_element(const Placement& p, Visit visit) {
  std::size_t dense = 0;
  for (std::int64_t b = 0; b < p.sizes[0]; ++b)
    for (std::int64_t s = 0; s < p.sizes[1]; ++s)
      for (std::int64_t h = 0; h < p.sizes[2]; ++h) {
        const std::size_t base = p.lead + b * p.strides[0] + s * p.strides[1] + h * p.strides[2];
        for (std::int64_t c = 0; c < p.sizes[3]; ++c) visit(dense++, base + (c * p.strides[3]));
      }
}

}  // namespace

Placement place(Layout layout, std::int64_t batch, std::int64_t length, std::int64_t heads, std::int64_t head_dim,
                std::int64_t granule) {
  Placement p{.sizes = {batch, length, heads, head_dim}, .strides = {0, 0, 0, 1}, .lead = 64, .total = 0};
  const std::int64_t extra_rows = 67;  // more than a key tile, so that a tile's overrun stays inside the fence
  switch (layout) {
    case Layout::bshd:
      p.strides[2] = head_dim;
      p.strides[1] = heads * head_dim;
      p.strides[0] = (length + extra_rows) * p.strides[1];
      break;
    case Layout::bhsd:
      p.strides[1] = head_dim;
      p.strides[2] = (length + extra_rows) * head_dim;
      p.strides[0] = heads * p.strides[2];
      break;
    case Layout::padded:
      p.strides[2] = head_dim + granule;
      p.strides[1] = heads * p.strides[2] + 3 * granule;
      p.strides[0] = (length + extra_rows) * p.strides[1] + 5 * granule;
      break;
  }
  p.total = p.lead + std::size_t(batch) * p.strides[0] + 128 * std::size_t(head_dim);
  return p;
}

Placement scatter(Scattered how, const Placement& place) {
  if (how == Scattered::no) return place;
  Placement p = place;
  const auto& [batch, length, heads, dims] = p.sizes;
  p.lead = 65;
  const std::int64_t extra = length % 2 == 0 ? 3 : 4;
  if (how == Scattered::rows_inside) {
    p.strides[1] = 1;
    p.strides[3] = length + extra;
    p.strides[2] = (dims * p.strides[3]) + 2;
    p.strides[0] = (heads * p.strides[2]) + 1;
  } else {
    p.strides[3] = 1;
    p.strides[2] = dims + 1;
    p.strides[1] = (heads * p.strides[2]) + extra;
    p.strides[0] = ((length + 67) * p.strides[1]) + 1;
  }
  p.total = p.lead + (std::size_t(batch) * p.strides[0]) + (128 * std::size_t(dims));
  return p;
}

DeviceTensor::DeviceTensor(wavejit_engine* engine, const Placement& placement, wavejit_dtype dtype,
                           const std::vector<float>* values)
    : engine_(engine),
      placement_(placement),
      element_bytes_(dtype == WAVEJIT_FP32                            ? 4
                     : dtype == WAVEJIT_FP16 || dtype == WAVEJIT_BF16 ? 2
                                                                      : 1),
      host_(placement.total * element_bytes_) {
  if (element_bytes_ == 1) {
    std::ranges::fill(host_, dtype == WAVEJIT_INT8 ? foreign_integer : byte_format(dtype).nan);
  } else {
    for (std::size_t at = 0; at < host_.size(); ++at) host_[at] = fence_byte(at);
  }
  if (values != nullptr) {
    for_each_element(placement_, [&](std::size_t dense, std::size_t at) { put(dtype, at, (*values)[dense]); });
  }
  require(wavejit_device_allocate(engine_, host_.size(), &memory_), "allocate");
  require(wavejit_device_copy_in(engine_, memory_, host_.data(), host_.size()), "copy in");
  descriptor_.data = static_cast<char*>(memory_) + (placement_.lead * element_bytes_);
  descriptor_.dtype = dtype;
  std::ranges::copy(placement_.sizes, descriptor_.sizes);
  std::ranges::copy(placement_.strides, descriptor_.strides);
}

std::vector<std::uint16_t> DeviceTensor::read_back(bool* fence_intact) {
  std::vector<std::uint8_t> after(host_.size());
  require(wavejit_device_copy_out(engine_, after.data(), memory_, after.size()), "copy out");
  std::vector<std::uint16_t> dense(placement_.sizes[0] * placement_.sizes[1] * placement_.sizes[2] *
                                   placement_.sizes[3] * ((element_bytes_ + 1) / 2));
  const std::size_t words = (element_bytes_ + 1) / 2;
  for_each_element(placement_, [&](std::size_t index, std::size_t at) {
    std::memcpy(&dense[index * words], &after[at * element_bytes_], element_bytes_);
    std::memcpy(&after[at * element_bytes_], &host_[at * element_bytes_], element_bytes_);
  });
  *fence_intact = after == host_;
  return dense;
}

void DeviceTensor::put(wavejit_dtype dtype, std::size_t at, float value) {
  if (dtype == WAVEJIT_INT8) {
    host_[at] = static_cast<std::uint8_t>(static_cast<std::int8_t>(value));
    return;
  }
  if (element_bytes_ == 1) {
    host_[at] = nearest_byte(byte_format(dtype), value);
    return;
  }
  if (dtype == WAVEJIT_FP32) {
    std::memcpy(&host_[at * sizeof value], &value, sizeof value);
    return;
  }
  const std::uint16_t bits = to_storage(dtype == WAVEJIT_FP16 ? Storage::fp16 : Storage::bf16, value);
  std::memcpy(&host_[at * 2], &bits, sizeof bits);
}

}  // namespace wavejit::tests::fenced
