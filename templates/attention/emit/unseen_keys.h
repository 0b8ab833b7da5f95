// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Keys in front of a window: those that no row of the sequence sees, in this call. Their values are not multiplied,
// because 0 · NaN is NaN, and engines give the pages of such keys to others. Only the first tile of a walk has them
// beside keys that some row sees: whoever fetches it leaves them out, and reads zeros in their place. They are counted
// for the whole sequence, so that which rows share a tile does not show.
//
// Keys behind the last that a row of the sequence sees need nothing of this: they count as behind the sequence.
#pragma once

#include "codegen/language/buffer.h"
#include "templates/attention/emit/integers.h"
#include "templates/attention/kernel/canon.h"

namespace wavejit::attention {

// How many of the tile's first keys no row sees, uniform, from 0 on; null, where `first_seen` is: no such key.
// `first_seen`: the sequence's first key that a row sees.
inline language::Value* unseen_keys(language::Kernel& kernel, language::Value* first_seen, language::Value* tile) {
  if (first_seen == nullptr) return nullptr;
  llvm::IRBuilder<>& ir = kernel.ir();
  language::Value* before = ir.CreateSub(first_seen, ir.CreateMul(tile, kernel.constant(tile_keys)));
  return maximum(kernel, before, kernel.constant(0));
}

// How many of them stand in a part of the tile that begins `keys` (uniform) keys later.
inline language::Value* unseen_behind(language::Kernel& kernel, language::Value* unseen, language::Value* keys) {
  if (unseen == nullptr) return nullptr;
  return maximum(kernel, kernel.ir().CreateSub(unseen, keys), kernel.constant(0));
}

// Per lane: `exists`, unless key `in_tile` of the tile is one of them.
inline language::Value* and_seen(language::Kernel& kernel, language::Value* exists, language::Value* unseen,
                                 language::Value* in_tile) {
  if (unseen == nullptr) return exists;
  return kernel.ir().CreateAnd(exists, kernel.ir().CreateICmpUGE(in_tile, unseen));
}

// Per lane: `offset` bytes from the tile's first row on, far outside of every descriptor where that is in front of row
// `unseen`.
inline language::Value* offset_of_seen(language::Kernel& kernel, language::Value* offset, language::Value* unseen,
                                       language::Value* row_stride) {
  if (unseen == nullptr) return offset;
  llvm::IRBuilder<>& ir = kernel.ir();
  language::Value* is_unseen = ir.CreateICmpULT(offset, ir.CreateMul(unseen, row_stride));
  return ir.CreateSelect(is_unseen, ir.getInt32(language::far_outside), offset);
}

}  // namespace wavejit::attention
