// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// One thing found wrong, as people and as programs read it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "simgpu/machine/decode/source_lines.h"
#include "simgpu/machine/instruction/instruction.h"
#include "simgpu/process/check.h"

namespace wavejit::simgpu {

struct Wave;

// An instruction that ran, for reports: the one that did it, or the one where the value comes from.
struct Site {
  const Instruction* instruction = nullptr;
  int wave = -1;
  // Where it is another one. With the initialiser, {.instruction = …} warns of no missing field.
  std::optional<std::array<std::uint32_t, 3>> workgroup = {};  // NOLINT(readability-redundant-member-init)
};

struct Finding {
  std::string check;  // name of the check; "fault" for what ends a launch at once
  std::string kernel;
  std::string function;
  std::string instruction;               // as the assembler writes it
  std::uint64_t offset = 0;              // in the function
  std::optional<SourceLine> written_at;  // what it was compiled from, where the code object says
  std::array<std::uint32_t, 3> workgroup{};
  std::uint64_t linear_workgroup = 0;
  int wave = -1;
  int lane = -1;                   // −1: the whole wave
  std::string text;                // what is wrong
  std::string source_instruction;  // empty: none is known
  std::uint64_t source_offset = 0;
  std::optional<SourceLine> source_written_at;
  int source_wave = -1;
  std::optional<std::array<std::uint32_t, 3>> source_workgroup;
  const Instruction* place = nullptr;  // for telling findings apart while the launch runs
  const Instruction* source = nullptr;

  // "kernel k: 'v_add…' at offset 0x40 of k (k.hip:12) [02…], workgroup (0, 0, 0), wave 3, lane 7: waits: …"
  std::string line() const;
  // One JSON object without line breaks (docs/simulated-gpu.md lists the fields).
  std::string json() const;
  std::string encoding;
};

// Everything but check, text and source, from where the wave stands.
Finding finding_at(const Wave& wave, const Instruction& instruction, int lane);

// "'buffer_load_dwordx4 …' at offset 0x88 of k (k.hip:9)"
std::string name_instruction(const Instruction& instruction);

// False when the launch has this finding already: its words need not be put together.
bool worth_reporting(const Wave& wave, const Instruction& instruction, Check check,
                     const Instruction* source = nullptr);

// `source` is named in the JSON form; `text` should name it too where it helps.
Finding finding_of(const Wave& wave, const Instruction& instruction, Check check, int lane, std::string text,
                   Site source = {});
// Hands a finding to the launch that the wave belongs to. The launch goes on; it ends with an error when it is over.
void report(Wave& wave, const Instruction& instruction, Check check, int lane, std::string text, Site source = {});

}  // namespace wavejit::simgpu
