// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The model of the backward pipelines sees tables that are wrong. Those of the kernels it saw when they were compiled.
#include <gtest/gtest.h>

#include <string_view>
#include <utility>
#include <variant>

#include "templates/attention_backward/emit/schedule_model.h"

namespace wavejit::tests {
namespace {

using namespace attention_backward::schedule;

constexpr Schedule right = {{Multiply{Product::scores, 0}, Modify{0}, Queue{Vector::weigh, 0},
                             Multiply{Product::gradients, 0}, Queue{Vector::differentiate, 0},
                             Multiply{Product::values, 0}, Multiply{Product::keys, 0}}};

// The fault of the table with act `index` left out, or with acts `index` and `other` in each other's place.
std::string_view without(std::size_t index) {
  Schedule schedule;
  for (std::size_t i = 0; i < right.acts.size(); ++i)
    if (i != index) schedule.acts.add(right.acts.begin()[i]);
  return Model(Kernel::keys, 1).run(schedule).what;
}
std::string_view swapped(std::size_t index, std::size_t other) {
  Schedule schedule = right;
  std::swap(schedule.acts.begin()[index], schedule.acts.begin()[other]);
  return Model(Kernel::keys, 1).run(schedule).what;
}

TEST(BackwardSchedule, OfTheKernelIsRight) { EXPECT_EQ(Model(Kernel::keys, 1).run(right).what, ""); }

TEST(BackwardSchedule, ThatLeavesSomethingOutIsSeen) {
  EXPECT_EQ(without(1), "weighs scores that are not modified, or twice");
  EXPECT_EQ(without(2), "differentiates before dP is there, or twice");
  EXPECT_EQ(without(3), "differentiates before dP is there, or twice");
  EXPECT_EQ(without(4), "multiplies gradients that nobody makes, or twice");
  EXPECT_EQ(without(5), "a block is missing in a sum");
  EXPECT_EQ(without(6), "a block is missing in a sum");
}

// The queue writes a piece as soon as there is room: dS must not be on it while dP is being multiplied.
TEST(BackwardSchedule, ThatComesTooEarlyIsSeen) {
  EXPECT_EQ(swapped(3, 4), "differentiates before dP is there, or twice");
  EXPECT_EQ(swapped(0, 1), "modifies what is no score, or twice");
}

TEST(BackwardSchedule, OfDescendingBlocksIsSeen) {
  Schedule schedule;
  for (const int block : {1, 0})
    for (const Act& act : right.acts) {
      Act of_block = act;
      std::visit([&](auto& each) { each.block = block; }, of_block);
      schedule.acts.add(of_block);
    }
  EXPECT_EQ(Model(Kernel::keys, 2).run(schedule).what, "blocks do not ascend in a sum");
}

TEST(BackwardSchedule, OfTheOtherKernelIsSeen) {
  EXPECT_EQ(Model(Kernel::queries, 1).run(right).what, "the kernel has no such sum");
  EXPECT_EQ(Model(Kernel::values_alone, 1).run(right).what, "the kernel has no such sum");
  EXPECT_EQ(Model(Kernel::keys_alone, 1).run(right).what, "the kernel has no such sum");
}

// Waves that share keys: what the one makes, the other gets.
constexpr Schedule giving = {{Multiply{Product::scores, 0}, Modify{0}, Queue{Vector::weigh, 0}, Queue{Vector::give, 0},
                              Multiply{Product::values, 0}}};
constexpr Schedule taking = {{Queue{Vector::take, 0}, Multiply{Product::gradients, 0}, Queue{Vector::differentiate, 0},
                              Multiply{Product::keys, 0}}};
std::string_view fault_of(Kernel kernel, const Schedule& schedule, std::size_t left_out) {
  Schedule some;
  for (std::size_t i = 0; i < schedule.acts.size(); ++i)
    if (i != left_out) some.acts.add(schedule.acts.begin()[i]);
  return Model(kernel, 1).run(some).what;
}

TEST(BackwardSchedule, OfWavesThatShareKeysIsSeen) {
  EXPECT_EQ(Model(Kernel::giving, 1).run(giving).what, "");
  EXPECT_EQ(fault_of(Kernel::giving, giving, 2), "gives weights that nobody makes, or twice");
  EXPECT_EQ(fault_of(Kernel::giving, giving, 3), "weights of a block are not handed over");
  EXPECT_EQ(fault_of(Kernel::giving, giving, 4), "a block is missing in a sum");
  EXPECT_EQ(Model(Kernel::values_alone, 1).run(giving).what, "the kernel gives no weights");

  EXPECT_EQ(Model(Kernel::taking, 1).run(taking).what, "");
  EXPECT_EQ(fault_of(Kernel::taking, taking, 0), "differentiates before dP is there, or twice");
  EXPECT_EQ(Model(Kernel::keys_alone, 1).run(taking).what, "the kernel takes no weights");
  EXPECT_EQ(Model(Kernel::taking, 1).run(giving).what, "the kernel takes weights");
  Schedule twice = giving;
  twice.acts.add(Queue{Vector::give, 0});
  EXPECT_EQ(Model(Kernel::giving, 1).run(twice).what, "gives weights that nobody makes, or twice");
  twice = taking;
  twice.acts.add(Queue{Vector::take, 0});
  EXPECT_EQ(Model(Kernel::taking, 1).run(twice).what, "takes weights twice");
}

// The same with products of columns of the tile before.
constexpr Schedule giving_behind = {{Queue{Vector::round, 0, true}, Multiply{Product::scores, 0}, Modify{0},
                                     Queue{Vector::weigh, 0}, Queue{Vector::give, 0},
                                     Multiply{Product::values, 0, true}}};
constexpr Schedule taking_behind = {{Queue{Vector::take, 0, true}, Queue{Vector::differentiate, 0, true},
                                     Multiply{Product::gradients, 0}, Multiply{Product::keys, 0, true}}};
std::string_view fault_behind(Kernel kernel, const Schedule& schedule, std::size_t left_out) {
  Schedule some;
  for (std::size_t i = 0; i < schedule.acts.size(); ++i)
    if (i != left_out) some.acts.add(schedule.acts.begin()[i]);
  return Model(kernel, 1, Sum::of_tile_before).run(some).what;
}

TEST(BackwardSchedule, OfSumsOfTheTileBeforeIsSeen) {
  const std::size_t none = giving_behind.acts.size();
  EXPECT_EQ(fault_behind(Kernel::giving, giving_behind, none), "");
  EXPECT_EQ(fault_behind(Kernel::giving, giving_behind, 0), "multiplies weights that nobody makes, or twice");
  EXPECT_EQ(fault_behind(Kernel::giving, giving_behind, 3), "gives weights that nobody makes, or twice");
  EXPECT_EQ(fault_behind(Kernel::giving, giving_behind, 4), "weights of a block are not handed over");
  EXPECT_EQ(fault_behind(Kernel::giving, giving_behind, 5), "a block is missing in a sum");
  EXPECT_EQ(Model(Kernel::giving, 1).run(giving_behind).what, "nothing is left of the tile before");

  EXPECT_EQ(fault_behind(Kernel::taking, taking_behind, none), "");
  EXPECT_EQ(fault_behind(Kernel::taking, taking_behind, 0), "differentiates before dP is there, or twice");
  EXPECT_EQ(fault_behind(Kernel::taking, taking_behind, 1), "multiplies gradients that nobody makes, or twice");
  EXPECT_EQ(fault_behind(Kernel::taking, taking_behind, 2), "a tile leaves too little to the next");
  EXPECT_EQ(fault_behind(Kernel::taking, taking_behind, 3), "a block is missing in a sum");

  // The tile itself has what is left to the next.
  Schedule early = giving_behind;
  early.acts.begin()[5] = Multiply{Product::values, 0};
  EXPECT_EQ(fault_behind(Kernel::giving, early, none), "multiplies weights that nobody makes, or twice");
  early = taking_behind;
  early.acts.begin()[3] = Multiply{Product::keys, 0};
  EXPECT_EQ(fault_behind(Kernel::taking, early, none), "multiplies gradients that nobody makes, or twice");
}

}  // namespace
}  // namespace wavejit::tests
