// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a code object's own notes say of a kernel, held against what its cache entry says: a launch goes by the entry.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include "cache/entry.h"

namespace wavejit::runtime {

// "its notes say 64 threads, the entry 256", or nothing: bytes of arguments, bytes of LDS and threads are the same, or
// there are no notes that can be read, which is the driver's to judge. Reads untrusted bytes and never outside them.
std::optional<std::string> notes_differ(std::span<const std::byte> code_object, const cache::KernelFacts& kernel);

}  // namespace wavejit::runtime
