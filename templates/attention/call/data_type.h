// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Data types as the C ABI numbers them.
#pragma once

#include <cstdint>
#include <optional>

#include "templates/attention/kernel/types.h"
#include "wavejit/wavejit.h"

namespace wavejit::attention {

constexpr std::optional<DataType> type_of(std::int32_t dtype) {
  switch (dtype) {
    case WAVEJIT_FP16:
      return DataType::fp16;
    case WAVEJIT_BF16:
      return DataType::bf16;
    case WAVEJIT_FP32:
      return DataType::fp32;
    case WAVEJIT_E4M3:
      return DataType::e4m3;
    case WAVEJIT_E5M2:
      return DataType::e5m2;
    case WAVEJIT_E4M3_FNUZ:
      return DataType::e4m3_fnuz;
    case WAVEJIT_E5M2_FNUZ:
      return DataType::e5m2_fnuz;
    case WAVEJIT_INT8:
      return DataType::i8;
    default:
      return std::nullopt;
  }
}
// The types of tensors that kernels compute with and write.
constexpr std::optional<DataType> wide_type_of(std::int32_t dtype) {
  const std::optional<DataType> type = type_of(dtype);
  return type && !is_narrow(*type) ? type : std::nullopt;
}
constexpr std::int32_t told_type(DataType type) {
  switch (type) {
    case DataType::bf16:
      return WAVEJIT_BF16;
    case DataType::fp16:
      return WAVEJIT_FP16;
    case DataType::fp32:
      return WAVEJIT_FP32;
    case DataType::e4m3:
      return WAVEJIT_E4M3;
    case DataType::e5m2:
      return WAVEJIT_E5M2;
    case DataType::e4m3_fnuz:
      return WAVEJIT_E4M3_FNUZ;
    case DataType::i8:
      return WAVEJIT_INT8;
    case DataType::e5m2_fnuz:
      break;
  }
  return WAVEJIT_E5M2_FNUZ;
}
// Four bits for each type: its bytes. Hot: a call asks a dozen times.
inline constexpr std::uint32_t most_types = 16;
inline constexpr std::uint64_t bytes_of_types = [] {
  std::uint64_t all = 0;
  for (std::uint32_t type = 0; type < most_types; ++type) {
    const DataType of = type_of(static_cast<std::int32_t>(type)).value_or(DataType::fp32);
    all |= static_cast<std::uint64_t>(bytes_of(of)) << (4 * type);
  }
  return all;
}();
// Bytes of an element of a tensor whose type was checked.
constexpr std::uint64_t element_bytes_of(const wavejit_tensor& tensor) {
  return bytes_of_types >> (4 * (static_cast<std::uint32_t>(tensor.dtype) % most_types)) & 15;
}

}  // namespace wavejit::attention
