// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention/program/row_layout.h"

#include <algorithm>

namespace wavejit::attention::program {
namespace {

constexpr std::size_t page = 0;
constexpr std::size_t key = 1;
constexpr std::size_t head = 2;
constexpr std::size_t dim = 3;
constexpr std::int64_t unit = 8;

}  // namespace

RowLayout::RowLayout(Order order, const Index& sizes) : sizes_(sizes) {
  const auto whole = [&](std::size_t axis) { return Factor{axis, sizes[axis], 1, 0}; };
  const auto outer = [&](std::size_t axis) { return Factor{axis, sizes[axis] / unit, unit, 0}; };
  const auto inner = [&](std::size_t axis) { return Factor{axis, unit, 1, 0}; };
  switch (order) {
    case Order::nhd:
      factors_ = {whole(page), whole(key), whole(head), whole(dim)};
      break;
    case Order::hnd:
      factors_ = {whole(page), whole(head), whole(key), whole(dim)};
      break;
    case Order::dims_apart:
    case Order::values_by_dims:
      factors_ = {whole(page), whole(head), whole(dim), whole(key)};
      break;
    case Order::keys_in_units:
      factors_ = {whole(page), whole(head), outer(dim), whole(key), inner(dim)};
      break;
    case Order::values_by_keys:
      factors_ = {whole(page), whole(head), outer(key), whole(dim), inner(key)};
      break;
  }
  std::int64_t stride = 1;
  for (auto factor = factors_.rbegin(); factor != factors_.rend(); ++factor) {
    factor->stride = stride;
    stride *= factor->count;
  }
}

std::int64_t RowLayout::place_of(const Index& index) const {
  std::int64_t place = 0;
  for (const Factor& factor : factors_) place += index[factor.axis] / factor.unit % factor.count * factor.stride;
  return place;
}

Index RowLayout::index_of(std::int64_t place) const {
  Index index = {};
  for (const Factor& factor : factors_) {
    index[factor.axis] += place / factor.stride * factor.unit;
    place %= factor.stride;
  }
  return index;
}

Index RowLayout::strides() const {
  Index strides = {};
  for (const Factor& factor : factors_)
    if (factor.unit == 1) strides[factor.axis] = factor.stride;
  return strides;
}

wavejit_tensor RowLayout::tensor(void* memory, std::int32_t type) const {
  wavejit_tensor tensor{};
  tensor.data = memory;
  tensor.dtype = type;
  std::ranges::copy(sizes(), tensor.sizes);
  std::ranges::copy(strides(), tensor.strides);
  return tensor;
}

RowLayout::Order order_of_pages(std::int32_t page_layout, bool heads_first, bool of_values) {
  if (page_layout == WAVEJIT_PAGES_OF_ROWS) return heads_first ? RowLayout::Order::hnd : RowLayout::Order::nhd;
  if (!of_values) return RowLayout::Order::keys_in_units;
  return page_layout == WAVEJIT_PAGES_VECTORISED ? RowLayout::Order::values_by_dims : RowLayout::Order::values_by_keys;
}

}  // namespace wavejit::attention::program
