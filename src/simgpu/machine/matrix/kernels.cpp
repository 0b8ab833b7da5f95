// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Matrix products of one wave. Operands become float32 (int32, float64) arrays with k outermost; the accumulators stay
// in the layout of the D registers, whose 16-lane runs are pieces of rows.
//
// Arithmetic: k ascending, one fused multiply-add per product, starting from C (or in the order that the call asks for,
// C somewhere in it). Products of 16-bit and narrower floats are exact in float32, so that each step rounds once.
// Denormals are kept everywhere and MODE is ignored. A NaN result is the default NaN, whatever NaN went in.
#include "simgpu/machine/matrix/operands.h"

namespace wavejit::simgpu::matrix {
namespace {

[[gnu::always_inline]] inline FloatRun multiply_add(FloatRun a, FloatRun b, FloatRun c) {
#if defined(__clang__)
  return __builtin_elementwise_fma(a, b, c);
#else
  FloatRun result;
  for (unsigned i = 0; i < run; ++i) result[i] = __builtin_fmaf(a[i], b[i], c[i]);
  return result;
#endif
}
[[gnu::always_inline]] inline IntRun multiply_add(IntRun a, IntRun b, IntRun c) {
  using Unsigned = std::uint32_t __attribute__((vector_size(run * sizeof(std::uint32_t))));
  return reinterpret_cast<IntRun>(reinterpret_cast<Unsigned>(a) * reinterpret_cast<Unsigned>(b) +
                                  reinterpret_cast<Unsigned>(c));
}
[[gnu::always_inline]] inline FloatRun settled(FloatRun value) {
  const FloatRun canonical = FloatRun{} + float_of(default_nan_f32);
  return value == value ? value : canonical;
}
[[gnu::always_inline]] inline IntRun settled(IntRun value) { return value; }

// What nothing has been added to yet: -0 + x is x, whatever x is.
template <typename Value>
constexpr Value nothing = static_cast<Value>(-0.0);

// m = 32 and 16: `Registers` accumulator registers at a time, each four runs of 16 lanes.
template <typename Run, typename Value, unsigned M, unsigned Registers>
[[gnu::always_inline]] inline void accumulate(const MatrixCall& call, const Operands<Value>& operands) {
  const Shape& shape = *call.shape;
  const unsigned k = shape.k;
  const unsigned count = shape.results_per_lane();
  for (unsigned first = 0; first < count; first += Registers) {
    const unsigned block = result_place(shape, 0, first).block;
    const Value* a = operands.a + a_block(call, block) * k * M;
    const Value* b = operands.b + block * k * M;
    // result_place, with what is constant kept constant: `Registers` is 1 or 4.
    const Value* rows = a + (M == 32 ? 8 * (first / 4 % 4) : 0) + first % 4;
    Run sums[Registers][4];
    const auto c_run = [&](unsigned r, unsigned piece) {
      return load_run<Run>(call.c_registers + (first + r) * call.c_stride + piece * run);
    };
    const auto add_products = [&](unsigned from, unsigned to) {
      for (unsigned step = from; step < to; ++step) {
        Run columns[M / run];
        for (unsigned part = 0; part < M / run; ++part) columns[part] = load_run<Run>(b + step * M + part * run);
        for (unsigned r = 0; r < Registers; ++r) {
          for (unsigned piece = 0; piece < 4; ++piece) {
            const Run row = rows[step * M + 4 * (M == 32 ? piece / 2 : piece) + r] - Run{};
            sums[r][piece] = multiply_add(row, columns[piece % (M / run)], sums[r][piece]);
          }
        }
      }
    };
    const bool c_first = call.before_c == 0;
    for (unsigned r = 0; r < Registers; ++r) {
      for (unsigned piece = 0; piece < 4; ++piece) sums[r][piece] = c_first ? c_run(r, piece) : Run{} + nothing<Value>;
    }
    if (!c_first) {
      add_products(0, call.before_c);
      for (unsigned r = 0; r < Registers; ++r) {
        for (unsigned piece = 0; piece < 4; ++piece) sums[r][piece] += c_run(r, piece);
      }
    }
    add_products(call.before_c, k);
    for (unsigned r = 0; r < Registers; ++r) {
      for (unsigned piece = 0; piece < 4; ++piece) {
        const Run value = settled(sums[r][piece]);
        __builtin_memcpy(call.d_registers + (first + r) * lane_places + piece * run, &value, sizeof(value));
      }
    }
  }
}

WAVEJIT_LANE_FUNCTION double step_of(double a, double b, double c) { return __builtin_fma(a, b, c); }
WAVEJIT_LANE_FUNCTION float step_of(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
WAVEJIT_LANE_FUNCTION std::int32_t step_of(std::int32_t a, std::int32_t b, std::int32_t c) {
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(a) * static_cast<std::uint32_t>(b) +
                                   static_cast<std::uint32_t>(c));
}
WAVEJIT_LANE_FUNCTION double plus(double a, double b) { return a + b; }
WAVEJIT_LANE_FUNCTION float plus(float a, float b) { return a + b; }
WAVEJIT_LANE_FUNCTION std::int32_t plus(std::int32_t a, std::int32_t b) { return step_of(a, 1, b); }

// The products of one element, C among them, one after the other. `spread` filled every element that is read here.
template <typename Value>
[[gnu::always_inline]] inline Value sum_of(const MatrixCall& call, const Value* a, const Value* b, Value c) {
  const Shape& shape = *call.shape;
  Value sum = call.before_c == 0 ? c : nothing<Value>;
  for (unsigned step = 0; step < shape.k; ++step) {
    if (step == call.before_c && step != 0) sum = plus(sum, c);
    sum = step_of(a[step * shape.m], b[step * shape.m], sum);
  }
  return call.before_c == shape.k ? plus(sum, c) : sum;
}

WAVEJIT_LANE_FUNCTION std::uint32_t result_bits(float sum) {
  return is_nan(sum) ? default_nan_f32 : numerics::bits_of(sum);
}
WAVEJIT_LANE_FUNCTION std::uint32_t result_bits(std::int32_t sum) { return static_cast<std::uint32_t>(sum); }

// m = 4: 16 blocks, one a group of four lanes.
template <typename Value>
void accumulate_small(const MatrixCall& call, const Operands<Value>& operands) {
  const Shape& shape = *call.shape;
  for (unsigned r = 0; r < shape.results_per_lane(); ++r) {
    for (unsigned lane = 0; lane < lane_places; ++lane) {
      const ResultPlace place = result_place(shape, lane, r);
      const Value* a = operands.a + a_block(call, place.block) * shape.k * shape.m + place.row;
      const Value* b = operands.b + place.block * shape.k * shape.m + place.column;
      const Value c = __builtin_bit_cast(Value, call.c_registers[r * call.c_stride + lane]);
      call.d_registers[r * lane_places + lane] = result_bits(sum_of(call, a, b, c));
    }
  }
}

void multiply_f64(const MatrixCall& call) {
  const Shape& shape = *call.shape;
  Operands<double> operands;
  const auto spread_all = [&]<unsigned M>() {
    spread<M>(call, true, operands.a);
    spread<M>(call, false, operands.b);
  };
  shape.m == 16 ? spread_all.template operator()<16>() : spread_all.template operator()<4>();
  for (unsigned r = 0; r < shape.results_per_lane(); ++r) {
    const std::uint32_t* c = call.c_registers + 2 * r * call.c_stride;
    const std::uint32_t* c_high = call.c_stride == 0 ? c + lane_places : c + call.c_stride;
    std::uint32_t* d = call.d_registers + 2 * r * lane_places;
    for (unsigned lane = 0; lane < lane_places; ++lane) {
      const ResultPlace place = result_place(shape, lane, r);
      const double* a = operands.a + a_block(call, place.block) * shape.k * shape.m + place.row;
      const double* b = operands.b + place.block * shape.k * shape.m + place.column;
      const double from = double_of(c[lane] | (static_cast<std::uint64_t>(c_high[lane]) << 32));
      const double sum = sum_of(call, a, b, call.negate[2] ? negated(from) : from);
      const std::uint64_t bits = is_nan(sum) ? default_nan_f64 : numerics::bits_of(sum);
      d[lane] = static_cast<std::uint32_t>(bits);
      d[lane + lane_places] = static_cast<std::uint32_t>(bits >> 32);
    }
  }
}

// ---- Products that are all zero: of waves without rows, and of tiles beyond the last key

bool is_none(IntRun flags) {
  std::int32_t any = 0;
  for (unsigned i = 0; i < run; ++i) any |= flags[i];
  return any == 0;
}
bool all_zero(const std::uint32_t* words, unsigned count) {
  IntRun any = {};
  for (unsigned i = 0; i < count; i += run) any |= load_run<IntRun>(words + i);
  return is_none(any);
}
// Whether pairs of 16-bit floats are all finite: no exponent has ones alone.
bool all_finite(Element element, const std::uint32_t* words, unsigned count) {
  const IntRun high = IntRun{} + (element == Element::bf16 ? 0x7f800000 : 0x7c000000);
  IntRun any = {};
  for (unsigned i = 0; i < count; i += run) {
    const auto pairs = load_run<IntRun>(words + i);
    any |= ((pairs & high) == high) | (((pairs << 16) & high) == high);
  }
  return is_none(any);
}

// D = C, if zeros are all that is added to it, in whatever order. False where a sign would have to be worked out: -0
// stays -0 behind products of -0 alone.
bool add_nothing(const MatrixCall& call) {
  if (call.a != call.b || (call.a != Element::bf16 && call.a != Element::f16)) return false;
  const unsigned words = call.shape->k_per_lane() / 2 * lane_places;
  const bool of_a = all_zero(call.a_registers, words) && all_finite(call.b, call.b_registers, words);
  if (!of_a && !(all_zero(call.b_registers, words) && all_finite(call.a, call.a_registers, words))) return false;
  const unsigned results = call.shape->results_per_lane();
  const auto c_of = [&](unsigned r, unsigned lane) { return call.c_registers + (r * call.c_stride) + lane; };
  const IntRun minus_zero = IntRun{} + static_cast<std::int32_t>(0x80000000u);
  IntRun any = {};
  for (unsigned r = 0; r < results; ++r)
    for (unsigned lane = 0; lane < lane_places; lane += run) any |= load_run<IntRun>(c_of(r, lane)) == minus_zero;
  if (!is_none(any)) return false;
  for (unsigned r = 0; r < results; ++r)
    for (unsigned lane = 0; lane < lane_places; lane += run) {
      const FloatRun value = settled(load_run<FloatRun>(c_of(r, lane)));
      __builtin_memcpy(call.d_registers + (r * lane_places) + lane, &value, sizeof(value));
    }
  return true;
}

// 32 vector registers of 16 floats hold 16 sums and what feeds them; 16 registers of 8 floats hold 4.
#if defined(__AVX512F__)
constexpr unsigned registers_at_once = 4;
#else
constexpr unsigned registers_at_once = 1;
#endif

template <typename Run, typename Value>
void multiply_as(const MatrixCall& call) {
  Operands<Value> operands;
  switch (call.shape->m) {
    case 32:
      spread_both<32>(call, operands);
      accumulate<Run, Value, 32, registers_at_once>(call, operands);
      break;
    case 16:
      spread_both<16>(call, operands);
      accumulate<Run, Value, 16, registers_at_once>(call, operands);
      break;
    default:
      spread_both<4>(call, operands);
      accumulate_small(call, operands);
      break;
  }
}

}  // namespace

namespace WAVEJIT_HOST_SET {
void multiply(const MatrixCall& call) {
  if (call.a == Element::f64) return multiply_f64(call);
  if (call.a == Element::i8) return multiply_as<IntRun, std::int32_t>(call);
  if (add_nothing(call)) return;
  multiply_as<FloatRun, float>(call);
}
}  // namespace WAVEJIT_HOST_SET

}  // namespace wavejit::simgpu::matrix
