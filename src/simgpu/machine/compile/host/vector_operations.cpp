// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Semantics: vector/kernels_*.cpp, which are the reference that the differential test compares with.
#include "simgpu/machine/compile/host/vector_operations.h"

#include <string>
#include <unordered_map>

#include "simgpu/machine/decode/rdna4_names.h"

namespace wavejit::simgpu::compile {
namespace {

using llvm::CmpInst;
using llvm::Value;
using llvm::Intrinsic::ID;
using VectorTable = std::unordered_map<std::string, EmitVector>;

Value* shift_amount(Lanes& l, Value* v) { return l.ir.CreateAnd(v, l.splat(31U)); }
Value* low24(Lanes& l, Value* v) { return l.ir.CreateAnd(v, l.splat(0xffffffU)); }
Value* pair(Lanes& l, Value* low, Value* high) { return l.ir.CreateOr(low, l.ir.CreateShl(high, l.splat(16U))); }
Value* ones_below(Lanes& l, Value* width) {
  return l.ir.CreateSub(l.ir.CreateShl(l.splat(1U), shift_amount(l, width)), l.splat(1U));
}

void copy(Lanes& /*l*/, Operands& o) { o.result(o.word(0)); }

template <CmpInst::Predicate predicate>
void compare_words(Lanes& l, Operands& o) {
  o.result_mask(l.ir.CreateICmp(predicate, o.word(0), o.word(1)));
}
template <CmpInst::Predicate predicate>
void compare_numbers(Lanes& l, Operands& o) {
  o.result_mask(l.ir.CreateFCmp(predicate, o.number(0), o.number(1)));
}
template <CmpInst::Predicate predicate>
void choose_word(Lanes& l, Operands& o) {
  Value* const a = o.word(0);
  Value* const b = o.word(1);
  o.result(l.ir.CreateSelect(l.ir.CreateICmp(predicate, a, b), a, b));
}
void fused_in_order(Lanes& l, Operands& o) { o.result(l.fused(o.number(0), o.number(1), o.number(2))); }

void add_moves(VectorTable& t) {
  t["v_mov_b32"] = t["v_accvgpr_read_b32"] = t["v_accvgpr_write_b32"] = t["v_accvgpr_mov_b32"] = copy;
  t["v_mov_b64"] = [](Lanes&, Operands& o) {
    Value* const low = o.word(0, 0);
    Value* const high = o.word(0, 1);
    o.result(low, 0);
    o.result(high, 1);
  };
  t["v_cndmask_b32"] = [](Lanes& l, Operands& o) { o.result(l.ir.CreateSelect(o.mask(2), o.word(1), o.word(0))); };
  t["v_pack_b32_f16"] = [](Lanes& l, Operands& o) { o.result(pair(l, o.word(0), o.word(1))); };
  t["v_perm_b32"] = [](Lanes& l, Operands& o) { o.result(l.permute_bytes(o.word(0), o.word(1), o.word(2))); };
}

void add_logic(VectorTable& t) {
  t["v_not_b32"] = [](Lanes& l, Operands& o) { o.result(l.ir.CreateNot(o.word(0))); };
  t["v_and_b32"] = [](Lanes& l, Operands& o) { o.result(l.ir.CreateAnd(o.word(0), o.word(1))); };
  t["v_or_b32"] = [](Lanes& l, Operands& o) { o.result(l.ir.CreateOr(o.word(0), o.word(1))); };
  t["v_xor_b32"] = [](Lanes& l, Operands& o) { o.result(l.ir.CreateXor(o.word(0), o.word(1))); };
  t["v_xnor_b32"] = [](Lanes& l, Operands& o) { o.result(l.ir.CreateNot(l.ir.CreateXor(o.word(0), o.word(1)))); };
  t["v_and_or_b32"] = [](Lanes& l, Operands& o) {
    o.result(l.ir.CreateOr(l.ir.CreateAnd(o.word(0), o.word(1)), o.word(2)));
  };
  t["v_or3_b32"] = [](Lanes& l, Operands& o) {
    o.result(l.ir.CreateOr(l.ir.CreateOr(o.word(0), o.word(1)), o.word(2)));
  };
  t["v_xad_u32"] = [](Lanes& l, Operands& o) {
    o.result(l.ir.CreateAdd(l.ir.CreateXor(o.word(0), o.word(1)), o.word(2)));
  };
  t["v_bfi_b32"] = [](Lanes& l, Operands& o) {
    Value* const a = o.word(0);
    o.result(l.ir.CreateOr(l.ir.CreateAnd(a, o.word(1)), l.ir.CreateAnd(l.ir.CreateNot(a), o.word(2))));
  };
  t["v_xor3_b32"] = [](Lanes& l, Operands& o) {
    o.result(l.ir.CreateXor(l.ir.CreateXor(o.word(0), o.word(1)), o.word(2)));
  };
  t["v_bitop3_b32"] = [](Lanes& l, Operands& o) {
    o.result(l.truth(o.instruction().truth_table, o.word(0), o.word(1), o.word(2)));
  };
  t["v_lshlrev_b32"] = [](Lanes& l, Operands& o) { o.result(l.ir.CreateShl(o.word(1), shift_amount(l, o.word(0)))); };
  t["v_lshrrev_b32"] = [](Lanes& l, Operands& o) { o.result(l.ir.CreateLShr(o.word(1), shift_amount(l, o.word(0)))); };
  t["v_ashrrev_i32"] = [](Lanes& l, Operands& o) { o.result(l.ir.CreateAShr(o.word(1), shift_amount(l, o.word(0)))); };
  t["v_lshl_or_b32"] = [](Lanes& l, Operands& o) {
    o.result(l.ir.CreateOr(l.ir.CreateShl(o.word(0), shift_amount(l, o.word(1))), o.word(2)));
  };
  t["v_lshl_add_u32"] = [](Lanes& l, Operands& o) {
    o.result(l.ir.CreateAdd(l.ir.CreateShl(o.word(0), shift_amount(l, o.word(1))), o.word(2)));
  };
  t["v_add_lshl_u32"] = [](Lanes& l, Operands& o) {
    o.result(l.ir.CreateShl(l.ir.CreateAdd(o.word(0), o.word(1)), shift_amount(l, o.word(2))));
  };
  t["v_bfe_u32"] = [](Lanes& l, Operands& o) {
    o.result(l.ir.CreateAnd(l.ir.CreateLShr(o.word(0), shift_amount(l, o.word(1))), ones_below(l, o.word(2))));
  };
}

void add_integers(VectorTable& t) {
  t["v_add_u32"] = [](Lanes& l, Operands& o) { o.result(l.ir.CreateAdd(o.word(0), o.word(1))); };
  t["v_sub_u32"] = [](Lanes& l, Operands& o) { o.result(l.ir.CreateSub(o.word(0), o.word(1))); };
  t["v_subrev_u32"] = [](Lanes& l, Operands& o) { o.result(l.ir.CreateSub(o.word(1), o.word(0))); };
  t["v_add3_u32"] = [](Lanes& l, Operands& o) {
    o.result(l.ir.CreateAdd(l.ir.CreateAdd(o.word(0), o.word(1)), o.word(2)));
  };
  t["v_mul_lo_u32"] = [](Lanes& l, Operands& o) { o.result(l.ir.CreateMul(o.word(0), o.word(1))); };
  t["v_mul_u32_u24"] = [](Lanes& l, Operands& o) {
    o.result(l.ir.CreateMul(low24(l, o.word(0)), low24(l, o.word(1))));
  };
  t["v_mad_u32_u24"] = [](Lanes& l, Operands& o) {
    o.result(l.ir.CreateAdd(l.ir.CreateMul(low24(l, o.word(0)), low24(l, o.word(1))), o.word(2)));
  };
  t["v_min_u32"] = choose_word<CmpInst::ICMP_ULT>;
  t["v_max_u32"] = choose_word<CmpInst::ICMP_UGT>;
  t["v_min_i32"] = choose_word<CmpInst::ICMP_SLT>;
  t["v_max_i32"] = choose_word<CmpInst::ICMP_SGT>;
}

void add_floats(VectorTable& t) {
  t["v_add_f32"] = [](Lanes& l, Operands& o) { o.result(l.add(o.number(0), o.number(1))); };
  t["v_sub_f32"] = [](Lanes& l, Operands& o) { o.result(l.subtract(o.number(0), o.number(1))); };
  t["v_subrev_f32"] = [](Lanes& l, Operands& o) { o.result(l.subtract(o.number(1), o.number(0))); };
  t["v_mul_f32"] = [](Lanes& l, Operands& o) { o.result(l.multiply(o.number(0), o.number(1))); };
  t["v_fma_f32"] = t["v_fmac_f32"] = t["v_fmamk_f32"] = t["v_fmaak_f32"] = fused_in_order;
  t["v_pk_fma_f32"] = [](Lanes& l, Operands& o) {
    Value* const low = l.fused(o.number(0, 0), o.number(1, 0), o.number(2, 0));
    Value* const high = l.fused(o.number(0, 1), o.number(1, 1), o.number(2, 1));
    o.result(low, 0);
    o.result(high, 1);
  };
  t["v_pk_mul_f32"] = [](Lanes& l, Operands& o) {
    Value* const low = l.multiply(o.number(0, 0), o.number(1, 0));
    Value* const high = l.multiply(o.number(0, 1), o.number(1, 1));
    o.result(low, 0);
    o.result(high, 1);
  };
  t["v_pk_add_f32"] = [](Lanes& l, Operands& o) {
    Value* const low = l.add(o.number(0, 0), o.number(1, 0));
    Value* const high = l.add(o.number(0, 1), o.number(1, 1));
    o.result(low, 0);
    o.result(high, 1);
  };
  t["v_fma_mix_f32"] = fused_in_order;
  t["v_fma_mixlo_f16"] = t["v_fma_mixhi_f16"] = [](Lanes& l, Operands& o) {
    o.result(l.to_half(l.fused(o.number(0), o.number(1), o.number(2))));
  };
  t["v_min_f32"] = t["v_min_num_f32"] = [](Lanes& l, Operands& o) { o.result(l.minimum(o.number(0), o.number(1))); };
  t["v_max_f32"] = t["v_max_num_f32"] = [](Lanes& l, Operands& o) { o.result(l.maximum(o.number(0), o.number(1))); };
  t["v_min3_f32"] = t["v_min3_num_f32"] = [](Lanes& l, Operands& o) {
    o.result(l.minimum(l.minimum(o.number(0), o.number(1)), o.number(2)));
  };
  t["v_minmax_num_f32"] = [](Lanes& l, Operands& o) {
    o.result(l.maximum(l.minimum(o.number(0), o.number(1)), o.number(2)));
  };
  t["v_maxmin_num_f32"] = [](Lanes& l, Operands& o) {
    o.result(l.minimum(l.maximum(o.number(0), o.number(1)), o.number(2)));
  };
  t["v_max3_f32"] = t["v_max3_num_f32"] = [](Lanes& l, Operands& o) {
    o.result(l.maximum(l.maximum(o.number(0), o.number(1)), o.number(2)));
  };
  t["v_exp_f32"] = [](Lanes& l, Operands& o) { o.result(l.exp2(o.number(0))); };
  t["v_rcp_f32"] = t["v_rcp_iflag_f32"] = [](Lanes& l, Operands& o) { o.result(l.reciprocal(o.number(0))); };
}

void add_conversions(VectorTable& t) {
  t["v_cvt_f16_f32"] = [](Lanes& l, Operands& o) { o.result(l.to_half(o.number(0))); };
  t["v_cvt_f32_f16"] = [](Lanes& l, Operands& o) { o.result(l.from_half(o.word(0))); };
  t["v_cvt_pk_f16_f32"] = [](Lanes& l, Operands& o) {
    o.result(pair(l, l.to_half(o.number(0)), l.to_half(o.number(1))));
  };
  t["v_cvt_pk_bf16_f32"] = [](Lanes& l, Operands& o) {
    o.result(pair(l, l.to_bfloat(o.number(0)), l.to_bfloat(o.number(1))));
  };
  t["v_cvt_f32_i32"] = [](Lanes& l, Operands& o) { o.result(l.ir.CreateSIToFP(o.word(0), l.floats)); };
  t["v_cvt_f32_u32"] = [](Lanes& l, Operands& o) { o.result(l.ir.CreateUIToFP(o.word(0), l.floats)); };
  t["v_cvt_i32_f32"] = [](Lanes& l, Operands& o) {
    o.result(l.ir.CreateIntrinsic(llvm::Intrinsic::fptosi_sat, {l.integers, l.floats}, {o.number(0)}));
  };
  t["v_cvt_u32_f32"] = [](Lanes& l, Operands& o) {
    o.result(l.ir.CreateIntrinsic(llvm::Intrinsic::fptoui_sat, {l.integers, l.floats}, {o.number(0)}));
  };
}

void add_compares(VectorTable& t) {
  t["v_cmp_lt_f32"] = compare_numbers<CmpInst::FCMP_OLT>;
  t["v_cmp_eq_f32"] = compare_numbers<CmpInst::FCMP_OEQ>;
  t["v_cmp_le_f32"] = compare_numbers<CmpInst::FCMP_OLE>;
  t["v_cmp_gt_f32"] = compare_numbers<CmpInst::FCMP_OGT>;
  t["v_cmp_lg_f32"] = compare_numbers<CmpInst::FCMP_ONE>;
  t["v_cmp_ge_f32"] = compare_numbers<CmpInst::FCMP_OGE>;
  t["v_cmp_o_f32"] = compare_numbers<CmpInst::FCMP_ORD>;
  t["v_cmp_u_f32"] = compare_numbers<CmpInst::FCMP_UNO>;
  t["v_cmp_nge_f32"] = compare_numbers<CmpInst::FCMP_ULT>;
  t["v_cmp_nlg_f32"] = compare_numbers<CmpInst::FCMP_UEQ>;
  t["v_cmp_ngt_f32"] = compare_numbers<CmpInst::FCMP_ULE>;
  t["v_cmp_nle_f32"] = compare_numbers<CmpInst::FCMP_UGT>;
  t["v_cmp_neq_f32"] = compare_numbers<CmpInst::FCMP_UNE>;
  t["v_cmp_nlt_f32"] = compare_numbers<CmpInst::FCMP_UGE>;
  t["v_cmp_eq_i32"] = t["v_cmp_eq_u32"] = compare_words<CmpInst::ICMP_EQ>;
  t["v_cmp_ne_i32"] = t["v_cmp_ne_u32"] = compare_words<CmpInst::ICMP_NE>;
  t["v_cmp_lt_i32"] = compare_words<CmpInst::ICMP_SLT>;
  t["v_cmp_le_i32"] = compare_words<CmpInst::ICMP_SLE>;
  t["v_cmp_gt_i32"] = compare_words<CmpInst::ICMP_SGT>;
  t["v_cmp_ge_i32"] = compare_words<CmpInst::ICMP_SGE>;
  t["v_cmp_lt_u32"] = compare_words<CmpInst::ICMP_ULT>;
  t["v_cmp_le_u32"] = compare_words<CmpInst::ICMP_ULE>;
  t["v_cmp_gt_u32"] = compare_words<CmpInst::ICMP_UGT>;
  t["v_cmp_ge_u32"] = compare_words<CmpInst::ICMP_UGE>;
}

}  // namespace

EmitVector find_operation(std::string_view mnemonic) {
  static const VectorTable table = [] {
    VectorTable t;
    add_moves(t);
    add_logic(t);
    add_integers(t);
    add_floats(t);
    add_conversions(t);
    add_compares(t);
    // RDNA4 spells some of them its own way, as its registry does.
    for (const auto& [name, emit] : VectorTable(t)) {
      if (std::string other = rdna4_name(name); !other.empty()) t.try_emplace(std::move(other), emit);
    }
    return t;
  }();
  const auto found = table.find(std::string(mnemonic));
  return found == table.end() ? nullptr : found->second;
}

}  // namespace wavejit::simgpu::compile
