// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_latent/emit/combine.h"

#include <llvm/IR/IntrinsicsAMDGPU.h>

#include <bit>
#include <optional>

#include "codegen/language/buffer.h"
#include "codegen/language/control.h"
#include "codegen/language/convert.h"
#include "codegen/language/softmax.h"
#include "templates/attention/emit/integers.h"
#include "templates/attention/emit/listed_keys.h"
#include "templates/attention/emit/scale.h"
#include "templates/attention/emit/sequence.h"
#include "templates/attention/kernel/canon.h"
#include "templates/attention_latent/emit/rows.h"

namespace wavejit::attention_latent {
namespace {

using language::Buffer;
using language::Element;
using language::Kernel;
using language::Likelihood;
using language::Value;
using language::Values;

constexpr int group = 4;        // records that are on their way together
constexpr int load_bytes = 16;  // a lane
constexpr int load_dims = 4;

// One row is a wave, whose lanes have its dims.
class Combine {
 public:
  Combine(Kernel& kernel, const CombineKernel& spec)
      : kernel_(kernel),
        ir_(kernel.ir()),
        spec_(spec),
        scale_(ir_.CreateBitCast(
            attention::positive_scale(kernel, kernel.argument_i32(offsetof(Arguments, scale_log2e))), kernel.f32())),
        // Nothing is rescaled here.
        softmax_(kernel, scale_, kernel.constant(0.0F)) {}

  void emit() {
    // Made where it is first asked for: here, where every block can see it.
    lane_ = kernel_.lane();
    Value* row = kernel_.workgroup_x();
    Value* batch = kernel_.workgroup_z();
    const attention::Sequence sequence = attention::sequence_of(kernel_, length_fields, batch);
    Value* heads = kernel_.argument_i32(offsetof(Arguments, heads));
    language::leave_if(kernel_, ir_.CreateICmpUGE(row, ir_.CreateMul(sequence.query_length, heads)));
    Value* query = attention::divided(kernel_, row, kernel_.argument_i32(offsetof(Arguments, head_multiplier)));
    Value* head = ir_.CreateSub(row, ir_.CreateMul(query, heads));

    if (spec_.listed) {
      Value* of_all = attention::query_of_all(kernel_, length_fields, batch, sequence.query_start, query);
      parts_.emplace(kernel_, offsetof(Arguments, list), of_all);
      last_ = parts_->last();
    } else {
      constexpr unsigned chunk = attention::chunk_keys;
      last_ = ir_.CreateAShr(last_key(sequence, query), std::countr_zero(chunk));
    }

    const Buffer records(kernel_, records_of(kernel_, spec_.head_dim, spec_.listed, batch, sequence.query_start, row),
                         record_stride(kernel_, spec_.head_dim, spec_.listed));
    Values nothing = {softmax_.initial().maximum, kernel_.constant(0.0F)};
    nothing.resize(nothing.size() + static_cast<std::size_t>(loads()), zero_dims());
    const Values merged = language::if_uniform(kernel_, ir_.CreateICmpSGE(last_, kernel_.constant(0)), Likelihood::even,
                                               nothing, [&](const Values& start) { return merge(records, start); });
    store(merged, sequence, batch, query, head);
  }

 private:
  // That the row may see. −1 or less: none.
  Value* last_key(const attention::Sequence& sequence, Value* query) {
    Value* last = ir_.CreateSub(sequence.key_length, kernel_.constant(1));
    Value* diagonal = ir_.CreateAdd(query, attention::diagonal_offset(kernel_, diagonal_fields, sequence));
    Value* is_causal = ir_.CreateICmpNE(kernel_.argument_i32(offsetof(Arguments, causal)), kernel_.constant(0));
    return ir_.CreateSelect(is_causal, attention::minimum(kernel_, diagonal, last), last);
  }

  int loads() const { return spec_.head_dim / (combine_threads * load_dims); }
  Value* zero_dims() { return llvm::Constant::getNullValue(kernel_.vector(kernel_.f32(), load_dims)); }

  // m and l, then the lane's dims, of a record; of the last one where `slot` is behind it.
  Values load(const Buffer& records, Value* slot) {
    Value* part = attention::minimum(kernel_, slot, last_);
    Value* record = ir_.CreateMul(parts_ ? parts_->place(part) : part, kernel_.constant(record_bytes(spec_.head_dim)));
    Values loaded = {records.load(8, kernel_.constant(spec_.head_dim * 4), record)};
    for (int each = 0; each < loads(); ++each) {
      Value* own = ir_.CreateAdd(ir_.CreateMul(lane_, kernel_.constant(load_bytes)),
                                 kernel_.constant(each * combine_threads * load_bytes));
      loaded.push_back(records.load(load_bytes, own, record));
    }
    return loaded;
  }

  Values merge(const Buffer& records, const Values& start) {
    const std::size_t row_values = start.size();
    const std::size_t record_values = 1 + static_cast<std::size_t>(loads());
    const auto load_group = [&](Values& to, Value* first) {
      for (int each = 0; each < group; ++each)
        for (Value* value : load(records, ir_.CreateAdd(first, kernel_.constant(each)))) to.push_back(value);
    };
    // The row; records on their way; the first of them.
    Values state = start;
    load_group(state, kernel_.constant(0));
    state.push_back(kernel_.constant(0));
    state = language::loop_in_phases(
        kernel_, 1, state,
        [&](int, const Values& before) {
          Value* first = kernel_.uniform(before.back());
          Values next(before.begin(), before.begin() + static_cast<std::ptrdiff_t>(row_values));
          Value* behind = ir_.CreateAdd(first, kernel_.constant(group));
          load_group(next, behind);
          for (int each = 0; each < group; ++each) {
            const auto record = before.begin() + static_cast<std::ptrdiff_t>(
                                                     row_values + (static_cast<std::size_t>(each) * record_values));
            absorb(next, {record, record + static_cast<std::ptrdiff_t>(record_values)},
                   ir_.CreateICmpSLE(ir_.CreateAdd(first, kernel_.constant(each)), last_));
          }
          next.push_back(behind);
          return next;
        },
        [&](const Values& at) { return ir_.CreateICmpSLE(at.back(), last_); });
    state.resize(row_values);
    return state;
  }

  // A part that the row does not see is an empty one, which changes nothing.
  void absorb(Values& row, const Values& record, Value* sees) {
    const auto number = [&](std::uint64_t at, Value* otherwise) {
      Value* value = ir_.CreateBitCast(ir_.CreateExtractElement(record.front(), at), kernel_.f32());
      return ir_.CreateSelect(sees, value, otherwise);
    };
    Value* maximum = number(0, softmax_.initial().maximum);
    const language::MergeWeights weights = softmax_.merge_weights(row[0], maximum);
    row[0] = weights.maximum;
    row[1] = softmax_.merged(weights, row[1], number(1, kernel_.constant(0.0F)));
    for (std::size_t each = 1; each < record.size(); ++each) {
      Value* dims = ir_.CreateBitCast(record[each], kernel_.vector(kernel_.f32(), load_dims));
      row[1 + each] = softmax_.merged(weights, row[1 + each], ir_.CreateSelect(sees, dims, zero_dims()));
    }
  }

  void store(const Values& merged, const attention::Sequence& sequence, Value* batch, Value* query, Value* head) {
    const language::PartStatistics row = {.maximum = merged[0], .sum = merged[1]};
    const RowEnd end = end_of_row(kernel_, softmax_, row, [&](Value* sinks) {
      return kernel_.load_scalar(ir_.CreateAdd(sinks, ir_.CreateShl(wide(head), 2)), kernel_.f32());
    });
    Value* row_of_head = ir_.CreateAdd(sequence.query_start, query);  // of all sequences where they are packed
    const attention::TensorFields fields = tensor_fields(offsetof(Arguments, o));
    Value* base = kernel_.argument_i64(fields.pointer);
    base = ir_.CreateAdd(base, ir_.CreateMul(wide(batch), kernel_.argument_i64(fields.batch_stride)));
    base = ir_.CreateAdd(base, ir_.CreateMul(wide(head), kernel_.argument_i64(fields.head_stride)));
    base = ir_.CreateAdd(base, ir_.CreateMul(wide(row_of_head), wide(kernel_.argument_i32(fields.row_stride))));
    const int bytes = bytes_of(spec_.dtype);
    const Buffer outputs(kernel_, base, kernel_.constant(spec_.head_dim * bytes));
    llvm::Type* type = kernel_.vector(kernel_.f32(), load_dims);
    for (std::size_t each = 0; each < static_cast<std::size_t>(loads()); ++each) {
      // As store_rows: +0 in the same instruction.
      Value* numbers = ir_.CreateIntrinsic(
          llvm::Intrinsic::fma, {type}, {merged[2 + each], ir_.CreateVectorSplat(load_dims, end.factor), zero_dims()});
      const Values dwords = language::convert_packed(kernel_, numbers, 0, load_dims,
                                                     spec_.dtype == DataType::bf16 ? Element::bf16 : Element::fp16,
                                                     language::NanInput::kept);
      Value* own = ir_.CreateMul(ir_.CreateAdd(lane_, kernel_.constant(static_cast<int>(each) * combine_threads)),
                                 kernel_.constant(load_dims * bytes));
      outputs.store(language::gather_dwords(kernel_, dwords), own, kernel_.constant(0));
    }

    // One lane writes the LSE; the others point far outside. Without LSE the slice is empty.
    Value* pointer = kernel_.argument_i64(offsetof(Arguments, lse));
    Value* lse =
        ir_.CreateAdd(pointer, ir_.CreateMul(wide(batch), kernel_.argument_i64(offsetof(Arguments, lse_batch_stride))));
    lse = ir_.CreateAdd(lse, ir_.CreateMul(wide(head), kernel_.argument_i64(offsetof(Arguments, lse_head_stride))));
    lse = ir_.CreateAdd(lse, ir_.CreateShl(wide(row_of_head), 2));
    Value* size = ir_.CreateSelect(ir_.CreateIsNotNull(pointer), kernel_.constant(4), kernel_.constant(0));
    Value* writes = ir_.CreateICmpEQ(lane_, kernel_.constant(0));
    Buffer(kernel_, lse, size)
        .store(ir_.CreateBitCast(end.log_sum_exp, kernel_.i32()),
               ir_.CreateSelect(writes, kernel_.constant(0), ir_.getInt32(nowhere)), kernel_.constant(0));
  }

  Value* wide(Value* value) { return ir_.CreateZExt(value, kernel_.i64()); }

  Kernel& kernel_;
  llvm::IRBuilder<>& ir_;
  const CombineKernel& spec_;
  Value* scale_;  // c > 0
  language::Softmax softmax_;
  Value* lane_ = nullptr;
  std::optional<attention::ListedParts> parts_;  // of listed keys
  Value* last_ = nullptr;                        // chunk of which the row sees a key; −1: none
};

}  // namespace

void emit_combine(Kernel& kernel, const CombineKernel& spec) { Combine(kernel, spec).emit(); }

}  // namespace wavejit::attention_latent
