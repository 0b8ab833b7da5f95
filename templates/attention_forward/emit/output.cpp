// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_forward/emit/output.h"

#include <llvm/IR/IntrinsicsAMDGPU.h>

#include "codegen/language/control.h"
#include "codegen/language/convert.h"
#include "codegen/language/cross_lane.h"
#include "templates/attention_forward/call/arguments.h"
#include "templates/attention_forward/emit/modifiers.h"

namespace wavejit::attention_forward {

using language::Value;

namespace {

// `count` f32 of a vector from `first` on, as dwords.
std::vector<Value*> elements_of(language::Kernel& kernel, Value* vector, int first, int count) {
  std::vector<Value*> dwords;
  for (int i = 0; i < count; ++i) {
    Value* element = kernel.ir().CreateExtractElement(vector, static_cast<std::uint64_t>(first + i));
    dwords.push_back(kernel.ir().CreateBitCast(element, kernel.i32()));
  }
  return dwords;
}

}  // namespace

void finish_rows(language::Kernel& kernel, const KernelSpec& spec, const Workgroup& workgroup,
                 const language::Softmax& softmax, const MergedRows& merged, const language::SoftmaxState& state,
                 const language::Values& carried, language::Element element, std::span<language::Accumulator> outputs) {
  llvm::IRBuilder<>& ir = kernel.ir();
  const auto whole = merged.finish(state, outputs, carried);
  if (!whole) return;
  const language::PartStatistics& row = *whole;
  language::Values end = {softmax.inverse(row.sum)};
  if (spec.lse) end.push_back(softmax.log_sum_exp(row));
  Value* sinks = kernel.argument_i64(offsetof(Arguments, sink));
  end = language::if_uniform(kernel, ir.CreateIsNotNull(sinks), language::Likelihood::even, end,
                             [&](const language::Values&) {
                               Value* sink = number_of_head(kernel, workgroup, sinks);
                               const auto [factor, log_sum_exp] =
                                   language::end_with_sink(kernel, softmax.scaled_maximum(row.maximum), row.sum, sink);
                               return spec.lse ? language::Values{factor, log_sum_exp} : language::Values{factor};
                             });
  store_output(kernel, spec, workgroup, element, outputs, end.front());
  if (spec.lse) store_log_sum_exp(kernel, spec, workgroup, end.back());
}

void store_output(language::Kernel& kernel, const KernelSpec& spec, const Workgroup& workgroup,
                  language::Element element, std::span<const language::Accumulator> outputs, Value* factor) {
  llvm::IRBuilder<>& ir = kernel.ir();
  const bool swaps = spec.output_store == OutputStore::permlane;
  // A lane holds blocks of four dims of its row, its own group's; the other group has the four between. Stored as they
  // are: 8 bytes each. With halves swapped, two blocks of a lane become one run of eight: 16 bytes each.
  // In f32 a block of four is 16 bytes as it is.
  const int dim_bytes = spec.output_fp32 ? 4 : 2;
  const int group_bytes = swaps || spec.output_fp32 ? 16 : 8;
  const LanePlace place = lane_place(kernel, spec, workgroup);
  Value* row =
      ir.CreateAdd(lane_row_offset(kernel, workgroup, place.row, workgroup.o.row_stride, workgroup.o.head_stride),
                   ir.CreateMul(place.lane_group, kernel.constant(group_bytes)));
  Value* no_offset = kernel.constant(0);
  for (std::size_t block = 0; block < outputs.size(); ++block) {
    const language::Accumulator& output = outputs[block];
    const auto registers = static_cast<unsigned>(output.layout.registers());
    // Adding +0 in the same instruction turns a −0 into +0. Whether an accumulator that underflowed is −0 or +0 depends
    // on how many fully masked tiles came after it (−0 + 0 · v = +0), and nothing of that may show.
    Value* normalised = ir.CreateIntrinsic(
        llvm::Intrinsic::fma, {output.value->getType()},
        {output.value, ir.CreateVectorSplat(registers, factor), llvm::Constant::getNullValue(output.value->getType())});
    const int step = swaps ? 8 : 4;
    for (int r = 0; r < output.layout.registers(); r += step) {
      std::vector<Value*> dwords =
          spec.output_fp32 ? elements_of(kernel, normalised, r, step)
                           : language::convert_packed(kernel, normalised, r, step, element, language::NanInput::kept);
      if (swaps) {
        const auto [first, third] = language::swap_halves(kernel, dwords[0], dwords[2]);
        const auto [second, fourth] = language::swap_halves(kernel, dwords[1], dwords[3]);
        dwords = {first, second, third, fourth};
      }
      const int dim = static_cast<int>(block) * output.layout.rows + output.layout.row_of_register(r);
      workgroup.o.buffer.store(language::gather_dwords(kernel, dwords),
                               ir.CreateAdd(row, kernel.constant(dim * dim_bytes)), no_offset);
    }
  }
}

void store_log_sum_exp(language::Kernel& kernel, const KernelSpec& spec, const Workgroup& workgroup,
                       Value* log_sum_exp) {
  llvm::IRBuilder<>& ir = kernel.ir();
  const LanePlace place = lane_place(kernel, spec, workgroup);
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
    of_row = ir.CreateAdd(of_row, ir.CreateMul(workgroup.head_in_group, head_stride));
    writes = ir.CreateAnd(writes, workgroup.has_row);
  }
  Value* offset = ir.CreateSelect(writes, of_row, ir.getInt32(0x80000000));
  lse.store(ir.CreateBitCast(log_sum_exp, kernel.i32()), offset, kernel.constant(0));
}

}  // namespace wavejit::attention_forward
