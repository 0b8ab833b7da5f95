// Integer arithmetic, logic, shifts, bit fields and byte operations; moves.
#include "simgpu/vector/kernel.h"
#include "simgpu/vector/kernel_lists.h"

namespace wavejit::simgpu::vector {
namespace {

WAVEJIT_LANE_FUNCTION int32_t low24(int32_t a) { return static_cast<int32_t>(static_cast<uint32_t>(a) << 8) >> 8; }
WAVEJIT_LANE_FUNCTION uint32_t low24(uint32_t a) { return a & 0xffffffu; }
WAVEJIT_LANE_FUNCTION int32_t wrap(int64_t a) { return static_cast<int32_t>(static_cast<uint32_t>(a)); }
WAVEJIT_LANE_FUNCTION int32_t clamp_i32(int64_t a) {
  return a > 0x7fffffff ? 0x7fffffff : (a < -0x80000000LL ? -0x7fffffff - 1 : static_cast<int32_t>(a));
}
WAVEJIT_LANE_FUNCTION uint32_t clamp_u32(int64_t a) {
  return a < 0 ? 0u : (a > 0xffffffffLL ? 0xffffffffu : static_cast<uint32_t>(a));
}
WAVEJIT_LANE_FUNCTION int32_t clamp_i16(int32_t a) { return a > 32767 ? 32767 : (a < -32768 ? -32768 : a); }
WAVEJIT_LANE_FUNCTION int32_t clamp_u16(int64_t a) { return a < 0 ? 0 : (a > 65535 ? 65535 : static_cast<int32_t>(a)); }
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
WAVEJIT_LANE_FUNCTION uint32_t distance(uint32_t a, uint32_t b) { return a > b ? a - b : b - a; }
WAVEJIT_LANE_FUNCTION uint32_t byte_of(uint32_t a, unsigned i) { return (a >> (8 * i)) & 0xffu; }
WAVEJIT_LANE_FUNCTION uint32_t sad_u8(uint32_t a, uint32_t b, uint32_t sum) {
  for (unsigned i = 0; i < 4; ++i) sum += distance(byte_of(a, i), byte_of(b, i));
  return sum;
}
WAVEJIT_LANE_FUNCTION uint32_t masked_sad_u8(uint32_t a, uint32_t reference, uint32_t sum) {
  for (unsigned i = 0; i < 4; ++i) {
    sum += byte_of(reference, i) == 0 ? 0 : distance(byte_of(a, i), byte_of(reference, i));
  }
  return sum;
}
/// Byte `select` of {high, low}; 8..11: the sign of one of its four 16-bit words; 12: zero; above: ones.
WAVEJIT_LANE_FUNCTION uint32_t permuted_byte(uint32_t high, uint32_t low, uint32_t select) {
  const uint32_t word = (select & 4) != 0 ? high : low;
  const uint32_t byte = (word >> (8 * (select & 3))) & 0xffu;
  const uint32_t signs = (select & 2) != 0 ? high : low;
  const uint32_t sign = ((signs >> ((select & 1) != 0 ? 31 : 15)) & 1u) * 0xffu;
  const uint32_t special = select >= 13 ? 0xffu : (select == 12 ? 0u : sign);
  return select < 8 ? byte : special;
}
WAVEJIT_LANE_FUNCTION uint32_t population(uint32_t a) {
  a = a - ((a >> 1) & 0x55555555u);
  a = (a & 0x33333333u) + ((a >> 2) & 0x33333333u);
  a = (a + (a >> 4)) & 0x0f0f0f0fu;
  return (a * 0x01010101u) >> 24;
}
WAVEJIT_LANE_FUNCTION uint32_t reversed(uint32_t a) {
  a = ((a >> 1) & 0x55555555u) | ((a & 0x55555555u) << 1);
  a = ((a >> 2) & 0x33333333u) | ((a & 0x33333333u) << 2);
  a = ((a >> 4) & 0x0f0f0f0fu) | ((a & 0x0f0f0f0fu) << 4);
  return __builtin_bswap32(a);
}
WAVEJIT_LANE_FUNCTION uint32_t truth(uint32_t table, uint32_t a, uint32_t b, uint32_t c) {
  uint32_t result = 0;
  for (unsigned row = 0; row < 8; ++row) {
    const uint32_t term = ((row & 4) != 0 ? a : ~a) & ((row & 2) != 0 ? b : ~b) & ((row & 1) != 0 ? c : ~c);
    result |= ((table >> row) & 1u) != 0 ? term : 0u;
  }
  return result;
}

constexpr unsigned moves = flag_moves_bits;

constexpr Operation operations[] = {
    op<Bits32(Bits32)>("v_mov_b32", [](uint32_t a) { return a; }, moves),
    op<U64(U64)>("v_mov_b64", [](uint64_t a) { return a; }, moves),
    op<U32(U32)>("v_accvgpr_read_b32", [](uint32_t a) { return a; }, moves),
    op<U32(U32)>("v_accvgpr_write_b32", [](uint32_t a) { return a; }, moves),
    op<U32(U32)>("v_accvgpr_mov_b32", [](uint32_t a) { return a; }, moves),
    op<Bits32(Bits32, Bits32, Mask)>(
        "v_cndmask_b32", [](uint32_t a, uint32_t b, bool choose) { return choose ? b : a; }, moves),

    op<U32(U32)>("v_not_b32", [](uint32_t a) { return ~a; }),
    op<U32(U32, U32)>("v_and_b32", [](uint32_t a, uint32_t b) { return a & b; }),
    op<U32(U32, U32)>("v_or_b32", [](uint32_t a, uint32_t b) { return a | b; }),
    op<U32(U32, U32)>("v_xor_b32", [](uint32_t a, uint32_t b) { return a ^ b; }),
    op<U32(U32, U32)>("v_xnor_b32", [](uint32_t a, uint32_t b) { return ~(a ^ b); }),
    op<U32(U32, U32, U32)>("v_and_or_b32", [](uint32_t a, uint32_t b, uint32_t c) { return (a & b) | c; }),
    op<U32(U32, U32, U32)>("v_or3_b32", [](uint32_t a, uint32_t b, uint32_t c) { return a | b | c; }),
    op<U32(U32, U32, U32)>("v_xad_u32", [](uint32_t a, uint32_t b, uint32_t c) { return (a ^ b) + c; }),
    op<U32(U32, U32, U32)>("v_bfi_b32", [](uint32_t a, uint32_t b, uint32_t c) { return (a & b) | (~a & c); }),
    op<U32(U32, U32, U32)>(
        "v_bitop3_b32",
        [](const Call& call, uint32_t a, uint32_t b, uint32_t c) { return truth(call.truth_table, a, b, c); },
        flag_ocp_only),
    op<U16(U16, U16, U16)>(
        "v_bitop3_b16",
        [](const Call& call, int32_t a, int32_t b, int32_t c) {
          return static_cast<int32_t>(truth(call.truth_table, static_cast<uint32_t>(a), static_cast<uint32_t>(b),
                                            static_cast<uint32_t>(c)) &
                                      0xffffu);
        },
        flag_ocp_only | flag_keeps_high_half),

    op<U32(U32, U32)>("v_lshlrev_b32", [](uint32_t a, uint32_t b) { return b << (a & 31); }),
    op<U32(U32, U32)>("v_lshrrev_b32", [](uint32_t a, uint32_t b) { return b >> (a & 31); }),
    op<I32(U32, I32)>("v_ashrrev_i32", [](uint32_t a, int32_t b) { return b >> (a & 31); }),
    op<U64(U32, U64)>("v_lshlrev_b64", [](uint32_t a, uint64_t b) { return b << (a & 63); }),
    op<U64(U32, U64)>("v_lshrrev_b64", [](uint32_t a, uint64_t b) { return b >> (a & 63); }),
    op<I64(U32, I64)>("v_ashrrev_i64", [](uint32_t a, int64_t b) { return b >> (a & 63); }),
    op<U16(U16, U16)>("v_lshlrev_b16", [](int32_t a, int32_t b) { return b << (a & 15); }),
    op<U16(U16, U16)>("v_lshrrev_b16", [](int32_t a, int32_t b) { return b >> (a & 15); }),
    op<I16(U16, I16)>("v_ashrrev_i16", [](int32_t a, int32_t b) { return b >> (a & 15); }),
    op<U32(U32, U32, U32)>("v_lshl_or_b32", [](uint32_t a, uint32_t b, uint32_t c) { return (a << (b & 31)) | c; }),
    op<U32(U32, U32, U32)>("v_lshl_add_u32", [](uint32_t a, uint32_t b, uint32_t c) { return (a << (b & 31)) + c; }),
    op<U32(U32, U32, U32)>("v_add_lshl_u32", [](uint32_t a, uint32_t b, uint32_t c) { return (a + b) << (c & 31); }),
    op<U64(U64, U32, U64)>("v_lshl_add_u64", [](uint64_t a, uint32_t b, uint64_t c) { return (a << (b & 7)) + c; }),
    op<U32(U32, U32, U32)>("v_alignbit_b32",
                           [](uint32_t a, uint32_t b, uint32_t c) {
                             return static_cast<uint32_t>(((static_cast<uint64_t>(a) << 32) | b) >> (c & 31));
                           }),
    op<U32(U32, U32, U32)>("v_alignbyte_b32",
                           [](uint32_t a, uint32_t b, uint32_t c) {
                             return static_cast<uint32_t>(((static_cast<uint64_t>(a) << 32) | b) >> (8 * (c & 3)));
                           }),
    op<U32(U32, U32, U32)>("v_bfe_u32",
                           [](uint32_t a, uint32_t b, uint32_t c) { return (a >> (b & 31)) & ((1u << (c & 31)) - 1); }),
    op<I32(I32, U32, U32)>("v_bfe_i32",
                           [](int32_t a, uint32_t b, uint32_t c) {
                             const uint32_t width = c & 31;
                             const auto field = static_cast<uint32_t>(a >> (b & 31)) & ((1u << width) - 1);
                             const uint32_t sign = width == 0 ? 0u : 1u << ((width - 1) & 31);
                             return static_cast<int32_t>((field ^ sign) - sign);
                           }),
    op<U32(U32, U32)>("v_bfm_b32", [](uint32_t a, uint32_t b) { return ((1u << (a & 31)) - 1) << (b & 31); }),
    op<U32(U32)>("v_bfrev_b32", [](uint32_t a) { return reversed(a); }),
    op<U32(U32, U32)>("v_bcnt_u32_b32", [](uint32_t a, uint32_t b) { return population(a) + b; }),
    op<U32(U32)>("v_ffbh_u32",
                 [](uint32_t a) { return a == 0 ? 0xffffffffu : static_cast<uint32_t>(__builtin_clz(a == 0 ? 1 : a)); }),
    op<U32(U32)>("v_ffbl_b32",
                 [](uint32_t a) { return a == 0 ? 0xffffffffu : static_cast<uint32_t>(__builtin_ctz(a == 0 ? 1 : a)); }),
    op<U32(I32)>("v_ffbh_i32",
                 [](int32_t a) {
                   const auto turned = static_cast<uint32_t>(a < 0 ? ~a : a);
                   return turned == 0 ? 0xffffffffu : static_cast<uint32_t>(__builtin_clz(turned == 0 ? 1 : turned));
                 }),
    op<U32(U32, U32, U32)>("v_perm_b32",
                           [](uint32_t a, uint32_t b, uint32_t select) {
                             uint32_t result = 0;
                             for (unsigned i = 0; i < 4; ++i) {
                               result |= permuted_byte(a, b, byte_of(select, i)) << (8 * i);
                             }
                             return result;
                           }),

    op<U32(U32, U32)>(
        "v_add_u32", [](uint32_t a, uint32_t b) { return a + b; },
        [](uint32_t a, uint32_t b) { return a + b < a ? 0xffffffffu : a + b; }),
    op<U32(U32, U32)>(
        "v_sub_u32", [](uint32_t a, uint32_t b) { return a - b; },
        [](uint32_t a, uint32_t b) { return a < b ? 0u : a - b; }),
    op<U32(U32, U32)>(
        "v_subrev_u32", [](uint32_t a, uint32_t b) { return b - a; },
        [](uint32_t a, uint32_t b) { return b < a ? 0u : b - a; }),
    op<I32(I32, I32)>(
        "v_add_i32", [](int32_t a, int32_t b) { return wrap(int64_t{a} + b); },
        [](int32_t a, int32_t b) { return clamp_i32(int64_t{a} + b); }),
    op<I32(I32, I32)>(
        "v_sub_i32", [](int32_t a, int32_t b) { return wrap(int64_t{a} - b); },
        [](int32_t a, int32_t b) { return clamp_i32(int64_t{a} - b); }),
    op<U32(U32, U32, U32)>("v_add3_u32", [](uint32_t a, uint32_t b, uint32_t c) { return a + b + c; }),
    op<WithCarry<U32>(U32, U32)>(
        "v_add_co_u32", [](uint32_t a, uint32_t b) { return Carrying<uint32_t>{a + b, a + b < a}; },
        [](uint32_t a, uint32_t b) { return Carrying<uint32_t>{a + b < a ? 0xffffffffu : a + b, a + b < a}; }),
    op<WithCarry<U32>(U32, U32)>(
        "v_sub_co_u32", [](uint32_t a, uint32_t b) { return Carrying<uint32_t>{a - b, a < b}; },
        [](uint32_t a, uint32_t b) { return Carrying<uint32_t>{a < b ? 0u : a - b, a < b}; }),
    op<WithCarry<U32>(U32, U32)>(
        "v_subrev_co_u32", [](uint32_t a, uint32_t b) { return Carrying<uint32_t>{b - a, b < a}; },
        [](uint32_t a, uint32_t b) { return Carrying<uint32_t>{b < a ? 0u : b - a, b < a}; }),
    op<WithCarry<U32>(U32, U32, Mask)>("v_addc_co_u32",
                                       [](uint32_t a, uint32_t b, bool carry) {
                                         const uint64_t sum = uint64_t{a} + b + (carry ? 1 : 0);
                                         return Carrying<uint32_t>{static_cast<uint32_t>(sum), (sum >> 32) != 0};
                                       }),
    op<WithCarry<U32>(U32, U32, Mask)>("v_subb_co_u32",
                                       [](uint32_t a, uint32_t b, bool borrow) {
                                         const uint64_t less = uint64_t{b} + (borrow ? 1 : 0);
                                         return Carrying<uint32_t>{a - static_cast<uint32_t>(less), less > a};
                                       }),
    op<WithCarry<U32>(U32, U32, Mask)>("v_subbrev_co_u32",
                                       [](uint32_t a, uint32_t b, bool borrow) {
                                         const uint64_t less = uint64_t{a} + (borrow ? 1 : 0);
                                         return Carrying<uint32_t>{b - static_cast<uint32_t>(less), less > b};
                                       }),

    op<U32(U32, U32)>("v_mul_lo_u32", [](uint32_t a, uint32_t b) { return a * b; }),
    op<U32(U32, U32)>("v_mul_hi_u32",
                      [](uint32_t a, uint32_t b) { return static_cast<uint32_t>((uint64_t{a} * b) >> 32); }),
    op<I32(I32, I32)>("v_mul_hi_i32", [](int32_t a, int32_t b) { return static_cast<int32_t>((int64_t{a} * b) >> 32); }),
    op<I32(I32, I32)>("v_mul_i32_i24", [](int32_t a, int32_t b) { return wrap(int64_t{low24(a)} * low24(b)); }),
    op<I32(I32, I32)>("v_mul_hi_i32_i24",
                      [](int32_t a, int32_t b) { return static_cast<int32_t>((int64_t{low24(a)} * low24(b)) >> 32); }),
    op<U32(U32, U32)>("v_mul_u32_u24", [](uint32_t a, uint32_t b) { return low24(a) * low24(b); }),
    op<U32(U32, U32)>("v_mul_hi_u32_u24",
                      [](uint32_t a, uint32_t b) {
                        return static_cast<uint32_t>((uint64_t{low24(a)} * low24(b)) >> 32);
                      }),
    op<I32(I32, I32, I32)>(
        "v_mad_i32_i24", [](int32_t a, int32_t b, int32_t c) { return wrap(int64_t{low24(a)} * low24(b) + c); },
        [](int32_t a, int32_t b, int32_t c) { return clamp_i32(int64_t{low24(a)} * low24(b) + c); }),
    op<U32(U32, U32, U32)>(
        "v_mad_u32_u24", [](uint32_t a, uint32_t b, uint32_t c) { return low24(a) * low24(b) + c; },
        [](uint32_t a, uint32_t b, uint32_t c) {
          return clamp_u32(static_cast<int64_t>(uint64_t{low24(a)} * low24(b) + c));
        }),
    op<U32(U16, U16, U32)>(
        "v_mad_u32_u16",
        [](int32_t a, int32_t b, uint32_t c) { return static_cast<uint32_t>(a) * static_cast<uint32_t>(b) + c; },
        [](int32_t a, int32_t b, uint32_t c) { return clamp_u32(int64_t{a} * b + c); }),
    op<I32(I16, I16, I32)>(
        "v_mad_i32_i16", [](int32_t a, int32_t b, int32_t c) { return wrap(int64_t{a} * b + c); },
        [](int32_t a, int32_t b, int32_t c) { return clamp_i32(int64_t{a} * b + c); }),
    op<WithCarry<U64>(U32, U32, U64)>("v_mad_u64_u32",
                                      [](uint32_t a, uint32_t b, uint64_t c) {
                                        const uint64_t sum = uint64_t{a} * b + c;
                                        return Carrying<uint64_t>{sum, sum < c};
                                      }),
    op<WithCarry<I64>(I32, I32, I64)>(
        "v_mad_i64_i32",
        [](int32_t a, int32_t b, int64_t c) {
          // Bit 64 of the 65-bit sum of sign-extended terms.
          const int64_t product = int64_t{a} * b;
          const auto sum = static_cast<int64_t>(static_cast<uint64_t>(product) + static_cast<uint64_t>(c));
          const bool overflow = ((product ^ sum) & (c ^ sum)) < 0;
          return Carrying<int64_t>{sum, (sum < 0) != overflow};
        }),

    op<U32(U32, U32)>("v_min_u32", [](uint32_t a, uint32_t b) { return min_of(a, b); }),
    op<U32(U32, U32)>("v_max_u32", [](uint32_t a, uint32_t b) { return max_of(a, b); }),
    op<I32(I32, I32)>("v_min_i32", [](int32_t a, int32_t b) { return min_of(a, b); }),
    op<I32(I32, I32)>("v_max_i32", [](int32_t a, int32_t b) { return max_of(a, b); }),
    op<U32(U32, U32, U32)>("v_min3_u32", [](uint32_t a, uint32_t b, uint32_t c) { return min_of(min_of(a, b), c); }),
    op<U32(U32, U32, U32)>("v_max3_u32", [](uint32_t a, uint32_t b, uint32_t c) { return max_of(max_of(a, b), c); }),
    op<U32(U32, U32, U32)>("v_med3_u32", [](uint32_t a, uint32_t b, uint32_t c) { return middle_of(a, b, c); }),
    op<I32(I32, I32, I32)>("v_min3_i32", [](int32_t a, int32_t b, int32_t c) { return min_of(min_of(a, b), c); }),
    op<I32(I32, I32, I32)>("v_max3_i32", [](int32_t a, int32_t b, int32_t c) { return max_of(max_of(a, b), c); }),
    op<I32(I32, I32, I32)>("v_med3_i32", [](int32_t a, int32_t b, int32_t c) { return middle_of(a, b, c); }),

    op<U32(U32, U32, U32)>("v_sad_u8", [](uint32_t a, uint32_t b, uint32_t c) { return sad_u8(a, b, c); }),
    op<U32(U32, U32, U32)>("v_sad_hi_u8", [](uint32_t a, uint32_t b, uint32_t c) { return (sad_u8(a, b, 0) << 16) + c; }),
    op<U32(U32, U32, U32)>("v_sad_u16",
                           [](uint32_t a, uint32_t b, uint32_t c) {
                             return c + distance(a & 0xffffu, b & 0xffffu) + distance(a >> 16, b >> 16);
                           }),
    op<U32(U32, U32, U32)>("v_sad_u32", [](uint32_t a, uint32_t b, uint32_t c) { return distance(a, b) + c; }),
    op<U32(U32, U32, U32)>("v_msad_u8", [](uint32_t a, uint32_t b, uint32_t c) { return masked_sad_u8(a, b, c); }),
    op<U64(U64, U32, U64)>("v_qsad_pk_u16_u8",
                           [](uint64_t a, uint32_t b, uint64_t c) {
                             uint64_t result = 0;
                             for (unsigned i = 0; i < 4; ++i) {
                               const uint32_t sum = sad_u8(static_cast<uint32_t>(a >> (8 * i)), b,
                                                           static_cast<uint32_t>(c >> (16 * i)) & 0xffffu);
                               result |= static_cast<uint64_t>(sum & 0xffffu) << (16 * i);
                             }
                             return result;
                           }),
    op<U64(U64, U32, U64)>("v_mqsad_pk_u16_u8",
                           [](uint64_t a, uint32_t b, uint64_t c) {
                             uint64_t result = 0;
                             for (unsigned i = 0; i < 4; ++i) {
                               const uint32_t sum = masked_sad_u8(static_cast<uint32_t>(a >> (8 * i)), b,
                                                                  static_cast<uint32_t>(c >> (16 * i)) & 0xffffu);
                               result |= static_cast<uint64_t>(sum & 0xffffu) << (16 * i);
                             }
                             return result;
                           }),
    op<B128(U64, U32, B128)>("v_mqsad_u32_u8",
                             [](uint64_t a, uint32_t b, Quad c) {
                               for (unsigned i = 0; i < 4; ++i) {
                                 c.word[i] = masked_sad_u8(static_cast<uint32_t>(a >> (8 * i)), b, c.word[i]);
                               }
                               return c;
                             }),
    op<U32(U32, U32, U32)>("v_lerp_u8",
                           [](uint32_t a, uint32_t b, uint32_t c) {
                             uint32_t result = 0;
                             for (unsigned i = 0; i < 4; ++i) {
                               result |= ((byte_of(a, i) + byte_of(b, i) + (byte_of(c, i) & 1)) >> 1) << (8 * i);
                             }
                             return result;
                           }),

    op<U16(U16, U16)>(
        "v_add_u16", [](int32_t a, int32_t b) { return a + b; }, [](int32_t a, int32_t b) { return clamp_u16(a + b); }),
    op<U16(U16, U16)>(
        "v_sub_u16", [](int32_t a, int32_t b) { return a - b; }, [](int32_t a, int32_t b) { return clamp_u16(a - b); }),
    op<U16(U16, U16)>(
        "v_subrev_u16", [](int32_t a, int32_t b) { return b - a; },
        [](int32_t a, int32_t b) { return clamp_u16(b - a); }),
    op<I16(I16, I16)>(
        "v_add_i16", [](int32_t a, int32_t b) { return a + b; }, [](int32_t a, int32_t b) { return clamp_i16(a + b); },
        flag_keeps_high_half),
    op<I16(I16, I16)>(
        "v_sub_i16", [](int32_t a, int32_t b) { return a - b; }, [](int32_t a, int32_t b) { return clamp_i16(a - b); },
        flag_keeps_high_half),
    op<U16(U16, U16)>("v_mul_lo_u16", [](int32_t a, int32_t b) { return wrap(int64_t{a} * b); }),
    op<U16(U16, U16, U16)>(
        "v_mad_u16", [](int32_t a, int32_t b, int32_t c) { return wrap(int64_t{a} * b + c); },
        [](int32_t a, int32_t b, int32_t c) { return clamp_u16(int64_t{a} * b + c); }, flag_keeps_high_half),
    op<I16(I16, I16, I16)>(
        "v_mad_i16", [](int32_t a, int32_t b, int32_t c) { return wrap(int64_t{a} * b + c); },
        [](int32_t a, int32_t b, int32_t c) { return clamp_i16(clamp_i32(int64_t{a} * b + c)); }, flag_keeps_high_half),
    op<U16(U16, U16, U16)>(
        "v_mad_legacy_u16", [](int32_t a, int32_t b, int32_t c) { return wrap(int64_t{a} * b + c); },
        [](int32_t a, int32_t b, int32_t c) { return clamp_u16(int64_t{a} * b + c); }),
    op<I16(I16, I16, I16)>(
        "v_mad_legacy_i16", [](int32_t a, int32_t b, int32_t c) { return wrap(int64_t{a} * b + c); },
        [](int32_t a, int32_t b, int32_t c) { return clamp_i16(clamp_i32(int64_t{a} * b + c)); }),
    op<U16(U16, U16)>("v_min_u16", [](int32_t a, int32_t b) { return min_of(a, b); }),
    op<U16(U16, U16)>("v_max_u16", [](int32_t a, int32_t b) { return max_of(a, b); }),
    op<I16(I16, I16)>("v_min_i16", [](int32_t a, int32_t b) { return min_of(a, b); }),
    op<I16(I16, I16)>("v_max_i16", [](int32_t a, int32_t b) { return max_of(a, b); }),
    op<U16(U16, U16, U16)>(
        "v_min3_u16", [](int32_t a, int32_t b, int32_t c) { return min_of(min_of(a, b), c); }, flag_keeps_high_half),
    op<U16(U16, U16, U16)>(
        "v_max3_u16", [](int32_t a, int32_t b, int32_t c) { return max_of(max_of(a, b), c); }, flag_keeps_high_half),
    op<U16(U16, U16, U16)>(
        "v_med3_u16", [](int32_t a, int32_t b, int32_t c) { return middle_of(a, b, c); }, flag_keeps_high_half),
    op<I16(I16, I16, I16)>(
        "v_min3_i16", [](int32_t a, int32_t b, int32_t c) { return min_of(min_of(a, b), c); }, flag_keeps_high_half),
    op<I16(I16, I16, I16)>(
        "v_max3_i16", [](int32_t a, int32_t b, int32_t c) { return max_of(max_of(a, b), c); }, flag_keeps_high_half),
    op<I16(I16, I16, I16)>(
        "v_med3_i16", [](int32_t a, int32_t b, int32_t c) { return middle_of(a, b, c); }, flag_keeps_high_half),

    op<U32(U32)>("v_prng_b32", [](uint32_t a) { return (a << 1) ^ ((a >> 31) != 0 ? 197u : 0u); }, flag_ocp_only),
    op<U16(I32, I32, U32)>(
        "v_ashr_pk_i8_i32",
        [](int32_t a, int32_t b, uint32_t shift) {
          const int32_t x = a >> (shift & 31);
          const int32_t y = b >> (shift & 31);
          const auto narrow = [](int32_t v) { return (v < -128 ? -128 : (v > 127 ? 127 : v)) & 0xff; };
          return narrow(x) | (narrow(y) << 8);
        },
        flag_ocp_only | flag_keeps_high_half),
    op<U16(I32, I32, U32)>(
        "v_ashr_pk_u8_i32",
        [](int32_t a, int32_t b, uint32_t shift) {
          const int32_t x = a >> (shift & 31);
          const int32_t y = b >> (shift & 31);
          const auto narrow = [](int32_t v) { return v < 0 ? 0 : (v > 255 ? 255 : v); };
          return narrow(x) | (narrow(y) << 8);
        },
        flag_ocp_only | flag_keeps_high_half),
};

}  // namespace

namespace WAVEJIT_HOST_SET {

OperationList integer_operations() { return list_of(operations); }

void blend_lanes(uint32_t* destination, const uint32_t* source, uint64_t mask, unsigned dwords) {
  uint32_t chosen[lane_count];
  expand_mask(mask, chosen);
  for (unsigned word = 0; word < dwords; ++word) {
    uint32_t* to = destination + word * lane_count;
    const uint32_t* from = source + word * lane_count;
    WAVEJIT_LANE_LOOP
    for (unsigned lane = 0; lane < lane_count; ++lane) to[lane] = chosen[lane] != 0 ? from[lane] : to[lane];
  }
}

}  // namespace WAVEJIT_HOST_SET

}  // namespace wavejit::simgpu::vector
