// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The blocks of one function, how often each was entered, and the host code of those that were entered often.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "simgpu/machine/compile/translator.h"
#include "simgpu/machine/decode/function.h"

namespace wavejit::simgpu::compile {

class FunctionCode {
 public:
  explicit FunctionCode(const Function& function);
  ~FunctionCode();
  FunctionCode(const FunctionCode&) = delete;
  FunctionCode& operator=(const FunctionCode&) = delete;

  // One for each instruction.
  struct Place {
    std::atomic<BlockCode> code{nullptr};  // of the block that starts here
    std::atomic<std::uint32_t> entered{0};
    std::uint32_t rest = 0;  // instructions up to the end of its block, itself included
    bool starts_block = false;
  };
  Place& at(const Instruction& instruction) { return places_[static_cast<std::size_t>(&instruction - first_)]; }
  // Translates what was entered often enough, `place`'s block among it. Returns at once if somebody else is at it.
  void translate(const Place& place, std::uint32_t threshold);

 private:
  const Instruction* first_;
  std::vector<Place> places_;
  std::mutex mutex_;
  std::vector<Translation*> translations_;
};

// Made at the first call, kept with the function.
FunctionCode& code_of(const Function& function);

}  // namespace wavejit::simgpu::compile
