// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_forward/emit/interleaved_schedule.h"

#include "templates/attention_forward/call/ladders.h"
#include "templates/attention_forward/emit/interleaved_model.h"

namespace wavejit::attention_forward::interleaved {
namespace {

using schedule::keys;
using schedule::values;

constexpr Schedule usual = {
    .start = {{"fill", {Fetch{keys(0)}, Overlap{.write = keys(0)}}}},
    // t = −1.
    .prologue = {{"scores",
                  {Fetch{keys(2), true}, Read{keys(1)}, Overlap{.product = Product::scores}, LoadModifiers{1}}},
                 {"output", {Fetch{values(1)}, Modify{1}, Overlap{.softmax = Softmax::begin, .write = keys(2)}}}},
    .steady = {{"scores",
                {Fetch{keys(2), true}, Read{keys(1)}, Overlap{Product::scores, Softmax::finish, values(0)},
                 LoadModifiers{1}}},
               {"output",
                {Fetch{values(1)}, Read{values(0)}, Modify{1}, Overlap{Product::output, Softmax::begin, keys(2)},
                 Rescale{}}}},
    .drain = {{"weights", {Overlap{.softmax = Softmax::finish, .write = values(0)}}},
              {"output", {Read{values(0)}, Overlap{.product = Product::output}}}},
};

// The modifiers of a tile stay where they are: V's values have gone to LDS by then, and registers are free.
constexpr Schedule fetch_last = {
    .start = usual.start,
    // Without a product there is nothing to fetch behind: "output" as it was.
    .prologue = {{"scores",
                  {Read{keys(1)}, Overlap{.product = Product::scores}, Fetch{keys(2), true}, LoadModifiers{1}}},
                 {"output", {Fetch{values(1)}, Modify{1}, Overlap{.softmax = Softmax::begin, .write = keys(2)}}}},
    .steady = {{"scores",
                {Read{keys(1)}, Overlap{Product::scores, Softmax::finish, values(0)}, Fetch{keys(2), true},
                 LoadModifiers{1}}},
               {"output",
                {Read{values(0)}, Modify{1}, Overlap{Product::output, Softmax::begin, keys(2)}, Fetch{values(1)},
                 Rescale{}}}},
    .drain = usual.drain,
};

// The loads of K(t + 2) begin one step later; it is written to LDS in the same step.
constexpr Schedule modify_before = {
    .start = usual.start,
    .prologue = {{"scores", {Read{keys(1)}, Overlap{.product = Product::scores}, LoadModifiers{1}}},
                 {"output",
                  {Fetch{values(1)}, Modify{1}, Fetch{keys(2), true},
                   Overlap{.softmax = Softmax::begin, .write = keys(2)}}}},
    .steady = {{"scores", {Read{keys(1)}, Overlap{Product::scores, Softmax::finish, values(0)}, LoadModifiers{1}}},
               {"output",
                {Read{values(0)}, Modify{1}, Fetch{keys(2), true}, Fetch{values(1)},
                 Overlap{Product::output, Softmax::begin, keys(2)}, Rescale{}}}},
    .drain = usual.drain,
};

// Past the third tile a walk only repeats itself.
constexpr int tiles_replayed = 6;
static_assert(!fault_of(usual, tiles_replayed));
static_assert(!fault_of(fetch_last, tiles_replayed));
static_assert(!fault_of(modify_before, tiles_replayed));

}  // namespace

Order order_of(const KernelSpec& spec) {
  // A bias and the next tile are too many registers at once beside 128 dims.
  if (spec.has(Modifier::bias) && spec.head_dim_v > 64) return Order::modify_before;
  const Ladder* ladder = find_ladder(Pipeline::interleaved, spec.ladder);
  return ladder != nullptr && ladder->fetch_last ? Order::fetch_last : Order::usual;
}

const Schedule& schedule_in(Order order) {
  switch (order) {
    case Order::fetch_last:
      return fetch_last;
    case Order::modify_before:
      return modify_before;
    case Order::usual:
      break;
  }
  return usual;
}

}  // namespace wavejit::attention_forward::interleaved
