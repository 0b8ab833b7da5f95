// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The target table: what each GPU architecture has.
//
// Everything else in the project asks this table for capabilities (`target.permlane32_swap`) and never compares
// architecture names. No LLVM, no HIP: the runtime, the templates, the code generator and the simulated GPU share it.
//
//   const Target* target = find_target("gfx950");
//   if (target && target->lds_dma_bytes >= 16) …
//
// Rows are constants with static storage; reading them is safe from any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace wavejit::targets {

// Which 8-bit floating point encodings the matrix and convert instructions mean.
enum class Fp8 : std::uint8_t { none, fnuz, ocp };

// One dense matrix instruction with 16-bit inputs and f32 accumulation: D[m×n] += A[m×k]·B[k×n], over one wave.
struct MatrixInstruction {
  int m = 0;
  int n = 0;
  int k = 0;
  int passes = 0;  // one pass = 4 clocks (LLVM's scheduling model, confirmed against published figures)
  // How many consecutive k a lane holds in its A and B registers.
  constexpr int k_per_lane(int wave_size) const { return k * m / wave_size; }
  constexpr bool operator==(const MatrixInstruction&) const = default;
};

// How the packets of a GPU's copy engines (SDMA) are laid out, where targets differ: widths of fields, in bits.
struct SdmaPackets {
  int count_bits = 30;  // of linear copies and fills: bytes less one
  // Of rectangles: places and sizes in elements, the pitch's place in its dword.
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

struct Target {
  std::string_view id;  // LLVM's processor name, also what users write: "gfx950"
  std::string_view product;
  int wave_size = 64;
  int lds_bytes = 0;                // per compute unit
  int lds_bytes_per_workgroup = 0;  // the most that one workgroup may have
  int lds_granule = 512;            // bytes in which it is handed out
  int vgprs_per_simd_lane = 512;    // unified file: architectural + accumulation registers
  int vgpr_granule = 8;
  int sgprs = 102;
  int simds_per_compute_unit = 4;
  int waves_per_simd = 8;
  int compute_units = 0;  // of the product; a device may have fewer (board_of)
  int xcds = 1;           // dies; the same
  int max_threads_per_workgroup = 1024;
  int clock_khz = 0;  // peak engine clock as published
  std::uint64_t memory_bytes = 0;
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

  int lds_dma_bytes = 0;                // widest buffer load straight into LDS, per lane; 0 = none
  bool transpose_read = false;          // ds_read_b64_tr_b16
  bool permlane32_swap = false;         // v_permlane32_swap_b32, v_permlane16_swap_b32
  bool packed_bf16_convert = false;     // v_cvt_pk_bf16_f32, round to nearest even
  bool packed_f16_convert_rne = false;  // v_cvt_pk_f16_f32
  bool kernarg_preload = false;
  Fp8 fp8 = Fp8::none;
  std::uint32_t buffer_descriptor_word3 = 0;  // raw buffer, 32-bit format

  // How an element of a matrix result is added up is published, bit for bit (MMA-Sim, arXiv 2511.10909).
  bool matrix_sums_published = false;
  // Dense f16/bf16 matrix instructions, widest k first.
  std::span<const MatrixInstruction> matrix;
  std::uint32_t elf_machine_flags = 0;  // EF_AMDGPU_MACH value in e_flags (LLVM's AMDGPU usage document)
};

// All rows, in the order in which they are printed.
std::span<const Target> all_targets();

// Null when the table has no such row. Accepts the processor name alone or with features ("gfx942:sramecc+:xnack-").
const Target* find_target(std::string_view id);

// A board has the counts of its product or fewer: MI300A 6 dies, a partition of a device some of its dies, cheaper
// boards fewer compute units. What a device says of itself goes in; a count below 1, or compute units that are fewer
// than the dies, means that it does not say, and the row's own stays.
Target board_of(const Target& row, int xcds, int compute_units);

// A row, or a board of it by dies and compute units of a die: "gfx942", "gfx942@6x38" (MI300A). Nothing for other text.
std::optional<Target> find_board(std::string_view text);

// How such a board is written: "gfx942@6x38"; the target alone where the counts are the row's.
std::string board_name(const Target& board);

// "gfx942, gfx950": for messages that say what would be accepted.
std::string known_targets();

// The row whose ELF machine flag is `machine`, or null.
const Target* find_target_by_machine(std::uint32_t machine);

}  // namespace wavejit::targets
