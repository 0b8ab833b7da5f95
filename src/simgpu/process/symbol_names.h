// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
// Symbols as people wrote them: "_ZN6faults5racesIfEEvPT_" is "void faults::races<float>(float*)".

#include <string>

namespace wavejit::simgpu {

// The whole of it; the symbol itself where it is no C++ name.
std::string demangled(const std::string& symbol);
// Without result and parameters, for where the whole was said: "faults::races<float>".
std::string short_name(const std::string& symbol);

}  // namespace wavejit::simgpu
