// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// O in 8 bits: what a kernel reads of its scale, and which targets write which types (docs/low-precision.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "templates/attention/kernel/cache_encoding.h"
#include "templates/attention/kernel/types.h"

namespace wavejit::attention {

// f32. O is multiplied by 1 / it.
struct OutputScale {
  std::uint64_t number = 0;  // in device memory; null: `value`
  float value = 1;
  std::uint32_t nothing = 0;
};
static_assert(sizeof(OutputScale) == 16);

// E4m3 of the Open Compute Project is made of the FNUZ form, a byte of which is half as much, where a target has that
// alone (emit/output_bytes.h).
constexpr bool writes(const targets::Target& target, DataType output) {
  return !is_narrow(output) || reads(target, output) || (output == DataType::e4m3 && target.fp8 == targets::Fp8::fnuz);
}

// The greatest number of a type of 8 bits.
constexpr float limit_of(DataType type) {
  switch (type) {
    case DataType::e4m3:
      return 448;
    case DataType::e4m3_fnuz:
      return 240;
    case DataType::i8:
      return 127;
    default:
      return 57344;
  }
}

// Why the target has no such output; nothing: it has. `word`: "o=".
inline std::optional<std::string> refusal_of_output(DataType output, const targets::Target& target,
                                                    const std::string& word) {
  if (writes(target, output)) return std::nullopt;
  std::string accepted;
  for (const auto& [type, name] : output_types)
    if (writes(target, type_in(type, DataType::bf16))) accepted += (accepted.empty() ? "" : ", ") + std::string(name);
  return word + std::string(to_text(output)) + ": " + reads_other_encoding(output, target) + "; accepted: " + accepted;
}

}  // namespace wavejit::attention
