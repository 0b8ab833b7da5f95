// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "targets/targets.h"

#include <algorithm>
#include <array>

namespace wavejit::targets {
namespace {

constexpr int kib = 1024;
using enum MatrixId;
using enum Element;

constexpr std::array<MatrixInstruction, 4> cdna3_matrix = {{
    {f32_32x32x8_bf16, 32, 32, 8, bf16, "llvm.amdgcn.mfma.f32.32x32x8bf16.1k"},
    {f32_32x32x8_f16, 32, 32, 8, fp16, "llvm.amdgcn.mfma.f32.32x32x8f16"},
    {f32_16x16x16_bf16, 16, 16, 16, bf16, "llvm.amdgcn.mfma.f32.16x16x16bf16.1k"},
    {f32_16x16x16_f16, 16, 16, 16, fp16, "llvm.amdgcn.mfma.f32.16x16x16f16"},
}};
constexpr std::array<MatrixInstruction, 8> cdna4_matrix = {{
    {f32_32x32x16_bf16, 32, 32, 16, bf16, "llvm.amdgcn.mfma.f32.32x32x16.bf16"},
    {f32_32x32x16_f16, 32, 32, 16, fp16, "llvm.amdgcn.mfma.f32.32x32x16.f16"},
    {f32_16x16x32_bf16, 16, 16, 32, bf16, "llvm.amdgcn.mfma.f32.16x16x32.bf16"},
    {f32_16x16x32_f16, 16, 16, 32, fp16, "llvm.amdgcn.mfma.f32.16x16x32.f16"},
    cdna3_matrix[0],
    cdna3_matrix[1],
    cdna3_matrix[2],
    cdna3_matrix[3],
}};
constexpr std::array<MatrixInstruction, 4> cdna2_matrix = {{
    {f32_32x32x8_bf16_1k, 32, 32, 8, bf16, "llvm.amdgcn.mfma.f32.32x32x8bf16.1k"},
    {f32_32x32x8_f16_cdna2, 32, 32, 8, fp16, "llvm.amdgcn.mfma.f32.32x32x8f16"},
    {f32_16x16x16_bf16_1k, 16, 16, 16, bf16, "llvm.amdgcn.mfma.f32.16x16x16bf16.1k"},
    {f32_16x16x16_f16_cdna2, 16, 16, 16, fp16, "llvm.amdgcn.mfma.f32.16x16x16f16"},
}};
constexpr std::array<MatrixInstruction, 2> rdna4_matrix = {{
    {wmma_f32_16x16x16_bf16, 16, 16, 16, bf16, "llvm.amdgcn.wmma.f32.16x16x16.bf16"},
    {wmma_f32_16x16x16_f16, 16, 16, 16, fp16, "llvm.amdgcn.wmma.f32.16x16x16.f16"},
}};

// Compiled and inspected only: no board of it, so nothing runs or is prebuilt for it.
constexpr Target cdna2(std::string_view id, std::uint32_t elf_machine_flags) {
  return {
      .id = id,
      .lds_bytes = 64 * kib,
      .lds_bytes_per_workgroup = 64 * kib,
      .complete = false,
      .lds_dma_bytes = 4,
      .kernarg_preload = true,
      .buffer_descriptor_word3 = 0x00027000,
      .matrix = cdna2_matrix,
      .elf_machine_flags = elf_machine_flags,
  };
}

// Waves of 32 lanes, of which a SIMD has 1536 registers; compute units in pairs, whose waves share 128 KiB of LDS.
constexpr Target rdna4(std::string_view id, std::uint32_t elf_machine_flags) {
  return {
      .id = id,
      .wave_size = 32,
      .lds_bytes = 64 * kib,
      .lds_bytes_per_workgroup = 64 * kib,
      .vgprs_per_simd_lane = 1536,
      .vgprs_per_wave = 256,
      .vgprs_handed_out = 24,
      .simds_per_compute_unit = 2,
      .waves_per_simd = 16,
      .paired_compute_units = true,
      .complete = false,
      .permlanex16 = true,
      .transposing_load = true,
      .split_wait_counters = true,
      .split_barriers = true,
      .paired_issue = true,
      .fp8 = Fp8::ocp,
      // FORMAT 16 (any but 0 for raw loads), OOB_SELECT 3: out of range by the byte's offset.
      .buffer_descriptor_word3 = 0x31004000,
      .matrix_form = MatrixForm::wmma,
      .row_block = 8,
      .matrix = rdna4_matrix,
      .elf_machine_flags = elf_machine_flags,
  };
}

// Sources: AMD's CDNA2, CDNA3, CDNA4 and RDNA4 ISA documents and white papers; LLVM 22's AMDGPU processor definitions
// and intrinsics. LDS, DMA widths and cross-lane instructions were confirmed by the assembler.
constexpr std::array<Target, 5> table = {{
    {
        .id = "gfx942",
        .lds_bytes = 64 * kib,
        .lds_bytes_per_workgroup = 64 * kib,
        .lds_dma_bytes = 4,
        .integer_matrix_k = 16,
        .kernarg_preload = true,
        .fp8 = Fp8::fnuz,
        .buffer_descriptor_word3 = 0x00027000,
        .matrix = cdna3_matrix,
        .elf_machine_flags = 0x4c,
    },
    {
        .id = "gfx950",
        .lds_bytes = 160 * kib,
        .lds_bytes_per_workgroup = 160 * kib,
        .lds_dma_bytes = 16,
        .transpose_read = true,
        .permlane32_swap = true,
        .packed_bf16_convert = true,
        .packed_f16_convert_rne = true,
        .byte_matrix = true,
        .integer_matrix_k = 32,
        .byte_convert_16 = true,
        .kernarg_preload = true,
        .fp8 = Fp8::ocp,
        .buffer_descriptor_word3 = 0x00027000,
        .matrix = cdna4_matrix,
        .elf_machine_flags = 0x4f,
    },
    rdna4("gfx1201", 0x4e),
    rdna4("gfx1200", 0x48),
    cdna2("gfx90a", 0x3f),
}};

constexpr std::size_t complete_rows = std::ranges::count_if(table, &Target::complete);
static_assert(std::ranges::all_of(std::span(table).first(complete_rows), &Target::complete),
              "complete targets come first");

}  // namespace

std::span<const Target> all_targets() { return table; }
std::span<const Target> complete_targets() { return std::span(table).first(complete_rows); }

const Target* find_target(std::string_view id) {
  const std::string_view processor = id.substr(0, id.find(':'));
  const auto* row = std::ranges::find(table, processor, &Target::id);
  return row == table.end() ? nullptr : row;
}

std::string known_targets() {
  std::string names;
  for (const Target& target : all_targets()) {
    if (!names.empty()) names += ", ";
    names += target.id;
  }
  return names;
}

const Target* find_target_by_machine(std::uint32_t machine) {
  const auto* row = std::ranges::find(table, machine, &Target::elf_machine_flags);
  return row == table.end() ? nullptr : row;
}

}  // namespace wavejit::targets
