// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Both kernels' pipelines as data: the order of a tile's products, and when the vector unit's work between them may
// begin. weave.cpp walks it; to move work in time, change a row in schedule.cpp, or how much stands behind a matrix
// instruction, a ladder (kernel/ladders.h). schedule_model.h says whether the tables are right.
//
// A tile is walked in blocks of 32 rows (dK/dV kernel) or keys (dQ kernel), or of 16 where matrix instructions have as
// many; a wave owns one or two blocks of as many keys or rows, and takes all of them in every act. Matrix instructions
// come in the order of the table. Vector work is a queue: an act puts a block's on it, and pieces of it are written
// behind the matrix instructions that follow, whatever they multiply. A product that needs the end of a piece waits
// until the queue is through with it.
//
//   scores(b)       S of block b
//   weigh(b)        P = exp2(S · c + b), and P rounded where a product takes it
//   gradients(b)    dP − delta
//   give(b)         P, not rounded, to the wave that shares the keys; take(b) by it, a tile later
//   round(b)        P of the tile before, which was given then
//   differentiate   dS = P · (dP − delta), rounded
//   values(b)       dV += dOᵀ · P
//   keys(b)         dK += Qᵀ · dS
//   queries(b)      dQ += Kᵀ · dS
#pragma once

#include <string_view>
#include <variant>

#include "templates/attention/emit/schedule.h"
#include "templates/attention_backward/kernel/spec.h"

namespace wavejit::attention_backward::schedule {

using attention::schedule::Fault;
using attention::schedule::List;

enum class Product : std::uint8_t { scores, gradients, values, keys, queries };
inline constexpr int products = 5;
enum class Vector : std::uint8_t { weigh, differentiate, give, take, round };

// Matrix instructions, with queued operations in their shadow. `before`, here and below: the operands are those of the
// tile before.
struct Multiply {
  Product product = Product::scores;
  int block = 0;
  bool before = false;
};
// Raw scores → modified, hidden keys −∞. It branches, so nothing stands beside it.
struct Modify {
  int block = 0;
};
// A block's vector work goes to the queue's end.
struct Queue {
  Vector vector = Vector::weigh;
  int block = 0;
  bool before = false;
};

using Act = std::variant<Multiply, Modify, Queue>;
struct Schedule {
  List<Act, 14> acts;
};

// How a tile's products come: as weights are best hidden, or first all that read rows and then all that read columns,
// for LDS that has an image of each and one buffer (row_tiles.h); and those of rows for one block behind the other,
// where registers are few.
enum class Order : std::uint8_t { hiding, rows_first, rows_by_blocks };
constexpr bool reads_rows(Product product) { return product == Product::scores || product == Product::gradients; }

// Tiles of one or two blocks; by blocks always two. Of one alone of the sums otherwise: one block.
const Schedule& key_schedule(int blocks, Order order, Sums sums = Sums::both);
// The schedule of waves that share keys, for one of the sums. Two blocks; or where rows come first, one, and the
// columns are those of the tile before, so that a tile's vector work has its time.
const Schedule& shared_schedule(Order order, Sums sums);
const Schedule& query_schedule(int blocks, Order order);

// The order of a target whose tiles have `buffers` buffers.
inline Order order_of(const targets::Target& target, int buffers) {
  if (buffers > 1) return Order::hiding;
  return has_registers_of_accumulation(target) ? Order::rows_first : Order::rows_by_blocks;
}

}  // namespace wavejit::attention_backward::schedule
