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
    default:
      return std::nullopt;
  }
}
constexpr std::int32_t told_type(DataType type) {
  return type == DataType::fp32 ? WAVEJIT_FP32 : type == DataType::bf16 ? WAVEJIT_BF16 : WAVEJIT_FP16;
}
// Of a tensor whose type was checked.
constexpr std::uint64_t element_bytes_of(const wavejit_tensor& tensor) {
  return static_cast<std::uint64_t>(bytes_of(type_of(tensor.dtype).value_or(DataType::fp32)));
}

}  // namespace wavejit::attention
