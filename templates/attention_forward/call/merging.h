// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Whether the last workgroup to arrive merges the parts of its rows, or a second launch does (docs/split-keys.md): a
// pure function of the problem and the target, whatever workspace there is. Shows in no bit.
#pragma once

#include <string>
#include <string_view>

#include "boards/board.h"
#include "templates/attention_forward/call/pins.h"
#include "templates/attention_forward/call/problem.h"

namespace wavejit::attention_forward {

// Whether the engine may choose one launch for calls of the shape (launches=auto), where a kernel merges (can_merge).
// It chooses two for many rows, which leave too much to merge, and for words to which no costs were fitted.
bool may_merge_by_itself(const AttentionShape& shape);

// Whether a kernel of the shape's split keys merges its parts. `shares`: the waves of a workgroup share each chunk
// (shared_chunks.h). `pins`: query rows of a workgroup.
bool can_merge(const AttentionShape& shape, const targets::Target& target, bool shares, const Pins& pins = {});
// On some target, where each wave walks chunks of its own.
bool can_merge_somewhere(const AttentionShape& shape);

// Keys are split.
bool merges_in_walk(const AttentionProblem& problem, bool shares, const boards::Board& target);

// "merged in the same launch, by the last workgroup to arrive: 7800 cycles predicted beyond the walk, 12914 in two
// launches"
std::string describe_merging(const AttentionProblem& problem, bool merged, bool shares, const boards::Board& target);

}  // namespace wavejit::attention_forward
