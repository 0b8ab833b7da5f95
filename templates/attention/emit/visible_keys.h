// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which keys a row sees: a window round its diagonal, cut to the keys that there are. And the other way round, which
// rows see a key.
#pragma once

#include "templates/attention/emit/sequence.h"
#include "templates/attention/kernel/types.h"

namespace wavejit::attention {

// Offsets of the two limits in a kernel's arguments, 32 bits each, at most unlimited_window. A kind of masks.def has its two
// arguments there.
struct WindowFields {
  std::size_t left, right;
};

// A kind of masks.def (kernel/mask_kinds.h), whose arguments are null where there is none.
struct KindOfMask {
  Mask mask = Mask::none;
  language::Value* first = nullptr;
  language::Value* second = nullptr;
  explicit operator bool() const { return first != nullptr; }
};
KindOfMask kind_of_mask(language::Kernel& kernel, Mask mask, const WindowFields& window);
// The first key that a row at this position sees and the last one: the position itself where the kind limits neither.
// A position before key 0 has key 0 for the first one. Both grow with the position, or stay.
language::Value* first_key_at(language::Kernel& kernel, const KindOfMask& kind, language::Value* position);
language::Value* last_key_at(language::Kernel& kernel, const KindOfMask& kind, language::Value* position);
// The key behind the last one that a row sees, by the key behind its position.
language::Value* end_key_at(language::Kernel& kernel, const KindOfMask& kind, language::Value* behind);

// ---- A row by itself. `diagonal`: the key at which it stands.

language::Value* first_visible_key(language::Kernel& kernel, const WindowFields& window, language::Value* diagonal);
// How many keys beyond its diagonal a row of the sequence sees where a byte for each, whose address stands in the
// field, says whether there is a limit at all: none, or unlimited_window.
language::Value* keys_beyond_diagonal(language::Kernel& kernel, std::size_t flags_field, language::Value* batch);

// From the first key that the row sees to the one behind the last; none where `end` is not larger.
struct KeyRange {
  language::Value* begin;
  language::Value* end;
};
KeyRange visible_keys(language::Kernel& kernel, const WindowFields& window, language::Value* diagonal,
                      language::Value* keys);

// ---- The rows of a tile, of one mask

// What is added to a row for its diagonal, its last key and its first one; null where nothing asks for it or nothing
// limits it. With a kind of masks.def all are the diagonal's, from which first_key_at and last_key_at go on.
struct KeyLimits {
  language::Value* diagonal;
  language::Value* to_limit;
  language::Value* to_begin;
  KindOfMask kind = {};
};
// `wants_diagonal`: compute the diagonal without a mask, too. `beyond`: with Mask::causal, keys_beyond_diagonal; null:
// there are none.
KeyLimits key_limits(language::Kernel& kernel, Mask mask, bool wants_diagonal, const DiagonalFields& diagonal,
                     const WindowFields& window, const Sequence& sequence, language::Value* beyond = nullptr);

// ---- The keys of a tile, of one mask

// From the first row that sees any of the keys first_key … last_key of a tile to the one behind the last; none where
// `end` is not larger. A key outside the sequence is seen by no row, so last_key is cut to the last that there is.
struct RowRange {
  language::Value* begin;
  language::Value* end;
};
RowRange visible_rows(language::Kernel& kernel, const KeyLimits& limits, const Sequence& sequence,
                      language::Value* first_key, language::Value* last_key);

}  // namespace wavejit::attention
