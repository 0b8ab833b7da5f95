// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which keys a row sees, from RowArguments: both kernels ask the same, so that what one leaves unwritten the other does
// not read.
#pragma once

#include "codegen/language/kernel.h"
#include "templates/sparse_indexer/kernel/spec.h"

namespace wavejit::sparse_indexer {

// All uniform; 0 ≤ begin ≤ end ≤ key_length of the launch.
struct RowKeys {
  language::Value* begin;
  language::Value* end;
};
// Row `row` of sequence `batch`, which exist. RowArguments stand at `rows` of the kernel's arguments.
RowKeys keys_of_row(language::Kernel& kernel, std::size_t rows, language::Value* batch, language::Value* row);

// f32 −∞, as bits.
inline constexpr std::uint32_t minus_infinity_bits = 0xFF800000;

// An offset beyond every buffer: nothing is read or written there.
inline constexpr std::uint32_t nowhere = 0xFFFFFF00;

// An address that is moved, i64: base + index · stride.
language::Value* moved(language::Kernel& kernel, language::Value* base, language::Value* index,
                       language::Value* stride);

}  // namespace wavejit::sparse_indexer
