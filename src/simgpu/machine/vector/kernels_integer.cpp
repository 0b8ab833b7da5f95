// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Integer arithmetic, logic, shifts, bit fields and byte operations; moves.
#include "simgpu/machine/vector/kernel.h"
#include "simgpu/machine/vector/kernel_lists.h"

namespace wavejit::simgpu::vector {
namespace {

WAVEJIT_LANE_FUNCTION i32 low24(i32 a) { return static_cast<i32>(static_cast<u32>(a) << 8) >> 8; }
WAVEJIT_LANE_FUNCTION u32 low24(u32 a) { return a & 0xffffffu; }
WAVEJIT_LANE_FUNCTION i32 wrap(i64 a) { return static_cast<i32>(static_cast<u32>(a)); }
WAVEJIT_LANE_FUNCTION i32 clamp_i32(i64 a) {
  return a > 0x7fffffff ? 0x7fffffff : (a < -0x80000000LL ? -0x7fffffff - 1 : static_cast<i32>(a));
}
WAVEJIT_LANE_FUNCTION u32 clamp_u32(i64 a) {
  return a < 0 ? 0u : (a > 0xffffffffLL ? 0xffffffffu : static_cast<u32>(a));
}
WAVEJIT_LANE_FUNCTION i32 clamp_i16(i32 a) { return a > 32767 ? 32767 : (a < -32768 ? -32768 : a); }
WAVEJIT_LANE_FUNCTION i32 clamp_u16(i64 a) { return a < 0 ? 0 : (a > 65535 ? 65535 : static_cast<i32>(a)); }
template <typename T>
WAVEJIT_LANE_FUNCTION T min_of(T a, T b) {
  return a < b ? a : b;
}
template <typename T>
WAVEJIT_LANE_FUNCTION T max_of(T a, T b) {
  return a > b ? a : b;
}
template <typename T>
WAVEJIT_LANE_FUNCTION T middle_of(T a, T b, T c) {
  return max_of(min_of(a, b), min_of(max_of(a, b), c));
}
WAVEJIT_LANE_FUNCTION u32 distance(u32 a, u32 b) { return a > b ? a - b : b - a; }
WAVEJIT_LANE_FUNCTION u32 byte_of(u32 a, unsigned i) { return (a >> (8 * i)) & 0xffu; }
WAVEJIT_LANE_FUNCTION u32 sad_u8(u32 a, u32 b, u32 sum) {
  for (unsigned i = 0; i < 4; ++i) sum += distance(byte_of(a, i), byte_of(b, i));
  return sum;
}
WAVEJIT_LANE_FUNCTION u32 masked_sad_u8(u32 a, u32 reference, u32 sum) {
  for (unsigned i = 0; i < 4; ++i) {
    sum += byte_of(reference, i) == 0 ? 0 : distance(byte_of(a, i), byte_of(reference, i));
  }
  return sum;
}
// Byte `select` of {high, low}; 8..11: the sign of one of its four 16-bit words; 12: zero; above: ones.
WAVEJIT_LANE_FUNCTION u32 permuted_byte(u32 high, u32 low, u32 select) {
  const u32 word = (select & 4) != 0 ? high : low;
  const u32 byte = (word >> (8 * (select & 3))) & 0xffu;
  const u32 signs = (select & 2) != 0 ? high : low;
  const u32 sign = ((signs >> ((select & 1) != 0 ? 31 : 15)) & 1u) * 0xffu;
  const u32 special = select >= 13 ? 0xffu : (select == 12 ? 0u : sign);
  return select < 8 ? byte : special;
}
WAVEJIT_LANE_FUNCTION u32 population(u32 a) {
  a = a - ((a >> 1) & 0x55555555u);
  a = (a & 0x33333333u) + ((a >> 2) & 0x33333333u);
  a = (a + (a >> 4)) & 0x0f0f0f0fu;
  return (a * 0x01010101u) >> 24;
}
WAVEJIT_LANE_FUNCTION u32 reversed(u32 a) {
  a = ((a >> 1) & 0x55555555u) | ((a & 0x55555555u) << 1);
  a = ((a >> 2) & 0x33333333u) | ((a & 0x33333333u) << 2);
  a = ((a >> 4) & 0x0f0f0f0fu) | ((a & 0x0f0f0f0fu) << 4);
  return __builtin_bswap32(a);
}
WAVEJIT_LANE_FUNCTION u32 truth(u32 table, u32 a, u32 b, u32 c) {
  u32 result = 0;
  for (unsigned row = 0; row < 8; ++row) {
    const u32 term = ((row & 4) != 0 ? a : ~a) & ((row & 2) != 0 ? b : ~b) & ((row & 1) != 0 ? c : ~c);
    result |= ((table >> row) & 1u) != 0 ? term : 0u;
  }
  return result;
}

constexpr unsigned moves = flag_moves_bits;

constexpr Operation operations[] = {
    op<Bits32(Bits32)>("v_mov_b32", [](u32 a) { return a; }, moves | flows(Flow::copy)),
    op<U64(U64)>("v_mov_b64", [](u64 a) { return a; }, moves | flows(Flow::move)),
    op<U32(U32)>("v_accvgpr_read_b32", [](u32 a) { return a; }, moves | flows(Flow::move)),
    op<U32(U32)>("v_accvgpr_write_b32", [](u32 a) { return a; }, moves | flows(Flow::move)),
    op<U32(U32)>("v_accvgpr_mov_b32", [](u32 a) { return a; }, moves | flows(Flow::move)),
    op<Bits32(Bits32, Bits32, Mask)>(
        "v_cndmask_b32", [](u32 a, u32 b, bool choose) { return choose ? b : a; },
        moves | flag_plain_rate | flows(Flow::select)),

    op<U32(U32)>("v_not_b32", [](u32 a) { return ~a; }, flows(Flow::bits_xor)),
    op<U32(U32, U32)>("v_and_b32", [](u32 a, u32 b) { return a & b; }, flows(Flow::mask)),
    op<U32(U32, U32)>("v_or_b32", [](u32 a, u32 b) { return a | b; }, flows(Flow::bits_xor)),
    op<U32(U32, U32)>("v_xor_b32", [](u32 a, u32 b) { return a ^ b; }, flows(Flow::bits_xor)),
    op<U32(U32, U32)>("v_xnor_b32", [](u32 a, u32 b) { return ~(a ^ b); }),
    op<U32(U32, U32, U32)>("v_and_or_b32", [](u32 a, u32 b, u32 c) { return (a & b) | c; }),
    op<U32(U32, U32, U32)>("v_or3_b32", [](u32 a, u32 b, u32 c) { return a | b | c; }, flows(Flow::bits_xor)),
    op<U32(U32, U32, U32)>("v_xad_u32", [](u32 a, u32 b, u32 c) { return (a ^ b) + c; }),
    op<U32(U32, U32, U32)>("v_bfi_b32", [](u32 a, u32 b, u32 c) { return (a & b) | (~a & c); }, flows(Flow::insert)),
    op<U32(U32, U32, U32)>(
        "v_bitop3_b32",
        [](const Call& call, u32 a, u32 b, u32 c) { return truth(call.truth_table, a, b, c); },
        flag_ocp_only),
    op<U16(U16, U16, U16)>(
        "v_bitop3_b16",
        [](const Call& call, i32 a, i32 b, i32 c) {
          return static_cast<i32>(truth(call.truth_table, static_cast<u32>(a), static_cast<u32>(b),
                                            static_cast<u32>(c)) &
                                      0xffffu);
        },
        flag_ocp_only | flag_keeps_high_half),

    op<U32(U32, U32)>("v_lshlrev_b32", [](u32 a, u32 b) { return b << (a & 31); }, flows(Flow::move, 1)),
    op<U32(U32, U32)>("v_lshrrev_b32", [](u32 a, u32 b) { return b >> (a & 31); }, flows(Flow::move, 1)),
    op<I32(U32, I32)>("v_ashrrev_i32", [](u32 a, i32 b) { return b >> (a & 31); }),
    op<U64(U32, U64)>("v_lshlrev_b64", [](u32 a, u64 b) { return b << (a & 63); }, flows(Flow::move, 1)),
    op<U64(U32, U64)>("v_lshrrev_b64", [](u32 a, u64 b) { return b >> (a & 63); }, flows(Flow::move, 1)),
    op<I64(U32, I64)>("v_ashrrev_i64", [](u32 a, i64 b) { return b >> (a & 63); }),
    op<U16(U16, U16)>("v_lshlrev_b16", [](i32 a, i32 b) { return b << (a & 15); }, flows(Flow::move, 1)),
    op<U16(U16, U16)>("v_lshrrev_b16", [](i32 a, i32 b) { return b >> (a & 15); }, flows(Flow::move, 1)),
    op<I16(U16, I16)>("v_ashrrev_i16", [](i32 a, i32 b) { return b >> (a & 15); }),
    op<U32(U32, U32, U32)>(
        "v_lshl_or_b32", [](u32 a, u32 b, u32 c) { return (a << (b & 31)) | c; }, flows(Flow::move, 2)),
    op<U32(U32, U32, U32)>("v_lshl_add_u32", [](u32 a, u32 b, u32 c) { return (a << (b & 31)) + c; }),
    op<U32(U32, U32, U32)>("v_add_lshl_u32", [](u32 a, u32 b, u32 c) { return (a + b) << (c & 31); }),
    op<U64(U64, U32, U64)>(
        "v_lshl_add_u64", [](u64 a, u32 b, u64 c) { return (a << (b & 7)) + c; }, flows(Flow::sum)),
    op<U32(U32, U32, U32)>("v_alignbit_b32",
                           [](u32 a, u32 b, u32 c) {
                             return static_cast<u32>(((static_cast<u64>(a) << 32) | b) >> (c & 31));
                           }, flows(Flow::move, 4)),
    op<U32(U32, U32, U32)>("v_alignbyte_b32",
                           [](u32 a, u32 b, u32 c) {
                             return static_cast<u32>(((static_cast<u64>(a) << 32) | b) >> (8 * (c & 3)));
                           }, flows(Flow::move, 4)),
    op<U32(U32, U32, U32)>(
        "v_bfe_u32", [](u32 a, u32 b, u32 c) { return (a >> (b & 31)) & ((1u << (c & 31)) - 1); }, flows(Flow::field)),
    op<I32(I32, U32, U32)>("v_bfe_i32",
                           [](i32 a, u32 b, u32 c) {
                             const u32 width = c & 31;
                             const auto field = static_cast<u32>(a >> (b & 31)) & ((1u << width) - 1);
                             const u32 sign = width == 0 ? 0u : 1u << ((width - 1) & 31);
                             return static_cast<i32>((field ^ sign) - sign);
                           }, flows(Flow::field)),
    op<U32(U32, U32)>("v_bfm_b32", [](u32 a, u32 b) { return ((1u << (a & 31)) - 1) << (b & 31); }),
    op<U32(U32)>("v_bfrev_b32", [](u32 a) { return reversed(a); }),
    op<U32(U32, U32)>("v_bcnt_u32_b32", [](u32 a, u32 b) { return population(a) + b; }),
    op<U32(U32)>("v_ffbh_u32",
                 [](u32 a) { return a == 0 ? 0xffffffffu : static_cast<u32>(__builtin_clz(a == 0 ? 1 : a)); }),
    op<U32(U32)>("v_ffbl_b32",
                 [](u32 a) { return a == 0 ? 0xffffffffu : static_cast<u32>(__builtin_ctz(a == 0 ? 1 : a)); }),
    op<U32(I32)>("v_ffbh_i32",
                 [](i32 a) {
                   const auto turned = static_cast<u32>(a < 0 ? ~a : a);
                   return turned == 0 ? 0xffffffffu : static_cast<u32>(__builtin_clz(turned == 0 ? 1 : turned));
                 }),
    op<U32(U32, U32, U32)>("v_perm_b32",
                           [](u32 a, u32 b, u32 select) {
                             u32 result = 0;
                             for (unsigned i = 0; i < 4; ++i) {
                               result |= permuted_byte(a, b, byte_of(select, i)) << (8 * i);
                             }
                             return result;
                           }, flag_plain_rate | flows(Flow::move, 4)),

    op<U32(U32, U32)>(
        "v_add_u32", [](u32 a, u32 b) { return a + b; },
        [](u32 a, u32 b) { return a + b < a ? 0xffffffffu : a + b; }),
    op<U32(U32, U32)>(
        "v_sub_u32", [](u32 a, u32 b) { return a - b; },
        [](u32 a, u32 b) { return a < b ? 0u : a - b; }),
    op<U32(U32, U32)>(
        "v_subrev_u32", [](u32 a, u32 b) { return b - a; },
        [](u32 a, u32 b) { return b < a ? 0u : b - a; }),
    op<I32(I32, I32)>(
        "v_add_i32", [](i32 a, i32 b) { return wrap(i64{a} + b); },
        [](i32 a, i32 b) { return clamp_i32(i64{a} + b); }),
    op<I32(I32, I32)>(
        "v_sub_i32", [](i32 a, i32 b) { return wrap(i64{a} - b); },
        [](i32 a, i32 b) { return clamp_i32(i64{a} - b); }),
    op<U32(U32, U32, U32)>("v_add3_u32", [](u32 a, u32 b, u32 c) { return a + b + c; }),
    op<WithCarry<U32>(U32, U32)>(
        "v_add_co_u32", [](u32 a, u32 b) { return Carrying<u32>{a + b, a + b < a}; },
        [](u32 a, u32 b) { return Carrying<u32>{a + b < a ? 0xffffffffu : a + b, a + b < a}; }),
    op<WithCarry<U32>(U32, U32)>(
        "v_sub_co_u32", [](u32 a, u32 b) { return Carrying<u32>{a - b, a < b}; },
        [](u32 a, u32 b) { return Carrying<u32>{a < b ? 0u : a - b, a < b}; }),
    op<WithCarry<U32>(U32, U32)>(
        "v_subrev_co_u32", [](u32 a, u32 b) { return Carrying<u32>{b - a, b < a}; },
        [](u32 a, u32 b) { return Carrying<u32>{b < a ? 0u : b - a, b < a}; }),
    op<WithCarry<U32>(U32, U32, Mask)>("v_addc_co_u32",
                                       [](u32 a, u32 b, bool carry) {
                                         const u64 sum = u64{a} + b + (carry ? 1 : 0);
                                         return Carrying<u32>{static_cast<u32>(sum), (sum >> 32) != 0};
                                       }),
    op<WithCarry<U32>(U32, U32, Mask)>("v_subb_co_u32",
                                       [](u32 a, u32 b, bool borrow) {
                                         const u64 less = u64{b} + (borrow ? 1 : 0);
                                         return Carrying<u32>{a - static_cast<u32>(less), less > a};
                                       }),
    op<WithCarry<U32>(U32, U32, Mask)>("v_subbrev_co_u32",
                                       [](u32 a, u32 b, bool borrow) {
                                         const u64 less = u64{a} + (borrow ? 1 : 0);
                                         return Carrying<u32>{b - static_cast<u32>(less), less > b};
                                       }),

    op<U32(U32, U32)>("v_mul_lo_u32", [](u32 a, u32 b) { return a * b; }),
    op<U32(U32, U32)>("v_mul_hi_u32",
                      [](u32 a, u32 b) { return static_cast<u32>((u64{a} * b) >> 32); }),
    op<I32(I32, I32)>("v_mul_hi_i32", [](i32 a, i32 b) { return static_cast<i32>((i64{a} * b) >> 32); }),
    op<I32(I32, I32)>("v_mul_i32_i24", [](i32 a, i32 b) { return wrap(i64{low24(a)} * low24(b)); }),
    op<I32(I32, I32)>("v_mul_hi_i32_i24",
                      [](i32 a, i32 b) { return static_cast<i32>((i64{low24(a)} * low24(b)) >> 32); }),
    op<U32(U32, U32)>("v_mul_u32_u24", [](u32 a, u32 b) { return low24(a) * low24(b); }),
    op<U32(U32, U32)>("v_mul_hi_u32_u24",
                      [](u32 a, u32 b) {
                        return static_cast<u32>((u64{low24(a)} * low24(b)) >> 32);
                      }),
    op<I32(I32, I32, I32)>(
        "v_mad_i32_i24", [](i32 a, i32 b, i32 c) { return wrap(i64{low24(a)} * low24(b) + c); },
        [](i32 a, i32 b, i32 c) { return clamp_i32(i64{low24(a)} * low24(b) + c); }),
    op<U32(U32, U32, U32)>(
        "v_mad_u32_u24", [](u32 a, u32 b, u32 c) { return low24(a) * low24(b) + c; },
        [](u32 a, u32 b, u32 c) {
          return clamp_u32(static_cast<i64>(u64{low24(a)} * low24(b) + c));
        }),
    op<U32(U16, U16, U32)>(
        "v_mad_u32_u16",
        [](i32 a, i32 b, u32 c) { return static_cast<u32>(a) * static_cast<u32>(b) + c; },
        [](i32 a, i32 b, u32 c) { return clamp_u32(i64{a} * b + c); }),
    op<I32(I16, I16, I32)>(
        "v_mad_i32_i16", [](i32 a, i32 b, i32 c) { return wrap(i64{a} * b + c); },
        [](i32 a, i32 b, i32 c) { return clamp_i32(i64{a} * b + c); }),
    op<WithCarry<U64>(U32, U32, U64)>("v_mad_u64_u32",
                                      [](u32 a, u32 b, u64 c) {
                                        const u64 sum = u64{a} * b + c;
                                        return Carrying<u64>{sum, sum < c};
                                      }, flows(Flow::sum)),
    op<WithCarry<I64>(I32, I32, I64)>(
        "v_mad_i64_i32",
        [](i32 a, i32 b, i64 c) {
          // Bit 64 of the 65-bit sum of sign-extended terms.
          const i64 product = i64{a} * b;
          const auto sum = static_cast<i64>(static_cast<u64>(product) + static_cast<u64>(c));
          const bool overflow = ((product ^ sum) & (c ^ sum)) < 0;
          return Carrying<i64>{sum, (sum < 0) != overflow};
        }, flows(Flow::sum)),

    op<U32(U32, U32)>("v_min_u32", [](u32 a, u32 b) { return min_of(a, b); }),
    op<U32(U32, U32)>("v_max_u32", [](u32 a, u32 b) { return max_of(a, b); }),
    op<I32(I32, I32)>("v_min_i32", [](i32 a, i32 b) { return min_of(a, b); }),
    op<I32(I32, I32)>("v_max_i32", [](i32 a, i32 b) { return max_of(a, b); }),
    op<U32(U32, U32, U32)>("v_min3_u32", [](u32 a, u32 b, u32 c) { return min_of(min_of(a, b), c); }),
    op<U32(U32, U32, U32)>("v_max3_u32", [](u32 a, u32 b, u32 c) { return max_of(max_of(a, b), c); }),
    op<U32(U32, U32, U32)>("v_med3_u32", [](u32 a, u32 b, u32 c) { return middle_of(a, b, c); }),
    op<I32(I32, I32, I32)>("v_min3_i32", [](i32 a, i32 b, i32 c) { return min_of(min_of(a, b), c); }),
    op<I32(I32, I32, I32)>("v_max3_i32", [](i32 a, i32 b, i32 c) { return max_of(max_of(a, b), c); }),
    op<I32(I32, I32, I32)>("v_med3_i32", [](i32 a, i32 b, i32 c) { return middle_of(a, b, c); }),

    op<U32(U32, U32, U32)>("v_sad_u8", [](u32 a, u32 b, u32 c) { return sad_u8(a, b, c); }),
    op<U32(U32, U32, U32)>("v_sad_hi_u8", [](u32 a, u32 b, u32 c) { return (sad_u8(a, b, 0) << 16) + c; }),
    op<U32(U32, U32, U32)>("v_sad_u16",
                           [](u32 a, u32 b, u32 c) {
                             return c + distance(a & 0xffffu, b & 0xffffu) + distance(a >> 16, b >> 16);
                           }),
    op<U32(U32, U32, U32)>("v_sad_u32", [](u32 a, u32 b, u32 c) { return distance(a, b) + c; }),
    op<U32(U32, U32, U32)>("v_msad_u8", [](u32 a, u32 b, u32 c) { return masked_sad_u8(a, b, c); }),
    op<U64(U64, U32, U64)>("v_qsad_pk_u16_u8",
                           [](u64 a, u32 b, u64 c) {
                             u64 result = 0;
                             for (unsigned i = 0; i < 4; ++i) {
                               const u32 sum = sad_u8(static_cast<u32>(a >> (8 * i)), b,
                                                           static_cast<u32>(c >> (16 * i)) & 0xffffu);
                               result |= static_cast<u64>(sum & 0xffffu) << (16 * i);
                             }
                             return result;
                           }),
    op<U64(U64, U32, U64)>("v_mqsad_pk_u16_u8",
                           [](u64 a, u32 b, u64 c) {
                             u64 result = 0;
                             for (unsigned i = 0; i < 4; ++i) {
                               const u32 sum = masked_sad_u8(static_cast<u32>(a >> (8 * i)), b,
                                                                  static_cast<u32>(c >> (16 * i)) & 0xffffu);
                               result |= static_cast<u64>(sum & 0xffffu) << (16 * i);
                             }
                             return result;
                           }),
    op<B128(U64, U32, B128)>("v_mqsad_u32_u8",
                             [](u64 a, u32 b, Quad c) {
                               for (unsigned i = 0; i < 4; ++i) {
                                 c.word[i] = masked_sad_u8(static_cast<u32>(a >> (8 * i)), b, c.word[i]);
                               }
                               return c;
                             }),
    op<U32(U32, U32, U32)>("v_lerp_u8",
                           [](u32 a, u32 b, u32 c) {
                             u32 result = 0;
                             for (unsigned i = 0; i < 4; ++i) {
                               result |= ((byte_of(a, i) + byte_of(b, i) + (byte_of(c, i) & 1)) >> 1) << (8 * i);
                             }
                             return result;
                           }),

    op<U16(U16, U16)>(
        "v_add_u16", [](i32 a, i32 b) { return a + b; }, [](i32 a, i32 b) { return clamp_u16(a + b); }),
    op<U16(U16, U16)>(
        "v_sub_u16", [](i32 a, i32 b) { return a - b; }, [](i32 a, i32 b) { return clamp_u16(a - b); }),
    op<U16(U16, U16)>(
        "v_subrev_u16", [](i32 a, i32 b) { return b - a; },
        [](i32 a, i32 b) { return clamp_u16(b - a); }),
    op<I16(I16, I16)>(
        "v_add_i16", [](i32 a, i32 b) { return a + b; }, [](i32 a, i32 b) { return clamp_i16(a + b); },
        flag_keeps_high_half),
    op<I16(I16, I16)>(
        "v_sub_i16", [](i32 a, i32 b) { return a - b; }, [](i32 a, i32 b) { return clamp_i16(a - b); },
        flag_keeps_high_half),
    op<U16(U16, U16)>("v_mul_lo_u16", [](i32 a, i32 b) { return wrap(i64{a} * b); }),
    op<U16(U16, U16, U16)>(
        "v_mad_u16", [](i32 a, i32 b, i32 c) { return wrap(i64{a} * b + c); },
        [](i32 a, i32 b, i32 c) { return clamp_u16(i64{a} * b + c); }, flag_keeps_high_half),
    op<I16(I16, I16, I16)>(
        "v_mad_i16", [](i32 a, i32 b, i32 c) { return wrap(i64{a} * b + c); },
        [](i32 a, i32 b, i32 c) { return clamp_i16(clamp_i32(i64{a} * b + c)); }, flag_keeps_high_half),
    op<U16(U16, U16, U16)>(
        "v_mad_legacy_u16", [](i32 a, i32 b, i32 c) { return wrap(i64{a} * b + c); },
        [](i32 a, i32 b, i32 c) { return clamp_u16(i64{a} * b + c); }),
    op<I16(I16, I16, I16)>(
        "v_mad_legacy_i16", [](i32 a, i32 b, i32 c) { return wrap(i64{a} * b + c); },
        [](i32 a, i32 b, i32 c) { return clamp_i16(clamp_i32(i64{a} * b + c)); }),
    op<U16(U16, U16)>("v_min_u16", [](i32 a, i32 b) { return min_of(a, b); }),
    op<U16(U16, U16)>("v_max_u16", [](i32 a, i32 b) { return max_of(a, b); }),
    op<I16(I16, I16)>("v_min_i16", [](i32 a, i32 b) { return min_of(a, b); }),
    op<I16(I16, I16)>("v_max_i16", [](i32 a, i32 b) { return max_of(a, b); }),
    op<U16(U16, U16, U16)>(
        "v_min3_u16", [](i32 a, i32 b, i32 c) { return min_of(min_of(a, b), c); }, flag_keeps_high_half),
    op<U16(U16, U16, U16)>(
        "v_max3_u16", [](i32 a, i32 b, i32 c) { return max_of(max_of(a, b), c); }, flag_keeps_high_half),
    op<U16(U16, U16, U16)>(
        "v_med3_u16", [](i32 a, i32 b, i32 c) { return middle_of(a, b, c); }, flag_keeps_high_half),
    op<I16(I16, I16, I16)>(
        "v_min3_i16", [](i32 a, i32 b, i32 c) { return min_of(min_of(a, b), c); }, flag_keeps_high_half),
    op<I16(I16, I16, I16)>(
        "v_max3_i16", [](i32 a, i32 b, i32 c) { return max_of(max_of(a, b), c); }, flag_keeps_high_half),
    op<I16(I16, I16, I16)>(
        "v_med3_i16", [](i32 a, i32 b, i32 c) { return middle_of(a, b, c); }, flag_keeps_high_half),

    op<U32(U32)>("v_prng_b32", [](u32 a) { return (a << 1) ^ ((a >> 31) != 0 ? 197u : 0u); }, flag_ocp_only),
    op<U16(I32, I32, U32)>(
        "v_ashr_pk_i8_i32",
        [](i32 a, i32 b, u32 shift) {
          const i32 x = a >> (shift & 31);
          const i32 y = b >> (shift & 31);
          const auto narrow = [](i32 v) { return (v < -128 ? -128 : (v > 127 ? 127 : v)) & 0xff; };
          return narrow(x) | (narrow(y) << 8);
        },
        flag_ocp_only | flag_keeps_high_half),
    op<U16(I32, I32, U32)>(
        "v_ashr_pk_u8_i32",
        [](i32 a, i32 b, u32 shift) {
          const i32 x = a >> (shift & 31);
          const i32 y = b >> (shift & 31);
          const auto narrow = [](i32 v) { return v < 0 ? 0 : (v > 255 ? 255 : v); };
          return narrow(x) | (narrow(y) << 8);
        },
        flag_ocp_only | flag_keeps_high_half),
};

}  // namespace

namespace WAVEJIT_HOST_SET {

OperationList integer_operations() { return list_of(operations); }

void blend_lanes(u32* destination, const u32* source, u64 mask, unsigned dwords) {
  u32 chosen[lane_places];
  expand_mask(mask, chosen);
  for (unsigned word = 0; word < dwords; ++word) {
    u32* to = destination + word * lane_places;
    const u32* from = source + word * lane_places;
    WAVEJIT_LANE_LOOP
    for (unsigned lane = 0; lane < lane_places; ++lane) to[lane] = chosen[lane] != 0 ? from[lane] : to[lane];
  }
}

}  // namespace WAVEJIT_HOST_SET

}  // namespace wavejit::simgpu::vector
