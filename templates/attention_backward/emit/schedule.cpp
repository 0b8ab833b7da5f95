// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_backward/emit/schedule.h"

#include "templates/attention_backward/emit/schedule_model.h"

namespace wavejit::attention_backward::schedule {
namespace {

// Weights are made under dP, dS under dV; dK and the next block's scores leave the vector unit time to catch up.
constexpr Schedule of_keys(int blocks) {
  Schedule schedule;
  for (int block = 0; block < blocks; ++block) {
    schedule.acts.add(Multiply{Product::scores, block});
    schedule.acts.add(Modify{block});
    schedule.acts.add(Queue{Vector::weigh, block});
    schedule.acts.add(Multiply{Product::gradients, block});
    schedule.acts.add(Queue{Vector::differentiate, block});
    schedule.acts.add(Multiply{Product::values, block});
    schedule.acts.add(Multiply{Product::keys, block});
  }
  return schedule;
}

// No product stands between dS and dQ of a block, so both blocks' dQ come last: dS of the first is made under what is
// done for the second, dS of the second under dQ of the first.
constexpr Schedule of_queries(int blocks) {
  Schedule schedule;
  for (int block = 0; block < blocks; ++block) {
    schedule.acts.add(Multiply{Product::scores, block});
    schedule.acts.add(Modify{block});
    schedule.acts.add(Queue{Vector::weigh, block});
    schedule.acts.add(Multiply{Product::gradients, block});
    schedule.acts.add(Queue{Vector::differentiate, block});
  }
  for (int block = 0; block < blocks; ++block) schedule.acts.add(Multiply{Product::queries, block});
  return schedule;
}

constexpr Schedule keys_1 = of_keys(1);
constexpr Schedule keys_2 = of_keys(2);
constexpr Schedule queries_1 = of_queries(1);
constexpr Schedule queries_2 = of_queries(2);

// With operands and sums of 64 keys and 128 dims in 384 registers there is room for 2.5 · 2 accumulators and no more.
constexpr bool holds(const Schedule& schedule, Kernel kernel, int blocks, double most) {
  Model model(kernel, blocks);
  return !model.run(schedule) && model.most_alive() <= most;
}
static_assert(holds(keys_1, Kernel::keys, 1, 2.5) && holds(keys_2, Kernel::keys, 2, 2.5));
static_assert(holds(queries_1, Kernel::queries, 1, 2) && holds(queries_2, Kernel::queries, 2, 4));

}  // namespace

const Schedule& key_schedule(int blocks) { return blocks == 1 ? keys_1 : keys_2; }
const Schedule& query_schedule(int blocks) { return blocks == 1 ? queries_1 : queries_2; }

}  // namespace wavejit::attention_backward::schedule
