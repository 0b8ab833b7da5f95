// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Compares: a lane mask from two operands. v_cmpx_* shares these kernels.
#include "simgpu/machine/vector/kernel.h"
#include "simgpu/machine/vector/kernel_lists.h"

namespace wavejit::simgpu::vector {
namespace {

// v_cmp_class (CDNA3 ISA): bit 0 signalling NaN, 1 quiet NaN, 2..5 negative infinity, normal, denormal, zero, 6..9
// positive zero, denormal, normal, infinity.
WAVEJIT_LANE_FUNCTION unsigned class_bit(bool nan, bool quiet_nan, bool negative, bool infinite, bool normal,
                                         bool zero) {
  const unsigned positive = infinite ? 9u : (normal ? 8u : (zero ? 6u : 7u));
  const unsigned opposite = infinite ? 2u : (normal ? 3u : (zero ? 5u : 4u));
  return nan ? (quiet_nan ? 1u : 0u) : (negative ? opposite : positive);
}
WAVEJIT_LANE_FUNCTION bool in_class(float a, u32 mask) {
  const int exponent = exponent_field(a);
  return ((mask >> class_bit(is_nan(a), !is_signalling(a), is_negative(a), exponent == 255, exponent > 0, a == 0.0f)) &
          1u) != 0;
}
WAVEJIT_LANE_FUNCTION bool in_class(double a, u32 mask) {
  const int exponent = exponent_field(a);
  return ((mask >> class_bit(is_nan(a), !is_signalling(a), is_negative(a), exponent == 2047, exponent > 0, a == 0.0)) &
          1u) != 0;
}
WAVEJIT_LANE_FUNCTION bool in_class_f16(u32 a, u32 mask) {
  const u32 exponent = (a >> 10) & 31;
  return ((mask >> class_bit(is_nan_f16(a), !is_signalling_f16(a), (a & 0x8000u) != 0, exponent == 31, exponent > 0,
                             (a & 0x7fffu) == 0)) &
          1u) != 0;
}

#define WAVEJIT_FLOAT_COMPARES(suffix, Type, type)                                                      \
  op<bool(Type, Type)>("v_cmp_f_" suffix, [](type /*a*/, type /*b*/) { return false; }),                \
      op<bool(Type, Type)>("v_cmp_lt_" suffix, [](type a, type b) { return a < b; }),                   \
      op<bool(Type, Type)>(                                                                             \
          "v_cmp_eq_" suffix, [](type a, type b) { return a == b; }, flag_compares_equal),              \
      op<bool(Type, Type)>("v_cmp_le_" suffix, [](type a, type b) { return a <= b; }),                  \
      op<bool(Type, Type)>("v_cmp_gt_" suffix, [](type a, type b) { return a > b; }),                   \
      op<bool(Type, Type)>("v_cmp_lg_" suffix, [](type a, type b) { return a < b || a > b; }),          \
      op<bool(Type, Type)>("v_cmp_ge_" suffix, [](type a, type b) { return a >= b; }),                  \
      op<bool(Type, Type)>("v_cmp_o_" suffix, [](type a, type b) { return !is_nan(a) && !is_nan(b); }), \
      op<bool(Type, Type)>("v_cmp_u_" suffix, [](type a, type b) { return is_nan(a) || is_nan(b); }),   \
      op<bool(Type, Type)>("v_cmp_nge_" suffix, [](type a, type b) { return !(a >= b); }),              \
      op<bool(Type, Type)>("v_cmp_nlg_" suffix, [](type a, type b) { return !(a < b || a > b); }),      \
      op<bool(Type, Type)>("v_cmp_ngt_" suffix, [](type a, type b) { return !(a > b); }),               \
      op<bool(Type, Type)>("v_cmp_nle_" suffix, [](type a, type b) { return !(a <= b); }),              \
      op<bool(Type, Type)>("v_cmp_neq_" suffix, [](type a, type b) { return !(a == b); }),              \
      op<bool(Type, Type)>("v_cmp_nlt_" suffix, [](type a, type b) { return !(a < b); }),               \
      op<bool(Type, Type)>("v_cmp_tru_" suffix, [](type /*a*/, type /*b*/) { return true; })

#define WAVEJIT_INTEGER_COMPARES(suffix, Type, type)                                       \
  op<bool(Type, Type)>("v_cmp_f_" suffix, [](type /*a*/, type /*b*/) { return false; }),   \
      op<bool(Type, Type)>("v_cmp_lt_" suffix, [](type a, type b) { return a < b; }),      \
      op<bool(Type, Type)>(                                                                \
          "v_cmp_eq_" suffix, [](type a, type b) { return a == b; }, flag_compares_equal), \
      op<bool(Type, Type)>("v_cmp_le_" suffix, [](type a, type b) { return a <= b; }),     \
      op<bool(Type, Type)>("v_cmp_gt_" suffix, [](type a, type b) { return a > b; }),      \
      op<bool(Type, Type)>("v_cmp_ne_" suffix, [](type a, type b) { return a != b; }),     \
      op<bool(Type, Type)>("v_cmp_ge_" suffix, [](type a, type b) { return a >= b; }),     \
      op<bool(Type, Type)>("v_cmp_t_" suffix, [](type /*a*/, type /*b*/) { return true; })

constexpr Operation operations[] = {
    WAVEJIT_FLOAT_COMPARES("f32", F32, float),
    WAVEJIT_FLOAT_COMPARES("f64", F64, double),
    WAVEJIT_FLOAT_COMPARES("f16", F16, float),
    WAVEJIT_INTEGER_COMPARES("i32", I32, i32),
    WAVEJIT_INTEGER_COMPARES("u32", U32, u32),
    WAVEJIT_INTEGER_COMPARES("i16", I16, i32),
    WAVEJIT_INTEGER_COMPARES("u16", U16, i32),
    WAVEJIT_INTEGER_COMPARES("i64", I64, i64),
    WAVEJIT_INTEGER_COMPARES("u64", U64, u64),
    op<bool(F32, U32)>(
        "v_cmp_class_f32", [](float a, u32 mask) { return in_class(a, mask); }, flag_moves_bits),
    op<bool(F64, U32)>(
        "v_cmp_class_f64", [](double a, u32 mask) { return in_class(a, mask); }, flag_moves_bits),
    op<bool(Half, U16)>(
        "v_cmp_class_f16", [](u32 a, i32 mask) { return in_class_f16(a, static_cast<u32>(mask)); }, flag_moves_bits),
};

}  // namespace

namespace WAVEJIT_HOST_SET {
OperationList compare_operations() { return list_of(operations); }
}  // namespace WAVEJIT_HOST_SET

}  // namespace wavejit::simgpu::vector
