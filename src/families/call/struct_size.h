// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The rule of every struct of the C ABI: it begins with its size as the caller compiled it. A caller older than the
// first version does not exist, so a smaller size is a mistake; a newer caller may pass more, if what we do not know is
// zero.
#pragma once

#include <cstddef>
#include <cstring>
#include <string>

#include "families/call/failure.h"

namespace wavejit::families {

// Guess: no struct of ours will ever be larger; a size beyond it is an uninitialised field.
inline constexpr std::size_t max_struct_bytes = 4096;

inline Result<void> check_struct_size(const void* structure, const char* name, std::size_t known) {
  std::size_t size = 0;
  std::memcpy(&size, structure, sizeof size);
  if (size == known) return {};
  if (size < known || size > max_struct_bytes) {
    return fail(WAVEJIT_INVALID_ARGUMENT, std::string(name) + ".size = " + std::to_string(size) +
                                              " is not the size of the struct; accepted: " + std::to_string(known) +
                                              " (set .size = sizeof the struct)");
  }
  const auto* bytes = static_cast<const unsigned char*>(structure);
  for (std::size_t i = known; i < size; ++i) {
    if (bytes[i] != 0) {
      return fail(WAVEJIT_UNSUPPORTED, std::string(name) + " has a field at byte " + std::to_string(i) +
                                           " that this version does not know; accepted: zero there");
    }
  }
  return {};
}

// For structs that we fill: the same, without a look behind what we know. `earliest` is the size that the struct's
// first version had: older callers get what their struct has.
inline Result<void> check_output_size(const void* structure, const char* name, std::size_t known,
                                      std::size_t earliest = 0) {
  if (earliest == 0) earliest = known;
  std::size_t size = 0;
  std::memcpy(&size, structure, sizeof size);
  if (size >= earliest && size % sizeof(std::size_t) == 0 && size <= max_struct_bytes) return {};
  return fail(WAVEJIT_INVALID_ARGUMENT, std::string(name) + ".size = " + std::to_string(size) +
                                            " is not the size of the struct; accepted: " + std::to_string(known) +
                                            " (set .size = sizeof the struct)");
}

}  // namespace wavejit::families
