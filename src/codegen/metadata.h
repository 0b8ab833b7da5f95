// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A code object's own description of itself: ELF header, kernel symbol, AMDGPU metadata note.
#pragma once

#include <cstdint>
#include <expected>
#include <span>
#include <string>

#include "codegen/compiled.h"

namespace wavejit::codegen {

struct KernelImage {
  std::string target_id;      // "amdgcn-amd-amdhsa--gfx942", from the metadata
  std::uint32_t machine = 0;  // EF_AMDGPU_MACH value of the ELF header
  std::uint64_t address = 0;  // of the first instruction
  std::span<const unsigned char> code;
  Facts facts = {};  // metadata's part; instruction counts are the disassembly's
};

// Reads a code object with exactly one kernel. The result refers to `code_object`. Damaged input is a Failure.
std::expected<KernelImage, Failure> read_kernel_image(std::span<const unsigned char> code_object);

}  // namespace wavejit::codegen
