// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_forward/emit/query.h"

namespace wavejit::attention_forward {

using language::Value;

language::Values load_query(language::Kernel& kernel, const KernelSpec& spec, const Workgroup& workgroup) {
  constexpr int fragment_k = 16;
  llvm::IRBuilder<>& ir = kernel.ir();
  Value* row =
      ir.CreateAdd(lane_row_offset(kernel, workgroup, workgroup.row, workgroup.q.row_stride, workgroup.q.head_stride),
                   ir.CreateMul(workgroup.lane_group, kernel.constant(16)));
  language::Values loaded;
  for (int block = 0; block < spec.head_dim_qk / fragment_k; ++block) {
    Value* offset = ir.CreateAdd(row, kernel.constant(block * fragment_k * 2));
    loaded.push_back(workgroup.q.buffer.load(16, offset, kernel.constant(0)));
  }
  return loaded;
}

std::vector<language::OperandB> query_operands(language::Kernel& kernel, const Workgroup& workgroup,
                                               const language::MatrixUnit& matrix, const language::Values& loaded) {
  Value* sign = kernel.ir().CreateVectorSplat(4, workgroup.query_sign);
  std::vector<language::OperandB> query;
  for (Value* dwords : loaded)
    query.push_back(matrix.operand_b(kernel.ir().CreateXor(dwords, sign), language::KOrder::contiguous));
  return query;
}

}  // namespace wavejit::attention_forward
