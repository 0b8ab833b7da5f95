// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How [pages, keys, heads, dims], or [batch, tokens, heads, dims], lie in memory without gaps: a list of factors from
// the outermost to the innermost, of which one axis may have two, as the dims of a vectorised page do.
//
//   nhd: page, key, head, dim        vectorised K: page, head, dim / 8, key, dim mod 8
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "wavejit/wavejit.h"

namespace wavejit::attention::program {

using Index = std::array<std::int64_t, 4>;

class RowLayout {
 public:
  enum class Order : std::uint8_t { nhd, hnd, dims_apart, keys_in_units, values_by_dims, values_by_keys };
  RowLayout(Order order, const Index& sizes);

  std::int64_t count() const { return sizes_[0] * sizes_[1] * sizes_[2] * sizes_[3]; }
  const Index& sizes() const { return sizes_; }
  std::int64_t place_of(const Index& index) const;  // in elements
  Index index_of(std::int64_t place) const;
  // As struct wavejit_tensor has them: of an axis with two factors, that of the inner one.
  Index strides() const;
  wavejit_tensor tensor(void* memory, std::int32_t type) const;

 private:
  struct Factor {
    std::size_t axis;
    std::int64_t count;
    std::int64_t unit;  // what a step is worth on its axis
    std::int64_t stride;
  };
  Index sizes_;
  std::vector<Factor> factors_;
};

// How K lies, or V, in pages of enum wavejit_page_layout.
RowLayout::Order order_of_pages(std::int32_t page_layout, bool heads_first, bool of_values);

}  // namespace wavejit::attention::program
