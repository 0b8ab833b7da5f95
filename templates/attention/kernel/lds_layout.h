// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Where the elements of a K and a V tile stand in LDS. No LLVM: what a kernel costs is counted with it, the
// emitter computes addresses with it.
//
// Two layouts, chosen by what the target can do:
//
// Lines (targets with transpose reads and 16-byte LDS DMA). A tile row of D elements is cut into pieces of 64; key n
// stands on line n % 8 of its piece at slot n / 8:
//
//   element(n, d) = ((d / 64) · 8 + n % 8) · line + (n / 8) · 64 + d % 64
//
// so that one DMA instruction, which writes 16 consecutive bytes per lane, fills one line (8 keys × 64 elements = 64
// lanes × 8) while 8 consecutive lanes read one 128-byte piece of a row. The padding behind each line spreads the eight
// keys of a fragment read over the banks; V needs more of it because four rows are read together by a transpose read.
//
// Permuted lines, where one image is read by rows and transposed: no padding. A unit is 16 bytes; a line has eight
// slots of eight units. Of key n, with i = n % 8 and j = n / 8, line i has at slot j xor (i / 2 % 2) unit u at u xor 4
// (i % 2) xor (j % 4). So the keys of a read by rows have the same unit in all sixteen places of 64 banks, and the four
// lines of a transpose read have their four units there.
//
// Lines of neighbouring rows, for waves that move rows of one granule of pages each (wave_granules): row n stands on
// line n / 8 at slot n % 8, without padding, its unit u at u xor a key. Read by rows the key is slot xor (line / 2 %
// 2), transposed 2 (slot % 4): so what a phase of a read takes are all 64 banks.
//
// Swizzled (everything else). K is row-major, [key][D]; V is stored transposed, [d][64 keys], because nothing
// transposes it on the way out. No padding, so that two workgroups fit in 64 KB: the 16-byte units of a row are
// permuted by xor with its row number instead.
//
// Padded (targets that transpose on the way from memory, and have barriers in two). The images of swizzled tiles, but a
// row begins 16 bytes behind the end of the one before: an odd number of units of 16 bytes, so that eight rows of a
// read stand in all banks, and every place is a lane's own plus a constant.
//
// Tiles of vectorised pages have the sizes of both and an order of their own (emit/tiles_vectorised.h).
#pragma once

#include "targets/targets.h"
#include "templates/attention/kernel/canon.h"
#include "templates/attention/kernel/types.h"

namespace wavejit::attention {

enum class LdsLayout : std::uint8_t { lines, swizzled, padded };

struct LdsPlan {
  static constexpr int lines_per_piece = 8;
  // What eight lanes read together; in elements of 16 bits 64.
  static constexpr int piece_bytes = 128;
  static constexpr int piece_elements = piece_bytes / bytes_of(DataType::bf16);

  LdsLayout layout = LdsLayout::swizzled;
  int buffers = 1;       // K and V tiles in LDS at once; with 1 the next tile waits in registers
  int k_line_bytes = 0;  // lines only
  int v_line_bytes = 0;
  int k_tile_bytes = 0;
  int v_tile_bytes = 0;
  // Behind the tiles, 16 bytes a lane each: what a kernel keeps for its lanes, rows that are merged already.
  int merged_slots = 0;
  int merged_slot_bytes = 0;  // of all lanes
  // Behind these: what waves that share rows tell each other.
  int exchange_bytes = 0;

  // Swizzled: V's dims that threads turn together, of which the last ones may be none.
  static constexpr int turned_dims(int dims) {
    constexpr int few = 64;
    constexpr int many = 128;
    return dims <= few ? few : (dims + many - 1) / many * many;
  }

  // Padded: the bytes that a row of `bytes` bytes takes. Threads load pieces of 64 bytes.
  static constexpr int padded_row_bytes(int bytes) {
    constexpr int piece = 64;
    constexpr int padding = 16;
    return ((bytes + piece - 1) / piece * piece) + padding;
  }
  // Dims of V that a workgroup turns: two blocks at once.
  static constexpr int padded_turned_dims(int dims) {
    constexpr int blocks = 32;
    return (dims + blocks - 1) / blocks * blocks;
  }

  // Regions stand in the order K0, V0, K1, V1, …
  constexpr int k_offset(int buffer) const { return buffer * (k_tile_bytes + v_tile_bytes); }
  constexpr int v_offset(int buffer) const { return k_offset(buffer) + k_tile_bytes; }
  // Lanes find their places in it by xor.
  static constexpr int merged_alignment = 256;
  constexpr int merged_offset() const {
    const int tiles = k_offset(buffers);
    return merged_slots == 0 ? tiles : (tiles + merged_alignment - 1) / merged_alignment * merged_alignment;
  }
  constexpr int exchange_offset() const { return merged_offset() + (merged_slots * merged_slot_bytes); }
  constexpr int total_bytes() const { return exchange_offset() + exchange_bytes; }
};

constexpr LdsLayout lds_layout(const targets::Target& target) {
  return target.transpose_read && target.lds_dma_bytes >= 16 ? LdsLayout::lines : LdsLayout::swizzled;
}

// Tiles that may stand padded: dense or in pages of granules, 16 bits, K and V as they are.
constexpr bool stands_padded(const TileShape& shape, const targets::Target& target) {
  return target.transposing_load && target.split_barriers && !shape.through_registers() && !is_narrow(shape.k_type) &&
         !is_narrow(shape.v_type) && !shape.layout.vectorised && !shape.layout.whole_tiles &&
         !shape.layout.looks_up_each_key() && !shape.apart && !shape.late;
}

// The plan of K's and V's tiles alone.
constexpr LdsPlan tile_plan(const TileShape& shape, const targets::Target& target) {
  LdsPlan plan;
  plan.layout = lds_layout(target);
  if (stands_padded(shape, target)) {
    plan.layout = LdsLayout::padded;
    plan.k_tile_bytes = tile_keys * LdsPlan::padded_row_bytes(shape.dims_k * bytes_of(shape.k_type));
    plan.v_tile_bytes =
        LdsPlan::padded_turned_dims(shape.dims_v) * LdsPlan::padded_row_bytes(tile_keys * bytes_of(shape.v_type));
    return plan;
  }
  // With bytes DMA fills halves of pieces, too.
  const bool whole = plan.layout != LdsLayout::lines || shape.through_registers();
  const auto row_bytes = [&](int dims, DataType type) {
    const int bytes = dims * bytes_of(type);
    return whole || !is_narrow(type) ? TileShape::whole_row_bytes(bytes) : bytes;
  };
  const int k_row_bytes = row_bytes(shape.dims_k, shape.k_type);
  const int v_row_bytes =
      row_bytes(plan.layout == LdsLayout::lines ? shape.dims_v : LdsPlan::turned_dims(shape.dims_v), shape.v_type);
  if (plan.layout == LdsLayout::lines) {
    constexpr int line = LdsPlan::piece_bytes * LdsPlan::lines_per_piece;
    // What is widened or packed waits in registers, and more workgroups have room.
    plan.buffers = shape.three_buffers ? 3 : !shape.through_registers() || shape.two_buffers ? 2 : 1;
    plan.k_line_bytes = line + (shape.has_neighbours() ? 0 : 16);
    // For vectorised pages half a turn of the banks. For bytes eight rows are read together, four lines of either lane
    // group with two slots each.
    plan.v_line_bytes = line + (shape.has_neighbours()    ? 0
                                : shape.layout.vectorised ? 128
                                : is_narrow(shape.v_type) ? 32
                                                          : 64);
    // Half a piece has half of the lines.
    plan.k_tile_bytes = k_row_bytes * LdsPlan::lines_per_piece / LdsPlan::piece_bytes * plan.k_line_bytes;
    plan.v_tile_bytes = v_row_bytes * LdsPlan::lines_per_piece / LdsPlan::piece_bytes * plan.v_line_bytes;
  } else {
    plan.buffers = 1;
    plan.k_tile_bytes = tile_keys * k_row_bytes;
    plan.v_tile_bytes = tile_keys * v_row_bytes;
  }
  return plan;
}

}  // namespace wavejit::attention
