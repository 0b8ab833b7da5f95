// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// LLVM as a translator: one ORC session for the process, a module for every translation.
#pragma once

#include <span>
#include <string>

#include "simgpu/machine/compile/translator.h"

namespace wavejit::simgpu::compile {

// As Table::translate.
Translation* translate(std::span<Block> blocks, const Helpers& helpers, bool narrow, std::string& error);
// As Table::release.
void release(Translation* translation);

}  // namespace wavejit::simgpu::compile
