// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which rows of the tensors belong to one sequence.
#pragma once

#include "codegen/language/kernel.h"
#include "templates/attention/kernel/arguments.h"

namespace wavejit::attention {

// All uniform. Starts are 0 unless the tensor is packed.
struct Sequence {
  language::Value* query_start;  // row of q, of o and of lse where the sequence begins
  language::Value* query_length;
  language::Value* key_start;  // row of k and v
  language::Value* key_length;
  // What the diagonal of bottom-right masks is counted from: the length as the caller's key_lengths has it, also where
  // that is beyond the rows that there are.
  language::Value* told_keys;
};

// What key_starts holds: where packed sequences begin (and the one before ends), or first keys, of rows or of slots in
// pages. Slots are not counted: key_start then is no more than they may be.
enum class KeyStarts : std::uint8_t { packed, first_rows, first_slots };

// Sequence `batch`. Whatever SequenceArguments hold, start and start + length stay within the rows of the tensor, and
// no length exceeds the one that the grid was made for.
struct SequenceFields {
  std::size_t query_starts, query_rows, query_length, key_starts, key_lengths, key_rows, key_length;
};
Sequence sequence_of(language::Kernel& kernel, const SequenceFields& fields, language::Value* batch,
                     KeyStarts starts = KeyStarts::packed);
// The sequence of a kernel whose arguments hold a SequenceArguments.
Sequence sequence_of(language::Kernel& kernel, const LengthFields& fields, language::Value* batch,
                     KeyStarts starts = KeyStarts::packed);

// Where the diagonal stands: key − row of a sequence. Row numbers and lengths stay below 2²⁶ (a slice is under 4 GiB
// and a row has at least 128 bytes), so an offset cut to ±2²⁹ hides and shows the same keys as the whole one, and no
// sum of it with a row, a length or a window limit overflows.
language::Value* diagonal_offset(language::Kernel& kernel, const DiagonalFields& fields, const Sequence& sequence);

}  // namespace wavejit::attention
