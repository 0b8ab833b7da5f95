// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What one workgroup works on: its (batch, head) slices as bounded buffers, its query rows, its key tiles.
#pragma once

#include "codegen/language/buffer.h"
#include "templates/attention_forward/emit/sequence.h"
#include "templates/attention_forward/kernel/spec.h"

namespace wavejit::attention_forward {

// One tensor of the problem, cut down to this workgroup's (batch, head).
struct Slice {
  language::Buffer buffer;
  language::Value* row_stride;  // bytes
  // Of packed heads, else null: the same; low half, slices are below 4 GiB.
  language::Value* head_stride = nullptr;
  // Of K and V in pages (key_pages.h), else null; `buffer` is then none.
  language::Value* base = nullptr;         // i64: the head's first key of page 0
  language::Value* page_stride = nullptr;  // i64, bytes
};

struct Workgroup {
  static constexpr int rows_per_wave = 32;

  Slice q;
  Slice k;
  Slice v;
  Slice o;

  language::Value* query_head;  // packed heads: the first of the group
  language::Value* batch;
  language::Value* query_start;  // packed: the sequence's first row, of lse too; else 0
  language::Value* query_length;
  language::Value* first_slot;   // of keys in pages: where key 0 stands, 0 without first_keys
  language::Value* scale_log2e;  // c ≥ 2⁻¹²⁶: the absolute value; see query_sign
  language::Value* query_sign;   // xor onto a dword of Q: both sign bits when the scale is negative, else 0
  language::Value* rescale_threshold;
  // Key tiles from the first to the last one that some row of the workgroup sees, at least one: first_tile ≤ t < tiles.
  language::Value* first_tile;
  language::Value* tiles;

  // Rows are query positions of the sequence. Packed heads have several lanes at one position.
  language::Value* first_row;   // of the workgroup's query tile
  language::Value* row;         // per lane: the query row that the lane owns
  language::Value* lane_group;  // per lane: 0 or 1, which half of the wave
  // What follows is uniform, so that it takes no vector register.
  language::Value* first_row_of_wave;
  // The last key that a row sees is the smaller of row + limit_offset and last_key (−1 or less: none). limit_offset is
  // null without a mask.
  language::Value* limit_offset;
  language::Value* last_key;
  language::Value* wave_limit;  // last key that every row of the wave sees
  // Of a window, else null: a row's first key is row + begin_offset.
  language::Value* begin_offset;
  language::Value* wave_begin;  // the first key of the wave's last row
  // For ALiBi, else null: a row stands at key row + diagonal_offset.
  language::Value* diagonal_offset;
  // Packed heads, else null. Per lane: the head of the row, counted from the group's first, and whether there is such a
  // row; and how many heads a group has, uniform.
  language::Value* head_in_group = nullptr;
  language::Value* has_row = nullptr;
  language::Value* group = nullptr;
};

// Of a tensor whose descriptor begins at the workgroup's (first) head: the byte offset of the lane's row. Rows past the
// end of the sequence, which the descriptor alone cannot tell from another head's, point far outside.
language::Value* lane_row_offset(language::Kernel& kernel, const Workgroup& workgroup, language::Value* row,
                                 language::Value* row_stride, language::Value* head_stride);
// What such a descriptor spans: `bytes` of one head, and the distance to the last of the group.
language::Value* span_of_heads(language::Kernel& kernel, const Workgroup& workgroup, language::Value* bytes,
                               language::Value* head_stride);

// The lane's number in a register of its own from here on: none has held it, or what follows from it, through a loop.
language::Value* lane_made_anew(language::Kernel& kernel);

// Which row and half of the wave a lane owns, for use inside the loop and behind it. Where registers are short it is
// made anew from the lane's number, so that nothing of it lives in between.
struct LanePlace {
  language::Value* row;
  language::Value* lane_group;
};
LanePlace lane_place(language::Kernel& kernel, const KernelSpec& spec, const Workgroup& workgroup);

// What a workgroup knows before it knows its query tile.
struct WorkgroupPlace {
  language::Value* query_head;
  language::Value* kv_head;
  language::Value* batch;
  language::Value* split;  // null: keys are whole
  language::Value* group;  // of packed heads, else null
  Sequence sequence;
  language::Value* rows;  // of all query tiles together
  language::Value* last_key;
  language::Value* query_tile;   // its own, of paired tiles the longer one
  language::Value* second_tile;  // of paired tiles, else null; the same as query_tile where a tile has no partner
};
// Workgroups beyond the rows of their sequence end in here.
WorkgroupPlace find_place(language::Kernel& kernel, const KernelSpec& spec);
// With split keys, workgroups without keys end in here.
Workgroup begin_tile(language::Kernel& kernel, const KernelSpec& spec, const WorkgroupPlace& place,
                     language::Value* query_tile);
// Both.
Workgroup begin_workgroup(language::Kernel& kernel, const KernelSpec& spec);

}  // namespace wavejit::attention_forward
