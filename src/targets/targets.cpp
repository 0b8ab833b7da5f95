// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "targets/targets.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace wavejit::targets {
namespace {

constexpr int kib = 1024;
constexpr std::uint64_t gib = 1024ULL * 1024 * 1024;

constexpr std::array<MatrixInstruction, 2> cdna3_matrix = {{
    {.m = 32, .n = 32, .k = 8, .passes = 8},
    {.m = 16, .n = 16, .k = 16, .passes = 4},
}};
constexpr std::array<MatrixInstruction, 4> cdna4_matrix = {{
    {.m = 32, .n = 32, .k = 16, .passes = 8},
    {.m = 16, .n = 16, .k = 32, .passes = 4},
    {.m = 32, .n = 32, .k = 8, .passes = 8},
    {.m = 16, .n = 16, .k = 16, .passes = 4},
}};

// Sources: AMD's CDNA3 and CDNA4 ISA documents and white papers; LLVM 22's AMDGPU processor definitions; matrix passes
// from LLVM's scheduling model; memory clocks from the published 5.3 and 8 TB/s over 8192 pins. LDS, DMA widths and
// cross-lane instructions were confirmed by the assembler; granules of LDS are what LLVM's LDS_SIZE counts
// (granulated_lds_size of llc-22 for amdgcn-mesa-mesa3d). Copy engines: 16 of MI300X, of which Linux's driver keeps
// two for the host; MI355X is taken to have as many.
constexpr std::array<Target, 2> table = {{
    {
        .id = "gfx942",
        .product = "MI300X",
        .lds_bytes = 64 * kib,
        .lds_bytes_per_workgroup = 64 * kib,
        .compute_units = 304,
        .xcds = 8,
        .clock_khz = 2'100'000,
        .memory_bytes = 192 * gib,
        .isa_minor = 4,
        .memory_clock_khz = 1'300'000,
        .memory_bus_bits = 8192,
        .l2_bytes = 4 * 1024 * kib,
        .sdma_engines = 2,
        .sdma_peer_engines = 14,
        .lds_dma_bytes = 4,
        .kernarg_preload = true,
        .fp8 = Fp8::fnuz,
        .buffer_descriptor_word3 = 0x00027000,
        .matrix_sums_published = true,
        .matrix = cdna3_matrix,
        .elf_machine_flags = 0x4c,
    },
    {
        .id = "gfx950",
        .product = "MI355X",
        .lds_bytes = 160 * kib,
        .lds_bytes_per_workgroup = 160 * kib,
        .lds_granule = 2048,
        .compute_units = 256,
        .xcds = 8,
        .clock_khz = 2'400'000,
        .memory_bytes = 288 * gib,
        .isa_minor = 5,
        .memory_clock_khz = 2'000'000,
        .memory_bus_bits = 8192,
        .l2_bytes = 4 * 1024 * kib,
        .sdma_engines = 2,
        .sdma_peer_engines = 14,
        .lds_dma_bytes = 16,
        .transpose_read = true,
        .permlane32_swap = true,
        .packed_bf16_convert = true,
        .packed_f16_convert_rne = true,
        .kernarg_preload = true,
        .fp8 = Fp8::ocp,
        .buffer_descriptor_word3 = 0x00027000,
        .matrix = cdna4_matrix,
        .elf_machine_flags = 0x4f,
    },
}};

// From 1 to 999, digits only; 0 for other text.
int count(std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  constexpr std::size_t most_digits = 3;
  const bool digits = text.size() <= most_digits && error == std::errc{} && end == text.data() + text.size();
  return digits && value > 0 ? value : 0;
}

}  // namespace

std::span<const Target> all_targets() { return table; }

const Target* find_target(std::string_view id) {
  const std::string_view processor = id.substr(0, id.find(':'));
  const auto* row = std::ranges::find(table, processor, &Target::id);
  return row == table.end() ? nullptr : row;
}

Target board_of(const Target& row, int xcds, int compute_units) {
  Target board = row;
  if (xcds >= 1) board.xcds = xcds;
  if (compute_units >= board.xcds) board.compute_units = compute_units;
  return board;
}

std::optional<Target> find_board(std::string_view text) {
  const std::size_t at = text.find('@');
  const std::string_view name = text.substr(0, at);
  const Target* row = find_target(name);
  if (row == nullptr || row->id != name) return std::nullopt;
  if (at == std::string_view::npos) return *row;
  const std::string_view counts = text.substr(at + 1);
  const std::size_t times = counts.find('x');
  const int xcds = count(counts.substr(0, times));
  const int of_die = times == std::string_view::npos ? 0 : count(counts.substr(times + 1));
  if (xcds == 0 || of_die == 0) return std::nullopt;
  return board_of(*row, xcds, xcds * of_die);
}

std::string board_name(const Target& board) {
  const Target* row = find_target(board.id);
  std::string name(board.id);
  if (row != nullptr && (board.xcds != row->xcds || board.compute_units != row->compute_units))
    name += "@" + std::to_string(board.xcds) + "x" + std::to_string(board.compute_units / board.xcds);
  return name;
}

std::string known_targets() {
  std::string names;
  for (const Target& target : table) {
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
