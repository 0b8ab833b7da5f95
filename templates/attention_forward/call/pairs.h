// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Whether workgroups of a call own two query tiles each: a pure function of the problem and the target. Shows in no
// bit.
#pragma once

#include "boards/board.h"
#include "templates/attention_forward/call/problem.h"

namespace wavejit::attention_forward {

// Whether some calls of the shape pair their tiles of rows, on targets that can.
bool may_pair(const AttentionShape& shape);

// Under a diagonal tile n − 1 − i and tile i of n have as many keys together as any other such pair. One workgroup for
// both has what it costs to begin once, reads Q of the second tile while it computes the first, and leaves no long tile
// for the end of the launch; but there are half as many to fill the device with.
bool pairs_tiles(const AttentionProblem& problem, const boards::Board& target);

}  // namespace wavejit::attention_forward
