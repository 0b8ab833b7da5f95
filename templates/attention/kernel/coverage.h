// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which kernels stand on which targets: what kernels need of a target's row, and the sentence where it is not there.
//
//   if (auto lacking = lacks_kernels(target, Need::square_of_32, "walk")) return *lacking;
//   // walk has no kernels for gfx1201: they multiply by 32x32 matrix instructions over 64 lanes, and gfx1201 has 16x16
//   // over 32
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "targets/targets.h"

namespace wavejit::attention {

enum class Need : std::uint8_t {
  waves_of_64,   // lanes of a wave share out rows, tiles or dims by 64
  square_of_32,  // 32x32 matrix instructions over 64 lanes
  row_of_two,    // square matrix instructions of whose rows two lanes have each: 32x32 over 64 lanes, 16x16 over 32
};

inline bool meets(const targets::Target& target, Need need) {
  if (need == Need::row_of_two)
    return std::ranges::any_of(target.matrix, [&](const targets::MatrixInstruction& row) {
      return row.m == row.n && 2 * row.m == target.wave_size;
    });
  constexpr int lanes = 64;
  constexpr int rows = 32;
  if (target.wave_size != lanes) return false;
  return need == Need::waves_of_64 || std::ranges::any_of(target.matrix, [](const targets::MatrixInstruction& row) {
           return row.m == rows && row.n == rows;
         });
}

// Why a spec of this target has no kernel, where the table has no such target.
inline std::optional<std::string> unknown_target(const std::string& name) {
  if (targets::find_target(name) != nullptr) return std::nullopt;
  return "target=" + name + " is not in the target table; accepted: " + targets::known_targets();
}

// Why `kernel` cannot stand on `target`, in one sentence; nothing where it can.
inline std::optional<std::string> lacks_kernels(const targets::Target& target, Need need, std::string_view kernel) {
  if (meets(target, need)) return std::nullopt;
  const std::string id(target.id);
  const std::string lanes = std::to_string(target.wave_size);
  std::string text = std::string(kernel) + " has no kernels for " + id + ": they ";
  if (need == Need::waves_of_64)
    return text + "share work among the 64 lanes of a wave, and waves of " + id + " have " + lanes;
  text += "multiply by " +
          std::string(need == Need::row_of_two ? "square matrix instructions of whose rows two lanes have each"
                                               : "32x32 matrix instructions over 64 lanes") +
          ", and " + id + " has ";
  if (target.matrix.empty()) return text + "none";
  const targets::MatrixInstruction& widest = target.matrix.front();
  return text + std::to_string(widest.m) + "x" + std::to_string(widest.n) + " over " + lanes;
}
// The same of a target by its name.
inline std::optional<std::string> target_refusal(const std::string& name, Need need, std::string_view kernel) {
  if (auto unknown = unknown_target(name)) return unknown;
  return lacks_kernels(*targets::find_target(name), need, kernel);
}

}  // namespace wavejit::attention
