// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What stands between the engine and the library that holds LLVM (libwavejit_simgpu_compile.so): blocks go in,
// addresses of host code come out. Both sides are built together; the table says so before anything else is believed.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "simgpu/machine/wave/wave.h"

namespace wavejit::simgpu::compile {

// Executes one block for one wave, as the interpreter would: `wave.next`, `wave.budget` and everything else included.
using BlockCode = void (*)(Wave*);

// Translated code has no type before its first byte, where -fsanitize=function would look for one.
[[clang::no_sanitize("function")]] inline void enter(BlockCode block, Wave& wave) { block(&wave); }

// Consecutive instructions that run from the first to the last, or until a fault.
struct Block {
  const Instruction* first = nullptr;
  std::uint32_t count = 0;
  BlockCode code = nullptr;  // the answer
};

// Vector instructions that run together, a group of lanes at a time. The code keeps pointers to it.
struct Run {
  static constexpr unsigned most_masks = 8;
  const Instruction* first = nullptr;
  std::uint32_t count = 0;
  std::uint32_t mask_count = 0;
  std::uint16_t masks[most_masks] = {};  // first of the scalar registers that receive lane masks
  bool narrow_masks = false;             // they are one register, as of waves of 32 lanes
};

// What translated code calls.
struct Helpers {
  // Every instruction of the run, by the interpreter.
  void (*interpret)(Wave* wave, const Run* run);
  // The vector instructions of the run for `lanes` alone, by the interpreter. Scalar registers stay as they are; the
  // lane masks that the run makes come back in `masks`.
  void (*interpret_lanes)(Wave* wave, const Run* run, std::uint64_t lanes, std::uint64_t* masks);
};

struct Translation;

struct Table {
  std::uint64_t shape = 0;  // shape_of_types() of the other side
  // Null, with the reason in `error`, if this host is not one that code is made for or LLVM cannot start. `narrow`: as
  // for a host without AVX-512, for tests.
  Translation* (*translate)(std::span<Block> blocks, const Helpers& helpers, bool narrow, std::string& error) = nullptr;
  // Frees the code.
  void (*release)(Translation* translation) = nullptr;
};
using TableFunction = const Table* (*)();
inline constexpr const char* table_symbol = "wavejit_simgpu_compile_table";

// Differs when the two sides were built from different sources.
constexpr std::uint64_t shape_of_types() {
  return sizeof(Wave) ^ (sizeof(Instruction) << 20) ^ (sizeof(Block) << 40) ^ (sizeof(Run) << 50);
}

}  // namespace wavejit::simgpu::compile
