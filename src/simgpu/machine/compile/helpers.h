// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What translated code calls when it needs the interpreter.
#pragma once

#include "simgpu/machine/compile/translator.h"

namespace wavejit::simgpu::compile {

const Helpers& helpers();

}  // namespace wavejit::simgpu::compile
