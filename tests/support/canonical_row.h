// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The canon's softmax of one row in float32, operation by operation (docs/canonical-arithmetic.md): what decides the
// bits of l. Written from that page, by key numbers; nothing shared with any kernel.
#pragma once

#include <span>

namespace wavejit::tests {

struct CanonicalRow {
  float maximum;
  float sum;
};

// `scores` from key 0 on, −∞ where they are hidden. Powers of two are the hardware's where exponents are whole numbers.
// Another `chunk` than the canon's is another arithmetic, for tests that must see one.
CanonicalRow canonical_row(std::span<const float> scores, float scale_log2e, float threshold = 8,
                           std::size_t chunk = 1024);

}  // namespace wavejit::tests
