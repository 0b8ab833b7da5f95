// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_forward/emit/combine/workspace.h"

#include "templates/attention_forward/kernel/combine/parameters.h"

namespace wavejit::attention_combine {

using language::Value;

Value* slots_of(language::Kernel& kernel, Value* key_length) {
  llvm::IRBuilder<>& ir = kernel.ir();
  constexpr int chunk = attention::chunk_keys;
  return ir.CreateUDiv(ir.CreateAdd(key_length, kernel.constant(chunk - 1)), kernel.constant(chunk));
}

Value* row_bytes(language::Kernel& kernel, const WorkspacePlace& place, int head_dim) {
  return kernel.ir().CreateMul(place.slots, kernel.constant(record_bytes(head_dim)));
}

Value* row_address(language::Kernel& kernel, const WorkspacePlace& place, int head_dim) {
  llvm::IRBuilder<>& ir = kernel.ir();
  const auto wide = [&](Value* value) { return ir.CreateZExt(value, kernel.i64()); };
  Value* heads = ir.CreateAdd(ir.CreateMul(wide(place.batch), wide(place.query_heads)), wide(place.query_head));
  Value* rows = ir.CreateAdd(ir.CreateMul(heads, wide(place.rows_of_head)), wide(place.first_row));
  Value* records = ir.CreateMul(rows, wide(place.slots));
  return ir.CreateAdd(place.workspace,
                      ir.CreateMul(records, ir.getInt64(static_cast<std::uint64_t>(record_bytes(head_dim)))));
}

Value* output_offset(language::Kernel& kernel, Value* slot, int head_dim) {
  return kernel.ir().CreateMul(slot, kernel.constant(output_bytes(head_dim)));
}

Value* statistics_offset(language::Kernel& kernel, Value* slots, Value* slot, int head_dim) {
  llvm::IRBuilder<>& ir = kernel.ir();
  return ir.CreateAdd(output_offset(kernel, slots, head_dim), ir.CreateMul(slot, kernel.constant(statistics_bytes)));
}

}  // namespace wavejit::attention_combine
