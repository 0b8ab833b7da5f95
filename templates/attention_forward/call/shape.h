// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The words of a problem that change code, and the number that they are together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <tuple>
#include <type_traits>

#include "templates/attention_forward/kernel/parameters.h"
#include "templates/attention_forward/kernel/spec.h"

namespace wavejit::attention_forward {

// The words of a problem that change code, and only those: what a route is chosen for.
struct AttentionShape {
  DataType dtype = DataType::fp16;
  Mask mask = Mask::none;
  bool lse = false;
  int head_dim_qk = 0;  // 1 … max_head_dim
  int head_dim_v = 0;
  // What scores pass through before the mask: those that change code.
  Modifiers modifiers = {};  // NOLINT(readability-redundant-member-init): for initializers
  bool bias_fp32 = false;    // the bias is f32, not of the type of Q, K and V
  // Of the query, or of the longest of packed ones; of all heads of a kv head where they are packed.
  QueryRows query_rows = QueryRows::up_to_255;
  bool packed_heads = false;  // asks for it: pipelines that cannot leave it out
  // Keys are cut into runs (splits.h); LSE and O then are the combine kernel's.
  bool split = false;
  bool paged = false;  // keys and values stand in pages
  // These hold whole tiles of keys: pipelines that make something of it.
  bool whole_tiles = false;
  bool single_keys = false;  // of one key
  bool first_keys = false;   // left padding
  // Packed queries, of which most are short: two kernels walk the keys, each those of its own sequences (row_limits.h).
  // query_rows are then the long ones', and packed_heads and split are of the short ones'.
  bool mixed = false;
  QueryRows few_rows = QueryRows::up_to_32;  // with `mixed` only
  // What is asked for is one of those two: of a mixed shape, or the kernel of few rows alone, for packed queries in
  // rounds (splits.h).
  QueriesOf rows = QueriesOf::all;
  bool output_fp32 = false;  // O in f32, not in the type of Q, K and V
  // Two query tiles a workgroup (pairs.h): pipelines that can.
  bool paired_tiles = false;
  bool vectorised = false;  // units of pages are 8 dims of a key, 8 keys of a dim of V

  bool modified() const { return modifiers.any(); }
  bool has(Modifier modifier) const { return modifiers.has(modifier); }
  bool operator==(const AttentionShape&) const = default;
  // One number for all that shape_fields have, never 0: what the kernel table is asked with. of_code is the way back.
  std::uint64_t code() const;
  static AttentionShape of_code(std::uint64_t code);

  void set_rows(const RowPlan& plan) {
    query_rows = plan.rows;
    packed_heads = plan.packed_heads;
  }
  AttentionShape of_paired_kernel() const {
    AttentionShape shape = *this;
    shape.paired_tiles = true;
    return shape;
  }
  // What the kernel that walks the keys is asked for when they are split.
  AttentionShape of_split_kernel() const {
    AttentionShape shape = *this;
    shape.split = true;
    shape.lse = false;
    return shape;
  }
  // What the two kernels of a mixed shape are asked for.
  AttentionShape of_long_queries() const {
    AttentionShape shape = *this;
    shape.rows = QueriesOf::many;
    shape.mixed = shape.packed_heads = shape.split = false;
    return shape;
  }
  AttentionShape of_few_rows() const {
    AttentionShape shape = *this;
    shape.set_rows({.rows = few_rows, .packed_heads = packed_heads});
    shape.rows = QueriesOf::few;
    shape.mixed = false;
    if (split) shape.lse = false;
    return shape;
  }
};

// One row a field: where it stands, and in how many bits. They follow one another in a shape's code.
template <auto field, int bits>
struct ShapeField {
  using Value = std::remove_cvref_t<decltype(std::declval<AttentionShape>().*field)>;
  static constexpr int width = bits;
  static constexpr std::uint64_t mask = (std::uint64_t{1} << bits) - 1;
  static std::uint64_t get(const AttentionShape& shape) {
    if constexpr (std::is_same_v<Value, Modifiers>)
      return (shape.*field).bits();
    else
      return static_cast<std::uint64_t>(shape.*field);
  }
  static void set(AttentionShape& shape, std::uint64_t value) {
    if constexpr (std::is_same_v<Value, Modifiers>)
      shape.*field = Modifiers::from_bits(static_cast<std::uint8_t>(value));
    else
      shape.*field = static_cast<Value>(value);
  }
};
using ShapeFields =
    std::tuple<ShapeField<&AttentionShape::dtype, 2>, ShapeField<&AttentionShape::mask, 2>,
               ShapeField<&AttentionShape::lse, 1>, ShapeField<&AttentionShape::head_dim_qk, 16>,
               ShapeField<&AttentionShape::head_dim_v, 16>,
               ShapeField<&AttentionShape::modifiers, static_cast<int>(modifier_count)>,
               ShapeField<&AttentionShape::bias_fp32, 1>, ShapeField<&AttentionShape::query_rows, 2>,
               ShapeField<&AttentionShape::packed_heads, 1>, ShapeField<&AttentionShape::split, 1>,
               ShapeField<&AttentionShape::paged, 1>, ShapeField<&AttentionShape::whole_tiles, 1>,
               ShapeField<&AttentionShape::single_keys, 1>, ShapeField<&AttentionShape::first_keys, 1>,
               ShapeField<&AttentionShape::mixed, 1>, ShapeField<&AttentionShape::few_rows, 2>,
               ShapeField<&AttentionShape::output_fp32, 1>, ShapeField<&AttentionShape::paired_tiles, 1>,
               ShapeField<&AttentionShape::vectorised, 1>, ShapeField<&AttentionShape::rows, 2>>;

namespace detail {
template <typename... Fields>
constexpr int bits_of(std::type_identity<std::tuple<Fields...>>) {
  return (Fields::width + ...);
}
template <typename... Fields>
std::uint64_t code_of(const AttentionShape& shape, std::type_identity<std::tuple<Fields...>>) {
  std::uint64_t code = 1;  // never 0
  ((code = code << Fields::width | (Fields::get(shape) & Fields::mask)), ...);
  return code;
}
}  // namespace detail
// And one bit that is always there.
static_assert(detail::bits_of(std::type_identity<ShapeFields>()) < 64, "a shape's code has no room for its fields");

inline std::uint64_t AttentionShape::code() const { return detail::code_of(*this, std::type_identity<ShapeFields>()); }

}  // namespace wavejit::attention_forward
