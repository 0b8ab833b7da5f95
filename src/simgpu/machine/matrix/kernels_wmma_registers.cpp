// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Products of 16-bit floats over a wave of 32 lanes, from its registers to its registers: what attention kernels
// execute most. The arithmetic is that of numerics/rdna4_dot.h in fewer operations, where sums are neither subnormal
// nor near float32's largest; everything else is left to the general way. Compiled per host instruction set.
//
// A register's 16 lanes of one half are a row of C or D, so that columns are the vector and nothing of C moves. Of A
// each element is one factor of a whole row of the result, of B sixteen stand side by side.
#include <immintrin.h>

#include "simgpu/machine/matrix/wmma.h"
#include "simgpu/machine/numerics/rdna4_dot.h"

namespace wavejit::simgpu::matrix {
namespace {

using namespace numerics;

#if defined(__AVX512BW__)
constexpr unsigned run = 16;  // columns that are worked out together
#elif defined(__AVX2__)
constexpr unsigned run = 8;
#else
constexpr unsigned run = 4;
#endif
using IntRun = std::int32_t __attribute__((vector_size(run * sizeof(std::int32_t))));
using FloatRun = float __attribute__((vector_size(run * sizeof(float))));

// What the host has for a whole run: products of the low 16 bits of each element where the high ones of one are zero;
// shifts that leave the sign of whatever is shifted by more than all bits; numbers cut downwards to whole ones.
#if defined(__AVX512BW__)
WAVEJIT_LANE_FUNCTION IntRun times(IntRun a, IntRun b) {
  return reinterpret_cast<IntRun>(_mm512_madd_epi16(reinterpret_cast<__m512i>(a), reinterpret_cast<__m512i>(b)));
}
WAVEJIT_LANE_FUNCTION IntRun cut_by(IntRun value, IntRun bits) {
  return reinterpret_cast<IntRun>(_mm512_srav_epi32(reinterpret_cast<__m512i>(value), reinterpret_cast<__m512i>(bits)));
}
WAVEJIT_LANE_FUNCTION IntRun floor_of(FloatRun x) {
  return reinterpret_cast<IntRun>(
      _mm512_cvt_roundps_epi32(reinterpret_cast<__m512>(x), _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC));
}
WAVEJIT_LANE_FUNCTION bool any_above(IntRun value, std::uint32_t bound) {
  return _mm512_cmpgt_epu32_mask(reinterpret_cast<__m512i>(value), _mm512_set1_epi32(static_cast<int>(bound))) != 0;
}
#elif defined(__AVX2__)
WAVEJIT_LANE_FUNCTION IntRun times(IntRun a, IntRun b) {
  return reinterpret_cast<IntRun>(_mm256_madd_epi16(reinterpret_cast<__m256i>(a), reinterpret_cast<__m256i>(b)));
}
WAVEJIT_LANE_FUNCTION IntRun cut_by(IntRun value, IntRun bits) {
  return reinterpret_cast<IntRun>(_mm256_srav_epi32(reinterpret_cast<__m256i>(value), reinterpret_cast<__m256i>(bits)));
}
WAVEJIT_LANE_FUNCTION IntRun floor_of(FloatRun x) {
  return reinterpret_cast<IntRun>(_mm256_cvtps_epi32(_mm256_floor_ps(reinterpret_cast<__m256>(x))));
}
WAVEJIT_LANE_FUNCTION bool any_above(IntRun value, std::uint32_t bound) {
  const __m256i most = _mm256_set1_epi32(static_cast<int>(bound));
  const __m256i within = _mm256_cmpeq_epi32(_mm256_max_epu32(reinterpret_cast<__m256i>(value), most), most);
  return _mm256_movemask_epi8(within) != -1;
}
#else
WAVEJIT_LANE_FUNCTION IntRun times(IntRun a, IntRun b) {
  return reinterpret_cast<IntRun>(_mm_madd_epi16(reinterpret_cast<__m128i>(a), reinterpret_cast<__m128i>(b)));
}
WAVEJIT_LANE_FUNCTION IntRun cut_by(IntRun value, IntRun bits) {
  for (unsigned i = 0; i < run; ++i) value[i] = cut(value[i], bits[i]);
  return value;
}
WAVEJIT_LANE_FUNCTION IntRun floor_of(FloatRun x) {
  return reinterpret_cast<IntRun>(_mm_cvtps_epi32(_mm_floor_ps(reinterpret_cast<__m128>(x))));
}
WAVEJIT_LANE_FUNCTION bool any_above(IntRun value, std::uint32_t bound) {
  const __m128i most = _mm_set1_epi32(static_cast<int>(bound));
  const __m128i within = _mm_cmpeq_epi32(_mm_max_epu32(reinterpret_cast<__m128i>(value), most), most);
  return _mm_movemask_epi8(within) != 0xffff;
}
#endif

WAVEJIT_LANE_FUNCTION IntRun splat(std::int32_t value) { return IntRun{} + value; }
WAVEJIT_LANE_FUNCTION IntRun larger_of(IntRun a, IntRun b) { return a > b ? a : b; }
WAVEJIT_LANE_FUNCTION bool any(IntRun mask) { return any_above(mask, 0); }
WAVEJIT_LANE_FUNCTION IntRun load(const void* from) {
  IntRun value;
  __builtin_memcpy(&value, from, sizeof(value));
  return value;
}
WAVEJIT_LANE_FUNCTION void store(void* to, IntRun value) { __builtin_memcpy(to, &value, sizeof(value)); }

constexpr unsigned depth = 16;  // products of one element
constexpr unsigned half = 8;    // of them in a lane
constexpr std::int32_t exponent_of_f32 = 0x7f800000;

// A grid (rdna4_dot.h) counts from this one here: those from 0 to `largest_grid` make sums of 31 bits that are neither
// subnormal nor infinite, and of a negative C of which nothing is left they count 0.
constexpr std::int32_t lowest_grid = -125;
constexpr std::uint32_t largest_grid = 96 + 125;
constexpr std::int32_t no_products = -2000;  // any exponent of a product with a zero factor lies below

struct Factors {
  alignas(64) std::int32_t significand[depth][wmma_size];
  alignas(64) std::int32_t exponent[depth][wmma_size];
};

// The elements of one operand; `offset` is added to their exponents. False if one is no number or infinite.
template <unsigned ExponentBits, unsigned FractionBits>
bool unpack(const std::uint32_t* registers, std::uint32_t flips, std::int32_t offset, std::int32_t mask,
            Factors& factors) {
  constexpr std::int32_t top = (1 << ExponentBits) - 1;
  // Two of them make a product in units of 2^(exponent - product_bits).
  constexpr std::int32_t up = (product_bits / 2) - static_cast<std::int32_t>(FractionBits);
  IntRun special{};
  const auto take = [&](IntRun high, unsigned k, unsigned column) {  // bits 31 to 16
    const IntRun field = (high >> (16 + FractionBits)) & top;
    const IntRun fraction = (high >> 16) & ((1 << FractionBits) - 1);
    const IntRun magnitude = (fraction | (field != 0 ? splat(1 << FractionBits) : IntRun{})) << up;
    const IntRun sign = high >> 31;
    special |= field == top;
    store(&factors.significand[k][column], ((magnitude ^ sign) - sign) & mask);
    const IntRun exponent = larger_of(field, splat(1)) + offset;
    store(&factors.exponent[k][column], magnitude == 0 ? splat(no_exponent) : exponent);
  };
  for (unsigned i = 0; i < half / 2; ++i) {
    for (unsigned lane = 0; lane < 2 * wmma_size; lane += run) {
      const IntRun words = load(registers + (i * lane_places) + lane) ^ static_cast<std::int32_t>(flips);
      const unsigned k = (half * (lane / wmma_size)) + (2 * i);
      take(words << 16, k, lane % wmma_size);
      take(words, k + 1, lane % wmma_size);
    }
  }
  return !any(special);
}

// Two products of a step, for all rows: B's sides of them.
struct PairOfB {
  IntRun significand[2];
  IntRun exponent;    // of the first
  IntRun difference;  // of the first to the second
};
WAVEJIT_LANE_FUNCTION PairOfB pair_of_b(const Factors& b, unsigned k, unsigned column) {
  const IntRun first = load(&b.exponent[k][column]);
  return {{load(&b.significand[k][column]), load(&b.significand[k + 1][column])},
          first,
          first - load(&b.exponent[k + 1][column])};
}
struct PairSum {
  IntRun value;
  IntRun exponent;
};
WAVEJIT_LANE_FUNCTION PairSum sum_of_pair(const Factors& a, unsigned k, unsigned row, const PairOfB& b) {
  const std::int32_t first = a.exponent[k][row];
  const IntRun difference = b.difference + (first - a.exponent[k + 1][row]);
  const IntRun second_down = larger_of(difference, IntRun{});
  const IntRun first_down = second_down - difference;
  const IntRun one = times(splat(a.significand[k][row]), b.significand[0]);
  const IntRun other = times(splat(a.significand[k + 1][row]), b.significand[1]);
  return {cut_by(one, first_down) + cut_by(other, second_down), b.exponent + first + first_down};
}

template <unsigned ExponentBits, unsigned FractionBits>
bool multiply_registers(const WmmaRegisters& call) {
  constexpr std::int32_t bias = (1 << (ExponentBits - 1)) - 1;
  constexpr std::int32_t low_word = 0xffff;
  Factors a;
  Factors b;
  alignas(64) std::int32_t c[wmma_size][wmma_size];
  // Exponents of products become grids by themselves: largest - product_bits, counted from the lowest.
  constexpr std::int32_t offset = -(2 * bias) - product_bits - lowest_grid;
  if (!unpack<ExponentBits, FractionBits>(call.a, call.flips_a, 0, low_word, a)) return false;
  if (!unpack<ExponentBits, FractionBits>(call.b, call.flips_b, offset, -1, b)) return false;
  IntRun special{};
  for (unsigned row = 0; row < wmma_size; ++row) {
    const std::uint32_t* const from = call.c + ((row % half) * call.c_stride) + (wmma_size * (row / half));
    for (unsigned column = 0; column < wmma_size; column += run) {
      const IntRun bits =
          (load(from + column) & static_cast<std::int32_t>(call.keeps_c)) ^ static_cast<std::int32_t>(call.flips_c);
      special |= (bits & exponent_of_f32) == exponent_of_f32;
      store(&c[row][column], bits);
    }
  }
  if (any(special)) return false;
  for (const unsigned k : {0U, half, half / 2, half + (half / 2)}) {
    for (unsigned column = 0; column < wmma_size; column += run) {
      const PairOfB low_b = pair_of_b(b, k, column);
      const PairOfB high_b = pair_of_b(b, k + 2, column);
      for (unsigned row = 0; row < wmma_size; ++row) {
        const PairSum low = sum_of_pair(a, k, row, low_b);
        const PairSum high = sum_of_pair(a, k + 2, row, high_b);
        const IntRun old = load(&c[row][column]);
        const IntRun field = (old >> 23) & 0xff;
        const IntRun largest = larger_of(low.exponent, high.exponent);
        IntRun grid = larger_of(largest, field - (127 + addend_bits + lowest_grid));
        if (any_above(grid, largest_grid)) [[unlikely]] {
          // Zero and products that are all zero stay zero on any grid.
          const IntRun nothing = ((old << 1) == 0) & (largest < no_products);
          grid = nothing ? IntRun{} : grid;
          if (any_above(grid, largest_grid)) return false;
        }
        const IntRun power = (grid + (127 + lowest_grid)) << 23;
        const FloatRun scaled = reinterpret_cast<FloatRun>(old) * reinterpret_cast<FloatRun>((254 << 23) - power);
        const IntRun floored = floor_of(scaled);
        const IntRun addend = scaled > -1.0F ? larger_of(floored, IntRun{}) : floored;
        const IntRun sum = addend + cut_by(low.value, grid - low.exponent) + cut_by(high.value, grid - high.exponent);
        const FloatRun rounded = __builtin_convertvector(sum, FloatRun) * reinterpret_cast<FloatRun>(power);
        store(&c[row][column], reinterpret_cast<IntRun>(rounded));
      }
    }
  }
  for (unsigned row = 0; row < wmma_size; ++row) {
    __builtin_memcpy(call.d + ((row % half) * lane_places) + (wmma_size * (row / half)), c[row], sizeof(c[row]));
  }
  return true;
}

}  // namespace

namespace WAVEJIT_HOST_SET {

bool multiply_f16(const WmmaRegisters& call) { return multiply_registers<5, 10>(call); }
bool multiply_bf16(const WmmaRegisters& call) { return multiply_registers<8, 7>(call); }

}  // namespace WAVEJIT_HOST_SET

}  // namespace wavejit::simgpu::matrix
