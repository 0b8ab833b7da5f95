// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Captured calls of attention_forward whose last workgroup to arrive merges what all left: counters of their own, and
// two launches where none are left.
#include <gtest/gtest.h>

#include <optional>

#include "runtime/capture.h"

namespace wavejit::tests {
namespace {

// Calls that ask for it, of numbers that a seed tells.
struct ForwardInOneLaunch {
  static constexpr std::int64_t batch = 2;
  static constexpr std::int64_t keys = 2100;
  static constexpr std::int64_t query_heads = 8;

  struct Problem {
    explicit Problem(Engine& engine, std::uint32_t seed = 1)
        : q(engine, pattern(seed, batch * query_heads * head_dim)),
          k(engine, pattern(seed + 1, batch * keys * head_dim)),
          v(engine, pattern(seed + 2, batch * keys * head_dim)),
          o(engine, nothing()) {
      call.q = dense(q, WAVEJIT_FP16, batch, 1, query_heads, head_dim);
      call.k = dense(k, WAVEJIT_FP16, batch, keys, 1, head_dim);
      call.v = dense(v, WAVEJIT_FP16, batch, keys, 1, head_dim);
      call.o = dense(o, WAVEJIT_FP16, batch, 1, query_heads, head_dim);
      call.modifiers.scale = 0.01F;
      call.split.splits = 3;
      call.head.flags = WAVEJIT_ONE_LAUNCH;
      workspace.emplace(engine, engine.workspace_bytes(call));
      call.split.workspace = workspace->data();
      call.split.workspace_bytes = engine.workspace_bytes(call);
    }
    static std::vector<std::uint16_t> nothing() { return pattern(9, batch * query_heads * head_dim); }
    std::vector<std::uint16_t> taken() {
      auto result = o.read<std::uint16_t>();
      o.write(nothing());
      return result;
    }

    DeviceBuffer q, k, v, o;
    std::optional<DeviceBuffer> workspace;
    AttentionForward call;
  };
};

class CaptureOneLaunchForwardTest : public CaptureTest, protected ForwardInOneLaunch {
 protected:
  std::vector<std::uint16_t> direct(Problem& problem) {
    engine_.run(problem.call, stream_);
    EXPECT_EQ(hipStreamSynchronize(stream_), hipSuccess);
    return problem.taken();
  }
  std::vector<std::uint16_t> of_two_launches(Problem& problem) {
    problem.call.head.flags = WAVEJIT_TWO_LAUNCHES;
    auto result = direct(problem);
    problem.call.head.flags = WAVEJIT_ONE_LAUNCH;
    return result;
  }
  hipGraphExec_t captured(const Problem& problem) {
    EXPECT_EQ(hipStreamBeginCapture(stream_, GetParam()), hipSuccess);
    engine_.run(problem.call, stream_);
    hipGraph_t graph = nullptr;
    EXPECT_EQ(hipStreamEndCapture(stream_, &graph), hipSuccess);
    std::size_t nodes = 0;
    EXPECT_EQ(hipGraphGetNodes(graph, nullptr, &nodes), hipSuccess);
    EXPECT_EQ(nodes, 1U);
    hipGraphExec_t executable = nullptr;
    EXPECT_EQ(hipGraphInstantiate(&executable, graph, nullptr, nullptr, 0), hipSuccess);
    EXPECT_EQ(hipGraphDestroy(graph), hipSuccess);
    return executable;
  }
};

TEST_P(CaptureOneLaunchForwardTest, GraphsGoBesideEachOtherAndBesideCalls) {
  Problem first(engine_, 1);
  Problem second(engine_, 20);
  Problem third(engine_, 40);
  const auto of_first = of_two_launches(first);
  const auto of_second = of_two_launches(second);
  const auto of_third = of_two_launches(third);
  ASSERT_NE(of_first, Problem::nothing());
  ASSERT_EQ(direct(first), of_first);
  hipGraphExec_t first_graph = captured(first);
  hipGraphExec_t second_graph = captured(second);
  hipStream_t beside = nullptr;
  hipStream_t of_calls = nullptr;
  ASSERT_EQ(hipStreamCreateWithFlags(&beside, hipStreamNonBlocking), hipSuccess);
  ASSERT_EQ(hipStreamCreateWithFlags(&of_calls, hipStreamNonBlocking), hipSuccess);
  for (int turn = 0; turn < 3; ++turn) {
    ASSERT_EQ(hipGraphLaunch(first_graph, stream_), hipSuccess);
    ASSERT_EQ(hipGraphLaunch(second_graph, beside), hipSuccess);
    engine_.run(third.call, of_calls);
    ASSERT_EQ(hipDeviceSynchronize(), hipSuccess);
    EXPECT_EQ(first.taken(), of_first) << turn;
    EXPECT_EQ(second.taken(), of_second) << turn;
    EXPECT_EQ(third.taken(), of_third) << turn;
  }
  EXPECT_EQ(hipGraphExecDestroy(first_graph), hipSuccess);
  EXPECT_EQ(hipGraphExecDestroy(second_graph), hipSuccess);
  EXPECT_EQ(hipStreamDestroy(beside), hipSuccess);
  EXPECT_EQ(hipStreamDestroy(of_calls), hipSuccess);
}

// No use that is allowed: the same workspace and counters, so that the first replay to end may have merged parts that
// were counted for the other and are not stored yet. (Here launches run one after the other, and O is whole.) What must
// hold is that later replays are right: a count that goes twice as far ends at 0, too.
TEST_P(CaptureOneLaunchForwardTest, AGraphBesideItselfLeavesItsCountersInOrder) {
  Problem problem(engine_);
  const auto expected = of_two_launches(problem);
  ASSERT_EQ(direct(problem), expected);
  hipGraphExec_t graph = captured(problem);
  hipStream_t beside = nullptr;
  ASSERT_EQ(hipStreamCreateWithFlags(&beside, hipStreamNonBlocking), hipSuccess);
  for (int turn = 0; turn < 3; ++turn) {
    ASSERT_EQ(hipGraphLaunch(graph, stream_), hipSuccess);
    ASSERT_EQ(hipGraphLaunch(graph, beside), hipSuccess);
    ASSERT_EQ(hipDeviceSynchronize(), hipSuccess);
    EXPECT_EQ(problem.taken(), expected) << turn;
    // Other keys, alone: nothing is left of what went before.
    problem.k.write(pattern(static_cast<std::uint32_t>(50 + turn), batch * keys * head_dim));
    ASSERT_EQ(hipGraphLaunch(graph, stream_), hipSuccess);
    ASSERT_EQ(hipStreamSynchronize(stream_), hipSuccess);
    const auto others = problem.taken();
    EXPECT_EQ(others, of_two_launches(problem)) << turn;
    EXPECT_NE(others, expected) << turn;
    problem.k.write(pattern(2, batch * keys * head_dim));
    EXPECT_EQ(direct(problem), expected) << turn;
  }
  EXPECT_EQ(hipGraphExecDestroy(graph), hipSuccess);
  EXPECT_EQ(hipStreamDestroy(beside), hipSuccess);
}

// The reserve has 65,536 counters, and each of these calls takes 32: its own 8, and what fills a line up.
// Who finds none merges in a second launch.
TEST_P(CaptureOneLaunchForwardTest, WithoutCountersThereAreTwoLaunches) {
  Problem problem(engine_);
  const auto expected = of_two_launches(problem);
  ASSERT_EQ(direct(problem), expected);
  constexpr std::size_t with_counters = 2048;
  constexpr std::size_t without = 3;
  ASSERT_EQ(hipStreamBeginCapture(stream_, GetParam()), hipSuccess);
  for (std::size_t call = 0; call < with_counters + without; ++call) engine_.run(problem.call, stream_);
  hipGraph_t graph = nullptr;
  ASSERT_EQ(hipStreamEndCapture(stream_, &graph), hipSuccess);
  std::size_t nodes = 0;
  EXPECT_EQ(hipGraphGetNodes(graph, nullptr, &nodes), hipSuccess);
  EXPECT_EQ(nodes, with_counters + (2 * without));
  EXPECT_EQ(hipGraphDestroy(graph), hipSuccess);
  EXPECT_EQ(direct(problem), expected);
}

// The plan chose one launch, and nobody asked for two: their kernels are there all the same, once the engine is sealed.
TEST_P(CaptureOneLaunchForwardTest, KernelsOfTwoLaunchesAreMadeBehindTheFirstCall) {
  Problem problem(engine_);
  problem.call.head.flags = 0;
  const auto expected = direct(problem);
  engine_.seal();
  ASSERT_EQ(hipStreamBeginCapture(stream_, GetParam()), hipSuccess);
  for (std::size_t call = 0; call < 2049; ++call) engine_.run(problem.call, stream_);
  hipGraph_t graph = nullptr;
  ASSERT_EQ(hipStreamEndCapture(stream_, &graph), hipSuccess);
  std::size_t nodes = 0;
  EXPECT_EQ(hipGraphGetNodes(graph, nullptr, &nodes), hipSuccess);
  EXPECT_EQ(nodes, 2048U + 2) << "one launch each, and two of the last one";
  EXPECT_EQ(hipGraphDestroy(graph), hipSuccess);
  EXPECT_EQ(direct(problem), expected);
}

// No call has been made before: what the line prepares is enough.
TEST_P(CaptureOneLaunchForwardTest, ALinePreparesCountersToo) {
  engine_.prepare({"attention_forward fp16 b2 q1 k2100 h8/1 d64 splits=3 launches=1"});
  engine_.seal();
  Problem problem(engine_);
  hipGraphExec_t graph = captured(problem);
  ASSERT_EQ(hipGraphLaunch(graph, stream_), hipSuccess);
  ASSERT_EQ(hipStreamSynchronize(stream_), hipSuccess);
  const auto result = problem.taken();
  EXPECT_NE(result, Problem::nothing());
  EXPECT_EQ(direct(problem), result);
  EXPECT_EQ(hipGraphExecDestroy(graph), hipSuccess);
}

INSTANTIATE_TEST_SUITE_P(Modes, CaptureOneLaunchForwardTest,
                         ::testing::Values(hipStreamCaptureModeGlobal, hipStreamCaptureModeThreadLocal,
                                           hipStreamCaptureModeRelaxed));

class OneLaunchForwardOnDevices : public ::testing::Test, protected ForwardInOneLaunch {};

// Counters are of an engine, and so of a device: calls on two of them at once count by themselves, those of waves that
// share chunks, too (gfx950).
TEST_F(OneLaunchForwardOnDevices, EachEngineHasItsOwnCounters) {
  for (const char* target : {"gfx942", "gfx950"}) {
    SCOPED_TRACE(target);
    Engine first(on(test_device(target, 3, 0)));
    Engine third(on(test_device(target, 3, 2)));
    Problem on_first(first);
    Problem on_third(third);
    ASSERT_EQ(device_of(on_third.q), device_of(on_first.q) + 2);
    const auto wait_for = [](Problem& problem) {
      EXPECT_EQ(hipSetDevice(device_of(problem.q)), hipSuccess);
      EXPECT_EQ(hipDeviceSynchronize(), hipSuccess);
    };
    on_first.call.head.flags = WAVEJIT_TWO_LAUNCHES;
    first.run(on_first.call);
    wait_for(on_first);
    const auto expected = on_first.taken();
    ASSERT_NE(expected, Problem::nothing());
    on_first.call.head.flags = WAVEJIT_ONE_LAUNCH;
    for (int turn = 0; turn < 3; ++turn) {
      first.run(on_first.call);
      third.run(on_third.call);
      for (Problem* each : {&on_first, &on_third}) {
        wait_for(*each);
        EXPECT_EQ(each->taken(), expected) << turn;
      }
    }
  }
}

}  // namespace
}  // namespace wavejit::tests
