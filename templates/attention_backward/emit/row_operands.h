// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the dQ kernel has of its rows throughout: Q and dO as operands, and two numbers. Delta is made here, of dO and
// O, and written for the dK/dV kernel.
#pragma once

#include <vector>

#include "codegen/language/lane_place.h"
#include "codegen/language/matrix.h"
#include "templates/attention/emit/slice.h"
#include "templates/attention_backward/emit/query_place.h"

namespace wavejit::attention_backward {

// The operands of a block of rows.
struct RowOperands {
  std::vector<language::OperandB> query, output_gradient;  // a fragment of dims each
  language::Value* shift = nullptr;
  language::Value* minus_delta = nullptr;
};

// Each row's delta is kept in every register of an accumulator. Two blocks of wide heads have no registers for that, and
// compute it anew.
constexpr bool deltas_made_anew(const QueryKernel& spec) { return spec.blocks == 2 && spec.head_dim_qk > 128; }

class RowReader {
 public:
  RowReader(language::Kernel& kernel, const QueryKernel& spec, const QueryPlace& place,
            const language::MatrixUnit& matrix)
      : kernel_(kernel), spec_(spec), place_(place), matrix_(matrix), wave_(language::wave_shape(kernel)) {}

  RowOperands load(const attention::QueryTile& queries) const;
  // Rows of a tensor. `are`: all bits, or none where there are no such rows.
  attention::Slice rows_of(std::size_t at, int dims, int element_bytes, language::Value* are) const;

 private:
  language::Value* is_given(std::size_t at) const;
  language::Values load_outputs(const attention::QueryTile& queries) const;
  language::Value* output_element(const language::Values& o, std::size_t block, int index) const;
  language::Value* element(language::Value* dwords, int index) const;
  language::Value* delta_of(const language::Values& o, const language::Values& d_o) const;

  language::Kernel& kernel_;
  const QueryKernel& spec_;
  const QueryPlace& place_;
  const language::MatrixUnit& matrix_;
  targets::WaveShape wave_;
};

}  // namespace wavejit::attention_backward
