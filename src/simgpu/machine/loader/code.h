// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Code that waves run, as launches see it: the instruction at an address. Code objects that the HIP front loaded are
// one kind (loaded_code.h), code that AMD's runtime put into memory is the other (resident_code.h).
#pragma once

#include <cstdint>

namespace wavejit::simgpu {

struct Instruction;

class Code {
 public:
  Code() = default;
  virtual ~Code() = default;
  Code(const Code&) = delete;
  Code& operator=(const Code&) = delete;

  // The instruction at a device address, decoding its function at the first visit. Null outside executable code.
  virtual const Instruction* instruction_at(std::uint64_t address) = 0;
  // Where it begins in device memory.
  virtual std::uint64_t base() const = 0;
};

}  // namespace wavejit::simgpu
