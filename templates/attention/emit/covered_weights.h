// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A tile's scores to weights, their sums and operands, in the order that suits a machine on which nothing runs beside a
// matrix instruction.
//
// There an exponential takes four cycles of the vector port if another one or a matrix instruction follows, and one if
// plain vector work does. So each has some of the tile's plain work behind it: exponents of later weights, then sums
// and conversions of earlier ones. The operations, and which of them meet, are Softmax's: the order changes no bit.
#pragma once

#include <span>
#include <vector>

#include "codegen/language/matrix.h"
#include "codegen/language/softmax.h"

namespace wavejit::attention {

// Takes the weights into the sums of `state`; what is returned are the products' operands, a fragment of keys each.
// Everything is computed before this point (pin).
std::vector<language::OperandB> covered_weights(language::Kernel& kernel, const language::Softmax& softmax,
                                                const language::MatrixUnit& matrix,
                                                std::span<const language::Accumulator> scores,
                                                language::SoftmaxState& state);

}  // namespace wavejit::attention
