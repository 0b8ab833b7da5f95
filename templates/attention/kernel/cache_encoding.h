// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A cache whose bytes are another target's.
#pragma once

#include <string>

#include "templates/attention/kernel/types.h"

namespace wavejit::attention {

inline std::string other_encoding(CacheType cache, const targets::Target& target) {
  std::string accepted;
  for (const auto& [known, name] : cache_types)
    if (encoding_of(type_in(known, DataType::bf16)) == target.fp8)
      accepted += (accepted.empty() ? "" : ", ") + std::string(name);
  const bool is_fnuz = encoding_of(type_in(cache, DataType::bf16)) == targets::Fp8::fnuz;
  const std::string reads = target.fp8 == targets::Fp8::none ? " has no instructions for floats of 8 bits"
                            : is_fnuz
                                ? " reads the encoding of the Open Compute Project, in which a byte is twice as much"
                                : " reads the FNUZ encoding, in which a byte is half as much, and 0x80 is NaN";
  return "cache=" + std::string(families::name_in(cache_types, cache)) + ": " + std::string(target.id) + reads +
         "; accepted: " + (accepted.empty() ? std::string("no cache=") : accepted);
}

}  // namespace wavejit::attention
