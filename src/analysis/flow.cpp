// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "analysis/flow.h"

#include <algorithm>
#include <format>
#include <map>
#include <set>

namespace wavejit::analysis {
namespace {

using simgpu::Action;
using simgpu::Instruction;

bool jumps_always(const Instruction& instruction) { return instruction.record->action == Action::branch; }
bool jumps(const Instruction& instruction) {
  const Action action = instruction.record->action;
  return jumps_always(instruction) || action == Action::branch_scc || action == Action::branch_vcc ||
         action == Action::branch_exec;
}
bool ends(const Instruction& instruction) { return instruction.record->action == Action::end; }
bool is_indirect(const Instruction& instruction) {
  return instruction.record->action == Action::jump || instruction.record->action == Action::call;
}

// dominators[b]: every block that all ways from the entry to b pass. Small graphs: plain iteration over sets.
std::vector<std::set<std::size_t>> dominators_of(const std::vector<Block>& blocks) {
  std::vector<std::vector<std::size_t>> predecessors(blocks.size());
  for (std::size_t b = 0; b < blocks.size(); ++b)
    for (const std::size_t next : blocks[b].successors) predecessors[next].push_back(b);
  std::set<std::size_t> all;
  for (std::size_t b = 0; b < blocks.size(); ++b) all.insert(b);
  std::vector<std::set<std::size_t>> dominators(blocks.size(), all);
  dominators[0] = {0};
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t b = 1; b < blocks.size(); ++b) {
      std::set<std::size_t> common = all;
      for (const std::size_t before : predecessors[b])
        std::erase_if(common, [&](std::size_t block) { return !dominators[before].contains(block); });
      common.insert(b);
      if (common != dominators[b]) {
        dominators[b] = std::move(common);
        changed = true;
      }
    }
  }
  return dominators;
}

}  // namespace

std::expected<std::vector<Block>, std::string> blocks_of(const KernelCode& code) {
  const auto instructions = code.instructions();
  std::map<std::size_t, std::size_t> block_at = {{0, 0}};  // first instruction → block
  const auto place_of = [&](const Instruction* instruction) {
    return static_cast<std::size_t>(instruction - instructions.data());
  };
  for (std::size_t i = 0; i < instructions.size(); ++i) {
    const Instruction& instruction = instructions[i];
    if (is_indirect(instruction) || (jumps(instruction) && instruction.target == nullptr))
      return std::unexpected(std::format("{} at offset {:#x}: where it leads is not in the code", instruction.mnemonic,
                                         instruction.offset_in_function));
    if (jumps(instruction)) block_at[place_of(instruction.target)] = 0;
    if ((jumps(instruction) || ends(instruction)) && i + 1 < instructions.size()) block_at[i + 1] = 0;
  }
  std::vector<Block> blocks;
  for (auto& [first, block] : block_at) {
    block = blocks.size();
    if (!blocks.empty()) blocks.back().end = first;
    blocks.push_back({.begin = first, .end = instructions.size(), .successors = {}});
  }
  for (Block& block : blocks) {
    const Instruction& last = instructions[block.end - 1];
    if (jumps(last)) block.successors.push_back(block_at.at(place_of(last.target)));
    if (!jumps_always(last) && !ends(last) && block.end < instructions.size())
      block.successors.push_back(block_at.at(block.end));
  }
  return blocks;
}

std::vector<Loop> loops_of(const std::vector<Block>& blocks) {
  const auto dominators = dominators_of(blocks);
  std::vector<std::vector<std::size_t>> predecessors(blocks.size());
  for (std::size_t b = 0; b < blocks.size(); ++b)
    for (const std::size_t next : blocks[b].successors) predecessors[next].push_back(b);
  std::vector<Loop> loops;
  for (std::size_t head = 0; head < blocks.size(); ++head) {
    Loop loop{.head = head, .blocks = {}, .latches = {}};
    for (const std::size_t before : predecessors[head])
      if (dominators[before].contains(head)) loop.latches.push_back(before);
    if (loop.latches.empty()) continue;
    std::set<std::size_t> inside = {head};
    std::vector<std::size_t> pending = loop.latches;
    while (!pending.empty()) {
      const std::size_t block = pending.back();
      pending.pop_back();
      if (!inside.insert(block).second) continue;
      pending.insert(pending.end(), predecessors[block].begin(), predecessors[block].end());
    }
    loop.blocks.assign(inside.begin(), inside.end());
    loops.push_back(std::move(loop));
  }
  return loops;
}

}  // namespace wavejit::analysis
