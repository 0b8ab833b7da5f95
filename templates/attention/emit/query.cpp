// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention/emit/query.h"

#include "codegen/language/convert.h"
#include "codegen/language/lane_place.h"
#include "templates/attention/emit/scattered.h"
#include "templates/attention/kernel/types.h"

namespace wavejit::attention {

using language::Value;

namespace {

constexpr int widened = 2;  // bytes of f32 in those of an operand

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

// Q in f32: a block is as many bytes again, and a lane's part of it two loads.
language::Values load_wide_query(language::Kernel& kernel, int head_dim, const Slice& query, const QueryTile& tile) {
  const targets::WaveShape wave = language::wave_shape(kernel);
  llvm::IRBuilder<>& ir = kernel.ir();
  Value* row = ir.CreateAdd(lane_row_offset(kernel, tile, tile.row, query.row_stride, query.head_stride),
                            ir.CreateMul(tile.lane_group, kernel.constant(widened * wave.operand_bytes)));
  language::Values loaded;
  const int whole_blocks = head_dim / wave.fragment_k();
  for (int block = 0; block < blocks_of_dims(head_dim, wave.fragment_k()); ++block) {
    for (int part = 0; part < widened; ++part) {
      Value* offset =
          ir.CreateAdd(row, kernel.constant((block * widened * wave.fragment_bytes()) + (part * wave.operand_bytes)));
      if (block >= whole_blocks)
        offset = ir.CreateSelect(ir.CreateICmpEQ(tile.lane_group, kernel.constant(0)), offset,
                                 ir.getInt32(language::far_outside));
      loaded.push_back(query.buffer.load(wave.operand_bytes, offset, kernel.constant(0)));
    }
  }
  return loaded;
}

// A NaN of the caller's may have its bits where rounding drops them.
Value* with_short_nans(language::Kernel& kernel, Value* registers) {
  llvm::IRBuilder<>& ir = kernel.ir();
  for (std::uint64_t each = 0; each < language::OperandLayout::dwords; ++each)
    registers = ir.CreateInsertElement(
        registers, language::with_short_nan(kernel, ir.CreateExtractElement(registers, each)), each);
  return registers;
}

// Rounded to nearest, ties to even; NaN stays NaN.
language::Values rounded_query(language::Kernel& kernel, const language::MatrixUnit& matrix,
                               const language::Values& loaded) {
  language::Values rounded;
  for (std::size_t first = 0; first < loaded.size(); first += widened) {
    language::Values dwords;
    for (std::size_t part = first; part < first + widened; ++part) {
      constexpr int floats = language::OperandLayout::dwords;
      Value* registers = kernel.ir().CreateBitCast(loaded[part], kernel.vector(kernel.f32(), floats));
      if (matrix.element() == language::Element::bf16) registers = with_short_nans(kernel, registers);
      for (Value* dword :
           language::convert_packed(kernel, registers, 0, floats, matrix.element(), language::NanInput::irrelevant))
        dwords.push_back(dword);
    }
    rounded.push_back(language::gather_dwords(kernel, dwords));
  }
  return rounded;
}

}  // namespace

language::Values load_query(language::Kernel& kernel, int head_dim, const Slice& query, const QueryTile& tile,
                            QueryNumbers numbers) {
  if (numbers == QueryNumbers::floats) return load_wide_query(kernel, head_dim, query, tile);
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
                                               const language::MatrixUnit& matrix, const language::Values& loaded,
                                               QueryNumbers numbers) {
  if (numbers == QueryNumbers::floats)
    return query_operands(kernel, tile, matrix, rounded_query(kernel, matrix, loaded));
  Value* sign = kernel.ir().CreateVectorSplat(language::OperandLayout::dwords, tile.query_sign);
  std::vector<language::OperandB> query;
  for (Value* dwords : loaded)
    query.push_back(matrix.operand_b(kernel.ir().CreateXor(dwords, sign), language::KOrder::contiguous));
  return query;
}

}  // namespace wavejit::attention
