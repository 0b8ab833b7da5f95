// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The operands and products of the dual-wave pipeline: what of a tile a wave reads from LDS, and in which order matrix
// instructions take it.
#pragma once

#include <optional>
#include <vector>

#include "codegen/language/lane_place.h"
#include "codegen/language/matrix.h"
#include "codegen/language/softmax.h"
#include "codegen/language/strand.h"
#include "targets/wave_shape.h"
#include "templates/attention/emit/tiles_lines.h"
#include "templates/attention_forward/emit/byte_products.h"
#include "templates/attention_forward/emit/dualwave_schedule.h"
#include "templates/attention_forward/emit/dualwave_state.h"
#include "templates/attention_forward/emit/workgroup.h"

namespace wavejit::attention_forward::dualwave {

class Products {
 public:
  Products(language::Kernel& kernel, const ForwardKernel& spec, const language::MatrixUnit& matrix, LineTiles& tiles,
           const language::Softmax& softmax);

  void take_query(const Workgroup& workgroup, const language::Values& loaded);

  // A tile into registers, from a buffer, from that which the number says at run time, or from where reads start.
  void read(Stream stream, int buffer);
  void read_last_values(language::Value* buffer);
  void read_bytes(Stream stream, const State& state);
  // Makes the starts of the next memory cluster's reads, where the walk is `ahead` − 1 tiles further then: in it the
  // partner has the vector unit.
  void make_read_starts(State& state, std::size_t ahead);

  // Sᵀ = K · Qᵀ into `scores`, Oᵀ += Vᵀ · Pᵀ.
  language::Strand multiply_keys();
  language::Strand multiply_values(State& state);

  // The products of Q, K and V in 8 bits.
  const std::optional<ByteProducts>& bytes() const { return bytes_; }

  // What a softmax takes and leaves.
  std::vector<language::Accumulator> scores;
  std::vector<language::OperandB> packed;
  language::ByteOperand packed_bytes;

 private:
  language::Strand multiply_value_bytes(State& state);

  language::Kernel& kernel_;
  const ForwardKernel& spec_;
  const targets::WaveShape wave_;
  const language::MatrixUnit& matrix_;
  LineTiles& tiles_;
  const language::Softmax& softmax_;
  std::optional<ByteProducts> bytes_;
  std::vector<language::OperandB> query_;
  std::vector<language::ByteOperand> query_bytes_;
  std::vector<language::OperandA> read_;
  std::vector<language::ByteOperand> key_bytes_;
  std::vector<language::ByteOperand> value_bytes_;
};

}  // namespace wavejit::attention_forward::dualwave
