// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Matrix products as a CDNA3 adds them, by the model of MMA-Sim (arXiv 2511.10909), which its authors hold against an
// MI300X bit for bit. D = C, then group after group of products in the order of k:
//
//   1. A product is exact. Its exponent is the sum of its factors' exponents, not normalised: a denormal factor has its
//      format's lowest exponent, a zero -126.
//   2. The products of a group are cut to multiples of 2^(e - 24), e their largest exponent, toward zero, and added.
//   3. M is the larger of e and the exponent of D (-126 at least). The sum is cut to a multiple of 2^(M - 31) and D to
//      one of 2^(M - 24), both toward minus infinity. A negative D, however small, takes a whole unit away.
//   4. Both are added and rounded once, to nearest even.
//
// Groups are of 8 where the types have 16 bits, of 4 for xf32. 8-bit types have groups of 16 in which even and odd k
// are summed apart; the two sums are cut to the larger exponent's grid toward minus infinity, and D counts nothing when
// it is more than 25 places below. float32 and float64 are fused multiply-adds with k ascending, as in kernels.cpp.
#include "simgpu/machine/matrix/operands.h"

namespace wavejit::simgpu::matrix {
namespace {

using LongRun = std::uint64_t __attribute__((vector_size(run * sizeof(std::uint64_t))));
using DoubleRun = double __attribute__((vector_size(run * sizeof(double))));

constexpr int fraction_bits = 24;
constexpr int sum_bits = 31;
constexpr int lowest_exponent = -126;
// The exponent of what is NaN or infinite: larger than any sum of two exponents.
constexpr int odd_exponent = 4096;
// Products and sums of this exponent may be 2^128, which is infinite.
constexpr int large_exponent = 127;

struct Rules {
  unsigned group;       // products that are added at once
  bool two_sums;        // even and odd k apart
  int lowest_exponent;  // of a factor
};

Rules rules_of(Element element) {
  switch (element) {
    case Element::f16:
      return {8, false, -14};
    case Element::bf16:
      return {8, false, -126};
    case Element::xf32:
      return {4, false, -126};
    case Element::fp8_fnuz:
      return {16, true, -7};
    case Element::bf8_fnuz:
      return {16, true, -15};
    case Element::fp8_ocp:
      return {16, true, -6};
    default:
      return {16, true, -14};
  }
}

[[gnu::always_inline]] inline IntRun larger(IntRun a, IntRun b) { return a > b ? a : b; }
[[gnu::always_inline]] inline IntRun smaller(IntRun a, IntRun b) { return a < b ? a : b; }

[[gnu::always_inline]] inline DoubleRun rounded_down(DoubleRun value) {
#if defined(__clang__)
  return __builtin_elementwise_floor(value);
#else
  for (unsigned i = 0; i < run; ++i) value[i] = __builtin_floor(value[i]);
  return value;
#endif
}

// 2^power for what a double holds as a normal number; anything for other powers.
[[gnu::always_inline]] inline DoubleRun power_of_two_run(IntRun power) {
  using Signed = std::int64_t __attribute__((vector_size(run * sizeof(std::int64_t))));
  const auto biased = reinterpret_cast<LongRun>(__builtin_convertvector(power, Signed)) + 1023u;
  return reinterpret_cast<DoubleRun>(biased << 52);
}

// Factors taken apart: value = significand * 2^exponent.
struct Parts {
  alignas(64) float significand[largest_k * 32];
  alignas(64) std::int32_t exponent[largest_k * 32];
};

void take_apart(const float* values, unsigned count, int lowest, Parts& parts) {
  const float up = float_of(static_cast<std::uint32_t>(127 - lowest) << 23);
  for (unsigned i = 0; i < count; ++i) {
    const std::uint32_t bits = numerics::bits_of(values[i]);
    const auto field = static_cast<std::int32_t>((bits >> 23) & 0xffu);
    const bool odd = field == 255;
    const bool low = field - 127 < lowest;
    const float one_to_two = float_of((bits & 0x807fffffu) | 0x3f800000u);
    const float below_one = values[i] * up;
    parts.significand[i] = odd ? 0.0f : (low ? below_one : one_to_two);
    const std::int32_t kept = low ? lowest : field - 127;
    const std::int32_t number = (bits & 0x7fffffffu) == 0 ? lowest_exponent : kept;
    parts.exponent[i] = odd ? odd_exponent : number;
  }
}

// The products of 16 elements of a result: one row of A and 16 columns of B, or 16 rows and columns.
template <unsigned M>
struct Products {
  const float* row;
  const float* column;
  const std::int32_t* row_exponent;
  const std::int32_t* column_exponent;

  [[gnu::always_inline]] FloatRun significand(unsigned k) const {
    if constexpr (M > 4) return row[k * M] * load_run<FloatRun>(column + k * M);
    return load_run<FloatRun>(row + k * run) * load_run<FloatRun>(column + k * run);
  }
  [[gnu::always_inline]] IntRun exponent(unsigned k) const {
    if constexpr (M > 4) return row_exponent[k * M] + load_run<IntRun>(column_exponent + k * M);
    return load_run<IntRun>(row_exponent + k * run) + load_run<IntRun>(column_exponent + k * run);
  }
};

struct Sum {
  IntRun units;  // of 2^(exponent - fraction_bits)
  IntRun exponent;
};

template <unsigned M>
[[gnu::always_inline]] inline Sum sum_of_products(const Products<M>& products, unsigned first, unsigned end,
                                                  unsigned step) {
  Sum sum{.units = {}, .exponent = products.exponent(first)};
  for (unsigned k = first + step; k < end; k += step) sum.exponent = larger(sum.exponent, products.exponent(k));
  for (unsigned k = first; k < end; k += step) {
    // A product is below 4: further down nothing is left of it.
    const IntRun below = smaller(sum.exponent - products.exponent(k), IntRun{} + 64);
    const auto scale = reinterpret_cast<FloatRun>((127 + fraction_bits - below) << 23);
    // Conversion cuts toward zero.
    sum.units += __builtin_convertvector(products.significand(k) * scale, IntRun);
  }
  return sum;
}

template <unsigned M>
[[gnu::always_inline]] inline Sum sum_of_group(const Products<M>& products, unsigned first, unsigned end,
                                               bool two_sums) {
  if (!two_sums) return sum_of_products(products, first, end, 1);
  const Sum even = sum_of_products(products, first, end, 2);
  const Sum odd = sum_of_products(products, first + 1, end, 2);
  const IntRun exponent = larger(even.exponent, odd.exponent);
  const IntRun most = IntRun{} + 31;
  return {.units = (even.units >> smaller(exponent - even.exponent, most)) +
                   (odd.units >> smaller(exponent - odd.exponent, most)),
          .exponent = exponent};
}

[[gnu::always_inline]] inline IntRun exponent_of(FloatRun value) {
  const IntRun field = (reinterpret_cast<IntRun>(value) >> 23) & 0xff;
  return larger(field, IntRun{} + 1) - 127;
}

// Whether anything of 16 lanes is not zero.
[[gnu::always_inline]] inline bool any(IntRun lanes) {
  std::int32_t all = 0;
  for (unsigned i = 0; i < run; ++i) all |= lanes[i];
  return all != 0;
}

// Step 3 and 4.
[[gnu::always_inline]] inline FloatRun with_sum(FloatRun d, const Sum& sum, bool drops_small) {
  const IntRun exponent = exponent_of(d);
  const IntRun most = larger(sum.exponent, exponent);
  const DoubleRun kept = rounded_down(__builtin_convertvector(sum.units, DoubleRun) *
                                      power_of_two_run(sum.exponent - most + (sum_bits - fraction_bits)));
  DoubleRun units = rounded_down(__builtin_convertvector(d, DoubleRun) * power_of_two_run(fraction_bits - most));
  if (drops_small) {
    const DoubleRun counts = __builtin_convertvector(-(exponent >= most - (fraction_bits + 1)), DoubleRun);
    units *= counts;
  }
  constexpr double ratio = 1u << (sum_bits - fraction_bits);
  return __builtin_convertvector((kept + units * ratio) * power_of_two_run(most - sum_bits), FloatRun);
}

// One element and one group where NaN, infinity or a product of 2^128 may be about. False: there is nothing of the
// kind.
bool is_odd(const float* a, const float* b, unsigned stride, unsigned count, float d, float& result) {
  double sum = static_cast<double>(d);
  bool up = false;
  bool down = false;
  for (unsigned k = 0; k < count; ++k) {
    const double product = static_cast<double>(a[k * stride]) * static_cast<double>(b[k * stride]);
    sum += product;
    up = up || product >= 0x1p128;
    down = down || product <= -0x1p128;
  }
  const float infinity = float_of(0x7f800000u);
  if (magnitude(sum) == static_cast<double>(infinity)) {
    result = sum > 0 ? infinity : -infinity;
  } else if (is_nan(sum) || (up && down)) {
    result = float_of(default_nan_f32);
  } else if (up || down) {
    result = up ? infinity : -infinity;
  } else {
    return false;
  }
  return true;
}

// Ten bits of the fraction are kept, the others cut off.
void cut_to_xf32(float* values, unsigned count) {
  for (unsigned i = 0; i < count; ++i) {
    if (!is_nan(values[i])) values[i] = float_of(numerics::bits_of(values[i]) & 0xffffe000u);
  }
}

struct Factors {
  Operands<float> whole;
  Parts a;
  Parts b;
};

// 16 results of register r, from lane `first` on.
template <unsigned M>
void accumulate_run(const MatrixCall& call, const Rules& rules, const Factors& factors, unsigned r, unsigned first) {
  const Shape& shape = *call.shape;
  const unsigned k = shape.k;
  const auto a_place = [&](unsigned lane) {
    const ResultPlace place = result_place(shape, lane, r);
    return a_block(call, place.block) * k * M + place.row;
  };
  const auto b_place = [&](unsigned lane) {
    const ResultPlace place = result_place(shape, lane, r);
    return place.block * k * M + place.column;
  };
  Products<M> products{};
  // m = 4 has k = 4 at most (layout.h); its 16 lanes lie in four blocks.
  constexpr unsigned gathered_k = M > 4 ? 1 : 4;
  alignas(64) float values[2][gathered_k * run];
  alignas(64) std::int32_t exponents[2][gathered_k * run];
  if constexpr (M > 4) {
    products = {factors.a.significand + a_place(first), factors.b.significand + b_place(first),
                factors.a.exponent + a_place(first), factors.b.exponent + b_place(first)};
  } else {
    for (unsigned i = 0; i < run; ++i) {
      for (unsigned step = 0; step < k; ++step) {
        const unsigned a = a_place(first + i) + step * M;
        const unsigned b = b_place(first + i) + step * M;
        values[0][step * run + i] = factors.a.significand[a];
        values[1][step * run + i] = factors.b.significand[b];
        exponents[0][step * run + i] = factors.a.exponent[a];
        exponents[1][step * run + i] = factors.b.exponent[b];
      }
    }
    products = {values[0], values[1], exponents[0], exponents[1]};
  }
  auto d = load_run<FloatRun>(call.c_registers + r * call.c_stride + first);
  for (unsigned from = 0; from < k; from += rules.group) {
    const unsigned end = from + rules.group < k ? from + rules.group : k;
    const Sum sum = sum_of_group(products, from, end, rules.two_sums);
    const FloatRun before = d;
    d = with_sum(d, sum, rules.two_sums);
    const IntRun suspects = (sum.exponent >= large_exponent) | (exponent_of(before) > large_exponent);
    if (!any(suspects)) continue;
    for (unsigned i = 0; i < run; ++i) {
      float instead = 0;
      const float* a = factors.whole.a + a_place(first + i) + from * M;
      const float* b = factors.whole.b + b_place(first + i) + from * M;
      if (is_odd(a, b, M, end - from, before[i], instead)) d[i] = instead;
    }
  }
  __builtin_memcpy(call.d_registers + r * lane_places + first, &d, sizeof(d));
}

template <unsigned M>
void accumulate_in_groups(const MatrixCall& call) {
  const Shape& shape = *call.shape;
  Factors factors;
  if (call.a == Element::xf32) {
    MatrixCall plain = call;
    plain.a = plain.b = Element::f32;
    spread_both<M>(plain, factors.whole);
    cut_to_xf32(factors.whole.a, shape.blocks * shape.k * M);
    cut_to_xf32(factors.whole.b, shape.blocks * shape.k * M);
  } else {
    spread_both<M>(call, factors.whole);
  }
  const Rules rules = rules_of(call.a);
  const unsigned count = shape.blocks * shape.k * M;
  take_apart(factors.whole.a, count, rules.lowest_exponent, factors.a);
  take_apart(factors.whole.b, count, rules_of(call.b).lowest_exponent, factors.b);
  for (unsigned r = 0; r < shape.results_per_lane(); ++r) {
    for (unsigned first = 0; first < lane_places; first += run) accumulate_run<M>(call, rules, factors, r, first);
  }
}

}  // namespace

namespace WAVEJIT_HOST_SET {
void multiply_in_groups(const MatrixCall& call) {
  if (call.a == Element::f64 || call.a == Element::f32 || call.a == Element::i8) return multiply(call);
  switch (call.shape->m) {
    case 32:
      return accumulate_in_groups<32>(call);
    case 16:
      return accumulate_in_groups<16>(call);
    default:
      return accumulate_in_groups<4>(call);
  }
}
}  // namespace WAVEJIT_HOST_SET

}  // namespace wavejit::simgpu::matrix
