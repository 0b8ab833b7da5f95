// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Captured calls whose last workgroup to arrive merges what all left: each has counters of its own, so that graphs may
// be replayed beside each other, beside themselves and beside calls, on any streams.
#include <gtest/gtest.h>

#include <optional>

#include "runtime/capture.h"

namespace wavejit::tests {
namespace {

class CaptureOneLaunchTest : public CaptureTest {
 protected:
  static constexpr std::int64_t batch = 3;
  static constexpr std::int64_t keys = 2100;
  static constexpr std::int64_t query_heads = 8;
  static constexpr std::int64_t columns = 320;
  static constexpr std::int64_t latent = 256;

  struct Problem {
    explicit Problem(Engine& engine, std::uint32_t seed = 1)
        : q(engine, pattern(seed, batch * query_heads * columns)),
          cache(engine, pattern(seed + 1, batch * keys * columns)),
          o(engine, nothing()) {
      call.q = dense(q, WAVEJIT_FP16, batch, 1, query_heads, columns);
      call.k = dense(cache, WAVEJIT_FP16, batch, keys, 1, columns);
      call.o = dense(o, WAVEJIT_FP16, batch, 1, query_heads, latent);
      call.modifiers.scale = 0.01F;
      call.split.splits = 3;
      call.head.flags = WAVEJIT_ONE_LAUNCH;
      workspace.emplace(engine, engine.workspace_bytes(call));
      call.split.workspace = workspace->data();
      call.split.workspace_bytes = engine.workspace_bytes(call);
    }
    static std::vector<std::uint16_t> nothing() { return pattern(9, batch * query_heads * latent); }
    std::vector<std::uint16_t> taken() {
      auto result = o.read<std::uint16_t>();
      o.write(nothing());
      return result;
    }

    DeviceBuffer q, cache, o;
    std::optional<DeviceBuffer> workspace;
    AttentionLatent call;
  };

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
  hipGraphExec_t captured(const Problem& problem, std::size_t launches = 1) {
    EXPECT_EQ(hipStreamBeginCapture(stream_, GetParam()), hipSuccess);
    engine_.run(problem.call, stream_);
    hipGraph_t graph = nullptr;
    EXPECT_EQ(hipStreamEndCapture(stream_, &graph), hipSuccess);
    std::size_t nodes = 0;
    EXPECT_EQ(hipGraphGetNodes(graph, nullptr, &nodes), hipSuccess);
    EXPECT_EQ(nodes, launches);
    hipGraphExec_t executable = nullptr;
    EXPECT_EQ(hipGraphInstantiate(&executable, graph, nullptr, nullptr, 0), hipSuccess);
    EXPECT_EQ(hipGraphDestroy(graph), hipSuccess);
    return executable;
  }
};

TEST_P(CaptureOneLaunchTest, AGraphOfOneLaunchHasTheBitsOfTwo) {
  Problem problem(engine_);
  const auto expected = of_two_launches(problem);
  ASSERT_NE(expected, Problem::nothing());
  ASSERT_EQ(direct(problem), expected);
  engine_.seal();
  hipGraphExec_t graph = captured(problem);
  for (int replay = 0; replay < 3; ++replay) {
    ASSERT_EQ(hipGraphLaunch(graph, stream_), hipSuccess);
    ASSERT_EQ(hipStreamSynchronize(stream_), hipSuccess);
    EXPECT_EQ(problem.taken(), expected) << replay;
  }
  EXPECT_EQ(hipGraphExecDestroy(graph), hipSuccess);
}

// Two graphs on two streams and calls on a third one, all under way at once.
TEST_P(CaptureOneLaunchTest, GraphsGoBesideEachOtherAndBesideCalls) {
  Problem first(engine_, 1);
  Problem second(engine_, 20);
  Problem third(engine_, 40);
  const auto of_first = of_two_launches(first);
  const auto of_second = of_two_launches(second);
  const auto of_third = of_two_launches(third);
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
TEST_P(CaptureOneLaunchTest, AGraphBesideItselfLeavesItsCountersInOrder) {
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
    problem.cache.write(pattern(static_cast<std::uint32_t>(50 + turn), batch * keys * columns));
    ASSERT_EQ(hipGraphLaunch(graph, stream_), hipSuccess);
    ASSERT_EQ(hipStreamSynchronize(stream_), hipSuccess);
    const auto others = problem.taken();
    EXPECT_EQ(others, of_two_launches(problem)) << turn;
    EXPECT_NE(others, expected) << turn;
    problem.cache.write(pattern(2, batch * keys * columns));
    EXPECT_EQ(direct(problem), expected) << turn;
  }
  EXPECT_EQ(hipGraphExecDestroy(graph), hipSuccess);
  EXPECT_EQ(hipStreamDestroy(beside), hipSuccess);
}

// The reserve has 65,536 counters, and each of these calls takes 32. Who finds none merges in a second launch; the next
// call that is not captured fills the reserve up.
TEST_P(CaptureOneLaunchTest, WithoutCountersThereAreTwoLaunches) {
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
  for (const std::size_t launches : {2, 1}) {
    hipGraphExec_t executable = captured(problem, launches);
    ASSERT_EQ(hipGraphLaunch(executable, stream_), hipSuccess);
    ASSERT_EQ(hipStreamSynchronize(stream_), hipSuccess);
    EXPECT_EQ(problem.taken(), expected);
    EXPECT_EQ(hipGraphExecDestroy(executable), hipSuccess);
    EXPECT_EQ(direct(problem), expected);
  }
}

// No call has been made before: what the line prepares is enough.
TEST_P(CaptureOneLaunchTest, ALinePreparesCountersToo) {
  const char* line = "attention_latent fp16 b3 q1 k2100 h8 d320/256 splits=3 launches=1";
  engine_.prepare({line});
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

INSTANTIATE_TEST_SUITE_P(Modes, CaptureOneLaunchTest,
                         ::testing::Values(hipStreamCaptureModeGlobal, hipStreamCaptureModeThreadLocal,
                                           hipStreamCaptureModeRelaxed));

// Counters are of an engine, and so of a device: calls on two of them at once count by themselves.
TEST(OneLaunchOnDevices, EachEngineHasItsOwnCounters) {
  constexpr std::int64_t batch = 3;
  constexpr std::int64_t keys = 2100;
  Engine first(on(test_device("gfx942", 3, 0)));
  Engine third(on(test_device("gfx942", 3, 2)));
  struct Problem {
    explicit Problem(Engine& engine)
        : q(engine, pattern(1, batch * 8 * 320)),
          cache(engine, pattern(2, batch * keys * 320)),
          o(engine, pattern(9, batch * 8 * 256)) {
      call.q = dense(q, WAVEJIT_FP16, batch, 1, 8, 320);
      call.k = dense(cache, WAVEJIT_FP16, batch, keys, 1, 320);
      call.o = dense(o, WAVEJIT_FP16, batch, 1, 8, 256);
      call.modifiers.scale = 0.01F;
      call.split.splits = 3;
    }
    DeviceBuffer q, cache, o;
    AttentionLatent call;
  };
  Problem on_first(first);
  Problem on_third(third);
  ASSERT_EQ(device_of(on_third.q), device_of(on_first.q) + 2);
  on_first.call.head.flags = WAVEJIT_TWO_LAUNCHES;
  first.run(on_first.call);
  ASSERT_EQ(hipSetDevice(device_of(on_first.q)), hipSuccess);
  ASSERT_EQ(hipDeviceSynchronize(), hipSuccess);
  const auto expected = on_first.o.read<std::uint16_t>();
  ASSERT_NE(expected, pattern(9, batch * 8 * 256));
  on_first.call.head.flags = on_third.call.head.flags = WAVEJIT_ONE_LAUNCH;
  for (int turn = 0; turn < 3; ++turn) {
    on_first.o.write(pattern(9, batch * 8 * 256));
    on_third.o.write(pattern(9, batch * 8 * 256));
    first.run(on_first.call);
    third.run(on_third.call);
    for (Problem* each : {&on_first, &on_third}) {
      ASSERT_EQ(hipSetDevice(device_of(each->q)), hipSuccess);
      ASSERT_EQ(hipDeviceSynchronize(), hipSuccess);
      EXPECT_EQ(each->o.read<std::uint16_t>(), expected) << turn;
    }
  }
}

}  // namespace
}  // namespace wavejit::tests
