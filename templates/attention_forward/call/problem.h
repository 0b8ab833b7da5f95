// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What one call asks for, checked once, every field: after this nothing in the runtime doubts a size or a stride.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "families/call/failure.h"
#include "families/call/refusal.h"
#include "templates/attention/call/flags.h"
#include "templates/attention/call/limits.h"
#include "templates/attention/call/mask.h"
#include "templates/attention/call/numbers.h"
#include "templates/attention/call/sequences.h"
#include "templates/attention_forward/call/shape.h"
#include "templates/attention_forward/kernel/arguments.h"
#include "templates/attention_forward/kernel/parameters.h"
#include "templates/attention_forward/kernel/spec.h"
#include "wavejit/wavejit.h"

namespace wavejit::attention_forward {

using families::fail;
using families::Failure;
using families::Result;
namespace refusal = families::refusal;

// Lists of key blocks (lists.h). Of a call without them all is 0.
struct BlockLists {
  std::uint32_t rows = 0;  // of a block: 64 or 128
  std::uint32_t keys = 0;
  std::uint32_t batches = 0;
  std::uint32_t heads = 0;
  std::uint32_t row_blocks = 0;  // of a head
  std::uint64_t capacity = 0;    // entries of a list, or of all where they are ragged
  std::uint64_t full_capacity = 0;
  bool ragged = false;
  bool alike = false;
  bool of_mask = false;  // the engine makes them of a bool mask, or of a bias
  bool bits = false;     // with the bits of each row and key: of a bool mask

  bool operator==(const BlockLists&) const = default;
};

// Pointers and strides stay where the caller put them; here is what follows from them.
struct AttentionProblem {
  AttentionShape shape;
  std::uint32_t batch = 0;         // sequences
  std::uint32_t query_length = 0;  // of packed queries: the longest
  std::uint32_t key_length = 0;    // of packed keys: the longest
  std::uint32_t query_heads = 0;
  std::uint32_t kv_heads = 0;
  float scale_log2e = 0;
  float scale = 1;  // the same without log2 e
  // The diagonal of row 0: key causal_prefix, or aligned bottom-right.
  bool bottom_right = true;
  std::int32_t causal_prefix = 0;
  std::int32_t window_left = unlimited_window;  // with Mask::window only
  std::int32_t window_right = unlimited_window;
  std::uint64_t query_rows = 0;                                 // of one head, of all sequences
  std::uint32_t splits = 0;                                     // 0: the caller did not say
  std::uint32_t hints = 0;                                      // flags of the call that hints.def lists
  attention::Launches launches = attention::Launches::planned;  // of several runs of keys
  bool uneven_lengths = false;                                  // sequences may have fewer keys than key_length
  bool packed_queries = false;  // each sequence says how many rows it has, of query_rows
  bool close_heads = true;      // those of a kv head lie within what a descriptor bounds
  // The shape's own choice; nothing: pairs.h decides.
  std::optional<bool> paired_tiles = std::nullopt;
  std::optional<bool> shared_chunks = std::nullopt;  // the same of shared_chunks.h
  // With shape.listed only: entries of a list, lists of a query, slots of the cache where lists name those; and whether
  // the diagonal hides keys, for which kernels of lists have no word.
  std::uint32_t top_k = 0;
  std::uint32_t key_list_heads = 1;
  std::uint32_t slots = 0;
  std::uint32_t second_top_k = 0;  // entries of a second list, over a cache of second_slots slots; 0: none
  std::uint32_t second_slots = 0;
  bool causal = false;
  BlockLists lists = {};  // NOLINT(readability-redundant-member-init): for initializers

  bool operator==(const AttentionProblem&) const = default;
  // What a row walks, and how much of it is a chunk.
  std::uint32_t walked_keys() const { return shape.listed ? top_k : key_length; }
  std::uint32_t keys_of_chunk() const { return static_cast<std::uint32_t>(shape.keys_of_chunk()); }
  std::uint32_t group() const { return query_heads / kv_heads; }  // query heads of a kv head
  // Packed queries of which kernels may take some sequences each (rows=few, rows=many).
  bool may_share_call() const { return packed_queries && !shape.block_lists && !shape.bool_mask && !shape.listed; }
};

using families::max_splits;

// A word that has no kernel beside another one, as lines and calls are refused, and what would do.
struct BesideWord {
  std::string_view word;
  std::string_view accepted;
  std::string text() const { return std::string(word) + "; accepted: " + std::string(accepted); }
};

// Checks a caller's workspace: it must have `bytes` bytes, and must not overlap what the call of `sequences` sequences
// reads or writes.
Result<void> check_workspace_of(const wavejit_attention_forward_arguments& call, const AttentionProblem& problem,
                                std::uint64_t bytes);

// Reads the struct only as far as its size allows. Does not touch what the tensors point to.
Result<AttentionProblem> check_attention_forward(const wavejit_attention_forward_arguments* arguments);

}  // namespace wavejit::attention_forward
