// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "simgpu/machine/compile/host/vector_run.h"

#include <array>
#include <bit>
#include <bitset>
#include <map>
#include <optional>
#include <span>

#include "simgpu/machine/compile/host/scalar.h"
#include "simgpu/machine/compile/host/vector_operations.h"
#include "simgpu/machine/decode/dual.h"

namespace wavejit::simgpu::compile {
namespace {

using llvm::Value;
using vector::Kind;

// More would not stay in registers, and LLVM's work grows faster than a run's length.
constexpr std::uint32_t longest_run = 64;
constexpr unsigned most_written = 32;

const vector::Bound& bound_of(const Instruction& instruction) {
  return *std::bit_cast<const vector::Bound*>(instruction.payload);
}

bool is_vector(const Instruction& instruction) { return instruction.instruction_class == InstructionClass::vector; }
bool is_dual(const Instruction& instruction) { return instruction.record->action == Action::dual; }
// Calls `body` for a vector instruction, or for both of a pair.
template <typename Body>
void each_part(const Instruction& instruction, Body&& body) {
  if (!is_dual(instruction)) return body(instruction);
  body(dual_of(instruction).first);
  body(dual_of(instruction).second);
}
bool makes_mask(const Instruction& instruction) {
  return is_vector(instruction) && !is_dual(instruction) && bound_of(instruction).operation->result == Kind::mask;
}

bool is_source_translated(const Operand& operand, Kind kind) {
  if (kind == Kind::mask) return operand.is_scalar() && operand.index < sgpr_count - 1;
  if (operand.is_vector()) return true;
  if (operand.is_constant()) return operand.lanes != nullptr;
  return operand.is_scalar() && operand.index + vector::dwords_of(kind) <= sgpr_count;
}

// --- What scalar registers an instruction has to do with.
using ScalarSet = std::bitset<sgpr_count>;

ScalarSet scalars(unsigned first, unsigned count) {
  ScalarSet set;
  for (unsigned i = first; i < first + count && i < sgpr_count; ++i) set.set(i);
  return set;
}
ScalarSet scalars(const Operand& operand, unsigned least = 1) {
  if (!operand.is_scalar()) return {};
  return scalars(operand.index, std::max<unsigned>(operand.dwords, least));
}

// The instructions that may run together, one added at a time.
class Grouping {
 public:
  bool add_vector(const Instruction& instruction) {
    const vector::Operation& operation = *bound_of(instruction).operation;
    if (needs_what_waits(instruction, operation)) return false;
    ScalarSet reads;
    for (unsigned i = 0; i < operation.source_count; ++i) {
      const bool mask = operation.source[i] == Kind::mask;
      ScalarSet these;
      if (i < instruction.source_count) {
        these = scalars(instruction.source[i], mask ? 1 : vector::dwords_of(operation.source[i]));
      } else if (mask) {
        these = scalars(sgpr_vcc, 2);
      }
      // A mask made in this run is known to the instructions that choose by it, and to nobody else.
      const unsigned first = i < instruction.source_count ? instruction.source[i].index : unsigned{sgpr_vcc};
      if ((these & masks_).any() && !(mask && starts_.test(first))) return false;
      reads |= these;
    }
    if (operation.result == Kind::mask) {
      const ScalarSet written = scalars(instruction.destination[0]);
      const bool known = starts_.test(instruction.destination[0].index);
      if (!known && ((written & masks_).any() || starts_.count() == Run::most_masks)) return false;
      masks_ |= written;
      starts_.set(instruction.destination[0].index);
    } else {
      for (unsigned i = 0; i < vector::dwords_of(operation.result); ++i) {
        written_.set(instruction.destination[0].index + i);
      }
      if (written_.count() > most_written) return false;
    }
    read_ |= reads;
    return true;
  }
  // A matrix instruction that waits until the run is over: what follows may neither need its result nor change what it
  // reads.
  bool add_matrix(const Instruction& instruction) {
    for (unsigned i = 0; i < instruction.source_count; ++i) {
      const Operand& source = instruction.source[i];
      if (source.is_scalar()) return false;
      if (source.is_vector()) mark(waiting_reads_, source);
    }
    mark(waiting_writes_, instruction.destination[0]);
    return true;
  }
  // Scalar instructions come before everything else, so that nothing before them may read what they write.
  bool add_scalar(const Instruction& instruction) const {
    ScalarSet all;
    ScalarSet written;
    for (unsigned i = 0; i < instruction.source_count; ++i) all |= scalars(instruction.source[i], 2);
    for (unsigned i = 0; i < instruction.destination_count; ++i) written |= scalars(instruction.destination[i], 2);
    return ((all | written) & masks_).none() && (written & read_).none();
  }

 private:
  using VectorSet = std::bitset<2 * accumulation_base>;
  static void mark(VectorSet& set, const Operand& operand, unsigned least = 1) {
    for (unsigned i = 0; i < std::max<unsigned>(operand.dwords, least); ++i) set.set(operand.index + i);
  }
  bool needs_what_waits(const Instruction& instruction, const vector::Operation& operation) const {
    if (waiting_writes_.none()) return false;
    VectorSet reads;
    VectorSet writes;
    for (unsigned i = 0; i < instruction.source_count; ++i) {
      if (instruction.source[i].is_vector()) mark(reads, instruction.source[i], vector::dwords_of(operation.source[i]));
    }
    if (instruction.destination[0].is_vector())
      mark(writes, instruction.destination[0], vector::dwords_of(operation.result));
    const bool keeps_half = (bound_of(instruction).flags & vector::flag_keeps_high_half) != 0;
    if (keeps_half || operation.source_count > instruction.source_count) reads |= writes;
    return (reads & waiting_writes_).any() || (writes & (waiting_writes_ | waiting_reads_)).any();
  }

  VectorSet waiting_reads_;
  VectorSet waiting_writes_;
  ScalarSet read_;    // by vector instructions
  ScalarSet masks_;   // written by compares
  ScalarSet starts_;  // their first registers
  VectorSet written_;
};

// Where a run's values are while the body of its loop is written.
class Body final : public Operands {
 public:
  Body(Emitter& emitter, Lanes& lanes) : e_(emitter), lanes_(lanes) {}

  // Before the loop: what comes from scalar registers.
  void capture(const Instruction& instruction) {
    const vector::Operation& operation = *bound_of(instruction).operation;
    for (unsigned i = 0; i < operation.source_count; ++i) {
      const Kind kind = operation.source[i];
      if (kind == Kind::mask) {
        const unsigned index = mask_index(instruction, i);
        captured_[{&instruction, 2 * i}] = e_.load64(Emitter::sgpr_offset(index));
        continue;
      }
      if (i >= instruction.source_count || !instruction.source[i].is_scalar()) continue;
      for (unsigned dword = 0; dword < vector::dwords_of(kind); ++dword) {
        Value* const word = e_.load32(Emitter::sgpr_offset(instruction.source[i].index + dword));
        captured_[{&instruction, (2 * i) + dword}] = e_.ir.CreateVectorSplat(e_.host.lanes, word);
      }
    }
  }

  void begin(Value* lane) { lane_ = lane; }
  // Both of a pair read before either writes.
  void emit(const Instruction& instruction) {
    if (!is_dual(instruction)) return emit_one(instruction);
    const Dual& dual = dual_of(instruction);
    const unsigned index = dual.first.destination[0].index;
    const Held before = held(index);
    emit_one(dual.first);
    const Held after = held(index);
    hold(index, before);
    emit_one(dual.second);
    hold(index, after);
  }
  void commit() {
    for (const auto& [index, value] : written_) {
      e_.ir.CreateAlignedStore(value, address(index), llvm::Align(4 * e_.host.lanes));
    }
  }
  // Lane masks by the scalar register where they start.
  const std::map<unsigned, Value*>& masks() const { return masks_; }

  Value* word(unsigned index, unsigned dword) override {
    const Operand& operand = operand_at(index);
    const Kind kind = kind_of(index);
    Value* value = raw(operand, index, dword);
    if (kind == Kind::f16) {
      value = half_of(value, index < instruction_->source_count && bit(instruction_->op_sel, index));
      if (operand.absolute) value = e_.ir.CreateAnd(value, lanes_.splat(0x7fffU));
      if (operand.negate) value = e_.ir.CreateXor(value, lanes_.splat(0x8000U));
    } else if (kind == Kind::f32 || kind == Kind::mixed) {
      if (kind == Kind::mixed && bit(instruction_->op_sel_hi, index)) {
        value = lanes_.as_bits(lanes_.from_half(half_of(value, bit(instruction_->op_sel, index))));
      }
      const bool absolute = operand.absolute || (kind == Kind::mixed && bit(instruction_->neg_hi, index));
      value = signed_as_asked(value, absolute, operand.negate != bit(instruction_->neg_lo, index));
    } else if (kind == Kind::b32) {
      value = signed_as_asked(value, operand.absolute, operand.negate);  // v_cndmask takes floats, too
    }
    return value;
  }
  Value* number(unsigned index, unsigned dword) override {
    if (kind_of(index) != Kind::pk_f32) return float_of(word(index, dword));
    const bool from_high = bit(dword == 0 ? instruction_->op_sel : instruction_->op_sel_hi, index);
    const bool negate = bit(dword == 0 ? instruction_->neg_lo : instruction_->neg_hi, index);
    return float_of(signed_as_asked(raw(operand_at(index), index, from_high ? 1 : 0), false, negate));
  }
  Value* mask(unsigned index) override {
    const auto made = masks_.find(mask_index(*instruction_, index));
    if (made != masks_.end()) return made->second;
    Value* const whole = captured_.at({instruction_, 2 * index});
    Value* const part = e_.ir.CreateTrunc(e_.ir.CreateLShr(whole, lane_), e_.ir.getIntNTy(e_.host.lanes));
    return e_.ir.CreateBitCast(part, lanes_.bits);
  }
  void result(Value* value, unsigned dword) override {
    const unsigned index = instruction_->destination[0].index + dword;
    if ((bound_of(*instruction_).flags & vector::flag_keeps_high_half) != 0) value = with_other_half(value);
    // The floating-point value is remembered beside its bits: it is the same one to those who check it.
    floats_.erase(index);
    if (value->getType() == lanes_.floats) floats_[index] = value;
    Value* const word = lanes_.as_bits(value);
    registers_[index] = word;
    written_[index] = word;
  }
  void result_mask(Value* bits) override { masks_[instruction_->destination[0].index] = bits; }
  const Instruction& instruction() const override { return *instruction_; }

 private:
  // What a register is known to hold, as bits and as the float that they were made from.
  struct Held {
    Value* word;
    Value* number;
  };
  Held held(unsigned index) {
    const auto number = floats_.find(index);
    return {registers_[index], number == floats_.end() ? nullptr : number->second};
  }
  void hold(unsigned index, const Held& what) {
    registers_[index] = what.word;
    floats_.erase(index);
    if (what.number != nullptr) floats_[index] = what.number;
  }
  void emit_one(const Instruction& instruction) {
    instruction_ = &instruction;
    find_operation(instruction.mnemonic)(lanes_, *this);
  }
  // The lower 16 bits, or the upper ones there.
  Value* half_of(Value* word, bool upper) {
    if (upper) return e_.ir.CreateLShr(word, lanes_.splat(16U));
    return e_.ir.CreateAnd(word, lanes_.splat(0xffffU));
  }
  // 16 bits beside what the destination's other half holds.
  Value* with_other_half(Value* half) {
    Value* const old = raw(instruction_->destination[0], 0, 0);
    const unsigned flags = bound_of(*instruction_).flags;
    const bool upper = (flags & vector::flag_high_half) != 0 || bit(instruction_->op_sel, 3);
    if (upper) half = e_.ir.CreateShl(half, lanes_.splat(16U));
    return e_.ir.CreateOr(e_.ir.CreateAnd(old, lanes_.splat(upper ? 0xffffU : 0xffff0000U)), half);
  }
  static bool bit(unsigned word, unsigned index) { return ((word >> index) & 1U) != 0; }
  static unsigned mask_index(const Instruction& instruction, unsigned i) {
    return i < instruction.source_count ? instruction.source[i].index : unsigned{sgpr_vcc};
  }
  Kind kind_of(unsigned index) const { return bound_of(*instruction_).operation->source[index]; }
  const Operand& operand_at(unsigned index) const {
    return index < instruction_->source_count ? instruction_->source[index] : instruction_->destination[0];
  }
  Value* address(unsigned index) {
    Value* const row = e_.address(std::size_t{index} * lane_places * sizeof(std::uint32_t));
    return e_.ir.CreateInBoundsGEP(e_.ir.getInt32Ty(), row, lane_);
  }
  Value* raw(const Operand& operand, unsigned index, unsigned dword) {
    if (operand.is_vector()) {
      Value*& value = registers_[operand.index + dword];
      if (value == nullptr) {
        value =
            e_.ir.CreateAlignedLoad(lanes_.integers, address(operand.index + dword), llvm::Align(4 * e_.host.lanes));
      }
      return value;
    }
    if (operand.is_constant()) return lanes_.splat(operand.lanes[std::size_t{dword} * lane_places]);
    return captured_.at({instruction_, (2 * index) + dword});
  }
  Value* signed_as_asked(Value* word, bool absolute, bool negate) {
    if (absolute) word = e_.ir.CreateAnd(word, lanes_.splat(0x7fffffffU));
    if (negate) word = e_.ir.CreateXor(word, lanes_.splat(0x80000000U));
    return word;
  }
  // One float for one word, so that what was checked once is not checked again.
  Value* float_of(Value* word) {
    Value*& value = as_float_[word];
    if (value != nullptr) return value;
    for (const auto& [index, known] : floats_) {
      if (registers_[index] == word) return value = known;
    }
    return value = lanes_.as_float(word);
  }

  Emitter& e_;
  Lanes& lanes_;
  Value* lane_ = nullptr;
  const Instruction* instruction_ = nullptr;
  std::map<std::pair<const Instruction*, unsigned>, Value*> captured_;
  std::map<unsigned, Value*> registers_;
  std::map<unsigned, Value*> written_;
  std::map<unsigned, Value*> floats_;
  std::map<Value*, Value*> as_float_;
  std::map<unsigned, Value*> masks_;
};

bool is_matrix(const Instruction& instruction) { return instruction.instruction_class == InstructionClass::matrix; }
bool is_transcendental(const Instruction& instruction) {
  return is_vector(instruction) && !is_dual(instruction) &&
         (bound_of(instruction).flags & vector::flag_transcendental) != 0;
}

}  // namespace

bool is_vector_translated(const Instruction& instruction) {
  if (!is_vector(instruction) || instruction.inner != nullptr || instruction.payload == 0) return false;
  if (is_dual(instruction)) {
    const Dual& dual = dual_of(instruction);
    return is_vector_translated(dual.first) && is_vector_translated(dual.second);
  }
  if (instruction.encoding == Encoding::dpp || instruction.encoding == Encoding::sdwa || instruction.clamp ||
      instruction.output_modifier != OutputModifier::none || find_operation(instruction.mnemonic) == nullptr) {
    return false;
  }
  const vector::Bound& bound = bound_of(instruction);
  const vector::Operation& operation = *bound.operation;
  if ((bound.flags & (vector::flag_writes_exec | vector::flag_kernel_op_sel)) != 0) {
    return false;
  }
  for (unsigned i = 0; i < operation.source_count; ++i) {
    if (i < instruction.source_count && !is_source_translated(instruction.source[i], operation.source[i])) return false;
  }
  const Operand& destination = instruction.destination[0];
  if (operation.result == Kind::mask)
    return destination.is_scalar() && destination.index + destination.dwords <= sgpr_exec;
  return destination.is_vector() && instruction.destination_count == 1;
}

std::uint32_t run_length(const Instruction* first, std::uint32_t count, const Host& /*host*/) {
  Grouping grouping;
  std::uint32_t length = 0;
  for (std::uint32_t i = 0; i < count && i < longest_run; ++i) {
    if (is_vector_translated(first[i])) {
      bool added = true;
      each_part(first[i], [&](const Instruction& part) { added = added && grouping.add_vector(part); });
      if (!added) break;
      length = i + 1;
    } else if (first[i].instruction_class == InstructionClass::matrix) {
      if (!grouping.add_matrix(first[i])) break;
    } else if (!is_scalar_translated(first[i]) || !grouping.add_scalar(first[i])) {
      break;
    }
  }
  return length;
}

void emit_run(Emitter& emitter, Run& run, const Helpers& helpers) {
  llvm::IRBuilder<>& ir = emitter.ir;
  const std::span instructions(run.first, run.count);
  llvm::BasicBlock* const fast = emitter.block("run");
  llvm::BasicBlock* const interpreted = emitter.block("interpreted");
  llvm::BasicBlock* const loop = emitter.block("lanes");
  llvm::BasicBlock* const left = emitter.block("left");
  llvm::BasicBlock* const after = emitter.block("after");
  auto* const voidty = ir.getVoidTy();
  auto* const pointer = ir.getPtrTy();

  // All lanes, denormals kept, nearest even: everything else is the interpreter's.
  Value* const all_lanes = emitter.load64(offsetof(Wave, all_lanes));
  Value* const exec = ir.CreateAnd(emitter.load64(Emitter::sgpr_offset(sgpr_exec)), all_lanes);
  Value* const full = ir.CreateICmpEQ(exec, all_lanes);
  Value* const mode = ir.CreateAnd(emitter.load32(offsetof(Wave, mode)), 0xff);
  Value* const usual = ir.CreateICmpEQ(mode, ir.getInt32(0xf0));
  Value* translated = ir.CreateAnd(full, usual);
  if (std::ranges::any_of(instructions, is_transcendental)) {
    // The nearest results; others that the ISA permits are the interpreter's as well.
    Value* const key = emitter.load32(offsetof(Wave, transcendentals_key));
    translated = ir.CreateAnd(translated, ir.CreateICmpEQ(key, ir.getInt32(0)));
  }
  ir.CreateCondBr(translated, fast, interpreted);

  ir.SetInsertPoint(interpreted);
  ir.CreateCall(llvm::FunctionType::get(voidty, {pointer, pointer}, false),
                emitter.pointer(reinterpret_cast<const void*>(helpers.interpret)),
                {emitter.wave, emitter.pointer(&run)});
  ir.CreateBr(after);

  ir.SetInsertPoint(fast);
  Lanes lanes(emitter);
  Body body(emitter, lanes);
  for (const Instruction& instruction : instructions) {
    if (is_vector(instruction)) {
      each_part(instruction, [&](const Instruction& part) { body.capture(part); });
    } else if (!is_matrix(instruction)) {
      emit_scalar(emitter, instruction);
    }
  }
  Value* const lane_count = ir.CreateZExt(emitter.load32(offsetof(Wave, lane_count)), ir.getInt64Ty());
  llvm::BasicBlock* const entry = ir.GetInsertBlock();
  ir.CreateBr(loop);

  ir.SetInsertPoint(loop);
  llvm::PHINode* const lane = ir.CreatePHI(ir.getInt64Ty(), 2);
  lane->addIncoming(ir.getInt64(0), entry);
  body.begin(lane);
  // Masks grow by a group of lanes a turn. Which there are is known beforehand.
  for (const Instruction& instruction : instructions) {
    if (!makes_mask(instruction)) continue;
    run.narrow_masks = instruction.destination[0].dwords == 1;
    const auto known = std::span(run.masks, run.mask_count);
    const auto index = instruction.destination[0].index;
    if (std::ranges::find(known, index) == known.end()) run.masks[run.mask_count++] = index;
  }
  std::array<llvm::PHINode*, Run::most_masks> gathered{};
  for (unsigned i = 0; i < run.mask_count; ++i) {
    gathered[i] = ir.CreatePHI(ir.getInt64Ty(), 2);
    gathered[i]->addIncoming(ir.getInt64(0), entry);
  }
  for (const Instruction& instruction : instructions) {
    if (is_vector(instruction)) body.emit(instruction);
  }
  std::array<Value*, Run::most_masks> group{};
  for (unsigned i = 0; i < run.mask_count; ++i) {
    Value* const word = ir.CreateBitCast(body.masks().at(run.masks[i]), ir.getIntNTy(emitter.host.lanes));
    group[i] = ir.CreateShl(ir.CreateZExt(word, ir.getInt64Ty()), lane);
  }
  Value* const rejected = lanes.rejected();
  llvm::BasicBlock* next = loop;
  std::array<Value*, Run::most_masks> part = group;
  if (rejected != nullptr) {
    llvm::BasicBlock* const commit = emitter.block("commit");
    llvm::BasicBlock* const odd = emitter.block("odd");
    next = emitter.block("next");
    ir.CreateCondBr(rejected, odd, commit);
    ir.SetInsertPoint(commit);
    body.commit();
    ir.CreateBr(next);

    ir.SetInsertPoint(odd);
    Value* const which = ir.CreateShl(ir.getInt64((std::uint64_t{1} << emitter.host.lanes) - 1), lane);
    ir.CreateCall(llvm::FunctionType::get(voidty, {pointer, pointer, ir.getInt64Ty(), pointer}, false),
                  emitter.pointer(reinterpret_cast<const void*>(helpers.interpret_lanes)),
                  {emitter.wave, emitter.pointer(&run), which, emitter.masks});
    std::array<Value*, Run::most_masks> instead{};
    for (unsigned i = 0; i < run.mask_count; ++i) {
      instead[i] = ir.CreateAlignedLoad(
          ir.getInt64Ty(), ir.CreateConstInBoundsGEP1_64(ir.getInt64Ty(), emitter.masks, i), llvm::Align(8));
    }
    ir.CreateBr(next);

    ir.SetInsertPoint(next);
    for (unsigned i = 0; i < run.mask_count; ++i) {
      llvm::PHINode* const either = ir.CreatePHI(ir.getInt64Ty(), 2);
      either->addIncoming(group[i], commit);
      either->addIncoming(instead[i], odd);
      part[i] = either;
    }
  } else {
    body.commit();
  }
  std::array<Value*, Run::most_masks> sum{};
  for (unsigned i = 0; i < run.mask_count; ++i) {
    sum[i] = ir.CreateOr(gathered[i], part[i]);
    gathered[i]->addIncoming(sum[i], next);
  }
  Value* const following = ir.CreateAdd(lane, ir.getInt64(emitter.host.lanes));
  lane->addIncoming(following, next);
  ir.CreateCondBr(ir.CreateICmpULT(following, lane_count), loop, left);

  ir.SetInsertPoint(left);
  for (unsigned i = 0; i < run.mask_count; ++i) {
    Value* const mask = run.narrow_masks ? ir.CreateTrunc(sum[i], ir.getInt32Ty()) : sum[i];
    emitter.store(mask, Emitter::sgpr_offset(run.masks[i]));
  }
  for (const Instruction& instruction : instructions) {
    if (is_matrix(instruction)) emitter.call_handler(instruction);
  }
  ir.CreateBr(after);
  ir.SetInsertPoint(after);
}

}  // namespace wavejit::simgpu::compile
