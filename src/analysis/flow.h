// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Basic blocks and loops of a kernel.
#pragma once

#include <cstddef>
#include <expected>
#include <string>
#include <vector>

#include "analysis/kernel_code.h"

namespace wavejit::analysis {

struct Block {
  std::size_t begin = 0;  // places in KernelCode::instructions()
  std::size_t end = 0;
  std::vector<std::size_t> successors;
};

// Block 0 is the entry; blocks stand in address order. Indirect branches and calls are refused.
std::expected<std::vector<Block>, std::string> blocks_of(const KernelCode& code);

// A natural loop: everything from which a jump back to `head` can be reached without leaving what `head` dominates.
struct Loop {
  std::size_t head = 0;
  std::vector<std::size_t> blocks;   // sorted, head included
  std::vector<std::size_t> latches;  // those that jump back
};

// One for each head, in address order of the heads.
std::vector<Loop> loops_of(const std::vector<Block>& blocks);

}  // namespace wavejit::analysis
