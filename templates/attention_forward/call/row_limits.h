// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What kernels of some sequences (rows=some) read beside the other arguments: those with fewer or more query rows leave
// at once. Two such kernels share a call in which most sequences are short (problem/mix.h), each row of which is then
// written by exactly one of them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "templates/attention_forward/call/page_arguments.h"

namespace wavejit::attention_forward {

struct RowLimits {
  std::uint32_t least_rows = 1;
  // Records of a split kernel stand [batch][query head][so many rows][slot].
  std::uint32_t most_rows = 0x7FFFFFFF;
};

// Of such kernels, whether keys stand in pages or not.
struct LimitedArguments {
  PagedArguments paged;
  RowLimits rows;
};

// Of a field of RowLimits, where the kernel finds it.
constexpr std::size_t limit_field(std::size_t offset) { return offsetof(LimitedArguments, rows) + offset; }

static_assert(sizeof(LimitedArguments) == 352);
static_assert(offsetof(LimitedArguments, rows) == sizeof(PagedArguments));

}  // namespace wavejit::attention_forward
