// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_forward/emit/byte_products.h"

namespace wavejit::attention_forward {

using language::Accumulator;
using language::ByteMatrix;
using language::ByteOperand;
using language::KOrder;
using language::Value;
using language::Values;

std::vector<ByteOperand> ByteProducts::query(const Values& loaded, Value* sign) const {
  llvm::IRBuilder<>& ir = kernel_.ir();
  Value* signs = ir.CreateVectorSplat(language::OperandLayout::dwords, sign);
  std::vector<ByteOperand> query;
  for (std::size_t at = 0; at + 1 < loaded.size(); at += ByteMatrix::fragments)
    query.push_back(
        matrix_.operand(ir.CreateXor(loaded[at], signs), ir.CreateXor(loaded[at + 1], signs), KOrder::contiguous));
  return query;
}

ByteOperand ByteProducts::keys(TileStream& stream, int buffer, int step) const {
  const int fragment = step / 2 * ByteMatrix::fragments;
  const int block = step % 2;
  return matrix_.operand(stream.rows(buffer, block, fragment).value, stream.rows(buffer, block, fragment + 1).value,
                         KOrder::contiguous);
}

ByteOperand ByteProducts::keys(LineStream& stream, Value* start, int step) const {
  const int fragment = step / 2 * ByteMatrix::fragments;
  const int block = step % 2;
  return matrix_.operand(stream.rows(start, block, fragment).value, stream.rows(start, block, fragment + 1).value,
                         KOrder::contiguous);
}

void ByteProducts::multiply_keys(const ByteOperand& keys, const std::vector<ByteOperand>& query,
                                 std::vector<Accumulator>& scores, int step) const {
  Accumulator& sum = scores[static_cast<std::size_t>(step % 2)];
  sum = matrix_.mma(keys, query[static_cast<std::size_t>(step / 2)], sum);
}

ByteOperand ByteProducts::values(TileStream& stream, int buffer, int step) const {
  return matrix_.operand(stream.transposed_bytes(buffer, step, 0), stream.transposed_bytes(buffer, step, 1),
                         KOrder::accumulator_rows);
}

ByteOperand ByteProducts::values(LineStream& stream, Value* start, int step) const {
  return matrix_.operand(stream.transposed_bytes(start, step, 0), stream.transposed_bytes(start, step, 1),
                         KOrder::accumulator_rows);
}

}  // namespace wavejit::attention_forward
