// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "simgpu/machine/matrix/wmma.h"

#include <string_view>

#include "simgpu/machine/decode/registry.h"
#include "simgpu/machine/numerics/rdna4_dot.h"
#include "simgpu/machine/numerics/small_floats.h"
#include "simgpu/machine/wave/wave.h"
#include "simgpu/process/host_set.h"

namespace wavejit::simgpu::matrix {
namespace {

using namespace numerics;

bool (*const floats)(WmmaFloats&, unsigned) = for_this_host(&x86_64_v2::multiply_floats, &x86_64_v3::multiply_floats,
                                                            &x86_64_v4::multiply_floats);
bool (*const f16_registers)(const WmmaRegisters&) = for_this_host(&x86_64_v2::multiply_f16, &x86_64_v3::multiply_f16,
                                                                  &x86_64_v4::multiply_f16);
bool (*const bf16_registers)(const WmmaRegisters&) = for_this_host(&x86_64_v2::multiply_bf16, &x86_64_v3::multiply_bf16,
                                                                   &x86_64_v4::multiply_bf16);
void (*const integers)(WmmaIntegers&) = for_this_host(&x86_64_v2::multiply_integers, &x86_64_v3::multiply_integers,
                                                      &x86_64_v4::multiply_integers);

// How the elements of a result are stored.
enum class Result : std::uint8_t { f32, f16, bf16 };

Factor factor(Element element, std::uint32_t bits) {
  switch (element) {
    case Element::f16:
      return factor_of_f16(bits);
    case Element::bf16:
      return factor_of_bf16(bits);
    case Element::fp8_ocp:
      return factor_of_fp8(bits);
    default: {
      // One fraction bit more, as fp8 has.
      Factor made = factor_of_bf8(bits);
      made.significand *= 2;
      return made;
    }
  }
}
unsigned fraction_bits(Element element) { return element == Element::f16 ? 10 : element == Element::bf16 ? 7 : 3; }

// Calls `body(k, index, bits)` for the elements of A or B.
template <typename Body>
void each_element(const Wave& wave, const Operand& operand, const Shape& shape, Element element, Body&& body) {
  const unsigned bits = bits_of(element);
  const unsigned per_lane = shape.k * wmma_size / wave.lane_count;
  const std::uint32_t mask = (1u << bits) - 1;
  for (unsigned i = 0; i < per_lane; ++i) {
    const std::uint32_t* words = wave.vgpr[operand.index + (i * bits / 32)];
    const unsigned shift = i * bits % 32;
    for (unsigned lane = 0; lane < wave.lane_count; ++lane) {
      body(wmma_k(lane, wave.lane_count, i, shape.k), lane % wmma_size, (words[lane] >> shift) & mask);
    }
  }
}

// Sign of the elements at even and odd places (neg_lo, neg_hi) of 16-bit operands.
std::uint32_t flips(const Instruction& instruction, unsigned source, unsigned k) {
  const unsigned bits = k % 2 == 0 ? instruction.neg_lo : instruction.neg_hi;
  return (bits >> source) & 1;
}

std::uint32_t addend(const Wave& wave, const Instruction& instruction, Result result, unsigned lane, unsigned r) {
  const Operand& c = instruction.source[2];
  std::uint32_t bits = 0;
  if (result == Result::f32) {
    bits = c.is_vector() ? wave.vgpr[c.index + r][lane] : c.bits;
  } else {
    const bool is_f16 = result == Result::f16;
    std::uint32_t half = is_f16 ? c.constant16() : c.constant_bf16();
    if (c.is_vector()) half = (wave.vgpr[c.index + (r / 2)][lane] >> (16 * (r % 2))) & 0xffffu;
    bits = is_f16 ? numerics::bits_of(f16_to_f32(half)) : half << 16;
  }
  // For C the second negation is the magnitude.
  if ((instruction.neg_hi & 4) != 0) bits &= 0x7fffffffu;
  if ((instruction.neg_lo & 4) != 0) bits ^= 0x80000000u;
  return bits;
}

template <unsigned FractionBits>
void multiply_anything(WmmaFloats& call, const Factor (&a)[32][wmma_size], const Factor (&b)[32][wmma_size]) {
  for (const unsigned first : call.steps) {
    for (unsigned row = 0; row < wmma_size; ++row) {
      for (unsigned column = 0; column < wmma_size; ++column) {
        Factor x[4];
        Factor y[4];
        for (unsigned i = 0; i < 4; ++i) {
          x[i] = a[first + i][row];
          y[i] = b[first + i][column];
        }
        call.c[row][column] = dot_step<FractionBits>(x, y, call.c[row][column]);
      }
    }
  }
}

// The usual case. False, and nothing is done, where it is another one.
bool execute_registers(Wave& wave, const Instruction& instruction) {
  const Shape& shape = *instruction.record->shape;
  const Operand& c = instruction.source[2];
  if (wave.lane_count == lane_places || bits_of(shape.a) != 16) return false;
  if (!c.is_vector() && c.lanes == nullptr) return false;
  const auto flipped = [&](unsigned source) {
    const unsigned low = (instruction.neg_lo >> source) & 1;
    const unsigned high = (instruction.neg_hi >> source) & 1;
    return (low << 15) | (high << 31);
  };
  WmmaRegisters call{.a = wave.vgpr[instruction.source[0].index],
                     .b = wave.vgpr[instruction.source[1].index],
                     .c = c.is_vector() ? wave.vgpr[c.index] : c.lanes,
                     .c_stride = c.is_vector() ? lane_places : 0,
                     .d = wave.vgpr[instruction.destination[0].index],
                     .flips_a = flipped(0),
                     .flips_b = flipped(1)};
  if ((instruction.neg_hi & 4) != 0) call.keeps_c = 0x7fffffffu;
  if ((instruction.neg_lo & 4) != 0) call.flips_c = 0x80000000u;
  return shape.a == Element::f16 ? f16_registers(call) : bf16_registers(call);
}

template <Result result>
void execute_floats(Wave& wave, const Instruction& instruction) {
  const Shape& shape = *instruction.record->shape;
  if constexpr (result == Result::f32) {
    if (execute_registers(wave, instruction)) return;
  }
  const bool is_narrow = bits_of(shape.a) == 16;
  WmmaFloats call;
  Factor a[32][wmma_size];
  Factor b[32][wmma_size];
  bool special = false;
  const auto take = [&](unsigned source, Element element, Factor(&factors)[32][wmma_size],
                        std::int32_t (&significands)[32][wmma_size], std::int32_t (&exponents)[32][wmma_size]) {
    each_element(wave, instruction.source[source], shape, element, [&](unsigned k, unsigned index, std::uint32_t bits) {
      Factor one = factor(element, bits);
      if (is_narrow && flips(instruction, source, k) != 0) one.significand = -one.significand;
      special = special || one.is_nan || one.is_infinite;
      factors[k][index] = one;
      significands[k][index] = one.significand;
      exponents[k][index] = one.exponent;
    });
  };
  take(0, shape.a, a, call.significand.a, call.exponent.a);
  take(1, shape.b, b, call.significand.b, call.exponent.b);
  const unsigned lanes = wave.lane_count;
  const unsigned results = wmma_size * wmma_size / lanes;
  constexpr std::uint32_t exponent_mask = 0x7f800000u;
  for (unsigned r = 0; r < results; ++r) {
    for (unsigned lane = 0; lane < lanes; ++lane) {
      const WmmaPlace place = wmma_place(lane, lanes, r);
      const std::uint32_t bits = addend(wave, instruction, result, lane, r);
      special = special || (bits & exponent_mask) == exponent_mask;
      call.c[place.row][place.column] = bits;
    }
  }
  // Each step takes four k: of 32 lanes those of one half, then of the other.
  constexpr unsigned of_32[4] = {0, 8, 4, 12};
  constexpr unsigned of_64[4] = {0, 4, 8, 12};
  for (unsigned i = 0; i < 4; ++i) call.steps[i] = lanes == lane_places ? of_64[i] : of_32[i];
  if (!special && !floats(call, fraction_bits(shape.a))) {
    special = true;
    for (unsigned r = 0; r < results; ++r) {
      for (unsigned lane = 0; lane < lanes; ++lane) {
        const WmmaPlace place = wmma_place(lane, lanes, r);
        call.c[place.row][place.column] = addend(wave, instruction, result, lane, r);
      }
    }
  }
  if (special) {
    if (shape.a == Element::f16) {
      multiply_anything<10>(call, a, b);
    } else if (shape.a == Element::bf16) {
      multiply_anything<7>(call, a, b);
    } else {
      multiply_anything<3>(call, a, b);
    }
  }
  const unsigned first = instruction.destination[0].index;
  for (unsigned r = 0; r < results; ++r) {
    for (unsigned lane = 0; lane < lanes; ++lane) {
      const WmmaPlace place = wmma_place(lane, lanes, r);
      const std::uint32_t bits = call.c[place.row][place.column];
      if constexpr (result == Result::f32) {
        wave.vgpr[first + r][lane] = bits;
      } else {
        const std::uint32_t half = result == Result::f16 ? f32_to_f16(float_of(bits)) : f32_to_bf16(float_of(bits));
        std::uint32_t& word = wave.vgpr[first + (r / 2)][lane];
        word = r % 2 == 0 ? half : word | (half << 16);
      }
    }
  }
}

// neg_lo says which of A and B is signed.
void execute_integers(Wave& wave, const Instruction& instruction) {
  const Shape& shape = *instruction.record->shape;
  WmmaIntegers call;
  call.k = shape.k;
  call.saturates = instruction.clamp;
  const std::uint32_t sign = 1u << (bits_of(shape.a) - 1);
  const auto take = [&](unsigned source, std::int32_t (&values)[32][wmma_size]) {
    const bool is_signed = ((instruction.neg_lo >> source) & 1) != 0;
    each_element(wave, instruction.source[source], shape, shape.a, [&](unsigned k, unsigned index, std::uint32_t bits) {
      values[k][index] = static_cast<std::int32_t>(is_signed ? (bits ^ sign) - sign : bits);
    });
  };
  take(0, call.value.a);
  take(1, call.value.b);
  const unsigned lanes = wave.lane_count;
  const unsigned results = wmma_size * wmma_size / lanes;
  const Operand& c = instruction.source[2];
  for (unsigned r = 0; r < results; ++r) {
    for (unsigned lane = 0; lane < lanes; ++lane) {
      const WmmaPlace place = wmma_place(lane, lanes, r);
      call.c[place.row][place.column] =
          static_cast<std::int32_t>(c.is_vector() ? wave.vgpr[c.index + r][lane] : c.bits);
    }
  }
  integers(call);
  for (unsigned r = 0; r < results; ++r) {
    for (unsigned lane = 0; lane < lanes; ++lane) {
      const WmmaPlace place = wmma_place(lane, lanes, r);
      wave.vgpr[instruction.destination[0].index + r][lane] =
          static_cast<std::uint32_t>(call.c[place.row][place.column]);
    }
  }
}

template <Handler handler>
Handler select(Instruction& instruction) {
  const Operand& c = instruction.source[2];
  return instruction.source_count == 3 && (c.is_vector() || c.is_constant()) ? handler : nullptr;
}
// "v_wmma_f32_…": what the results are stands behind the first two words.
Select select_for(std::string_view name) {
  constexpr std::size_t begin = 7;
  const std::string_view result = name.substr(begin, name.find('_', begin) - begin);
  if (result == "i32") return &select<&execute_integers>;
  if (result == "f16") return &select<&execute_floats<Result::f16>>;
  if (result == "bf16") return &select<&execute_floats<Result::bf16>>;
  return &select<&execute_floats<Result::f32>>;
}

}  // namespace

void register_wmma(Registry& registry) {
  for (const Shape& shape : isa::wmma_instructions()) {
    registry.add_own_select(shape.name, select_for(shape.name),
                            {.instruction_class = InstructionClass::matrix,
                             .kind = IssueKind::matrix,
                             .action = Action::matrix,
                             .all_lanes = true,
                             .shape = &shape});
  }
}

}  // namespace wavejit::simgpu::matrix
