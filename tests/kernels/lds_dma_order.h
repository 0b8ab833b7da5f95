// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Whether a kernel needs loads into LDS to land in the order in which they were issued (docs/simulated-gpu.md, "LDS DMA
// in any order"), as its machine code says: along every way, taken by a run or not.
#pragma once

#include <cstddef>
#include <regex>
#include <span>
#include <string>
#include <vector>

namespace wavejit::tests {

// The first place where it counts on the order: a barrier (of a single wave: a read of LDS) behind a count that took a
// load into LDS for over, or a use of a register whose load was taken for over by a count of loads into LDS behind it.
// Empty: the kernel has none. Or why the code cannot be read.
std::string counts_on_dma_order(std::span<const std::byte> code_object);

// A kind of kernels in lds_dma_kinds.txt.
struct DmaKind {
  std::string name;
  bool needs_order = false;
  std::regex kernels;  // matches their specs
};
std::vector<DmaKind> dma_kinds();

}  // namespace wavejit::tests
