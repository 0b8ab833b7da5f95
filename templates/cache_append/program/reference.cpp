// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/cache_append/program/reference.h"

#include <cmath>

namespace wavejit::cache_append::program {

Angle angle_of_base(std::int64_t position, double base, std::int64_t pair, std::int64_t dims) {
  const double angle =
      static_cast<double>(position) * std::pow(base, -2.0 * static_cast<double>(pair) / static_cast<double>(dims));
  return {.cosine = std::cos(angle), .sine = std::sin(angle)};
}

Turned turned(std::span<const float> head, std::int64_t dim, std::int64_t dims, bool interleaved,
              const AngleOf& angle) {
  const auto number = [&](std::int64_t at) { return static_cast<double>(head[static_cast<std::size_t>(at)]); };
  const double own = number(dim);
  if (dim >= dims) return {.value = own, .magnitude = std::fabs(own), .turned = false};
  const std::int64_t half = dims / 2;
  const bool first = interleaved ? dim % 2 == 0 : dim < half;
  const std::int64_t pair = interleaved ? dim / 2 : dim % half;
  const double other = number(interleaved ? (first ? dim + 1 : dim - 1) : (first ? dim + half : dim - half));
  const Angle by = angle(pair);
  return {.value = own * by.cosine + (first ? -other : other) * by.sine,
          .magnitude = std::fabs(own * by.cosine) + std::fabs(other * by.sine),
          .turned = true};
}

}  // namespace wavejit::cache_append::program
