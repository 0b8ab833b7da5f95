// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What one call asks for, checked once, every field: after this nothing in the runtime doubts a size or a stride.
#pragma once

#include <cstdint>
#include <optional>

#include "families/call/failure.h"
#include "families/call/refusal.h"
#include "templates/attention/call/limits.h"
#include "templates/attention/call/mask.h"
#include "templates/attention/call/numbers.h"
#include "templates/attention/call/sequences.h"
#include "templates/attention_forward/kernel/arguments.h"
#include "templates/attention_forward/kernel/parameters.h"
#include "templates/attention_forward/kernel/spec.h"
#include "wavejit/wavejit.h"

namespace wavejit::attention_forward {

using families::fail;
using families::Failure;
using families::Result;
namespace refusal = families::refusal;

// The words of a problem that change code, and only those: what a route is chosen for.
struct AttentionShape {
  DataType dtype = DataType::fp16;
  Mask mask = Mask::none;
  bool lse = false;
  int head_dim_qk = 0;  // 1 … max_head_dim
  int head_dim_v = 0;
  // What scores pass through before the mask: those that change code.
  Modifiers modifiers = {};  // NOLINT(readability-redundant-member-init): for initializers
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
  // What is asked for is one of those two.
  QueriesOf rows = QueriesOf::all;
  bool output_fp32 = false;  // O in f32, not in the type of Q, K and V
  // Two query tiles a workgroup (pairs.h): pipelines that can.
  bool paired_tiles = false;
  bool vectorised = false;  // units of pages are 8 dims of a key, 8 keys of a dim of V

  bool modified() const { return modifiers.any(); }
  bool has(Modifier modifier) const { return modifiers.has(modifier); }
  bool operator==(const AttentionShape&) const = default;
  // One number for all of it but `rows`, never 0: what the kernel table is asked with. of_code is the way back.
  std::uint64_t code() const {
    return std::uint64_t{1} << 63 | static_cast<std::uint64_t>(paged) << 62 |
           static_cast<std::uint64_t>(single_keys) << 61 | static_cast<std::uint64_t>(first_keys) << 60 |
           static_cast<std::uint64_t>(whole_tiles) << 59 | static_cast<std::uint64_t>(mixed) << 58 |
           static_cast<std::uint64_t>(modifiers.bits()) << 50 | static_cast<std::uint64_t>(dtype) << 48 |
           static_cast<std::uint64_t>(few_rows) << 46 | static_cast<std::uint64_t>(output_fp32) << 45 |
           static_cast<std::uint64_t>(paired_tiles) << 44 | static_cast<std::uint64_t>(vectorised) << 43 |
           static_cast<std::uint64_t>(mask) << 40 | static_cast<std::uint64_t>(split) << 39 |
           static_cast<std::uint64_t>(packed_heads) << 38 | static_cast<std::uint64_t>(query_rows) << 33 |
           static_cast<std::uint64_t>(lse) << 32 | static_cast<std::uint64_t>(head_dim_qk) << 16 |
           static_cast<std::uint64_t>(head_dim_v);
  }
  static AttentionShape of_code(std::uint64_t code) {
    const auto bits = [&](int from, int count) { return code >> from & ((std::uint64_t{1} << count) - 1); };
    AttentionShape shape;
    shape.modifiers = Modifiers::from_bits(static_cast<std::uint8_t>(bits(50, 8)));
    shape.dtype = static_cast<DataType>(bits(48, 2));
    shape.mixed = bits(58, 1) != 0;
    shape.few_rows = static_cast<QueryRows>(bits(46, 2));
    shape.mask = static_cast<Mask>(bits(40, 2));
    shape.output_fp32 = bits(45, 1) != 0;
    shape.split = bits(39, 1) != 0;
    shape.paged = bits(62, 1) != 0;
    shape.whole_tiles = bits(59, 1) != 0;
    shape.paired_tiles = bits(44, 1) != 0;
    shape.vectorised = bits(43, 1) != 0;
    shape.single_keys = bits(61, 1) != 0;
    shape.first_keys = bits(60, 1) != 0;
    shape.packed_heads = bits(38, 1) != 0;
    shape.query_rows = static_cast<QueryRows>(bits(33, 5));
    shape.lse = bits(32, 1) != 0;
    shape.head_dim_qk = static_cast<int>(bits(16, 16));
    shape.head_dim_v = static_cast<int>(bits(0, 16));
    return shape;
  }
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

inline DataType output_type(const AttentionShape& shape) { return shape.output_fp32 ? DataType::fp32 : shape.dtype; }
inline std::uint64_t output_element_bytes(const AttentionShape& shape) {
  return static_cast<std::uint64_t>(bytes_of(output_type(shape)));
}

// Pointers and strides stay where the caller put them; here is what follows from them.
struct AttentionProblem {
  AttentionShape shape;
  std::uint32_t batch = 0;         // sequences
  std::uint32_t query_length = 0;  // of packed queries: the longest
  std::uint32_t key_length = 0;    // of packed keys: the longest
  std::uint32_t query_heads = 0;
  std::uint32_t kv_heads = 0;
  float scale_log2e = 0;
  // The diagonal of row 0: key causal_prefix, or aligned bottom-right.
  bool bottom_right = true;
  std::int32_t causal_prefix = 0;
  std::int32_t window_left = unlimited_window;  // with Mask::window only
  std::int32_t window_right = unlimited_window;
  std::uint64_t query_rows = 0;  // of one head, of all sequences
  std::uint32_t splits = 0;      // 0: the caller did not say
  bool uneven_lengths = false;   // sequences may have fewer keys than key_length
  bool packed_queries = false;   // each sequence says how many rows it has, of query_rows
  bool close_heads = true;       // those of a kv head lie within what a descriptor bounds
  // Of the shape's own: nothing: pairs.h decides.
  std::optional<bool> paired_tiles = std::nullopt;
  bool any_bits = false;  // invariance=none: accepted, and nothing follows from it

  std::uint32_t group() const { return query_heads / kv_heads; }  // query heads of a kv head
};

using families::max_splits;

// The workspace of a call that brings one: large enough for `bytes`, and nothing that the call of so many sequences
// reads or writes.
Result<void> check_workspace(const wavejit_attention_forward_arguments& call, std::uint32_t sequences,
                             std::uint64_t bytes);

// Reads the struct only as far as its size allows. Does not touch what the tensors point to.
Result<AttentionProblem> check_attention_forward(const wavejit_attention_forward_arguments* arguments);

}  // namespace wavejit::attention_forward
