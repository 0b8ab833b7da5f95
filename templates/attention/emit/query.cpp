// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention/emit/query.h"

#include "codegen/language/lane_place.h"
#include "templates/attention/emit/scattered.h"
#include "templates/attention/kernel/types.h"

namespace wavejit::attention {

using language::Value;

namespace {

language::Values load_scattered_query(language::Kernel& kernel, int head_dim, const Slice& query,
                                      const QueryTile& tile) {
  const targets::WaveShape wave = language::wave_shape(kernel);
  const int dims = wave.operand_bytes / query.element_bytes;
  Value* first_dim = kernel.ir().CreateMul(tile.lane_group, kernel.constant(dims));
  Value* row = scattered_query_row(kernel, tile, query, tile.row, first_dim);
  language::Values loaded;
  for (int block = 0; block < head_dim / wave.fragment_k(); ++block) {
    language::Values elements;
    load_scattered(query, kernel, row, kernel.constant(0), block * wave.fragment_bytes() / query.element_bytes, dims,
                   elements);
    loaded.push_back(pack_scattered(kernel, elements, query.element_bytes));
  }
  return loaded;
}

}  // namespace

language::Values load_query(language::Kernel& kernel, int head_dim, const Slice& query, const QueryTile& tile) {
  const targets::WaveShape wave = language::wave_shape(kernel);
  llvm::IRBuilder<>& ir = kernel.ir();
  if (query.scattered()) return load_scattered_query(kernel, head_dim, query, tile);
  Value* row = ir.CreateAdd(lane_row_offset(kernel, tile, tile.row, query.row_stride, query.head_stride),
                            ir.CreateMul(tile.lane_group, kernel.constant(wave.operand_bytes)));
  language::Values loaded;
  const int whole_blocks = head_dim / wave.fragment_k();
  for (int block = 0; block < blocks_of_dims(head_dim, wave.fragment_k()); ++block) {
    Value* offset = ir.CreateAdd(row, kernel.constant(block * wave.fragment_bytes()));
    // Half a block is the first lane group's: the other points far outside, and has zeros.
    if (block >= whole_blocks)
      offset = ir.CreateSelect(ir.CreateICmpEQ(tile.lane_group, kernel.constant(0)), offset,
                               ir.getInt32(language::far_outside));
    loaded.push_back(query.buffer.load(wave.operand_bytes, offset, kernel.constant(0)));
  }
  return loaded;
}

std::vector<language::OperandB> query_operands(language::Kernel& kernel, const QueryTile& tile,
                                               const language::MatrixUnit& matrix, const language::Values& loaded) {
  Value* sign = kernel.ir().CreateVectorSplat(language::OperandLayout::dwords, tile.query_sign);
  std::vector<language::OperandB> query;
  for (Value* dwords : loaded)
    query.push_back(matrix.operand_b(kernel.ir().CreateXor(dwords, sign), language::KOrder::contiguous));
  return query;
}

}  // namespace wavejit::attention
