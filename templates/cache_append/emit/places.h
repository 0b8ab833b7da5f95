// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which token, which row of memory, which dims: where a wave and its lanes stand.
#pragma once

#include "codegen/language/buffer.h"
#include "templates/cache_append/kernel/spec.h"

namespace wavejit::cache_append {

// An offset beyond every row: nothing is read or written there.
inline constexpr std::uint32_t nowhere = 0xFFFFFF00;

// A struct Side in scalar registers.
struct SideFields {
  language::Value* source;  // i64, as the strides up to key_stride
  language::Value* source_batch_stride;
  language::Value* source_token_stride;
  language::Value* target;
  language::Value* page_stride;
  language::Value* group_stride;
  language::Value* key_stride;
  language::Value* source_head_stride;
  language::Value* source_dim_stride;
  language::Value* source_row_bytes;
  language::Value* target_head_stride;
  language::Value* target_piece_stride;
  language::Value* target_row_bytes;
  language::Value* heads;
  language::Value* pieces;
  language::Value* lane_shift;
  language::Value* heads_of_part;
};
SideFields load_side(language::Kernel& kernel, int side);

// A token of the wave; uniform.
struct Token {
  language::Value* inside;  // i1: it is one of the call's
  language::Value* number;  // in its batch; 0 of those that are not inside
};
Token token_of(language::Kernel& kernel, int index);

// An integer of the call for a token, of 32 or 64 bits, which counts if it is below `limit`; uniform.
struct Number {
  language::Value* value;  // i32
  language::Value* valid;  // i1
};
Number number_of(language::Kernel& kernel, const Token& token, std::size_t pointer, std::size_t shift,
                 language::Value* limit);

// Where a slot of the cache is: slot = page · page size + key; uniform.
struct Place {
  language::Value* page;
  language::Value* key;
};
Place place_of(language::Kernel& kernel, const Number& slot);

// The row that a slot of the cache names; `valid` false: a buffer of no bytes.
language::Buffer row_of_slot(language::Kernel& kernel, const SideFields& side, const Number& slot, const Place& place,
                             language::Value* inside);
// The row of a token in a tensor whose tokens stand one behind the other: Q's.
language::Buffer row_of_token(language::Kernel& kernel, const SideFields& side, const Token& token);
language::Buffer source_row(language::Kernel& kernel, const SideFields& side, const Token& token);

// A lane's dims of its wave's part.
struct Lane {
  language::Value* head;
  language::Value* piece;  // of the head
  language::Value* live;   // i1: there is such a head, and such a piece
};
Lane lane_of(language::Kernel& kernel, const SideFields& side, language::Value* unit);

// Loads eight dims into dwords, from the offset of the first one, where `live`. The dims have 16 bits, or 8 if memory
// stores 8.
language::Values load_piece(language::Kernel& kernel, const language::Buffer& row, Access access,
                            language::Value* offset, language::Value* dim_stride, language::Value* live);
void store_piece(language::Kernel& kernel, const language::Buffer& row, Access access, const language::Values& dwords,
                 language::Value* offset, language::Value* dim_stride, language::Value* live);

}  // namespace wavejit::cache_append
