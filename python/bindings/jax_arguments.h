// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// XLA's buffers and attributes as the arguments of wavejit.h.
//
// Operands come in one order, of which q, k and v are always there (backward: o, the gradient of o, and LSE, too), and
// the attribute `given` has a bit for each of the others. Attributes are numbers by the names of the fields.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

#include "wavejit/wavejit.hpp"
#include "xla_ffi.h"

namespace wavejit::python {

inline std::int32_t dtype_of(const xla::Buffer& buffer) {
  switch (buffer.dtype) {
    case xla::float16:
      return WAVEJIT_FP16;
    case xla::bfloat16:
      return WAVEJIT_BF16;
    case xla::float32:
      return WAVEJIT_FP32;
    case xla::float8_e4m3fn:
      return WAVEJIT_E4M3;
    case xla::float8_e5m2:
      return WAVEJIT_E5M2;
    case xla::float8_e4m3fnuz:
      return WAVEJIT_E4M3_FNUZ;
    case xla::float8_e5m2fnuz:
      return WAVEJIT_E5M2_FNUZ;
    case xla::boolean:  // a byte each
    case xla::int8:
      return WAVEJIT_INT8;
    default:
      return WAVEJIT_DTYPE_NONE;
  }
}

// The next operands or results of a call, in their order.
class BufferReader {
 public:
  explicit BufferReader(const xla::Buffers& buffers) : buffers_(&buffers) {}
  const xla::Buffer& next(std::int64_t rank) {
    if (place_ >= buffers_->count) throw Error(WAVEJIT_INTERNAL, "wavejit.jax: fewer buffers than the call has");
    const auto& buffer = *static_cast<const xla::Buffer*>(buffers_->buffers[place_++]);
    if (buffer.rank != rank)
      throw Error(WAVEJIT_INTERNAL, ("wavejit.jax: buffer " + std::to_string(place_ - 1) + " has " +
                                     std::to_string(buffer.rank) + " dimensions; accepted: " + std::to_string(rank))
                                        .c_str());
    return buffer;
  }
  const xla::Buffer& peek() const {
    if (place_ >= buffers_->count) throw Error(WAVEJIT_INTERNAL, "wavejit.jax: fewer buffers than the call has");
    return *static_cast<const xla::Buffer*>(buffers_->buffers[place_]);
  }

 private:
  const xla::Buffers* buffers_;
  std::int64_t place_ = 0;
};

inline constexpr std::size_t tensor_rank = 4;

// A dense tensor of the four dimensions, which are the buffer's in one of these ways.
using Dimensions = std::array<std::int64_t, tensor_rank>;
inline wavejit_tensor tensor_of(const xla::Buffer& buffer, void* data, const Dimensions& sizes) {
  wavejit_tensor tensor{};
  tensor.data = data;
  tensor.dtype = dtype_of(buffer);
  std::int64_t stride = 1;
  for (std::size_t i = tensor_rank; i-- > 0;) {
    tensor.sizes[i] = sizes[i];
    tensor.strides[i] = stride;
    stride *= sizes[i];
  }
  return tensor;
}
inline wavejit_tensor whole(const xla::Buffer& buffer, void* data) {
  return tensor_of(buffer, data, {buffer.dims[0], buffer.dims[1], buffer.dims[2], buffer.dims[3]});
}
inline wavejit_tensor of_rows(const xla::Buffer& buffer, void* data) {  // LSE: [B, H, Sq]
  return tensor_of(buffer, data, {buffer.dims[0], buffer.dims[1], buffer.dims[2], 1});
}
inline wavejit_tensor of_heads(const xla::Buffer& buffer, void* data) {  // [B, H]
  return tensor_of(buffer, data, {buffer.dims[0], buffer.dims[1], 1, 1});
}
inline wavejit_tensor of_scales(const xla::Buffer& buffer, void* data) {
  if (buffer.rank == 2) return tensor_of(buffer, data, {buffer.dims[0], 1, buffer.dims[1], 1});
  return of_rows(buffer, data);  // of tokens: [B, Sk, H]
}

// Attributes of a call by name. XLA has them sorted, and so has every handler its fields: one walk finds all.
class AttributeReader {
 public:
  explicit AttributeReader(const xla::Attributes& attributes) : attributes_(&attributes) {}

  // Names must be asked for in ascending order.
  template <typename Number>
  void read(std::string_view name, Number& number) {
    while (place_ < attributes_->count && name_at(place_) < name) ++place_;
    if (place_ == attributes_->count || name_at(place_) != name || attributes_->types[place_] != xla::scalar_attribute)
      throw Error(WAVEJIT_INTERNAL, ("wavejit.jax: the call has no number '" + std::string(name) + "'").c_str());
    const auto& scalar = *static_cast<const xla::Scalar*>(attributes_->attributes[place_++]);
    if constexpr (sizeof(Number) == sizeof(std::int64_t)) {
      std::memcpy(&number, scalar.value, sizeof number);
    } else {
      static_assert(sizeof(Number) == sizeof(std::int32_t));
      std::memcpy(&number, scalar.value, sizeof number);
    }
  }

 private:
  std::string_view name_at(std::int64_t place) const {
    const xla::Text& text = *attributes_->names[place];
    return {text.begin, text.length};
  }

  const xla::Attributes* attributes_;
  std::int64_t place_ = 0;
};

// Bits of `given`.
enum Given : std::uint64_t {
  given_bias = 1U << 0U,
  given_sinks = 1U << 1U,
  given_alibi = 1U << 2U,
  given_query_starts = 1U << 3U,
  given_key_starts = 1U << 4U,
  given_key_lengths = 1U << 5U,
  given_block_table = 1U << 6U,
  given_k_scale = 1U << 7U,
  given_v_scale = 1U << 8U,
  given_d_lse = 1U << 9U,
  given_mask = 1U << 10U,
  wanted_lse = 1U << 11U,
  wanted_d_sinks = 1U << 12U,
  wanted_d_bias = 1U << 13U,
};

// Attributes that forward and backward have alike; returns `given`.
template <typename Arguments>
std::uint64_t read_attributes(const xla::Frame& frame, Arguments& call) {
  AttributeReader attributes(frame.attributes);
  std::uint64_t given = 0;
  attributes.read("causal_prefix", call.mask.causal_prefix);
  attributes.read("flags", call.head.flags);
  attributes.read("given", given);
  attributes.read("mask", call.mask.bits);
  attributes.read("max_key_length", call.sequences.max_key_length);
  attributes.read("max_query_length", call.sequences.max_query_length);
  attributes.read("scale", call.modifiers.scale);
  attributes.read("softcap", call.modifiers.softcap);
  if constexpr (std::is_base_of_v<wavejit_attention_forward_arguments, Arguments>) {
    std::int32_t splits = 0;
    attributes.read("splits", splits);
    call.split.splits = splits;
  }
  attributes.read("window_left", call.mask.window_left);
  attributes.read("window_right", call.mask.window_right);
  return given;
}

// Operands behind the first ones, in their order, which forward and backward have alike.
template <typename Dispatch, typename Arguments>
void read_others(Dispatch& dispatch, BufferReader& operands, std::uint64_t given, Arguments& call) {
  if ((given & given_bias) != 0) {
    const xla::Buffer& bias = operands.next(tensor_rank);
    call.modifiers.bias = whole(bias, dispatch.input(bias));
    // Rows are as long as multiples of 8 keys are; what stands behind the last key is padding.
    call.modifiers.bias.sizes[3] = call.sequences.max_key_length != 0 ? call.sequences.max_key_length : call.k.sizes[1];
  }
  if ((given & given_sinks) != 0) {
    const xla::Buffer& sinks = operands.next(1);
    call.modifiers.sink = tensor_of(sinks, dispatch.input(sinks), {1, sinks.dims[0], 1, 1});
  }
  if ((given & given_alibi) != 0) {
    const xla::Buffer& alibi = operands.next(2);
    call.modifiers.alibi = of_heads(alibi, dispatch.input(alibi));
  }
  const auto numbers = [&](Given which, const std::int32_t*& place) {
    if ((given & which) == 0) return std::int64_t{0};
    const xla::Buffer& buffer = operands.next(1);
    place = static_cast<const std::int32_t*>(dispatch.input(buffer));
    return buffer.dims[0];
  };
  const std::int64_t query_starts = numbers(given_query_starts, call.sequences.query_starts);
  const std::int64_t key_starts = numbers(given_key_starts, call.sequences.key_starts);
  (void)numbers(given_key_lengths, call.sequences.key_lengths);
  if (query_starts != 0 || key_starts != 0) call.sequences.count = (query_starts != 0 ? query_starts : key_starts) - 1;
}

}  // namespace wavejit::python
