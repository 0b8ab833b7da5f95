// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// ROCr 7.2 switches interrupts off for every GPU that comes through this library, and its two event threads then poll:
// two cores for as long as a program runs. Events work here, so the switch is set back.
//
// It is one byte of ROCr's .bss without a name. ROCr asks for a GPU's properties, clears the byte, and asks on:
// whatever is the only byte that went from 1 to 0 between two such questions is the switch. None or several: ROCr polls
// as before, and results are the same.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace wavejit::simgpu::thunk {

// Where exactly one byte was 1 and is 0.
std::optional<std::size_t> only_cleared_byte(std::span<const std::uint8_t> before, std::span<const std::uint8_t> now);

// ROCr has been loaded, for the first time or once more.
void forget_interrupts();
// A GPU's properties are being asked for.
void before_interrupts_are_cleared();
// The first questions about it after that.
void set_interrupts_again();

}  // namespace wavejit::simgpu::thunk
