// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The query rows that a workgroup owns: whose they are, which of them a lane has, and which keys they see.
#pragma once

#include "templates/attention/emit/slice.h"
#include "templates/attention/emit/visible_keys.h"

namespace wavejit::attention {

// Which row and half of the wave a lane owns.
struct LanePlace {
  language::Value* row;
  language::Value* lane_group;
};

struct QueryTile {
  language::Value* query_head;  // packed heads: the first of the group
  language::Value* batch;
  language::Value* query_start;  // packed: the sequence's first row, of lse too; else 0
  language::Value* query_length;
  language::Value* scale_log2e;  // c ≥ 2⁻¹²⁶: the absolute value; see query_sign
  language::Value* query_sign;   // xor onto a dword of Q: both sign bits when the scale is negative, else 0

  // Rows are query positions of the sequence. Packed heads have several lanes at one position.
  language::Value* first_row;   // of the tile
  language::Value* row;         // per lane: the query row that the lane owns
  language::Value* lane_group;  // per lane: 0 or 1, which half of the wave
  // Where registers are short, what a lane owns is made anew wherever it is used: see lane_place and head_of_lane.
  bool lanes_made_anew = false;

  // What follows is uniform, so that it takes no vector register.
  language::Value* first_row_of_wave;
  // The last key that a row sees is the smaller of row + limit_offset and last_key (−1 or less: none). limit_offset is
  // null without a mask; of a kind of masks.def last_key_at goes on from the sum.
  language::Value* limit_offset;
  language::Value* last_key;
  language::Value* wave_limit;  // last key that every row of the wave sees
  // For a window and kinds of masks.def, else null: a row's first key is row + begin_offset; of a kind first_key_at goes
  // on from the sum.
  language::Value* begin_offset;
  language::Value* wave_begin;  // the first key of the wave's last row
  // For ALiBi, else null: a row stands at key row + diagonal_offset.
  language::Value* diagonal_offset;
  KindOfMask kind = {};
  // Packed heads, else null. Per lane: the head of the row, counted from the group's first, and whether there is such a
  // row; and how many heads a group has, uniform.
  language::Value* head_in_group = nullptr;  // call head_of_lane to read it
  language::Value* has_row = nullptr;
  language::Value* group = nullptr;
  // The wave's first row, uniform. With packed heads it is a row of the group: position · group + head. Null if lanes are
  // never made anew.
  language::Value* first_of_wave = nullptr;
  // For integers, else null: what their sums count for, c aside, of either sign. Per lane, as scale_log2e is then,
  // which has both. Scores are scaled before the softmax sees them.
  language::Value* row_scale = nullptr;
  // For scores that are rounded to fp16, else null: the same as scale_log2e without log2 e.
  language::Value* natural_scale = nullptr;
  language::Value* key_scale = nullptr;  // of a cache of 8 bits, else null: c has it already
  bool scales_in_lanes = false;          // where scalar registers are short, what has it is the lanes'
  // For a walk of marked tiles (kernel/marked_tile.h), else null: the block of the unit that the wave's rows are,
  // uniform. Marked tiles then stand where numbers of tiles do.
  language::Value* block = nullptr;
  bool unseen_tiles = false;  // of a walk of marked tiles: a wave meets many that its rows do not see
  bool has_bits = false;      // of such a walk: of masked tiles, rows see the keys whose bits are set (ScoreModifiers)
  bool bias_by_tile = false;  // of such a walk: masked tiles have a bias, whole ones have none
};

// The lane's number in a register of its own from here on: none has held it, or what follows from it, through a loop.
language::Value* lane_made_anew(language::Kernel& kernel);

// For use inside the loop and behind it. Where registers are short it is made anew from the lane's number, so that
// nothing of it lives in between; but the position of a row of packed heads is kept, since making it is a division.
LanePlace lane_place(language::Kernel& kernel, const QueryTile& tile);

// The head of a packed row that the lane owns, counted from the group's first: made anew likewise.
language::Value* head_of_lane(language::Kernel& kernel, const QueryTile& tile);

// The other way round: lanes own the keys of a block from `first_key` on, made anew likewise.
struct LaneKey {
  language::Value* key;
  language::Value* lane_group;
};
LaneKey lane_key(language::Kernel& kernel, language::Value* first_key);

// The byte offset of the lane's row in a tensor whose descriptor begins at the tile's (first) head. Rows past the end
// of the sequence, which the descriptor alone cannot tell from another head's, point far outside.
language::Value* lane_row_offset(language::Kernel& kernel, const QueryTile& tile, language::Value* row,
                                 language::Value* row_stride, language::Value* head_stride);
// What such a descriptor spans: `bytes` of one head, and the distance to the last of the group.
language::Value* span_of_heads(language::Kernel& kernel, const QueryTile& tile, language::Value* bytes,
                               language::Value* head_stride);

// The f32 that the lane's query head has in an array of one for each head: uniform, but for packed heads.
language::Value* number_of_head(language::Kernel& kernel, const QueryTile& tile, language::Value* numbers);

}  // namespace wavejit::attention
