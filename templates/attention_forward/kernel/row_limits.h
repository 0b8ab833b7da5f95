// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What kernels of some sequences (rows=few, rows=many) read beside the other arguments. Two such kernels share a call
// in which most sequences are short (call/mix.h): each row is then written by exactly one of them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "templates/attention_forward/kernel/paged_arguments.h"

namespace wavejit::attention_forward {

struct RowLimits {
  // The most rows of a short sequence; a long one has more. The records of a split kernel lie [batch][query
  // head][few_rows][slot].
  std::uint32_t few_rows = 1;
  // Read by kernels of long sequences only, whose workgroup (y, z) has query tile z · tiles_of_z + y of all theirs.
  std::uint32_t sequences = 0;
  std::uint32_t tiles_of_z = 1;
  std::uint32_t nothing = 0;
};

// The arguments of such kernels, whether keys stand in pages or not.
struct LimitedArguments {
  PagedArguments paged;
  RowLimits rows;
};

// Where the kernel finds a field of RowLimits.
constexpr std::size_t limit_field(std::size_t offset) { return offsetof(LimitedArguments, rows) + offset; }

static_assert(sizeof(LimitedArguments) == 360);
static_assert(offsetof(LimitedArguments, rows) == sizeof(PagedArguments));

}  // namespace wavejit::attention_forward
