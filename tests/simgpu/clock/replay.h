// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Thread traces of hardware, replayed: the waves of a trace run through the clock's issue model with the instructions
// that they executed there, and the cycles between two instructions of a wave are compared.
//
// What no issue model can know is taken from the trace, and not compared: what stands behind a wait for memory, LDS or
// a barrier; before vector memory instructions, and before the first vector instruction behind one or behind one of
// LDS, which wait for a queue where other SIMDs stand that nobody traced; at a wave's end, and at its beginning up to
// its first wait; and where a wave runs a line of code (64 bytes) for the first time, which has to be fetched.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace wavejit::simgpu::testing {

// How one trace came out. Sums of cycles between neighbouring instructions of a wave, over all waves.
struct Replayed {
  std::string error;           // of a trace that cannot be read; empty: none
  std::uint64_t compared = 0;  // instructions
  std::uint64_t hardware = 0;
  std::uint64_t clock = 0;
  std::uint64_t waits = 0;         // in hardware, behind waits, barriers, at beginnings and ends: not compared
  std::uint64_t code = 0;          // in hardware, before code from memory: not compared
  std::uint64_t apart = 0;         // sum of the differences of single gaps, either way
  std::vector<std::string> worst;  // the instructions that differ most, for people
  double percent() const { return 100 * ((static_cast<double>(clock) / static_cast<double>(hardware)) - 1); }
};

// What is left out of a comparison though the clock has an answer; waits are always.
enum class LeftOut : std::uint8_t {
  memory,         // before vector memory instructions
  behind_memory,  // before the first vector instruction behind one, or behind one of LDS
  beginning,      // of a wave, up to its first wait
  code,           // before a line of code that the wave runs for the first time
  none,
};

// A trace of this project's text form (traces/README.md). `compared_too`: one of the things that are left out.
Replayed replay(const std::string& path, LeftOut compared_too = LeftOut::none);

// Which of the traces the clock's figures were taken from.
struct Trace {
  std::string_view name;
  std::string_view what;
  bool gave_figures = false;  // or decided rules
  double within = 10;         // percent
};
std::vector<Trace> traces();
// Where it stands.
std::string path_of(const Trace& trace);

}  // namespace wavejit::simgpu::testing
