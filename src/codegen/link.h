// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A relocatable object to a loadable code object with LLD, without touching the disk.
#pragma once

#include <expected>
#include <span>

#include "codegen/compiled.h"

namespace wavejit::codegen {

// Thread safe: LLD keeps its state in globals, so links wait for each other (one takes 1 to 2.5 ms).
std::expected<Bytes, Failure> link_code_object(std::span<const char> object);

}  // namespace wavejit::codegen
