// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What one workgroup works on: its (batch, head) slices as bounded buffers, its query rows, its key tiles.
#pragma once

#include "codegen/language/buffer.h"
#include "templates/attention_forward/call/spec.h"

namespace wavejit::attention_forward {

// One tensor of the problem, cut down to this workgroup's (batch, head).
struct Slice {
  language::Buffer buffer;
  language::Value* row_stride;  // bytes
};

struct Workgroup {
  static constexpr int rows_per_wave = 32;

  Slice q;
  Slice k;
  Slice v;
  Slice o;

  language::Value* query_head;
  language::Value* batch;
  language::Value* split;        // where keys are split: which run of chunks; else null
  language::Value* query_start;  // packed: the sequence's first row, of lse too; else 0
  language::Value* query_length;
  language::Value* scale_log2e;  // c ≥ 2⁻¹²⁶: the absolute value; see query_sign
  language::Value* query_sign;   // xor onto a dword of Q: both sign bits when the scale is negative, else 0
  language::Value* rescale_threshold;
  // Key tiles from the first to the last one that some row of the workgroup sees, at least one: first_tile ≤ t < tiles.
  language::Value* first_tile;
  language::Value* tiles;

  language::Value* first_row;   // of the workgroup's query tile
  language::Value* row;         // per lane: the query row that the lane owns
  language::Value* lane_group;  // per lane: 0 or 1, which half of the wave
  language::Value* row_limit;   // per lane: last key that the row sees (−1 or less: none)
  language::Value* wave_limit;  // uniform: last key that every row of the wave sees
  // Of a window, else null: the first key in place of the last.
  language::Value* row_begin;
  language::Value* wave_begin;
  // Per lane: the key at which the row stands, for ALiBi; else null.
  language::Value* row_diagonal;
};

// Workgroups beyond the rows of their sequence end in here.
Workgroup begin_workgroup(language::Kernel& kernel, const KernelSpec& spec);

}  // namespace wavejit::attention_forward
