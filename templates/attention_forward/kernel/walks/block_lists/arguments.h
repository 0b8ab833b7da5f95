// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The arguments of attention_block_lists, byte for byte: the runtime fills this struct and the kernel reads fields by
// offset.
#pragma once

#include <cstddef>
#include <cstdint>

namespace wavejit::attention_block_lists {

// One kind of list of a call: of blocks that the mask goes over, or of whole ones.
struct Lists {
  std::uint64_t indices = 0;  // int32; null: none of this kind
  std::uint64_t counts = 0;   // int32, one a list; null: starts says where lists begin and end
  std::uint64_t starts = 0;
  std::uint32_t capacity = 0;  // entries of a list, or of all
  std::uint32_t nothing = 0;
};

struct Arguments {
  std::uint64_t headers = 0;
  std::uint64_t entries = 0;
  Lists masked;
  Lists whole;
  // int32, as attention_forward's.
  std::uint64_t query_starts = 0;
  std::uint64_t key_starts = 0;
  std::uint64_t key_lengths = 0;
  std::uint32_t query_rows = 0;
  std::uint32_t query_length = 0;
  std::uint32_t key_rows = 0;
  std::uint32_t key_length = 0;
  // The mask: a window round the diagonal, unlimited where there is none.
  std::int32_t causal_offset = 0;
  std::uint32_t bottom_right_mask = 0;
  std::int32_t window_left = 0;
  std::int32_t window_right = 0;
  std::uint32_t heads = 1;       // of the lists
  std::uint32_t units = 1;       // of a head
  std::uint32_t unit_shift = 6;  // log2 of a unit's rows
  std::uint32_t rows_shift = 6;  // log2 of a list's rows, no more than that
  std::uint32_t keys_shift = 6;  // log2 of a block's keys
  std::uint32_t row_blocks = 0;  // lists of a head
  std::uint32_t batch_mask = 0;  // all ones: each sequence has lists of its own; 0: all have the first one's
  std::uint32_t pairs = 0;       // 1: no tile stands alone in its chunk
  // A unit's walk begins this many entries behind the one before it; 0: where its lists begin among all, and each kind
  // of list has starts.
  std::uint32_t unit_entries = 0;
  std::uint32_t batch_entries = 0;  // then, of sequences that share their lists: from one to the next
  std::uint32_t most_entries = 0;   // of all walks: nothing is written beyond
  std::uint32_t descending = 0;     // 1: of units alike in length the last one begins
  std::uint64_t order = 0;          // int32 [batch][heads][units]: the unit that has a place
};

static_assert(sizeof(Lists) == 32);
static_assert(offsetof(Arguments, query_starts) == 80);
static_assert(offsetof(Arguments, causal_offset) == 120);
static_assert(sizeof(Arguments) == 192);

}  // namespace wavejit::attention_block_lists
