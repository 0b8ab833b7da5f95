// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_forward/emit/dualwave_schedule.h"

#include "templates/attention_forward/call/ladders.h"
#include "templates/attention_forward/emit/dualwave_model.h"

namespace wavejit::attention_forward::dualwave {
namespace {

using schedule::keys;
using schedule::values;

constexpr Schedule usual = {
    // Keys first: tile 0's are awaited while its values and tile 1's keys stay on their way.
    .start = {Memory{"fill", {Fetch{keys(0)}, Fetch{values(0)}, Fetch{keys(1), true}, Wait{2}}}},
    // t = −1.
    .prologue = {Memory{"keys", {Read{keys(1)}, Wait{Wait::all}}},
                 Compute{"scores", {Overlap{Product::scores}, LoadModifiers{1}}},
                 Memory{"values", {Fetch{keys(3), true}, Modify{1}, Wait{1}}},
                 Compute{"output", {Overlap{.softmax = Softmax::begin}}, true}},
    .steady = {Memory{"keys", {Fetch{values(1)}, Read{keys(1)}, Wait{2}}},
               // The registers of the keys are free then, those of the values not taken yet. The next cluster takes
               // what is loaded here and so waits for the fetches before it, too.
               Compute{"scores", {Overlap{Product::scores, Softmax::finish}, LoadModifiers{1}}},
               Memory{"values", {Fetch{keys(3), true}, Read{values(0)}, Modify{1}, Wait{2}}},
               Compute{"output", {Overlap{Product::output, Softmax::begin}}, true, {Rescale{}}}},
    .drain = {Memory{"arrival", {Wait{1}}}, Compute{"weights", {Overlap{.softmax = Softmax::finish}}},
              Memory{"values", {Read{values(0)}, Wait{0}}}, Compute{"output", {Overlap{Product::output}}, true}},
};

// The same rows with the acts of their memory clusters in another order.
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
  reorder(schedule.start);
  reorder(schedule.prologue);
  reorder(schedule.steady);
  reorder(schedule.drain);
  return schedule;
}

constexpr Schedule fetch_last = reordered<Read, Fetch, Modify, Wait>(usual);
constexpr Schedule modify_first = reordered<Fetch, Modify, Read, Wait>(usual);
constexpr Schedule modify_first_fetch_last = reordered<Modify, Read, Fetch, Wait>(usual);

// Past the third tile a walk only repeats itself.
constexpr int tiles_replayed = 6;
static_assert(!fault_of(usual, tiles_replayed));
static_assert(!fault_of(fetch_last, tiles_replayed));
static_assert(!fault_of(modify_first, tiles_replayed));
static_assert(!fault_of(modify_first_fetch_last, tiles_replayed));

}  // namespace

Order order_of(const KernelSpec& spec) {
  const Ladder* ladder = find_ladder(Pipeline::dualwave, spec.ladder);
  const bool fetch_last = ladder != nullptr && ladder->fetch_last;
  // The registers of 128 dims of values and those of a bias are too many at once.
  if (spec.has(Modifier::bias) && spec.head_dim_v > 64)
    return fetch_last ? Order::modify_first_fetch_last : Order::modify_first;
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
    case Order::usual:
      break;
  }
  return usual;
}

}  // namespace wavejit::attention_forward::dualwave
