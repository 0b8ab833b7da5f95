// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Faults put by hand into the code of a kernel of whole calls: words changed, a wait or barrier gone, an instruction
// behind the next one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "analysis/kernel_code.h"
#include "called.h"
#include "mutation.h"

namespace wavejit::tests {

class PlantedFaults {
 public:
  // `kernel` must stay. Throws if it has a problem.
  explicit PlantedFaults(CalledKernel& kernel);

  // In address order.
  std::span<const simgpu::Instruction> instructions() const { return code_.instructions(); }
  std::string text(const simgpu::Instruction& instruction) const { return code_.text(instruction); }

  // With the first words of instructions changed.
  Outcome with_words(const std::vector<const simgpu::Instruction*>& instructions,
                     const std::function<std::uint32_t(std::uint32_t)>& change) const;
  Outcome without(const simgpu::Instruction& instruction, Change change) const;
  // With `instruction` moved behind the `count` instructions that follow it. Nothing branches to these.
  Outcome behind_the_next(const simgpu::Instruction& instruction, std::size_t count = 1) const;

 private:
  std::byte* place_of(std::vector<std::byte>& code_object, const simgpu::Instruction& instruction) const;

  CalledKernel& kernel_;
  std::vector<Mutation> mutations_;
  analysis::KernelCode code_;
};

}  // namespace wavejit::tests
