// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Private memory: bytes of a lane's own that a kernel asks for by name, for state that registers have no room for.
//
//   PrivateMemory memory(kernel, 64);
//   Value* place = memory.place();
//   memory.store(place, 0, four_dwords);
//   …
//   Value* four = memory.load(memory.place(), 0, 4);
//
// It is no spill: what stands in it, and when it moves, is the emitter's. The last gate (inspection.h) lets a kernel
// use so much as it declares and no more, and spill counts stay 0.
//
// Accesses count on the vector memory counter, in order with loads and transfers into LDS. A lane's dwords stand 256
// bytes apart, those of neighbouring lanes side by side.
#pragma once

#include <llvm/IR/Instructions.h>

#include <algorithm>
#include <cstdint>

#include "codegen/language/kernel.h"

namespace wavejit::language {

class PrivateMemory {
 public:
  PrivateMemory(Kernel& kernel, int bytes);

  // The memory's address, opaque to the backend. One a block that uses it: known to be the same, the backend would keep
  // what was stored in registers, which are what there are too few of.
  Value* place() const;
  // `dwords` of a vector, or one for a count of 1; `offset` in bytes, a multiple of 16 for more than two.
  Value* load(Value* place, int offset, int dwords) const;
  void store(Value* place, int offset, Value* dwords) const;

 private:
  Kernel& kernel_;
  llvm::AllocaInst* object_;
};

// The function attribute that says how much; for backends it means nothing.
inline constexpr const char* private_bytes_attribute = "wavejit-private-bytes";

// What the kernel of a module declares; 0 where it has none.
inline int declared_private_bytes(const llvm::Module& module) {
  std::uint64_t bytes = 0;
  for (const llvm::Function& function : module)
    bytes = std::max(bytes, function.getFnAttributeAsParsedInteger(private_bytes_attribute));
  return static_cast<int>(bytes);
}

}  // namespace wavejit::language
