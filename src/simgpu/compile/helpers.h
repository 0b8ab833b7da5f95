#pragma once
// What translated code calls when it needs the interpreter.

#include "simgpu/compile/translator.h"

namespace wavejit::simgpu::compile {

const Helpers& helpers();

}  // namespace wavejit::simgpu::compile
