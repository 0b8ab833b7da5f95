// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_backward/emit/schedule.h"

#include "templates/attention_backward/emit/schedule_model.h"

namespace wavejit::attention_backward::schedule {
namespace {

// Weights are made under dP and under what the block before is still owed, dS under dV.
constexpr Schedule of_keys(int blocks) {
  Schedule schedule;
  for (int block = 0; block < blocks; ++block) {
    schedule.acts.add(Multiply{Product::scores, block});
    schedule.acts.add(Modify{block});
    schedule.acts.add(Queue{Vector::weigh, block});
    if (block > 0) schedule.acts.add(Multiply{Product::keys, block - 1});
    schedule.acts.add(Multiply{Product::gradients, block});
    schedule.acts.add(Queue{Vector::differentiate, block});
    schedule.acts.add(Multiply{Product::values, block});
  }
  schedule.acts.add(Multiply{Product::keys, blocks - 1});
  return schedule;
}

// The same, one product less: weights of a block are made under dP and under the other one's products.
constexpr Schedule of_queries(int blocks) {
  Schedule schedule;
  for (int block = 0; block < blocks; ++block) {
    schedule.acts.add(Multiply{Product::scores, block});
    schedule.acts.add(Modify{block});
    schedule.acts.add(Queue{Vector::weigh, block});
    if (block > 0) schedule.acts.add(Multiply{Product::queries, block - 1});
    schedule.acts.add(Multiply{Product::gradients, block});
    schedule.acts.add(Queue{Vector::differentiate, block});
  }
  schedule.acts.add(Multiply{Product::queries, blocks - 1});
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
static_assert(holds(keys_1, Kernel::keys, 1, 2.5) && holds(keys_2, Kernel::keys, 2, 3.5));
static_assert(holds(queries_1, Kernel::queries, 1, 2) && holds(queries_2, Kernel::queries, 2, 3.5));

}  // namespace

const Schedule& key_schedule(int blocks) { return blocks == 1 ? keys_1 : keys_2; }
const Schedule& query_schedule(int blocks) { return blocks == 1 ? queries_1 : queries_2; }

}  // namespace wavejit::attention_backward::schedule
