// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which generator this build is: part of every cache key, so that kernels of different generators live side by side.
//
// The same tiny library is compiled into libwavejit.so (which forms keys without ever loading the code generator) and
// into libwavejit_codegen.so (which the runtime asks whether it is the one that the key promised).
#pragma once

#include <span>
#include <string_view>

namespace wavejit::codegen {

// All strings are zero-terminated.
struct FamilyGenerator {
  std::string_view family;
  std::string_view id;
};

// One of each family, so that a new family, or a change to one, leaves the kernels of the others where they are: a hash
// over src/codegen, src/targets and what of the family's folder changes code, computed when the project is built.
std::span<const FamilyGenerator> family_generators();
// Empty for a family that is not registered.
std::string_view generator_id(std::string_view family);

// An id over all of them: whether two programs come from one build.
std::string_view build_id();

// "22.1.8": the LLVM that lowers.
std::string_view llvm_version();

}  // namespace wavejit::codegen
