// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_backward/emit/schedule.h"

#include <initializer_list>

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
constexpr Schedule of_one_sum(int blocks, Product sum) {
  Schedule schedule;
  for (int block = 0; block < blocks; ++block) {
    schedule.acts.add(Multiply{Product::scores, block});
    schedule.acts.add(Modify{block});
    schedule.acts.add(Queue{Vector::weigh, block});
    if (block > 0) schedule.acts.add(Multiply{sum, block - 1});
    schedule.acts.add(Multiply{Product::gradients, block});
    schedule.acts.add(Queue{Vector::differentiate, block});
  }
  schedule.acts.add(Multiply{sum, blocks - 1});
  return schedule;
}

// Where rows come first, both blocks' weights are made under dP, and dS under the sums.
constexpr Schedule rows_first(int blocks, std::initializer_list<Product> sums) {
  Schedule schedule;
  for (int block = 0; block < blocks; ++block) {
    schedule.acts.add(Multiply{Product::scores, block});
    schedule.acts.add(Modify{block});
    schedule.acts.add(Queue{Vector::weigh, block});
  }
  for (int block = 0; block < blocks; ++block) {
    schedule.acts.add(Multiply{Product::gradients, block});
    schedule.acts.add(Queue{Vector::differentiate, block});
  }
  for (const Product sum : sums)
    for (int block = 0; block < blocks; ++block) schedule.acts.add(Multiply{sum, block});
  return schedule;
}

// The same with the rows' products of one block behind those of the other: fewer registers hold scores. dV alone takes
// no gradients.
constexpr Schedule rows_by_blocks(std::initializer_list<Product> sums) {
  constexpr int blocks = 2;
  Schedule schedule;
  for (int block = 0; block < blocks; ++block) {
    schedule.acts.add(Multiply{Product::scores, block});
    schedule.acts.add(Modify{block});
    schedule.acts.add(Queue{Vector::weigh, block});
    if (sums.size() == 1 && *sums.begin() == Product::values) continue;
    schedule.acts.add(Multiply{Product::gradients, block});
    schedule.acts.add(Queue{Vector::differentiate, block});
  }
  for (const Product sum : sums)
    for (int block = 0; block < blocks; ++block) schedule.acts.add(Multiply{sum, block});
  return schedule;
}

// Waves that share keys. The one that weighs has much vector work, so scores of both blocks come first; the other one
// takes weights of a tile before, and nothing that it waits for is on its way still.
constexpr Schedule giving = {{Multiply{Product::scores, 0}, Modify{0}, Queue{Vector::weigh, 0}, Queue{Vector::give, 0},
                              Multiply{Product::scores, 1}, Modify{1}, Queue{Vector::weigh, 1}, Queue{Vector::give, 1},
                              Multiply{Product::values, 0}, Multiply{Product::values, 1}}};
constexpr Schedule taking = {{Queue{Vector::take, 0}, Multiply{Product::gradients, 0}, Queue{Vector::differentiate, 0},
                              Queue{Vector::take, 1}, Multiply{Product::gradients, 1}, Queue{Vector::differentiate, 1},
                              Multiply{Product::keys, 0}, Multiply{Product::keys, 1}}};

// The same a tile behind, where rows come first. Weights that the one wave makes under its columns are given before the
// tile ends; the other one takes them in the next.
constexpr Schedule giving_behind = {{Queue{Vector::round, 0, true}, Multiply{Product::scores, 0}, Modify{0},
                                     Queue{Vector::weigh, 0}, Queue{Vector::give, 0},
                                     Multiply{Product::values, 0, true}}};
constexpr Schedule taking_behind = {{Queue{Vector::take, 0, true}, Queue{Vector::differentiate, 0, true},
                                     Multiply{Product::gradients, 0}, Multiply{Product::keys, 0, true}}};

constexpr bool are_rows_first(const Schedule& schedule) {
  bool columns = false;
  for (const Act& act : schedule.acts)
    if (const auto* multiply = std::get_if<Multiply>(&act)) {
      if (reads_rows(multiply->product) && columns) return false;
      columns = !reads_rows(multiply->product);
    }
  return true;
}

constexpr Schedule keys_1 = of_keys(1);
constexpr Schedule keys_2 = of_keys(2);
constexpr Schedule queries_1 = of_one_sum(1, Product::queries);
constexpr Schedule queries_2 = of_one_sum(2, Product::queries);
// Where LDS has no room for both sums' images: a walk for each.
constexpr Schedule values_alone = {
    {Multiply{Product::scores, 0}, Modify{0}, Queue{Vector::weigh, 0}, Multiply{Product::values, 0}}};
constexpr Schedule keys_alone = of_one_sum(1, Product::keys);
// Where registers are few: two blocks of 16.
constexpr Schedule values_by_blocks = rows_by_blocks({Product::values});
constexpr Schedule keys_alone_by_blocks = rows_by_blocks({Product::keys});
constexpr Schedule keys_by_blocks = rows_by_blocks({Product::values, Product::keys});
constexpr Schedule queries_by_blocks = rows_by_blocks({Product::queries});
constexpr Schedule keys_rows_first = rows_first(2, {Product::values, Product::keys});
constexpr Schedule queries_rows_first = rows_first(2, {Product::queries});

// With operands and sums of 64 keys and 128 dims in 384 registers there is room for 2.5 · 2 accumulators and no more.
constexpr bool holds(const Schedule& schedule, Kernel kernel, int blocks, double most, Sum sum = Sum::of_tile) {
  Model model(kernel, blocks, sum);
  return !model.run(schedule) && model.most_alive() <= most;
}
static_assert(holds(keys_1, Kernel::keys, 1, 2.5) && holds(keys_2, Kernel::keys, 2, 3.5));
static_assert(holds(queries_1, Kernel::queries, 1, 2) && holds(queries_2, Kernel::queries, 2, 3.5));

// One block of keys or rows has registers for more.
static_assert(holds(keys_rows_first, Kernel::keys, 2, 5) && holds(queries_rows_first, Kernel::queries, 2, 4));
static_assert(holds(values_alone, Kernel::values_alone, 1, 1) && holds(keys_alone, Kernel::keys_alone, 1, 2));
static_assert(holds(values_by_blocks, Kernel::values_alone, 2, 2) && holds(keys_by_blocks, Kernel::keys, 2, 5) &&
              holds(keys_alone_by_blocks, Kernel::keys_alone, 2, 4) && holds(queries_by_blocks, Kernel::queries, 2, 4));
static_assert(are_rows_first(values_by_blocks) && are_rows_first(keys_by_blocks) &&
              are_rows_first(keys_alone_by_blocks) && are_rows_first(queries_by_blocks));
static_assert(holds(giving, Kernel::giving, 2, 3) && holds(taking, Kernel::taking, 2, 4));
static_assert(are_rows_first(giving) && are_rows_first(taking));
static_assert(holds(giving_behind, Kernel::giving, 1, 2, Sum::of_tile_before) &&
              holds(taking_behind, Kernel::taking, 1, 3, Sum::of_tile_before));
static_assert(are_rows_first(giving_behind) && are_rows_first(taking_behind));
static_assert(are_rows_first(values_alone) && are_rows_first(keys_alone));
static_assert(are_rows_first(keys_1) && are_rows_first(queries_1) && are_rows_first(keys_rows_first) &&
              are_rows_first(queries_rows_first));

}  // namespace

const Schedule& key_schedule(int blocks, Order order, Sums sums) {
  if (order == Order::rows_by_blocks)
    return sums == Sums::both ? keys_by_blocks : sums == Sums::values ? values_by_blocks : keys_alone_by_blocks;
  if (sums != Sums::both) return sums == Sums::values ? values_alone : keys_alone;
  if (blocks == 1) return keys_1;
  return order == Order::hiding ? keys_2 : keys_rows_first;
}
const Schedule& shared_schedule(Order order, Sums sums) {
  if (order == Order::hiding) return makes_values(sums) ? giving : taking;
  return makes_values(sums) ? giving_behind : taking_behind;
}
const Schedule& query_schedule(int blocks, Order order) {
  if (order == Order::rows_by_blocks) return queries_by_blocks;
  if (blocks == 1) return queries_1;
  return order == Order::hiding ? queries_2 : queries_rows_first;
}

}  // namespace wavejit::attention_backward::schedule
