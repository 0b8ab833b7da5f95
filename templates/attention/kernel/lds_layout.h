// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The places of the elements of K and V tiles in LDS. No LLVM: the cost of a kernel is computed with it, and the
// emitter computes addresses with it.
//
// The layouts, of which the target's features choose one:
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
// Permuted lines, for one image that is read both by rows and transposed: no padding. A unit is 16 bytes; a line has
// eight slots of eight units. For key n, with i = n % 8 and j = n / 8, line i holds at slot j xor (i / 2 % 2) unit u at
// place u xor 4 (i % 2) xor (j % 4). So when keys are read by rows, the same unit of the keys lies in all sixteen
// places of the 64 banks, and in a transpose read the four units of each of the four lines do.
//
// Lines of neighbouring rows, for waves that each move rows of one granule of pages (wave_granules): row n lies on line
// n / 8 at slot n % 8, without padding, and its unit u at place u xor a key. For reads by rows the key is slot xor
// (line / 2 % 2), for transpose reads 2 (slot % 4), so that a phase of a read takes all 64 banks.
//
// Swizzled (everything else). K is row-major, [key][D]; V is stored transposed, [d][64 keys], because nothing
// transposes it on the way out. No padding, so that two workgroups fit in 64 KB: the 16-byte units of a row are
// permuted by xor with its row number instead.
//
// Padded (targets that transpose on the way from memory, and have barriers in two). The images are those of swizzled
// tiles, but a row begins 16 bytes after the end of the row before it. A row is then an odd number of units of 16
// bytes, so that a read of eight rows takes all banks, and each place is the lane's own plus a constant.
//
// Tiles of vectorised pages have the sizes of these layouts and an order of their own (emit/tiles_vectorised.h).
#pragma once

#include "targets/targets.h"
#include "templates/attention/kernel/canon.h"
#include "templates/attention/kernel/types.h"

namespace wavejit::attention {

enum class LdsLayout : std::uint8_t { lines, swizzled, padded };

struct LdsPlan {
  static constexpr int lines_per_piece = 8;
  // The bytes that eight lanes read together: 64 elements of 16 bits.
  static constexpr int piece_bytes = 128;
  static constexpr int piece_elements = piece_bytes / bytes_of(DataType::bf16);

  LdsLayout layout = LdsLayout::swizzled;
  int buffers = 1;       // K and V tiles in LDS at once; with 1 the next tile waits in registers
  int k_line_bytes = 0;  // lines only
  int v_line_bytes = 0;
  int k_tile_bytes = 0;
  int v_tile_bytes = 0;
  // After the tiles, 16 bytes a lane for each slot: rows that are already merged, which a kernel keeps for its lanes.
  int merged_slots = 0;
  int merged_slot_bytes = 0;  // of all lanes
  // After these: data that waves which share rows exchange.
  int exchange_bytes = 0;

  // Swizzled: the dims of V that threads transpose together. The last ones may be padding.
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
  // The dims of V that a workgroup transposes: two blocks at once.
  static constexpr int padded_turned_dims(int dims) {
    constexpr int blocks = 32;
    return (dims + blocks - 1) / blocks * blocks;
  }

  // The regions lie in the order K0, V0, K1, V1, …
  constexpr int k_offset(int buffer) const { return buffer * (k_tile_bytes + v_tile_bytes); }
  constexpr int v_offset(int buffer) const { return k_offset(buffer) + k_tile_bytes; }
  // Lanes compute their places in it by xor, which needs this alignment.
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

// Tiles that may use the padded layout: dense or in pages of granules, of 16 bits, with K and V as they are.
constexpr bool stands_padded(const TileShape& shape, const targets::Target& target) {
  return target.transposing_load && target.split_barriers && !shape.through_registers() && !is_narrow(shape.k_type) &&
         !is_narrow(shape.v_type) && !shape.layout.vectorised && !shape.layout.whole_tiles &&
         !shape.layout.looks_up_each_key() && !shape.apart && !shape.late;
}

// The plan of K's and V's tiles alone, without what comes after them.
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
  // With elements of 8 bits, DMA can also fill half pieces.
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
    // Elements that are widened or packed wait in registers, so fewer buffers suffice and more workgroups fit.
    plan.buffers = shape.three_buffers ? 3 : !shape.through_registers() || shape.two_buffers ? 2 : 1;
    plan.k_line_bytes = line + (shape.has_neighbours() ? 0 : 16);
    // For vectorised pages half of the banks. For elements of 8 bits, eight rows are read together: four lines for each
    // of the two lane groups, with two slots each.
    plan.v_line_bytes = line + (shape.has_neighbours()    ? 0
                                : shape.layout.vectorised ? 128
                                : is_narrow(shape.v_type) ? 32
                                                          : 64);
    // A half piece has half of the lines.
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
