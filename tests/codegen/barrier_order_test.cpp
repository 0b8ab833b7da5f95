// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The comparison itself, on graphs written by hand.
#include "codegen/barrier_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace wavejit::codegen {
namespace {

using Kind = LdsEvent::Kind;
using ::testing::HasSubstr;

LdsEvent read(std::uint32_t bytes) { return {.kind = Kind::read, .amount = bytes}; }
LdsEvent write(std::uint32_t bytes) { return {.kind = Kind::write, .amount = bytes}; }
LdsEvent dma() { return {.kind = Kind::dma, .amount = 1}; }
LdsEvent barrier(std::uint64_t position = 0) { return {.kind = Kind::barrier, .position = position}; }

LdsFlowGraph straight(std::vector<LdsEvent> events) {
  return {.nodes = {{.events = std::move(events), .successors = {}, .exits = true}}};
}

// entry → body ⟲ → exit
LdsFlowGraph loop(std::vector<LdsEvent> before, std::vector<LdsEvent> body, std::vector<LdsEvent> after) {
  return {.nodes = {{.events = std::move(before), .successors = {1}},
                    {.events = std::move(body), .successors = {1, 2}},
                    {.events = std::move(after), .successors = {}, .exits = true}}};
}

TEST(BarrierOrder, AcceptsTheSameOrder) {
  const auto graph = straight({read(16), read(16), barrier(), read(8), write(4), barrier()});
  EXPECT_TRUE(check_lds_order(graph, graph));
}

TEST(BarrierOrder, AcceptsReadsMergedIntoWiderOnes) {
  EXPECT_TRUE(check_lds_order(straight({read(16), barrier(), read(16)}),
                              straight({read(8), read(8), barrier(), read(4), read(12)})));
}

TEST(BarrierOrder, RefusesAReadBehindItsBarrier) {
  const auto checked =
      check_lds_order(straight({read(16), barrier(0x40), read(16)}), straight({read(16), read(16), barrier()}));
  ASSERT_FALSE(checked);
  EXPECT_THAT(checked.error(), HasSubstr("LDS reads"));
  EXPECT_THAT(checked.error(), HasSubstr("offset 64"));
}

TEST(BarrierOrder, RefusesAReadBeforeItsBarrier) {
  EXPECT_FALSE(check_lds_order(straight({read(16), read(16), barrier()}), straight({read(16), barrier(), read(16)})));
}

// What a wave still reads behind its arrival, others may overwrite.
TEST(BarrierOrder, RefusesAReadBetweenArrivalAndWaitThatStoodBeforeBoth) {
  EXPECT_FALSE(check_lds_order(straight({read(16), barrier(), read(16), barrier()}),
                               straight({read(16), read(16), barrier(), barrier()})));
}

TEST(BarrierOrder, RefusesAReadThatIsMissingOrDoubled) {
  EXPECT_FALSE(check_lds_order(straight({read(16), barrier()}), straight({read(16), barrier(), read(16)})));
  EXPECT_FALSE(
      check_lds_order(straight({read(16), barrier(), read(16), read(16)}), straight({read(16), barrier(), read(16)})));
}

TEST(BarrierOrder, RefusesAMissingOrAddedBarrier) {
  EXPECT_FALSE(check_lds_order(straight({read(16), read(16)}), straight({read(16), barrier(), read(16)})));
  EXPECT_FALSE(check_lds_order(straight({barrier(), read(16), barrier()}), straight({read(16), barrier()})));
}

TEST(BarrierOrder, ChecksWritesAndDmaToo) {
  EXPECT_FALSE(check_lds_order(straight({barrier(), write(8)}), straight({write(8), barrier()})));
  EXPECT_FALSE(check_lds_order(straight({barrier(), dma()}), straight({dma(), barrier()})));
  // Inside an interval the backend may order them as it likes.
  EXPECT_TRUE(check_lds_order(straight({write(8), read(4), dma(), barrier()}),
                              straight({dma(), read(4), write(8), barrier()})));
}

TEST(BarrierOrder, FollowsLoops) {
  const auto ir = loop({dma()}, {barrier(), read(16), read(16), barrier(), dma()}, {barrier(), read(16)});
  EXPECT_TRUE(check_lds_order(ir, ir));
  EXPECT_FALSE(
      check_lds_order(loop({dma()}, {barrier(), read(16), barrier(), read(16), dma()}, {barrier(), read(16)}), ir));
  EXPECT_FALSE(
      check_lds_order(loop({dma()}, {barrier(), read(16), read(16), dma(), barrier()}, {barrier(), read(16)}), ir));
}

TEST(BarrierOrder, AcceptsARotatedLoop) {
  const auto ir = loop({}, {read(16), barrier()}, {});
  const LdsFlowGraph machine = {.nodes = {{.events = {read(16)}, .successors = {1}},
                                          {.events = {barrier()}, .successors = {2, 3}},
                                          {.events = {read(16)}, .successors = {1}},
                                          {.events = {}, .successors = {}, .exits = true}}};
  EXPECT_TRUE(check_lds_order(machine, ir));
}

TEST(BarrierOrder, FollowsBranches) {
  // if (c) { read } barrier, and machine code in which the read of the taken side slipped behind the barrier.
  const LdsFlowGraph ir = {.nodes = {{.events = {read(4)}, .successors = {1, 2}},
                                     {.events = {read(16)}, .successors = {2}},
                                     {.events = {barrier(), read(8)}, .successors = {}, .exits = true}}};
  EXPECT_TRUE(check_lds_order(ir, ir));
  EXPECT_TRUE(check_lds_order(straight({read(4), barrier(), read(8)}), ir)) << "the branch was decided at compile time";
  EXPECT_TRUE(check_lds_order(straight({read(20), barrier(), read(8)}), ir));
  EXPECT_FALSE(check_lds_order(straight({read(4), barrier(), read(24)}), ir));
  EXPECT_FALSE(check_lds_order(straight({read(12), barrier(), read(8)}), ir));
}

TEST(BarrierOrder, FollowsLoopsWithoutBarriers) {
  const auto ir = loop({}, {read(16)}, {barrier()});
  EXPECT_TRUE(check_lds_order(ir, ir));
  EXPECT_TRUE(check_lds_order(loop({}, {read(16), read(16)}, {barrier()}), ir)) << "unrolled by two";
  EXPECT_FALSE(check_lds_order(loop({}, {read(24)}, {barrier()}), ir)) << "odd trip counts have no counterpart";
}

TEST(BarrierOrder, RefusesKernelsWithoutInstructions) { EXPECT_FALSE(check_lds_order({}, straight({}))); }

}  // namespace
}  // namespace wavejit::codegen
