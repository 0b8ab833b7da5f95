// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "codegen/generator_id.h"

#include <array>

#include "generator_id_generated.h"

namespace wavejit::codegen {

std::span<const FamilyGenerator> family_generators() {
#define WAVEJIT_FAMILY_GENERATOR(name, hash) FamilyGenerator{.family = (name), .id = (hash)},
  static constexpr std::array all = {WAVEJIT_FAMILY_GENERATORS};
#undef WAVEJIT_FAMILY_GENERATOR
  return all;
}

std::string_view generator_id(std::string_view family) {
  for (const FamilyGenerator& one : family_generators())
    if (one.family == family) return one.id;
  return {};
}

std::string_view build_id() { return WAVEJIT_BUILD_ID; }

std::string_view llvm_version() { return WAVEJIT_LLVM_VERSION; }

}  // namespace wavejit::codegen
