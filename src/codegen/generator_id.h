// Which generator this build is: part of every cache key, so that kernels of different generators live side by side.
//
// The same tiny library is compiled into libwavejit.so (which forms keys without ever loading the code generator) and
// into libwavejit_codegen.so (which the runtime asks whether it is the one that the key promised).
#pragma once

#include <string_view>

namespace wavejit::codegen {

// Hash over the contents of src/codegen, src/targets and templates, computed when the project is built. Both strings
// are zero-terminated.
std::string_view generator_id();

// "22.1.8": the LLVM that lowers.
std::string_view llvm_version();

}  // namespace wavejit::codegen
