// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "simgpu/machine/matrix/matrix.h"

#include <array>
#include <bit>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>

#include "simgpu/machine/matrix/summation.h"
#include "simgpu/machine/wave/wave.h"
#include "simgpu/process/host_set.h"
#include "targets/targets.h"

namespace wavejit::simgpu {
namespace matrix {
namespace {

using enum Element;

// Mnemonics as LLVM prints them. The 8-bit formats are the target's flavour: `flavoured` below.
constexpr std::array all_shapes = {
    Shape{"v_mfma_f32_32x32x8_f16", 32, 8, 1, f16, f16},
    Shape{"v_mfma_f32_32x32x8_bf16", 32, 8, 1, bf16, bf16},
    Shape{"v_mfma_f32_32x32x16_f16", 32, 16, 1, f16, f16},
    Shape{"v_mfma_f32_32x32x16_bf16", 32, 16, 1, bf16, bf16},
    Shape{"v_mfma_f32_16x16x16_f16", 16, 16, 1, f16, f16},
    Shape{"v_mfma_f32_16x16x16_bf16", 16, 16, 1, bf16, bf16},
    Shape{"v_mfma_f32_16x16x32_f16", 16, 32, 1, f16, f16},
    Shape{"v_mfma_f32_16x16x32_bf16", 16, 32, 1, bf16, bf16},
    Shape{"v_mfma_f32_32x32x4_2b_f16", 32, 4, 2, f16, f16},
    Shape{"v_mfma_f32_32x32x4_2b_bf16", 32, 4, 2, bf16, bf16},
    Shape{"v_mfma_f32_16x16x4_4b_f16", 16, 4, 4, f16, f16},
    Shape{"v_mfma_f32_16x16x4_4b_bf16", 16, 4, 4, bf16, bf16},
    Shape{"v_mfma_f32_4x4x4_16b_f16", 4, 4, 16, f16, f16},
    Shape{"v_mfma_f32_4x4x4_16b_bf16", 4, 4, 16, bf16, bf16},
    Shape{"v_mfma_f32_32x32x1_2b_f32", 32, 1, 2, f32, f32},
    Shape{"v_mfma_f32_16x16x1_4b_f32", 16, 1, 4, f32, f32},
    Shape{"v_mfma_f32_4x4x1_16b_f32", 4, 1, 16, f32, f32},
    Shape{"v_mfma_f32_32x32x2_f32", 32, 2, 1, f32, f32},
    Shape{"v_mfma_f32_16x16x4_f32", 16, 4, 1, f32, f32},
    Shape{"v_mfma_f32_32x32x4_xf32", 32, 4, 1, xf32, xf32},
    Shape{"v_mfma_f32_16x16x8_xf32", 16, 8, 1, xf32, xf32},
    Shape{"v_mfma_f64_16x16x4_f64", 16, 4, 1, f64, f64},
    Shape{"v_mfma_f64_4x4x4_4b_f64", 4, 4, 4, f64, f64},
    Shape{"v_mfma_i32_32x32x16_i8", 32, 16, 1, i8, i8},
    Shape{"v_mfma_i32_16x16x32_i8", 16, 32, 1, i8, i8},
    Shape{"v_mfma_i32_32x32x32_i8", 32, 32, 1, i8, i8},
    Shape{"v_mfma_i32_16x16x64_i8", 16, 64, 1, i8, i8},
    Shape{"v_mfma_i32_32x32x4_2b_i8", 32, 4, 2, i8, i8},
    Shape{"v_mfma_i32_16x16x4_4b_i8", 16, 4, 4, i8, i8},
    Shape{"v_mfma_i32_4x4x4_16b_i8", 4, 4, 16, i8, i8},
    Shape{"v_mfma_f32_32x32x16_fp8_fp8", 32, 16, 1, fp8_fnuz, fp8_fnuz},
    Shape{"v_mfma_f32_32x32x16_fp8_bf8", 32, 16, 1, fp8_fnuz, bf8_fnuz},
    Shape{"v_mfma_f32_32x32x16_bf8_fp8", 32, 16, 1, bf8_fnuz, fp8_fnuz},
    Shape{"v_mfma_f32_32x32x16_bf8_bf8", 32, 16, 1, bf8_fnuz, bf8_fnuz},
    Shape{"v_mfma_f32_16x16x32_fp8_fp8", 16, 32, 1, fp8_fnuz, fp8_fnuz},
    Shape{"v_mfma_f32_16x16x32_fp8_bf8", 16, 32, 1, fp8_fnuz, bf8_fnuz},
    Shape{"v_mfma_f32_16x16x32_bf8_fp8", 16, 32, 1, bf8_fnuz, fp8_fnuz},
    Shape{"v_mfma_f32_16x16x32_bf8_bf8", 16, 32, 1, bf8_fnuz, bf8_fnuz},
    // CBSZ and BLGP choose the formats of A and B.
    Shape{"v_mfma_f32_32x32x64_f8f6f4", 32, 64, 1, fp8_ocp, fp8_ocp, true, "v_mfma_scale_f32_32x32x64_f8f6f4"},
    Shape{"v_mfma_f32_16x16x128_f8f6f4", 16, 128, 1, fp8_ocp, fp8_ocp, true, "v_mfma_scale_f32_16x16x128_f8f6f4"},
};

Element flavoured(Element element, bool ocp) {
  if (element == fp8_fnuz) return ocp ? fp8_ocp : fp8_fnuz;
  if (element == bf8_fnuz) return ocp ? bf8_ocp : bf8_fnuz;
  return element;
}

void (*const multiply)(const MatrixCall&) = for_this_host(&x86_64_v2::multiply, &x86_64_v3::multiply,
                                                          &x86_64_v4::multiply);
void (*const multiply_in_groups)(const MatrixCall&) = for_this_host(&x86_64_v2::multiply_in_groups,
                                                                    &x86_64_v3::multiply_in_groups,
                                                                    &x86_64_v4::multiply_in_groups);

// What a decoded instruction needs to know, packed into Instruction::payload: shape index and the two formats.
std::uint64_t pack(std::size_t shape, Element a, Element b) {
  return shape | (static_cast<std::uint64_t>(a) << 8) | (static_cast<std::uint64_t>(b) << 16);
}

void prepare(MatrixCall& call, Wave& wave, const Instruction& instruction, std::uint32_t (&constant)[2 * wave_lanes]) {
  call.shape = &all_shapes[instruction.payload & 0xff];
  call.a = static_cast<Element>((instruction.payload >> 8) & 0xff);
  call.b = static_cast<Element>((instruction.payload >> 16) & 0xff);
  call.a_registers = wave.vgpr[instruction.source[0].index];
  call.b_registers = wave.vgpr[instruction.source[1].index];
  call.d_registers = wave.vgpr[instruction.destination[0].index];
  const Operand& c = instruction.source[2];
  if (c.is_vector()) {
    call.c_registers = wave.vgpr[c.index];
  } else {
    const bool wide = call.a == f64;
    const std::uint64_t bits = wide ? c.constant_f64() : c.bits;
    for (unsigned lane = 0; lane < wave_lanes; ++lane) {
      constant[lane] = static_cast<std::uint32_t>(bits);
      constant[lane + wave_lanes] = static_cast<std::uint32_t>(bits >> 32);
    }
    call.c_registers = constant;
    call.c_stride = 0;
  }
}

void run(MatrixCall& call, const Summation* summation) {
  if (summation == nullptr) return multiply(call);
  if (summation->in_groups) return multiply_in_groups(call);
  const Order& order = summation->orders[static_cast<unsigned>(std::countr_zero(unsigned{call.shape->k}))];
  call.order = order.products.data();
  call.before_c = order.before_c;
  multiply(call);
}

// EXEC is ignored by matrix instructions (CDNA3 ISA, "Matrix arithmetic instructions").
void execute(Wave& wave, const Instruction& instruction) {
  MatrixCall call;
  alignas(64) std::uint32_t constant[2 * wave_lanes];
  prepare(call, wave, instruction, constant);
  call.cbsz = instruction.cbsz;
  call.abid = instruction.abid;
  call.blgp = instruction.blgp;
  for (unsigned i = 0; i < 3; ++i) call.negate[i] = ((instruction.neg_lo >> i) & 1) != 0;
  run(call, wave.summation);
}

// f8f6f4: CBSZ and BLGP were used when the instruction was chosen.
void execute_formats(Wave& wave, const Instruction& instruction) {
  MatrixCall call;
  alignas(64) std::uint32_t constant[2 * wave_lanes];
  prepare(call, wave, instruction, constant);
  run(call, wave.summation);
}

// v_mfma_scale_*: sources 3 and 4 hold four e8m0 exponents a lane; two op_sel bits choose the byte.
void execute_scaled(Wave& wave, const Instruction& instruction) {
  MatrixCall call;
  alignas(64) std::uint32_t constant[2 * wave_lanes];
  prepare(call, wave, instruction, constant);
  std::uint8_t scales[2][wave_lanes];
  for (unsigned i = 0; i < 2; ++i) {
    std::uint32_t copies[wave_lanes];
    const std::uint32_t* words = wave.lanes(instruction.source[3 + i], copies);
    const unsigned byte = ((instruction.op_sel >> i) & 1) | (((instruction.op_sel_hi >> i) & 1) << 1);
    for (unsigned lane = 0; lane < wave_lanes; ++lane)
      scales[i][lane] = static_cast<std::uint8_t>(words[lane] >> (8 * byte));
  }
  call.a_scale = scales[0];
  call.b_scale = scales[1];
  run(call, wave.summation);
}

std::size_t index_of(const Shape& shape) { return static_cast<std::size_t>(&shape - all_shapes.data()); }

template <bool Ocp>
Handler select(Instruction& instruction) {
  if (instruction.source_count != 3) return nullptr;
  const Shape& shape = *instruction.record->shape;
  // BLGP is three negations for float64, and must leave whole blocks together where it moves lanes.
  if (instruction.cbsz > 4 || (1u << instruction.cbsz) > shape.blocks) return nullptr;
  instruction.payload = pack(index_of(shape), flavoured(shape.a, Ocp), flavoured(shape.b, Ocp));
  Operand& c = instruction.source[2];
  if (!c.is_vector() && !c.is_constant()) return nullptr;
  return &execute;
}

template <bool Scaled>
Handler select_formats(Instruction& instruction) {
  constexpr std::array<Element, 5> formats = {fp8_ocp, bf8_ocp, fp6, bf6, fp4};
  if (instruction.cbsz >= formats.size() || instruction.blgp >= formats.size() ||
      instruction.source_count != (Scaled ? 5 : 3)) {
    return nullptr;
  }
  instruction.payload =
      pack(index_of(*instruction.record->shape), formats[instruction.cbsz], formats[instruction.blgp]);
  return Scaled ? &execute_scaled : &execute_formats;
}

}  // namespace

std::span<const Shape> shapes() { return all_shapes; }

Summation cdna3_summation() { return {.in_groups = true}; }

Summation seeded_summation(std::uint64_t seed) {
  Summation all;
  std::uint64_t state = seed;
  const auto below = [&](unsigned limit) {
    // splitmix64
    state += 0x9e3779b97f4a7c15u;
    std::uint64_t mixed = (state ^ (state >> 30)) * 0xbf58476d1ce4e5b9u;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebu;
    return static_cast<unsigned>((mixed ^ (mixed >> 31)) % limit);
  };
  for (unsigned log = 0; log < all.orders.size(); ++log) {
    Order& order = all.orders[log];
    const unsigned k = 1u << log;
    std::iota(order.products.begin(), order.products.end(), std::uint8_t{0});
    for (unsigned i = k - 1; i > 0; --i) std::swap(order.products[i], order.products[below(i + 1)]);
    order.before_c = static_cast<std::uint8_t>(below(k + 1));
  }
  return all;
}

}  // namespace matrix

void register_matrix(Registry& registry) {
  const bool ocp = registry.target().fp8 == targets::Fp8::ocp;
  for (const matrix::Shape& shape : matrix::shapes()) {
    Record record{.instruction_class = InstructionClass::matrix,
                  .kind = IssueKind::matrix,
                  .action = Action::matrix,
                  .all_lanes = true,
                  .shape = &shape,
                  .formats_in_modifiers = shape.formats_in_modifiers};
    if (!shape.formats_in_modifiers) {
      registry.add_select(shape.name, ocp ? &matrix::select<true> : &matrix::select<false>, record);
      continue;
    }
    registry.add_select(shape.name, &matrix::select_formats<false>, record);
    record.op_sel_hi_is_zero = true;
    registry.add_select(shape.scaled_name, &matrix::select_formats<true>, record);
  }
}

}  // namespace wavejit::simgpu
