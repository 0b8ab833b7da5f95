// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// libwavejit_simgpu_compile.so, opened when the compiled engine first has something to translate: who interprets never
// loads a second part of LLVM.
#pragma once

#include <string>

#include "simgpu/machine/compile/translator.h"

namespace wavejit::simgpu::compile {

// Null when there is none, or none that works; said once on stderr, and everything is interpreted.
const Table* library();
// The library answered with an error: says so once, and library() is null from then on.
void give_up(const std::string& reason);

}  // namespace wavejit::simgpu::compile
