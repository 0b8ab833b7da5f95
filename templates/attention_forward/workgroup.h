// What one workgroup works on: its (batch, head) slices as bounded buffers, its query rows, its key tiles.
#pragma once

#include "codegen/language/buffer.h"
#include "templates/attention_forward/spec.h"

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
  language::Value* query_length;
  language::Value* scale_log2e;  // c ≥ 2⁻¹²⁶: the absolute value; see query_sign
  language::Value* query_sign;   // xor onto a dword of Q: both sign bits when the scale is negative, else 0
  language::Value* tiles;        // key tiles that some row of the workgroup sees, at least 1

  language::Value* row;         // per lane: the query row that the lane owns
  language::Value* lane_group;  // per lane: 0 or 1, which half of the wave
  language::Value* row_limit;   // per lane: last key that the row sees (−1 or less: none)
  language::Value* wave_limit;  // uniform: last key that every row of the wave sees
};

Workgroup begin_workgroup(language::Kernel& kernel, const KernelSpec& spec);

}  // namespace wavejit::attention_forward
