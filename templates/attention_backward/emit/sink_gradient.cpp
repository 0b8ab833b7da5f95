// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_backward/emit/sink_gradient.h"

#include <llvm/IR/IntrinsicsAMDGPU.h>

#include <array>
#include <limits>
#include <numbers>

#include "codegen/language/control.h"
#include "codegen/language/lane_place.h"
#include "codegen/language/lds.h"
#include "codegen/language/synchronize.h"
#include "templates/attention/emit/sequence.h"
#include "templates/attention_backward/emit/row_numbers.h"
#include "templates/attention_backward/kernel/arguments.h"
#include "templates/attention_backward/kernel/canon.h"
#include "templates/attention_backward/kernel/spec.h"

namespace wavejit::attention_backward {
namespace {

using language::Kernel;
using language::Value;
using language::Values;

// Rows of a chain whose numbers are asked for at once.
constexpr int rows_at_once_of_chain = 4;

class SinkGradient {
 public:
  explicit SinkGradient(Kernel& kernel)
      : kernel_(kernel),
        thread_(kernel.thread()),
        wave_(kernel.wave()),
        lane_(kernel.lane()),
        head_(kernel.workgroup_x()),
        batch_(kernel.workgroup_z()),
        sequence_(attention::sequence_of(kernel, length_fields, batch_)),
        lse_(row_numbers(kernel, offsetof(Arguments, lse), batch_, head_, sequence_)),
        delta_(row_numbers(kernel, offsetof(Arguments, delta), batch_, head_, sequence_)),
        sink_(kernel.load_scalar(number_of_head(offsetof(Arguments, sink)), kernel.f32())),
        lds_(kernel, sink_chains * 4, 1) {}

  void emit() {
    llvm::IRBuilder<>& ir = kernel_.ir();
    const Values end = language::loop_in_phases(
        kernel_, 1, {kernel_.constant(0), kernel_.constant(0.0F)},
        [&](int, const Values& state) {
          Value* first = kernel_.uniform(state[0]);
          return Values{ir.CreateAdd(first, kernel_.constant(rows_at_once_of_chain * sink_chains)),
                        with_rows(first, state[1])};
        },
        [&](const Values& state) { return ir.CreateICmpSLT(state[0], sequence_.query_length); });
    write(end[1], ir.CreateShl(thread_, 2));
    language::wait_for_lds(kernel_);
    language::barrier(kernel_);
    language::if_uniform(kernel_, ir.CreateICmpEQ(wave_, kernel_.constant(0)), language::Likelihood::even,
                         [&] { store(sum_of_chains()); });
  }

 private:
  // i64
  Value* number_of_head(std::size_t at) {
    llvm::IRBuilder<>& ir = kernel_.ir();
    const auto step = [&](Value* index, std::size_t field) {
      return ir.CreateMul(ir.CreateZExt(index, kernel_.i64()), kernel_.argument_i64(at + field));
    };
    Value* base = kernel_.argument_i64(at + offsetof(HeadNumbersArgument, pointer));
    base = ir.CreateAdd(base, step(batch_, offsetof(HeadNumbersArgument, batch_stride)));
    return ir.CreateAdd(base, step(head_, offsetof(HeadNumbersArgument, head_stride)));
  }

  // The chain's next rows, ascending. A row past the end, or one that saw no key and no sink, weighs nothing: −(−∞)
  // would make it NaN.
  Value* with_rows(Value* first, Value* chain) {
    llvm::IRBuilder<>& ir = kernel_.ir();
    struct Row {
      Value* number;
      Value* lse;
      Value* delta;
    };
    std::array<Row, rows_at_once_of_chain> rows{};
    for (std::size_t i = 0; i < rows.size(); ++i) {
      Value* number = ir.CreateAdd(ir.CreateAdd(thread_, first), kernel_.constant(static_cast<int>(i) * sink_chains));
      Value* place = ir.CreateShl(number, 2);
      const auto load = [&](const language::Buffer& from) {
        return ir.CreateBitCast(from.load(4, place, kernel_.constant(0)), kernel_.f32());
      };
      rows[i] = {.number = number, .lse = load(lse_), .delta = load(delta_)};
    }
    for (const Row& row : rows) {
      Value* exponent = ir.CreateFMul(ir.CreateFSub(sink_, row.lse), kernel_.constant(std::numbers::log2e_v<float>));
      Value* weight = ir.CreateIntrinsic(llvm::Intrinsic::amdgcn_exp2, {kernel_.f32()}, {exponent});
      // A sink of ∞ is its row's LSE, and ∞ − ∞ would be NaN.
      weight = ir.CreateSelect(ir.CreateFCmpOEQ(sink_, row.lse), kernel_.constant(1.0F), weight);
      Value* counts =
          ir.CreateAnd(ir.CreateICmpSLT(row.number, sequence_.query_length),
                       ir.CreateFCmpUNE(row.lse, kernel_.constant(-std::numeric_limits<float>::infinity())));
      weight = ir.CreateSelect(counts, weight, kernel_.constant(0.0F));
      chain = ir.CreateIntrinsic(llvm::Intrinsic::fma, {kernel_.f32()}, {weight, row.delta, chain});
    }
    return chain;
  }

  void write(Value* number, Value* place) { lds_.write(0, ir().CreateBitCast(number, kernel_.i32()), place, 0); }
  Value* read(Value* place, int offset) { return ir().CreateBitCast(lds_.read(0, 4, place, offset), kernel_.f32()); }
  llvm::IRBuilder<>& ir() { return kernel_.ir(); }

  // Chains 128 apart, then 64, 32 … 1. From half a wave on every lane has both: a sum is the same either way.
  Value* sum_of_chains() {
    Value* own = ir().CreateShl(lane_, 2);
    static_assert(sink_chains == threads);
    const int lanes = language::wave_shape(kernel_).lanes;
    Value* sum = sum_from(own, 0, lanes);
    for (int apart = lanes / 2; apart > 0; apart /= 2) {
      language::wait_for_lds(kernel_);
      write(sum, own);
      language::wait_for_lds(kernel_);
      sum = ir().CreateFAdd(sum, read(ir().CreateXor(own, kernel_.constant(4 * apart)), 0));
    }
    return sum;
  }

  // The sum of the chains with the lane's number and those multiples of `apart` behind it, from `first` on.
  Value* sum_from(Value* own, int first, int apart) {
    if (apart == sink_chains) return read(own, first * static_cast<int>(sizeof(float)));
    Value* near = sum_from(own, first, 2 * apart);
    return ir().CreateFAdd(near, sum_from(own, first + apart, 2 * apart));
  }

  void store(Value* sum) {
    const language::Buffer to(kernel_, number_of_head(offsetof(Arguments, d_sink)), kernel_.constant(4));
    Value* writes = ir().CreateICmpEQ(lane_, kernel_.constant(0));
    Value* gradient = ir().CreateFSub(kernel_.constant(0.0F), sum);
    to.store(ir().CreateBitCast(gradient, kernel_.i32()),
             ir().CreateSelect(writes, kernel_.constant(0), ir().getInt32(0x80000000)), kernel_.constant(0));
  }

  Kernel& kernel_;
  Value* thread_;
  Value* wave_;
  Value* lane_;
  Value* head_;
  Value* batch_;
  attention::Sequence sequence_;
  language::Buffer lse_;
  language::Buffer delta_;
  Value* sink_;
  language::Lds lds_;
};

}  // namespace

void emit_sink_gradient(Kernel& kernel) { SinkGradient(kernel).emit(); }

}  // namespace wavejit::attention_backward
