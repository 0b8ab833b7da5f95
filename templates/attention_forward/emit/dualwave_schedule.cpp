// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_forward/emit/dualwave_schedule.h"

#include "templates/attention_forward/emit/dualwave_model.h"
#include "templates/attention_forward/kernel/ladders.h"
#include "templates/attention_forward/kernel/parameters.h"

namespace wavejit::attention_forward::dualwave {
namespace {

using schedule::keys;
using schedule::values;

constexpr Schedule usual = {
    // Keys first: tile 0's are awaited while its values and tile 1's keys stay on their way.
    .start = {Memory{"fill",
                     {ReadWalk{2}, LookUp{0}, LookUp{1}, LookUp{2}, Fetch{keys(0)}, Fetch{values(0)},
                      Fetch{keys(1), true}, Wait{2}}}},
    // t = −1.
    .prologue = {Memory{"keys", {ReadWalk{4}, Read{keys(1)}, Wait{Wait::all}}},
                 Compute{"scores", {Overlap{Product::scores}, LoadModifiers{1}}},
                 Memory{"values", {LookUp{4}, Fetch{keys(3), true}, Modify{1}, Wait{1}}},
                 Compute{"output", {Overlap{.softmax = Softmax::begin}, EndPart{1}}, true}},
    // A part that ends is merged where no fragments, scores and bias are in registers, in two clusters of its own: one
    // group's R is on its way while the other multiplies, and they merge in turn. Merged within the clusters that are
    // there, a border takes twice as long: each group waits for its R while the other waits for it (predicted).
    .steady = {Memory{"keys", {Merge{Half::both, true}, ReadWalk{4}, Fetch{values(1)}, Read{keys(1)}, Wait{2}}},
               // The registers of the keys are free then, those of the values not taken yet. The next cluster takes
               // what is loaded here and so waits for the fetches before it, too.
               Compute{"scores", {Overlap{Product::scores, Softmax::finish}, LoadModifiers{1}}},
               Memory{"values", {LookUp{4}, Fetch{keys(3), true}, Read{values(0)}, Modify{1}, Wait{2}}},
               Compute{"output", {Overlap{Product::output, Softmax::begin}}, true, {Rescale{}, EndPart{1}}}},
    .drain = {Memory{"arrival", {Merge{Half::both, true}, Wait{1}}},
              Compute{"weights", {Overlap{.softmax = Softmax::finish}}}, Memory{"values", {Read{values(0)}, Wait{0}}},
              Compute{"output", {Overlap{Product::output}}, true}},
};

constexpr Schedule bytes = {
    .start = {Memory{
        "fill", {LookUp{0}, LookUp{1}, LookUp{2}, Fetch{keys(0)}, Fetch{values(0)}, Fetch{keys(1), true}, Wait{2}}}},
    // t = −1.
    .prologue = {Memory{"tiles", {LookUp{4}, Fetch{keys(3), true}, Fetch{values(2), true}, Read{keys(1)}, Wait{2}}},
                 Compute{"products",
                         {Overlap{Product::scores}, LoadModifiers{1}, Modify{1}, Overlap{.softmax = Softmax::begin}},
                         true,
                         {Rest{}, Rescale{}}}},
    .steady = {Memory{
                   "tiles",
                   {LookUp{4}, Fetch{keys(3), true}, Fetch{values(2), true}, Read{keys(1)}, Read{values(0)}, Wait{2}}},
               Compute{"products",
                       {Overlap{Product::scores, Softmax::finish}, LoadModifiers{1}, Modify{1},
                        Overlap{Product::output, Softmax::begin}},
                       true,
                       {Rest{}, Rescale{}}}},
    .drain = {Memory{"values", {Read{values(0)}, Wait{0}}},
              Compute{"output", {Overlap{.softmax = Softmax::finish}, Overlap{Product::output}}, true}},
    .buffers = 3};

// The same rows with the acts of their memory clusters in another order. The start has one order only.
template <typename... Acts>
constexpr Schedule reordered(Schedule schedule) {
  const auto reorder = [](auto& rows) {
    for (Cluster& cluster : rows) {
      Memory* row = std::get_if<Memory>(&cluster);
      if (row == nullptr) continue;
      Memory sorted{.name = row->name, .acts = {}};
      const auto take = [&]<typename Act>() {
        for (const MemoryAct& act : row->acts)
          if (std::holds_alternative<Act>(act)) sorted.acts.add(act);
      };
      (take.template operator()<Acts>(), ...);
      *row = sorted;
    }
  };
  reorder(schedule.prologue);
  reorder(schedule.steady);
  reorder(schedule.drain);
  return schedule;
}

constexpr Schedule fetch_last = reordered<Merge, ReadWalk, LookUp, Read, Fetch, Modify, Wait>(usual);
constexpr Schedule modify_first = reordered<Merge, ReadWalk, LookUp, Fetch, Modify, Read, Wait>(usual);
constexpr Schedule modify_first_fetch_last = reordered<Merge, ReadWalk, LookUp, Modify, Read, Fetch, Wait>(usual);

// Past the third tile a walk only repeats itself. Walks over several chunks are replayed by a test
// (tests/templates/dualwave_schedule_test.cpp): here they took the compiler 20 s.
constexpr int tiles_replayed = 6;
// Each an evaluation of its own: one has a limited number of steps.
template <const Schedule& table>
constexpr bool right = !fault_of(table, tiles_replayed);
static_assert(right<usual>);
static_assert(right<bytes>);
static_assert(right<fetch_last>);
static_assert(right<modify_first>);
static_assert(right<modify_first_fetch_last>);

}  // namespace

Order order_of(const ForwardKernel& spec) {
  if (spec.narrow_queries) return Order::bytes;
  const Ladder* ladder = find_ladder(Pipeline::dualwave, spec.ladder);
  const bool fetch_last = ladder != nullptr && ladder->fetch_last;
  if (registers_are_short(spec)) return fetch_last ? Order::modify_first_fetch_last : Order::modify_first;
  return fetch_last ? Order::fetch_last : Order::usual;
}

const Schedule& schedule_in(Order order) {
  switch (order) {
    case Order::fetch_last:
      return fetch_last;
    case Order::modify_first:
      return modify_first;
    case Order::modify_first_fetch_last:
      return modify_first_fetch_last;
    case Order::bytes:
      return bytes;
    case Order::usual:
      break;
  }
  return usual;
}

}  // namespace wavejit::attention_forward::dualwave
