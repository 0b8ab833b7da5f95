// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_forward/emit/combine/emit.h"

#include <llvm/IR/IntrinsicsAMDGPU.h>

#include <bit>
#include <functional>

#include "codegen/language/buffer.h"
#include "codegen/language/control.h"
#include "codegen/language/convert.h"
#include "codegen/language/softmax.h"
#include "templates/attention_forward/call/combine/arguments.h"
#include "templates/attention_forward/call/combine/parameters.h"
#include "templates/attention_forward/emit/combine/workspace.h"
#include "templates/attention_forward/emit/sequence.h"

namespace wavejit::attention_combine {
namespace {

using language::Buffer;
using language::Element;
using language::Kernel;
using language::Likelihood;
using language::Value;
using language::Values;

constexpr int waves_per_simd = 8;
// Splits whose loads are on their way together.
constexpr int group = 4;

// One row is a few neighbouring lanes, each with four dims. Two walks over the row's records, both from split 0 upward:
// the largest maximum, then everything scaled to it and added.
class Combine {
 public:
  Combine(Kernel& kernel, const KernelSpec& spec)
      : kernel_(kernel),
        ir_(kernel.ir()),
        spec_(spec),
        batch_(kernel.workgroup_z()),
        head_(kernel.workgroup_y()),
        splits_(kernel.argument_i32(offsetof(Arguments, splits))),
        scale_(positive_scale()),
        // Nothing is rescaled here: the second walk knows the largest maximum.
        softmax_(kernel, scale_, kernel.constant(0.0F)) {}

  void emit() {
    Value* first_row = ir_.CreateMul(kernel_.workgroup_x(), kernel_.constant(rows_per_workgroup(spec_)));
    // Ids are made where they are first asked for: here, where every block can see them.
    (void)kernel_.thread();
    const attention_forward::QuerySpan sequence =
        attention_forward::query_span_of(kernel_,
                                         {.starts = offsetof(Arguments, query_starts),
                                          .rows = offsetof(Arguments, query_rows),
                                          .longest = offsetof(Arguments, query_length)},
                                         batch_);
    // A sequence shorter than the longest one has no such rows, and no offset below would stay inside its slices.
    language::if_uniform(kernel_, ir_.CreateICmpULT(first_row, sequence.length), Likelihood::even, [&] {
      rows_ = ir_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, ir_.CreateSub(sequence.length, first_row),
                                        kernel_.constant(rows_per_workgroup(spec_)));
      combine_rows(ir_.CreateAdd(sequence.start, first_row));
    });
  }

 private:
  // What a lane has of a row after both walks.
  struct Merged {
    Value* maximum;
    Value* sum;
    Values outputs;
  };

  // `first_row` of the tensor: of all sequences where they are packed.
  void combine_rows(Value* first_row) {
    const int lanes = lanes_per_row(spec_);
    const int shift = std::countr_zero(static_cast<unsigned>(lanes));
    row_ = ir_.CreateLShr(kernel_.thread(), kernel_.constant(shift));
    piece_ = ir_.CreateAnd(kernel_.thread(), kernel_.constant(lanes - 1));

    const WorkspacePlace place = {
        .workspace = kernel_.argument_i64(offsetof(Arguments, workspace)),
        .splits = splits_,
        .query_heads = kernel_.argument_i32(offsetof(Arguments, query_heads)),
        .batch = ir_.CreateSelect(ir_.CreateIsNull(kernel_.argument_i64(offsetof(Arguments, query_starts))), batch_,
                                  kernel_.constant(0)),
        .query_head = head_,
        .rows_of_head = kernel_.argument_i32(offsetof(Arguments, query_rows)),
        .first_row = first_row,
    };
    Value* row_stride = row_bytes(kernel_, place, spec_.head_dim);
    const Buffer records(kernel_, record_address(kernel_, place, spec_.head_dim, kernel_.constant(0)),
                         ir_.CreateMul(rows_, row_stride));
    Value* record = ir_.CreateMul(row_, row_stride);
    statistics_offset_ = ir_.CreateAdd(record, kernel_.constant(spec_.head_dim * 4));
    output_offset_ = only_lanes_with_dims(ir_.CreateAdd(record, ir_.CreateMul(piece_, kernel_.constant(16))));
    store(merge(records, largest(records)), first_row);
  }

  // Softmax::Softmax's c: what attention_forward takes for it (docs/canonical-arithmetic.md, Scale).
  Value* positive_scale() {
    Value* bits = kernel_.argument_i32(offsetof(Arguments, scale_log2e));
    Value* magnitude = ir_.CreateBinaryIntrinsic(llvm::Intrinsic::umax, ir_.CreateAnd(bits, ir_.getInt32(0x7FFFFFFF)),
                                                 ir_.getInt32(0x00800000));
    return ir_.CreateBitCast(magnitude, kernel_.f32());
  }

  // Where the lanes of a row are more than its dims need, the rest points far outside: reads 0, stores nothing.
  Value* only_lanes_with_dims(Value* offset) {
    const int pieces = spec_.head_dim / dims_per_lane;
    if (pieces == lanes_per_row(spec_)) return offset;
    return ir_.CreateSelect(ir_.CreateICmpULT(piece_, kernel_.constant(pieces)), offset, ir_.getInt32(0x80000000));
  }

  // body(values, byte offsets of the next records) for all splits in order: groups as long as they are whole, then one
  // by one. There is at least one split.
  Values over_splits(const Values& initial, const std::function<Values(const Values&, const Values&)>& body) {
    const int record = record_bytes(spec_.head_dim);
    Values state = initial;
    state.insert(state.begin(), kernel_.constant(0));
    const auto walk = [&](const Values& start, int count, Value* end) {
      return language::loop_in_phases(
          kernel_, 1, start,
          [&](int, const Values& at) {
            Value* split = kernel_.uniform(at[0]);
            Values offsets;
            for (int i = 0; i < count; ++i)
              offsets.push_back(ir_.CreateMul(ir_.CreateAdd(split, kernel_.constant(i)), kernel_.constant(record)));
            Values next = body({at.begin() + 1, at.end()}, offsets);
            next.insert(next.begin(), ir_.CreateAdd(split, kernel_.constant(count)));
            return next;
          },
          [&](const Values& at) { return ir_.CreateICmpULT(at[0], end); });
    };
    Value* whole = ir_.CreateAnd(splits_, kernel_.constant(-group));
    state = language::if_uniform(kernel_, ir_.CreateICmpNE(whole, kernel_.constant(0)), Likelihood::even, state,
                                 [&](const Values& in) { return walk(in, group, whole); });
    state = language::if_uniform(kernel_, ir_.CreateICmpULT(whole, splits_), Likelihood::even, state,
                                 [&](const Values& in) { return walk(in, 1, splits_); });
    return {state.begin() + 1, state.end()};
  }

  Value* largest(const Buffer& records) {
    return over_splits({softmax_.initial().maximum}, [&](const Values& at, const Values& offsets) {
      Values loaded;
      for (Value* offset : offsets) loaded.push_back(records.load(4, statistics_offset_, offset));
      Value* maximum = at[0];
      for (Value* bits : loaded)
        maximum = ir_.CreateBinaryIntrinsic(llvm::Intrinsic::maxnum, maximum, ir_.CreateBitCast(bits, kernel_.f32()));
      return Values{maximum};
    })[0];
  }

  Merged merge(const Buffer& records, Value* maximum) {
    const Values start(1 + dims_per_lane, kernel_.constant(0.0F));
    const Values end = over_splits(start, [&](const Values& at, const Values& offsets) {
      Values statistics;
      Values outputs;
      for (Value* offset : offsets) {
        statistics.push_back(records.load(8, statistics_offset_, offset));
        outputs.push_back(records.load(16, output_offset_, offset));
      }
      Values sums = at;
      for (std::size_t i = 0; i < offsets.size(); ++i) {
        Value* weight = weight_of(element(statistics[i], 0), maximum);
        sums[0] = fused(element(statistics[i], 1), weight, sums[0]);
        for (std::size_t dim = 0; dim < dims_per_lane; ++dim)
          sums[1 + dim] = fused(element(outputs[i], dim), weight, sums[1 + dim]);
      }
      return sums;
    });
    return {.maximum = maximum, .sum = end[0], .outputs = {end.begin() + 1, end.end()}};
  }

  // exp2((m − largest) · c). Exactly 1 where they are the same, by select: also where no split saw a key, and
  // −∞ − (−∞) would be NaN.
  Value* weight_of(Value* maximum, Value* largest) {
    Value* power = softmax_.exp2(ir_.CreateFMul(ir_.CreateFSub(maximum, largest), scale_));
    return ir_.CreateSelect(ir_.CreateFCmpOEQ(maximum, largest), kernel_.constant(1.0F), power);
  }

  // As attention_forward ends a row (output.cpp): fma(O, factor, +0), the sink counted once.
  void store(const Merged& row, Value* first_row) {
    const language::SoftmaxState state = {.maximum = row.maximum, .shift = nullptr, .half_sum = nullptr};
    Value* sinks = kernel_.argument_i64(offsetof(Arguments, sink));
    const Values end =
        language::if_uniform(kernel_, ir_.CreateIsNotNull(sinks), Likelihood::even,
                             {softmax_.inverse(row.sum), softmax_.log_sum_exp(state, row.sum)}, [&](const Values&) {
                               Value* head = ir_.CreateShl(wide(head_), 2);
                               Value* sink = kernel_.load_scalar(ir_.CreateAdd(sinks, head), kernel_.f32());
                               const auto [factor, log_sum] =
                                   language::end_with_sink(kernel_, softmax_.scaled_maximum(state), row.sum, sink);
                               return Values{factor, log_sum};
                             });
    Value* factor = end[0];
    Value* four = llvm::PoisonValue::get(kernel_.vector(kernel_.f32(), dims_per_lane));
    for (std::size_t dim = 0; dim < row.outputs.size(); ++dim)
      four = ir_.CreateInsertElement(four, fused(row.outputs[dim], factor, kernel_.constant(0.0F)), dim);
    const Values dwords = language::convert_packed(kernel_, four, 0, dims_per_lane,
                                                   spec_.dtype == DataType::bf16 ? Element::bf16 : Element::fp16,
                                                   language::NanInput::kept);

    Value* row_stride = kernel_.argument_i32(offsetof(Arguments, o_row_stride));
    Value* o = slice(offsetof(Arguments, o), offsetof(Arguments, o_batch_stride), offsetof(Arguments, o_head_stride));
    o = ir_.CreateAdd(o, ir_.CreateMul(wide(first_row), wide(row_stride)));
    const Buffer outputs(kernel_, o, language::slice_bytes(kernel_, rows_, row_stride, spec_.head_dim * 2));
    Value* offset = ir_.CreateAdd(ir_.CreateMul(row_, row_stride), ir_.CreateMul(piece_, kernel_.constant(8)));
    outputs.store(language::gather_dwords(kernel_, dwords), only_lanes_with_dims(offset), kernel_.constant(0));

    // One lane of a row writes its LSE; the others point far outside. Without LSE the slice is empty.
    Value* lse =
        slice(offsetof(Arguments, lse), offsetof(Arguments, lse_batch_stride), offsetof(Arguments, lse_head_stride));
    lse = ir_.CreateAdd(lse, ir_.CreateMul(wide(first_row), ir_.getInt64(4)));
    Value* wanted = ir_.CreateICmpNE(kernel_.argument_i64(offsetof(Arguments, lse)), ir_.getInt64(0));
    const Buffer log_sums(kernel_, lse,
                          ir_.CreateSelect(wanted, ir_.CreateShl(rows_, kernel_.constant(2)), kernel_.constant(0)));
    Value* writes = ir_.CreateICmpEQ(piece_, kernel_.constant(0));
    log_sums.store(ir_.CreateBitCast(end[1], kernel_.i32()),
                   ir_.CreateSelect(writes, ir_.CreateShl(row_, kernel_.constant(2)), ir_.getInt32(0x80000000)),
                   kernel_.constant(0));
  }

  Value* slice(std::size_t pointer, std::size_t batch_stride, std::size_t head_stride) {
    Value* base = kernel_.argument_i64(pointer);
    base = ir_.CreateAdd(base, ir_.CreateMul(wide(batch_), kernel_.argument_i64(batch_stride)));
    return ir_.CreateAdd(base, ir_.CreateMul(wide(head_), kernel_.argument_i64(head_stride)));
  }

  Value* wide(Value* value) { return ir_.CreateZExt(value, kernel_.i64()); }
  Value* element(Value* dwords, std::size_t index) {
    return ir_.CreateBitCast(ir_.CreateExtractElement(dwords, index), kernel_.f32());
  }
  Value* fused(Value* a, Value* b, Value* c) {
    return ir_.CreateIntrinsic(llvm::Intrinsic::fma, {kernel_.f32()}, {a, b, c});
  }

  Kernel& kernel_;
  llvm::IRBuilder<>& ir_;
  const KernelSpec& spec_;
  Value* batch_;
  Value* head_;
  Value* splits_;
  Value* scale_;  // c > 0
  language::Softmax softmax_;
  Value* rows_ = nullptr;               // that the workgroup combines
  Value* row_ = nullptr;                // per lane, counted from the workgroup's first
  Value* piece_ = nullptr;              // per lane: which four dims
  Value* statistics_offset_ = nullptr;  // per lane: m and l of the row's first record
  Value* output_offset_ = nullptr;      // per lane: its dims of the row's first record
};

}  // namespace

std::string kernel_name(const KernelSpec& spec) {
  return "attention_combine_" + std::string(to_text(spec.dtype)) + "_d" + std::to_string(spec.head_dim) + "_" +
         spec.target;
}

std::expected<std::unique_ptr<llvm::Module>, std::string> emit(const KernelSpec& spec, const targets::Target& target,
                                                               llvm::LLVMContext& context) {
  if (spec.target != target.id)
    return std::unexpected("the spec is for target=" + spec.target + ", not for " + std::string(target.id));
  if (auto reason = refusal_of(spec)) return std::unexpected(*std::move(reason));
  Kernel kernel(context, target,
                {.name = kernel_name(spec),
                 .threads = threads,
                 .waves_per_simd = waves_per_simd,
                 .argument_bytes = sizeof(Arguments)});
  Combine(kernel, spec).emit();
  return kernel.finish();
}

}  // namespace wavejit::attention_combine
