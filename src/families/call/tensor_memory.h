// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which bytes a tensor's elements stand on: whether two elements, or two tensors, share memory.
#pragma once

#include <array>
#include <cstdint>
#include <utility>

#include "wavejit/wavejit.h"

namespace wavejit::families {

struct Dimension {
  std::uint64_t size;
  std::uint64_t stride;
};

// Sorted by stride, each stride must pass what the dimensions inside it span: then no two elements share an address.
template <std::size_t count>
bool elements_overlap(std::array<Dimension, count> dimensions, std::uint64_t inner) {
  for (std::size_t from = 0; from < count; ++from)
    for (std::size_t at = 0; at + 1 < count - from; ++at)
      if (dimensions[at].stride > dimensions[at + 1].stride) std::swap(dimensions[at], dimensions[at + 1]);
  std::uint64_t span = inner;
  for (const Dimension& dimension : dimensions) {
    if (dimension.size <= 1) continue;
    if (dimension.stride < span) return true;
    span += (dimension.size - 1) * dimension.stride;
  }
  return false;
}

// Whether strides stand in the usual order, each passing what the dimensions behind it span. Hot: most tensors of most
// calls, and nothing to sort. A size of 0 spans nothing.
inline bool descends(const wavejit_tensor& t, int rows, std::uint64_t inner) {
  std::uint64_t span = inner;
  for (int d = 2; d >= 0; --d) {
    if (d == rows || t.sizes[d] <= 1) continue;
    const auto stride = static_cast<std::uint64_t>(t.strides[d]);
    if (stride < span) return false;
    span += static_cast<std::uint64_t>(t.sizes[d] - 1) * stride;
  }
  return true;
}

inline bool elements_overlap(const wavejit_tensor& t, int rows, std::uint64_t inner) {
  if (descends(t, rows, inner)) [[likely]]
    return false;
  std::array<Dimension, 3> dimensions{};
  for (int d = 0; d < 3; ++d) {
    const bool counts = d != rows && t.sizes[d] > 1;
    dimensions[d] = {counts ? static_cast<std::uint64_t>(t.sizes[d]) : 1,
                     counts ? static_cast<std::uint64_t>(t.strides[d]) : 0};
  }
  return elements_overlap(dimensions, inner);
}

// Whether elements of a tensor overlap of which no dimension need be the innermost.
inline bool elements_overlap(const wavejit_tensor& t) {
  std::array<Dimension, 4> dimensions{};
  for (std::size_t d = 0; d < dimensions.size(); ++d)
    dimensions[d] = {static_cast<std::uint64_t>(t.sizes[d]),
                     t.sizes[d] > 1 ? static_cast<std::uint64_t>(t.strides[d]) : 0};
  return elements_overlap(dimensions, 1);
}

// A tensor's bytes, first to last. `dense`: every byte between belongs to it.
struct Range {
  std::uint64_t begin;
  std::uint64_t end;
  bool dense;
};

inline Range range_of(const wavejit_tensor& t, std::uint64_t element_bytes) {
  const auto begin = reinterpret_cast<std::uintptr_t>(t.data);
  std::uint64_t span = 1;
  std::uint64_t count = 1;
  bool empty = false;
  // One element spans nothing, whatever its stride.
  for (int d = 0; d < 4; ++d) {
    const auto size = static_cast<std::uint64_t>(t.sizes[d]);
    empty |= size == 0;
    count *= size;
    span += (size - 1) * static_cast<std::uint64_t>(t.strides[d]);
  }
  if (empty) [[unlikely]]
    return {begin, begin, false};
  return {begin, begin + span * element_bytes, count == span};
}

// Two tensors may interleave in one buffer, so ranges that meet prove nothing. It is certain that they share memory
// when they begin together, or when one begins inside the other and that one has no gaps.
inline bool surely_share(const Range& a, const Range& b) {
  if (a.begin >= b.end || b.begin >= a.end) return false;
  return a.begin == b.begin || (a.begin > b.begin ? b.dense : a.dense);
}

}  // namespace wavejit::families
