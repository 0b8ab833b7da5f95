// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The words of a problem that change code, and the number that they are together.
#pragma once

#include <cstdint>

#include "templates/attention_forward/kernel/parameters.h"
#include "templates/attention_forward/kernel/words.h"

namespace wavejit::attention_forward {

// What a route is chosen for: the words of a problem that change code, and what its sizes amount to.
struct AttentionShape : AskedWords {
  // Rows of the query, or of the longest of packed ones; of all heads of a kv head where they are packed.
  QueryRows query_rows = QueryRows::up_to_255;
  bool packed_heads = false;  // asks for it: pipelines that cannot leave it out
  // Keys are cut into runs (splits.h); LSE and O then are the combine kernel's.
  bool split = false;
  // Their parts are merged in the same launch.
  bool merged = false;
  // Packed queries, of which most are short: two kernels walk the keys, each those of its own sequences (row_limits.h).
  // query_rows are then the long ones', and packed_heads, split and shared_chunks the short ones'. `rows` says that
  // what is asked for is one of those two: of a mixed shape, or the kernel of few rows alone, for packed queries in
  // rounds (splits.h).
  bool mixed = false;
  QueryRows short_query_rows = QueryRows::up_to_32;  // with `mixed` only
  // Two query tiles a workgroup (pairs.h): pipelines that can.
  bool paired_tiles = false;
  // Waves share each chunk of keys (shared_chunks.h): pipelines that can.
  bool shared_chunks = false;

  // By a bool mask, whose tiles no lists name (splits_bool_mask).
  bool masks_few_rows() const { return bool_mask && !block_lists; }
  AskedWords& words() { return *this; }
  const AskedWords& words() const { return *this; }
  bool operator==(const AttentionShape&) const = default;
  // One number for all of it, never 0: what the kernel table is asked with. of_code is the way back.
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
  AttentionShape of_shared_chunks() const {
    AttentionShape shape = *this;
    shape.shared_chunks = true;
    return shape;
  }
  // What the two kernels of a mixed shape are asked for.
  AttentionShape of_long_queries() const {
    AttentionShape shape = *this;
    shape.rows = QueriesOf::many;
    shape.mixed = shape.packed_heads = shape.split = shape.shared_chunks = false;
    return shape;
  }
  AttentionShape of_few_rows() const {
    AttentionShape shape = *this;
    shape.set_rows({.rows = short_query_rows, .packed_heads = packed_heads});
    shape.rows = QueriesOf::few;
    shape.mixed = false;
    if (split) shape.lse = false;
    return shape;
  }
};

// A bias by tile of fewer rows is walked as it would be otherwise: keys that are split, and heads that are packed, are
// worth more than what is left out.
constexpr bool bias_goes_by_tile(std::int64_t query_length) {
  return query_length > static_cast<std::int64_t>(longest_packed_query);
}

// A bool mask of few rows that all heads share: heads are packed and keys split as without it. Of others, and in pages,
// walks are made (lists.h).
constexpr bool splits_bool_mask(const AskedWords& words, std::int64_t query_length, bool by_head) {
  return query_length <= static_cast<std::int64_t>(longest_packed_query) && !by_head && !words.paged &&
         !words.first_keys;
}

// The bits of the words, and of what is a shape's own.
using ShapeBits = families::JoinedBits<
    families::BitsOfTable<decltype(word_table)>,
    families::BitFields<
        families::Bits<&AttentionShape::query_rows, 2>, families::Bits<&AttentionShape::packed_heads, 1>,
        families::Bits<&AttentionShape::split, 1>, families::Bits<&AttentionShape::merged, 1>,
        families::Bits<&AttentionShape::mixed, 1>, families::Bits<&AttentionShape::short_query_rows, 2>,
        families::Bits<&AttentionShape::paired_tiles, 1>, families::Bits<&AttentionShape::shared_chunks, 1>>>;

// Five of the 63 bits are kept free, so that the word that finds no room still has a way out: fields that exclude each
// other share bits (AtMostOne).
static_assert(families::width_of_code<ShapeBits> <= 58, "CONTRIBUTING.md says what makes room for another word");

inline std::uint64_t AttentionShape::code() const { return families::code_of<ShapeBits>(*this); }
inline AttentionShape AttentionShape::of_code(std::uint64_t code) {
  return families::shape_of_code<ShapeBits, AttentionShape>(code);
}

}  // namespace wavejit::attention_forward
