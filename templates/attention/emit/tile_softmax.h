// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The online softmax of one tile, cut into single operations that a ladder strings between matrix instructions.
// Every operation, and which weights meet in which addition, is language::Softmax's. What stands here is when each is
// written (docs/canonical-arithmetic.md, steps 1 to 6).
#pragma once

#include <functional>
#include <span>

#include "codegen/language/byte_matrix.h"
#include "codegen/language/matrix.h"
#include "codegen/language/softmax.h"
#include "codegen/language/strand.h"

namespace wavejit::attention {

// A tile between its scores and its packed weights. Per lane 32 values: registers of both score accumulators in order.
struct TileWeights {
  language::Values values;  // weights; of the last ones only exponents, until `finish`
};

// Slots of a ladder that operations take, where it is not one each.
struct OperationSlots {
  int exp2 = 1;
  int convert = 1;  // two weights, rounded and packed
  int first_maximum = 1;
  int swap = 0;      // the instruction that sends a maximum to the other half of the wave
  int exchange = 0;  // from sending a maximum to the other half of the wave until it is there
  int grows = 1;     // whether a row's maximum grows
  int choose = 1;    // the maximum that the tile goes on with
  int shift = 2;     // what is added to its scores
};

// What `begin` found out and `rescale` needs.
struct Growth {
  language::Value* before = nullptr;  // m as it was
  language::Value* raised = nullptr;  // max(m, the tile's scores)
  language::Value* grows = nullptr;   // per lane
};

class TileSoftmax {
 public:
  // `weighed`: how many of the tile's weights `begin` makes; the others are left to `finish`.
  TileSoftmax(language::Kernel& kernel, const language::Softmax& softmax, const language::MatrixUnit& matrix,
              int weighed, OperationSlots slots = {})
      : kernel_(kernel), softmax_(softmax), matrix_(matrix), weighed_(weighed), slots_(slots) {}

  // What becomes of a number, that of register r of a part; none: itself.
  using Scaled = std::function<language::Value*(int part, int r, language::Value* number)>;

  // Steps 1, 2 and m of step 3; of step 4 up to `weighed` exponentials. The results are in `state`, `weights` and
  // `growth` once the strand is written. `scaled` multiplies a score, before anything else.
  language::Strand begin(std::span<const language::Accumulator> scores, language::SoftmaxState& state,
                         TileWeights& weights, Growth& growth, const Scaled& scaled = {}) const;

  // The rest of step 3: l and O. Between the last product onto O of one tile and the first of the next. Not where the
  // tile that grew begins a chunk (uniform): l and O are those of the chunk before then.
  void rescale(const Growth& growth, language::SoftmaxState& state, std::span<language::Accumulator> outputs,
               const std::function<language::Value*()>& begins_chunk) const;

  // The rest of step 4, steps 5 and 6: weights → four operand fragments of 16 keys. `scaled` multiplies a weight, after
  // it is added to the sum and before it is rounded.
  language::Strand finish(TileWeights& weights, language::SoftmaxState& state, std::vector<language::OperandB>& packed,
                          const Scaled& scaled = {}) const;
  // The same of weights in 8 bits: one operand, which the matrix unit adds up.
  language::Strand finish(TileWeights& weights, const language::ByteMatrix& bytes, language::ByteOperand& packed) const;

 private:
  // Registers of one score accumulator.
  int registers() const { return matrix_.accumulator_layout().registers(); }

  language::Kernel& kernel_;
  const language::Softmax& softmax_;
  const language::MatrixUnit& matrix_;
  int weighed_;
  OperationSlots slots_;
};

}  // namespace wavejit::attention
