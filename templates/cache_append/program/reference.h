// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Rotary embedding in float64, by the textbook.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace wavejit::cache_append::program {

// What pair i of a head is turned by.
struct Angle {
  double cosine;
  double sine;
};
using AngleOf = std::function<Angle(std::int64_t pair)>;
// position · base^(−2i / dims)
Angle angle_of_base(std::int64_t position, double base, std::int64_t pair, std::int64_t dims);

struct Turned {
  double value;
  double magnitude;  // of what was added up
  bool turned;       // a dim behind those that are turned stays as it is
};
// Dim `dim` of a head, whose first `dims` are turned.
Turned turned(std::span<const float> head, std::int64_t dim, std::int64_t dims, bool interleaved, const AngleOf& angle);

}  // namespace wavejit::cache_append::program
