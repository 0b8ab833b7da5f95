// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <algorithm>
#include <cmath>

#include "templates/attention_forward/program/invariance_cache.h"

namespace wavejit::attention_forward::program {
namespace {

constexpr float steps = 32;
constexpr float largest = 127;
constexpr std::int8_t foreign = -109;

// No powers of two.
float scale_of(std::int64_t number) { return (1 + (0.125F * static_cast<float>(number))) / steps; }

// The nearest integers to 32 times each element; what is no number is one, too.
std::vector<std::int8_t> integers_of(const Batch& batch, std::span<const std::uint16_t> elements) {
  std::vector<std::int8_t> integers(elements.size());
  std::ranges::transform(elements, integers.begin(), [&](std::uint16_t half) {
    const float value = decode(batch.type, half) * steps;
    return std::isfinite(value) ? static_cast<std::int8_t>(std::clamp(std::nearbyint(value), -largest, largest))
                                : foreign;
  });
  return integers;
}

// One for each row of each head, [batch][length][heads] of the tensor, whose elements `integers` are: what the row
// begins with says it, so that it goes where the row goes.
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

std::vector<float> head_scales(std::int64_t heads) {
  std::vector<float> scales;
  scales.reserve(static_cast<std::size_t>(heads));
  for (std::int64_t head = 0; head < heads; ++head) scales.push_back(scale_of(head % 5));
  return scales;
}

// K's scales are a number for each head in a third of the batches, and for each key in the others.
bool has_key_scales(const Batch& batch) { return batch.number % 3 != 0; }

}  // namespace

std::string integers_text(const Batch& batch) { return has_key_scales(batch) ? "int8, scales of keys" : "int8"; }

void give_integers(wavejit_attention_forward_arguments& call, CallMemory& memory, const Given& given) {
  const auto& [batch, pieces, way, keys, queries] = given;
  const std::vector<std::int8_t> of_q = integers_of(batch, queries);
  const std::vector<std::int8_t> of_k = integers_of(batch, keys.elements);
  call.q.dtype = call.k.dtype = WAVEJIT_INT8;
  call.q.data = memory.in(of_q);
  call.k.data = memory.in(of_k);
  std::vector<float> q_scales = row_scales(call.q, of_q);
  if (way.other_scales)
    for (float& scale : q_scales) scale *= 2;
  const auto& q = call.q.sizes;
  const auto& k = call.k.sizes;
  call.scales.q_scale = wavejit_dense_tensor(memory.in(q_scales), WAVEJIT_FP32, q[0], q[1], q[2], 1);
  if (has_key_scales(batch)) {
    call.scales.token_scales = 1;
    const std::vector<float> scales = row_scales(call.k, of_k);
    call.scales.k_scale = wavejit_dense_tensor(memory.in(scales), WAVEJIT_FP32, k[0], k[1], k[2], 1);
  } else {
    call.scales.k_scale = wavejit_dense_tensor(memory.in(head_scales(k[2])), WAVEJIT_FP32, 1, 1, k[2], 1);
  }
}

}  // namespace wavejit::attention_forward::program
