// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What sparse_indexer is asked beside its numbers: presets, prebuild, statistics, a seal, capture, the miss log, what a
// warm call asks of the device, and how much memory a call borrows.
#include <algorithm>
#include <array>
#include <fstream>
#include <map>
#include <set>

#include "runtime/offline/explain.h"
#include "runtime/offline/prebuild.h"
#include "runtime_fixture.h"
#include "templates/sparse_indexer/call/call.h"

namespace wavejit::tests {
namespace {

using ::testing::HasSubstr;
using Arguments = wavejit_sparse_indexer_arguments;

struct Step {
  std::int64_t heads = 64;
  std::int64_t batch = 64;
  std::int64_t rows = 1;  // of a sequence
  std::int64_t keys = 8192;
  std::int64_t page = 64;  // 0: dense
  std::int64_t top = 2048;
};

// Addresses far apart: no tensor of these steps is larger than 2⁴⁰ bytes.
Arguments call_of(const Step& step) {
  Arguments call{};
  call.head.size = sizeof call;
  call.head.family = WAVEJIT_SPARSE_INDEXER;
  const auto memory = [](std::uint64_t number) { return fake_address(number << 8U); };
  call.queries = wavejit_dense_tensor(memory(1), WAVEJIT_BF16, step.batch, step.rows, step.heads, 128);
  call.weights = wavejit_dense_tensor(memory(2), WAVEJIT_FP32, step.batch, step.rows, step.heads, 1);
  if (step.page == 0) {
    call.keys = wavejit_dense_tensor(memory(3), WAVEJIT_BF16, step.batch, step.keys, 1, 128);
  } else {
    const std::int64_t columns = (step.keys + step.page - 1) / step.page;
    call.keys = wavejit_dense_tensor(memory(3), WAVEJIT_BF16, step.batch * columns, step.page, 1, 128);
    call.pages.block_table = static_cast<const std::int32_t*>(memory(4));
    call.pages.table_columns = columns;
    call.key_lengths = static_cast<const std::int32_t*>(memory(5));
    call.max_key_length = step.keys;
  }
  call.indices = static_cast<std::int32_t*>(memory(6));
  call.top_k = step.top;
  if (step.rows > 1) call.mask.bits = WAVEJIT_MASK_CAUSAL;
  return call;
}

families::Result<void> run(runtime::Engine& engine, const Arguments& call, hip_abi::hipStream_t stream = nullptr) {
  auto problem = sparse_indexer::check(&call);
  if (!problem) return std::unexpected(problem.error());
  sparse_indexer::take_rows(*problem, engine.target_row(), engine.toggles());
  sparse_indexer::IndexerCall checked(call, *problem, engine.target_row(), engine.toggles());
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

class IndexerLife : public RuntimeTest {
 protected:
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

// DeepSeek V3.2 has 64 index heads, GLM-5 has 32: decode, speculation, pieces of prompts and prompts, whatever the
// batch and the lengths.
TEST_F(IndexerLife, PresetsHaveTheKernelsOfEveryStepOfTheirModels) {
  for (const auto& [name, heads] : {std::pair{"deepseek-v3.2.txt", 64}, {"glm-5.txt", 32}})
    for (const char* target : {"gfx942", "gfx950"}) {
      const std::vector<std::string> preset = lines_of(std::filesystem::path(WAVEJIT_PRESETS) / name);
      ASSERT_GE(preset.size(), 10U);
      ASSERT_FALSE(prebuild(preset, target).empty());
      const auto sealed = make_engine(target);
      prepare(*sealed, preset);
      sealed->seal(true);
      const std::uint64_t compiles = fake_codegen().compiles;
      for (const std::int64_t batch : {1, 64, 256})
        for (const std::int64_t rows : {1, 2, 3, 4, 5, 700})
          for (const std::int64_t keys : {1, 800, 131072})
            for (const std::int64_t page : {0, 1, 64}) {
              const Step step = {.heads = heads, .batch = batch, .rows = rows, .keys = keys, .page = page};
              const auto outcome = run(*sealed, call_of(step));
              ASSERT_TRUE(outcome) << name << " on " << target << ": b" << batch << " q" << rows << " k" << keys
                                   << " page " << page << ": " << outcome.error().detail;
            }
      EXPECT_EQ(fake_codegen().compiles, compiles) << "nothing was left to compile";
      EXPECT_EQ(statistics_of(*sealed).refused_sealed, 0U);
    }
}

TEST_F(IndexerLife, StatisticsCountACallOnce) {
  const auto engine = make_engine();
  const Arguments step = call_of({});
  ASSERT_TRUE(run(*engine, step));
  EXPECT_EQ(statistics_of(*engine).calls, 1U);
  EXPECT_EQ(fake_codegen().compiles, 2U) << "scores, and lists";
  EXPECT_EQ(fake_hip().launches, 2U);
  // A long row: its parts, and what they chose.
  ASSERT_TRUE(run(*engine, call_of({.batch = 1, .keys = 131072})));
  EXPECT_EQ(statistics_of(*engine).calls, 2U);
  EXPECT_EQ(statistics_of(*engine).memory_hits, 1U);
  EXPECT_EQ(fake_codegen().compiles, 2U);
  EXPECT_EQ(fake_hip().launches, 5U);
  // Four rows share keys.
  ASSERT_TRUE(run(*engine, call_of({.rows = 4})));
  EXPECT_EQ(fake_codegen().compiles, 3U);
}

// A second launch waits as long as timing/launches.h says: parts of a row pay where they save more.
TEST_F(IndexerLife, RowsGoInPartsWhereThatTakesLess) {
  const auto engine = make_engine();
  ASSERT_TRUE(run(*engine, call_of({.batch = 1, .keys = 8192, .top = 512})));
  EXPECT_EQ(fake_hip().launches, 2U) << "scores, and lists";
  ASSERT_TRUE(run(*engine, call_of({.batch = 1, .keys = 24576, .top = 512})));
  EXPECT_EQ(fake_hip().launches, 5U) << "scores, lists of parts, and lists";
}

TEST_F(IndexerLife, ASealedEngineRefusesWhatNobodyPrepared) {
  const auto engine = make_engine();
  prepare(*engine, {"sparse_indexer bf16 b64 q1 k8192 h64 page=64 top=2048"});
  engine->seal(true);
  EXPECT_TRUE(run(*engine, call_of({})));
  EXPECT_TRUE(run(*engine, call_of({.batch = 3, .keys = 40, .page = 1, .top = 7})));
  const std::uint64_t launches = fake_hip().launches;
  for (const Step& step : {Step{.page = 0}, Step{.heads = 32}, Step{.rows = 4}}) {
    const auto refused = run(*engine, call_of(step));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().status, WAVEJIT_SEALED);
    EXPECT_THAT(refused.error().detail, HasSubstr("sparse_indexer"));
  }
  EXPECT_EQ(statistics_of(*engine).refused_sealed, 3U);
  EXPECT_EQ(fake_hip().launches, launches);
}

// A graph keeps its addresses: a call that keeps its scores brings its workspace, one with a tensor for them needs
// none.
TEST_F(IndexerLife, ACapturedCallBringsItsWorkspace) {
  const auto engine = make_engine();
  prepare(*engine, {"sparse_indexer bf16 b64 q1 k8192 h64 page=64 top=2048"});
  auto* const stream = numbered<ihipStream_t>(0x1000);
  fake_hip().capturing = hip_abi::hipStreamCaptureStatusActive;
  Arguments call = call_of({});
  const auto without = run(*engine, call, stream);
  ASSERT_FALSE(without);
  EXPECT_THAT(without.error().detail, HasSubstr("workspace = null while the stream is being captured"));
  EXPECT_EQ(fake_hip().launches, 0U);
  call.split.workspace = fake_address(900 << 8);
  call.split.workspace_bytes = std::size_t{64} << 20U;
  ASSERT_TRUE(run(*engine, call, stream));
  EXPECT_EQ(fake_hip().launches, 2U);
  call = call_of({});
  call.scores = wavejit_dense_tensor(fake_address(7 << 8), WAVEJIT_FP32, 64, 1, 1, 8192);
  ASSERT_TRUE(run(*engine, call, stream));
  EXPECT_EQ(fake_hip().launches, 4U);
  EXPECT_EQ(fake_hip().allocations, 0U) << "nothing is allocated while a stream is captured";
  const auto cold = run(*engine, call_of({.heads = 32, .top = 0}), stream);
  fake_hip().capturing = hip_abi::hipStreamCaptureStatusNone;
  ASSERT_FALSE(cold) << "nothing is compiled while a stream is captured";
}

// What calls missed is a list that prebuild takes, and then nothing is missing.
TEST_F(IndexerLife, TheMissLogIsAListForPrebuild) {
  config_.miss_log.value = directory_.path() + "/misses";
  config_.cache_mode.value = cache::Mode::off;
  const auto cold = make_engine();
  const std::array<Arguments, 3> calls = {call_of({}), call_of({.heads = 128, .page = 0}), call_of({.rows = 4})};
  for (const auto& call : calls) ASSERT_TRUE(run(*cold, call));
  const std::vector<std::string> misses = lines_of(config_.miss_log.value);
  ASSERT_EQ(misses.size(), calls.size());
  for (const std::string& line : misses) EXPECT_THAT(line, HasSubstr("sparse_indexer bf16 b64 "));
  config_.cache_mode.value = cache::Mode::read_write;
  EXPECT_FALSE(prebuild(misses, "gfx950").empty());
  const auto warm = make_engine();
  for (const auto& call : calls) ASSERT_TRUE(run(*warm, call));
  EXPECT_EQ(statistics_of(*warm).compiled, 0U);
}

TEST_F(IndexerLife, AWarmCallAsksTheDeviceForNothing) {
  const auto engine = make_engine();
  const Arguments call = call_of({});
  ASSERT_TRUE(run(*engine, call));
  const std::uint64_t allocations = fake_hip().allocations;
  const std::uint64_t loads = fake_hip().module_loads;
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(run(*engine, call));
  EXPECT_EQ(fake_hip().allocations, allocations);
  EXPECT_EQ(fake_hip().module_loads, loads);
}

// Whatever the batch and the prompt: beyond what an engine takes on its own, rows go in rounds.
TEST_F(IndexerLife, AWorkspaceIsBounded) {
  const boards::Board& board = *boards::find_product("gfx950");
  for (const std::int64_t rows : {1, 4096})
    for (const std::int64_t keys : {8192, 1 << 20}) {
      const Arguments call = call_of({.batch = 1, .rows = rows, .keys = keys});
      const auto problem = sparse_indexer::check(&call);
      ASSERT_TRUE(problem) << problem.error().detail;
      const sparse_indexer::IndexerCall planned(call, *problem, board, {});
      EXPECT_LE(planned.workspace_bytes, sparse_indexer::most_workspace) << rows << " rows, " << keys << " keys";
      EXPECT_GE(planned.workspace_bytes * planned.rounds, static_cast<std::uint64_t>(rows * keys * 4));
    }
}

// Each word stands in the tables that route a call: what is listed for a target is what its engine has.
TEST_F(IndexerLife, WhatIsSupportedAndExplainedComesFromTheTables) {
  std::map<std::string, std::string> lines;
  for (const std::string& line : runtime::supported())
    if (line.contains(": sparse_indexer;")) lines[line.substr(0, line.find(' '))] = line;
  ASSERT_EQ(lines.size(), boards::all_products().size());
  for (const boards::Board& target : boards::all_products()) {
    const std::string& line = lines[std::string(target.id)];
    const auto outcome = run(*make_engine(std::string(target.id).c_str()), call_of({}));
    if (line.contains("no kernels")) {
      ASSERT_FALSE(outcome) << line;
      EXPECT_EQ(outcome.error().status, WAVEJIT_UNSUPPORTED);
      continue;
    }
    EXPECT_TRUE(outcome) << outcome.error().detail;
    const families::Family& family = sparse_indexer::family();
    for (const families::Shape& shape : family.every_shape(target, {}))
      EXPECT_TRUE(family.route(shape, target, {})) << target.id;
    for (const bool shared : {false, true}) {
      const sparse_indexer::IndexerShape shape = {{.blocks = 2, .shared = shared}};
      const std::string text = family.explain(shape.shape(), target, {}).description;
      EXPECT_THAT(text, HasSubstr(shared ? "a workgroup has 4 rows" : "a wave has a row"));
    }
  }
}

}  // namespace
}  // namespace wavejit::tests
