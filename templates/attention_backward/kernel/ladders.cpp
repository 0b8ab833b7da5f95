// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_backward/kernel/ladders.h"

namespace wavejit::attention_backward {
namespace {

// A matrix instruction of 32 × 32 takes 8 slots, of which it holds the vector port for 2. A fragment takes one or two
// reads and a wait.
constexpr Ladder short_products = {.idea = "what fits behind a matrix instruction",
                                   .behind = {6, 6, 6, 6, 6},
                                   .reading = 3,
                                   .settling = 1,
                                   .read_ahead = 3};
// Two of depth 8 take a fragment, and hold the port for 1 each.
constexpr Ladder long_products = {
    .idea = "half a fragment's", .behind = {7, 7, 7, 7, 7}, .reading = 3, .settling = 2, .read_ahead = 4};

}  // namespace

Ladder ladder_of(const QueryKernel& /*spec*/, const targets::Target& target) {
  return target.transpose_read ? short_products : long_products;
}
Ladder ladder_of(const KeyKernel& /*spec*/, const targets::Target& target) {
  return target.transpose_read ? short_products : long_products;
}

OperationSlots slots_of(const KernelWords& words, const targets::Target& target) {
  if (target.transpose_read) return {.exp2 = 2, .convert = 1};
  return {.exp2 = 4, .convert = words.dtype == DataType::bf16 ? 9 : 3};
}

}  // namespace wavejit::attention_backward
