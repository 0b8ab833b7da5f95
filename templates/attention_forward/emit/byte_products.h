// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The products of a kernel whose Q, K and V are bytes (docs/canonical-arithmetic.md, "Queries in 8 bits"): which
// fragments of a tile an operand is made of, and in which order operands come.
#pragma once

#include <vector>

#include "codegen/language/byte_matrix.h"
#include "templates/attention/emit/stream_lines.h"
#include "templates/attention_forward/kernel/spec.h"

namespace wavejit::attention_forward {

class ByteProducts {
 public:
  ByteProducts(language::Kernel& kernel, const ForwardKernel& spec) : kernel_(kernel), spec_(spec), matrix_(kernel) {}

  // As many as load_query loads where elements have 16 bits.
  static int loaded_dims(const ForwardKernel& spec) {
    return spec.head_dim_qk * bytes_of(spec.query_type()) / bytes_of(spec.dtype);
  }
  // `sign`: as QueryTile::query_sign.
  std::vector<language::ByteOperand> query(const language::Values& loaded, language::Value* sign) const;

  // Operands of a K tile: both blocks of 32 keys for each 64 dims.
  int key_steps() const { return 2 * spec_.head_dim_qk / language::ByteMatrix::k_block; }
  language::ByteOperand keys(TileStream& stream, int buffer, int step) const;
  // From an image that is known at run time only (LineStream::rows_start).
  language::ByteOperand keys(LineStream& stream, language::Value* start, int step) const;
  void multiply_keys(const language::ByteOperand& keys, const std::vector<language::ByteOperand>& query,
                     std::vector<language::Accumulator>& scores, int step) const;

  // Steps of a V tile: each 32 dims with all 64 keys.
  int value_steps() const { return spec_.head_dim_v / language::ByteMatrix::rows; }
  language::ByteOperand values(TileStream& stream, int buffer, int step) const;
  // From a buffer that is known at run time only (LineStream).
  language::ByteOperand values(LineStream& stream, language::Value* start, int step) const;

  const language::ByteMatrix& matrix() const { return matrix_; }

 private:
  language::Kernel& kernel_;
  const ForwardKernel& spec_;
  language::ByteMatrix matrix_;
};

}  // namespace wavejit::attention_forward
