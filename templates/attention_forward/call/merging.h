// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Whether the last workgroup to arrive merges the parts of its rows, or a second launch does (docs/split-keys.md): a
// pure function of the problem and the target, whatever workspace there is. Shows in no bit.
#pragma once

#include <string>
#include <string_view>

#include "boards/board.h"
#include "templates/attention_forward/call/problem.h"

namespace wavejit::attention_forward {

// Why parts of such a problem are merged in a second launch, whoever asks for one; empty: there is a kernel that merges
// them in the first.
std::string_view why_two_launches(const AttentionProblem& problem);

// The same of a workgroup whose waves are too many, or have too much to merge, for `auto` to ever let it.
bool may_merge_by_itself(const AttentionShape& shape);

// Keys are split. `shares`: the waves of a workgroup share each chunk (shared_chunks.h).
bool merges_in_walk(const AttentionProblem& problem, bool shares, const boards::Board& target);

// "merged in the same launch, by the last workgroup to arrive: 7800 cycles predicted beyond the walk, 12914 in two
// launches"
std::string describe_merging(const AttentionProblem& problem, bool merged, bool shares, const boards::Board& target);

}  // namespace wavejit::attention_forward
