// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Semantics: scalar/scalar_alu.cpp, which is the reference that the differential test compares with.
#include "simgpu/machine/compile/host/scalar.h"

#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>

#include "simgpu/machine/decode/rdna4_names.h"

namespace wavejit::simgpu::compile {
namespace {

using llvm::CmpInst;
using llvm::Value;

class Scalar {
 public:
  Scalar(Emitter& emitter, const Instruction& instruction) : e(emitter), ir(emitter.ir), instruction_(instruction) {}

  Value* read32(unsigned i) { return read32(instruction_.source[i]); }
  Value* read64(unsigned i, bool is_signed = false) {
    const Operand& operand = instruction_.source[i];
    if (operand.is_constant()) {
      return ir.getInt64(operand.kind == OperandKind::literal ? operand.constant_b64(is_signed)
                                                              : operand.constant_b64());
    }
    return e.load64(Emitter::sgpr_offset(operand.index));
  }
  Value* old32() { return read32(instruction_.destination[0]); }
  void write(Value* value) { e.store(value, Emitter::sgpr_offset(instruction_.destination[0].index)); }
  void set_scc(Value* bit) { e.store(ir.CreateZExt(bit, ir.getInt32Ty()), offsetof(Wave, scc)); }
  Value* scc() { return ir.CreateICmpNE(e.load32(offsetof(Wave, scc)), ir.getInt32(0)); }
  void write_and_test(Value* value) {
    write(value);
    set_scc(ir.CreateICmpNE(value, llvm::Constant::getNullValue(value->getType())));
  }
  void handle() { e.call_handler(instruction_); }
  std::uint32_t immediate() const { return instruction_.immediate; }
  std::int32_t signed_immediate() const { return static_cast<std::int16_t>(instruction_.immediate); }

  Emitter& e;
  llvm::IRBuilder<>& ir;

 private:
  Value* read32(const Operand& operand) {
    if (operand.is_constant()) return ir.getInt32(operand.bits);
    return e.load32(Emitter::sgpr_offset(operand.index));
  }
  const Instruction& instruction_;
};

using EmitScalar = void (*)(Scalar&);

using ScalarTable = std::unordered_map<std::string, EmitScalar>;

template <bool wide, typename Body>
void logical(Scalar& s, Body&& body) {
  if constexpr (wide) {
    s.write_and_test(body(s.read64(0), s.read64(1)));
  } else {
    s.write_and_test(body(s.read32(0), s.read32(1)));
  }
}

template <CmpInst::Predicate predicate>
void compare(Scalar& s) {
  s.set_scc(s.ir.CreateICmp(predicate, s.read32(0), s.read32(1)));
}
template <CmpInst::Predicate predicate>
void compare_constant(Scalar& s) {
  const bool is_signed = CmpInst::isSigned(predicate);
  s.set_scc(s.ir.CreateICmp(
      predicate, s.read32(0),
      s.ir.getInt32(is_signed ? static_cast<std::uint32_t>(s.signed_immediate()) : s.immediate() & 0xffff)));
}
template <CmpInst::Predicate predicate>
void choose(Scalar& s) {
  Value* const a = s.read32(0);
  Value* const b = s.read32(1);
  Value* const first = s.ir.CreateICmp(predicate, a, b);
  s.write(s.ir.CreateSelect(first, a, b));
  s.set_scc(first);
}
Value* overflow(Scalar& s, llvm::Intrinsic::ID id, Value* a, Value* b) {
  Value* const both = s.ir.CreateBinaryIntrinsic(id, a, b);
  s.write(s.ir.CreateExtractValue(both, 0));
  return s.ir.CreateExtractValue(both, 1);
}
template <unsigned bits>
Value* amount(Scalar& s) {
  Value* const low = s.ir.CreateAnd(s.read32(1), bits - 1);
  return bits == 64 ? s.ir.CreateZExt(low, s.ir.getInt64Ty()) : low;
}
template <unsigned shift>
void shift_add(Scalar& s) {
  Value* const a = s.ir.CreateShl(s.ir.CreateZExt(s.read32(0), s.ir.getInt64Ty()), shift);
  Value* const sum = s.ir.CreateAdd(a, s.ir.CreateZExt(s.read32(1), s.ir.getInt64Ty()));
  s.write(s.ir.CreateTrunc(sum, s.ir.getInt32Ty()));
  s.set_scc(s.ir.CreateICmpUGT(sum, s.ir.getInt64(0xffffffffU)));
}
template <bool is_signed>
void multiply_high(Scalar& s) {
  const auto widen = [&](Value* v) {
    return is_signed ? s.ir.CreateSExt(v, s.ir.getInt64Ty()) : s.ir.CreateZExt(v, s.ir.getInt64Ty());
  };
  s.write(
      s.ir.CreateTrunc(s.ir.CreateLShr(s.ir.CreateMul(widen(s.read32(0)), widen(s.read32(1))), 32), s.ir.getInt32Ty()));
}
template <bool subtract>
void with_carry(Scalar& s) {
  auto* const wide = s.ir.getInt64Ty();
  Value* const a = s.ir.CreateZExt(s.read32(0), wide);
  Value* const b = s.ir.CreateZExt(s.read32(1), wide);
  Value* const carry = s.ir.CreateZExt(s.e.load32(offsetof(Wave, scc)), wide);
  Value* const other = subtract ? s.ir.CreateAdd(b, carry) : nullptr;
  Value* const sum = subtract ? s.ir.CreateSub(a, other) : s.ir.CreateAdd(s.ir.CreateAdd(a, b), carry);
  s.write(s.ir.CreateTrunc(sum, s.ir.getInt32Ty()));
  s.set_scc(subtract ? s.ir.CreateICmpUGT(other, a) : s.ir.CreateICmpUGT(sum, s.ir.getInt64(0xffffffffU)));
}

// RDNA4's float32: `then` where MODE is what compilers make it and `number` (null: whatever) is one; else the handler.
template <typename Then>
void as_usual(Scalar& s, Value* number, Then&& then) {
  llvm::BasicBlock* const usual = s.e.block("usual");
  llvm::BasicBlock* const other = s.e.block("other");
  llvm::BasicBlock* const after = s.e.block("after_scalar");
  // Nearest even, denormals kept.
  Value* const mode = s.ir.CreateAnd(s.e.load32(offsetof(Wave, mode)), 0x33);
  Value* is_usual = s.ir.CreateICmpEQ(mode, s.ir.getInt32(0x30));
  if (number != nullptr) is_usual = s.ir.CreateAnd(is_usual, s.ir.CreateFCmpORD(number, number));
  s.ir.CreateCondBr(is_usual, usual, other);
  s.ir.SetInsertPoint(other);
  s.handle();
  s.ir.CreateBr(after);
  s.ir.SetInsertPoint(usual);
  then();
  s.ir.CreateBr(after);
  s.ir.SetInsertPoint(after);
}
Value* number(Scalar& s, unsigned i) { return s.ir.CreateBitCast(s.read32(i), s.ir.getFloatTy()); }
void write_number(Scalar& s, Value* value) {
  as_usual(s, value, [&] { s.write(s.ir.CreateBitCast(value, s.ir.getInt32Ty())); });
}
template <llvm::Instruction::BinaryOps operation>
void float_operation(Scalar& s) {
  write_number(s, s.ir.CreateBinOp(operation, number(s, 0), number(s, 1)));
}
void float_fused(Scalar& s) {
  Value* const value =
      s.ir.CreateIntrinsic(llvm::Intrinsic::fma, {s.ir.getFloatTy()}, {number(s, 0), number(s, 1), number(s, 2)});
  write_number(s, value);
}
void float_accumulated(Scalar& s) {
  Value* const old = s.ir.CreateBitCast(s.old32(), s.ir.getFloatTy());
  write_number(s, s.ir.CreateIntrinsic(llvm::Intrinsic::fma, {s.ir.getFloatTy()}, {number(s, 0), number(s, 1), old}));
}
template <CmpInst::Predicate predicate>
void compare_numbers(Scalar& s) {
  as_usual(s, nullptr, [&] { s.set_scc(s.ir.CreateFCmp(predicate, number(s, 0), number(s, 1))); });
}
template <llvm::Instruction::BinaryOps operation>
void wide_operation(Scalar& s) {
  s.write(s.ir.CreateBinOp(operation, s.read64(0), s.read64(1)));
}

void add_rdna4(ScalarTable& t);

void nothing(Scalar& /*s*/) {}

const ScalarTable& scalar_table() {
  static const ScalarTable all = [] {
    ScalarTable t;
    for (const char* const name : {"s_nop", "s_waitcnt", "s_icache_inv", "s_dcache_inv", "s_dcache_wb", "s_setkill",
                                   "s_sendmsg", "s_incperflevel", "s_decperflevel", "buffer_wbl2", "buffer_inv"}) {
      t[name] = nothing;
    }
    t["s_setprio"] = [](Scalar& s) {
      s.e.store(s.ir.getInt8(static_cast<std::uint8_t>(s.immediate() & 3)), offsetof(Wave, priority), 1);
    };
    t["s_mov_b32"] = [](Scalar& s) { s.write(s.read32(0)); };
    t["s_mov_b64"] = [](Scalar& s) { s.write(s.read64(0)); };
    t["s_movk_i32"] = [](Scalar& s) { s.write(s.ir.getInt32(static_cast<std::uint32_t>(s.signed_immediate()))); };
    t["s_not_b32"] = [](Scalar& s) { s.write_and_test(s.ir.CreateNot(s.read32(0))); };
    t["s_not_b64"] = [](Scalar& s) { s.write_and_test(s.ir.CreateNot(s.read64(0))); };
    t["s_and_b32"] = [](Scalar& s) { logical<false>(s, [&](Value* a, Value* b) { return s.ir.CreateAnd(a, b); }); };
    t["s_and_b64"] = [](Scalar& s) { logical<true>(s, [&](Value* a, Value* b) { return s.ir.CreateAnd(a, b); }); };
    t["s_or_b32"] = [](Scalar& s) { logical<false>(s, [&](Value* a, Value* b) { return s.ir.CreateOr(a, b); }); };
    t["s_or_b64"] = [](Scalar& s) { logical<true>(s, [&](Value* a, Value* b) { return s.ir.CreateOr(a, b); }); };
    t["s_xor_b32"] = [](Scalar& s) { logical<false>(s, [&](Value* a, Value* b) { return s.ir.CreateXor(a, b); }); };
    t["s_xor_b64"] = [](Scalar& s) { logical<true>(s, [&](Value* a, Value* b) { return s.ir.CreateXor(a, b); }); };
    t["s_andn2_b32"] = [](Scalar& s) {
      logical<false>(s, [&](Value* a, Value* b) { return s.ir.CreateAnd(a, s.ir.CreateNot(b)); });
    };
    t["s_andn2_b64"] = [](Scalar& s) {
      logical<true>(s, [&](Value* a, Value* b) { return s.ir.CreateAnd(a, s.ir.CreateNot(b)); });
    };
    t["s_lshl_b32"] = [](Scalar& s) { s.write_and_test(s.ir.CreateShl(s.read32(0), amount<32>(s))); };
    t["s_lshl_b64"] = [](Scalar& s) { s.write_and_test(s.ir.CreateShl(s.read64(0), amount<64>(s))); };
    t["s_lshr_b32"] = [](Scalar& s) { s.write_and_test(s.ir.CreateLShr(s.read32(0), amount<32>(s))); };
    t["s_lshr_b64"] = [](Scalar& s) { s.write_and_test(s.ir.CreateLShr(s.read64(0), amount<64>(s))); };
    t["s_ashr_i32"] = [](Scalar& s) { s.write_and_test(s.ir.CreateAShr(s.read32(0), amount<32>(s))); };
    t["s_ashr_i64"] = [](Scalar& s) { s.write_and_test(s.ir.CreateAShr(s.read64(0, true), amount<64>(s))); };
    t["s_add_u32"] = [](Scalar& s) {
      s.set_scc(overflow(s, llvm::Intrinsic::uadd_with_overflow, s.read32(0), s.read32(1)));
    };
    t["s_sub_u32"] = [](Scalar& s) {
      s.set_scc(overflow(s, llvm::Intrinsic::usub_with_overflow, s.read32(0), s.read32(1)));
    };
    t["s_add_i32"] = [](Scalar& s) {
      s.set_scc(overflow(s, llvm::Intrinsic::sadd_with_overflow, s.read32(0), s.read32(1)));
    };
    t["s_sub_i32"] = [](Scalar& s) {
      s.set_scc(overflow(s, llvm::Intrinsic::ssub_with_overflow, s.read32(0), s.read32(1)));
    };
    t["s_addk_i32"] = [](Scalar& s) {
      s.set_scc(overflow(s, llvm::Intrinsic::sadd_with_overflow, s.old32(),
                         s.ir.getInt32(static_cast<std::uint32_t>(s.signed_immediate()))));
    };
    t["s_addc_u32"] = with_carry<false>;
    t["s_subb_u32"] = with_carry<true>;
    t["s_mul_i32"] = [](Scalar& s) { s.write(s.ir.CreateMul(s.read32(0), s.read32(1))); };
    t["s_mulk_i32"] = [](Scalar& s) {
      s.write(s.ir.CreateMul(s.old32(), s.ir.getInt32(static_cast<std::uint32_t>(s.signed_immediate()))));
    };
    t["s_mul_hi_u32"] = multiply_high<false>;
    t["s_mul_hi_i32"] = multiply_high<true>;
    t["s_lshl1_add_u32"] = shift_add<1>;
    t["s_lshl2_add_u32"] = shift_add<2>;
    t["s_lshl3_add_u32"] = shift_add<3>;
    t["s_lshl4_add_u32"] = shift_add<4>;
    t["s_min_i32"] = choose<CmpInst::ICMP_SLT>;
    t["s_min_u32"] = choose<CmpInst::ICMP_ULT>;
    t["s_max_i32"] = choose<CmpInst::ICMP_SGT>;
    t["s_max_u32"] = choose<CmpInst::ICMP_UGT>;
    t["s_cselect_b32"] = [](Scalar& s) { s.write(s.ir.CreateSelect(s.scc(), s.read32(0), s.read32(1))); };
    t["s_cselect_b64"] = [](Scalar& s) { s.write(s.ir.CreateSelect(s.scc(), s.read64(0), s.read64(1))); };
    t["s_cmp_eq_u64"] = [](Scalar& s) { s.set_scc(s.ir.CreateICmpEQ(s.read64(0), s.read64(1))); };
    t["s_cmp_lg_u64"] = [](Scalar& s) { s.set_scc(s.ir.CreateICmpNE(s.read64(0), s.read64(1))); };
    t["s_cmp_eq_i32"] = t["s_cmp_eq_u32"] = compare<CmpInst::ICMP_EQ>;
    t["s_cmp_lg_i32"] = t["s_cmp_lg_u32"] = compare<CmpInst::ICMP_NE>;
    t["s_cmp_gt_i32"] = compare<CmpInst::ICMP_SGT>;
    t["s_cmp_ge_i32"] = compare<CmpInst::ICMP_SGE>;
    t["s_cmp_lt_i32"] = compare<CmpInst::ICMP_SLT>;
    t["s_cmp_le_i32"] = compare<CmpInst::ICMP_SLE>;
    t["s_cmp_gt_u32"] = compare<CmpInst::ICMP_UGT>;
    t["s_cmp_ge_u32"] = compare<CmpInst::ICMP_UGE>;
    t["s_cmp_lt_u32"] = compare<CmpInst::ICMP_ULT>;
    t["s_cmp_le_u32"] = compare<CmpInst::ICMP_ULE>;
    t["s_cmpk_gt_i32"] = compare_constant<CmpInst::ICMP_SGT>;
    t["s_cmpk_ge_i32"] = compare_constant<CmpInst::ICMP_SGE>;
    t["s_cmpk_lt_i32"] = compare_constant<CmpInst::ICMP_SLT>;
    t["s_cmpk_le_i32"] = compare_constant<CmpInst::ICMP_SLE>;
    t["s_cmpk_gt_u32"] = compare_constant<CmpInst::ICMP_UGT>;
    t["s_cmpk_ge_u32"] = compare_constant<CmpInst::ICMP_UGE>;
    t["s_cmpk_lt_u32"] = compare_constant<CmpInst::ICMP_ULT>;
    t["s_cmpk_le_u32"] = compare_constant<CmpInst::ICMP_ULE>;
    add_rdna4(t);
    return t;
  }();
  return all;
}

// What RDNA4 spells its own way, as its registry does, and what it has of its own.
void add_rdna4(ScalarTable& t) {
  for (const auto& [name, emit] : ScalarTable(t)) {
    if (std::string other = rdna4_name(name); !other.empty()) t.try_emplace(std::move(other), emit);
  }
  for (const char* const name : {"s_wait_loadcnt", "s_wait_storecnt", "s_wait_dscnt", "s_wait_kmcnt",
                                 "s_wait_loadcnt_dscnt", "s_wait_storecnt_dscnt", "s_wait_expcnt", "s_wait_idle",
                                 "s_wait_alu", "s_clause", "s_delay_alu", "global_inv", "global_wb", "global_wbinv"}) {
    t[name] = nothing;
  }
  t["s_add_nc_u64"] = wide_operation<llvm::Instruction::Add>;
  t["s_sub_nc_u64"] = wide_operation<llvm::Instruction::Sub>;
  t["s_mul_u64"] = wide_operation<llvm::Instruction::Mul>;
  t["s_add_f32"] = float_operation<llvm::Instruction::FAdd>;
  t["s_sub_f32"] = float_operation<llvm::Instruction::FSub>;
  t["s_mul_f32"] = float_operation<llvm::Instruction::FMul>;
  t["s_fmaak_f32"] = t["s_fmamk_f32"] = float_fused;
  t["s_fmac_f32"] = float_accumulated;
  t["s_cmp_lt_f32"] = compare_numbers<CmpInst::FCMP_OLT>;
  t["s_cmp_eq_f32"] = compare_numbers<CmpInst::FCMP_OEQ>;
  t["s_cmp_le_f32"] = compare_numbers<CmpInst::FCMP_OLE>;
  t["s_cmp_gt_f32"] = compare_numbers<CmpInst::FCMP_OGT>;
  t["s_cmp_lg_f32"] = compare_numbers<CmpInst::FCMP_ONE>;
  t["s_cmp_ge_f32"] = compare_numbers<CmpInst::FCMP_OGE>;
  t["s_cmp_o_f32"] = compare_numbers<CmpInst::FCMP_ORD>;
  t["s_cmp_u_f32"] = compare_numbers<CmpInst::FCMP_UNO>;
  t["s_cmp_neq_f32"] = compare_numbers<CmpInst::FCMP_UNE>;
  t["s_cmp_nlt_f32"] = compare_numbers<CmpInst::FCMP_UGE>;
}

bool is_plain_register(const Operand& operand) {
  return operand.is_scalar() && operand.index + operand.dwords <= sgpr_exec;
}

}  // namespace

bool is_scalar_translated(const Instruction& instruction) {
  if (instruction.instruction_class != InstructionClass::scalar &&
      instruction.instruction_class != InstructionClass::control &&
      instruction.instruction_class != InstructionClass::memory) {
    return false;
  }
  const auto found = scalar_table().find(std::string(instruction.mnemonic));
  if (found == scalar_table().end()) return false;
  if (found->second == nothing) return true;
  for (unsigned i = 0; i < instruction.destination_count; ++i) {
    if (!is_plain_register(instruction.destination[i])) return false;
  }
  for (unsigned i = 0; i < instruction.source_count; ++i) {
    const Operand& operand = instruction.source[i];
    // EXEC may be read.
    const bool exec = operand.is_scalar() && operand.index >= sgpr_exec && operand.index + operand.dwords <= sgpr_count;
    if (!operand.is_constant() && !exec && !is_plain_register(operand)) return false;
  }
  return true;
}

void emit_scalar(Emitter& emitter, const Instruction& instruction) {
  Scalar scalar(emitter, instruction);
  scalar_table().at(std::string(instruction.mnemonic))(scalar);
}

}  // namespace wavejit::simgpu::compile
