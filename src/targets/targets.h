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
  int simds_per_compute_unit = 4;
  int waves_per_simd = 8;

  int lds_dma_bytes = 0;                // widest buffer load straight into LDS, per lane; 0 = none
  bool transpose_read = false;          // ds_read_b64_tr_b16
  bool permlane32_swap = false;         // v_permlane32_swap_b32, v_permlane16_swap_b32
  bool packed_bf16_convert = false;     // v_cvt_pk_bf16_f32, round to nearest even
  bool packed_f16_convert_rne = false;  // v_cvt_pk_f16_f32
  bool byte_matrix = false;             // v_mfma_f32_32x32x64_f8f6f4, ds_read_b64_tr_b8
  int integer_matrix_k = 0;             // depth of the widest v_mfma_i32_32x32x…_i8; 0: none
  bool byte_convert_16 = false;         // v_cvt_scalef32_pk_bf16_fp8 and its like: 8 bits to 16 in one instruction
  bool kernarg_preload = false;
  Fp8 fp8 = Fp8::none;
  std::uint32_t buffer_descriptor_word3 = 0;  // raw buffer, 32-bit format

  // Dense matrix instructions of 16-bit elements, widest k first.
  std::span<const MatrixInstruction> matrix;
  std::uint32_t elf_machine_flags = 0;  // EF_AMDGPU_MACH value in e_flags (LLVM's AMDGPU usage document)
};

// All rows, in the order in which they are printed.
std::span<const Target> all_targets();

// Null when the table has no such row. Accepts the processor name alone or with features ("gfx942:sramecc+:xnack-").
const Target* find_target(std::string_view id);

// "gfx942, gfx950": for messages that say what would be accepted.
std::string known_targets();

// The row whose ELF machine flag is `machine`, or null.
const Target* find_target_by_machine(std::uint32_t machine);

}  // namespace wavejit::targets
