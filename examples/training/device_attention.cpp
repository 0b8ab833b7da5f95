// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <cstdint>
#include <cstring>

#include "attention.h"

namespace training {

namespace {

// Round to nearest, ties to even. The numbers here are finite.
std::uint16_t to_bf16(float value) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  return static_cast<std::uint16_t>((bits + 0x7FFFU + ((bits >> 16) & 1U)) >> 16);
}

float from_bf16(std::uint16_t half) {
  const std::uint32_t bits = static_cast<std::uint32_t>(half) << 16;
  float value = 0;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

std::vector<std::uint16_t> in_bf16(const Matrix<float>& matrix) {
  std::vector<std::uint16_t> halves;
  halves.reserve(matrix.values.size());
  for (const float value : matrix.values) halves.push_back(to_bf16(value));
  return halves;
}

}  // namespace

DeviceAttention::DeviceAttention(wavejit::Engine& engine, const Shape& shape)
    : engine_(engine), shape_(shape), kept_(static_cast<std::size_t>(shape.layers)) {}

Matrix<float> DeviceAttention::forward(int layer, const QueryKeyValue<float>& inputs) {
  const int rows = inputs.query.rows;
  const int sequences = rows / shape_.length;
  Kept kept{wavejit::DeviceBuffer(engine_, in_bf16(inputs.query)),
            wavejit::DeviceBuffer(engine_, in_bf16(inputs.key)),
            wavejit::DeviceBuffer(engine_, in_bf16(inputs.value)),
            wavejit::DeviceBuffer(engine_, inputs.query.values.size() * sizeof(std::uint16_t)),
            wavejit::DeviceBuffer(engine_, sizeof(float) * rows * shape_.query_heads),
            sequences};
  const auto tensor = [&](const wavejit::DeviceBuffer& buffer, int heads) {
    return wavejit::dense(buffer, WAVEJIT_BF16, sequences, shape_.length, heads, shape_.head_dim);
  };
  wavejit::AttentionForward call(tensor(kept.query, shape_.query_heads), tensor(kept.key, shape_.kv_heads),
                                 tensor(kept.value, shape_.kv_heads), tensor(kept.output, shape_.query_heads));
  call.lse = wavejit::dense(kept.lse, WAVEJIT_FP32, sequences, shape_.query_heads, shape_.length, 1);
  call.mask.bits = WAVEJIT_MASK_CAUSAL;
  engine_.attention_forward(call);
  engine_.synchronize();

  Matrix<float> answer(rows, inputs.query.columns);
  const auto halves = kept.output.read<std::uint16_t>();
  for (std::size_t i = 0; i < halves.size(); ++i) answer.values[i] = from_bf16(halves[i]);
  kept_[layer].clear();
  kept_[layer].push_back(std::move(kept));
  return answer;
}

QueryKeyValue<float> DeviceAttention::backward(int layer, const Matrix<float>& gradient) {
  const Kept& kept = kept_[layer].front();
  const auto tensor = [&](const wavejit::DeviceBuffer& buffer, wavejit_dtype dtype, int heads) {
    return wavejit::dense(buffer, dtype, kept.sequences, shape_.length, heads, shape_.head_dim);
  };
  const int heads = shape_.query_heads;
  const int kv_heads = shape_.kv_heads;
  const wavejit::DeviceBuffer d_output(engine_, in_bf16(gradient));
  const wavejit::DeviceBuffer d_query(engine_, 2 * kept.query.bytes());  // fp32 where those are bf16
  const wavejit::DeviceBuffer d_key(engine_, 2 * kept.key.bytes());
  const wavejit::DeviceBuffer d_value(engine_, 2 * kept.value.bytes());
  wavejit::AttentionBackward call;
  call.q = tensor(kept.query, WAVEJIT_BF16, heads);
  call.k = tensor(kept.key, WAVEJIT_BF16, kv_heads);
  call.v = tensor(kept.value, WAVEJIT_BF16, kv_heads);
  call.o = tensor(kept.output, WAVEJIT_BF16, heads);
  call.d_o = tensor(d_output, WAVEJIT_BF16, heads);
  call.lse = wavejit::dense(kept.lse, WAVEJIT_FP32, kept.sequences, heads, shape_.length, 1);
  call.dq = tensor(d_query, WAVEJIT_FP32, heads);
  call.dk = tensor(d_key, WAVEJIT_FP32, kv_heads);
  call.dv = tensor(d_value, WAVEJIT_FP32, kv_heads);
  call.mask.bits = WAVEJIT_MASK_CAUSAL;
  engine_.attention_backward(call);  // its workspace is the engine's own
  engine_.synchronize();

  const int rows = gradient.rows;
  QueryKeyValue<float> found{Matrix<float>(rows, heads * shape_.head_dim),
                             Matrix<float>(rows, kv_heads * shape_.head_dim),
                             Matrix<float>(rows, kv_heads * shape_.head_dim)};
  d_query.copy_out(found.query.values.data());
  d_key.copy_out(found.key.values.data());
  d_value.copy_out(found.value.values.data());
  return found;
}

}  // namespace training
