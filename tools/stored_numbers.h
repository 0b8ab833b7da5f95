// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Numbers as a tensor of fp32, fp16 or bf16 holds them. Types are those of enum wavejit_dtype.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "tools/half.h"
#include "wavejit/wavejit.h"

namespace wavejit::tools {

// "fp32", "fp16", "bf16": WAVEJIT_FP32, …
std::int32_t type_named(std::string_view name);
constexpr std::int32_t type_of(HalfType type) { return type == HalfType::fp16 ? WAVEJIT_FP16 : WAVEJIT_BF16; }
std::size_t bytes_of_type(std::int32_t type);
// Nothing: fp32, or no type.
std::optional<HalfType> half_of(std::int32_t type);

std::vector<std::byte> stored(const std::vector<float>& values, std::int32_t type);
std::vector<float> numbers(const std::vector<std::byte>& bytes, std::int32_t type);

}  // namespace wavejit::tools
