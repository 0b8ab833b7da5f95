// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Did the backend move LDS accesses past a barrier? A comparison of the emitted IR with the finished machine code.
//
// Both sides become a flow graph whose nodes hold only what matters: bytes read from LDS, bytes written to LDS, LDS DMA
// instructions, and barriers, in order. Every path from the entry to an exit then spells a word, for instance with
// reads: r r r r B r r B. The check is that every word of the machine code is a word of the IR, for reads, for writes
// and for DMA separately. Two loads merged into one wide load spell the same word; a load that was sunk below a barrier
// does not, and neither does one that was hoisted, dropped or doubled.
//
// A barrier is two letters, arrival and the wait for the others, whether they are one instruction or two.
//
// What this proves: along every path through the machine code, the number of LDS bytes read (written, DMAs issued)
// between two consecutive barriers is one that some path of the IR has, and the whole sequence of these numbers is.
// What it does not prove: which addresses are read (two equal reads that swap places across a barrier go unnoticed),
// that the branch conditions belong to the same path, or anything about waits. LDS accesses in divergent if/else pairs,
// where the machine walks through both sides, are refused rather than understood.
#pragma once

#include <cstdint>
#include <expected>
#include <span>
#include <string>
#include <vector>

namespace wavejit::codegen {

struct LdsEvent {
  enum class Kind : std::uint8_t { read, write, dma, barrier };
  Kind kind = Kind::barrier;
  std::uint32_t amount = 0;    // bytes per lane; 1 for a DMA
  std::uint64_t position = 0;  // offset of the machine instruction in the kernel, for messages
};

struct LdsFlowGraph {
  struct Node {
    std::vector<LdsEvent> events;
    std::vector<std::uint32_t> successors;
    bool exits = false;
  };
  std::vector<Node> nodes;  // the first one is the entry
};

// The error says what crossed which barrier.
std::expected<void, std::string> check_lds_order(const LdsFlowGraph& machine, const LdsFlowGraph& ir);

}  // namespace wavejit::codegen
