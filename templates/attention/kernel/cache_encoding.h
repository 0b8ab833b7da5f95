// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A cache whose bytes are another target's.
#pragma once

#include <string>

#include "templates/attention/kernel/types.h"

namespace wavejit::attention {

// "gfx942 reads the FNUZ encoding, …", of bytes of `type`, which are not those.
inline std::string reads_other_encoding(DataType type, const targets::Target& target) {
  return std::string(target.id) +
         (target.fp8 == targets::Fp8::none ? " has no instructions for floats of 8 bits"
          : encoding_of(type) == targets::Fp8::fnuz
              ? " reads the encoding of the Open Compute Project, in which a byte is twice as much"
              : " reads the FNUZ encoding, in which a byte is half as much, and 0x80 is NaN");
}

inline std::string other_encoding(CacheType cache, const targets::Target& target) {
  std::string accepted;
  for (const auto& [known, name] : cache_types)
    if (reads(target, type_in(known, DataType::bf16))) accepted += (accepted.empty() ? "" : ", ") + std::string(name);
  return "cache=" + std::string(families::name_in(cache_types, cache)) + ": " +
         reads_other_encoding(type_in(cache, DataType::bf16), target) +
         "; accepted: " + (accepted.empty() ? std::string("no cache=") : accepted);
}

}  // namespace wavejit::attention
