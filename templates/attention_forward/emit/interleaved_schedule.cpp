// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_forward/emit/interleaved_schedule.h"

#include "templates/attention_forward/emit/interleaved_model.h"
#include "templates/attention_forward/kernel/ladders.h"
#include "templates/attention_forward/kernel/parameters.h"

namespace wavejit::attention_forward::interleaved {
namespace {

using schedule::keys;
using schedule::values;

constexpr LookUp look_up{3, LookUp::Way::vector};

// A part that ends is merged before its step's loads set out, half of O at a time: registers are short.
constexpr Schedule usual = {
    .start = {{"fill", {LookUp{0}, LookUp{1}, Fetch{keys(0)}, Overlap{.write = keys(0)}}}},
    // t = −1.
    .prologue = {{"scores",
                  {look_up, Fetch{keys(2), true}, Read{keys(1)}, Overlap{.product = Product::scores},
                   LoadModifiers{1}}},
                 {"output",
                  {Fetch{values(1)}, Modify{1}, Overlap{.softmax = Softmax::begin, .write = keys(2)}, EndPart{1}}}},
    .steady = {{"scores",
                {Merge{Half::first}, Merge{Half::second}, look_up, Fetch{keys(2), true}, Read{keys(1)},
                 Overlap{Product::scores, Softmax::finish, values(0)}, LoadModifiers{1}}},
               {"output",
                {Fetch{values(1)}, Read{values(0)}, Modify{1}, Overlap{Product::output, Softmax::begin, keys(2)},
                 Rescale{}, EndPart{1}}}},
    .drain = {{"weights",
               {Merge{Half::first}, Merge{Half::second}, Overlap{.softmax = Softmax::finish, .write = values(0)}}},
              {"output", {Read{values(0)}, Overlap{.product = Product::output}}}},
};

// The modifiers of a tile stay where they are: V's values have gone to LDS by then, and registers are free.
constexpr Schedule fetch_last = {
    .start = usual.start,
    // Without a product there is nothing to fetch behind: "output" as it was.
    .prologue = {{"scores",
                  {look_up, Read{keys(1)}, Overlap{.product = Product::scores}, Fetch{keys(2), true},
                   LoadModifiers{1}}},
                 {"output",
                  {Fetch{values(1)}, Modify{1}, Overlap{.softmax = Softmax::begin, .write = keys(2)}, EndPart{1}}}},
    .steady = {{"scores",
                {Merge{Half::first}, Merge{Half::second}, look_up, Read{keys(1)},
                 Overlap{Product::scores, Softmax::finish, values(0)}, Fetch{keys(2), true}, LoadModifiers{1}}},
               {"output",
                {Read{values(0)}, Modify{1}, Overlap{Product::output, Softmax::begin, keys(2)}, Fetch{values(1)},
                 Rescale{}, EndPart{1}}}},
    .drain = usual.drain,
};

// The loads of K(t + 2) begin one step later; it is written to LDS in the same step.
constexpr Schedule modify_before = {
    .start = usual.start,
    .prologue = {{"scores", {look_up, Read{keys(1)}, Overlap{.product = Product::scores}, LoadModifiers{1}}},
                 {"output",
                  {Fetch{values(1)}, Modify{1}, Fetch{keys(2), true},
                   Overlap{.softmax = Softmax::begin, .write = keys(2)}, EndPart{1}}}},
    .steady = {{"scores",
                {Merge{Half::first}, Merge{Half::second}, look_up, Read{keys(1)},
                 Overlap{Product::scores, Softmax::finish, values(0)}, LoadModifiers{1}}},
               {"output",
                {Read{values(0)}, Modify{1}, Fetch{keys(2), true}, Fetch{values(1)},
                 Overlap{Product::output, Softmax::begin, keys(2)}, Rescale{}, EndPart{1}}}},
    .drain = usual.drain,
};

constexpr Schedule looked_up_behind_products(Schedule schedule) {
  const auto change = [](auto& rows) {
    for (Step& step : rows) {
      Step changed{.name = step.name, .acts = {}};
      for (const Act& act : step.acts) {
        if (std::holds_alternative<LookUp>(act)) continue;
        changed.acts.add(act);
        const Overlap* overlap = std::get_if<Overlap>(&act);
        if (overlap != nullptr && overlap->softmax == Softmax::begin) changed.acts.add(LookUp{look_up.ahead});
      }
      step = changed;
    }
  };
  change(schedule.prologue);
  change(schedule.steady);
  return schedule;
}
constexpr Schedule usual_late = looked_up_behind_products(usual);
constexpr Schedule fetch_last_late = looked_up_behind_products(fetch_last);
constexpr Schedule modify_before_late = looked_up_behind_products(modify_before);

// Past the third tile a walk only repeats itself. Walks over several chunks are replayed by a test
// (tests/templates/interleaved_schedule_test.cpp): here they took the compiler 20 s.
constexpr int tiles_replayed = 6;
// Each an evaluation of its own: one has a limited number of steps.
template <const Schedule& table>
constexpr bool right = !fault_of(table, tiles_replayed);
static_assert(right<usual>);
static_assert(right<fetch_last>);
static_assert(right<modify_before>);
static_assert(right<usual_late>);
static_assert(right<fetch_last_late>);
static_assert(right<modify_before_late>);

}  // namespace

Order order_of(const ForwardKernel& spec) {
  if (registers_are_short(spec)) return Order::modify_before;
  const Ladder* ladder = find_ladder(Pipeline::interleaved, spec.ladder);
  return ladder != nullptr && ladder->fetch_last ? Order::fetch_last : Order::usual;
}

LookUps look_ups_of(const ForwardKernel& spec) {
  return spec.head_dim_v > 64 ? LookUps::behind_products : LookUps::before_keys;
}

const Schedule& schedule_in(Order order, LookUps look_ups) {
  const bool late = look_ups == LookUps::behind_products;
  switch (order) {
    case Order::fetch_last:
      return late ? fetch_last_late : fetch_last;
    case Order::modify_before:
      return late ? modify_before_late : modify_before;
    case Order::usual:
      break;
  }
  return late ? usual_late : usual;
}

}  // namespace wavejit::attention_forward::interleaved
