// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Operands of a matrix instruction as the arithmetic sees them: float32 (int32, float64) arrays with k outermost. Only
// for the files compiled per host instruction set: everything here is internal to them.
#pragma once

#include "simgpu/machine/matrix/layout.h"
#include "simgpu/machine/matrix/matrix_kernel.h"
#include "simgpu/machine/numerics/bits.h"
#include "simgpu/machine/numerics/small_floats.h"

#ifndef WAVEJIT_HOST_SET
#error "compile this file through simgpu/machine/matrix/CMakeLists.txt, which names the host instruction set"
#endif

namespace wavejit::simgpu::matrix {
namespace {

using namespace numerics;

constexpr unsigned run = 16;  // lanes of one accumulator vector

using FloatRun = float __attribute__((vector_size(run * sizeof(float))));
using IntRun = std::int32_t __attribute__((vector_size(run * sizeof(std::int32_t))));

template <typename Run>
[[gnu::always_inline]] inline Run load_run(const void* from) {
  Run value;
  __builtin_memcpy(&value, from, sizeof(value));
  return value;
}

// float32 with the mantissa rounded to 10 bits, to nearest even. (How the hardware narrows is not documented: a
// guess.)
WAVEJIT_LANE_FUNCTION float narrowed_to_xf32(float value) {
  const std::uint32_t bits = numerics::bits_of(value);
  const std::uint32_t rounded = (bits + 0xfffu + ((bits >> 13) & 1u)) & 0xffffe000u;
  return (bits & 0x7f800000u) == 0x7f800000u ? value : float_of(rounded);
}

WAVEJIT_LANE_FUNCTION std::uint32_t small_bits(const std::uint32_t* registers, unsigned lane, unsigned bit,
                                               unsigned width) {
  std::uint64_t window = registers[(bit / 32) * lane_places + lane];
  if (bit % 32 + width > 32) window |= static_cast<std::uint64_t>(registers[(bit / 32 + 1) * lane_places + lane]) << 32;
  return static_cast<std::uint32_t>(window >> (bit % 32)) & ((1u << width) - 1);
}

template <typename Format>
void decode_table(float* table) {
  for (std::uint32_t i = 0; i < (1u << Format::bits); ++i) table[i] = small_to_f32<Format>(i);
}
const float* table_of(Element element) {
  struct Tables {
    float values[7][256];
    Tables() : values{} {
      decode_table<Fp8Fnuz>(values[0]);
      decode_table<Bf8Fnuz>(values[1]);
      decode_table<Fp8Ocp>(values[2]);
      decode_table<Bf8Ocp>(values[3]);
      decode_table<Fp6>(values[4]);
      decode_table<Bf6>(values[5]);
      decode_table<Fp4>(values[6]);
    }
  };
  static const Tables tables;
  return tables.values[static_cast<unsigned>(element) - static_cast<unsigned>(Element::fp8_fnuz)];
}

// Element `i` of all lanes, as the arithmetic sees it.
template <typename Value>
[[gnu::always_inline]] inline void unpack(Element element, const std::uint32_t* registers, unsigned i, Value* lanes) {
  if constexpr (sizeof(Value) == 8) {
    const std::uint32_t* low = registers + 2 * i * lane_places;
    for (unsigned lane = 0; lane < lane_places; ++lane) {
      lanes[lane] = double_of(low[lane] | (static_cast<std::uint64_t>(low[lane + lane_places]) << 32));
    }
  } else if constexpr (static_cast<Value>(0.5f) == Value{0}) {
    const std::uint32_t* words = registers + (i / 4) * lane_places;
    const unsigned shift = 24 - 8 * (i % 4);
    for (unsigned lane = 0; lane < lane_places; ++lane)
      lanes[lane] = static_cast<std::int32_t>(words[lane] << shift) >> 24;
  } else {
    switch (element) {
      case Element::f16: {
        const std::uint32_t* words = registers + (i / 2) * lane_places;
        const unsigned shift = 16 * (i & 1);
#if defined(__F16C__)
        // The host's conversion differs only in what it makes of NaN, which no result shows.
        for (unsigned lane = 0; lane < lane_places; lane += run) {
          const IntRun some = load_run<IntRun>(words + lane) >> static_cast<int>(shift);
          using Halves = _Float16 __attribute__((vector_size(run * sizeof(_Float16))));
          using Shorts = std::int16_t __attribute__((vector_size(run * sizeof(std::int16_t))));
          const auto halves = reinterpret_cast<Halves>(__builtin_convertvector(some, Shorts));
          const FloatRun wide = __builtin_convertvector(halves, FloatRun);
          __builtin_memcpy(lanes + lane, &wide, sizeof(wide));
        }
#else
        for (unsigned lane = 0; lane < lane_places; ++lane) lanes[lane] = f16_to_f32((words[lane] >> shift) & 0xffffu);
#endif
        break;
      }
      case Element::bf16: {
        const std::uint32_t* words = registers + (i / 2) * lane_places;
        const unsigned shift = 16 * (i & 1);
        for (unsigned lane = 0; lane < lane_places; ++lane) lanes[lane] = bf16_to_f32((words[lane] >> shift) & 0xffffu);
        break;
      }
      case Element::f32:
        __builtin_memcpy(lanes, registers + i * lane_places, lane_places * sizeof(float));
        break;
      case Element::xf32:
        for (unsigned lane = 0; lane < lane_places; ++lane) {
          lanes[lane] = narrowed_to_xf32(float_of(registers[i * lane_places + lane]));
        }
        break;
      default: {
        const float* table = table_of(element);
        const unsigned width = bits_of(element);
        for (unsigned lane = 0; lane < lane_places; ++lane) {
          lanes[lane] = table[small_bits(registers, lane, i * width, width)];
        }
        break;
      }
    }
  }
}

// BLGP: which lane of B each lane gets (CDNA3 ISA, "MFMA broadcast").
unsigned blgp_source(unsigned pattern, unsigned lane) {
  switch (pattern) {
    case 1:
      return lane % 32;
    case 2:
      return 32 + lane % 32;
    case 3:
      return (lane + 16) % 64;
    case 4:
    case 5:
    case 6:
    case 7:
      return 16 * (pattern - 4) + lane % 16;
    default:
      return lane;
  }
}

template <typename Value>
struct Operands {
  // [block][position][row or column]
  alignas(64) Value a[largest_k * 32];
  alignas(64) Value b[largest_k * 32];
};

template <unsigned M, typename Value>
void spread(const MatrixCall& call, bool is_a, Value* out) {
  const Shape& shape = *call.shape;
  const Element element = is_a ? call.a : call.b;
  const std::uint32_t* registers = is_a ? call.a_registers : call.b_registers;
  const std::uint8_t* scale = is_a ? call.a_scale : call.b_scale;
  const unsigned per_lane = shape.k_per_lane();
  const bool two_runs = per_lane == 32 && bits_of(element) == 8;
  unsigned positions[largest_k];
  if (call.order != nullptr) {
    for (unsigned position = 0; position < shape.k; ++position) positions[call.order[position]] = position;
  }
  const auto position_of = [&](unsigned k) { return call.order == nullptr ? k : positions[k]; };
  for (unsigned i = 0; i < per_lane; ++i) {
    alignas(64) Value lanes[lane_places];
    unpack(element, registers, i, lanes);
    if constexpr (sizeof(Value) == 8) {
      if (call.negate[is_a ? 0 : 1]) {
        for (Value& value : lanes) value = negated(value);
      }
    } else if constexpr (static_cast<Value>(0.5f) != Value{0}) {
      if (scale != nullptr) {
        for (unsigned lane = 0; lane < lane_places; ++lane) {
          // The scale of 32 consecutive k stands in the lane group of that number. e8m0: 2^(e - 127), 255 is NaN. Exact
          // unless it leaves float32's range.
          const Place place = source_place(shape, lane, i, two_runs);
          const std::uint8_t exponent = scale[place.index + shape.m * (place.k / 32)];
          const double factor = double_of(static_cast<std::uint64_t>(exponent + 896) << 52);
          lanes[lane] = exponent == 255 ? float_of(default_nan_f32)
                                        : static_cast<float>(static_cast<double>(lanes[lane]) * factor);
        }
      }
    }
    if (!is_a && call.blgp != 0 && sizeof(Value) != 8) {
      Value moved[lane_places];
      for (unsigned lane = 0; lane < lane_places; ++lane) moved[lane] = lanes[blgp_source(call.blgp, lane)];
      __builtin_memcpy(lanes, moved, sizeof(moved));
    }
    for (unsigned lane = 0; lane < lane_places; lane += M) {
      const Place place = source_place(shape, lane, i, two_runs);
      Value* to = out + (place.block * shape.k + position_of(place.k)) * M;
      __builtin_memcpy(to, lanes + lane, M * sizeof(Value));
    }
  }
}

// The two halves of 16 words as float32.
template <Element element>
[[gnu::always_inline]] inline void widen_pairs(const std::uint32_t* words, FloatRun& low, FloatRun& high) {
  if constexpr (element == Element::bf16) {
    const auto pairs = load_run<IntRun>(words);
    low = reinterpret_cast<FloatRun>(pairs << 16);
    high = reinterpret_cast<FloatRun>(pairs & static_cast<std::int32_t>(0xffff0000));
  } else {
#if defined(__F16C__)
    // The host's conversion differs only in what it makes of NaN, which no result shows.
    using Halves = _Float16 __attribute__((vector_size(run * sizeof(_Float16))));
    using Shorts = std::int16_t __attribute__((vector_size(run * sizeof(std::int16_t))));
    const auto pairs = load_run<IntRun>(words);
    low = __builtin_convertvector(reinterpret_cast<Halves>(__builtin_convertvector(pairs, Shorts)), FloatRun);
    high = __builtin_convertvector(reinterpret_cast<Halves>(__builtin_convertvector(pairs >> 16, Shorts)), FloatRun);
#else
    for (unsigned lane = 0; lane < run; ++lane) {
      low[lane] = f16_to_f32(words[lane] & 0xffffu);
      high[lane] = f16_to_f32(words[lane] >> 16);
    }
#endif
  }
}

// `spread` for 16-bit floats of which nothing is moved, scaled or reordered: each word goes straight to its two k.
template <unsigned M, Element element>
[[gnu::always_inline]] inline void spread_pairs(const Shape& shape, const std::uint32_t* registers, float* out) {
  const unsigned per_lane = shape.k_per_lane();
  for (unsigned lane = 0; lane < lane_places; lane += run) {
    const Place place = source_place(shape, lane, 0, false);
    float* to = out + (place.block * shape.k + place.k) * M + place.index;
    for (unsigned i = 0; i < per_lane / 2; ++i, to += 2 * M) {
      FloatRun low;
      FloatRun high;
      widen_pairs<element>(registers + i * lane_places + lane, low, high);
      __builtin_memcpy(to, &low, sizeof(low));
      __builtin_memcpy(to + M, &high, sizeof(high));
    }
  }
}

// CBSZ, ABID: within groups of 2^cbsz blocks all use A of block `abid` of their group.
unsigned a_block(const MatrixCall& call, unsigned block) {
  const unsigned group = 1u << call.cbsz;
  return call.shape->blocks == 1 || call.cbsz == 0 ? block : block / group * group + call.abid % group;
}

template <unsigned M, typename Value>
void spread_both(const MatrixCall& call, Operands<Value>& operands) {
  if constexpr (M > 4 && static_cast<Value>(0.5f) != Value{0}) {
    const bool plain = call.order == nullptr && call.blgp == 0 && call.a == call.b;
    if (plain && call.a == Element::bf16) {
      spread_pairs<M, Element::bf16>(*call.shape, call.a_registers, operands.a);
      return spread_pairs<M, Element::bf16>(*call.shape, call.b_registers, operands.b);
    }
    if (plain && call.a == Element::f16) {
      spread_pairs<M, Element::f16>(*call.shape, call.a_registers, operands.a);
      return spread_pairs<M, Element::f16>(*call.shape, call.b_registers, operands.b);
    }
  }
  spread<M>(call, true, operands.a);
  spread<M>(call, false, operands.b);
}

}  // namespace
}  // namespace wavejit::simgpu::matrix
