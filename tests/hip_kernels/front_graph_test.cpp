// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Stream capture and graphs: what becomes of work in a capturing stream, and what may not happen while it captures.
#include <array>
#include <functional>
#include <thread>

#include "front_fixture.h"

namespace wavejit::hip_kernels {
namespace {

class FrontGraph : public Front {
 protected:
  void SetUp() override {
    Front::SetUp();
    module_ = load();
    words_ = device_words(64);
    ASSERT_EQ(hipStreamCreateWithFlags(&stream_, hipStreamNonBlocking), hipSuccess);
    ASSERT_EQ(hipStreamCreateWithFlags(&other_, hipStreamNonBlocking), hipSuccess);
    ASSERT_EQ(hipEventCreate(&event_), hipSuccess);
    ASSERT_EQ(hipEventCreate(&joined_), hipSuccess);
  }
  void TearDown() override {
    EXPECT_EQ(hipStreamDestroy(other_), hipSuccess);
    EXPECT_EQ(hipStreamDestroy(stream_), hipSuccess);
    EXPECT_EQ(hipEventDestroy(event_), hipSuccess);
    EXPECT_EQ(hipEventDestroy(joined_), hipSuccess);
    EXPECT_EQ(hipFree(words_), hipSuccess);
    EXPECT_EQ(hipModuleUnload(module_), hipSuccess);
    (void)hipGetLastError();
    Front::TearDown();
  }

  void begin(hipStreamCaptureMode mode = hipStreamCaptureModeGlobal) {
    ASSERT_EQ(hipStreamBeginCapture(stream_, mode), hipSuccess);
  }
  hipGraphExec_t end_and_instantiate() {
    hipGraph_t graph = nullptr;
    hipGraphExec_t executable = nullptr;
    EXPECT_EQ(hipStreamEndCapture(stream_, &graph), hipSuccess);
    EXPECT_EQ(hipGraphInstantiate(&executable, graph, nullptr, nullptr, 0), hipSuccess);
    EXPECT_EQ(hipGraphDestroy(graph), hipSuccess);
    return executable;
  }
  // The capture in stream_ is over, and it is `answer` that hipStreamEndCapture says.
  void expect_end(hipError_t answer) {
    hipGraph_t graph = reinterpret_cast<hipGraph_t>(1);
    EXPECT_EQ(hipStreamEndCapture(stream_, &graph), answer);
    if (answer == hipSuccess) {
      EXPECT_EQ(hipGraphDestroy(graph), hipSuccess);
    } else {
      EXPECT_EQ(graph, nullptr);
    }
    EXPECT_EQ(status_of(stream_), hipStreamCaptureStatusNone);
  }
  static hipStreamCaptureStatus status_of(hipStream_t stream) {
    hipStreamCaptureStatus status = hipStreamCaptureStatusInvalidated;
    EXPECT_EQ(hipStreamIsCapturing(stream, &status), hipSuccess);
    return status;
  }
  hipError_t store(hipStream_t stream, std::uint32_t place, std::uint32_t value) {
    return launch(function(module_, "store"), 1, 1, stream, words_ + place, value);
  }
  // What `call` answers in a fresh capture of `mode`, which it must break if it is refused.
  template <typename Call>
  hipError_t in_capture(hipStreamCaptureMode mode, Call call) {
    begin(mode);
    const hipError_t answer = call();
    EXPECT_EQ(status_of(stream_),
              answer == hipSuccess ? hipStreamCaptureStatusActive : hipStreamCaptureStatusInvalidated);
    if (answer != hipSuccess) EXPECT_EQ(store(stream_, 0, 1), hipErrorStreamCaptureInvalidated);
    expect_end(answer == hipSuccess ? hipSuccess : hipErrorStreamCaptureInvalidated);
    return answer;
  }

  hipModule_t module_ = nullptr;
  std::uint32_t* words_ = nullptr;
  hipStream_t stream_ = nullptr;
  hipStream_t other_ = nullptr;
  hipEvent_t event_ = nullptr;
  hipEvent_t joined_ = nullptr;
};

TEST_F(FrontGraph, captured_work_runs_when_the_graph_is_launched) {
  begin();
  EXPECT_EQ(status_of(stream_), hipStreamCaptureStatusActive);
  std::uint32_t value = 7;
  std::uint32_t* place = words_;
  void* arguments[] = {static_cast<void*>(&place), static_cast<void*>(&value)};
  EXPECT_EQ(hipModuleLaunchKernel(function(module_, "append"), 1, 1, 1, 1, 1, 1, 0, stream_, arguments, nullptr),
            hipSuccess);
  value = 8;  // the arguments were copied
  EXPECT_EQ(hipMemsetD32Async(words_ + 32, 5, 4, stream_), hipSuccess);
  EXPECT_EQ(hipMemcpyAsync(words_ + 36, words_ + 32, 16, hipMemcpyDeviceToDevice, stream_), hipSuccess);
  hipGraph_t graph = nullptr;
  ASSERT_EQ(hipStreamEndCapture(stream_, &graph), hipSuccess);
  std::size_t count = 0;
  ASSERT_EQ(hipGraphGetNodes(graph, nullptr, &count), hipSuccess);
  ASSERT_EQ(count, 3U);
  std::array<hipGraphNode_t, 3> nodes{};
  ASSERT_EQ(hipGraphGetNodes(graph, nodes.data(), &count), hipSuccess);
  std::array<hipGraphNodeType, 3> types{};
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(hipGraphNodeGetType(nodes[i], &types[i]), hipSuccess);
  EXPECT_EQ(types, (std::array{hipGraphNodeTypeKernel, hipGraphNodeTypeMemset, hipGraphNodeTypeMemcpy}));
  ASSERT_EQ(hipGraphGetRootNodes(graph, nullptr, &count), hipSuccess);
  EXPECT_EQ(count, 1U);
  hipGraphExec_t executable = nullptr;
  ASSERT_EQ(hipGraphInstantiateWithFlags(&executable, graph, 0), hipSuccess);
  EXPECT_EQ(hipGraphDestroy(graph), hipSuccess);
  EXPECT_EQ(hipGraphDestroy(graph), hipErrorIllegalState);
  EXPECT_EQ(read(words_, 1)[0], 0U) << "nothing has run yet";
  for (int i = 0; i < 3; ++i) EXPECT_EQ(hipGraphLaunch(executable, i == 1 ? other_ : stream_), hipSuccess);
  EXPECT_EQ(hipStreamSynchronize(stream_), hipSuccess);
  EXPECT_EQ(read(words_, 5), (std::vector<std::uint32_t>{3, 7, 7, 7, 0})) << "launches of one graph follow each other";
  EXPECT_EQ(read(words_ + 36, 4), std::vector<std::uint32_t>(4, 5));
  EXPECT_EQ(hipGraphExecDestroy(executable), hipSuccess);
  EXPECT_EQ(hipGraphExecDestroy(executable), hipErrorInvalidValue);
  EXPECT_EQ(hipGraphLaunch(executable, stream_), hipErrorInvalidValue);
}

TEST_F(FrontGraph, events_carry_a_capture_into_other_streams_and_back) {
  begin();
  ASSERT_EQ(store(stream_, 0, 1), hipSuccess);
  ASSERT_EQ(hipEventRecord(event_, stream_), hipSuccess);
  ASSERT_EQ(hipStreamWaitEvent(other_, event_, 0), hipSuccess);
  EXPECT_EQ(status_of(other_), hipStreamCaptureStatusActive);
  unsigned long long ids[2] = {0, 1};
  hipStreamCaptureStatus status = hipStreamCaptureStatusNone;
  EXPECT_EQ(hipStreamGetCaptureInfo(stream_, &status, &ids[0]), hipSuccess);
  EXPECT_EQ(hipStreamGetCaptureInfo(other_, &status, &ids[1]), hipSuccess);
  EXPECT_EQ(ids[0], ids[1]);
  // Reads what the first stream's node wrote, so that the order shows.
  ASSERT_EQ(hipMemcpyAsync(words_ + 1, words_, 4, hipMemcpyDeviceToDevice, other_), hipSuccess);
  ASSERT_EQ(store(stream_, 2, 3), hipSuccess);
  hipGraph_t graph = nullptr;
  EXPECT_EQ(hipStreamEndCapture(other_, &graph), hipErrorStreamCaptureUnmatched);
  ASSERT_EQ(hipEventRecord(joined_, other_), hipSuccess);
  ASSERT_EQ(hipStreamWaitEvent(stream_, joined_, 0), hipSuccess);
  const hipGraphNode_t* dependencies = nullptr;
  std::size_t count = 0;
  EXPECT_EQ(hipStreamGetCaptureInfo_v2(stream_, &status, nullptr, &graph, &dependencies, &count), hipSuccess);
  EXPECT_NE(graph, nullptr);
  ASSERT_EQ(count, 2U) << "its own last node and the fork's";
  std::size_t parents = 0;
  EXPECT_EQ(hipGraphNodeGetDependencies(dependencies[1], nullptr, &parents), hipSuccess);
  EXPECT_EQ(parents, 1U);
  const hipGraphExec_t executable = end_and_instantiate();
  EXPECT_EQ(status_of(other_), hipStreamCaptureStatusNone);
  ASSERT_EQ(hipGraphLaunch(executable, stream_), hipSuccess);
  ASSERT_EQ(hipStreamSynchronize(stream_), hipSuccess);
  EXPECT_EQ(read(words_, 3), (std::vector<std::uint32_t>{1, 1, 3}));
  EXPECT_EQ(hipGraphExecDestroy(executable), hipSuccess);
  // An event of a capture that is over has nothing to wait for.
  EXPECT_EQ(hipStreamWaitEvent(other_, event_, 0), hipSuccess);
  EXPECT_EQ(hipEventQuery(event_), hipSuccess);
}

TEST_F(FrontGraph, a_fork_must_be_joined) {
  begin();
  ASSERT_EQ(hipEventRecord(event_, stream_), hipSuccess);
  ASSERT_EQ(hipStreamWaitEvent(other_, event_, 0), hipSuccess);
  ASSERT_EQ(store(other_, 0, 1), hipSuccess);
  expect_end(hipErrorStreamCaptureUnjoined);
  EXPECT_EQ(status_of(other_), hipStreamCaptureStatusNone);
}

TEST_F(FrontGraph, captures_do_not_merge_and_do_not_wait_for_work_outside) {
  ASSERT_EQ(hipEventRecord(joined_, other_), hipSuccess);
  begin(hipStreamCaptureModeRelaxed);
  EXPECT_EQ(hipStreamWaitEvent(stream_, joined_, 0), hipErrorStreamCaptureIsolation);
  expect_end(hipErrorStreamCaptureInvalidated);
  begin(hipStreamCaptureModeRelaxed);
  ASSERT_EQ(hipStreamBeginCapture(other_, hipStreamCaptureModeRelaxed), hipSuccess);
  ASSERT_EQ(hipEventRecord(event_, other_), hipSuccess);
  EXPECT_EQ(hipStreamWaitEvent(stream_, event_, 0), hipErrorStreamCaptureMerge);
  expect_end(hipErrorStreamCaptureInvalidated);
  hipGraph_t graph = nullptr;
  EXPECT_EQ(hipStreamEndCapture(other_, &graph), hipErrorStreamCaptureInvalidated);
}

TEST_F(FrontGraph, beginning_and_ending_have_their_rules) {
  hipGraph_t graph = nullptr;
  EXPECT_EQ(hipStreamBeginCapture(nullptr, hipStreamCaptureModeGlobal), hipErrorStreamCaptureUnsupported);
  EXPECT_EQ(hipStreamBeginCapture(stream_, static_cast<hipStreamCaptureMode>(3)), hipErrorInvalidValue);
  EXPECT_EQ(hipStreamEndCapture(stream_, &graph), hipErrorIllegalState);
  begin(hipStreamCaptureModeThreadLocal);
  EXPECT_EQ(hipStreamBeginCapture(stream_, hipStreamCaptureModeThreadLocal), hipErrorIllegalState);
  EXPECT_EQ(hipStreamEndCapture(stream_, nullptr), hipErrorInvalidValue);
  std::thread([&] { EXPECT_EQ(hipStreamEndCapture(stream_, &graph), hipErrorStreamCaptureWrongThread); }).join();
  expect_end(hipSuccess);
  begin(hipStreamCaptureModeRelaxed);
  std::thread([&] { EXPECT_EQ(hipStreamEndCapture(stream_, &graph), hipSuccess); }).join();
  EXPECT_EQ(hipGraphDestroy(graph), hipSuccess);
  // A stream that goes takes its capture with it, and nobody is in the way afterwards.
  hipStream_t short_lived = nullptr;
  ASSERT_EQ(hipStreamCreate(&short_lived), hipSuccess);
  ASSERT_EQ(hipStreamBeginCapture(short_lived, hipStreamCaptureModeGlobal), hipSuccess);
  EXPECT_EQ(hipStreamDestroy(short_lived), hipSuccess);
  EXPECT_EQ(hipDeviceSynchronize(), hipSuccess);
}

TEST_F(FrontGraph, waiting_breaks_a_capture) {
  std::array<std::uint32_t, 1> host{};
  ASSERT_EQ(hipEventRecord(joined_, other_), hipSuccess);
  ASSERT_EQ(hipEventSynchronize(joined_), hipSuccess);
  const auto relaxed = hipStreamCaptureModeRelaxed;
  EXPECT_EQ(in_capture(relaxed, [&] { return hipStreamSynchronize(stream_); }), hipErrorStreamCaptureUnsupported);
  EXPECT_EQ(in_capture(relaxed, [&] { return hipStreamQuery(stream_); }), hipErrorStreamCaptureUnsupported);
  EXPECT_EQ(in_capture(relaxed, [] { return hipDeviceSynchronize(); }), hipErrorStreamCaptureUnsupported);
  EXPECT_EQ(in_capture(relaxed, [&] { return hipMemset(words_, 0, 4); }), hipErrorStreamCaptureImplicit);
  EXPECT_EQ(in_capture(relaxed, [&] { return hipMemcpy(host.data(), words_, 4, hipMemcpyDeviceToHost); }),
            hipErrorStreamCaptureImplicit);
  const auto captured_event = [&](auto call) {
    return in_capture(relaxed, [&] {
      EXPECT_EQ(hipEventRecord(event_, stream_), hipSuccess);
      return call(event_);
    });
  };
  EXPECT_EQ(captured_event([](hipEvent_t event) { return hipEventQuery(event); }), hipErrorCapturedEvent);
  EXPECT_EQ(captured_event([](hipEvent_t event) { return hipEventSynchronize(event); }), hipErrorCapturedEvent);
  void* memory = nullptr;
  EXPECT_EQ(in_capture(relaxed, [&] { return hipMallocAsync(&memory, 64, stream_); }),
            hipErrorStreamCaptureUnsupported);
  // Another stream's work and its waits do no harm to a relaxed capture, only to a global one.
  EXPECT_EQ(in_capture(relaxed, [&] { return hipStreamSynchronize(other_); }), hipSuccess);
  EXPECT_EQ(in_capture(hipStreamCaptureModeGlobal, [&] { return hipStreamSynchronize(other_); }),
            hipErrorStreamCaptureUnsupported);
  EXPECT_EQ(in_capture(hipStreamCaptureModeGlobal, [&] { return store(other_, 1, 1); }), hipSuccess);
}

TEST_F(FrontGraph, unsafe_calls_break_captures_within_their_reach) {
  void* memory = nullptr;
  const std::vector<char> image = code_bytes("gfx950");
  hipModule_t module = nullptr;
  const auto allocate = [&] {
    const hipError_t error = hipMalloc(&memory, 64);
    return error;
  };
  const auto load_module = [&] { return hipModuleLoadData(&module, image.data()); };
  const auto elsewhere = [](auto call) {
    hipError_t answer = hipSuccess;
    std::thread([&] { answer = call(); }).join();
    return answer;
  };
  const auto refused = hipErrorStreamCaptureUnsupported;
  EXPECT_EQ(in_capture(hipStreamCaptureModeGlobal, allocate), refused);
  EXPECT_EQ(in_capture(hipStreamCaptureModeGlobal, load_module), refused);
  EXPECT_EQ(in_capture(hipStreamCaptureModeGlobal, [&] { return hipModuleUnload(module_); }), refused);
  EXPECT_EQ(in_capture(hipStreamCaptureModeGlobal, [&] { return hipFree(words_); }), refused);
  EXPECT_EQ(in_capture(hipStreamCaptureModeGlobal, [&] { return elsewhere(allocate); }), refused);
  EXPECT_EQ(in_capture(hipStreamCaptureModeThreadLocal, allocate), refused);
  EXPECT_EQ(in_capture(hipStreamCaptureModeThreadLocal, [&] { return elsewhere(allocate); }), hipSuccess);
  EXPECT_EQ(hipFree(memory), hipSuccess);
  EXPECT_EQ(in_capture(hipStreamCaptureModeRelaxed, allocate), hipSuccess);
  EXPECT_EQ(hipFree(memory), hipSuccess);
  // A thread that knows what it does says so.
  hipStreamCaptureMode mode = hipStreamCaptureModeRelaxed;
  ASSERT_EQ(hipThreadExchangeStreamCaptureMode(&mode), hipSuccess);
  EXPECT_EQ(mode, hipStreamCaptureModeGlobal);
  EXPECT_EQ(in_capture(hipStreamCaptureModeGlobal, load_module), hipSuccess);
  EXPECT_EQ(hipModuleUnload(module), hipSuccess);
  ASSERT_EQ(hipThreadExchangeStreamCaptureMode(&mode), hipSuccess);
  EXPECT_EQ(mode, hipStreamCaptureModeRelaxed);
}

TEST_F(FrontGraph, the_null_stream_would_wait_for_a_blocking_stream) {
  hipStream_t blocking = nullptr;
  ASSERT_EQ(hipStreamCreate(&blocking), hipSuccess);
  hipStreamCaptureStatus status = hipStreamCaptureStatusActive;
  for (const auto& call : std::vector<std::function<hipError_t()>>{
           [&] { return store(nullptr, 0, 1); }, [&] { return hipMemsetAsync(words_, 0, 4, nullptr); },
           [&] { return hipEventRecord(event_, nullptr); }, [] { return hipStreamSynchronize(nullptr); }}) {
    ASSERT_EQ(hipStreamBeginCapture(blocking, hipStreamCaptureModeRelaxed), hipSuccess);
    EXPECT_EQ(hipStreamIsCapturing(nullptr, &status), hipErrorStreamCaptureImplicit);
    EXPECT_EQ(status_of(blocking), hipStreamCaptureStatusActive) << "asking is allowed";
    EXPECT_EQ(call(), hipErrorStreamCaptureImplicit);
    hipGraph_t graph = nullptr;
    EXPECT_EQ(hipStreamEndCapture(blocking, &graph), hipErrorStreamCaptureInvalidated);
  }
  // A non-blocking stream is nothing to the null stream.
  EXPECT_EQ(in_capture(hipStreamCaptureModeRelaxed, [&] { return store(nullptr, 0, 1); }), hipSuccess);
  EXPECT_EQ(hipStreamDestroy(blocking), hipSuccess);
}

TEST_F(FrontGraph, graphs_are_built_by_hand_too) {
  hipGraph_t graph = nullptr;
  EXPECT_EQ(hipGraphCreate(&graph, 1), hipErrorInvalidValue);
  ASSERT_EQ(hipGraphCreate(&graph, 0), hipSuccess);
  std::array<hipGraphNode_t, 5> nodes{};
  const hipMemsetParams fill{.dst = words_, .elementSize = 4, .height = 1, .pitch = 0, .value = 9, .width = 1};
  ASSERT_EQ(hipGraphAddMemsetNode(&nodes[0], graph, nullptr, 0, &fill), hipSuccess);
  ASSERT_EQ(hipGraphAddMemcpyNode1D(&nodes[1], graph, &nodes[0], 1, words_ + 1, words_, 4, hipMemcpyDeviceToDevice),
            hipSuccess);
  std::uint32_t* place = words_;
  std::uint32_t value = 4;
  void* arguments[] = {static_cast<void*>(&place), static_cast<void*>(&value)};
  const hipKernelNodeParams kernel{.blockDim = {1, 1, 1},
                                   .extra = nullptr,
                                   .func = function(module_, "store"),
                                   .gridDim = {1, 1, 1},
                                   .kernelParams = arguments,
                                   .sharedMemBytes = 0};
  ASSERT_EQ(hipGraphAddKernelNode(&nodes[2], graph, &nodes[1], 1, &kernel), hipSuccess);
  ASSERT_EQ(hipGraphAddEmptyNode(&nodes[3], graph, &nodes[2], 1), hipSuccess);
  int called = 0;
  const hipHostNodeParams host{.fn = [](void* count) { ++*static_cast<int*>(count); }, .userData = &called};
  ASSERT_EQ(hipGraphAddHostNode(&nodes[4], graph, &nodes[3], 1, &host), hipSuccess);
  hipGraphExec_t executable = nullptr;
  // A circle cannot be launched.
  ASSERT_EQ(hipGraphAddDependencies(graph, &nodes[4], &nodes[0], 1), hipSuccess);
  EXPECT_EQ(hipGraphInstantiate(&executable, graph, nullptr, nullptr, 0), hipErrorInvalidValue);
  EXPECT_EQ(hipGraphDestroy(graph), hipSuccess);

  ASSERT_EQ(hipGraphCreate(&graph, 0), hipSuccess);
  // Added last, needed first.
  ASSERT_EQ(hipGraphAddKernelNode(&nodes[2], graph, nullptr, 0, &kernel), hipSuccess);
  ASSERT_EQ(hipGraphAddHostNode(&nodes[4], graph, &nodes[2], 1, &host), hipSuccess);
  ASSERT_EQ(hipGraphAddMemsetNode(&nodes[0], graph, nullptr, 0, &fill), hipSuccess);
  ASSERT_EQ(hipGraphAddDependencies(graph, &nodes[0], &nodes[2], 1), hipSuccess);
  EXPECT_EQ(hipGraphAddDependencies(graph, &nodes[0], &nodes[2], 1), hipErrorInvalidValue);
  hipGraph_t another = nullptr;
  hipGraphNode_t elsewhere = nullptr;
  ASSERT_EQ(hipGraphCreate(&another, 0), hipSuccess);
  ASSERT_EQ(hipGraphAddEmptyNode(&elsewhere, another, nullptr, 0), hipSuccess);
  EXPECT_EQ(hipGraphAddEmptyNode(&nodes[3], graph, &elsewhere, 1), hipErrorInvalidValue) << "a node of another graph";
  EXPECT_EQ(hipGraphDestroy(another), hipSuccess);
  ASSERT_EQ(hipGraphInstantiate(&executable, graph, nullptr, nullptr, 0), hipSuccess);
  EXPECT_EQ(hipGraphUpload(executable, stream_), hipSuccess);
  ASSERT_EQ(hipGraphLaunch(executable, stream_), hipSuccess);
  ASSERT_EQ(hipStreamSynchronize(stream_), hipSuccess);
  EXPECT_EQ(read(words_, 1)[0], 4U);
  EXPECT_EQ(called, 1);
  EXPECT_EQ(hipGraphExecDestroy(executable), hipSuccess);
  EXPECT_EQ(hipGraphDestroy(graph), hipSuccess);
}

TEST_F(FrontGraph, a_graph_launched_into_a_capture_becomes_a_node) {
  begin();
  ASSERT_EQ(launch(function(module_, "append"), 1, 1, stream_, words_, 6U), hipSuccess);
  const hipGraphExec_t inner = end_and_instantiate();
  begin();
  ASSERT_EQ(hipGraphLaunch(inner, stream_), hipSuccess);
  ASSERT_EQ(hipGraphLaunch(inner, stream_), hipSuccess);
  const hipGraphExec_t outer = end_and_instantiate();
  EXPECT_EQ(hipGraphExecDestroy(inner), hipSuccess);
  ASSERT_EQ(hipGraphLaunch(outer, stream_), hipSuccess);
  ASSERT_EQ(hipStreamSynchronize(stream_), hipSuccess);
  EXPECT_EQ(read(words_, 3), (std::vector<std::uint32_t>{2, 6, 6}));
  EXPECT_EQ(hipGraphExecDestroy(outer), hipSuccess);
}

TEST_F(FrontGraph, threads_capture_side_by_side) {
  constexpr int count = 8;
  std::vector<std::thread> threads;
  threads.reserve(count);
  const hipFunction_t kernel = function(module_, "append");
  std::array<std::uint32_t*, count> lists{};
  for (std::uint32_t*& list : lists) list = device_words(64);
  for (int t = 0; t < count; ++t) {
    threads.emplace_back([&, t] {
      hipStream_t stream = nullptr;
      ASSERT_EQ(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking), hipSuccess);
      for (int round = 0; round < 5; ++round) {
        hipGraph_t graph = nullptr;
        hipGraphExec_t executable = nullptr;
        ASSERT_EQ(hipStreamBeginCapture(stream, hipStreamCaptureModeRelaxed), hipSuccess);
        EXPECT_EQ(launch(kernel, 1, 1, stream, lists[t], static_cast<std::uint32_t>(t)), hipSuccess);
        ASSERT_EQ(hipStreamEndCapture(stream, &graph), hipSuccess);
        ASSERT_EQ(hipGraphInstantiate(&executable, graph, nullptr, nullptr, 0), hipSuccess);
        EXPECT_EQ(hipGraphLaunch(executable, stream), hipSuccess);
        EXPECT_EQ(hipGraphExecDestroy(executable), hipSuccess);
        EXPECT_EQ(hipGraphDestroy(graph), hipSuccess);
      }
      EXPECT_EQ(hipStreamSynchronize(stream), hipSuccess);
      EXPECT_EQ(hipStreamDestroy(stream), hipSuccess);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (std::uint32_t* list : lists) {
    EXPECT_EQ(read(list, 1)[0], 5U);
    EXPECT_EQ(hipFree(list), hipSuccess);
  }
}

}  // namespace
}  // namespace wavejit::hip_kernels
