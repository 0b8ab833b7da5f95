// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The target table: what emission asks of each GPU architecture. Every cache key is over this folder. What a product
// and its board have beside it (clocks, memory, engines) changes no kernel: src/boards.
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
#include <span>
#include <string>
#include <string_view>

namespace wavejit::targets {

// Which 8-bit floating point encodings the matrix and convert instructions mean.
enum class Fp8 : std::uint8_t { none, fnuz, ocp };

// 16-bit elements of matrix instructions.
enum class Element : std::uint8_t { bf16, fp16 };
constexpr int bytes_of(Element /*element*/) { return 2; }

// Names a matrix instruction here and in src/isa/matrix.h, where its cost stands.
enum class MatrixId : std::uint8_t {
  none,
  f32_32x32x16_bf16,
  f32_32x32x16_f16,
  f32_16x16x32_bf16,
  f32_16x16x32_f16,
  f32_32x32x8_bf16,
  f32_32x32x8_f16,
  f32_16x16x16_bf16,
  f32_16x16x16_f16,
  // CDNA2's, of another name and half the rate.
  f32_32x32x8_bf16_1k,
  f32_32x32x8_f16_cdna2,
  f32_16x16x16_bf16_1k,
  f32_16x16x16_f16_cdna2,
  // Instructions for waves of 32 lanes.
  wmma_f32_16x16x16_bf16,
  wmma_f32_16x16x16_f16,
};

// How matrix instructions are called and what surrounds them.
enum class MatrixForm : std::uint8_t {
  mfma,  // three modifiers behind the operands; the vector port is free meanwhile; registers of accumulation
  wmma,  // operands alone, bf16 as integers of 16 bits; the port is taken meanwhile
};

// What emission uses of a dense matrix instruction with f32 accumulation: D[m×n] += A[m×k]·B[k×n], over one wave. What
// it costs changes no kernel and stands in src/isa.
struct MatrixInstruction {
  MatrixId id = MatrixId::none;
  int m = 0;
  int n = 0;
  int k = 0;
  Element element = Element::bf16;  // of A and B
  std::string_view intrinsic;       // LLVM's name; the operands have the types that it declares
  // How many consecutive k a lane holds in its A and B registers.
  constexpr int k_per_lane(int wave_size) const { return k * m / wave_size; }
  constexpr bool operator==(const MatrixInstruction&) const = default;
};

struct Target {
  std::string_view id;  // LLVM's processor name, also what users write: "gfx950"
  int wave_size = 64;
  int lds_bytes = 0;                // per compute unit
  int lds_bytes_per_workgroup = 0;  // the most that one workgroup may have
  int vgprs_per_simd_lane = 512;    // unified file: architectural + accumulation registers
  int vgprs_per_wave = 512;         // the most that one wave may have of them
  int vgprs_handed_out = 8;         // registers are allocated to a wave in multiples of this many
  int simds_per_compute_unit = 4;
  int waves_per_simd = 8;
  // Whether the compute units are in pairs that share their LDS, so that a workgroup's waves go to the SIMDs of both.
  bool paired_compute_units = false;
  // Whether all families have kernels for it. Of the others families say what they lack (lacks_kernels() of
  // templates/attention/kernel/coverage.h).
  bool complete = true;

  int lds_dma_bytes = 0;                // widest buffer load straight into LDS, per lane; 0 = none
  bool transpose_read = false;          // ds_read_b64_tr_b16
  bool permlane32_swap = false;         // v_permlane32_swap_b32, v_permlane16_swap_b32
  bool packed_bf16_convert = false;     // v_cvt_pk_bf16_f32, round to nearest even
  bool packed_f16_convert_rne = false;  // v_cvt_pk_f16_f32
  bool byte_matrix = false;             // v_mfma_f32_32x32x64_f8f6f4, ds_read_b64_tr_b8
  int integer_matrix_k = 0;             // depth of the widest v_mfma_i32_32x32x…_i8; 0: none
  bool byte_convert_16 = false;         // v_cvt_scalef32_pk_bf16_fp8 and its like: 8 bits to 16 in one instruction
  bool kernarg_preload = false;
  bool permlanex16 = false;       // v_permlanex16_b32: between the halves of a row of 32 lanes
  bool transposing_load = false;  // global_load_tr_b128: 16-bit elements, transposed on the way into registers
  bool split_wait_counters =
      false;                    // s_wait_loadcnt, s_wait_storecnt, s_wait_dscnt, s_wait_kmcnt in place of s_waitcnt
  bool split_barriers = false;  // s_barrier_signal and s_barrier_wait in place of s_barrier
  bool paired_issue = false;    // VOPD: two vector operations in one issue slot
  Fp8 fp8 = Fp8::none;
  std::uint32_t buffer_descriptor_word3 = 0;  // raw buffer, 32-bit format

  MatrixForm matrix_form = MatrixForm::mfma;
  // Consecutive rows of an accumulator that a lane holds before the next group's begin.
  int row_block = 4;
  // Dense matrix instructions of 16-bit elements, widest k first.
  std::span<const MatrixInstruction> matrix;
  std::uint32_t elf_machine_flags = 0;  // EF_AMDGPU_MACH value in e_flags (LLVM's AMDGPU usage document)
};

// For how many waves a SIMD's registers are enough, if each has `vgprs`.
constexpr int waves_with(const Target& target, int vgprs) {
  const int handed_out = (vgprs + target.vgprs_handed_out - 1) / target.vgprs_handed_out * target.vgprs_handed_out;
  return target.vgprs_per_simd_lane / handed_out;
}

// All rows, in the order in which they are printed.
std::span<const Target> all_targets();

// Those for which all families have kernels: the first ones.
std::span<const Target> complete_targets();

// Null when the table has no such row. Accepts the processor name alone or with features ("gfx942:sramecc+:xnack-").
const Target* find_target(std::string_view id);

// "gfx942, gfx950, …": every row, for messages that say what a kernel can be compiled for.
std::string known_targets();

// The row whose ELF machine flag is `machine`, or null.
const Target* find_target_by_machine(std::uint32_t machine);

}  // namespace wavejit::targets
