// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Machine code for people: a disassembly with its barriers, waits and loops marked.
#pragma once

#include <string>

namespace wavejit::tools {

// `disassembly`: wavejit_kernel_texts, form WAVEJIT_KERNEL_ISA. Its lines stay as they are, with a margin before them;
// lines that begin with "--" are added: what the code between two barriers does, in numbers, and where a loop begins.
std::string kernel_listing(const std::string& disassembly);

}  // namespace wavejit::tools
