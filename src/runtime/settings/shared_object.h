// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Libraries that are opened when they are needed: the HIP runtime, the simulated GPU, the code generator.
#pragma once

#include <expected>
#include <string>
#include <string_view>

namespace wavejit::runtime {

// The folder of the binary that holds this code (libwavejit.so, or a test linked statically); empty if unknown.
std::string own_directory();

// Opens `name` from our own folder, else wherever the loader looks for it (RUNPATH $ORIGIN, LD_LIBRARY_PATH). Never
// closed: these libraries start threads and hand out pointers. The error is the loader's.
std::expected<void*, std::string> open_beside(const std::string& name);
// Where the loader looks only; one that the process already has is preferred when `resident_only`.
std::expected<void*, std::string> open_by_name(const std::string& name, bool resident_only);

void* symbol_of(void* library, const char* name);
// Null if the library has no such function.
template <typename Function>
Function function_of(void* library, const char* name) {
  return reinterpret_cast<Function>(symbol_of(library, name));
}

}  // namespace wavejit::runtime
