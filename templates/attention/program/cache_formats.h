// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which formats of 8 bits keys and values may have on a target, for those who name targets and not formats.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tools/byte_float.h"
#include "tools/family.h"

namespace wavejit::attention::program {

// "e4m3" or "e4m3_fnuz", the one that the target's instructions read; empty: neither.
std::string e4m3_of(std::string_view target);

// e4m3, e5m2 and int8 of either encoding as the target has them, of enum wavejit_dtype.
std::int32_t format_on(std::string_view target, tools::ByteType type);

// A descriptor of a family that has such words with its keys and values in e4m3 of the target or in integers, or as it
// is where they have 8 bits already or the target has no e4m3.
std::string with_cache_of(std::string_view target, const std::string& descriptor, tools::EightBits kind);

}  // namespace wavejit::attention::program
