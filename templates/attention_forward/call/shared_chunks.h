// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Whether waves share each chunk of a call's keys (emit/shared_walk.h): a pure function of the problem, its runs and
// the target. Shows in no bit.
#pragma once

#include <cstdint>
#include <string>

#include "boards/board.h"
#include "templates/attention_forward/call/problem.h"

namespace wavejit::attention_forward {

// Whether some calls of the shape have waves that share chunks.
bool can_share(const AttentionShape& shape, const targets::Target& target, bool split);
// On some target, with keys that are split.
bool can_share_somewhere(const AttentionShape& shape);

// A compute unit has room for one workgroup of waves that share, which walks a chunk in less than half the time of a
// wave alone. So they share where no compute unit has a second workgroup to walk meanwhile; with more workgroups memory
// is what all wait for. `splits`: runs of each sequence.
bool shares_chunks(const AttentionProblem& problem, std::uint32_t splits, const boards::Board& target);

// "share each chunk: 16 workgroups for 256 compute units", or why they do not; empty: rows are too many for it.
std::string describe_sharing(const AttentionProblem& problem, std::uint32_t splits, const boards::Board& target);

}  // namespace wavejit::attention_forward
