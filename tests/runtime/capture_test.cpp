// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The public interface and stream capture on the simulated GPU: cold calls leave a capture alone, warm calls become
// nodes, and a graph that is launched computes the same bits. Engines on devices of their own, called from any thread's
// device.
#include "runtime/capture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <thread>
#include <vector>
#include <wavejit/wavejit.hpp>

namespace wavejit::tests {
namespace {

using ::testing::HasSubstr;

// One problem with its memory on an engine's device.
struct Problem {
  explicit Problem(Engine& engine)
      : q(engine, pattern(1)), k(engine, pattern(2)), v(engine, pattern(3)), o(engine, pattern(4)) {
    const auto tensor = [](const DeviceBuffer& buffer) {
      return dense(buffer, WAVEJIT_FP16, 1, length, heads, head_dim);
    };
    call.q = tensor(q);
    call.k = tensor(k);
    call.v = tensor(v);
    call.o = tensor(o);
    call.modifiers.scale = 0.125F;
  }
  std::vector<std::uint16_t> result() const { return o.read<std::uint16_t>(); }
  void clear() { o.write(pattern(4)); }

  DeviceBuffer q, k, v, o;
  AttentionForward call;
};

constexpr const char* line = "attention_forward fp16 b1 q40 k40 h2 d64";

TEST_P(CaptureTest, ColdIsRefusedWarmIsCapturedAndReplaysTheSameBits) {
  Problem problem(engine_);
  ASSERT_EQ(hipStreamBeginCapture(stream_, GetParam()), hipSuccess);
  try {
    engine_.attention_forward(problem.call, stream_);
    ADD_FAILURE() << "a cold call in a capture";
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), WAVEJIT_NOT_READY);
    EXPECT_THAT(error.what(), HasSubstr(line));
  }
  EXPECT_EQ(status(), hipStreamCaptureStatusActive);
  // Preparing allocates and loads, here even on the capturing thread, and breaks nothing.
  engine_.prepare({line});
  EXPECT_EQ(status(), hipStreamCaptureStatusActive);
  engine_.seal();
  engine_.attention_forward(problem.call, stream_);
  problem.call.modifiers.scale = 100;  // the captured call keeps its own
  hipGraph_t graph = nullptr;
  ASSERT_EQ(hipStreamEndCapture(stream_, &graph), hipSuccess);
  std::size_t nodes = 0;
  EXPECT_EQ(hipGraphGetNodes(graph, nullptr, &nodes), hipSuccess);
  EXPECT_EQ(nodes, 1U) << "the refused call left nothing behind";
  EXPECT_EQ(problem.result(), pattern(4)) << "nothing has run";

  hipGraphExec_t executable = nullptr;
  ASSERT_EQ(hipGraphInstantiate(&executable, graph, nullptr, nullptr, 0), hipSuccess);
  problem.call.modifiers.scale = 0.125F;
  engine_.attention_forward(problem.call, stream_);
  ASSERT_EQ(hipStreamSynchronize(stream_), hipSuccess);
  const auto direct = problem.result();
  EXPECT_NE(direct, pattern(4));
  for (int round = 0; round < 3; ++round) {
    problem.clear();
    ASSERT_EQ(hipGraphLaunch(executable, stream_), hipSuccess);
    ASSERT_EQ(hipStreamSynchronize(stream_), hipSuccess);
    EXPECT_EQ(problem.result(), direct);
  }
  EXPECT_EQ(hipGraphExecDestroy(executable), hipSuccess);
  EXPECT_EQ(hipGraphDestroy(graph), hipSuccess);
  const wavejit_statistics statistics = engine_.statistics();
  EXPECT_EQ(statistics.refused_capturing, 1U);
  EXPECT_EQ(statistics.compiled + statistics.disk_hits, 1U);
  EXPECT_EQ(statistics.memory_hits, 2U);
}

TEST_P(CaptureTest, AColdCallOnAnotherThreadBreaksNoCapture) {
  Problem problem(engine_);
  ASSERT_EQ(hipStreamBeginCapture(stream_, GetParam()), hipSuccess);
  std::thread([&] {
    ASSERT_EQ(hipSetDevice(device_of(problem.q)), hipSuccess);
    hipStream_t mine = nullptr;
    ASSERT_EQ(hipStreamCreateWithFlags(&mine, hipStreamNonBlocking), hipSuccess);
    EXPECT_NO_THROW(engine_.attention_forward(problem.call, mine));
  }).join();
  EXPECT_EQ(status(), hipStreamCaptureStatusActive);
  hipGraph_t graph = nullptr;
  EXPECT_EQ(hipStreamEndCapture(stream_, &graph), hipSuccess);
  EXPECT_EQ(hipGraphDestroy(graph), hipSuccess);
  engine_.synchronize();
  EXPECT_NE(problem.result(), pattern(4));
}

// Decode that `auto` splits, and merges in the same launch: one call outside the capture loads what a captured one
// needs, with a workspace of the caller's or with none, which leaves keys whole. Lengths that change on the device
// between replays are those that count.
TEST_P(CaptureTest, GraphsOfDecodeFollowLengthsOnTheDevice) {
  constexpr std::int64_t keys = 2100;
  constexpr std::int64_t query_heads = 4;
  const DeviceBuffer q(engine_, pattern(1, 2 * query_heads * head_dim));
  const DeviceBuffer k(engine_, pattern(2, 2 * keys * heads * head_dim));
  const DeviceBuffer v(engine_, pattern(3, 2 * keys * heads * head_dim));
  DeviceBuffer o(engine_, pattern(4, 2 * query_heads * head_dim));
  DeviceBuffer lengths(engine_, std::vector<std::int32_t>{keys, 1500});
  AttentionForward call;
  call.q = dense(q, WAVEJIT_FP16, 2, 1, query_heads, head_dim);
  call.k = dense(k, WAVEJIT_FP16, 2, keys, heads, head_dim);
  call.v = dense(v, WAVEJIT_FP16, 2, keys, heads, head_dim);
  call.o = dense(o, WAVEJIT_FP16, 2, 1, query_heads, head_dim);
  call.sequences.key_lengths = static_cast<const std::int32_t*>(lengths.data());
  engine_.attention_forward(call, stream_);
  ASSERT_EQ(hipStreamSynchronize(stream_), hipSuccess);
  engine_.seal();
  const DeviceBuffer workspace = engine_.allocate(engine_.workspace_bytes(call));
  ASSERT_GT(workspace.bytes(), 0U);
  for (const bool with_workspace : {false, true}) {
    AttentionForward captured = call;
    if (with_workspace) {
      captured.split.workspace = workspace.data();
      captured.split.workspace_bytes = workspace.bytes();
    }
    ASSERT_EQ(hipStreamBeginCapture(stream_, GetParam()), hipSuccess);
    engine_.attention_forward(captured, stream_);
    hipGraph_t graph = nullptr;
    ASSERT_EQ(hipStreamEndCapture(stream_, &graph), hipSuccess);
    std::size_t nodes = 0;
    EXPECT_EQ(hipGraphGetNodes(graph, nullptr, &nodes), hipSuccess);
    EXPECT_EQ(nodes, 1U);
    hipGraphExec_t executable = nullptr;
    ASSERT_EQ(hipGraphInstantiate(&executable, graph, nullptr, nullptr, 0), hipSuccess);
    std::vector<std::uint16_t> before;
    for (const auto& now : {std::vector<std::int32_t>{keys, 1500}, {1024, 1}, {1025, keys}}) {
      lengths.write(now);
      engine_.attention_forward(call, stream_);
      ASSERT_EQ(hipStreamSynchronize(stream_), hipSuccess);
      const auto direct = o.read<std::uint16_t>();
      EXPECT_NE(direct, before);
      o.write(pattern(4, 2 * query_heads * head_dim));
      ASSERT_EQ(hipGraphLaunch(executable, stream_), hipSuccess);
      ASSERT_EQ(hipStreamSynchronize(stream_), hipSuccess);
      EXPECT_EQ(o.read<std::uint16_t>(), direct);
      before = direct;
    }
    EXPECT_EQ(hipGraphExecDestroy(executable), hipSuccess);
    EXPECT_EQ(hipGraphDestroy(graph), hipSuccess);
  }
}

// Keys in pages: between replays tables, lengths and paddings change on the device. Entries past a length are garbage.
TEST_P(CaptureTest, GraphsOfPagedDecodeFollowTablesOnTheDevice) {
  constexpr std::int64_t pages = 12;
  constexpr std::int64_t page = 16;
  constexpr std::int64_t columns = 4;
  constexpr std::int64_t query_heads = 4;
  const DeviceBuffer q(engine_, pattern(1, 2 * query_heads * head_dim));
  const DeviceBuffer k(engine_, pattern(2, pages * page * heads * head_dim));
  const DeviceBuffer v(engine_, pattern(3, pages * page * heads * head_dim));
  DeviceBuffer o(engine_, pattern(4, 2 * query_heads * head_dim));
  struct Step {
    std::vector<std::int32_t> table;
    std::vector<std::int32_t> lengths;
    std::vector<std::int32_t> first_keys;
  };
  const std::vector<Step> steps = {{{3, 0, 7, -1, 11, 2, 5, 8}, {40, 64}, {0, 0}},
                                   {{3, 0, 7, 4, 11, 2, 5, 8}, {41, 1}, {0, 63}},
                                   {{1, -9, 1 << 30, 7, 6, 6, 10, -1}, {16, 40}, {0, 3}},
                                   {{1 << 30, -1, -1, -1, 0, 9, 10, 11}, {0, 64}, {0, 0}}};
  DeviceBuffer table(engine_, steps[0].table);
  DeviceBuffer lengths(engine_, steps[0].lengths);
  DeviceBuffer first_keys(engine_, steps[0].first_keys);
  AttentionForward call;
  call.q = dense(q, WAVEJIT_FP16, 2, 1, query_heads, head_dim);
  call.k = dense(k, WAVEJIT_FP16, pages, page, heads, head_dim);
  call.v = dense(v, WAVEJIT_FP16, pages, page, heads, head_dim);
  call.o = dense(o, WAVEJIT_FP16, 2, 1, query_heads, head_dim);
  call.pages.block_table = static_cast<const std::int32_t*>(table.data());
  call.pages.table_columns = columns;
  call.sequences.key_lengths = static_cast<const std::int32_t*>(lengths.data());
  call.sequences.first_keys = static_cast<const std::int32_t*>(first_keys.data());
  call.sequences.max_key_length = columns * page;
  engine_.attention_forward(call, stream_);
  ASSERT_EQ(hipStreamSynchronize(stream_), hipSuccess);
  engine_.seal();
  ASSERT_EQ(hipStreamBeginCapture(stream_, GetParam()), hipSuccess);
  engine_.attention_forward(call, stream_);
  hipGraph_t graph = nullptr;
  ASSERT_EQ(hipStreamEndCapture(stream_, &graph), hipSuccess);
  hipGraphExec_t executable = nullptr;
  ASSERT_EQ(hipGraphInstantiate(&executable, graph, nullptr, nullptr, 0), hipSuccess);
  std::vector<std::uint16_t> before;
  for (const Step& step : steps) {
    table.write(step.table);
    lengths.write(step.lengths);
    first_keys.write(step.first_keys);
    engine_.attention_forward(call, stream_);
    ASSERT_EQ(hipStreamSynchronize(stream_), hipSuccess);
    const auto direct = o.read<std::uint16_t>();
    EXPECT_NE(direct, before);
    o.write(pattern(4, 2 * query_heads * head_dim));
    ASSERT_EQ(hipGraphLaunch(executable, stream_), hipSuccess);
    ASSERT_EQ(hipStreamSynchronize(stream_), hipSuccess);
    EXPECT_EQ(o.read<std::uint16_t>(), direct);
    before = direct;
  }
  EXPECT_EQ(hipGraphExecDestroy(executable), hipSuccess);
  EXPECT_EQ(hipGraphDestroy(graph), hipSuccess);
}

// Walks, and the order in which they are gone through, are made of the counts that a launch finds: no host has read
// them before.
TEST_P(CaptureTest, AGraphGoesThroughTheListsThatItFinds) {
  constexpr std::int64_t rows = 192;
  const std::vector<std::int32_t> few = {1, 2, 3, 3, 1, 2};
  const std::vector<std::int32_t> more = {3, 1, 1, 2, 3, 1};
  const std::int64_t numbers = rows * heads * head_dim;
  const DeviceBuffer q(engine_, pattern(1, numbers));
  const DeviceBuffer k(engine_, pattern(2, numbers));
  const DeviceBuffer v(engine_, pattern(3, numbers));
  DeviceBuffer o(engine_, pattern(4, numbers));
  const DeviceBuffer indices(engine_, std::vector<std::int32_t>{0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2});
  DeviceBuffer counts(engine_, few);
  AttentionForward call;
  const auto tensor = [](const DeviceBuffer& buffer) { return dense(buffer, WAVEJIT_FP16, 1, rows, heads, head_dim); };
  call.q = tensor(q);
  call.k = tensor(k);
  call.v = tensor(v);
  call.o = tensor(o);
  call.modifiers.scale = 0.125F;
  call.blocks.list_indices = static_cast<const std::int32_t*>(indices.data());
  call.blocks.list_counts = static_cast<const std::int32_t*>(counts.data());
  call.blocks.list_capacity = call.blocks.list_row_blocks = 3;
  call.blocks.list_rows = call.blocks.list_keys = 64;
  call.blocks.list_batches = 1;
  call.blocks.list_heads = heads;
  const std::size_t bytes = engine_.workspace_bytes(call);
  const DeviceBuffer workspace(engine_, bytes);
  call.split.workspace = workspace.data();
  call.split.workspace_bytes = bytes;
  std::vector<std::vector<std::uint16_t>> direct;
  for (const auto& each : {few, more}) {
    counts.write(each);
    engine_.attention_forward(call, stream_);
    ASSERT_EQ(hipStreamSynchronize(stream_), hipSuccess);
    direct.push_back(o.read<std::uint16_t>());
  }
  ASSERT_NE(direct[0], direct[1]);

  engine_.seal();
  ASSERT_EQ(hipStreamBeginCapture(stream_, GetParam()), hipSuccess);
  engine_.attention_forward(call, stream_);
  hipGraph_t graph = nullptr;
  ASSERT_EQ(hipStreamEndCapture(stream_, &graph), hipSuccess);
  hipGraphExec_t executable = nullptr;
  ASSERT_EQ(hipGraphInstantiate(&executable, graph, nullptr, nullptr, 0), hipSuccess);
  EXPECT_EQ(replayed(executable, stream_, counts, few, o, pattern(4, numbers)), direct[0]);
  EXPECT_EQ(replayed(executable, stream_, counts, more, o, pattern(4, numbers)), direct[1]);
  EXPECT_EQ(hipGraphExecDestroy(executable), hipSuccess);
  EXPECT_EQ(hipGraphDestroy(graph), hipSuccess);
}

// The same of an indexer that is sealed: cold it names its problem, warm its graph chooses among the scores that it
// finds.
TEST_P(CaptureTest, AGraphChoosesAmongTheScoresThatItFinds) {
  constexpr std::int64_t keys = 300;
  constexpr std::int64_t top_k = 3;
  std::vector<float> rising(keys);
  for (std::size_t key = 0; key < rising.size(); ++key) rising[key] = static_cast<float>(key);
  const std::vector<float> falling(rising.rbegin(), rising.rend());
  DeviceBuffer scores(engine_, rising);
  const std::vector<std::int32_t> none(top_k, -7);
  DeviceBuffer indices(engine_, none);
  SparseIndexer call;
  call.scores = dense(scores, WAVEJIT_FP32, 1, 1, 1, keys);
  call.indices = static_cast<std::int32_t*>(indices.data());
  call.top_k = top_k;
  ASSERT_EQ(hipStreamBeginCapture(stream_, GetParam()), hipSuccess);
  try {
    engine_.sparse_indexer(call, stream_);
    ADD_FAILURE() << "a cold call in a capture";
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), WAVEJIT_NOT_READY);
    EXPECT_THAT(error.what(), HasSubstr("sparse_indexer"));
  }
  EXPECT_EQ(status(), hipStreamCaptureStatusActive);
  hipGraph_t graph = nullptr;
  ASSERT_EQ(hipStreamEndCapture(stream_, &graph), hipSuccess);
  EXPECT_EQ(hipGraphDestroy(graph), hipSuccess);

  engine_.sparse_indexer(call, stream_);
  ASSERT_EQ(hipStreamSynchronize(stream_), hipSuccess);
  engine_.seal();
  ASSERT_EQ(hipStreamBeginCapture(stream_, GetParam()), hipSuccess);
  engine_.sparse_indexer(call, stream_);
  ASSERT_EQ(hipStreamEndCapture(stream_, &graph), hipSuccess);
  hipGraphExec_t executable = nullptr;
  ASSERT_EQ(hipGraphInstantiate(&executable, graph, nullptr, nullptr, 0), hipSuccess);
  EXPECT_EQ(replayed(executable, stream_, scores, rising, indices, none), (std::vector<std::int32_t>{297, 298, 299}));
  EXPECT_EQ(replayed(executable, stream_, scores, falling, indices, none), (std::vector<std::int32_t>{0, 1, 2}));
  EXPECT_EQ(hipGraphExecDestroy(executable), hipSuccess);
  EXPECT_EQ(hipGraphDestroy(graph), hipSuccess);
}

INSTANTIATE_TEST_SUITE_P(Modes, CaptureTest,
                         ::testing::Values(hipStreamCaptureModeGlobal, hipStreamCaptureModeThreadLocal,
                                           hipStreamCaptureModeRelaxed));

TEST(Devices, EachEngineHasItsOwnWhateverDeviceIsCurrent) {
  Engine first(on(test_device("gfx942", 3, 0)));
  Engine third(on(test_device("gfx942", 3, 2)));
  Problem on_first(first);
  Problem on_third(third);
  const int device = device_of(on_third.q);
  EXPECT_EQ(device, device_of(on_first.q) + 2);
  // A stream of the third device, used by a thread whose current device is another.
  ASSERT_EQ(hipSetDevice(device), hipSuccess);
  hipStream_t stream = nullptr;
  ASSERT_EQ(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking), hipSuccess);
  ASSERT_EQ(hipSetDevice(0), hipSuccess);
  first.attention_forward(on_first.call);
  for (int round = 0; round < 2; ++round) third.attention_forward(on_third.call, stream);
  int current = -1;
  EXPECT_EQ(hipGetDevice(&current), hipSuccess);
  EXPECT_EQ(current, 0);
  EXPECT_EQ(hipGetLastError(), hipSuccess);
  first.synchronize();
  third.synchronize();
  EXPECT_EQ(on_first.result(), on_third.result());
  EXPECT_NE(on_first.result(), pattern(4));
  EXPECT_EQ(hipStreamDestroy(stream), hipSuccess);
  EXPECT_THAT(third.statistics_json(), HasSubstr("\"memory_hits\":1"));
}

}  // namespace
}  // namespace wavejit::tests
