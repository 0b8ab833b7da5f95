// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The board table: what a GPU has beside what emission asks of its target, product by product.
//
// Nothing here is in a cache key: a corrected clock, or one copy engine more, leaves every user's kernels where they
// are. So the code generator does not know this folder (tests/architecture); plans of calls, the simulated GPU and
// reports do.
//
//   const std::optional<Board> board = find_board("gfx942@6x38");   // MI300A
//   if (board) … board->compute_units … board->wave_size …
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "targets/targets.h"

namespace wavejit::boards {

// How the packets of a GPU's copy engines (SDMA) are laid out, where targets differ: widths of fields, in bits.
struct SdmaPackets {
  int count_bits = 30;  // of linear copies and fills: bytes less one
  // Fields of copies of rectangles: places and sizes in elements, the pitch's place in its dword.
  int rectangle_xy_bits = 14;
  int rectangle_z_bits = 11;
  int pitch_shift = 13;
  int pitch_bits = 19;
  int slice_bits = 28;
  bool cache_control = false;  // GCR packets
};
inline constexpr SdmaPackets gfx9_sdma = {};
inline constexpr SdmaPackets gfx12_sdma = {.rectangle_xy_bits = 16,
                                           .rectangle_z_bits = 14,
                                           .pitch_shift = 16,
                                           .pitch_bits = 16,
                                           .slice_bits = 32,
                                           .cache_control = true};

struct BoardFacts {
  std::string_view product;
  int compute_units = 0;  // a device may have fewer (board_of)
  int xcds = 1;           // dies; the same
  int clock_khz = 0;      // peak engine clock as published
  std::uint64_t memory_bytes = 0;
  int lds_granule = 512;  // bytes in which LDS is handed out
  int vgpr_granule = 8;
  int max_threads_per_workgroup = 1024;
  // What HIP says of a device beside these.
  int isa_major = 9;  // 9.4.2 of gfx942: the first two are HIP's "compute capability"
  int isa_minor = 0;
  int memory_clock_khz = 0;  // command clock: a quarter of the data rate of a pin
  int memory_bus_bits = 0;
  int l2_bytes = 0;  // of one XCD
  // Copy engines as the kernel driver announces them: for copies with the host, and with other GPUs.
  int sdma_engines = 0;
  int sdma_peer_engines = 0;
  SdmaPackets sdma = gfx9_sdma;
};

// A target, and what this GPU of it has.
struct Board : targets::Target, BoardFacts {};

// How many compute units share their LDS and the waves of their workgroups, and so make one place for workgroups.
constexpr int compute_units_of_place(const Board& board) { return board.paired_compute_units ? 2 : 1; }

// One of each target that runs, in the order in which they are printed.
std::span<const Board> all_products();

// Those of targets::complete_targets().
std::span<const Board> complete_products();

// The product whose target is `id`, with features or without; null when the table has none.
const Board* find_product(std::string_view id);

// A board has the counts of its product or fewer: MI300A 6 dies, a partition of a device some of its dies, cheaper
// boards fewer compute units. What a device says of itself goes in; a count below 1, or compute units that are fewer
// than the dies, means that it does not say, and the product's own stays.
Board board_of(const Board& product, int xcds, int compute_units);

// A product, or a board of it by dies and compute units of a die: "gfx942", "gfx942@6x38" (MI300A). Nothing for other
// text.
std::optional<Board> find_board(std::string_view text);

// "(Radeon 780M) has no kernels: it is RDNA 3, and …" of a GPU that none are written for; nothing of other names.
std::optional<std::string> why_no_kernels(std::string_view id);

// Why find_product() does not know a name: it "is not known", is a GPU's, or nothing runs on this target.
std::string why_no_board(std::string_view id);

// How such a board is written: "gfx942@6x38"; the target alone where the counts are the product's.
std::string board_name(const Board& board);

}  // namespace wavejit::boards
