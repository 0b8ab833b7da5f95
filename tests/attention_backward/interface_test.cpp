// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a wrong call of attention_backward is told.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "attention_backward/backward_run.h"
#include "wavejit/wavejit.hpp"

namespace wavejit::tests {
namespace {

using ::testing::HasSubstr;

// Launches of this process, so far.
std::uint64_t launches() {
  wavejit_simgpu_counters counters{};
  counters.size = sizeof counters;
  wavejit_simgpu_get_counters(&counters);
  return counters.launches;
}

class BackwardInterface : public ::testing::Test {
 protected:
  void refused(const ChangeCall& change, const std::string& field, wavejit_status status = WAVEJIT_INVALID_ARGUMENT) {
    const std::uint64_t before = launches();
    const BackwardOutput output = run_backward(engine_.get(), arrays_, change);
    EXPECT_EQ(output.status, status) << field;
    EXPECT_THAT(output.detail, HasSubstr(field));
    EXPECT_EQ(launches(), before) << field << ": refused, and something was launched";
  }
  Arrays arrays_ = backward_arrays("bf16 b1 q40 k40 h2/1 d64 causal");
  Engine engine_{"gfx950"};
};

TEST_F(BackwardInterface, NamesTheFieldThatIsWrong) {
  refused([](auto& call) { call.lse.data = nullptr; }, "lse.data");
  refused([](auto& call) { call.lse.sizes[1] = 1; }, "lse.sizes[1]");
  refused([](auto& call) { call.d_o.sizes[1] = 39; }, "d_o.sizes[1]");
  refused([](auto& call) { call.o.dtype = WAVEJIT_FP16; }, "o.dtype");
  refused([](auto& call) { call.dk.dtype = WAVEJIT_FP32; }, "dk.dtype");
  refused([](auto& call) { call.dq.data = call.q.data; }, "dq.data");
  refused([](auto& call) { call.dv.data = call.dk.data; }, "dk.data");
  refused([](auto& call) { call.dq.strides[1] = 0; }, "dq.strides[1]");
  refused([](auto& call) { call.split.workspace_bytes -= 4; }, "workspace_bytes");
  refused([](auto& call) { call.split.workspace = static_cast<char*>(call.split.workspace) + 4; }, "workspace");
  refused([](auto& call) { call.mask.bits = 16; }, "mask = 16");
  refused([](auto& call) { call.mask.bits = WAVEJIT_MASK_CHUNKED; }, "mask = 8", WAVEJIT_UNSUPPORTED);
  refused([](auto& call) { call.modifiers.softcap = -1; }, "softcap");
  refused([](auto& call) { call.k.sizes[2] = 3; }, "k.sizes[2]");
  refused([](auto& call) { call.head.size -= 8; }, "head.size");
  refused([](auto& call) { call.head.flags = 2; }, "flags");
  refused([](auto& call) { call.delta = call.lse; }, "o.data");
  refused([](auto& call) { call.d_sink = call.lse, call.d_sink.data = call.split.workspace; }, "sink.data");
  const auto sinks = [](auto& call) {
    call.modifiers.sink = call.d_sink = {.data = call.split.workspace,
                                         .dtype = WAVEJIT_FP32,
                                         .reserved = 0,
                                         .sizes = {1, 2, 1, 1},
                                         .strides = {2, 1, 1, 1}};
  };
  refused([&](auto& call) { sinks(call); }, "d_sink.data");  // in the memory of the sinks
  refused([&](auto& call) { sinks(call), call.d_sink.sizes[1] = 1; }, "d_sink.sizes[1]");
  const auto wrong_sinks = [&](auto& call) {
    sinks(call);
    call.d_sink.data = static_cast<char*>(call.split.workspace) + 64;
    call.modifiers.sink.dtype = WAVEJIT_BF16;
  };
  refused(wrong_sinks, "sink.dtype");
  const auto bias = [](auto& call) {
    call.modifiers.bias = {.data = call.split.workspace,
                           .dtype = WAVEJIT_BF16,
                           .reserved = 0,
                           .sizes = {1, 1, 40, 40},
                           .strides = {1600, 1600, 40, 1}};
    call.d_bias = call.modifiers.bias;
    call.d_bias.data =
        static_cast<char*>(call.split.workspace) + (std::ptrdiff_t{1} << 30);  // nobody's: nothing is launched
  };
  refused([&](auto& call) { bias(call), call.d_bias.data = call.modifiers.bias.data; }, "d_bias.data");
  refused([&](auto& call) { bias(call), call.modifiers.bias.data = nullptr; }, "bias.data");
  refused([&](auto& call) { bias(call), call.d_bias.sizes[1] = 2; }, "d_bias.sizes[1]");
  refused([&](auto& call) { bias(call), call.d_bias.dtype = WAVEJIT_FP16; }, "d_bias.dtype");
  refused([&](auto& call) { bias(call), call.d_bias.strides[2] = 0; }, "d_bias.strides");
  refused([&](auto& call) { bias(call), call.modifiers.bias.sizes[3] = 39; }, "bias.sizes[3]");
  refused([](auto& call) { call.lse.dtype = WAVEJIT_BF16; }, "lse.dtype");
  refused([](auto& call) { call.d_o.dtype = WAVEJIT_FP16; }, "d_o.dtype");
  refused([](auto& call) { call.d_lse = call.lse, call.d_lse.sizes[2] = 39; }, "d_lse.sizes[2]");
  refused([](auto& call) { call.sequences.query_starts = static_cast<const std::int32_t*>(call.split.workspace); },
          "sequences");
}

// What says that nothing was launched counts what is.
TEST_F(BackwardInterface, CountsLaunches) {
  const std::uint64_t before = launches();
  EXPECT_EQ(run_backward(engine_.get(), arrays_).status, WAVEJIT_OK);
  EXPECT_EQ(launches(), before + 2);
}

using Tensor = std::pair<const char*, wavejit_tensor wavejit_attention_backward_arguments::*>;
using Arguments = wavejit_attention_backward_arguments;

TEST_F(BackwardInterface, RefusesGradientsInTheMemoryOfInputs) {
  for (const auto& [gradient, written] : {Tensor{"dq", &Arguments::dq}, {"dk", &Arguments::dk}, {"dv", &Arguments::dv}})
    for (const auto& [input, read] : {Tensor{"q", &Arguments::q},
                                      {"k", &Arguments::k},
                                      {"v", &Arguments::v},
                                      {"o", &Arguments::o},
                                      {"d_o", &Arguments::d_o},
                                      {"lse", &Arguments::lse}}) {
      SCOPED_TRACE(std::string(gradient) + " in " + input);
      refused([&](auto& call) { (call.*written).data = (call.*read).data; }, std::string(gradient) + ".data");
      // Its last 16 bytes alone.
      const auto last = [&](auto& call) {
        const wavejit_tensor& of = call.*read;
        const std::int64_t bytes = of.sizes[0] * of.sizes[1] * of.sizes[2] * of.sizes[3] * (input[0] == 'l' ? 4 : 2);
        (call.*written).data = static_cast<char*>(of.data) + bytes - 16;
      };
      refused(last, std::string(gradient) + ".data");
    }
}

TEST_F(BackwardInterface, RefusesDtypesThatDiffer) {
  for (const auto& [name, tensor] : {Tensor{"k", &Arguments::k},
                                     {"v", &Arguments::v},
                                     {"o", &Arguments::o},
                                     {"d_o", &Arguments::d_o},
                                     {"dq", &Arguments::dq}}) {
    refused([&](auto& call) { (call.*tensor).dtype = WAVEJIT_FP16; }, std::string(name) + ".dtype");
  }
  for (const auto& [name, tensor] : {Tensor{"dk", &Arguments::dk}, {"dv", &Arguments::dv}})
    for (const std::int32_t other : {WAVEJIT_FP16, WAVEJIT_FP32})
      refused([&](auto& call) { (call.*tensor).dtype = other; }, std::string(name) + ".dtype");
}

// A forward call rounds O to 8 bits for whoever reads it next. Gradients need it as it was before that.
TEST_F(BackwardInterface, RefusesAnOutputIn8Bits) {
  const std::string wide = "; accepted: 2 (bf16), the dtype of q, or 3 (fp32)";
  refused([](auto& call) { call.o.dtype = WAVEJIT_E4M3; }, "o.dtype = 4 (e4m3)" + wide);
  refused([](auto& call) { call.o.dtype = WAVEJIT_INT8; }, "o.dtype = 8 (int8)" + wide);
}

TEST_F(BackwardInterface, RefusesOtherShapes) {
  for (const auto& [name, tensor] : {Tensor{"d_o", &Arguments::d_o},
                                     {"o", &Arguments::o},
                                     {"dq", &Arguments::dq},
                                     {"dk", &Arguments::dk},
                                     {"dv", &Arguments::dv},
                                     {"v", &Arguments::v}})
    for (int d = 0; d < 4; ++d) {
      const std::string field = std::string(name) + ".sizes[" + std::to_string(d) + "]";
      refused([&](auto& call) { (call.*tensor).sizes[d] += 8; }, field);
    }
  for (int d = 0; d < 4; ++d)
    refused([&](auto& call) { call.lse.sizes[d] += 1; }, "lse.sizes[" + std::to_string(d) + "]");
}

TEST_F(BackwardInterface, RefusesAWorkspaceThatIsTooSmall) {
  refused([](auto& call) { call.split.workspace_bytes -= 1; }, "workspace_bytes = 319; accepted: 320 and more");
  refused([](auto& call) { call.split.workspace_bytes = 0; }, "workspace_bytes");
  refused([](auto& call) { call.split.workspace = nullptr; }, "workspace_bytes");
}

TEST_F(BackwardInterface, RefusesWhatHasNoKernel) {
  const auto dims = [](auto& call) {
    for (wavejit_tensor* tensor : {&call.q, &call.k, &call.v, &call.o, &call.d_o, &call.dq, &call.dk, &call.dv})
      tensor->sizes[3] = 32;
  };
  refused(dims, "q.sizes[3] = 32", WAVEJIT_UNSUPPORTED);
  refused([](auto& call) { call.q.dtype = WAVEJIT_FP32; }, "q.dtype", WAVEJIT_UNSUPPORTED);
}

TEST_F(BackwardInterface, TakesMemoryOfTheEngineWithoutAWorkspace) {
  const BackwardOutput own = run_backward(engine_.get(), arrays_);
  const BackwardOutput other = run_backward(engine_.get(), arrays_, [](auto& call) {
    call.split.workspace = nullptr;
    call.split.workspace_bytes = 0;
  });
  EXPECT_EQ(other.status, WAVEJIT_OK) << other.detail;
  EXPECT_TRUE(own == other);
}

// Every field of the C++ struct reaches the one of its name.
TEST_F(BackwardInterface, OfCpp) {
  AttentionBackward call;
  call.dv.sizes[3] = 64;
  call.modifiers.alibi.sizes[1] = 2;
  call.d_lse.sizes[2] = 7;
  call.modifiers.softcap = 3;
  call.modifiers.scale = 0.5F;
  call.mask.window_right = 9;
  call.sequences.max_key_length = 11;
  call.split.workspace_bytes = 12;
  call.d_sink.sizes[1] = 13;
  call.sums_behind = 2;
  const wavejit_attention_backward_arguments c = call.to_c();
  EXPECT_EQ(c.head.size, sizeof c);
  EXPECT_EQ(c.dv.sizes[3], 64);
  EXPECT_EQ(c.modifiers.alibi.sizes[1], 2);
  EXPECT_EQ(c.d_lse.sizes[2], 7);
  EXPECT_EQ(c.modifiers.softcap, 3);
  EXPECT_EQ(c.modifiers.scale, 0.5F);
  EXPECT_EQ(c.mask.window_right, 9);
  EXPECT_EQ(c.sequences.max_key_length, 11);
  EXPECT_EQ(c.split.workspace_bytes, 12U);
  EXPECT_EQ(c.d_sink.sizes[1], 13);
  EXPECT_EQ(c.sums_behind, 2U);
}

TEST_F(BackwardInterface, DescribesTheCall) {
  std::string line;
  (void)run_backward(engine_.get(), arrays_, [&](auto& call) {
    const auto keep = [](void* to, const char* text) { *static_cast<std::string*>(to) = text; };
    EXPECT_EQ(wavejit_call_describe(engine_.get(), &call.head, keep, &line), WAVEJIT_OK);
    std::size_t bytes = 0;
    EXPECT_EQ(wavejit_call_workspace(engine_.get(), &call.head, &bytes), WAVEJIT_OK);
    EXPECT_EQ(bytes, 40U * 2 * 4);
    EXPECT_EQ(wavejit_call_supported(engine_.get(), &call.head), WAVEJIT_OK);
  });
  EXPECT_EQ(line, "attention_backward bf16 b1 q40 k40 h2/1 d64 causal scale=0.125");
  (void)run_backward(engine_.get(), backward_arrays("bf16 b1 q40 k40 h2/1 d64 gradients=fp32"), [&](auto& call) {
    const auto keep = [](void* to, const char* text) { *static_cast<std::string*>(to) = text; };
    call.sums_before = WAVEJIT_SUMS_OF_DK_DV;
    call.sums_behind = WAVEJIT_SUMS_OF_DQ | WAVEJIT_SUMS_OF_DK_DV;
    EXPECT_EQ(wavejit_call_describe(engine_.get(), &call.head, keep, &line), WAVEJIT_OK);
  });
  EXPECT_EQ(
      line,
      "attention_backward bf16 b1 q40 k40 h2/1 d64 scale=0.125 gradients=fp32 sums_before=dk_dv sums_behind=dq,dk_dv");
  const std::string said = "attention_backward fp16 b2 q40 k40 h2/1 d64 causal d_sink gradients=fp32 o=fp32";
  const auto parsed = attention_backward::program::make_arrays(said, false);
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->experiment.text, said);
  EXPECT_FALSE(attention_backward::program::make_arrays(said + " delta", false));
}

}  // namespace
}  // namespace wavejit::tests
