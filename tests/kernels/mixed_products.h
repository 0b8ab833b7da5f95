// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Matrix instructions that go on with another one's accumulator: LLVM 22 leaves out the wait states that those need
// (docs/isa.md, "Waiting").
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace wavejit::tests {

// Each pair of them that a kernel has in one block, however far apart; or why its code cannot be read.
std::vector<std::string> mixed_products(std::span<const std::byte> code_object);

}  // namespace wavejit::tests
