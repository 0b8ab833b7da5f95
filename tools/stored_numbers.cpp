// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/stored_numbers.h"

#include <cstring>

#include "wavejit/wavejit.h"

namespace wavejit::tools {

std::int32_t type_named(std::string_view name) {
  return name == "fp32" ? WAVEJIT_FP32 : name == "fp16" ? WAVEJIT_FP16 : WAVEJIT_BF16;
}

std::size_t bytes_of_type(std::int32_t type) { return type == WAVEJIT_FP32 ? 4 : 2; }

std::optional<HalfType> half_of(std::int32_t type) {
  if (type == WAVEJIT_FP16) return HalfType::fp16;
  if (type == WAVEJIT_BF16) return HalfType::bf16;
  return std::nullopt;
}

std::vector<std::byte> stored(const std::vector<float>& values, std::int32_t type) {
  std::vector<std::byte> bytes(values.size() * bytes_of_type(type));
  const auto half = half_of(type);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (half) {
      const std::uint16_t element = encode(*half, static_cast<double>(values[i]));
      std::memcpy(&bytes[i * 2], &element, 2);
    } else {
      std::memcpy(&bytes[i * 4], &values[i], 4);
    }
  }
  return bytes;
}

std::vector<float> numbers(const std::vector<std::byte>& bytes, std::int32_t type) {
  std::vector<float> values(bytes.size() / bytes_of_type(type));
  const auto half = half_of(type);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (half) {
      std::uint16_t element = 0;
      std::memcpy(&element, &bytes[i * 2], 2);
      values[i] = decode(*half, element);
    } else {
      std::memcpy(&values[i], &bytes[i * 4], 4);
    }
  }
  return values;
}

}  // namespace wavejit::tools
