// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_forward/program/invariance_integers.h"

#include <algorithm>
#include <cmath>

namespace wavejit::attention_forward::program {
namespace {

constexpr float steps = 32;
constexpr float largest = 127;
constexpr std::int8_t foreign = -109;

// No powers of two.
float scale_of(std::int64_t number) { return (1 + (0.125F * static_cast<float>(number))) / steps; }

}  // namespace

std::vector<std::int8_t> integers_of(const Batch& batch, std::span<const std::uint16_t> elements) {
  std::vector<std::int8_t> integers(elements.size());
  std::ranges::transform(elements, integers.begin(), [&](std::uint16_t half) {
    const float value = tools::decode(batch.type, half) * steps;
    return std::isfinite(value) ? static_cast<std::int8_t>(std::clamp(std::nearbyint(value), -largest, largest))
                                : foreign;
  });
  return integers;
}

std::vector<float> row_scales(const wavejit_tensor& tensor, std::span<const std::int8_t> integers) {
  constexpr int kinds = 7;
  std::vector<float> scales;
  for (std::int64_t batch = 0; batch < tensor.sizes[0]; ++batch)
    for (std::int64_t row = 0; row < tensor.sizes[1]; ++row)
      for (std::int64_t head = 0; head < tensor.sizes[2]; ++head) {
        const std::int64_t at = batch * tensor.strides[0] + row * tensor.strides[1] + head * tensor.strides[2];
        scales.push_back(scale_of((integers[static_cast<std::size_t>(at)] & 0xFF) % kinds));
      }
  return scales;
}

bool has_key_scales(const Batch& batch) { return batch.number % 3 != 0; }

std::vector<float> head_scales(std::int64_t heads) {
  std::vector<float> scales;
  scales.reserve(static_cast<std::size_t>(heads));
  for (std::int64_t head = 0; head < heads; ++head) scales.push_back(scale_of(head % 5));
  return scales;
}

}  // namespace wavejit::attention_forward::program
