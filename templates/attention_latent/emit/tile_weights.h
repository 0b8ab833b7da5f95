// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// P of one tile while O is multiplied with it. The first product needs the weights of 16 keys. All others are made, and
// added up, in the shadow of products before theirs: a wave is alone on its SIMD, and nobody else would use the time.
// The same operations on the same numbers as Softmax::weigh's.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "codegen/language/matrix.h"
#include "codegen/language/softmax.h"
#include "codegen/language/strand.h"

namespace wavejit::attention_latent {

class TileWeights {
 public:
  // `state`: with the tile's maximum. The weights of the first block of keys are made here.
  TileWeights(language::Kernel& kernel, const language::Softmax& softmax, const language::MatrixUnit& matrix,
              const language::SoftmaxState& state, std::span<const language::Accumulator> scores);
  // Its operations refer to it.
  TileWeights(const TileWeights&) = delete;
  TileWeights& operator=(const TileWeights&) = delete;

  // The operand of 16 keys; what of it is not made yet is made now.
  language::OperandB of(int key_block);
  // Called after a product, in whose shadow `slots` slots are left.
  void write(int slots) { strand_.write(slots); }
  // The state with the tile's sum.
  language::SoftmaxState finish();

 private:
  // Registers first … first + count of an accumulator; operands that they fill; running sums that they end.
  void add_weights(std::size_t part, int first, int count);
  void add_operand(int key_block);
  void add_sum(std::size_t running);

  language::Kernel& kernel_;
  const language::Softmax& softmax_;
  const language::MatrixUnit& matrix_;
  language::SoftmaxState state_;
  language::Value* shift_;
  std::vector<language::Values> weights_;   // by accumulator: scores at first
  std::vector<language::Values> operands_;  // by block of 16 keys: dwords, as many as are made
  language::Strand strand_;
};

}  // namespace wavejit::attention_latent
