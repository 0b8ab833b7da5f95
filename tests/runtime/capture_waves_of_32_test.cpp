// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Captures on a target whose waves have 32 lanes: calls become nodes and graphs have their bits, and what has no kernel
// there is refused with the reason, in a capture too.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "runtime/capture.h"

namespace wavejit::tests {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class CaptureOfWavesOf32 : public CaptureTest {
 protected:
  CaptureOfWavesOf32() : CaptureTest("gfx1201") {}

  template <typename Call>
  hipGraphExec_t captured(const Call& call, std::size_t launches) {
    EXPECT_EQ(hipStreamBeginCapture(stream_, GetParam()), hipSuccess);
    engine_.run(call, stream_);
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
  template <typename Call>
  void run(const Call& call) {
    engine_.run(call, stream_);
    ASSERT_EQ(hipStreamSynchronize(stream_), hipSuccess);
  }
  void launch(hipGraphExec_t graph) {
    ASSERT_EQ(hipGraphLaunch(graph, stream_), hipSuccess);
    ASSERT_EQ(hipStreamSynchronize(stream_), hipSuccess);
  }
  template <typename Call>
  void expect_refused(const Call& call, const std::string& reason) {
    try {
      engine_.run(call, stream_);
      ADD_FAILURE() << reason;
    } catch (const Error& error) {
      EXPECT_EQ(error.status(), WAVEJIT_UNSUPPORTED);
      EXPECT_THAT(error.what(), AllOf(HasSubstr(reason), HasSubstr("gfx1201")));
    }
  }
};

// With a workspace keys are split, and a second launch merges: two parts do not fit into a wave's registers. Lengths
// are those that a launch finds.
TEST_P(CaptureOfWavesOf32, GraphsOfDecodeFollowLengthsOnTheDevice) {
  constexpr std::int64_t keys = 2100;
  constexpr std::int64_t query_heads = 4;
  constexpr std::int64_t outputs = 2 * query_heads * head_dim;
  const DeviceBuffer q(engine_, pattern(1, outputs));
  const DeviceBuffer k(engine_, pattern(2, 2 * keys * heads * head_dim));
  const DeviceBuffer v(engine_, pattern(3, 2 * keys * heads * head_dim));
  DeviceBuffer o(engine_, pattern(4, outputs));
  DeviceBuffer lengths(engine_, std::vector<std::int32_t>{keys, 1500});
  AttentionForward call;
  call.q = dense(q, WAVEJIT_FP16, 2, 1, query_heads, head_dim);
  call.k = dense(k, WAVEJIT_FP16, 2, keys, heads, head_dim);
  call.v = dense(v, WAVEJIT_FP16, 2, keys, heads, head_dim);
  call.o = dense(o, WAVEJIT_FP16, 2, 1, query_heads, head_dim);
  call.sequences.key_lengths = static_cast<const std::int32_t*>(lengths.data());
  ASSERT_EQ(hipStreamBeginCapture(stream_, GetParam()), hipSuccess);
  try {
    engine_.run(call, stream_);
    ADD_FAILURE() << "a cold call in a capture";
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), WAVEJIT_NOT_READY);
  }
  EXPECT_EQ(status(), hipStreamCaptureStatusActive);
  hipGraph_t nothing = nullptr;
  ASSERT_EQ(hipStreamEndCapture(stream_, &nothing), hipSuccess);
  EXPECT_EQ(hipGraphDestroy(nothing), hipSuccess);
  run(call);
  engine_.seal();
  const DeviceBuffer workspace = engine_.allocate(engine_.workspace_bytes(call));
  AttentionForward split = call;
  split.split.workspace = workspace.data();
  split.split.workspace_bytes = workspace.bytes();
  for (const auto& [graph, name] : {std::pair{captured(split, 2), "split"}, {captured(call, 1), "whole"}}) {
    SCOPED_TRACE(name);
    std::vector<std::uint16_t> before;
    for (const auto& now : {std::vector<std::int32_t>{keys, 1500}, {1024, 1}, {1025, keys}}) {
      lengths.write(now);
      run(call);
      const auto direct = o.read<std::uint16_t>();
      EXPECT_NE(direct, before);
      o.write(pattern(4, outputs));
      launch(graph);
      EXPECT_EQ(o.read<std::uint16_t>(), direct);
      before = direct;
    }
    EXPECT_EQ(hipGraphExecDestroy(graph), hipSuccess);
  }
}

TEST_P(CaptureOfWavesOf32, AGraphHasTheBitsOfGradients) {
  constexpr std::int64_t count = length * heads * head_dim;
  const DeviceBuffer q(engine_, pattern(1));
  const DeviceBuffer k(engine_, pattern(2));
  const DeviceBuffer v(engine_, pattern(3));
  const DeviceBuffer o(engine_, pattern(4));
  const DeviceBuffer d_o(engine_, pattern(5));
  DeviceBuffer dq(engine_, pattern(6));
  DeviceBuffer dk(engine_, pattern(6));
  DeviceBuffer dv(engine_, pattern(6));
  const DeviceBuffer lse(engine_, std::vector<float>(length * heads, 100.0F));
  const auto tensor = [](const DeviceBuffer& buffer) {
    return dense(buffer, WAVEJIT_FP16, 1, length, heads, head_dim);
  };
  AttentionBackward call;
  call.q = tensor(q);
  call.k = tensor(k);
  call.v = tensor(v);
  call.o = tensor(o);
  call.d_o = tensor(d_o);
  call.dq = tensor(dq);
  call.dk = tensor(dk);
  call.dv = tensor(dv);
  call.lse = dense(lse, WAVEJIT_FP32, 1, heads, length, 1);
  call.mask.bits = WAVEJIT_MASK_CAUSAL;
  const DeviceBuffer workspace = engine_.allocate(engine_.workspace_bytes(call));
  call.split.workspace = workspace.data();
  call.split.workspace_bytes = workspace.bytes();
  const auto taken = [&] {
    std::vector<std::uint16_t> all;
    for (DeviceBuffer* const each : {&dq, &dk, &dv}) {
      const auto values = each->read<std::uint16_t>();
      EXPECT_NE(values, pattern(6));
      all.insert(all.end(), values.begin(), values.end());
      each->write(pattern(6));
    }
    EXPECT_EQ(all.size(), 3U * count);
    return all;
  };
  run(call);
  const auto direct = taken();
  engine_.seal();
  hipGraphExec_t graph = captured(call, 2);
  for (int round = 0; round < 2; ++round) {
    launch(graph);
    EXPECT_EQ(taken(), direct);
  }
  EXPECT_EQ(hipGraphExecDestroy(graph), hipSuccess);
}

TEST_P(CaptureOfWavesOf32, WhatHasNoKernelIsRefusedAndBreaksNoCapture) {
  const DeviceBuffer memory(engine_, pattern(1, 2 * length * 576));
  const DeviceBuffer numbers(engine_, std::vector<std::int32_t>(length, 0));
  DeviceBuffer out(engine_, pattern(2, length * 576));
  const auto forward = [&](std::int64_t dims) {
    AttentionForward call;
    for (wavejit_tensor* const each : {&call.q, &call.k, &call.v})
      *each = dense(memory, WAVEJIT_FP16, 1, length, 1, dims);
    call.o = dense(out, WAVEJIT_FP16, 1, length, 1, dims);
    return call;
  };
  ASSERT_EQ(hipStreamBeginCapture(stream_, GetParam()), hipSuccess);
  expect_refused(forward(256), "head dim 256 leaves too few registers");
  AttentionForward listed = forward(head_dim);
  listed.key_list.indices = static_cast<const std::int32_t*>(numbers.data());
  listed.key_list.heads = 1;
  listed.key_list.top_k = 1;
  expect_refused(listed, "a list of keys has no kernel where waves have 32 lanes");
  AttentionForward bytes = forward(head_dim);
  for (wavejit_tensor* const each : {&bytes.q, &bytes.k, &bytes.v})
    *each = dense(memory, WAVEJIT_E4M3, 1, length, 1, head_dim);
  expect_refused(bytes, "queries=e4m3 has no kernel where waves have 32 lanes");
  AttentionLatent latent;
  latent.q = dense(memory, WAVEJIT_FP16, 1, 1, 16, 576);
  latent.k = dense(memory, WAVEJIT_FP16, 1, length, 1, 576);
  latent.o = dense(out, WAVEJIT_FP16, 1, 1, 16, 512);
  latent.modifiers.scale = 1;
  expect_refused(latent, "attention_latent has no kernels for gfx1201");
  EXPECT_EQ(status(), hipStreamCaptureStatusActive);
  hipGraph_t graph = nullptr;
  ASSERT_EQ(hipStreamEndCapture(stream_, &graph), hipSuccess);
  std::size_t nodes = 1;
  EXPECT_EQ(hipGraphGetNodes(graph, nullptr, &nodes), hipSuccess);
  EXPECT_EQ(nodes, 0U);
  EXPECT_EQ(hipGraphDestroy(graph), hipSuccess);
  EXPECT_EQ(out.read<std::uint16_t>(), pattern(2, length * 576)) << "nothing has run";
}

INSTANTIATE_TEST_SUITE_P(WavesOf32, CaptureOfWavesOf32,
                         ::testing::Values(hipStreamCaptureModeGlobal, hipStreamCaptureModeThreadLocal,
                                           hipStreamCaptureModeRelaxed));

}  // namespace
}  // namespace wavejit::tests
