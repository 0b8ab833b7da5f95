// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_forward/emit/output.h"

#include <llvm/IR/IntrinsicsAMDGPU.h>

#include <optional>

#include "codegen/language/control.h"
#include "codegen/language/convert.h"
#include "codegen/language/cross_lane.h"
#include "codegen/language/lane_place.h"
#include "templates/attention/emit/modifiers.h"
#include "templates/attention/emit/output_bytes.h"
#include "templates/attention/emit/scattered.h"
#include "templates/attention/emit/tiles_lines.h"
#include "templates/attention_forward/emit/merge_if_last.h"
#include "templates/attention_forward/kernel/arguments.h"
#include "templates/attention_forward/kernel/output_scale_arguments.h"

namespace wavejit::attention_forward {

using language::Value;

namespace {

// `count` f32 of a vector from `first` on, as dwords.
std::vector<Value*> elements_of(language::Kernel& kernel, Value* vector, int first, int count) {
  std::vector<Value*> dwords;
  dwords.reserve(static_cast<std::size_t>(count));
  for (int i = first; i < first + count; ++i)
    dwords.push_back(kernel.ir().CreateBitCast(kernel.ir().CreateExtractElement(vector, i), kernel.i32()));
  return dwords;
}

}  // namespace

void finish_rows(language::Kernel& kernel, const ForwardKernel& spec, const Workgroup& workgroup,
                 const language::Softmax& softmax, const MergedRows& merged, const language::SoftmaxState& state,
                 const language::Values& carried, language::Element element, std::span<language::Accumulator> outputs,
                 const LineTiles* lines) {
  llvm::IRBuilder<>& ir = kernel.ir();
  const auto whole = merged.finish(state, outputs, carried);
  if (!whole) {
    if (spec.merged) merge_if_last(kernel, spec, workgroup, softmax);
    return;
  }
  RowEnd end = end_of_row(kernel, workgroup, softmax, *whole, spec.lse);
  if (workgroup.value_scale != nullptr) end.factor = ir.CreateFMul(end.factor, workgroup.value_scale);
  if (lines != nullptr && spec.output_store == OutputStore::permlane) {
    store_output_by_lines(kernel, spec, workgroup, *lines, element, outputs, end.factor);
  } else {
    store_output(kernel, spec, workgroup, element, outputs, end.factor);
  }
  if (spec.lse) store_log_sum_exp(kernel, workgroup, end.log_sum_exp);
}

RowEnd end_of_row(language::Kernel& kernel, const Workgroup& workgroup, const language::Softmax& softmax,
                  const language::PartStatistics& row, bool lse) {
  language::Values end = {softmax.inverse(row.sum)};
  if (lse) end.push_back(softmax.log_sum_exp(row));
  Value* sinks = kernel.argument_i64(offsetof(Arguments, sink));
  end = language::if_uniform(kernel, kernel.ir().CreateIsNotNull(sinks), language::Likelihood::even, end,
                             [&](const language::Values&) {
                               Value* sink = number_of_head(kernel, workgroup, sinks);
                               const auto [factor, log_sum_exp] =
                                   language::end_with_sink(kernel, softmax.scaled_maximum(row.maximum), row.sum, sink);
                               return lse ? language::Values{factor, log_sum_exp} : language::Values{factor};
                             });
  return {.factor = end.front(), .log_sum_exp = lse ? end.back() : nullptr};
}

namespace {

// Values of a lane's row, rounded: `use(dwords, dim)` for each run of them, 16 bytes of which the lane's group has the
// first or the last eight dims from `dim` on (halves swapped), or 8 bytes of four dims, 16 in f32; of lane groups that
// hold eight dims each 16 bytes of those, or twice 16 in f32. In 8 bits it is half of what it is in 16.
template <typename Use>
void for_each_piece(language::Kernel& kernel, const ForwardKernel& spec, language::Element element,
                    std::span<const language::Accumulator> outputs, Value* factor, Use use) {
  llvm::IRBuilder<>& ir = kernel.ir();
  const bool swaps = spec.output_store == OutputStore::permlane;
  std::optional<attention::OutputBytes> bytes;
  if (spec.scales_output()) bytes.emplace(kernel, spec.output_type(), output_scale_at);
  for (std::size_t block = 0; block < outputs.size(); ++block) {
    const language::Accumulator& output = outputs[block];
    const auto registers = static_cast<unsigned>(output.layout.registers());
    // Adding +0 in the same instruction turns a −0 into +0. Whether an accumulator that underflowed is −0 or +0 depends
    // on how many fully masked tiles came after it (−0 + 0 · v = +0), and nothing of that may show.
    Value* normalised = ir.CreateIntrinsic(
        llvm::Intrinsic::fma, {output.value->getType()},
        {output.value, ir.CreateVectorSplat(registers, factor), llvm::Constant::getNullValue(output.value->getType())});
    // Lane groups that hold eight dims each have whole runs as they are.
    const int step = swaps ? 8 : spec.output == OutputType::fp32 ? 4 : output.layout.row_block;
    for (int r = 0; r < output.layout.registers(); r += step) {
      const int dim = (static_cast<int>(block) * output.layout.rows) + output.layout.row_of_register(r);
      if (dim >= spec.head_dim_v) break;  // of what a block pads
      std::vector<Value*> dwords =
          bytes ? bytes->of(normalised, r, step)
          : spec.output == OutputType::fp32
              ? elements_of(kernel, normalised, r, step)
              : language::convert_packed(kernel, normalised, r, step, element, language::NanInput::kept);
      if (swaps) {
        const auto [first, third] = language::swap_halves(kernel, dwords[0], dwords[2]);
        const auto [second, fourth] = language::swap_halves(kernel, dwords[1], dwords[3]);
        dwords = {first, second, third, fourth};
      }
      use(dwords.size() == 1 ? dwords.front() : language::gather_dwords(kernel, dwords), dim);
    }
  }
}

}  // namespace

void store_output(language::Kernel& kernel, const ForwardKernel& spec, const Workgroup& workgroup,
                  language::Element element, std::span<const language::Accumulator> outputs, Value* factor) {
  llvm::IRBuilder<>& ir = kernel.ir();
  // A lane holds blocks of four dims of its row, its own group's; the other group has the four between. Stored as they
  // are: 8 bytes each. With halves swapped, two blocks of a lane become one run of eight: 16 bytes each.
  // In f32 a block of four is 16 bytes as it is, and so is one of eight otherwise.
  const int dim_bytes = bytes_of(spec.output_type());
  const int group_dims = spec.output_store == OutputStore::permlane ? 8 : kernel.target().row_block;
  const int group_bytes = group_dims * dim_bytes;
  const LanePlace place = lane_place(kernel, workgroup);
  if (workgroup.o.scattered()) {
    Value* first_dim = ir.CreateMul(place.lane_group, kernel.constant(group_bytes / dim_bytes));
    Value* at = attention::scattered_query_row(kernel, workgroup, workgroup.o, place.row, first_dim);
    for_each_piece(kernel, spec, element, outputs, factor, [&](Value* dwords, int dim) {
      attention::store_scattered(kernel, workgroup.o, dwords, dim_bytes, at, dim);
    });
    return;
  }
  Value* row =
      ir.CreateAdd(lane_row_offset(kernel, workgroup, place.row, workgroup.o.row_stride, workgroup.o.head_stride),
                   ir.CreateMul(place.lane_group, kernel.constant(group_bytes)));
  if (workgroup.share.first_dim != nullptr)
    row = ir.CreateAdd(row, ir.CreateMul(workgroup.share.first_dim, kernel.constant(dim_bytes)));
  Value* no_offset = kernel.constant(0);
  for_each_piece(kernel, spec, element, outputs, factor, [&](Value* dwords, int dim) {
    Value* offset = ir.CreateAdd(row, kernel.constant(dim * dim_bytes));
    // The other lane group may have nothing of a last run of eight: it points far outside.
    if (dim + group_dims >= spec.head_dim_v)
      offset = ir.CreateSelect(ir.CreateICmpEQ(place.lane_group, kernel.constant(0)), offset,
                               ir.getInt32(language::far_outside));
    workgroup.o.buffer.store(dwords, offset, no_offset);
  });
}

void store_output_by_lines(language::Kernel& kernel, const ForwardKernel& spec, const Workgroup& workgroup,
                           const LineTiles& tiles, language::Element element,
                           std::span<const language::Accumulator> outputs, Value* factor) {
  llvm::IRBuilder<>& ir = kernel.ir();
  constexpr int lane_bytes = 16;
  const auto constant = [&](int value) { return kernel.constant(value); };
  const int dim_bytes = bytes_of(spec.dtype);
  const int row_bytes = spec.head_dim_v * dim_bytes;
  const int lanes_of_row = row_bytes / lane_bytes;
  Value* lane = lane_made_anew(kernel);
  Value* base = tiles.kept_wave();
  // The 16-byte units of a row are permuted by its number: the rows of a write have units of their own banks, and so
  // have the units of the rows of a read.
  const auto permuted = [&](Value* row, Value* unit) {
    Value* key = row_bytes == 256 ? row : ir.CreateLShr(row, constant(1));
    return ir.CreateShl(ir.CreateXor(ir.CreateAnd(key, constant(lanes_of_row - 1)), unit), constant(4));
  };
  Value* own_row = language::row_of_lane(kernel, lane);
  Value* own = ir.CreateAdd(base, ir.CreateAdd(ir.CreateMul(own_row, constant(row_bytes)),
                                               permuted(own_row, language::group_of_lane(kernel, lane))));
  for_each_piece(kernel, spec, element, outputs, factor, [&](Value* dwords, int dim) {
    tiles.keep(ir.CreateXor(own, constant(dim * dim_bytes)), 0, dwords, 0);
  });
  Value* row_of_lane = ir.CreateUDiv(lane, constant(lanes_of_row));
  Value* unit = ir.CreateAnd(lane, constant(lanes_of_row - 1));
  const targets::WaveShape wave = language::wave_shape(kernel);
  const int rows_at_once = wave.lanes / lanes_of_row;
  for (int first = 0; first < wave.rows; first += rows_at_once) {
    Value* row = ir.CreateAdd(row_of_lane, constant(first));
    Value* from = ir.CreateAdd(base, ir.CreateAdd(ir.CreateMul(row, constant(row_bytes)), permuted(row, unit)));
    Value* offset = ir.CreateAdd(ir.CreateMul(ir.CreateAdd(row, workgroup.first_row_of_wave), workgroup.o.row_stride),
                                 ir.CreateShl(unit, constant(4)));
    workgroup.o.buffer.store(tiles.kept(from, 0), offset, constant(0));
  }
}

void store_log_sum_exp(language::Kernel& kernel, const Workgroup& workgroup, Value* log_sum_exp) {
  llvm::IRBuilder<>& ir = kernel.ir();
  const LanePlace place = lane_place(kernel, workgroup);
  Value* base = kernel.argument_i64(offsetof(Arguments, lse));
  const auto step = [&](Value* index, std::size_t stride) {
    return ir.CreateMul(ir.CreateZExt(index, kernel.i64()), kernel.argument_i64(stride));
  };
  base = ir.CreateAdd(base, step(workgroup.batch, offsetof(Arguments, lse_batch_stride)));
  base = ir.CreateAdd(base, step(workgroup.query_head, offsetof(Arguments, lse_head_stride)));
  base = ir.CreateAdd(base, ir.CreateShl(ir.CreateZExt(workgroup.query_start, kernel.i64()), 2));
  Value* head_stride = kernel.argument_i32(offsetof(Arguments, lse_head_stride));
  const language::Buffer lse(kernel, base,
                             span_of_heads(kernel, workgroup, ir.CreateShl(workgroup.query_length, 2), head_stride));
  // One lane of the two that own a row writes; the other points far outside and is dropped.
  Value* writes = ir.CreateICmpEQ(place.lane_group, kernel.constant(0));
  Value* of_row = ir.CreateShl(place.row, 2);
  if (workgroup.group != nullptr) {
    of_row = ir.CreateAdd(of_row, ir.CreateMul(head_of_lane(kernel, workgroup), head_stride));
    writes = ir.CreateAnd(writes, workgroup.has_row);
  }
  if (workgroup.share.leads != nullptr) writes = ir.CreateAnd(writes, workgroup.share.leads);
  Value* offset = ir.CreateSelect(writes, of_row, ir.getInt32(0x80000000));
  lse.store(ir.CreateBitCast(log_sum_exp, kernel.i32()), offset, kernel.constant(0));
}

}  // namespace wavejit::attention_forward
