// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The rule of every struct of the C ABI: it begins with its size as the caller compiled it.
//
//   sizeof the struct   is accepted
//   a larger one        comes from a newer header: accepted if what we do not know is zero
//   any other           is refused
#pragma once

#include <cstddef>
#include <cstring>
#include <string>

#include "families/call/failure.h"

namespace wavejit::families {

// Guess: no struct of ours will ever be larger; a size beyond it is an uninitialised field.
inline constexpr std::size_t max_struct_bytes = 4096;

inline std::unexpected<Failure> wrong_struct_size(const char* name, std::size_t size, std::size_t known) {
  return fail(WAVEJIT_INVALID_ARGUMENT, std::string(name) + ".size = " + std::to_string(size) +
                                            " is not the size of the struct; accepted: " + std::to_string(known) +
                                            " (set .size = sizeof the struct)");
}

// `structure` has `size` bytes, as its caller says, of which this version knows `known`.
inline Result<void> check_struct_size(const void* structure, std::size_t size, std::size_t known, const char* name) {
  if (size == known) return {};
  if (size < known || size > max_struct_bytes) return wrong_struct_size(name, size, known);
  const auto* bytes = static_cast<const unsigned char*>(structure);
  for (std::size_t i = known; i < size; ++i) {
    if (bytes[i] != 0) {
      return fail(WAVEJIT_UNSUPPORTED, std::string(name) + ".size = " + std::to_string(size) +
                                           ": the struct has a field at byte " + std::to_string(i) +
                                           " that this version does not know; accepted: zero there");
    }
  }
  return {};
}
// For structs that callers fill.
template <typename Struct>
Result<void> check_struct_size(const Struct& structure, const char* name) {
  return check_struct_size(&structure, structure.size, sizeof(Struct), name);
}

// For structs that we fill. What is behind our own fields in a larger one stays as it is.
template <typename Struct>
Result<void> check_output_size(const Struct& structure, const char* name) {
  const std::size_t size = structure.size;
  if (size >= sizeof structure && size <= max_struct_bytes) return {};
  return wrong_struct_size(name, size, sizeof structure);
}

// Fills such a struct, but for its size.
template <typename Struct>
void hand_over(Struct& to, const Struct& from) {
  std::memcpy(reinterpret_cast<char*>(&to) + sizeof(std::size_t),
              reinterpret_cast<const char*>(&from) + sizeof(std::size_t), sizeof(Struct) - sizeof(std::size_t));
}

}  // namespace wavejit::families
