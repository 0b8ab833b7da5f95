// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "simgpu/machine/matrix/matrix.h"

#include <array>
#include <bit>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>

#include "simgpu/machine/matrix/summation.h"
#include "simgpu/machine/matrix/wmma.h"
#include "simgpu/machine/wave/wave.h"
#include "simgpu/process/host_set.h"
#include "targets/targets.h"

namespace wavejit::simgpu {
namespace matrix {
namespace {

using enum Element;

// The table has CDNA3's formats of 8 bits.
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

void prepare(MatrixCall& call, Wave& wave, const Instruction& instruction, std::uint32_t (&constant)[2 * lane_places]) {
  call.shape = &shapes()[instruction.payload & 0xff];
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
    for (unsigned lane = 0; lane < lane_places; ++lane) {
      constant[lane] = static_cast<std::uint32_t>(bits);
      constant[lane + lane_places] = static_cast<std::uint32_t>(bits >> 32);
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
  alignas(64) std::uint32_t constant[2 * lane_places];
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
  alignas(64) std::uint32_t constant[2 * lane_places];
  prepare(call, wave, instruction, constant);
  run(call, wave.summation);
}

// v_mfma_scale_*: sources 3 and 4 hold four e8m0 exponents a lane; two op_sel bits choose the byte.
void execute_scaled(Wave& wave, const Instruction& instruction) {
  MatrixCall call;
  alignas(64) std::uint32_t constant[2 * lane_places];
  prepare(call, wave, instruction, constant);
  std::uint8_t scales[2][lane_places];
  for (unsigned i = 0; i < 2; ++i) {
    std::uint32_t copies[lane_places];
    const std::uint32_t* words = wave.lanes(instruction.source[3 + i], copies);
    const unsigned byte = ((instruction.op_sel >> i) & 1) | (((instruction.op_sel_hi >> i) & 1) << 1);
    for (unsigned lane = 0; lane < lane_places; ++lane)
      scales[i][lane] = static_cast<std::uint8_t>(words[lane] >> (8 * byte));
  }
  call.a_scale = scales[0];
  call.b_scale = scales[1];
  run(call, wave.summation);
}

std::size_t index_of(const Shape& shape) { return static_cast<std::size_t>(&shape - shapes().data()); }

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

std::span<const Shape> shapes() { return isa::matrix_instructions(); }

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
  if (registry.instruction_set() == isa::InstructionSet::rdna4) return matrix::register_wmma(registry);
  const bool ocp = registry.target().fp8 == targets::Fp8::ocp;
  for (const matrix::Shape& shape : matrix::shapes()) {
    if (shape.lanes != registry.target().wave_size) continue;
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
