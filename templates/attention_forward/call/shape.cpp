// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_forward/call/shape.h"

namespace wavejit::attention_forward {
namespace {

// From the last field, which stands lowest, to the first.
template <std::size_t count>
void take_fields(AttentionShape& shape, std::uint64_t code) {
  if constexpr (count != 0) {
    using Field = std::tuple_element_t<count - 1, ShapeFields>;
    Field::set(shape, code & Field::mask);
    take_fields<count - 1>(shape, code >> Field::width);
  }
}

}  // namespace

AttentionShape AttentionShape::of_code(std::uint64_t code) {
  AttentionShape shape;
  take_fields<std::tuple_size_v<ShapeFields>>(shape, code);
  return shape;
}

}  // namespace wavejit::attention_forward
