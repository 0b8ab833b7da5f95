// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_merge/emit/emit.h"

#include <llvm/IR/IntrinsicsAMDGPU.h>

#include <algorithm>
#include <array>
#include <limits>
#include <numbers>
#include <span>

#include "codegen/language/buffer.h"
#include "codegen/language/control.h"
#include "codegen/language/convert.h"
#include "codegen/language/softmax.h"
#include "templates/attention/emit/output_bytes.h"

namespace wavejit::attention_merge {
namespace {

using language::Buffer;
using language::Element;
using language::Kernel;
using language::Value;
using language::Values;

constexpr int access_bytes = 16;
constexpr int dword_bytes = 4;

// A struct Stack in scalar registers.
class StackFields {
 public:
  StackFields(Kernel& kernel, Value* address) : kernel_(kernel) {
    constexpr int group_dwords = 8;
    for (std::size_t byte = 0; byte < sizeof(Stack); byte += group_dwords * sizeof(std::uint32_t)) {
      Value* group = kernel.load_scalar(kernel.ir().CreateAdd(address, kernel.ir().getInt64(byte)),
                                        kernel.vector(kernel.i32(), group_dwords));
      for (std::uint64_t dword = 0; dword < group_dwords; ++dword)
        dwords_.push_back(kernel.ir().CreateExtractElement(group, dword));
    }
  }
  Value* i32(std::size_t field) const { return dwords_[field / sizeof(std::uint32_t)]; }
  Value* i64(std::size_t field) const {
    llvm::IRBuilder<>& ir = kernel_.ir();
    constexpr int dword_bits = 32;
    const auto wide = [&](std::size_t at) { return ir.CreateZExt(i32(at), kernel_.i64()); };
    return ir.CreateOr(wide(field), ir.CreateShl(wide(field + sizeof(std::uint32_t)), dword_bits));
  }

 private:
  Kernel& kernel_;
  Values dwords_;
};

Element element_of(DataType type) { return type == DataType::bf16 ? Element::bf16 : Element::fp16; }

class Emission {
 public:
  Emission(Kernel& kernel, const MergeKernel& spec)
      : kernel_(kernel),
        ir_(kernel.ir()),
        spec_(spec),
        // Parts are told in natural logarithms. Nothing is rescaled here.
        softmax_(kernel, kernel.constant(std::numbers::log2e_v<float>), kernel.constant(0.0F)) {}

  void emit() {
    find_place();
    // m, l and the lane's dims of O.
    Values state(2 + dims_of_lane, kernel_.constant(0.0F));
    state[0] = least();
    Value* parts = ir_.CreateAdd(kernel_.argument_address(), ir_.getInt64(offsetof(Arguments, parts)));
    Value* end = ir_.CreateAdd(parts, bytes_of_stacks());
    state.push_back(parts);
    state = language::loop_in_phases(
        kernel_, 1, state, [&](int, const Values& before) { return with_stack(before); },
        [&](const Values& at) { return ir_.CreateICmpNE(at.back(), end); });
    state.pop_back();
    store(state);
  }

 private:
  Value* least() { return kernel_.constant(-std::numeric_limits<float>::infinity()); }
  Value* wide(Value* value) { return ir_.CreateZExt(value, kernel_.i64()); }
  Value* argument(std::size_t field) { return kernel_.argument_i32(field); }

  Value* bytes_of_stacks() {
    return ir_.CreateMul(wide(argument(offsetof(Arguments, stacks))), ir_.getInt64(sizeof(Stack)));
  }

  // The wave's token, the lane's head and dims.
  void find_place() {
    Value* waves = kernel_.constant(kernel_.threads() / kernel_.target().wave_size);
    Value* token = ir_.CreateAdd(ir_.CreateMul(kernel_.workgroup_x(), waves), kernel_.wave());
    has_token_ = ir_.CreateICmpULT(token, argument(offsetof(Arguments, tokens)));
    token_ = wide(ir_.CreateSelect(has_token_, token, kernel_.constant(0)));
    Value* shift = argument(offsetof(Arguments, lane_shift));
    Value* first = ir_.CreateMul(kernel_.workgroup_z(), argument(offsetof(Arguments, heads_of_wave)));
    head_ = ir_.CreateAdd(first, ir_.CreateLShr(kernel_.lane(), shift));
    piece_ =
        ir_.CreateAnd(kernel_.lane(), ir_.CreateSub(ir_.CreateShl(kernel_.constant(1), shift), kernel_.constant(1)));
    Value* has_head = ir_.CreateICmpULT(head_, argument(offsetof(Arguments, heads)));
    live_ = ir_.CreateAnd(has_head, ir_.CreateICmpULT(piece_, argument(offsetof(Arguments, pieces))));
  }

  Buffer row(Value* base, Value* batch_stride, Value* token_stride, Value* bytes) {
    Value* address = ir_.CreateAdd(base, ir_.CreateMul(wide(kernel_.workgroup_y()), batch_stride));
    address = ir_.CreateAdd(address, ir_.CreateMul(token_, token_stride));
    return {kernel_, address, ir_.CreateSelect(has_token_, bytes, kernel_.constant(0))};
  }
  Buffer o_row(const StackFields& stack, Value* base) {
    return row(base, stack.i64(offsetof(Stack, o_batch_stride)), stack.i64(offsetof(Stack, o_token_stride)),
               stack.i32(offsetof(Stack, o_row_bytes)));
  }
  Buffer lse_row(const StackFields& stack, Value* base) {
    return row(base, stack.i64(offsetof(Stack, lse_batch_stride)), stack.i64(offsetof(Stack, lse_token_stride)),
               stack.i32(offsetof(Stack, lse_row_bytes)));
  }
  Value* where(Value* condition, Value* offset) {
    return ir_.CreateSelect(condition, offset, ir_.getInt32(language::far_outside));
  }
  Value* o_offset(const StackFields& stack, DataType type) {
    Value* head = ir_.CreateMul(head_, stack.i32(offsetof(Stack, o_head_stride)));
    const int piece_bytes = dims_of_lane * bytes_of(type);
    return ir_.CreateAdd(head, ir_.CreateMul(piece_, kernel_.constant(piece_bytes)));
  }

  // All parts of a stack. State: m, l, O; the stack's address.
  Values with_stack(const Values& before) {
    Value* address = before.back();
    const StackFields stack(kernel_, address);
    Value* lse_offset = where(live_, ir_.CreateMul(head_, stack.i32(offsetof(Stack, lse_head_stride))));
    Value* offset = o_offset(stack, spec_.parts);
    Values state(before.begin(), before.end() - 1);
    state.insert(state.end(),
                 {stack.i64(offsetof(Stack, o)), stack.i64(offsetof(Stack, lse)), stack.i32(offsetof(Stack, parts))});
    state = language::loop_in_phases(
        kernel_, 1, state,
        [&](int, const Values& at) {
          const std::size_t places = at.size() - 3;
          Value* o = at[places];
          Value* lse = at[places + 1];
          Value* own = lse_row(stack, lse).load(dword_bytes, lse_offset, kernel_.constant(0));
          const Values dims = loaded(o_row(stack, o), offset);
          Values next = merged(at, ir_.CreateBitCast(own, kernel_.f32()), dims);
          next.insert(next.end(), {ir_.CreateAdd(o, stack.i64(offsetof(Stack, o_part_stride))),
                                   ir_.CreateAdd(lse, stack.i64(offsetof(Stack, lse_part_stride))),
                                   ir_.CreateSub(at[places + 2], kernel_.constant(1))});
          return next;
        },
        [&](const Values& at) { return ir_.CreateICmpNE(at.back(), kernel_.constant(0)); });
    state.resize(state.size() - 3);
    state.push_back(ir_.CreateAdd(address, ir_.getInt64(sizeof(Stack))));
    return state;
  }

  // The lane's dims, in f32: exact.
  Values loaded(const Buffer& row, Value* offset) {
    Values dims;
    const int bytes = dims_of_lane * bytes_of(spec_.parts);
    for (int byte = 0; byte < bytes; byte += access_bytes) {
      Value* dwords =
          row.load(access_bytes, where(live_, ir_.CreateAdd(offset, kernel_.constant(byte))), kernel_.constant(0));
      for (std::uint64_t dword = 0; dword < access_bytes / dword_bytes; ++dword)
        widen(dims, ir_.CreateExtractElement(dwords, dword));
    }
    return dims;
  }
  void widen(Values& dims, Value* dword) {
    if (spec_.parts == DataType::fp32) {
      dims.push_back(ir_.CreateBitCast(dword, kernel_.f32()));
      return;
    }
    if (spec_.parts == DataType::bf16) {
      for (const int half : {0, 1}) dims.push_back(language::float_of_bf16(kernel_, dword, half));
      return;
    }
    Value* pair =
        ir_.CreateFPExt(ir_.CreateBitCast(dword, kernel_.vector(ir_.getHalfTy(), 2)), kernel_.vector(kernel_.f32(), 2));
    for (const std::uint64_t half : {0U, 1U}) dims.push_back(ir_.CreateExtractElement(pair, half));
  }

  // m, l and O with one part more. A part without keys is (−∞, 0, 0), whatever its O is.
  Values merged(const Values& row, Value* lse, const Values& dims) {
    Value* empty = ir_.CreateFCmpOEQ(lse, least());
    const auto unless_empty = [&](Value* value) { return ir_.CreateSelect(empty, kernel_.constant(0.0F), value); };
    const language::MergeWeights weights = softmax_.merge_weights(row[0], lse);
    Values next = {weights.maximum, softmax_.merged(weights, row[1], unless_empty(kernel_.constant(1.0F)))};
    for (std::size_t dim = 0; dim < dims.size(); ++dim)
      next.push_back(softmax_.merged(weights, row[2 + dim], unless_empty(dims[dim])));
    return next;
  }

  // O / l, and m + ln l, which is a part's own LSE where no other counts.
  void store(const Values& row) {
    const StackFields result(kernel_,
                             ir_.CreateAdd(kernel_.argument_address(), ir_.getInt64(offsetof(Arguments, result))));
    Value* inverse = softmax_.inverse(row[1]);
    const auto fused = [&](Value* a, Value* b, Value* c) {
      return ir_.CreateIntrinsic(llvm::Intrinsic::fma, {kernel_.f32()}, {a, b, c});
    };
    Value* numbers = llvm::PoisonValue::get(kernel_.vector(kernel_.f32(), dims_of_lane));
    for (std::uint64_t dim = 0; dim < dims_of_lane; ++dim)
      numbers = ir_.CreateInsertElement(numbers, fused(row[2 + dim], inverse, kernel_.constant(0.0F)), dim);
    const Buffer o = o_row(result, result.i64(offsetof(Stack, o)));
    Value* offset = o_offset(result, spec_.out);
    const Values dwords = stored(numbers);
    const std::size_t of_access = std::min<std::size_t>(access_bytes / dword_bytes, dwords.size());
    for (std::size_t first = 0; first < dwords.size(); first += of_access) {
      Value* four = language::gather_dwords(kernel_, std::span(dwords).subspan(first, of_access));
      Value* byte = kernel_.constant(static_cast<int>(first) * dword_bytes);
      o.store(four, where(live_, ir_.CreateAdd(offset, byte)), kernel_.constant(0));
    }
    Value* log2_sum = ir_.CreateIntrinsic(llvm::Intrinsic::amdgcn_log, {kernel_.f32()}, {row[1]});
    Value* lse = fused(log2_sum, kernel_.constant(std::numbers::ln2_v<float>), row[0]);
    Value* is_first = ir_.CreateAnd(live_, ir_.CreateICmpEQ(piece_, kernel_.constant(0)));
    Value* lse_offset = where(is_first, ir_.CreateMul(head_, result.i32(offsetof(Stack, lse_head_stride))));
    lse_row(result, result.i64(offsetof(Stack, lse)))
        .store(ir_.CreateBitCast(lse, kernel_.i32()), lse_offset, kernel_.constant(0));
  }
  Values stored(Value* numbers) {
    if (is_narrow(spec_.out))
      return attention::OutputBytes(kernel_, spec_.out, offsetof(Arguments, o_scale),
                                    offsetof(Arguments, result) + offsetof(Stack, o_scale))
          .of(numbers, 0, dims_of_lane);
    if (spec_.out != DataType::fp32)
      return language::convert_packed(kernel_, numbers, 0, dims_of_lane, element_of(spec_.out),
                                      language::NanInput::kept);
    Values dwords;
    for (std::uint64_t dim = 0; dim < dims_of_lane; ++dim)
      dwords.push_back(ir_.CreateBitCast(ir_.CreateExtractElement(numbers, dim), kernel_.i32()));
    return dwords;
  }

  Kernel& kernel_;
  llvm::IRBuilder<>& ir_;
  const MergeKernel& spec_;
  language::Softmax softmax_;
  Value* has_token_ = nullptr;  // uniform
  Value* token_ = nullptr;      // i64, of its batch
  Value* head_ = nullptr;
  Value* piece_ = nullptr;  // of the head: eight dims
  Value* live_ = nullptr;   // i1: there is such a head, and such a piece
};

std::string name_of(const MergeKernel& spec) {
  const auto name = [](DataType type) { return std::string(families::name_in(output_types, type)); };
  return "attention_merge_" + name(spec.parts) + "_to_" + name(spec.out) + "_" + spec.target;
}

}  // namespace

families::EmittedModule emit(const MergeKernel& spec, const targets::Target& target, llvm::LLVMContext& context) {
  Kernel kernel(context, target,
                {.name = name_of(spec),
                 .threads = threads,
                 .waves_per_simd = waves_per_simd,
                 .argument_bytes = static_cast<int>(argument_bytes(spec)),
                 .strength_reduction = false});
  // Ids are made where they are first asked for: here, where every block can see them.
  (void)kernel.wave();
  (void)kernel.lane();
  (void)kernel.workgroup_x();
  (void)kernel.workgroup_y();
  Emission(kernel, spec).emit();
  return kernel.finish();
}

std::span<const families::KernelEmitter> emitters() {
  static constexpr std::array all = {families::emitter_of<MergeKernel>};
  return all;
}

}  // namespace wavejit::attention_merge
