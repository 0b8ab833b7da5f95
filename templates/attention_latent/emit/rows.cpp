// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_latent/emit/rows.h"

#include <llvm/IR/IntrinsicsAMDGPU.h>

#include "codegen/language/control.h"
#include "codegen/language/convert.h"
#include "templates/attention/emit/integers.h"
#include "templates/attention/emit/listed_keys.h"
#include "templates/attention/kernel/canon.h"

namespace wavejit::attention_latent {

using language::Accumulator;
using language::Buffer;
using language::Kernel;
using language::Likelihood;
using language::PartStatistics;
using language::Value;
using language::Values;

namespace {

// The first of the wave's own dims.
Value* first_dim(Kernel& kernel, const WalkKernel& spec, const Workgroup& workgroup) {
  return kernel.ir().CreateMul(workgroup.share, kernel.constant(dims_of_wave(spec)));
}

// One lane of those that have a row writes a number of it: of the first wave that shares the row, and of its two
// halves.
Value* is_writer(Kernel& kernel, const Workgroup& workgroup) {
  llvm::IRBuilder<>& ir = kernel.ir();
  return ir.CreateICmpEQ(ir.CreateOr(workgroup.lane_group, workgroup.share), kernel.constant(0));
}

// O's numbers as memory has them: `use(numbers, dim)` for runs of them, of which the lane's group has those from `dim`
// on in group 0, and dims_of_group() further in group 1.
class Columns {
 public:
  Columns(Kernel& kernel, const WalkKernel& spec, const language::AccumulatorLayout& layout)
      : kernel_(kernel), layout_(layout), dims_(dims_of_wave(spec)), order_(column_order(spec, kernel.target())) {}
  int dims_of_group() const { return layout_.row_block * (order_ == ColumnOrder::in_pairs ? 2 : 1); }

  template <typename Use>
  void for_each(const std::function<Value*(int, int, int)>& quad, Use use) const {
    const int blocks = dims_ / layout_.rows;
    for (int block = 0; block < blocks; block += order_ == ColumnOrder::in_pairs ? 2 : 1)
      for (int r = 0; r < layout_.registers(); r += layout_.row_block) {
        Value* numbers = quad(block, r, bytes_at(block, r));
        const int row = layout_.row_of_register(r);
        if (order_ == ColumnOrder::in_blocks) {
          use(numbers, (block * layout_.rows) + row);
          continue;
        }
        Value* odd = quad(block + 1, r, bytes_at(block + 1, r));
        use(kernel_.ir().CreateShuffleVector(numbers, odd, {0, 4, 1, 5, 2, 6, 3, 7}),
            (block * layout_.rows) + (2 * row));
      }
  }

 private:
  int bytes_at(int block, int r) const { return ((block * layout_.registers()) + r) * static_cast<int>(sizeof(float)); }

  Kernel& kernel_;
  language::AccumulatorLayout layout_;
  int dims_;
  ColumnOrder order_;
};

}  // namespace

RowEnd end_of_row(Kernel& kernel, const language::Softmax& softmax, const PartStatistics& row,
                  const std::function<Value*(Value*)>& sink) {
  Value* sinks = kernel.argument_i64(offsetof(Arguments, sink));
  const Values end = language::if_uniform(kernel, kernel.ir().CreateIsNotNull(sinks), Likelihood::even,
                                          {softmax.inverse(row.sum), softmax.log_sum_exp(row)}, [&](const Values&) {
                                            const auto [factor, log_sum_exp] = language::end_with_sink(
                                                kernel, softmax.scaled_maximum(row.maximum), row.sum, sink(sinks));
                                            return Values{factor, log_sum_exp};
                                          });
  return {.factor = end[0], .log_sum_exp = end[1]};
}

void store_log_sum_exp(Kernel& kernel, const attention::QueryTile& rows, Value* writes, Value* log_sum_exp) {
  llvm::IRBuilder<>& ir = kernel.ir();
  Value* pointer = kernel.argument_i64(offsetof(Arguments, lse));
  language::if_uniform(kernel, ir.CreateIsNotNull(pointer), Likelihood::even, [&] {
    const auto wide = [&](Value* value) { return ir.CreateZExt(value, kernel.i64()); };
    Value* base = ir.CreateAdd(
        pointer, ir.CreateMul(wide(rows.batch), kernel.argument_i64(offsetof(Arguments, lse_batch_stride))));
    base = ir.CreateAdd(base, ir.CreateShl(wide(rows.query_start), 2));
    Value* head_stride = kernel.argument_i32(offsetof(Arguments, lse_head_stride));
    const Buffer lse(kernel, base, span_of_heads(kernel, rows, ir.CreateShl(rows.query_length, 2), head_stride));
    Value* of_row = ir.CreateAdd(ir.CreateShl(rows.row, 2), ir.CreateMul(rows.head_in_group, head_stride));
    lse.store(ir.CreateBitCast(log_sum_exp, kernel.i32()), ir.CreateSelect(writes, of_row, ir.getInt32(nowhere)),
              kernel.constant(0));
  });
}

void store_rows(Kernel& kernel, const WalkKernel& spec, const Workgroup& of_walk, const language::Softmax& softmax,
                const PartStatistics& row, const language::AccumulatorLayout& layout, language::Element element,
                const std::function<Value*(int, int, int)>& quad) {
  llvm::IRBuilder<>& ir = kernel.ir();
  const Workgroup workgroup = lanes_made_anew(kernel, of_walk);
  RowEnd end = end_of_row(kernel, softmax, row,
                          [&](Value* sinks) { return attention::number_of_head(kernel, workgroup, sinks); });
  if (workgroup.key_scale != nullptr) end.factor = ir.CreateFMul(end.factor, workgroup.key_scale);
  const int bytes = bytes_of(spec.dtype);
  const Columns columns(kernel, spec, layout);
  Value* offset =
      attention::lane_row_offset(kernel, workgroup, workgroup.row, workgroup.o.row_stride, workgroup.o.head_stride);
  offset = ir.CreateAdd(offset, ir.CreateMul(first_dim(kernel, spec, workgroup), kernel.constant(bytes)));
  offset = ir.CreateAdd(offset, ir.CreateMul(workgroup.lane_group, kernel.constant(columns.dims_of_group() * bytes)));
  const auto count = static_cast<unsigned>(columns.dims_of_group());
  llvm::Type* type = kernel.vector(kernel.f32(), columns.dims_of_group());
  Value* factor = ir.CreateVectorSplat(count, end.factor);
  columns.for_each(quad, [&](Value* numbers, int dim) {
    // Adding +0 in the same instruction turns a −0 into +0: which of them an accumulator that underflowed has depends
    // on how many wholly hidden tiles came after it, and nothing of that may show.
    Value* normalised =
        ir.CreateIntrinsic(llvm::Intrinsic::fma, {type}, {numbers, factor, llvm::Constant::getNullValue(type)});
    const std::vector<Value*> dwords =
        language::convert_packed(kernel, normalised, 0, columns.dims_of_group(), element, language::NanInput::kept);
    workgroup.o.buffer.store(language::gather_dwords(kernel, dwords),
                             ir.CreateAdd(offset, kernel.constant(dim * bytes)), kernel.constant(0));
  });
  store_log_sum_exp(kernel, workgroup, ir.CreateAnd(is_writer(kernel, workgroup), workgroup.has_row), end.log_sum_exp);
}

Value* record_stride(Kernel& kernel, int head_dim, bool listed) {
  llvm::IRBuilder<>& ir = kernel.ir();
  constexpr int chunk = attention::chunk_keys;
  const auto chunks_of = [&](Value* keys) {
    return ir.CreateUDiv(ir.CreateAdd(keys, kernel.constant(chunk - 1)), kernel.constant(chunk));
  };
  Value* chunks =
      listed ? attention::list_number(kernel, offsetof(Arguments, list), offsetof(attention::KeyListArguments, parts))
             : chunks_of(kernel.argument_i32(offsetof(Arguments, key_length)));
  return ir.CreateMul(chunks, kernel.constant(record_bytes(head_dim)));
}

Value* records_of(Kernel& kernel, int head_dim, bool listed, Value* batch, Value* query_start, Value* row) {
  llvm::IRBuilder<>& ir = kernel.ir();
  const auto wide = [&](Value* value) { return ir.CreateZExt(value, kernel.i64()); };
  // Packed queries are one tensor: they begin at query_start of it, whichever sequence they are of.
  Value* packed = ir.CreateIsNotNull(
      kernel.argument_i64(offsetof(Arguments, sequences) + offsetof(attention::SequenceArguments, query_starts)));
  Value* queries_before = ir.CreateMul(wide(ir.CreateSelect(packed, kernel.constant(0), batch)),
                                       wide(kernel.argument_i32(offsetof(Arguments, query_length))));
  Value* query = ir.CreateAdd(queries_before, wide(query_start));
  Value* rows = ir.CreateAdd(ir.CreateMul(query, wide(kernel.argument_i32(offsetof(Arguments, heads)))), wide(row));
  return ir.CreateAdd(kernel.argument_i64(offsetof(Arguments, workspace)),
                      ir.CreateMul(rows, wide(record_stride(kernel, head_dim, listed))));
}

void store_part(Kernel& kernel, const WalkKernel& spec, const Workgroup& of_walk, Value* chunk,
                const PartStatistics& part, std::span<const Accumulator> outputs) {
  llvm::IRBuilder<>& ir = kernel.ir();
  const Workgroup workgroup = lanes_made_anew(kernel, of_walk);
  const int head_dim = spec.dims_v();
  const language::Reach reach = spec.merged ? language::Reach::agent : language::Reach::cached;
  if (spec.listed)
    chunk = ir.CreateAdd(chunk, attention::list_number(kernel, offsetof(Arguments, list),
                                                       offsetof(attention::KeyListArguments, first_part)));
  Value* first_row = kernel.uniform(workgroup.first_of_wave);
  Value* rows = attention::minimum(kernel, ir.CreateSub(workgroup.rows, first_row), kernel.constant(wave_rows));
  rows = kernel.uniform(attention::maximum(kernel, rows, kernel.constant(0)));
  Value* bytes = ir.CreateMul(rows, kernel.constant(record_bytes(head_dim)));
  Value* base = records_of(kernel, head_dim, spec.listed, workgroup.batch, workgroup.query_start, first_row);
  base = ir.CreateAdd(base, ir.CreateMul(ir.CreateZExt(chunk, kernel.i64()), ir.CreateZExt(bytes, kernel.i64())));
  const Buffer record(kernel, base, bytes);
  Value* row = ir.CreateSub(workgroup.row_of_lane, first_row);
  const language::AccumulatorLayout& layout = outputs.front().layout;
  const Columns columns(kernel, spec, layout);
  // Four bytes of each row for a dim.
  Value* of_dim = ir.CreateShl(rows, 2);
  Value* first = ir.CreateAdd(first_dim(kernel, spec, workgroup),
                              ir.CreateMul(workgroup.lane_group, kernel.constant(columns.dims_of_group())));
  Value* place = ir.CreateAdd(ir.CreateMul(first, of_dim), ir.CreateMul(row, kernel.constant(record_load_bytes)));
  place = ir.CreateSelect(workgroup.has_row, place, ir.getInt32(nowhere));
  const auto quad = [&](int block, int r, int) {
    return ir.CreateShuffleVector(outputs[static_cast<std::size_t>(block)].value, {r, r + 1, r + 2, r + 3});
  };
  columns.for_each(quad, [&](Value* numbers, int dim) {
    for (int within = 0; within < columns.dims_of_group(); within += 4) {
      Value* four = ir.CreateShuffleVector(numbers, {within, within + 1, within + 2, within + 3});
      record.store(ir.CreateBitCast(four, kernel.vector(kernel.i32(), 4)),
                   ir.CreateAdd(place, ir.CreateMul(of_dim, kernel.constant(dim + within))), kernel.constant(0), reach);
    }
  });
  Value* statistics = llvm::PoisonValue::get(kernel.vector(kernel.i32(), 2));
  statistics = ir.CreateInsertElement(statistics, ir.CreateBitCast(part.maximum, kernel.i32()), std::uint64_t{0});
  statistics = ir.CreateInsertElement(statistics, ir.CreateBitCast(part.sum, kernel.i32()), std::uint64_t{1});
  Value* writes = ir.CreateAnd(is_writer(kernel, workgroup), workgroup.has_row);
  record.store(statistics, ir.CreateSelect(writes, ir.CreateShl(row, 3), ir.getInt32(nowhere)),
               ir.CreateMul(of_dim, kernel.constant(head_dim)), reach);
}

}  // namespace wavejit::attention_latent
