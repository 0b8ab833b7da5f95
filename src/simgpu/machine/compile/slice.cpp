// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "simgpu/machine/compile/slice.h"

#include <algorithm>

#include "simgpu/machine/compile/function_code.h"

namespace wavejit::simgpu::compile {

void run_slice(Wave& wave, std::int64_t instructions, std::uint32_t threshold) {
  wave.budget = instructions;
  wave.executed += static_cast<std::uint64_t>(instructions);
  const Function* function = nullptr;
  FunctionCode* code = nullptr;
  while (wave.budget > 0) {
    if (wave.next->function != function) {
      function = wave.next->function;
      code = &code_of(*function);
    }
    FunctionCode::Place& place = code->at(*wave.next);
    if (place.starts_block && place.rest <= wave.budget) {
      BlockCode block = place.code.load(std::memory_order_acquire);
      if (block == nullptr && place.entered.fetch_add(1, std::memory_order_relaxed) == threshold) {
        code->translate(place, threshold);
        block = place.code.load(std::memory_order_acquire);
      }
      if (block != nullptr) {
        enter(block, wave);
        continue;
      }
    }
    for (std::int64_t rest = place.rest; rest > 0 && wave.budget > 0; --rest) {
      --wave.budget;
      const Instruction& instruction = *wave.next;
      wave.next = &instruction + 1;
      instruction.execute(wave, instruction);
    }
  }
}

}  // namespace wavejit::simgpu::compile
