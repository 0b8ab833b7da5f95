// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Conversions to and from 8-bit floats in both flavours, and the scaled conversions of 8-, 6- and 4-bit floats that
// gfx950 added (v_cvt_scalef32_*): a value is multiplied, or before narrowing divided, by 2^(exponent of the scale
// operand - 127).
#include "simgpu/machine/numerics/transcendental.h"
#include "simgpu/machine/vector/kernel.h"
#include "simgpu/machine/vector/kernel_lists.h"

namespace wavejit::simgpu::vector {
namespace {

WAVEJIT_LANE_FUNCTION double scale_of(u32 bits) { return power_of_two(static_cast<int>((bits >> 23) & 0xff) - 127); }
WAVEJIT_LANE_FUNCTION double inverse_scale_of(u32 bits) {
  return power_of_two(127 - static_cast<int>((bits >> 23) & 0xff));
}
WAVEJIT_LANE_FUNCTION u32 next_random(u32 a) { return (a << 1) ^ ((a >> 31) != 0 ? 197u : 0u); }
WAVEJIT_LANE_FUNCTION u32 with_byte(u32 word, unsigned index, u32 byte) {
  return (word & ~(0xffu << (8 * index))) | (byte << (8 * index));
}
WAVEJIT_LANE_FUNCTION u32 with_half(u32 word, unsigned index, u32 half) {
  return (word & ~(0xffffu << (16 * index))) | (half << (16 * index));
}

// What the wide side of a conversion is made of.
struct Single {
  static constexpr unsigned bits = 32;
  static double load(u32 word) { return static_cast<double>(float_of(word)); }
  static u32 store(double value) { return bits_of(static_cast<float>(value)); }
};
struct HalfPrecision {
  static constexpr unsigned bits = 16;
  static double load(u32 half) { return static_cast<double>(f16_to_f32(half)); }
  static u32 store(double value) { return f32_to_f16(narrowed_to_odd(value)); }
};
struct Brain {
  static constexpr unsigned bits = 16;
  static double load(u32 half) { return static_cast<double>(bf16_to_f32(half)); }
  static u32 store(double value) { return f32_to_bf16(narrowed_to_odd(value)); }
};

template <typename Wide>
WAVEJIT_LANE_FUNCTION double element(const u32* block, unsigned lane, unsigned index) {
  if constexpr (Wide::bits == 32) return Wide::load(block[lane + index * lane_places]);
  return Wide::load((block[lane + (index / 2) * lane_places] >> (16 * (index & 1))) & 0xffffu);
}
template <typename Wide>
WAVEJIT_LANE_FUNCTION void set_element(u32* block, unsigned lane, unsigned index, double value) {
  if constexpr (Wide::bits == 32) {
    block[lane + index * lane_places] = Wide::store(value);
  } else {
    u32& word = block[lane + (index / 2) * lane_places];
    word = with_half(word, index & 1, Wide::store(value));
  }
}

// v_cvt_scalef32_{pk_,}{f32,f16,bf16}_{fp8,bf8,fp4}: op_sel chooses the byte or word of the source.
template <typename Wide, typename Narrow, bool Pair>
void widen(Call& call) {
  const u32* source = call.source[0];
  const u32* scales = call.source[1];
  for (unsigned lane = 0; lane < lane_places; ++lane) {
    const double scale = scale_of(scales[lane]);
    u32 bits = source[lane];
    if constexpr (!Pair || Narrow::bits == 4) {
      bits = (bits >> (8 * (call.op_sel & 3))) & 0xffu;
    } else {
      bits = (bits >> (16 * (call.op_sel & 1))) & 0xffffu;
    }
    u32 out[2 * lane_places];
    out[lane] = 0;
    set_element<Wide>(out, lane, 0, static_cast<double>(small_to_f32<Narrow>(bits)) * scale);
    if constexpr (Pair) {
      set_element<Wide>(out, lane, 1, static_cast<double>(small_to_f32<Narrow>(bits >> Narrow::bits)) * scale);
    }
    call.result[lane] = out[lane];
    if constexpr (Pair && Wide::bits == 32) call.result[lane + lane_places] = out[lane + lane_places];
  }
}

// v_cvt_scalef32_f16_{fp8,bf8}: one half of the destination, the other is kept.
template <typename Narrow>
void widen_to_half(Call& call) {
  for (unsigned lane = 0; lane < lane_places; ++lane) {
    const u32 bits = (call.source[0][lane] >> (8 * (call.op_sel & 3))) & 0xffu;
    const double value = static_cast<double>(small_to_f32<Narrow>(bits)) * scale_of(call.source[1][lane]);
    call.result[lane] = with_half(call.source[2][lane], (call.op_sel >> 3) & 1, HalfPrecision::store(value));
  }
}

template <typename Narrow>
WAVEJIT_LANE_FUNCTION void store_pair(u32* result, const u32* old, unsigned lane, unsigned op_sel, u32 low, u32 high) {
  if constexpr (Narrow::bits == 4) {
    result[lane] = with_byte(old[lane], (op_sel >> 2) & 3, low | (high << 4));
  } else {
    result[lane] = with_half(old[lane], (op_sel >> 3) & 1, low | (high << 8));
  }
}

// v_cvt_scalef32_pk_{fp8,bf8,fp4}_f32: two float32 operands and a scale.
template <typename Narrow>
void narrow_two(Call& call) {
  const bool saturate = call.saturates_overflow();
  for (unsigned lane = 0; lane < lane_places; ++lane) {
    const double inverse = inverse_scale_of(call.source[2][lane]);
    const u32 low = f32_to_small<Narrow>(Single::load(call.source[0][lane]) * inverse, saturate);
    const u32 high = f32_to_small<Narrow>(Single::load(call.source[1][lane]) * inverse, saturate);
    store_pair<Narrow>(call.result, call.source[3], lane, call.op_sel, low, high);
  }
}
// v_cvt_scalef32_pk_{fp8,bf8,fp4}_{f16,bf16}: a packed operand and a scale.
template <typename Wide, typename Narrow>
void narrow_pair(Call& call) {
  const bool saturate = call.saturates_overflow();
  for (unsigned lane = 0; lane < lane_places; ++lane) {
    const double inverse = inverse_scale_of(call.source[1][lane]);
    const u32 low = f32_to_small<Narrow>(element<Wide>(call.source[0], lane, 0) * inverse, saturate);
    const u32 high = f32_to_small<Narrow>(element<Wide>(call.source[0], lane, 1) * inverse, saturate);
    store_pair<Narrow>(call.result, call.source[2], lane, call.op_sel, low, high);
  }
}
// v_cvt_scalef32_sr_pk_fp4_*: stochastic rounding of a pair.
template <typename Wide>
void narrow_pair_randomly(Call& call) {
  const bool saturate = call.saturates_overflow();
  for (unsigned lane = 0; lane < lane_places; ++lane) {
    const double inverse = inverse_scale_of(call.source[2][lane]);
    u32 noise = call.source[1][lane];
    const u32 low = f32_to_small<Fp4>(element<Wide>(call.source[0], lane, 0) * inverse, saturate, &noise);
    noise = next_random(noise);
    const u32 high = f32_to_small<Fp4>(element<Wide>(call.source[0], lane, 1) * inverse, saturate, &noise);
    store_pair<Fp4>(call.result, call.source[3], lane, call.op_sel, low, high);
  }
}
// v_cvt_scalef32_sr_{fp8,bf8}_*: one value into the byte that op_sel names.
template <typename Wide, typename Narrow>
void narrow_one_randomly(Call& call) {
  const bool saturate = call.saturates_overflow();
  for (unsigned lane = 0; lane < lane_places; ++lane) {
    const double inverse = inverse_scale_of(call.source[2][lane]);
    const u32 noise = call.source[1][lane];
    // op_sel 0 chooses the half of a 16-bit source.
    const unsigned index = Wide::bits == 16 ? call.op_sel & 1 : 0;
    const u32 byte = f32_to_small<Narrow>(element<Wide>(call.source[0], lane, index) * inverse, saturate, &noise);
    call.result[lane] = with_byte(call.source[3][lane], (call.op_sel >> 2) & 3, byte);
  }
}
// v_cvt_sr_{fp8,bf8}_f32: as above, without a scale.
template <typename Narrow>
void narrow_unscaled_randomly(Call& call) {
  const bool saturate = call.saturates_overflow();
  for (unsigned lane = 0; lane < lane_places; ++lane) {
    const u32 noise = call.source[1][lane];
    const u32 byte = f32_to_small<Narrow>(Single::load(call.source[0][lane]), saturate, &noise);
    call.result[lane] = with_byte(call.source[2][lane], (call.op_sel >> 2) & 3, byte);
  }
}

// 32 six-bit values in six registers.
template <typename Wide, typename Narrow>
void widen_32(Call& call) {
  for (unsigned lane = 0; lane < lane_places; ++lane) {
    const double scale = scale_of(call.source[1][lane]);
    for (unsigned i = 0; i < 32; ++i) {
      const unsigned bit = i * 6;
      u64 window = call.source[0][lane + (bit / 32) * lane_places];
      if (bit / 32 < 5) window |= static_cast<u64>(call.source[0][lane + (bit / 32 + 1) * lane_places]) << 32;
      const auto encoded = static_cast<u32>(window >> (bit % 32)) & 63u;
      set_element<Wide>(call.result, lane, i, static_cast<double>(small_to_f32<Narrow>(encoded)) * scale);
    }
  }
}
WAVEJIT_LANE_FUNCTION void put_six_bits(u32 (&words)[6], unsigned index, u32 value) {
  const unsigned bit = index * 6;
  words[bit / 32] |= value << (bit % 32);
  if (bit % 32 > 26) words[bit / 32 + 1] |= value >> (32 - bit % 32);
}
template <typename Wide, typename Narrow, bool Random>
void narrow_32(Call& call) {
  for (unsigned lane = 0; lane < lane_places; ++lane) {
    const double inverse = inverse_scale_of(call.source[Random ? 2 : 1][lane]);
    u32 noise = Random ? call.source[1][lane] : 0;
    u32 words[6] = {};
    for (unsigned i = 0; i < 32; ++i) {
      put_six_bits(
          words, i,
          f32_to_small<Narrow>(element<Wide>(call.source[0], lane, i) * inverse, true, Random ? &noise : nullptr));
      noise = next_random(noise);
    }
    for (unsigned i = 0; i < 6; ++i) call.result[lane + i * lane_places] = words[i];
  }
}
// v_cvt_scalef32_2xpk16_*: the two sources interleave.
template <typename Narrow>
void narrow_twice_16(Call& call) {
  for (unsigned lane = 0; lane < lane_places; ++lane) {
    const double inverse = inverse_scale_of(call.source[2][lane]);
    u32 words[6] = {};
    for (unsigned i = 0; i < 32; ++i) {
      put_six_bits(words, i, f32_to_small<Narrow>(element<Single>(call.source[i & 1], lane, i / 2) * inverse, true));
    }
    for (unsigned i = 0; i < 6; ++i) call.result[lane + i * lane_places] = words[i];
  }
}

constexpr unsigned scaled = flag_partial | flag_ocp_only | flag_own_rounding | flag_kernel_op_sel | flag_moves_bits;
constexpr unsigned merging = scaled | flag_accumulates;
constexpr Kind raw = Kind::raw;

// Rows for both flavours of the 8-bit formats.
#define WAVEJIT_8BIT_CONVERSIONS(Fp8Type, Bf8Type, flavour)                                                        \
  op<F32(Raw)>(                                                                                                    \
      "v_cvt_f32_fp8", [](u32 a) { return small_to_f32<Fp8Type>(a & 0xffu); }, (flavour) | flag_own_rounding),     \
      op<F32(Raw)>(                                                                                                \
          "v_cvt_f32_bf8", [](u32 a) { return small_to_f32<Bf8Type>(a & 0xffu); }, (flavour) | flag_own_rounding), \
      op<PairF32(Raw)>(                                                                                            \
          "v_cvt_pk_f32_fp8",                                                                                      \
          [](u32 a) { return Pair32{small_to_f32<Fp8Type>(a & 0xffu), small_to_f32<Fp8Type>((a >> 8) & 0xffu)}; }, \
          (flavour) | flag_own_rounding | flows(Flow::pack)),                                                      \
      op<PairF32(Raw)>(                                                                                            \
          "v_cvt_pk_f32_bf8",                                                                                      \
          [](u32 a) { return Pair32{small_to_f32<Bf8Type>(a & 0xffu), small_to_f32<Bf8Type>((a >> 8) & 0xffu)}; }, \
          (flavour) | flag_own_rounding | flows(Flow::pack)),                                                      \
      op<U16(F32, F32)>(                                                                                           \
          "v_cvt_pk_fp8_f32",                                                                                      \
          [](const Call& call, float a, float b) {                                                                 \
            const bool saturate = call.saturates_overflow();                                                       \
            return static_cast<i32>(f32_to_small<Fp8Type>(static_cast<double>(a), saturate) |                      \
                                    (f32_to_small<Fp8Type>(static_cast<double>(b), saturate) << 8));               \
          },                                                                                                       \
          (flavour) | flag_own_rounding | flag_keeps_high_half | flows(Flow::pack)),                               \
      op<U16(F32, F32)>(                                                                                           \
          "v_cvt_pk_bf8_f32",                                                                                      \
          [](const Call& call, float a, float b) {                                                                 \
            const bool saturate = call.saturates_overflow();                                                       \
            return static_cast<i32>(f32_to_small<Bf8Type>(static_cast<double>(a), saturate) |                      \
                                    (f32_to_small<Bf8Type>(static_cast<double>(b), saturate) << 8));               \
          },                                                                                                       \
          (flavour) | flag_own_rounding | flag_keeps_high_half | flows(Flow::pack)),                               \
      whole("v_cvt_sr_fp8_f32", &narrow_unscaled_randomly<Fp8Type>, Kind::b32, Kind::f32, raw, raw, 3,             \
            (flavour) | flag_own_rounding | flag_kernel_op_sel | flag_accumulates),                                \
      whole("v_cvt_sr_bf8_f32", &narrow_unscaled_randomly<Bf8Type>, Kind::b32, Kind::f32, raw, raw, 3,             \
            (flavour) | flag_own_rounding | flag_kernel_op_sel | flag_accumulates)

constexpr Operation four(const char* name, Kernel kernel, Kind a, Kind b) {
  Operation operation = whole(name, kernel, Kind::b32, a, b, raw, 4, merging);
  operation.source[3] = raw;
  return operation;
}

constexpr Operation operations[] = {
    WAVEJIT_8BIT_CONVERSIONS(Fp8Fnuz, Bf8Fnuz, flag_fnuz_only),
    WAVEJIT_8BIT_CONVERSIONS(Fp8Ocp, Bf8Ocp, flag_ocp_only),

    whole("v_cvt_scalef32_f32_fp8", &widen<Single, Fp8Ocp, false>, Kind::b32, raw, raw, raw, 2, scaled),
    whole("v_cvt_scalef32_f32_bf8", &widen<Single, Bf8Ocp, false>, Kind::b32, raw, raw, raw, 2, scaled),
    whole("v_cvt_scalef32_f16_fp8", &widen_to_half<Fp8Ocp>, Kind::b32, raw, raw, raw, 3, merging),
    whole("v_cvt_scalef32_f16_bf8", &widen_to_half<Bf8Ocp>, Kind::b32, raw, raw, raw, 3, merging),
    whole("v_cvt_scalef32_pk_f32_fp8", &widen<Single, Fp8Ocp, true>, Kind::b64, raw, raw, raw, 2, scaled),
    whole("v_cvt_scalef32_pk_f32_bf8", &widen<Single, Bf8Ocp, true>, Kind::b64, raw, raw, raw, 2, scaled),
    whole("v_cvt_scalef32_pk_f32_fp4", &widen<Single, Fp4, true>, Kind::b64, raw, raw, raw, 2, scaled),
    whole("v_cvt_scalef32_pk_f16_fp8", &widen<HalfPrecision, Fp8Ocp, true>, Kind::b32, raw, raw, raw, 2, scaled),
    whole("v_cvt_scalef32_pk_f16_bf8", &widen<HalfPrecision, Bf8Ocp, true>, Kind::b32, raw, raw, raw, 2, scaled),
    whole("v_cvt_scalef32_pk_f16_fp4", &widen<HalfPrecision, Fp4, true>, Kind::b32, raw, raw, raw, 2, scaled),
    whole("v_cvt_scalef32_pk_bf16_fp8", &widen<Brain, Fp8Ocp, true>, Kind::b32, raw, raw, raw, 2, scaled),
    whole("v_cvt_scalef32_pk_bf16_bf8", &widen<Brain, Bf8Ocp, true>, Kind::b32, raw, raw, raw, 2, scaled),
    whole("v_cvt_scalef32_pk_bf16_fp4", &widen<Brain, Fp4, true>, Kind::b32, raw, raw, raw, 2, scaled),

    four("v_cvt_scalef32_pk_fp8_f32", &narrow_two<Fp8Ocp>, Kind::f32, Kind::f32),
    four("v_cvt_scalef32_pk_bf8_f32", &narrow_two<Bf8Ocp>, Kind::f32, Kind::f32),
    four("v_cvt_scalef32_pk_fp4_f32", &narrow_two<Fp4>, Kind::f32, Kind::f32),
    whole("v_cvt_scalef32_pk_fp8_f16", &narrow_pair<HalfPrecision, Fp8Ocp>, Kind::b32, raw, raw, raw, 3, merging),
    whole("v_cvt_scalef32_pk_bf8_f16", &narrow_pair<HalfPrecision, Bf8Ocp>, Kind::b32, raw, raw, raw, 3, merging),
    whole("v_cvt_scalef32_pk_fp4_f16", &narrow_pair<HalfPrecision, Fp4>, Kind::b32, raw, raw, raw, 3, merging),
    whole("v_cvt_scalef32_pk_fp8_bf16", &narrow_pair<Brain, Fp8Ocp>, Kind::b32, raw, raw, raw, 3, merging),
    whole("v_cvt_scalef32_pk_bf8_bf16", &narrow_pair<Brain, Bf8Ocp>, Kind::b32, raw, raw, raw, 3, merging),
    whole("v_cvt_scalef32_pk_fp4_bf16", &narrow_pair<Brain, Fp4>, Kind::b32, raw, raw, raw, 3, merging),
    four("v_cvt_scalef32_sr_pk_fp4_f32", &narrow_pair_randomly<Single>, Kind::b64, raw),
    four("v_cvt_scalef32_sr_pk_fp4_f16", &narrow_pair_randomly<HalfPrecision>, raw, raw),
    four("v_cvt_scalef32_sr_pk_fp4_bf16", &narrow_pair_randomly<Brain>, raw, raw),
    four("v_cvt_scalef32_sr_fp8_f32", &narrow_one_randomly<Single, Fp8Ocp>, Kind::f32, raw),
    four("v_cvt_scalef32_sr_bf8_f32", &narrow_one_randomly<Single, Bf8Ocp>, Kind::f32, raw),
    four("v_cvt_scalef32_sr_fp8_f16", &narrow_one_randomly<HalfPrecision, Fp8Ocp>, raw, raw),
    four("v_cvt_scalef32_sr_bf8_f16", &narrow_one_randomly<HalfPrecision, Bf8Ocp>, raw, raw),
    four("v_cvt_scalef32_sr_fp8_bf16", &narrow_one_randomly<Brain, Fp8Ocp>, raw, raw),
    four("v_cvt_scalef32_sr_bf8_bf16", &narrow_one_randomly<Brain, Bf8Ocp>, raw, raw),

#define WAVEJIT_6BIT_CONVERSIONS(name, Narrow)                                                                         \
  whole("v_cvt_scalef32_pk32_f32_" name, &widen_32<Single, Narrow>, Kind::wide, Kind::wide, raw, raw, 2, scaled),      \
      whole("v_cvt_scalef32_pk32_f16_" name, &widen_32<HalfPrecision, Narrow>, Kind::wide, Kind::wide, raw, raw, 2,    \
            scaled),                                                                                                   \
      whole("v_cvt_scalef32_pk32_bf16_" name, &widen_32<Brain, Narrow>, Kind::wide, Kind::wide, raw, raw, 2, scaled),  \
      whole("v_cvt_scalef32_pk32_" name "_f16", &narrow_32<HalfPrecision, Narrow, false>, Kind::wide, Kind::wide, raw, \
            raw, 2, scaled),                                                                                           \
      whole("v_cvt_scalef32_pk32_" name "_bf16", &narrow_32<Brain, Narrow, false>, Kind::wide, Kind::wide, raw, raw,   \
            2, scaled),                                                                                                \
      whole("v_cvt_scalef32_sr_pk32_" name "_f32", &narrow_32<Single, Narrow, true>, Kind::wide, Kind::wide, raw, raw, \
            3, scaled),                                                                                                \
      whole("v_cvt_scalef32_sr_pk32_" name "_f16", &narrow_32<HalfPrecision, Narrow, true>, Kind::wide, Kind::wide,    \
            raw, raw, 3, scaled),                                                                                      \
      whole("v_cvt_scalef32_sr_pk32_" name "_bf16", &narrow_32<Brain, Narrow, true>, Kind::wide, Kind::wide, raw, raw, \
            3, scaled),                                                                                                \
      whole("v_cvt_scalef32_2xpk16_" name "_f32", &narrow_twice_16<Narrow>, Kind::wide, Kind::wide, Kind::wide, raw,   \
            3, scaled)
    WAVEJIT_6BIT_CONVERSIONS("fp6", Fp6),
    WAVEJIT_6BIT_CONVERSIONS("bf6", Bf6),
};

}  // namespace

namespace WAVEJIT_HOST_SET {
OperationList small_float_operations() { return list_of(operations); }
}  // namespace WAVEJIT_HOST_SET

}  // namespace wavejit::simgpu::vector
