// What instructions cost and how LDS accesses meet its banks: facts per target, and nothing but facts.
//
// The model that the figures belong to: every SIMD has one issue port for vector instructions and one matrix pipe. A
// matrix instruction holds the port for `matrix_issue` cycles and the pipe for passes × 4; everything else that a
// vector instruction does happens on the port, in the shadow of the pipe. So a loop takes max(pipe, port) cycles when
// its waves overlap perfectly, and pipe ÷ port says how much room there is.
//
// Nothing here was measured for this project. Each row says where its figure comes from:
//   [M] measured on hardware by others   [D] documented   [X] derived from shipped kernels   [G] assumed
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "targets/targets.h"

namespace wavejit::timing {

// Cycles of a SIMD's vector issue port that one instruction of a wave takes.
struct IssueCosts {
  int plain = 4;
  int three_source = 4;    // v_fma_f32, v_max3_f32: three operands read
  int packed = 4;          // v_pk_mul_f32 and its kind: two results, and no overlap with the matrix pipe
  int transcendental = 8;  // v_exp_f32, v_rcp_f32, …
  int lane_swap = 4;       // v_permlane32_swap_b32 and v_permlane16_swap_b32
  int matrix_issue = 4;
};

// One kind of LDS access: which lanes are served together, and over how many banks of 4 bytes. Lanes of one phase that
// want different rows of one bank wait for each other; lanes that want the same 4 bytes share them.
struct LdsAccess {
  std::string_view name;  // of the instruction; LDS DMA as "lds_dma_b32" and "lds_dma_b128", by its bits per lane
  int bytes = 4;          // per lane
  int banks = 32;
  std::span<const std::uint64_t> phases;  // lane masks
};

struct Timing {
  std::string_view target;
  IssueCosts issue;
  std::span<const LdsAccess> lds;
};

// Null when the table has no row for the target.
const Timing* find_timing(const targets::Target& target);

// Null when the table says nothing about this access.
const LdsAccess* find_lds_access(const Timing& timing, std::string_view name);

}  // namespace wavejit::timing
