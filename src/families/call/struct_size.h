// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The rule of every struct of the C ABI: it begins with its size as the caller compiled it, and grows at its end.
//
//   an older caller    passes the size of an earlier version: what its struct does not have is zero
//   a newer caller     passes more than we know: fine, if what we do not know is zero
//   another size       is a mistake
//
// Whoever owns a struct says once where each earlier version of it ended:
//
//   template <>
//   struct Versions<wavejit_x_arguments> {
//     static constexpr std::array earlier = {offsetof(wavejit_x_arguments, first_field_of_the_second_version)};
//   };
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <string>

#include "families/call/failure.h"

namespace wavejit::families {

template <typename Struct>
struct Versions;
// The versions of a struct that has not grown yet.
struct OneVersion {
  static constexpr std::array<std::size_t, 0> earlier{};
};

// Guess: no struct of ours will ever be larger; a size beyond it is an uninitialised field.
inline constexpr std::size_t max_struct_bytes = 4096;

// Whether it is of this version, or of a newer one without anything that we do not know.
template <typename Struct>
Result<void> check_struct_size(const Struct& structure, const char* name) {
  constexpr std::size_t known = sizeof(Struct);
  const std::size_t size = structure.size;
  if (size == known) return {};
  if (size < known || size > max_struct_bytes) {
    return fail(WAVEJIT_INVALID_ARGUMENT, std::string(name) + ".size = " + std::to_string(size) +
                                              " is not the size of the struct; accepted: " + std::to_string(known) +
                                              " (set .size = sizeof the struct)");
  }
  const auto* bytes = reinterpret_cast<const unsigned char*>(&structure);
  for (std::size_t i = known; i < size; ++i) {
    if (bytes[i] != 0) {
      return fail(WAVEJIT_UNSUPPORTED, std::string(name) + " has a field at byte " + std::to_string(i) +
                                           " that this version does not know; accepted: zero there");
    }
  }
  return {};
}

// Whether an older caller made it: `grown` before anything else reads it.
template <typename Struct>
bool is_earlier(const Struct& given) {
  return given.size != sizeof given && std::ranges::contains(Versions<Struct>::earlier, given.size);
}

// An older caller's struct as this version has it.
template <typename Struct>
Struct grown(const Struct& given) {
  Struct all = {};
  std::memcpy(&all, &given, given.size);
  all.size = sizeof all;
  return all;
}

// The struct as this version has it, whoever made it.
template <typename Struct>
Result<Struct> taken(const Struct& given, const char* name) {
  if (is_earlier(given)) return grown(given);
  if (auto size = check_struct_size(given, name); !size) return std::unexpected(size.error());
  Struct all = given;
  all.size = sizeof all;
  return all;
}

// For structs that we fill: callers get what their struct has, from the first version on, and nothing behind it.
template <typename Struct>
Result<void> check_output_size(const Struct& structure, const char* name) {
  const std::size_t size = structure.size;
  std::size_t first = sizeof structure;
  if constexpr (!Versions<Struct>::earlier.empty()) first = Versions<Struct>::earlier.front();
  if (size >= first && size % sizeof(std::size_t) == 0 && size <= max_struct_bytes) return {};
  return fail(WAVEJIT_INVALID_ARGUMENT, std::string(name) + ".size = " + std::to_string(size) +
                                            " is not the size of the struct; accepted: " +
                                            std::to_string(sizeof structure) + " (set .size = sizeof the struct)");
}

// Fills such a struct, but for its size.
template <typename Struct>
void hand_over(Struct& to, const Struct& from) {
  const std::size_t bytes = std::min(to.size, sizeof(Struct));
  std::memcpy(reinterpret_cast<char*>(&to) + sizeof(std::size_t),
              reinterpret_cast<const char*>(&from) + sizeof(std::size_t), bytes - sizeof(std::size_t));
}

template <>
struct Versions<wavejit_call_report> : OneVersion {};

}  // namespace wavejit::families
