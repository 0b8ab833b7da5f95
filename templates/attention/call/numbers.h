// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// From a call's tensors to the numbers that kernels read.
#pragma once

#include <charconv>
#include <cstdint>
#include <string>
#include <system_error>

#include "wavejit/wavejit.h"

namespace wavejit::attention {

inline std::uint64_t address(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); }

// In bytes. A dimension with one element has no stride, a tensor without rows has none at all: whatever the caller left
// there must not reach address arithmetic, and one element counts for every index.
inline std::uint64_t stride_bytes(const wavejit_tensor& tensor, int dimension, std::uint64_t element_bytes) {
  return tensor.sizes[dimension] > 1 ? static_cast<std::uint64_t>(tensor.strides[dimension]) * element_bytes : 0;
}

constexpr std::uint64_t ceil_div(std::uint64_t a, std::uint64_t b) { return (a + b - 1) / b; }

// ceil(2³² / divisor), 0 standing for 2³²: the multipliers of kernels' arguments (emit/integers.h). floor(x ·
// multiplier / 2³²) is floor(x / divisor) as long as x · divisor < 2³².
constexpr std::uint32_t division_multiplier(std::uint32_t divisor) {
  if (divisor <= 1) return 0;  // stands for 2³²
  // ⌈2³² / divisor⌉ in 32 bits: hot, and a division of 64 takes twice as long.
  return (~std::uint32_t{0} / divisor) + 1;
}

// The multiplier that makes a kv head of a query head, which is a division by their group.
constexpr std::uint32_t kv_head_multiplier(std::uint32_t query_heads, std::uint32_t kv_heads) {
  return kv_heads == 0 ? 0 : division_multiplier(query_heads / kv_heads);
}

// As descriptors have numbers.
inline std::string text_of(float number) {
  char text[32];
  const auto [end, error] = std::to_chars(text, text + sizeof text, number);
  return error == std::errc{} ? std::string(text, end) : std::string();
}

}  // namespace wavejit::attention
