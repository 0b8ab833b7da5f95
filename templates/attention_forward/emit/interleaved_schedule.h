// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The interleaved pipeline as data: which products are multiplied with which softmax, LDS writes and loads under them.
// interleaved.cpp walks it; to move work in time, change a row in interleaved_schedule.cpp, or within an Overlap a
// ladder (ladders.h). interleaved_model.h says whether the tables are right.
//
// For targets whose tiles pass through registers (lds_layout.h, swizzled). Every wave overlaps itself: while the matrix
// unit multiplies scores of tile t + 1, the wave finishes the weights of tile t; while it multiplies values of tile t,
// the wave begins the softmax of tile t + 1. K and V stand in LDS once each, and take turns:
//
//   scores   K(t + 1) is read; V(t) goes from registers into LDS, transposed; the loads of K(t + 2) begin
//   output   V(t) is read; K(t + 2) goes into LDS; the loads of V(t + 1) begin
//
// Each step ends with lgkmcnt(0) and a barrier. That is enough: what a step reads was written in the step before (by
// waves that waited for their writes), what it writes was read last in the step before (by waves whose reads have
// returned). A load is a register's business: whoever writes it to LDS waits for it.
//
// The walk over T key tiles:
//
//   start      K(0) in LDS
//   prologue   scores and the beginning of the softmax of tile 0: `steady` with t = −1, without what is of tile −1
//   steady     once for each t = 0 … T − 2
//   drain      t = T − 1: the weights' end, O
//
// Of keys in pages the table's entry of a tile is loaded a step before the first fetch that needs it: K(t + 3) is
// looked up where K(t + 2) sets out, or one step later.
//
// Past the last tile the last one's K is loaded once more (nobody reads it), so that steady has no branch.
#pragma once

#include <optional>
#include <string_view>
#include <variant>

#include "templates/attention_forward/emit/schedule.h"
#include "templates/attention_forward/kernel/spec.h"

namespace wavejit::attention_forward::interleaved {

using schedule::EndPart;
using schedule::Fetch;
using schedule::Half;
using schedule::LoadModifiers;
using schedule::LookUp;
using schedule::Merge;
using schedule::Modify;
using schedule::Product;
using schedule::Rescale;
using schedule::Softmax;
using schedule::Stream;
using schedule::Tile;

// The first fragments of a product's tile are read from LDS. The others are read along the ladder of the Overlap that
// follows, which has this product.
struct Read {
  Tile tile;
};
// Matrix instructions with a softmax and a tile's way from registers into LDS in their shadow, along a ladder.
struct Overlap {
  Product product = Product::none;
  Softmax softmax = Softmax::none;
  std::optional<Tile> write = {};
};

using Act = std::variant<LookUp, Fetch, Read, Modify, Overlap, LoadModifiers, Rescale, EndPart, Merge>;

// What stands between two barriers.
struct Step {
  std::string_view name;
  schedule::List<Act, 9> acts;
};

struct Schedule {
  schedule::List<Step, 1> start;
  schedule::List<Step, 2> prologue;
  schedule::List<Step, 2> steady;
  schedule::List<Step, 2> drain;
};

// Orders that kernels have.
enum class Order : std::uint8_t {
  usual,
  fetch_last,     // a ladder's wish: fetches stand behind the products of their step
  modify_before,  // fetches wait until the scores are modified: registers are short
};
Order order_of(const ForwardKernel& spec);
// Where tiles of keys in pages are looked up. Which of them is faster, the clock of the simulated GPU said.
enum class LookUps : std::uint8_t {
  before_keys,      // by a vector load, where the loads of keys set out
  behind_products,  // by a scalar load, where the LDS reads of a step are done: of 128 dims
};
LookUps look_ups_of(const ForwardKernel& spec);
const Schedule& schedule_in(Order order, LookUps look_ups = LookUps::before_keys);

// Issue slots of 4 cycles (research figures for CDNA3: exp2 16 cycles; a pair of bf16 is rounded in five instructions,
// one of fp16 in three; the other half of a wave is an LDS permute away).
inline constexpr int exp2_slots = 4;
inline constexpr int convert_bf16_slots = 5;
inline constexpr int convert_fp16_slots = 3;
inline constexpr int exchange_slots = 24;

}  // namespace wavejit::attention_forward::interleaved
