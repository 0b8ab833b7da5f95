// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A look at a code object without a device: is it a file that a driver of this target could load, with this kernel?
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace wavejit::runtime {

// What is wrong with it, or nothing. Reads untrusted bytes and never outside them: an ELF file for AMD GPUs and
// `target_id`, whose segments lie inside it, with a kernel descriptor of 64 bytes named "<kernel>.kd" in one of them.
std::optional<std::string> code_object_damage(std::span<const std::byte> bytes, std::string_view target_id,
                                              std::string_view kernel);

}  // namespace wavejit::runtime
