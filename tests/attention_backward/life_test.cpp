// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What attention_backward is asked beside its numbers: presets, prebuild, statistics, a seal, capture, the miss log,
// what is supported, explain.
#include <algorithm>
#include <format>
#include <fstream>
#include <set>

#include "runtime/offline/explain.h"
#include "runtime/offline/prebuild.h"
#include "runtime_fixture.h"
#include "templates/attention_backward/call/call.h"

namespace wavejit::tests {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;

// One kind of training step.
struct Training {
  const char* model;
  std::int64_t query_heads;
  std::int64_t kv_heads;
  std::int64_t dims;
  std::int32_t window;  // keys before a row's own; −1: none
  float softcap;
  std::int64_t longest;
  std::int64_t value_dims = dims;
};
constexpr std::array<Training, 9> models = {{{"Llama 3 8B, Qwen3 8B", 32, 8, 128, -1, 0, 8192},
                                             {"Llama 3 70B", 64, 8, 128, -1, 0, 8192},
                                             {"Mistral 7B", 32, 8, 128, 4095, 0, 16384},
                                             {"gpt-oss, full", 64, 8, 64, -1, 0, 8192},
                                             {"gpt-oss, sliding", 64, 8, 64, 127, 0, 8192},
                                             {"Gemma 2 27B, full", 32, 16, 128, -1, 50, 16384},
                                             {"Gemma 2 27B, sliding", 32, 16, 128, 4095, 50, 16384},
                                             {"Qwen3 8B, long", 32, 8, 128, -1, 0, 32768},
                                             {"DeepSeek V3", 128, 128, 192, -1, 0, 16384, 128}}};

wavejit_attention_backward_arguments call_of(const Training& of, std::int64_t batch, std::int64_t length,
                                             std::int64_t share = 1) {
  const std::int64_t query_heads = of.query_heads / share;
  const std::int64_t kv_heads = of.kv_heads / share;
  wavejit_attention_backward_arguments call{};
  call.head.size = sizeof call;
  call.head.family = WAVEJIT_ATTENTION_BACKWARD;
  int number = 0;
  const auto tensor = [&](std::int64_t heads, std::int64_t dims) {
    return wavejit_dense_tensor(fake_address(static_cast<std::uint64_t>(++number) * 16), WAVEJIT_BF16, batch, length,
                                heads, dims);
  };
  for (auto* each : {&call.q, &call.dq}) *each = tensor(query_heads, of.dims);
  for (auto* each : {&call.o, &call.d_o}) *each = tensor(query_heads, of.value_dims);
  for (auto* each : {&call.k, &call.dk}) *each = tensor(kv_heads, of.dims);
  for (auto* each : {&call.v, &call.dv}) *each = tensor(kv_heads, of.value_dims);
  call.lse = {.data = fake_address(500),
              .dtype = WAVEJIT_FP32,
              .reserved = 0,
              .sizes = {batch, query_heads, length, 1},
              .strides = {query_heads * length, length, 1, 1}};
  call.mask.bits = WAVEJIT_MASK_CAUSAL | (of.window < 0 ? 0 : WAVEJIT_MASK_WINDOW);
  if (of.window >= 0) call.mask.window_left = of.window;
  call.modifiers.softcap = of.softcap;
  return call;
}

families::Result<void> run(runtime::Engine& engine, const wavejit_attention_backward_arguments& call,
                           hip_abi::hipStream_t stream = nullptr) {
  const auto problem = attention_backward::check(&call);
  if (!problem) return std::unexpected(problem.error());
  attention_backward::BackwardCall checked(call, *problem, engine.target_row(), engine.toggles());
  return engine.run(checked, stream);
}

std::vector<std::string> lines_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) {
    line.resize(std::min(line.find('#'), line.size()));
    while (line.ends_with(' ')) line.pop_back();
    if (!line.empty()) lines.push_back(line);
  }
  return lines;
}

class BackwardLife : public RuntimeTest {
 protected:
  std::vector<std::string> preset_ = lines_of(std::filesystem::path(WAVEJIT_PRESETS) / "training.txt");

  std::set<std::string> prebuild(const std::vector<std::string>& lines, std::string_view target) {
    std::set<std::string> specs;
    const auto outcome = runtime::prebuild(config_, {.descriptors = lines, .targets = target, .whole = false},
                                           *codegen_, [&](const runtime::PrebuildProgress& progress) {
                                             if (progress.kernel_spec != nullptr) specs.insert(*progress.kernel_spec);
                                           });
    EXPECT_TRUE(outcome) << outcome.error().detail;
    return specs;
  }
  void prepare(runtime::Engine& engine, const std::vector<std::string>& lines) {
    std::vector<const char*> texts;
    texts.reserve(lines.size());
    for (const std::string& line : lines) texts.push_back(line.c_str());
    ASSERT_TRUE(engine.prepare(texts, 1, {}, [](const auto&) {}));
  }
};

// Whatever the batch, the length, and the share of the heads under tensor parallelism.
TEST_F(BackwardLife, APresetHasTheKernelsOfEveryStepOfItsModels) {
  ASSERT_GE(preset_.size(), 20U);
  for (const targets::Target& target : targets::complete_targets()) {
    const auto sealed = make_engine(std::string(target.id).c_str());
    ASSERT_FALSE(prebuild(preset_, target.id).empty());
    prepare(*sealed, preset_);
    sealed->seal(true);
    const std::uint64_t compiles = fake_codegen().compiles;
    for (const Training& model : models)
      for (const std::int64_t share : {1, 2, 4, 8})
        for (const std::int64_t batch : {1, 2, 8, 32})
          for (std::int64_t length = 128; length <= model.longest; length *= 2) {
            const auto outcome = run(*sealed, call_of(model, batch, length, share));
            ASSERT_TRUE(outcome) << target.id << ", " << model.model << " / " << share << ", b" << batch << " q"
                                 << length << ": " << outcome.error().detail;
          }
    EXPECT_EQ(fake_codegen().compiles, compiles) << "nothing was left to compile";
    EXPECT_EQ(statistics_of(*sealed).refused_sealed, 0U);
  }
}

TEST_F(BackwardLife, StatisticsCountACallOnce) {
  const auto engine = make_engine();
  const auto call = call_of(models[0], 1, 512);
  ASSERT_TRUE(run(*engine, call));
  EXPECT_EQ(statistics_of(*engine).calls, 1U);
  EXPECT_EQ(statistics_of(*engine).misses, 1U);
  EXPECT_EQ(fake_codegen().compiles, 2U) << "dQ, and dK with dV";
  EXPECT_EQ(fake_hip().launches, 2U);
  ASSERT_TRUE(run(*engine, call));
  EXPECT_EQ(statistics_of(*engine).calls, 2U);
  EXPECT_EQ(statistics_of(*engine).memory_hits, 1U);
  EXPECT_EQ(fake_codegen().compiles, 2U);
}

TEST_F(BackwardLife, ASealedEngineRefusesWhatNobodyPrepared) {
  const auto engine = make_engine();
  prepare(*engine, {"attention_backward bf16 b1 q512 k512 h32/8 d128 causal"});
  engine->seal(true);
  EXPECT_TRUE(run(*engine, call_of(models[0], 1, 512)));
  const std::uint64_t launches = fake_hip().launches;
  const auto refused = run(*engine, call_of(models[3], 1, 512));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().status, WAVEJIT_SEALED);
  EXPECT_THAT(refused.error().detail, HasSubstr("attention_backward"));
  EXPECT_EQ(statistics_of(*engine).refused_sealed, 1U);
  EXPECT_EQ(fake_hip().launches, launches) << "neither kernel ran";
}

// A graph keeps its addresses: the workspace is the caller's, or the call is refused with what would do.
TEST_F(BackwardLife, ACapturedCallBringsItsWorkspace) {
  const auto engine = make_engine();
  prepare(*engine, {"attention_backward bf16 b1 q512 k512 h32/8 d128 causal"});
  auto call = call_of(models[0], 1, 512);
  fake_hip().capturing = hip_abi::hipStreamCaptureStatusActive;
  auto* const stream = numbered<ihipStream_t>(0x1000);
  const auto without = run(*engine, call, stream);
  ASSERT_FALSE(without);
  EXPECT_THAT(without.error().detail, HasSubstr("workspace = null while the stream is being captured"));
  EXPECT_EQ(fake_hip().launches, 0U);
  call.split.workspace = fake_address(900);
  call.split.workspace_bytes = std::size_t{512} * 32 * 4;
  ASSERT_TRUE(run(*engine, call, stream));
  EXPECT_EQ(fake_hip().launches, 2U);
  const auto cold = run(
      *engine,
      [&] {
        auto other = call_of(models[3], 1, 512);
        other.split.workspace = call.split.workspace;
        other.split.workspace_bytes = std::size_t{512} * 64 * 4;
        return other;
      }(),
      stream);
  fake_hip().capturing = hip_abi::hipStreamCaptureStatusNone;
  ASSERT_FALSE(cold) << "nothing is compiled while a stream is captured";
  EXPECT_EQ(statistics_of(*engine).refused_capturing, 1U);
}

// What calls missed is a list that prebuild takes, and then nothing is missing.
TEST_F(BackwardLife, TheMissLogIsAListForPrebuild) {
  config_.miss_log.value = directory_.path() + "/misses";
  config_.cache_mode.value = cache::Mode::off;
  const auto cold = make_engine();
  const std::array<wavejit_attention_backward_arguments, 3> calls = {
      call_of(models[0], 1, 512), call_of(models[4], 8, 8192), call_of(models[5], 1, 1024)};
  for (const auto& call : calls) ASSERT_TRUE(run(*cold, call));
  const std::vector<std::string> misses = lines_of(config_.miss_log.value);
  ASSERT_EQ(misses.size(), calls.size());
  for (const std::string& line : misses) EXPECT_THAT(line, HasSubstr("attention_backward bf16 b"));
  config_.cache_mode.value = cache::Mode::read_write;
  EXPECT_EQ(prebuild(misses, "gfx950").size(), 6U);
  const auto warm = make_engine();
  for (const auto& call : calls) ASSERT_TRUE(run(*warm, call));
  EXPECT_EQ(statistics_of(*warm).compiled, 0U);
}

// Each word stands in the tables that route a call.
TEST_F(BackwardLife, WhatIsSupportedComesFromTheTables) {
  int found = 0;
  for (const std::string& line : runtime::supported()) {
    if (!line.contains(": attention_backward;")) continue;
    if (line.contains("no kernels")) continue;
    ++found;
    // Waves of 32 lanes have fewer registers.
    const std::string dims = line.starts_with("gfx12") ? "64 128" : "64 128 192/128 256";
    EXPECT_THAT(line, HasSubstr("; dtypes bf16 fp16; head dims " + dims + "; masks none causal window"));
    EXPECT_THAT(line, HasSubstr("; modifiers softcap bias alibi"));
    EXPECT_THAT(line, HasSubstr("; layouts bshd bhsd packed"));
  }
  const auto lanes = [](const targets::Target& target) { return target.wave_size < 64; };
  const auto of_32 = std::ranges::count_if(targets::all_targets(), lanes);
  EXPECT_EQ(found, static_cast<int>(targets::complete_targets().size()) + static_cast<int>(of_32));
}

}  // namespace
}  // namespace wavejit::tests
