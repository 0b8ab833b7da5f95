// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Captured calls whose lists name keys: a graph goes through what its launches find, keys go whole where no workspace
// is given, and two lists, whose parts are always merged, ask for one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/capture.h"

namespace wavejit::tests {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t slots = 640;
constexpr std::int64_t top_k = 600;
constexpr std::int64_t query_heads = 8;
constexpr std::int64_t columns = 576;  // of a latent cache

std::vector<std::int32_t> named(std::int32_t step) {
  std::vector<std::int32_t> entries;
  for (std::int32_t at = 0; at < top_k; ++at) entries.push_back((at * step) % slots);
  return entries;
}

class CaptureKeyListsTest : public CaptureTest {
 protected:
  AttentionForward forward(const DeviceBuffer& q, const DeviceBuffer& cache, const DeviceBuffer& o) const {
    AttentionForward call;
    call.q = dense(q, WAVEJIT_FP16, 1, 1, query_heads, head_dim);
    call.k = call.v = dense(cache, WAVEJIT_FP16, 1, slots, 1, head_dim);
    call.o = dense(o, WAVEJIT_FP16, 1, 1, query_heads, head_dim);
    call.modifiers.scale = 0.125F;
    return call;
  }
  AttentionLatent latent(const DeviceBuffer& q, const DeviceBuffer& cache, const DeviceBuffer& o) const {
    AttentionLatent call;
    call.q = dense(q, WAVEJIT_FP16, 1, 1, query_heads, columns);
    call.k = dense(cache, WAVEJIT_FP16, 1, slots, 1, columns);
    call.o = dense(o, WAVEJIT_FP16, 1, 1, query_heads, 512);
    call.modifiers.scale = 0.01F;
    return call;
  }
  static void give_second(AttentionForward& call) {
    call.second_k = call.k;
    call.second_v = call.v;
  }
  static void give_second(AttentionLatent& call) { call.second_k = call.k; }
  std::size_t bytes_for(const AttentionForward& call) { return engine_.workspace_bytes(call); }
  std::size_t bytes_for(const AttentionLatent& call) { return engine_.workspace_bytes(call); }

  template <typename Call>
  std::vector<std::uint16_t> direct(const Call& call, const DeviceBuffer& o) {
    engine_.run(call, stream_);
    EXPECT_EQ(hipStreamSynchronize(stream_), hipSuccess);
    return o.read<std::uint16_t>();
  }
  template <typename Call>
  hipGraphExec_t captured(const Call& call) {
    EXPECT_EQ(hipStreamBeginCapture(stream_, GetParam()), hipSuccess);
    engine_.run(call, stream_);
    hipGraph_t graph = nullptr;
    EXPECT_EQ(hipStreamEndCapture(stream_, &graph), hipSuccess);
    hipGraphExec_t executable = nullptr;
    EXPECT_EQ(hipGraphInstantiate(&executable, graph, nullptr, nullptr, 0), hipSuccess);
    EXPECT_EQ(hipGraphDestroy(graph), hipSuccess);
    return executable;
  }

  // What counts say is found by each launch, with a workspace of the call's own and, whole, without one.
  template <typename Call>
  void expect_what_launches_find(Call call, DeviceBuffer& o) {
    const auto nothing = o.read<std::uint16_t>();
    const DeviceBuffer indices(engine_, named(7));
    const std::vector<std::int32_t> few = {70};
    const std::vector<std::int32_t> many = {600};
    DeviceBuffer counts(engine_, few);
    call.key_list.indices = static_cast<const std::int32_t*>(indices.data());
    call.key_list.counts = static_cast<const std::int32_t*>(counts.data());
    call.key_list.top_k = top_k;
    call.split.splits = 2;
    const DeviceBuffer workspace(engine_, bytes_for(call));
    const auto with_few = direct(call, o);
    counts.write(many);
    const auto with_many = direct(call, o);
    ASSERT_NE(with_few, with_many);
    Call whole = call;
    whole.split.splits = 1;
    EXPECT_EQ(direct(whole, o), with_many);
    engine_.seal();
    for (const bool own : {true, false}) {
      call.split.workspace = own ? workspace.data() : nullptr;
      call.split.workspace_bytes = own ? bytes_for(call) : 0;
      hipGraphExec_t graph = captured(call);
      EXPECT_EQ(replayed(graph, stream_, counts, few, o, nothing), with_few);
      EXPECT_EQ(replayed(graph, stream_, counts, many, o, nothing), with_many);
      EXPECT_EQ(hipGraphExecDestroy(graph), hipSuccess);
    }
  }

  template <typename Call>
  void expect_a_workspace_for_two_lists(Call call, DeviceBuffer& o) {
    const auto nothing = o.read<std::uint16_t>();
    const DeviceBuffer indices(engine_, named(7));
    const DeviceBuffer others(engine_, named(11));
    const std::vector<std::int32_t> few = {70};
    const std::vector<std::int32_t> many = {130};
    DeviceBuffer counts(engine_, few);
    give_second(call);
    call.key_list.indices = static_cast<const std::int32_t*>(indices.data());
    call.key_list.top_k = 90;
    call.key_list.slots = 1;
    call.second_list.indices = static_cast<const std::int32_t*>(others.data());
    call.second_list.counts = static_cast<const std::int32_t*>(counts.data());
    call.second_list.top_k = 130;
    const auto with_few = direct(call, o);  // parts in the engine's own
    counts.write(many);
    const auto with_many = direct(call, o);
    ASSERT_NE(with_few, with_many);
    engine_.seal();
    ASSERT_EQ(hipStreamBeginCapture(stream_, GetParam()), hipSuccess);
    try {
      engine_.run(call, stream_);
      ADD_FAILURE() << "two lists in a capture, and nowhere to put their parts";
    } catch (const Error& error) {
      EXPECT_EQ(error.status(), WAVEJIT_INVALID_ARGUMENT);
      EXPECT_THAT(error.what(), HasSubstr("workspace = null while the stream is being captured and the parts of two "
                                          "lists are merged"));
    }
    EXPECT_EQ(status(), hipStreamCaptureStatusActive);
    hipGraph_t graph = nullptr;
    ASSERT_EQ(hipStreamEndCapture(stream_, &graph), hipSuccess);
    std::size_t nodes = 1;
    EXPECT_EQ(hipGraphGetNodes(graph, nullptr, &nodes), hipSuccess);
    EXPECT_EQ(nodes, 0U);
    EXPECT_EQ(hipGraphDestroy(graph), hipSuccess);

    const DeviceBuffer workspace(engine_, bytes_for(call));
    call.split.workspace = workspace.data();
    call.split.workspace_bytes = bytes_for(call);
    hipGraphExec_t executable = captured(call);
    EXPECT_EQ(replayed(executable, stream_, counts, few, o, nothing), with_few);
    EXPECT_EQ(replayed(executable, stream_, counts, many, o, nothing), with_many);
    EXPECT_EQ(hipGraphExecDestroy(executable), hipSuccess);
  }
};

TEST_P(CaptureKeyListsTest, AGraphSeesTheKeysThatItsLaunchesFindNamed) {
  const DeviceBuffer q(engine_, pattern(1, query_heads * head_dim));
  const DeviceBuffer cache(engine_, pattern(2, slots * head_dim));
  DeviceBuffer o(engine_, pattern(4, query_heads * head_dim));
  expect_what_launches_find(forward(q, cache, o), o);
}

TEST_P(CaptureKeyListsTest, AGraphOfLatentAttentionSeesTheKeysThatItsLaunchesFindNamed) {
  const DeviceBuffer q(engine_, pattern(1, query_heads * columns));
  const DeviceBuffer cache(engine_, pattern(2, slots * columns));
  DeviceBuffer o(engine_, pattern(4, query_heads * 512));
  expect_what_launches_find(latent(q, cache, o), o);
}

TEST_P(CaptureKeyListsTest, TwoListsAskForAWorkspace) {
  const DeviceBuffer q(engine_, pattern(1, query_heads * head_dim));
  const DeviceBuffer cache(engine_, pattern(2, slots * head_dim));
  DeviceBuffer o(engine_, pattern(4, query_heads * head_dim));
  expect_a_workspace_for_two_lists(forward(q, cache, o), o);
}

TEST_P(CaptureKeyListsTest, TwoListsOfLatentAttentionAskForAWorkspace) {
  const DeviceBuffer q(engine_, pattern(1, query_heads * columns));
  const DeviceBuffer cache(engine_, pattern(2, slots * columns));
  DeviceBuffer o(engine_, pattern(4, query_heads * 512));
  expect_a_workspace_for_two_lists(latent(q, cache, o), o);
}

// What a call's own line prepares is all that a sealed engine needs, of one list and of two, and is counted.
class SealedKeyListsTest : public CaptureKeyListsTest {
 protected:
  template <typename Call>
  void expect_prepared(Call call, bool two) {
    const DeviceBuffer indices(engine_, named(7));
    call.key_list.indices = static_cast<const std::int32_t*>(indices.data());
    call.key_list.top_k = top_k;
    call.key_list.slots = 1;
    call.split.splits = 2;  // else kernels of whole lists are loaded behind the call, and counted when they are there
    if (two) {
      give_second(call);
      call.second_list.indices = call.key_list.indices;
      call.second_list.top_k = 30;
    }
    const wavejit_statistics before = engine_.statistics();
    const std::string line = engine_.describe(call);
    EXPECT_THAT(line, HasSubstr(two ? " top_k=600:slots second_top_k=30" : " top_k=600:slots"));
    engine_.seal();
    try {
      engine_.run(call, stream_);
      ADD_FAILURE() << "a cold call of a sealed engine";
    } catch (const Error& error) {
      EXPECT_EQ(error.status(), WAVEJIT_SEALED);
      EXPECT_THAT(error.what(), HasSubstr("top_k=600:slots"));
    }
    engine_.unseal();
    engine_.prepare({line});
    engine_.seal();
    engine_.run(call, stream_);
    EXPECT_EQ(hipStreamSynchronize(stream_), hipSuccess);
    engine_.unseal();
    const wavejit_statistics after = engine_.statistics();
    EXPECT_EQ(after.refused_sealed, before.refused_sealed + 1);
    EXPECT_EQ(after.prepared, before.prepared + 1);
    EXPECT_EQ(after.memory_hits, before.memory_hits + 1);
    EXPECT_EQ(after.calls + after.prepared, after.memory_hits + after.disk_hits + after.misses);
  }
};

TEST_P(SealedKeyListsTest, NeedWhatTheirLinesPrepare) {
  const DeviceBuffer q(engine_, pattern(1, query_heads * columns));
  const DeviceBuffer cache(engine_, pattern(2, slots * columns));
  const DeviceBuffer o(engine_, pattern(4, query_heads * 512));
  expect_prepared(forward(q, cache, o), false);
  expect_prepared(latent(q, cache, o), false);
}

TEST_P(SealedKeyListsTest, OfTwoListsNeedWhatTheirLinesPrepare) {
  const DeviceBuffer q(engine_, pattern(1, query_heads * columns));
  const DeviceBuffer cache(engine_, pattern(2, slots * columns));
  const DeviceBuffer o(engine_, pattern(4, query_heads * 512));
  expect_prepared(forward(q, cache, o), true);
  expect_prepared(latent(q, cache, o), true);
}

INSTANTIATE_TEST_SUITE_P(Once, SealedKeyListsTest, ::testing::Values(hipStreamCaptureModeGlobal));
INSTANTIATE_TEST_SUITE_P(Modes, CaptureKeyListsTest,
                         ::testing::Values(hipStreamCaptureModeGlobal, hipStreamCaptureModeThreadLocal,
                                           hipStreamCaptureModeRelaxed));

}  // namespace
}  // namespace wavejit::tests
