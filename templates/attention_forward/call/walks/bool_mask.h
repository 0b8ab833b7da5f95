// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A bool mask of a call, or a bias by tile: its check, the lists of key blocks that are made of it, and where they
// stand in the workspace, with a bit for each row and key of a bool mask, in front of the walks that are made of those
// (lists.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "templates/attention_forward/call/problem.h"
#include "templates/attention_forward/kernel/walks/block_lists/arguments.h"
#include "templates/attention_forward/kernel/walks/mask_lists/arguments.h"

namespace wavejit::attention_forward {

// The word that goes with no bool mask, or with no bias by tile; nothing: there is none. `lists`, `listed`: whether there
// are lists of key blocks, or of keys.
std::optional<BesideWord> beside_bool_mask(const AttentionShape& shape, bool lists, bool listed);
std::optional<BesideWord> beside_bias_by_tile(const AttentionShape& shape, bool lists, bool listed);

// Fills the problem's lists and its shape's words. The sizes stand in it already.
Result<void> take_bool_mask(const wavejit_attention_forward_arguments& call, AttentionProblem& problem);

// The same of WAVEJIT_BIAS_BY_TILE. Of few rows, whose keys are split instead, the shape's word goes.
Result<void> take_bias_by_tile(const wavejit_attention_forward_arguments& call, AttentionProblem& problem);

// Lists of blocks of 64 rows by a tile of keys, for `batches` batches and `heads` heads.
BlockLists lists_of_mask(const AttentionProblem& problem, std::int64_t batches, std::int64_t heads);

// "none: …" for explain.
std::string describe_mask_of_few_rows(const AttentionProblem& problem);

// Bytes of the workspace; 0 for lists that are no mask's.
std::uint64_t mask_bytes(const BlockLists& lists);

struct MaskPlan {
  attention_mask_lists::Arguments look;
  attention_block_lists::Lists masked;
  attention_block_lists::Lists whole;
  std::optional<ScoreArguments> bits;  // where they stand, in the fields of a bias
};
MaskPlan plan_mask(const AttentionProblem& problem, const wavejit_attention_forward_arguments& call,
                   const Arguments& arguments, const void* memory);

}  // namespace wavejit::attention_forward
