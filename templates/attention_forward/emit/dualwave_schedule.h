// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The dual-wave pipeline as data: which wave fetches, reads, multiplies and waits when. dualwave.cpp walks it. To move
// work in time, change a row in dualwave_schedule.cpp, or a ladder (ladders.h) for the work within an Overlap.
// dualwave_model.h checks that the tables are right.
//
// A workgroup is two groups of four waves, each SIMD hosting one wave of each. Work is cut into clusters, every one of
// which ends in a barrier of the whole workgroup; memory and compute clusters alternate, and the second group runs one
// cluster behind the first. So on each SIMD one wave moves data while its partner multiplies.
//
// The walk over T key tiles, counted from the first one walked (tile t lies in LDS buffer t mod 2):
//
//   start      tiles 0 and 1 on their way, tile 0's keys in LDS; the stagger opens
//   prologue   scores of tile 0
//   steady     once for each t = 0 … T − 2: the values of tile t, the scores of tile t + 1
//   drain      the values of tile T − 1
//
// Any T ≥ 1: start, prologue and drain need no other tile than 0.
//
// Q, K and V in 8 bits take half as many registers, so that registers hold the keys and the values of a step together.
// A tile then has two clusters, and LDS three buffers. K(t + 3) and V(t + 2) are fetched where K(t + 1) and V(t) are
// read, into the buffers that were read two clusters before. The next memory cluster waits for them, one memory cluster
// before they are read. Operations of a softmax that do not fit under its products come after the barrier, beside the
// partner's products (Rest).
//
// Why two buffers and these waits are enough, however far a wave runs ahead. Let a wave be in its cluster n. The
// barrier that it passed last was passed by every wave of its own group at the end of its cluster n − 1, and by the
// waves of the other group at the end of n − 2 or of n. So:
//
//   (1) whatever any wave did up to its own cluster n − 2 is complete, if that wave waited for it before its barrier.
//
//   overwriting   A DMA in cluster n goes where the last reads stood in cluster n − 2, and a memory cluster ends with
//                 lgkmcnt(0): by (1) all of them have returned. K: tile t + 1 is read in `keys`, its buffer is filled
//                 with t + 3 two clusters later, in `values`. V: tile t − 1 is read in `values` of t − 1, its buffer is
//                 filled with t + 1 two clusters later, in `keys` of t.
//   reading       What is read in cluster n was waited for in memory cluster n − 2 by every wave that fetched part of
//                 it: by (1) all parts are there. Its Wait says what may still be missing then: V(t), awaited
//                 in `keys` of t, was fetched before K(t + 2) and V(t + 1): 2. K(t + 2), awaited in `values` of t, was
//                 fetched before V(t + 1) and K(t + 3): 2.
//   borders       A Merge apart is two more clusters for every wave, in which no tile is touched: whatever was complete
//                 stays so.
//   walks         What a walk in memory has at a tile is read a tile before the first fetch, or look-up, that needs it,
//                 by a scalar load behind the LDS reads: in front of them it would hold them up, since they are counted
//                 with it.
//   look-ups      Of keys in pages the table's entry of a tile is loaded one tile before the first fetch that needs it,
//                 by a scalar load, for which the memory cluster's lgkmcnt(0) waits.
//   the end       Past the last tile the last one is fetched once more, into a buffer that nobody reads again: counting
//                 fetches then works up to the end, without a branch, at the price of two tiles of K a workgroup. The
//                 drain waits for V(T − 1), fetched before the last K, in `arrival`, two clusters before it is read,
//                 and for that last K too, so that nothing is on its way when the kernel ends.
#pragma once

#include <limits>
#include <string_view>
#include <variant>

#include "templates/attention_forward/emit/schedule.h"
#include "templates/attention_forward/kernel/spec.h"

namespace wavejit::attention_forward::dualwave {

using schedule::EndPart;
using schedule::Fetch;
using schedule::Half;
using schedule::LoadModifiers;
using schedule::LookUp;
using schedule::Merge;
using schedule::Modify;
using schedule::Product;
using schedule::ReadWalk;
using schedule::Rescale;
using schedule::Softmax;
using schedule::Stream;
using schedule::Tile;

// Reads all fragments of a tile from LDS into registers, for the product of the compute cluster that follows.
struct Read {
  Tile tile;
};
// Waits for this wave's LDS reads, and for its fetches except the `fetches_left` youngest. Each fetch is one tile's.
struct Wait {
  static constexpr int all = std::numeric_limits<int>::max();  // no fetch is waited for
  int fetches_left = all;
};
using MemoryAct = std::variant<Merge, LookUp, Fetch, Read, Modify, Wait, ReadWalk>;

// Moves data while the partner wave computes.
struct Memory {
  std::string_view name;
  schedule::List<MemoryAct, 8> acts;
};

// Matrix instructions with a softmax in their shadow, as a ladder orders them.
struct Overlap {
  Product product = Product::none;
  Softmax softmax = Softmax::none;
};
// The operations of a softmax that its ladder did not place.
struct Rest {};
using ComputeAct = std::variant<Overlap, LoadModifiers, Modify, Rescale, EndPart, Rest>;

struct Compute {
  std::string_view name;
  schedule::List<ComputeAct, 4> acts;
  // The wave that computes issues before its partner: its priority is raised before the barrier that opens the cluster,
  // and lowered after the one that closes it. Between the last product of one wave and the first of its partner the
  // matrix pipe is idle, so every instruction there costs time.
  bool raised_priority = false;
  // Acts after the barrier that closes the cluster, while the partner multiplies. They touch no LDS but the lane's own.
  schedule::List<ComputeAct, 2> behind = {};
};

// The work between two barriers.
using Cluster = std::variant<Memory, Compute>;
constexpr std::string_view name_of(const Cluster& cluster) {
  return std::visit([](const auto& row) { return row.name; }, cluster);
}

struct Schedule {
  schedule::List<Cluster, 1> start;
  schedule::List<Cluster, 4> prologue;
  schedule::List<Cluster, 4> steady;
  schedule::List<Cluster, 4> drain;
  // Buffers in LDS of each stream: tile t is in buffer t mod `buffers`.
  int buffers = 2;
};

// Orders of the acts of a memory cluster that kernels use.
enum class Order : std::uint8_t {
  usual,
  fetch_last,               // a ladder asks for it: DMA after the LDS reads
  modify_first,             // scores are modified before values are read, because registers are short
  modify_first_fetch_last,  // both
  bytes,                    // Q, K and V in 8 bits: two clusters a tile over three buffers
};
Order order_of(const ForwardKernel& spec);
const Schedule& schedule_in(Order order);

}  // namespace wavejit::attention_forward::dualwave
