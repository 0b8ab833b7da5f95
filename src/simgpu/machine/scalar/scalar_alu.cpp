// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SOP1, SOP2, SOPC and the arithmetic part of SOPK: the rows. What they compute stands in operations.h.
#include <string>
#include <string_view>

#include "simgpu/machine/decode/registry.h"
#include "simgpu/machine/scalar/operations.h"

namespace wavejit::simgpu {
namespace scalar {
namespace {

// What the rows have in common. Which instructions leave SCC alone: CDNA3 ISA, chapter 12.1 to 12.3.
constexpr Record leaves_scc{.instruction_class = InstructionClass::scalar, .kind = IssueKind::scalar};
constexpr Record sets_scc{.instruction_class = InstructionClass::scalar, .kind = IssueKind::scalar, .writes_scc = true};
constexpr Record carries{
    .instruction_class = InstructionClass::scalar, .kind = IssueKind::scalar, .reads_scc = true, .writes_scc = true};
constexpr Record chooses{.instruction_class = InstructionClass::scalar,
                         .kind = IssueKind::scalar,
                         .flow = Flow::bits_chosen,
                         .reads_scc = true};
constexpr Record moves_if_scc{.instruction_class = InstructionClass::scalar,
                              .kind = IssueKind::scalar,
                              .keeps_destination = true,
                              .reads_scc = true};
constexpr Record changes_destination{
    .instruction_class = InstructionClass::scalar, .kind = IssueKind::scalar, .keeps_destination = true};
constexpr Record adds_to_destination{.instruction_class = InstructionClass::scalar,
                                     .kind = IssueKind::scalar,
                                     .keeps_destination = true,
                                     .writes_scc = true};
constexpr Record relative{.instruction_class = InstructionClass::scalar, .kind = IssueKind::scalar, .relative = true};
constexpr Record masks_exec{
    .instruction_class = InstructionClass::scalar, .kind = IssueKind::scalar, .changes_exec = true, .writes_scc = true};

constexpr Record with(Record record, Flow flow) {
  record.flow = flow;
  return record;
}
constexpr Record with(Record record, Window window) {
  record.window = window;
  return record;
}

class ScalarAdder {
 public:
  explicit ScalarAdder(Registry& registry) : registry_(&registry) {}
  void operator()(std::string_view name, Handler handler, const Record& record) const {
    registry_->add(name, handler, record);
  }

 private:
  Registry* registry_;
};

template <u32 (*f32)(u32, u32), u64 (*f64)(u64, u64)>
void add_logical(const ScalarAdder& add, std::string_view name, const Record& record = sets_scc) {
  add(std::string(name) + "_b32", binary<u32, u32, u32, Scc::non_zero, f32>, record);
  add(std::string(name) + "_b64", binary<u64, u64, u64, Scc::non_zero, f64>, record);
}
template <typename T>
void add_comparisons(const ScalarAdder& add, std::string_view suffix) {
  const auto name = [&](std::string_view middle) { return "s_cmp_" + std::string(middle) + std::string(suffix); };
  const auto short_name = [&](std::string_view middle) {
    return "s_cmpk_" + std::string(middle) + std::string(suffix);
  };
  add(name("eq"), compare<T, T, equal<T>>, sets_scc);
  add(name("lg"), compare<T, T, different<T>>, sets_scc);
  add(name("gt"), compare<T, T, greater<T>>, sets_scc);
  add(name("ge"), compare<T, T, greater_equal<T>>, sets_scc);
  add(name("lt"), compare<T, T, less<T>>, sets_scc);
  add(name("le"), compare<T, T, less_equal<T>>, sets_scc);
  add(short_name("eq"), comparek<T, equal<T>>, sets_scc);
  add(short_name("lg"), comparek<T, different<T>>, sets_scc);
  add(short_name("gt"), comparek<T, greater<T>>, sets_scc);
  add(short_name("ge"), comparek<T, greater_equal<T>>, sets_scc);
  add(short_name("lt"), comparek<T, less<T>>, sets_scc);
  add(short_name("le"), comparek<T, less_equal<T>>, sets_scc);
}

void register_two_operands(const ScalarAdder& add) {
  add("s_add_u32", add_u32, sets_scc);
  add("s_sub_u32", sub_u32, sets_scc);
  add("s_add_i32", add_i32, sets_scc);
  add("s_sub_i32", sub_i32, sets_scc);
  add("s_addc_u32", addc_u32, carries);
  add("s_subb_u32", subb_u32, carries);
  add("s_absdiff_i32", absdiff_i32, sets_scc);
  add("s_min_i32", choose<i32, false>, sets_scc);
  add("s_min_u32", choose<u32, false>, sets_scc);
  add("s_max_i32", choose<i32, true>, sets_scc);
  add("s_max_u32", choose<u32, true>, sets_scc);
  add("s_cselect_b32", cselect<u32>, chooses);
  add("s_cselect_b64", cselect<u64>, chooses);
  add_logical<bitwise_and<u32>, bitwise_and<u64>>(add, "s_and", with(with(sets_scc, Flow::bits_and), Window::in_mask));
  add_logical<bitwise_or<u32>, bitwise_or<u64>>(add, "s_or", with(sets_scc, Flow::bits_or));
  add_logical<bitwise_xor<u32>, bitwise_xor<u64>>(add, "s_xor", with(sets_scc, Flow::bits_xor));
  add_logical<bitwise_andn2<u32>, bitwise_andn2<u64>>(add, "s_andn2", with(sets_scc, Flow::bits_and_not));
  add_logical<bitwise_orn2<u32>, bitwise_orn2<u64>>(add, "s_orn2", with(sets_scc, Flow::bits_or_not));
  add_logical<bitwise_nand<u32>, bitwise_nand<u64>>(add, "s_nand");
  add_logical<bitwise_nor<u32>, bitwise_nor<u64>>(add, "s_nor");
  add_logical<bitwise_xnor<u32>, bitwise_xnor<u64>>(add, "s_xnor");
  add("s_lshl_b32", binary<u32, u32, u32, Scc::non_zero, shift_left<u32>>, with(sets_scc, Window::below_shift));
  add("s_lshl_b64", binary<u64, u64, u32, Scc::non_zero, shift_left<u64>>, sets_scc);
  add("s_lshr_b32", binary<u32, u32, u32, Scc::non_zero, shift_right<u32>>, with(sets_scc, Window::above_shift));
  add("s_lshr_b64", binary<u64, u64, u32, Scc::non_zero, shift_right<u64>>, sets_scc);
  add("s_ashr_i32", binary<i32, i32, u32, Scc::non_zero, shift_right<i32>>, with(sets_scc, Window::above_shift));
  add("s_ashr_i64", binary<i64, i64, u32, Scc::non_zero, shift_right<i64>>, sets_scc);
  add("s_bfm_b32", binary<u32, u32, u32, Scc::keep, field_mask<u32>>, leaves_scc);
  add("s_bfm_b64", binary<u64, u32, u32, Scc::keep, field_mask<u64>>, leaves_scc);
  add("s_bfe_u32", binary<u32, u32, u32, Scc::non_zero, extract_field<u32>>, with(sets_scc, Window::in_field));
  add("s_bfe_i32", binary<i32, i32, u32, Scc::non_zero, extract_field<i32>>, with(sets_scc, Window::in_field));
  add("s_bfe_u64", binary<u64, u64, u32, Scc::non_zero, extract_field<u64>>, sets_scc);
  add("s_bfe_i64", binary<i64, i64, u32, Scc::non_zero, extract_field<i64>>, sets_scc);
  add("s_mul_i32", binary<u32, u32, u32, Scc::keep, multiply>, leaves_scc);
  add("s_mul_hi_u32", binary<u32, u32, u32, Scc::keep, multiply_high_u32>, leaves_scc);
  add("s_mul_hi_i32", binary<u32, i32, i32, Scc::keep, multiply_high_i32>, leaves_scc);
  add("s_lshl1_add_u32", shift_add<1>, sets_scc);
  add("s_lshl2_add_u32", shift_add<2>, sets_scc);
  add("s_lshl3_add_u32", shift_add<3>, sets_scc);
  add("s_lshl4_add_u32", shift_add<4>, sets_scc);
  add("s_pack_ll_b32_b16", binary<u32, u32, u32, Scc::keep, pack_ll>, leaves_scc);
  add("s_pack_lh_b32_b16", binary<u32, u32, u32, Scc::keep, pack_lh>, leaves_scc);
  add("s_pack_hh_b32_b16", binary<u32, u32, u32, Scc::keep, pack_hh>, leaves_scc);
}

void register_one_operand(const ScalarAdder& add) {
  add("s_mov_b32", unary<u32, u32, Scc::keep, identity<u32>>, with(leaves_scc, Flow::bits_copied));
  add("s_mov_b64", unary<u64, u64, Scc::keep, identity<u64>>, with(leaves_scc, Flow::bits_copied));
  add("s_cmov_b32", cmov<u32>, moves_if_scc);
  add("s_cmov_b64", cmov<u64>, moves_if_scc);
  add("s_not_b32", unary<u32, u32, Scc::non_zero, complement<u32>>, with(sets_scc, Flow::bits_copied));
  add("s_not_b64", unary<u64, u64, Scc::non_zero, complement<u64>>, with(sets_scc, Flow::bits_copied));
  add("s_wqm_b32", unary<u32, u32, Scc::non_zero, whole_quad<u32>>, sets_scc);
  add("s_wqm_b64", unary<u64, u64, Scc::non_zero, whole_quad<u64>>, sets_scc);
  add("s_quadmask_b32", unary<u32, u32, Scc::non_zero, quad_mask<u32>>, sets_scc);
  add("s_quadmask_b64", unary<u64, u64, Scc::non_zero, quad_mask<u64>>, sets_scc);
  add("s_brev_b32", unary<u32, u32, Scc::keep, reverse_bits<u32>>, leaves_scc);
  add("s_brev_b64", unary<u64, u64, Scc::keep, reverse_bits<u64>>, leaves_scc);
  add("s_bcnt0_i32_b32", unary<i32, u32, Scc::non_zero, count_zeros<u32>>, sets_scc);
  add("s_bcnt0_i32_b64", unary<i32, u64, Scc::non_zero, count_zeros<u64>>, sets_scc);
  add("s_bcnt1_i32_b32", unary<i32, u32, Scc::non_zero, count_ones<u32>>, sets_scc);
  add("s_bcnt1_i32_b64", unary<i32, u64, Scc::non_zero, count_ones<u64>>, sets_scc);
  add("s_ff0_i32_b32", unary<i32, u32, Scc::keep, find_first_zero<u32>>, leaves_scc);
  add("s_ff0_i32_b64", unary<i32, u64, Scc::keep, find_first_zero<u64>>, leaves_scc);
  add("s_ff1_i32_b32", unary<i32, u32, Scc::keep, find_first_one<u32>>, leaves_scc);
  add("s_ff1_i32_b64", unary<i32, u64, Scc::keep, find_first_one<u64>>, leaves_scc);
  add("s_flbit_i32_b32", unary<i32, u32, Scc::keep, leading_zeros<u32>>, leaves_scc);
  add("s_flbit_i32_b64", unary<i32, u64, Scc::keep, leading_zeros<u64>>, leaves_scc);
  add("s_flbit_i32", unary<i32, i32, Scc::keep, leading_signs<i32>>, leaves_scc);
  add("s_flbit_i32_i64", unary<i32, i64, Scc::keep, leading_signs<i64>>, leaves_scc);
  add("s_sext_i32_i8", unary<i32, u32, Scc::keep, sign_extend_8>, leaves_scc);
  add("s_sext_i32_i16", unary<i32, u32, Scc::keep, sign_extend_16>, leaves_scc);
  add("s_abs_i32", unary<u32, i32, Scc::non_zero, absolute>, sets_scc);
  add("s_bitset0_b32", bitset<u32, false>, changes_destination);
  add("s_bitset0_b64", bitset<u64, false>, changes_destination);
  add("s_bitset1_b32", bitset<u32, true>, changes_destination);
  add("s_bitset1_b64", bitset<u64, true>, changes_destination);
  add("s_bitreplicate_b64_b32", bitreplicate, leaves_scc);
  add("s_movrels_b32", movrel<u32, true>, relative);
  add("s_movrels_b64", movrel<u64, true>, relative);
  add("s_movreld_b32", movrel<u32, false>, relative);
  add("s_movreld_b64", movrel<u64, false>, relative);
  add("s_and_saveexec_b64", saveexec<bitwise_and<u64>>, with(masks_exec, Flow::bits_and));
  add("s_or_saveexec_b64", saveexec<bitwise_or<u64>>, with(masks_exec, Flow::bits_or));
  add("s_xor_saveexec_b64", saveexec<bitwise_xor<u64>>, masks_exec);
  add("s_andn2_saveexec_b64", saveexec<bitwise_andn2<u64>>, with(masks_exec, Flow::bits_and_not));
  add("s_orn2_saveexec_b64", saveexec<bitwise_orn2<u64>>, masks_exec);
  add("s_nand_saveexec_b64", saveexec<bitwise_nand<u64>>, masks_exec);
  add("s_nor_saveexec_b64", saveexec<bitwise_nor<u64>>, masks_exec);
  add("s_xnor_saveexec_b64", saveexec<bitwise_xnor<u64>>, masks_exec);
  add("s_andn1_saveexec_b64", saveexec<bitwise_andn1<u64>>, masks_exec);
  add("s_orn1_saveexec_b64", saveexec<bitwise_orn1<u64>>, masks_exec);
  add("s_andn1_wrexec_b64", wrexec<bitwise_andn1<u64>>, masks_exec);
  add("s_andn2_wrexec_b64", wrexec<bitwise_andn2<u64>>, masks_exec);
}

}  // namespace
}  // namespace scalar

void register_scalar(Registry& registry) {
  using namespace scalar;
  const ScalarAdder add(registry);
  register_two_operands(add);
  register_one_operand(add);
  add_comparisons<i32>(add, "_i32");
  add_comparisons<u32>(add, "_u32");
  add("s_cmp_eq_u64", compare<u64, u64, equal<u64>>, sets_scc);
  add("s_cmp_lg_u64", compare<u64, u64, different<u64>>, sets_scc);
  add("s_bitcmp0_b32", compare<u32, u32, bit_is_clear<u32>>, with(sets_scc, Window::one_bit));
  add("s_bitcmp1_b32", compare<u32, u32, bit_is_set<u32>>, with(sets_scc, Window::one_bit));
  add("s_bitcmp0_b64", compare<u64, u32, bit_is_clear<u64>>, sets_scc);
  add("s_bitcmp1_b64", compare<u64, u32, bit_is_set<u64>>, sets_scc);
  add("s_movk_i32", movk, leaves_scc);
  add("s_cmovk_i32", cmovk, moves_if_scc);
  add("s_addk_i32", addk, adds_to_destination);
  add("s_mulk_i32", mulk, changes_destination);
}

}  // namespace wavejit::simgpu
