// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Ladders: which pieces of a tile's softmax stand between which matrix instructions, as data with names. A pipeline
// that overlaps the two (dualwave, interleaved) walks one of its ladders; "standard" is the one that kernels have
// unless tuned_defaults.inc or a developer says otherwise.
//
// Every ladder is a valid order by construction. It works inside one step of the pipeline's schedule and places the
// operations of a strand among matrix instructions; both keep their own order. What a step reads, writes, fetches and
// waits for is the schedule's (dualwave_schedule.h, interleaved_schedule.h); `fetch_last` chooses one of its tables.
// Results are the same, bit by bit. To add a ladder, add a row to ladders.cpp; tests compile it for every kernel of the
// pipeline and compare bits.
//
// A ladder counts in slots of 4 cycles: an operation takes as many as it issues for (dualwave.cpp,
// interleaved_schedule.h). A few ladders of dualwave count operations instead, whatever each takes.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "templates/attention_forward/kernel/spec.h"

namespace wavejit::attention_forward {

// `matrix` matrix instructions, each followed by operations of `vector` slots.
struct Rung {
  int matrix = 0;
  int vector = 0;
};

// The operations of a softmax that are issued in the shadow of one product of a tile.
struct Shadow {
  int lead = 0;                    // slots of operations before the first matrix instruction
  std::span<const Rung> rungs_64;  // head dim 64
  std::span<const Rung> rungs_128;
  std::span<const Rung> rungs_bytes;  // dualwave, Q, K and V in 8 bits, head dim 128
  // Interleaved: slots of operations before the writes of a tile into LDS begin, which this product also covers.
  int write_after = 0;
};

struct Ladder {
  Pipeline pipeline = Pipeline::generic;
  std::string_view name;
  std::string_view idea;  // how it differs from the standard ladder, for people
  Shadow finish;          // under K·Qᵀ: the end of the softmax of the tile before
  Shadow begin;           // under Vᵀ·Pᵀ: the beginning of the next tile's softmax
  int weighed_bytes = 0;  // as `weighed`, for weights in 8 bits
  int weighed = 0;        // how many of a lane's 32 weights `begin` computes; `finish` computes the others
  int read_ahead = 0;     // interleaved: fragments read from LDS ahead of the matrix instructions that take them
  // Dualwave: a slot is four cycles. Six fit beside a matrix instruction of 32 cycles, and exp2 takes two. Else a slot
  // is an operation.
  bool by_cycles = false;
  // Fetches stand behind their step's LDS reads (dualwave) or products (interleaved), not before them.
  bool fetch_last = false;
};

inline constexpr std::string_view standard_ladder = "standard";
// The ladders of a pipeline, the standard one first; generic has none.
std::span<const Ladder> ladders(Pipeline pipeline);
// Null for a name that is none. "": standard.
const Ladder* find_ladder(Pipeline pipeline, std::string_view name);
// "standard, early, late"
std::string ladder_names(Pipeline pipeline);

// Matrix instructions of one product of a tile, for one wave.
int matrix_instructions(Pipeline pipeline, int head_dim);
// The rungs of a product of `instructions` matrix instructions: those of head dim 64 or 128; for other head dims those
// of 128, spread over their instructions. `more`: slots that a softmax has beyond those that the ladder knows, spread
// over all instructions.
std::vector<Rung> rungs_of(const Shadow& shadow, Pipeline pipeline, int instructions, int more = 0);
// Empty, or why no kernel can be made with it.
std::string fault_of(const Ladder& ladder);

}  // namespace wavejit::attention_forward
