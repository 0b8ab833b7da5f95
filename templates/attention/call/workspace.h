// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The part of a call that says how its keys are split, and the memory that it brings for what kernels leave each other
// (struct wavejit_split).
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "families/call/failure.h"
#include "templates/attention/call/tensors.h"

namespace wavejit::attention {

// What the part says by itself: how many runs there may be, and where a workspace may stand.
families::Result<void> check_split(const wavejit_split& split);

// An array of numbers of 32 bits in device memory that a call names. Null: it does not.
struct NamedNumbers {
  const char* name;
  const void* data;
  std::uint64_t count;
};

// Those of which sequences there are and where their pages stand. Of rows of a block table that stand apart the first
// row alone, since what lies between may be anyone's.
std::array<NamedNumbers, 6> numbers_of(const wavejit_sequences& sequences, const wavejit_pages& pages,
                                       std::uint64_t count);

// A workspace of the caller's, if there is one and the call needs `bytes` of it: large enough, and memory that none of
// the call's tensors, arrays and `lists` use.
families::Result<void> check_workspace(const wavejit_split& split, std::uint64_t bytes, std::span<const Named> tensors,
                                       std::span<const NamedNumbers> arrays = {},
                                       std::span<const NamedNumbers> lists = {});

}  // namespace wavejit::attention
