// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "families/emit/emit.h"

#include <span>

// One line a family, from WAVEJIT_FAMILIES in CMakeLists.txt.
#define WAVEJIT_FAMILY(name)                           \
  namespace wavejit::name {                            \
  std::span<const families::KernelEmitter> emitters(); \
  }
#include "registered_families.inc"
#undef WAVEJIT_FAMILY

namespace wavejit::families {

EmittedModule emit(const KernelSpec& spec, const targets::Target& target, llvm::LLVMContext& context) {
#define WAVEJIT_FAMILY(name)                            \
  for (const KernelEmitter& emitter : name::emitters()) \
    if (emitter.kernel == spec.kernel()) return emitter.emit(spec, target, context);
#include "registered_families.inc"
#undef WAVEJIT_FAMILY
  return std::unexpected("kernel " + std::string(spec.kernel()) + " has no emission in this library");
}

}  // namespace wavejit::families
