// SOP1, SOP2, SOPC and the arithmetic part of SOPK. Semantics: CDNA3 ISA, chapter 12.1 to 12.4 (instruction
// pseudo-code).
#include <bit>
#include <cstdint>
#include <type_traits>

#include "simgpu/decode/registry.h"
#include "simgpu/wave/wave.h"

namespace wavejit::simgpu {
namespace {

using u32 = std::uint32_t;
using i32 = std::int32_t;
using u64 = std::uint64_t;
using i64 = std::int64_t;

template <typename T>
T read(const Wave& wave, const Operand& operand) {
  if constexpr (sizeof(T) == 8) {
    if (operand.kind == OperandKind::literal) return static_cast<T>(operand.constant_b64(std::is_signed_v<T>));
    return static_cast<T>(wave.scalar64(operand));
  } else {
    return static_cast<T>(wave.scalar(operand));
  }
}

template <typename T>
void write(Wave& wave, const Instruction& instruction, T value) {
  if constexpr (sizeof(T) == 8) {
    wave.set_scalar64(instruction.destination[0], static_cast<u64>(value));
  } else {
    wave.set_scalar(instruction.destination[0], static_cast<u32>(value));
  }
}

enum class Scc : std::uint8_t { keep, non_zero };

// D = f(S0, S1); SCC as `scc` says.
template <typename Result, typename First, typename Second, Scc scc, Result (*function)(First, Second)>
void binary(Wave& wave, const Instruction& instruction) {
  const Result result = function(read<First>(wave, instruction.source[0]), read<Second>(wave, instruction.source[1]));
  write<Result>(wave, instruction, result);
  if constexpr (scc == Scc::non_zero) wave.scc = result != 0 ? 1 : 0;
}

// D = f(S0)
template <typename Result, typename First, Scc scc, Result (*function)(First)>
void unary(Wave& wave, const Instruction& instruction) {
  const Result result = function(read<First>(wave, instruction.source[0]));
  write<Result>(wave, instruction, result);
  if constexpr (scc == Scc::non_zero) wave.scc = result != 0 ? 1 : 0;
}

// SCC = f(S0, S1)
template <typename First, typename Second, bool (*function)(First, Second)>
void compare(Wave& wave, const Instruction& instruction) {
  wave.scc = function(read<First>(wave, instruction.source[0]), read<Second>(wave, instruction.source[1])) ? 1 : 0;
}

template <typename T>
T bitwise_and(T a, T b) {
  return a & b;
}
template <typename T>
T bitwise_or(T a, T b) {
  return a | b;
}
template <typename T>
T bitwise_xor(T a, T b) {
  return a ^ b;
}
template <typename T>
T bitwise_andn2(T a, T b) {
  return a & ~b;
}
template <typename T>
T bitwise_orn2(T a, T b) {
  return a | ~b;
}
template <typename T>
T bitwise_andn1(T a, T b) {
  return ~a & b;
}
template <typename T>
T bitwise_orn1(T a, T b) {
  return ~a | b;
}
template <typename T>
T bitwise_nand(T a, T b) {
  return ~(a & b);
}
template <typename T>
T bitwise_nor(T a, T b) {
  return ~(a | b);
}
template <typename T>
T bitwise_xnor(T a, T b) {
  return ~(a ^ b);
}

template <typename T>
T shift_left(T a, u32 b) {
  return a << (b & (8 * sizeof(T) - 1));
}
template <typename T>
T shift_right(T a, u32 b) {
  return a >> (b & (8 * sizeof(T) - 1));
}

template <typename T>
T field_mask(u32 size, u32 offset) {
  constexpr u32 top = 8 * sizeof(T) - 1;
  return static_cast<T>(((T{1} << (size & top)) - 1) << (offset & top));
}

// S1 holds the offset in its low bits and the size in bits 22:16.
template <typename T>
T extract_field(T value, u32 control) {
  using Unsigned = std::make_unsigned_t<T>;
  constexpr u32 bits = 8 * sizeof(T);
  const u32 offset = control & (bits - 1);
  u32 size = (control >> 16) & 0x7f;
  if (size == 0) return 0;
  if (size > bits - offset) size = bits - offset;
  const auto moved = static_cast<Unsigned>(static_cast<Unsigned>(value) << (bits - offset - size));
  return static_cast<T>(static_cast<T>(moved) >> (bits - size));
}

void add_u32(Wave& wave, const Instruction& instruction) {
  const u64 sum = u64{read<u32>(wave, instruction.source[0])} + read<u32>(wave, instruction.source[1]);
  write<u32>(wave, instruction, static_cast<u32>(sum));
  wave.scc = static_cast<u32>(sum >> 32);
}
void sub_u32(Wave& wave, const Instruction& instruction) {
  const u32 a = read<u32>(wave, instruction.source[0]);
  const u32 b = read<u32>(wave, instruction.source[1]);
  write<u32>(wave, instruction, a - b);
  wave.scc = b > a ? 1 : 0;
}
void addc_u32(Wave& wave, const Instruction& instruction) {
  const u64 sum = u64{read<u32>(wave, instruction.source[0])} + read<u32>(wave, instruction.source[1]) + wave.scc;
  write<u32>(wave, instruction, static_cast<u32>(sum));
  wave.scc = static_cast<u32>(sum >> 32);
}
void subb_u32(Wave& wave, const Instruction& instruction) {
  const u64 a = read<u32>(wave, instruction.source[0]);
  const u64 b = u64{read<u32>(wave, instruction.source[1])} + wave.scc;
  write<u32>(wave, instruction, static_cast<u32>(a - b));
  wave.scc = b > a ? 1 : 0;
}
void add_i32_values(Wave& wave, const Instruction& instruction, i32 a, i32 b) {
  i32 sum = 0;
  wave.scc = __builtin_add_overflow(a, b, &sum) ? 1 : 0;
  write<i32>(wave, instruction, sum);
}
void add_i32(Wave& wave, const Instruction& instruction) {
  add_i32_values(wave, instruction, read<i32>(wave, instruction.source[0]), read<i32>(wave, instruction.source[1]));
}
void sub_i32(Wave& wave, const Instruction& instruction) {
  i32 difference = 0;
  wave.scc = __builtin_sub_overflow(read<i32>(wave, instruction.source[0]), read<i32>(wave, instruction.source[1]),
                                    &difference)
                 ? 1
                 : 0;
  write<i32>(wave, instruction, difference);
}
void absdiff_i32(Wave& wave, const Instruction& instruction) {
  const u32 difference = read<u32>(wave, instruction.source[0]) - read<u32>(wave, instruction.source[1]);
  const u32 result = static_cast<i32>(difference) < 0 ? 0u - difference : difference;
  write<u32>(wave, instruction, result);
  wave.scc = result != 0 ? 1 : 0;
}

// SCC says whether S0 was chosen.
template <typename T, bool maximum>
void choose(Wave& wave, const Instruction& instruction) {
  const T a = read<T>(wave, instruction.source[0]);
  const T b = read<T>(wave, instruction.source[1]);
  const bool first = maximum ? a > b : a < b;
  write<T>(wave, instruction, first ? a : b);
  wave.scc = first ? 1 : 0;
}

template <typename T>
void cselect(Wave& wave, const Instruction& instruction) {
  write<T>(wave, instruction, read<T>(wave, instruction.source[wave.scc != 0 ? 0 : 1]));
}
template <typename T>
void cmov(Wave& wave, const Instruction& instruction) {
  if (wave.scc != 0) write<T>(wave, instruction, read<T>(wave, instruction.source[0]));
}

template <unsigned shift>
void shift_add(Wave& wave, const Instruction& instruction) {
  const u64 sum = (u64{read<u32>(wave, instruction.source[0])} << shift) + read<u32>(wave, instruction.source[1]);
  write<u32>(wave, instruction, static_cast<u32>(sum));
  wave.scc = sum > 0xffffffffULL ? 1 : 0;
}

template <u64 (*function)(u64, u64)>
void saveexec(Wave& wave, const Instruction& instruction) {
  const u64 source = read<u64>(wave, instruction.source[0]);
  const u64 saved = wave.exec();
  const u64 mask = function(source, saved);
  write<u64>(wave, instruction, saved);
  wave.set_exec(mask);
  wave.scc = mask != 0 ? 1 : 0;
}
template <u64 (*function)(u64, u64)>
void wrexec(Wave& wave, const Instruction& instruction) {
  const u64 mask = function(read<u64>(wave, instruction.source[0]), wave.exec());
  wave.set_exec(mask);
  write<u64>(wave, instruction, mask);
  wave.scc = mask != 0 ? 1 : 0;
}

template <typename T>
T reverse_bits(T value) {
  T result = 0;
  for (unsigned i = 0; i < 8 * sizeof(T); ++i) result |= ((value >> i) & 1) << (8 * sizeof(T) - 1 - i);
  return result;
}
template <typename T>
T whole_quad(T value) {
  T result = 0;
  for (unsigned i = 0; i < 8 * sizeof(T); i += 4) {
    if (((value >> i) & 0xf) != 0) result |= T{0xf} << i;
  }
  return result;
}
template <typename T>
T quad_mask(T value) {
  T result = 0;
  for (unsigned i = 0; i < 2 * sizeof(T); ++i) result |= T{((value >> (4 * i)) & 0xf) != 0} << i;
  return result;
}
template <typename T>
i32 find_first_one(T value) {
  return value == 0 ? -1 : std::countr_zero(value);
}
template <typename T>
i32 find_first_zero(T value) {
  return find_first_one(static_cast<T>(~value));
}
template <typename T>
i32 leading_zeros(T value) {
  return value == 0 ? -1 : std::countl_zero(value);
}
// Bits from the top that equal the sign bit; −1 when all do.
template <typename T>
i32 leading_signs(T value) {
  using Unsigned = std::make_unsigned_t<T>;
  const auto flipped = static_cast<Unsigned>(value < 0 ? ~value : value);
  return flipped == 0 ? -1 : std::countl_zero(flipped);
}
template <typename T>
i32 count_ones(T value) {
  return std::popcount(value);
}
template <typename T>
i32 count_zeros(T value) {
  return std::popcount(static_cast<T>(~value));
}
template <typename T>
T identity(T value) {
  return value;
}
template <typename T>
T complement(T value) {
  return ~value;
}

template <typename T, bool set>
void bitset(Wave& wave, const Instruction& instruction) {
  const T bit = T{1} << (wave.scalar(instruction.source[0]) & (8 * sizeof(T) - 1));
  const T old = read<T>(wave, instruction.destination[0]);
  write<T>(wave, instruction, set ? old | bit : old & ~bit);
}
void bitreplicate(Wave& wave, const Instruction& instruction) {
  const u32 value = wave.scalar(instruction.source[0]);
  u64 result = 0;
  for (unsigned i = 0; i < 32; ++i) result |= u64{((value >> i) & 1) * 3} << (2 * i);
  write<u64>(wave, instruction, result);
}
// S_MOVREL: the register number is relative to M0.
template <typename T, bool source_is_relative>
void movrel(Wave& wave, const Instruction& instruction) {
  Instruction moved = instruction;
  Operand& operand = source_is_relative ? moved.source[0] : moved.destination[0];
  const u32 index = operand.index + wave.m0();
  if (index + sizeof(T) / 4 > sgpr_flat_scratch) return fault(wave, instruction, "M0 moves the register beyond s101");
  operand.index = static_cast<std::uint16_t>(index);
  write<T>(wave, moved, read<T>(wave, moved.source[0]));
}

i32 immediate_signed(const Instruction& instruction) { return static_cast<std::int16_t>(instruction.immediate); }
void movk(Wave& wave, const Instruction& instruction) { write<i32>(wave, instruction, immediate_signed(instruction)); }
void cmovk(Wave& wave, const Instruction& instruction) {
  if (wave.scc != 0) movk(wave, instruction);
}
void addk(Wave& wave, const Instruction& instruction) {
  add_i32_values(wave, instruction, read<i32>(wave, instruction.destination[0]), immediate_signed(instruction));
}
void mulk(Wave& wave, const Instruction& instruction) {
  write<u32>(wave, instruction,
             read<u32>(wave, instruction.destination[0]) * static_cast<u32>(immediate_signed(instruction)));
}
template <typename T, bool (*function)(T, T)>
void comparek(Wave& wave, const Instruction& instruction) {
  const T immediate = std::is_signed_v<T> ? static_cast<T>(immediate_signed(instruction))
                                          : static_cast<T>(instruction.immediate & 0xffff);
  wave.scc = function(read<T>(wave, instruction.source[0]), immediate) ? 1 : 0;
}

template <typename T>
bool equal(T a, T b) {
  return a == b;
}
template <typename T>
bool different(T a, T b) {
  return a != b;
}
template <typename T>
bool greater(T a, T b) {
  return a > b;
}
template <typename T>
bool greater_equal(T a, T b) {
  return a >= b;
}
template <typename T>
bool less(T a, T b) {
  return a < b;
}
template <typename T>
bool less_equal(T a, T b) {
  return a <= b;
}
template <typename T>
bool bit_is_clear(T a, u32 b) {
  return ((a >> (b & (8 * sizeof(T) - 1))) & 1) == 0;
}
template <typename T>
bool bit_is_set(T a, u32 b) {
  return !bit_is_clear(a, b);
}

u32 multiply(u32 a, u32 b) { return a * b; }
u32 multiply_high_u32(u32 a, u32 b) { return static_cast<u32>((u64{a} * b) >> 32); }
u32 multiply_high_i32(i32 a, i32 b) { return static_cast<u32>((i64{a} * b) >> 32); }
u32 pack_ll(u32 a, u32 b) { return (a & 0xffff) | (b << 16); }
u32 pack_lh(u32 a, u32 b) { return (a & 0xffff) | (b & 0xffff0000); }
u32 pack_hh(u32 a, u32 b) { return (a >> 16) | (b & 0xffff0000); }
i32 sign_extend_8(u32 value) { return static_cast<std::int8_t>(value); }
i32 sign_extend_16(u32 value) { return static_cast<std::int16_t>(value); }
u32 absolute(i32 value) { return value < 0 ? 0u - static_cast<u32>(value) : static_cast<u32>(value); }

class Adder {
 public:
  explicit Adder(Registry& registry) : registry_(&registry) {}
  void operator()(std::string_view name, Handler handler) const {
    registry_->add(name, handler, InstructionClass::scalar);
  }

 private:
  Registry* registry_;
};

template <u32 (*f32)(u32, u32), u64 (*f64)(u64, u64)>
void add_logical(const Adder& add, std::string_view name) {
  add(std::string(name) + "_b32", binary<u32, u32, u32, Scc::non_zero, f32>);
  add(std::string(name) + "_b64", binary<u64, u64, u64, Scc::non_zero, f64>);
}
template <typename T>
void add_comparisons(const Adder& add, std::string_view suffix) {
  const auto name = [&](std::string_view middle) { return "s_cmp_" + std::string(middle) + std::string(suffix); };
  const auto short_name = [&](std::string_view middle) {
    return "s_cmpk_" + std::string(middle) + std::string(suffix);
  };
  add(name("eq"), compare<T, T, equal<T>>);
  add(name("lg"), compare<T, T, different<T>>);
  add(name("gt"), compare<T, T, greater<T>>);
  add(name("ge"), compare<T, T, greater_equal<T>>);
  add(name("lt"), compare<T, T, less<T>>);
  add(name("le"), compare<T, T, less_equal<T>>);
  add(short_name("eq"), comparek<T, equal<T>>);
  add(short_name("lg"), comparek<T, different<T>>);
  add(short_name("gt"), comparek<T, greater<T>>);
  add(short_name("ge"), comparek<T, greater_equal<T>>);
  add(short_name("lt"), comparek<T, less<T>>);
  add(short_name("le"), comparek<T, less_equal<T>>);
}

void register_two_operands(const Adder& add) {
  add("s_add_u32", add_u32);
  add("s_sub_u32", sub_u32);
  add("s_add_i32", add_i32);
  add("s_sub_i32", sub_i32);
  add("s_addc_u32", addc_u32);
  add("s_subb_u32", subb_u32);
  add("s_absdiff_i32", absdiff_i32);
  add("s_min_i32", choose<i32, false>);
  add("s_min_u32", choose<u32, false>);
  add("s_max_i32", choose<i32, true>);
  add("s_max_u32", choose<u32, true>);
  add("s_cselect_b32", cselect<u32>);
  add("s_cselect_b64", cselect<u64>);
  add_logical<bitwise_and<u32>, bitwise_and<u64>>(add, "s_and");
  add_logical<bitwise_or<u32>, bitwise_or<u64>>(add, "s_or");
  add_logical<bitwise_xor<u32>, bitwise_xor<u64>>(add, "s_xor");
  add_logical<bitwise_andn2<u32>, bitwise_andn2<u64>>(add, "s_andn2");
  add_logical<bitwise_orn2<u32>, bitwise_orn2<u64>>(add, "s_orn2");
  add_logical<bitwise_nand<u32>, bitwise_nand<u64>>(add, "s_nand");
  add_logical<bitwise_nor<u32>, bitwise_nor<u64>>(add, "s_nor");
  add_logical<bitwise_xnor<u32>, bitwise_xnor<u64>>(add, "s_xnor");
  add("s_lshl_b32", binary<u32, u32, u32, Scc::non_zero, shift_left<u32>>);
  add("s_lshl_b64", binary<u64, u64, u32, Scc::non_zero, shift_left<u64>>);
  add("s_lshr_b32", binary<u32, u32, u32, Scc::non_zero, shift_right<u32>>);
  add("s_lshr_b64", binary<u64, u64, u32, Scc::non_zero, shift_right<u64>>);
  add("s_ashr_i32", binary<i32, i32, u32, Scc::non_zero, shift_right<i32>>);
  add("s_ashr_i64", binary<i64, i64, u32, Scc::non_zero, shift_right<i64>>);
  add("s_bfm_b32", binary<u32, u32, u32, Scc::keep, field_mask<u32>>);
  add("s_bfm_b64", binary<u64, u32, u32, Scc::keep, field_mask<u64>>);
  add("s_bfe_u32", binary<u32, u32, u32, Scc::non_zero, extract_field<u32>>);
  add("s_bfe_i32", binary<i32, i32, u32, Scc::non_zero, extract_field<i32>>);
  add("s_bfe_u64", binary<u64, u64, u32, Scc::non_zero, extract_field<u64>>);
  add("s_bfe_i64", binary<i64, i64, u32, Scc::non_zero, extract_field<i64>>);
  add("s_mul_i32", binary<u32, u32, u32, Scc::keep, multiply>);
  add("s_mul_hi_u32", binary<u32, u32, u32, Scc::keep, multiply_high_u32>);
  add("s_mul_hi_i32", binary<u32, i32, i32, Scc::keep, multiply_high_i32>);
  add("s_lshl1_add_u32", shift_add<1>);
  add("s_lshl2_add_u32", shift_add<2>);
  add("s_lshl3_add_u32", shift_add<3>);
  add("s_lshl4_add_u32", shift_add<4>);
  add("s_pack_ll_b32_b16", binary<u32, u32, u32, Scc::keep, pack_ll>);
  add("s_pack_lh_b32_b16", binary<u32, u32, u32, Scc::keep, pack_lh>);
  add("s_pack_hh_b32_b16", binary<u32, u32, u32, Scc::keep, pack_hh>);
}

void register_one_operand(const Adder& add) {
  add("s_mov_b32", unary<u32, u32, Scc::keep, identity<u32>>);
  add("s_mov_b64", unary<u64, u64, Scc::keep, identity<u64>>);
  add("s_cmov_b32", cmov<u32>);
  add("s_cmov_b64", cmov<u64>);
  add("s_not_b32", unary<u32, u32, Scc::non_zero, complement<u32>>);
  add("s_not_b64", unary<u64, u64, Scc::non_zero, complement<u64>>);
  add("s_wqm_b32", unary<u32, u32, Scc::non_zero, whole_quad<u32>>);
  add("s_wqm_b64", unary<u64, u64, Scc::non_zero, whole_quad<u64>>);
  add("s_quadmask_b32", unary<u32, u32, Scc::non_zero, quad_mask<u32>>);
  add("s_quadmask_b64", unary<u64, u64, Scc::non_zero, quad_mask<u64>>);
  add("s_brev_b32", unary<u32, u32, Scc::keep, reverse_bits<u32>>);
  add("s_brev_b64", unary<u64, u64, Scc::keep, reverse_bits<u64>>);
  add("s_bcnt0_i32_b32", unary<i32, u32, Scc::non_zero, count_zeros<u32>>);
  add("s_bcnt0_i32_b64", unary<i32, u64, Scc::non_zero, count_zeros<u64>>);
  add("s_bcnt1_i32_b32", unary<i32, u32, Scc::non_zero, count_ones<u32>>);
  add("s_bcnt1_i32_b64", unary<i32, u64, Scc::non_zero, count_ones<u64>>);
  add("s_ff0_i32_b32", unary<i32, u32, Scc::keep, find_first_zero<u32>>);
  add("s_ff0_i32_b64", unary<i32, u64, Scc::keep, find_first_zero<u64>>);
  add("s_ff1_i32_b32", unary<i32, u32, Scc::keep, find_first_one<u32>>);
  add("s_ff1_i32_b64", unary<i32, u64, Scc::keep, find_first_one<u64>>);
  add("s_flbit_i32_b32", unary<i32, u32, Scc::keep, leading_zeros<u32>>);
  add("s_flbit_i32_b64", unary<i32, u64, Scc::keep, leading_zeros<u64>>);
  add("s_flbit_i32", unary<i32, i32, Scc::keep, leading_signs<i32>>);
  add("s_flbit_i32_i64", unary<i32, i64, Scc::keep, leading_signs<i64>>);
  add("s_sext_i32_i8", unary<i32, u32, Scc::keep, sign_extend_8>);
  add("s_sext_i32_i16", unary<i32, u32, Scc::keep, sign_extend_16>);
  add("s_abs_i32", unary<u32, i32, Scc::non_zero, absolute>);
  add("s_bitset0_b32", bitset<u32, false>);
  add("s_bitset0_b64", bitset<u64, false>);
  add("s_bitset1_b32", bitset<u32, true>);
  add("s_bitset1_b64", bitset<u64, true>);
  add("s_bitreplicate_b64_b32", bitreplicate);
  add("s_movrels_b32", movrel<u32, true>);
  add("s_movrels_b64", movrel<u64, true>);
  add("s_movreld_b32", movrel<u32, false>);
  add("s_movreld_b64", movrel<u64, false>);
  add("s_and_saveexec_b64", saveexec<bitwise_and<u64>>);
  add("s_or_saveexec_b64", saveexec<bitwise_or<u64>>);
  add("s_xor_saveexec_b64", saveexec<bitwise_xor<u64>>);
  add("s_andn2_saveexec_b64", saveexec<bitwise_andn2<u64>>);
  add("s_orn2_saveexec_b64", saveexec<bitwise_orn2<u64>>);
  add("s_nand_saveexec_b64", saveexec<bitwise_nand<u64>>);
  add("s_nor_saveexec_b64", saveexec<bitwise_nor<u64>>);
  add("s_xnor_saveexec_b64", saveexec<bitwise_xnor<u64>>);
  add("s_andn1_saveexec_b64", saveexec<bitwise_andn1<u64>>);
  add("s_orn1_saveexec_b64", saveexec<bitwise_orn1<u64>>);
  add("s_andn1_wrexec_b64", wrexec<bitwise_andn1<u64>>);
  add("s_andn2_wrexec_b64", wrexec<bitwise_andn2<u64>>);
}

}  // namespace

void register_scalar(Registry& registry) {
  const Adder add(registry);
  register_two_operands(add);
  register_one_operand(add);
  add_comparisons<i32>(add, "_i32");
  add_comparisons<u32>(add, "_u32");
  add("s_cmp_eq_u64", compare<u64, u64, equal<u64>>);
  add("s_cmp_lg_u64", compare<u64, u64, different<u64>>);
  add("s_bitcmp0_b32", compare<u32, u32, bit_is_clear<u32>>);
  add("s_bitcmp1_b32", compare<u32, u32, bit_is_set<u32>>);
  add("s_bitcmp0_b64", compare<u64, u32, bit_is_clear<u64>>);
  add("s_bitcmp1_b64", compare<u64, u32, bit_is_set<u64>>);
  add("s_movk_i32", movk);
  add("s_cmovk_i32", cmovk);
  add("s_addk_i32", addk);
  add("s_mulk_i32", mulk);
}

}  // namespace wavejit::simgpu
