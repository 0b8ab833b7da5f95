// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// LLVM's assembler in the test's own process: starting clang takes longer than most tests.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace wavejit::simgpu::test {

// The relocatable object of an assembly file; empty, with the assembler's message in `error`, if it does not assemble.
// `features`: LLVM's, beside the processor's own: "+real-true16".
std::vector<std::uint8_t> assemble_object(std::string_view processor, std::string_view text, std::string& error,
                                          std::string_view features = {});

// Machine code alone: the text section of that object.
std::vector<std::uint8_t> assemble(std::string_view processor, std::string_view text, std::string& error,
                                   std::string_view features = {});

}  // namespace wavejit::simgpu::test
