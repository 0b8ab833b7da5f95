// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Random straight-line programs of instructions that the compiled engine translates, and of some that it does not.
#pragma once

#include <cstdint>
#include <random>
#include <string>

#include "simgpu/machine/wave/wave.h"

namespace wavejit::simgpu::test {

enum class Mixture : std::uint8_t {
  everything,  // bits of any kind meet float32 arithmetic: NaN is common
  numbers,     // float32 arithmetic that mostly stays with numbers
};

// What a program may be made of.
struct Dialect {
  bool gfx950 = false;
  bool rdna4 = false;
  unsigned lanes = lane_places;
};

// `count` instructions, one a line. Registers v0…v23, s0…s23 and VCC; few enough that values meet again.
std::string random_program(std::mt19937_64& random, unsigned count, const Dialect& dialect, Mixture mixture);

// Fills registers with what arithmetic finds hard: zeros of both signs, denormals, infinities, numbers near each
// other, and, if asked for, NaN of both kinds in some lanes.
void fill_with_hard_values(Wave& wave, std::mt19937_64& random, bool with_nan);
// The same without infinities, NaN and numbers so large that they lead there.
void fill_with_numbers(Wave& wave, std::mt19937_64& random);

}  // namespace wavejit::simgpu::test
