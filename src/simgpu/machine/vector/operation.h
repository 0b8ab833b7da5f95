// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What an instruction computes, apart from where its operands come from: a lane kernel and the types of its operands.
//
// Kernels are compiled for several host instruction sets (kernels_*.cpp); the handlers that fetch operands, apply
// modifiers and write results (vector.cpp) are compiled once and know no arithmetic.
#pragma once

#include <cstddef>
#include <cstdint>

#include "simgpu/machine/instruction/lane_places.h"
#include "simgpu/machine/instruction/record.h"

namespace wavejit::simgpu::vector {

// How an operand is read: width, the meaning of constants, and what neg, abs, op_sel, clamp and denormal flushing do.
enum class Kind : std::uint8_t {
  none,
  b32,
  f32,
  b64,
  i64,  // as b64, but a literal is sign-extended
  f64,
  b16,
  f16,
  bf16,
  mixed,   // v_fma_mix: float32, or the float16 that op_sel chooses
  pk_b16,  // two 16-bit integers, chosen by op_sel and op_sel_hi
  pk_f16,
  pk_bf16,
  pk_f32,  // two registers, chosen by op_sel and op_sel_hi
  b128,
  wide,  // as many registers as the operand names; the kernel knows
  raw,   // 32 bits whose op_sel the kernel interprets
  mask,  // a lane mask in scalar registers
};

constexpr unsigned dwords_of(Kind kind) {
  switch (kind) {
    case Kind::b64:
    case Kind::i64:
    case Kind::f64:
    case Kind::pk_f32:
      return 2;
    case Kind::b128:
      return 4;
    case Kind::wide:
      return 32;
    case Kind::none:
      return 0;
    default:
      return 1;
  }
}

// One execution of a kernel. Register blocks are lane-major within a register: register r of a wide operand starts at
// r * lane_places.
struct Call {
  std::uint32_t* result = nullptr;
  const std::uint32_t* source[4] = {};
  std::uint64_t mask_in = 0;
  std::uint64_t mask_out = 0;
  std::uint32_t mode = 0;
  std::uint32_t transcendentals_key = 0;  // 0: results are the nearest ones (numerics/permitted.h)
  std::uint8_t rounding = 0;              // for results narrower than float32, as MODE encodes it
  std::uint8_t op_sel = 0;
  std::uint8_t truth_table = 0;
  std::uint8_t byte_select = 0;
  std::uint8_t negations = 0;  // neg_lo, where it means something of the instruction's own

  bool ieee() const { return (mode & (1u << 9)) != 0; }
  // MODE.FP16_OVFL: overflow of float16 and 8-bit results saturates.
  bool saturates_overflow() const { return (mode & (1u << 23)) != 0; }
};

using Kernel = void (*)(Call&);

enum Flag : std::uint32_t {
  flag_accumulates = 1,      // the destination's old value is the last source
  flag_implicit_vcc = 2,     // reads VCC without naming it
  flag_keeps_high_half = 4,  // a 16-bit result leaves the other half of the register alone
  flag_high_half = 8,        // always writes the upper half (v_fma_mixhi)
  flag_moves_bits = 16,      // no arithmetic: MODE does not touch it
  flag_own_rounding = 32,    // rounds as it says, whatever MODE.FP_ROUND
  flag_mask_result = 64,     // a compare: the result is a lane mask
  flag_writes_exec = 128,    // v_cmpx
  flag_kernel_op_sel = 256,  // op_sel means something of this instruction's own
  flag_ocp_only = 512,       // only for targets whose 8-bit floats are OCP, and their newer instructions
  flag_fnuz_only = 1024,     // only for targets whose 8-bit floats are FNUZ
  // Facts for the instruction's record (decode/record.h).
  flag_transcendental = 1 << 11,
  flag_dot_product = 1 << 12,
  flag_partial = 1 << 13,     // a result that wait states are counted from as from part of a register
  flag_plain_rate = 1 << 14,  // three sources are as fast as two
  flag_divides = 1 << 15,     // v_div_fmas
  flag_compares_equal = 1 << 16,
  flag_carries = 1 << 17,     // a lane mask beside the result
  flag_rdna4_only = 1 << 18,  // by RDNA4's own name
};
inline constexpr unsigned flow_shift = 20;
inline constexpr unsigned steering_shift = 24;

// How bytes that hold nothing travel; `steering` has a bit for each source that moves nothing itself.
constexpr unsigned flows(Flow flow, unsigned steering = 0) {
  return (static_cast<unsigned>(flow) << flow_shift) | (steering << steering_shift);
}
constexpr Flow flow_of(unsigned flags) { return static_cast<Flow>((flags >> flow_shift) & 15); }
constexpr unsigned steering_of(unsigned flags) { return flags >> steering_shift; }

struct Operation {
  const char* name;
  Kernel kernel;
  Kernel saturating;  // what clamp means for integers; null if clamp is a float clamp or nothing
  Kind result;
  Kind source[4];
  std::uint8_t source_count;
  std::uint32_t flags;
};

struct OperationList {
  const Operation* first = nullptr;
  std::size_t count = 0;
};

}  // namespace wavejit::simgpu::vector
