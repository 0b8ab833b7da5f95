// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How an isolated compile's answer travels through a pipe: one frame, both ends on one machine and of one build.
#pragma once

#include <expected>
#include <span>
#include <string>

#include "codegen/compiled.h"

namespace wavejit::codegen::wire {

Bytes encode(const Compiled& compiled);
// The error says what is wrong with the frame: it is short, long, or not one.
std::expected<Compiled, std::string> decode(std::span<const unsigned char> frame);

}  // namespace wavejit::codegen::wire
