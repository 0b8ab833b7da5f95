// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a kernel of block lists reads beside its other arguments: walks, which attention_block_lists has made of the
// lists of a call (block_lists/walks.h).
#pragma once

#include <cstddef>
#include <cstdint>

#include "templates/attention_forward/kernel/row_limits.h"

namespace wavejit::attention_forward {

struct ListArguments {
  std::uint64_t headers = 0;          // [batch][heads][units]
  std::uint64_t entries = 0;          // where the first walk begins
  std::uint32_t heads = 1;            // of the lists
  std::uint32_t head_multiplier = 0;  // query head → head of the lists, a multiplier as emit/integers.h divides by
  std::uint32_t units = 1;            // of a head: rows / unit rows
  std::uint32_t unit_shift = 6;       // log2 of a unit's rows
  std::uint64_t order = 0;            // [batch][heads][units]: which unit has a place
};

// Where they stand, whatever else the kernel has.
struct ListedArguments {
  LimitedArguments all;
  ListArguments lists;
};

constexpr std::size_t list_field(std::size_t offset) { return offsetof(ListedArguments, lists) + offset; }

static_assert(sizeof(ListedArguments) == 400);
static_assert(offsetof(ListedArguments, lists) == sizeof(LimitedArguments));

}  // namespace wavejit::attention_forward
