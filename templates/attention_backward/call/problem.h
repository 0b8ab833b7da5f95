// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What one call asks for, checked once, every field.
#pragma once

#include <array>
#include <cstdint>

#include "families/call/failure.h"
#include "families/call/family.h"
#include "families/call/shape_of.h"
#include "templates/attention/call/limits.h"
#include "templates/attention/call/mask.h"
#include "templates/attention/call/sequences.h"
#include "templates/attention/kernel/modifiers.h"
#include "templates/attention_backward/kernel/arguments.h"
#include "templates/attention_backward/kernel/spec.h"
#include "templates/attention_backward/kernel/tiles.h"
#include "templates/attention_backward/kernel/words.h"
#include "wavejit/wavejit.h"

namespace wavejit::attention_backward {

using attention::max_batch;
using attention::max_head_dim;
using attention::max_heads;
using attention::max_length;
using families::fail;
using families::Failure;
using families::Result;

const families::Family& family();

// What a shape has beside the words of kernels.
struct ShapeWords : AskedWords {
  Runs runs = Runs::one;
  bool d_sink = false;
  bool d_bias = false;
  bool d_bias_fp32 = false;  // it is f32, not of `dtype`
  // Whether workgroups of two blocks a wave are enough to fill a device; bits are the same with one.
  bool many_queries = false;
  bool many_keys = false;
  // Whether one block a wave leaves half of a device without keys, and two waves may share them; bits are the same.
  bool few_keys = false;
  // The grid of the dK/dV kernel's workgroups.
  Grid keys_grid() const { return many_keys ? Grid::many : few_keys ? Grid::few : Grid::some; }

  bool operator==(const ShapeWords&) const = default;
};
using ShapeBits = families::JoinedBits<
    families::BitsOfTable<decltype(word_table<QueryKernel>)>,
    families::BitFields<families::Bits<&ShapeWords::runs, 1>, families::Bits<&ShapeWords::d_sink, 1>,
                        families::Bits<&ShapeWords::d_bias, 1>, families::Bits<&ShapeWords::d_bias_fp32, 1>,
                        families::Bits<&ShapeWords::many_queries, 1>, families::Bits<&ShapeWords::many_keys, 1>,
                        families::Bits<&ShapeWords::few_keys, 1>>>;
// Everything of a call that changes code.
using BackwardShape = families::ShapeOf<ShapeWords, ShapeBits, family>;

// Pointers and strides stay where the caller put them.
struct BackwardProblem {
  BackwardShape shape;
  std::uint32_t batch = 0;  // sequences
  std::uint32_t query_length = 0;
  std::uint32_t key_length = 0;
  std::uint32_t query_heads = 0;
  std::uint32_t kv_heads = 0;
  float scale = 0;
  float scale_log2e = 0;
  attention::SeenKeys seen = {};
  std::uint64_t delta_bytes = 0;  // one f32 a row of q and head
  std::uint64_t parts_bytes = 0;  // sums of runs of dK and dV; 0: one run

  std::uint32_t group() const { return query_heads / kv_heads; }
  std::uint64_t parts_at() const { return (delta_bytes + 255) / 256 * 256; }
  std::uint64_t workspace_bytes() const { return parts_bytes == 0 ? delta_bytes : parts_at() + parts_bytes; }
};
// Bytes of parts of a sequence's kv head: whole tiles of keys, of any kernel.
std::uint64_t parts_bytes_of_head(const BackwardProblem& problem);

Runs runs_of(std::int64_t query_length, std::int64_t group);
// Whether `sequences` sequences of `heads` heads and `length` rows (or keys) make many workgroups.
bool are_many(std::int64_t sequences, std::int64_t heads, std::int64_t length, Mask mask);
bool are_few(std::int64_t sequences, std::int64_t heads, std::int64_t length);

// Reads the struct only as far as its size allows. Does not touch what the tensors point to.
Result<BackwardProblem> check(const wavejit_attention_backward_arguments* arguments);
// The workspace of a call that brings one: large enough for `bytes`, and memory of nothing else that it names.
Result<void> check_workspace(const wavejit_attention_backward_arguments& call, std::uint32_t sequences,
                             std::uint64_t bytes);

// ---- Its parts

Result<void> check_tensors(const wavejit_attention_backward_arguments& call);  // sizes of q and k are in range
// Called after the bias's own checks.
Result<void> check_d_bias(const wavejit_attention_backward_arguments& call, const attention::Extents& extents);
Result<void> check_tensor_sizes(const wavejit_attention_backward_arguments& call, const attention::Extents& extents);

}  // namespace wavejit::attention_backward
