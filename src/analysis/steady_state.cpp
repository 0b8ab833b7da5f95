// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "analysis/steady_state.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <format>
#include <optional>
#include <tuple>
#include <utility>

#include "analysis/flow.h"
#include "isa/matrix.h"
#include "simgpu/checkers/facts/hazard_rules.h"

namespace wavejit::analysis {
namespace {

using simgpu::Instruction;
using simgpu::clock::port_cycles;

bool is_conditional_branch(const Instruction& instruction) {
  using simgpu::Action;
  const Action action = instruction.record->action;
  return action == Action::branch_scc || action == Action::branch_vcc || action == Action::branch_exec;
}

struct Weight {
  int matrix = 0;
  int aside = 0;  // accesses to what is a lane's own
  int moved = 0;
  int port = 0;
  int instructions = 0;

  // More of it comes first.
  bool likelier_than(const Weight& other) const {
    return std::tuple(matrix, -aside, moved, -port, -instructions) >
           std::tuple(other.matrix, -other.aside, other.moved, -other.port, -other.instructions);
  }
  Weight operator+(const Weight& other) const {
    return {.matrix = matrix + other.matrix,
            .aside = aside + other.aside,
            .moved = moved + other.moved,
            .port = port + other.port,
            .instructions = instructions + other.instructions};
  }
};

// Where tiles come to LDS by DMA, nothing of them is written by LDS instructions: what is, is a lane's own, like
// private memory.
bool fills_by_dma(const KernelCode& code) {
  return std::ranges::any_of(code.instructions(),
                             [](const Instruction& instruction) { return kind_of(instruction) == Kind::lds_dma; });
}

Weight weight_of(const Block& block, const KernelCode& code, bool fills_by_dma, const timing::Timing& timing) {
  Weight weight;
  for (const Instruction& instruction : code.instructions().subspan(block.begin, block.end - block.begin)) {
    const Kind kind = kind_of(instruction);
    weight.matrix += kind == Kind::matrix ? 1 : 0;
    const bool own = instruction.record->space == simgpu::Space::scratch || (fills_by_dma && kind == Kind::lds_write);
    weight.aside += own ? 1 : 0;
    weight.moved +=
        kind == Kind::lds_read || kind == Kind::lds_write || kind == Kind::lds_dma || kind == Kind::load ? 1 : 0;
    weight.port += port_cycles(kind, instruction, timing.issue);
    ++weight.instructions;
  }
  return weight;
}

// The body's blocks so that every edge but those to the head goes forward; nothing if there is a loop inside.
std::optional<std::vector<std::size_t>> forward_order(const Loop& loop, const std::vector<Block>& blocks) {
  std::map<std::size_t, int> incoming;
  for (const std::size_t block : loop.blocks) incoming[block];
  for (const std::size_t block : loop.blocks)
    for (const std::size_t next : blocks[block].successors)
      if (next != loop.head && incoming.contains(next)) ++incoming[next];
  std::vector<std::size_t> order;
  std::vector<std::size_t> ready = {loop.head};
  while (!ready.empty()) {
    const std::size_t block = ready.back();
    ready.pop_back();
    order.push_back(block);
    for (const std::size_t next : blocks[block].successors)
      if (next != loop.head && incoming.contains(next) && --incoming[next] == 0) ready.push_back(next);
  }
  if (order.size() != loop.blocks.size()) return std::nullopt;
  return order;
}

struct Turn {
  Weight weight;
  std::vector<std::size_t> blocks;
};

Turn likeliest_turn(const Loop& loop, const std::vector<std::size_t>& order, const std::vector<Block>& blocks,
                    const std::vector<Weight>& weights) {
  std::map<std::size_t, Turn> best;
  best[loop.head] = {.weight = weights[loop.head], .blocks = {loop.head}};
  for (const std::size_t block : order) {
    for (const std::size_t next : blocks[block].successors) {
      if (next == loop.head || !std::ranges::binary_search(loop.blocks, next)) continue;
      const Weight weight = best[block].weight + weights[next];
      const auto known = best.find(next);
      if (known != best.end() && !weight.likelier_than(known->second.weight)) continue;
      Turn turn = best[block];
      turn.weight = weight;
      turn.blocks.push_back(next);
      best[next] = std::move(turn);
    }
  }
  const Turn* likeliest = nullptr;
  for (const std::size_t latch : loop.latches)
    if (likeliest == nullptr || best[latch].weight.likelier_than(likeliest->weight)) likeliest = &best[latch];
  return *likeliest;
}

}  // namespace

std::expected<SteadyState, std::string> find_steady_state(const KernelCode& code, const timing::Timing& timing) {
  const auto blocks = blocks_of(code);
  if (!blocks) return std::unexpected(blocks.error());
  std::vector<Weight> weights;
  const bool by_dma = fills_by_dma(code);
  for (const Block& block : *blocks) weights.push_back(weight_of(block, code, by_dma, timing));
  std::optional<Turn> chosen;
  for (const Loop& loop : loops_of(*blocks)) {
    const auto order = forward_order(loop, *blocks);
    if (!order) continue;
    Turn turn = likeliest_turn(loop, *order, *blocks, weights);
    if (turn.weight.matrix == 0) continue;
    // Port cycles for each matrix instruction: a ÷ b < c ÷ d without the division.
    if (!chosen || turn.weight.port * chosen->weight.matrix < chosen->weight.port * turn.weight.matrix)
      chosen = std::move(turn);
  }
  if (!chosen) return std::unexpected(code.info().name + ": no loop with matrix instructions and none inside it");

  SteadyState steady;
  for (const std::size_t block : chosen->blocks) {
    for (const Instruction& instruction :
         code.instructions().subspan((*blocks)[block].begin, (*blocks)[block].end - (*blocks)[block].begin)) {
      steady.path.push_back(&instruction);
      const Kind kind = kind_of(instruction);
      ++steady.counts.of[kind];
      const bool is_vector = instruction.instruction_class == simgpu::InstructionClass::vector;
      if (is_vector || kind == Kind::matrix) ++steady.counts.of_mnemonic[instruction.mnemonic];
      steady.counts.port_cycles += port_cycles(kind, instruction, timing.issue);
      steady.branches_passed += is_conditional_branch(instruction) ? 1 : 0;
      if (kind != Kind::matrix) continue;
      steady.counts.matrix_cycles +=
          static_cast<int>(simgpu::checks::matrix_passes(instruction, isa::matrix_pipe(code.target()))) *
          timing.wave.pass.cycles();
    }
  }
  return steady;
}

}  // namespace wavejit::analysis
