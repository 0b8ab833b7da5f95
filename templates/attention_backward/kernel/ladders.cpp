// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_backward/kernel/ladders.h"

namespace wavejit::attention_backward {
namespace {

// A matrix instruction of 32 × 32 takes 8 slots, of which it holds the vector port for 2. A fragment takes one or two
// reads and a wait.
constexpr Ladder two_blocks = {.idea = "what fits behind a matrix instruction",
                               .behind = {6, 6, 6, 6, 6},
                               .reading = 3,
                               .settling = 1,
                               .read_ahead = 3};
// A fragment is read for one matrix instruction: there are few slots for the queue, and each is taken.
constexpr Ladder one_block = {.idea = "as much as the port has time for",
                              .behind = {8, 8, 8, 8, 8},
                              .reading = 3,
                              .settling = 1,
                              .read_ahead = 4};
// Four waves read a fragment for each matrix instruction, and hand weights over: LDS takes half as long again as they.
// Memory must be asked early, and not for everything at once: then its queue would hold the wave up.
constexpr Ladder shared_keys = {.idea = "half of the next tile asked for in front, then as much as LDS has time for",
                                .behind = {8, 8, 12, 12, 12},
                                .reading = 3,
                                .settling = 2,
                                .read_ahead = 4,
                                .opening = 34};
// The same of two instructions of depth 8. Weights have a tile's time, and rows are asked for two tiles ahead.
constexpr Ladder shared_long_keys = {.idea = "until a phase's barrier, exponentials close together",
                                     .behind = {10, 9, 16, 9, 9},
                                     .reading = 3,
                                     .settling = 1,
                                     .read_ahead = 4};
// Two of depth 8 take a fragment, and hold the port for 1 each.
constexpr Ladder long_queries = {.idea = "less than half a fragment's, evenly",
                                 .behind = {6, 6, 6, 6, 6},
                                 .reading = 3,
                                 .settling = 2,
                                 .read_ahead = 4};
constexpr Ladder long_keys = {
    .idea = "half a fragment's", .behind = {7, 7, 7, 7, 7}, .reading = 3, .settling = 2, .read_ahead = 3};

// Nothing runs beside a matrix instruction, which takes a fragment: vector work stands between them as it comes, so
// that the fragments ahead have time to arrive.
constexpr Ladder in_turn = {
    .idea = "a little behind each, in turn", .behind = {6, 6, 6, 6, 6}, .reading = 3, .settling = 2, .read_ahead = 4};
constexpr Ladder in_turn_of_few = {.idea = "the same with two fragments less ahead, where registers are short",
                                   .behind = {6, 6, 6, 6, 6},
                                   .reading = 3,
                                   .settling = 2,
                                   .read_ahead = 2};

Ladder ladder_of(const KernelWords& words, const targets::Target& target, const Ladder& otherwise) {
  if (!has_registers_of_accumulation(target)) return takes_all_registers(words, target) ? in_turn_of_few : in_turn;
  if (!target.transpose_read) return otherwise;
  return words.blocks == 1 ? one_block : two_blocks;
}

}  // namespace

Ladder ladder_of(const QueryKernel& spec, const targets::Target& target) {
  return ladder_of(spec, target, long_queries);
}
Ladder ladder_of(const KeyKernel& spec, const targets::Target& target) {
  if (spec.shared) return target.transpose_read ? shared_keys : shared_long_keys;
  return ladder_of(spec, target, long_keys);
}

OperationSlots slots_of(const KernelWords& words, const targets::Target& target) {
  if (target.transpose_read) return {.exp2 = 2, .convert = 1};
  if (words.dtype != DataType::bf16) return {.exp2 = 4, .convert = 3};
  return {.exp2 = 4, .convert = has_fp32_terms(words) ? 9 : 5};
}

}  // namespace wavejit::attention_backward
