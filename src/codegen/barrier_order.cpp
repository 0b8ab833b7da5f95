// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "codegen/barrier_order.h"

#include <algorithm>
#include <deque>
#include <format>
#include <numeric>
#include <set>
#include <utility>

namespace wavejit::codegen {
namespace {

using Kind = LdsEvent::Kind;

// One projection of a flow graph as a finite automaton. A state emits one letter and goes on to one of its successors.
struct Automaton {
  enum class Letter : std::uint8_t { unit, barrier, end, silent };
  struct State {
    Letter letter = Letter::silent;
    std::uint64_t position = 0;
    std::vector<std::uint32_t> successors;
  };
  std::vector<State> states;
  std::uint32_t entry = 0;
};
using Letter = Automaton::Letter;
using StateSet = std::vector<std::uint32_t>;  // sorted

// `unit` divides every amount of this kind; fewer states for the same language.
Automaton project(const LdsFlowGraph& graph, Kind kind, std::uint32_t unit) {
  Automaton automaton;
  std::vector<std::uint32_t> first(graph.nodes.size());
  std::vector<std::uint32_t> last(graph.nodes.size());
  const auto append = [&](Letter letter, std::uint64_t position) {
    automaton.states.push_back({.letter = letter, .position = position, .successors = {}});
    return static_cast<std::uint32_t>(automaton.states.size() - 1);
  };
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    std::uint32_t tail = append(Letter::silent, 0);
    first[n] = tail;
    const auto chain = [&](Letter letter, std::uint64_t position) {
      const std::uint32_t next = append(letter, position);
      automaton.states[tail].successors.push_back(next);
      tail = next;
    };
    for (const LdsEvent& event : graph.nodes[n].events) {
      if (event.kind == Kind::barrier) {
        chain(Letter::barrier, event.position);
      } else if (event.kind == kind) {
        for (std::uint32_t done = 0; done < event.amount; done += unit) chain(Letter::unit, event.position);
      }
    }
    if (graph.nodes[n].exits) {
      const std::uint32_t end = append(Letter::end, 0);
      automaton.states[tail].successors.push_back(end);
    }
    last[n] = tail;
  }
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    for (const std::uint32_t successor : graph.nodes[n].successors) {
      automaton.states[last[n]].successors.push_back(first[successor]);
    }
  }
  return automaton;
}

// For every state: the states that speak next after it, silent ones skipped.
std::vector<StateSet> speaking_successors(const Automaton& automaton) {
  std::vector<StateSet> result(automaton.states.size());
  std::vector<std::uint32_t> seen(automaton.states.size(), 0);
  std::uint32_t round = 0;
  for (std::size_t s = 0; s < automaton.states.size(); ++s) {
    ++round;
    std::vector<std::uint32_t> pending = automaton.states[s].successors;
    while (!pending.empty()) {
      const std::uint32_t state = pending.back();
      pending.pop_back();
      if (std::exchange(seen[state], round) == round) continue;
      if (automaton.states[state].letter == Letter::silent) {
        pending.insert(pending.end(), automaton.states[state].successors.begin(),
                       automaton.states[state].successors.end());
      } else {
        result[s].push_back(state);
      }
    }
    std::ranges::sort(result[s]);
  }
  return result;
}

std::uint32_t common_unit(const LdsFlowGraph& a, const LdsFlowGraph& b, Kind kind) {
  std::uint32_t unit = 0;
  for (const LdsFlowGraph* graph : {&a, &b}) {
    for (const auto& node : graph->nodes) {
      for (const LdsEvent& event : node.events) {
        if (event.kind == kind) unit = std::gcd(unit, event.amount);
      }
    }
  }
  return unit == 0 ? 1 : unit;
}

const char* name(Kind kind) {
  switch (kind) {
    case Kind::read:
      return "LDS reads";
    case Kind::write:
      return "LDS writes";
    case Kind::dma:
      return "LDS DMAs";
    case Kind::barrier:
      break;
  }
  return "barriers";
}

std::string describe(Kind kind, Letter letter, std::uint64_t position) {
  switch (letter) {
    case Letter::unit:
      return std::format(
          "{} crossed a barrier or were added: the one at offset {} has no counterpart in the IR's barrier interval",
          name(kind), position);
    case Letter::barrier:
      return std::format("{} crossed a barrier: fewer stand before the barrier at offset {} than in the IR", name(kind),
                         position);
    default:
      return std::format("{} are missing before the end of the kernel, or a barrier is", name(kind));
  }
}

// Is every word of `machine` a word of `ir`? Walks the machine's states with the set of IR states that the same word
// can have led to.
std::expected<void, std::string> check_inclusion(const Automaton& machine, const Automaton& ir, Kind kind) {
  const std::vector<StateSet> machine_next = speaking_successors(machine);
  const std::vector<StateSet> ir_next = speaking_successors(ir);
  using Pair = std::pair<std::uint32_t, StateSet>;  // after a machine state, the IR is after one of these
  std::set<Pair> seen;
  std::deque<Pair> pending;
  pending.emplace_back(machine.entry, StateSet{ir.entry});
  seen.insert(pending.front());
  while (!pending.empty()) {
    const auto [state, candidates] = std::move(pending.front());
    pending.pop_front();
    for (const std::uint32_t next : machine_next[state]) {
      const Letter letter = machine.states[next].letter;
      StateSet matching;
      for (const std::uint32_t candidate : candidates) {
        for (const std::uint32_t follower : ir_next[candidate]) {
          if (ir.states[follower].letter == letter) matching.push_back(follower);
        }
      }
      if (matching.empty()) return std::unexpected(describe(kind, letter, machine.states[next].position));
      std::ranges::sort(matching);
      const auto duplicates = std::ranges::unique(matching);
      matching.erase(duplicates.begin(), duplicates.end());
      if (letter == Letter::end) continue;
      if (Pair pair(next, std::move(matching)); seen.insert(pair).second) pending.push_back(std::move(pair));
    }
  }
  return {};
}

}  // namespace

std::expected<void, std::string> check_lds_order(const LdsFlowGraph& machine, const LdsFlowGraph& ir) {
  if (machine.nodes.empty() || ir.nodes.empty()) return std::unexpected("a kernel without instructions");
  for (const Kind kind : {Kind::read, Kind::write, Kind::dma}) {
    const std::uint32_t unit = common_unit(machine, ir, kind);
    if (auto included = check_inclusion(project(machine, kind, unit), project(ir, kind, unit), kind); !included) {
      return included;
    }
  }
  return {};
}

}  // namespace wavejit::codegen
