// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What attention_latent is asked beside its numbers: presets, prebuild, statistics, a seal, capture, the miss log, what
// a warm call asks of the device, and how much memory a call borrows.
#include <algorithm>
#include <array>
#include <fstream>
#include <map>
#include <set>

#include "runtime/offline/explain.h"
#include "runtime/offline/prebuild.h"
#include "runtime_fixture.h"
#include "templates/attention_latent/api/calls.h"

namespace wavejit::tests {
namespace {

using ::testing::HasSubstr;
using Arguments = wavejit_attention_latent_arguments;

struct Step {
  std::int64_t heads = 16;
  std::int64_t batch = 64;
  std::int64_t rows = 1;  // queries a sequence
  std::int64_t keys = 8192;
  std::int64_t page = 64;  // 0: dense
  std::int32_t splits = 0;
  std::int64_t top_k = 0;  // entries of each query's list; 0: no lists
  bool slots = false;      // entries are slots of the cache
  std::uint32_t flags = 0;
  std::int32_t rows_of_bytes = 0;  // rows of 656 bytes in this type; 0: bf16
};

// Addresses far apart: no tensor of these steps is larger than 2⁴⁰ bytes.
Arguments call_of(const Step& step) {
  Arguments call{};
  call.head.size = sizeof call;
  call.head.family = WAVEJIT_ATTENTION_LATENT;
  const auto memory = [](std::uint64_t number) { return fake_address(number << 8U); };
  call.q = wavejit_dense_tensor(memory(1), WAVEJIT_BF16, step.batch, step.rows, step.heads, 576);
  call.o = wavejit_dense_tensor(memory(2), WAVEJIT_BF16, step.batch, step.rows, step.heads, 512);
  const wavejit_dtype type = step.rows_of_bytes != 0 ? static_cast<wavejit_dtype>(step.rows_of_bytes) : WAVEJIT_BF16;
  const std::int64_t width = step.rows_of_bytes != 0 ? 656 : 576;
  if (step.page == 0) {
    call.k = wavejit_dense_tensor(memory(3), type, step.batch, step.keys, 1, width);
  } else {
    const std::int64_t columns = (step.keys + step.page - 1) / step.page;
    call.k = wavejit_dense_tensor(memory(3), type, step.batch * columns, step.page, 1, width);
    call.pages.block_table = static_cast<const std::int32_t*>(memory(4));
    call.pages.table_columns = columns;
    call.sequences.key_lengths = static_cast<const std::int32_t*>(memory(5));
    call.sequences.max_key_length = step.keys;
  }
  if (step.top_k != 0) {
    call.key_list.indices = static_cast<const std::int32_t*>(memory(6));
    call.key_list.top_k = step.top_k;
  }
  if (step.slots) {
    call.key_list.slots = 1;
    call.pages.block_table = call.sequences.key_lengths = nullptr;
    call.pages.table_columns = call.sequences.max_key_length = 0;
  }
  call.modifiers.scale = 0.0721688F;
  if (step.rows > 1 && !step.slots) call.mask.bits = WAVEJIT_MASK_CAUSAL;
  call.split.splits = step.splits;
  call.head.flags = step.flags;
  return call;
}

families::Result<void> run(runtime::Engine& engine, const Arguments& call, hip_abi::hipStream_t stream = nullptr) {
  return runtime::Answers<attention_latent::Calls>::run(engine, &call, stream);
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

class LatentLife : public RuntimeTest {
 protected:
  std::vector<std::string> preset_ = lines_of(std::filesystem::path(WAVEJIT_PRESETS) / "mla.txt");

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

// DeepSeek V3, R1 and V3.2 have 128 heads, Kimi K2 and GLM-5 64, Kimi K3 96: under tensor parallelism 1 to 16, whatever
// the batch, the lengths and the number of queries: decode, speculation, pieces of prompts.
TEST_F(LatentLife, APresetHasTheKernelsOfEveryStepOfItsModels) {
  ASSERT_GE(preset_.size(), 10U);
  for (const char* target : {"gfx942", "gfx950"}) {
    const auto sealed = make_engine(target);
    ASSERT_FALSE(prebuild(preset_, target).empty());
    prepare(*sealed, preset_);
    sealed->seal(true);
    const std::uint64_t compiles = fake_codegen().compiles;
    for (const std::int64_t heads : {128, 64, 96})
      for (const std::int64_t share : {1, 2, 4, 8, 16})
        for (const std::int64_t batch : {1, 3, 64, 256})
          for (const std::int64_t rows : {1, 2, 4, 8, 700})
            for (const std::int64_t keys : {1, 800, 8192, 131072})
              for (const std::int64_t page : {0, 1, 16, 64}) {
                const Step step = {.heads = heads / share, .batch = batch, .rows = rows, .keys = keys, .page = page};
                const auto outcome = run(*sealed, call_of(step));
                ASSERT_TRUE(outcome) << target << ", " << heads << " / " << share << " heads, b" << batch << " q"
                                     << rows << " k" << keys << " page " << page << ": " << outcome.error().detail;
              }
    EXPECT_EQ(fake_codegen().compiles, compiles) << "nothing was left to compile";
    EXPECT_EQ(statistics_of(*sealed).refused_sealed, 0U);
  }
}

// Attention over the lists of DeepSeek V3.2 (128 heads) and GLM-5 (64), under tensor parallelism 1 to 16: decode,
// speculation and prompts, over dense keys, pages of 1 and of 16 n keys, and slots.
TEST_F(LatentLife, PresetsHaveTheKernelsOfListsOfTheirModels) {
  for (const auto& [name, heads] : {std::pair{"deepseek-v3.2.txt", 128}, {"glm-5.txt", 64}})
    for (const char* target : {"gfx942", "gfx950"}) {
      std::vector<std::string> lines = lines_of(std::filesystem::path(WAVEJIT_PRESETS) / name);
      std::erase_if(lines, [](const std::string& line) { return !line.starts_with("attention_latent "); });
      ASSERT_GE(lines.size(), 8U);
      const auto sealed = make_engine(target);
      ASSERT_FALSE(prebuild(lines, target).empty());
      prepare(*sealed, lines);
      sealed->seal(true);
      const std::uint64_t compiles = fake_codegen().compiles;
      for (const std::int64_t share : {1, 2, 4, 8, 16})
        for (const std::int64_t batch : {1, 3, 64, 256})
          for (const std::int64_t rows : {1, 2, 4, 8, 700})
            for (const std::int64_t keys : {2, 800, 131072})
              for (const std::int64_t top_k : {1, 256, 2048})
                for (const std::int64_t page : {0, 1, 16, 64})
                  for (const bool slots : {false, true}) {
                    Step step = {.heads = heads / share, .batch = batch, .rows = rows, .keys = keys, .page = page};
                    step.top_k = top_k;
                    step.slots = slots;
                    const auto outcome = run(*sealed, call_of(step));
                    ASSERT_TRUE(outcome) << name << " on " << target << ": " << outcome.error().detail;
                  }
      EXPECT_EQ(fake_codegen().compiles, compiles) << "nothing was left to compile";
      EXPECT_EQ(statistics_of(*sealed).refused_sealed, 0U);
    }
}

// `--kv fp8_ds_mla` of both presets: rows of 656 bytes, by every step of DeepSeek V3.2.
TEST_F(LatentLife, PresetsHaveTheKernelsOfRowsWithScales) {
  std::vector<std::string> lines = lines_of(std::filesystem::path(WAVEJIT_PRESETS) / "deepseek-v3.2.txt");
  std::erase_if(lines, [](const std::string& line) { return !line.starts_with("attention_latent "); });
  lines.insert(lines.end(), preset_.begin(), preset_.end());
  for (const auto& [target, word, type] :
       {std::tuple{"gfx942", " cache=e4m3_fnuz", WAVEJIT_E4M3_FNUZ}, {"gfx950", " cache=e4m3", WAVEJIT_E4M3}}) {
    std::vector<std::string> rows;
    for (const std::string& line : lines) rows.push_back(line + word + " row_scales=128");
    const auto sealed = make_engine(target);
    ASSERT_FALSE(prebuild(rows, target).empty());
    prepare(*sealed, rows);
    sealed->seal(true);
    const std::uint64_t compiles = fake_codegen().compiles;
    for (const std::int64_t heads : {128, 16, 8})
      for (const std::int64_t batch : {1, 3, 64})
        for (const std::int64_t queries : {1, 4, 700})
          for (const std::int64_t keys : {1, 800, 8192, 131072})
            for (const std::int64_t page : {0, 1, 64})
              for (const std::int64_t top_k : {0, 256, 2048}) {
                Step step = {.heads = heads, .batch = batch, .rows = queries, .keys = keys, .page = page};
                step.top_k = top_k;
                step.slots = top_k == 256;
                step.rows_of_bytes = type;
                const auto outcome = run(*sealed, call_of(step));
                ASSERT_TRUE(outcome) << target << ", " << heads << " heads, b" << batch << " q" << queries << " k"
                                     << keys << " page " << page << " top_k " << top_k << ": "
                                     << outcome.error().detail;
              }
    EXPECT_EQ(fake_codegen().compiles, compiles) << "nothing was left to compile";
    EXPECT_EQ(statistics_of(*sealed).refused_sealed, 0U);
  }
}

TEST_F(LatentLife, StatisticsCountACallOnce) {
  const auto engine = make_engine();
  const Arguments whole = call_of({.splits = 1});
  ASSERT_TRUE(run(*engine, whole));
  EXPECT_EQ(statistics_of(*engine).calls, 1U);
  EXPECT_EQ(fake_codegen().compiles, 1U) << "the walk over all keys";
  EXPECT_EQ(fake_hip().launches, 1U);
  const Arguments cut = call_of({.splits = 4, .flags = WAVEJIT_TWO_LAUNCHES});
  ASSERT_TRUE(run(*engine, cut));
  EXPECT_EQ(statistics_of(*engine).calls, 2U);
  EXPECT_EQ(fake_codegen().compiles, 3U) << "the walk over runs, and the merge";
  EXPECT_EQ(fake_hip().launches, 3U);
  ASSERT_TRUE(run(*engine, cut));
  EXPECT_EQ(statistics_of(*engine).calls, 3U);
  EXPECT_EQ(statistics_of(*engine).memory_hits, 1U);
  EXPECT_EQ(fake_codegen().compiles, 3U);
  ASSERT_TRUE(run(*engine, call_of({.splits = 4, .flags = WAVEJIT_ONE_LAUNCH})));
  EXPECT_EQ(fake_codegen().compiles, 4U) << "the walk whose last workgroup merges";
  EXPECT_EQ(fake_hip().launches, 6U);
}

// By what the clock predicts, with the wait between launches that others measured: no call is faster in one launch.
TEST_F(LatentLife, PartsAreMergedInASecondLaunchUnlessTheCallSaysOne) {
  for (const char* target : {"gfx942", "gfx950"}) {
    const auto engine = make_engine(target);
    const auto launches_of = [&](const Step& step) {
      const std::uint64_t before = fake_hip().launches;
      EXPECT_TRUE(run(*engine, call_of(step)));
      return fake_hip().launches - before;
    };
    EXPECT_EQ(launches_of({.batch = 1}), 2U) << target;
    EXPECT_EQ(launches_of({.batch = 1, .flags = WAVEJIT_ONE_LAUNCH}), 1U) << target;
    EXPECT_EQ(launches_of({.heads = 8, .batch = 1}), 2U) << target;
    EXPECT_EQ(launches_of({}), 2U) << target;
    EXPECT_EQ(launches_of({.heads = 128, .batch = 1, .keys = 2048}), 2U) << target;
    const auto rows = std::string_view(target) == "gfx942" ? WAVEJIT_E4M3_FNUZ : WAVEJIT_E4M3;
    EXPECT_EQ(launches_of({.batch = 1, .flags = WAVEJIT_ONE_LAUNCH, .rows_of_bytes = rows}), 1U) << target;
    EXPECT_EQ(launches_of({.batch = 1, .top_k = 2048, .flags = WAVEJIT_ONE_LAUNCH, .rows_of_bytes = rows}), 1U)
        << target;
    EXPECT_EQ(launches_of({.rows_of_bytes = rows}), 2U) << target;
  }
}

TEST_F(LatentLife, ASealedEngineRefusesWhatNobodyPrepared) {
  const auto engine = make_engine();
  prepare(*engine, {"attention_latent bf16 b64 q1 k8192 h16 d576/512 layout=paged:64"});
  engine->seal(true);
  EXPECT_TRUE(run(*engine, call_of({})));
  EXPECT_TRUE(run(*engine, call_of({.heads = 12, .batch = 3, .keys = 40})));
  const std::uint64_t launches = fake_hip().launches;
  const auto refused = run(*engine, call_of({.page = 1}));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().status, WAVEJIT_SEALED);
  EXPECT_THAT(refused.error().detail, HasSubstr("attention_latent"));
  EXPECT_EQ(statistics_of(*engine).refused_sealed, 1U);
  EXPECT_EQ(fake_hip().launches, launches);
}

// A graph keeps its addresses: a call of several runs brings its workspace, or leaves its keys whole.
TEST_F(LatentLife, ACapturedCallOfRunsBringsItsWorkspace) {
  const auto engine = make_engine();
  prepare(*engine, {"attention_latent bf16 b64 q1 k8192 h16 d576/512 layout=paged:64"});
  auto* const stream = numbered<ihipStream_t>(0x1000);
  const std::uint64_t allocations = fake_hip().allocations;  // counters for calls that will be captured
  fake_hip().capturing = hip_abi::hipStreamCaptureStatusActive;
  ASSERT_TRUE(run(*engine, call_of({.splits = 1}), stream));
  EXPECT_EQ(fake_hip().launches, 1U);
  Arguments cut = call_of({.splits = 4, .flags = WAVEJIT_TWO_LAUNCHES});
  ASSERT_TRUE(run(*engine, cut, stream));
  EXPECT_EQ(fake_hip().launches, 2U) << "one launch: its keys are whole";
  cut.split.workspace = fake_address(900 << 8);
  cut.split.workspace_bytes = std::size_t{1} << 30U;
  ASSERT_TRUE(run(*engine, cut, stream));
  EXPECT_EQ(fake_hip().launches, 4U);
  EXPECT_EQ(fake_hip().allocations, allocations) << "nothing is allocated while a stream is captured";
  const auto cold = run(*engine, call_of({.page = 1, .splits = 1}), stream);
  fake_hip().capturing = hip_abi::hipStreamCaptureStatusNone;
  ASSERT_FALSE(cold) << "nothing is compiled while a stream is captured";
  EXPECT_EQ(statistics_of(*engine).refused_capturing, 1U);
}

// As decode has it: a call warms up with the engine's workspace, and a capture has none.
TEST_F(LatentLife, WhatACaptureNeedsIsMadeBehindTheFirstCall) {
  const auto engine = make_engine();
  const Arguments call = call_of({.batch = 1});
  ASSERT_TRUE(run(*engine, call));
  EXPECT_EQ(fake_hip().launches, 2U) << "its keys are split";
  engine->seal(true);  // waits for what is made behind
  fake_hip().capturing = hip_abi::hipStreamCaptureStatusActive;
  const auto captured = run(*engine, call, numbered<ihipStream_t>(0x1000));
  fake_hip().capturing = hip_abi::hipStreamCaptureStatusNone;
  ASSERT_TRUE(captured) << captured.error().detail;
  EXPECT_EQ(fake_hip().launches, 3U);
  EXPECT_EQ(fake_hip().last.grid[2], 1U) << "and are whole";
}

TEST_F(LatentLife, AWorkspaceIsNobodyElsesMemory) {
  const auto engine = make_engine();
  Arguments call = call_of({.splits = 4});
  call.split.workspace_bytes = std::size_t{1} << 30U;
  const auto refusal_at = [&](const void* memory) -> std::string {
    call.split.workspace = const_cast<void*>(memory);
    const auto done = run(*engine, call);
    return done ? "" : done.error().detail;
  };
  EXPECT_THAT(refusal_at(call.k.data), HasSubstr("memory that k does not use"));
  EXPECT_THAT(refusal_at(call.pages.block_table), HasSubstr("memory that block_table does not use"));
  EXPECT_THAT(refusal_at(call.sequences.key_lengths), HasSubstr("memory that key_lengths does not use"));
  EXPECT_EQ(refusal_at(fake_address(900 << 8)), "");
  call.split.workspace_bytes = 256;
  EXPECT_THAT(refusal_at(fake_address(900 << 8)), HasSubstr("workspace_bytes = 256; accepted: "));
  EXPECT_EQ(fake_hip().launches, 2U);
}

// What calls missed is a list that prebuild takes, and then nothing is missing.
TEST_F(LatentLife, TheMissLogIsAListForPrebuild) {
  config_.miss_log.value = directory_.path() + "/misses";
  config_.cache_mode.value = cache::Mode::off;
  const auto cold = make_engine();
  const std::array<Arguments, 3> calls = {call_of({.splits = 1}), call_of({.heads = 128, .splits = 4}),
                                          call_of({.rows = 4, .page = 0, .splits = 1})};
  for (const auto& call : calls) ASSERT_TRUE(run(*cold, call));
  const std::vector<std::string> misses = lines_of(config_.miss_log.value);
  ASSERT_EQ(misses.size(), calls.size());
  for (const std::string& line : misses) EXPECT_THAT(line, HasSubstr("attention_latent bf16 b64 "));
  config_.cache_mode.value = cache::Mode::read_write;
  EXPECT_FALSE(prebuild(misses, "gfx950").empty());
  const auto warm = make_engine();
  for (const auto& call : calls) ASSERT_TRUE(run(*warm, call));
  EXPECT_EQ(statistics_of(*warm).compiled, 0U);
}

// Each word stands in the tables that route a call: what is listed for a target is what its engine has.
TEST_F(LatentLife, WhatIsSupportedComesFromTheTables) {
  std::map<std::string, std::string> lines;
  for (const std::string& line : runtime::supported())
    if (line.contains(": attention_latent;")) lines[line.substr(0, line.find(' '))] = line;
  ASSERT_EQ(lines.size(), boards::all_products().size());
  for (const boards::Board& target : boards::all_products()) {
    const std::string& line = lines[std::string(target.id)];
    const auto engine = make_engine(std::string(target.id).c_str());
    const auto outcome = run(*engine, call_of({}));
    if (line.contains("no kernels")) {
      ASSERT_FALSE(outcome) << line;
      EXPECT_EQ(outcome.error().status, WAVEJIT_UNSUPPORTED);
      continue;
    }
    EXPECT_TRUE(outcome) << outcome.error().detail;
    for (const char* words : {"; dtypes bf16 fp16", " 576/512 512 320/256", "masks none causal", "softcap", " sink;",
                              "1 to 128 heads", "in pages of 1 and of 16 n keys"})
      EXPECT_THAT(line, HasSubstr(words));
  }
}

// As of every family: the kernel, how keys are cut, and why a workgroup has no other number of rows; what a line cannot
// say is refused by its word.
TEST_F(LatentLife, ExplainTellsTheRouteAndWhyNotOthers) {
  struct Explained {
    const char* target;
    const char* words;
    std::vector<const char*> lines;
  };
  const Explained explained[] = {
      {"gfx950",
       "b64 q1 k8192 h16 d576/512 layout=paged:64",
       {"\nroute    tiles of 32 rows and 64 keys", "\nsplits   4, each up to 2 chunks",
        "\ncombine  attention_latent_combine ",
        "\nrefused  tiles of 64 rows: it is for more than 32 rows of a sequence",
        "\nrefused  tiles of 128 rows: it is for more than 64 rows of a sequence"}},
      {"gfx950",
       "b64 q1 k4096 h128 d576/512",
       {"\nroute    tiles of 128 rows", "\nrefused  tiles of 32 rows: 128 are preferred where there are more rows"}},
      {"gfx942",
       "b64 q1 k4096 h128 d576/512",
       {"\nroute    tiles of 64 rows", "\nrefused  tiles of 128 rows: rows=128 of target=gfx942, for which"}},
      {"gfx950",
       "b4 q2 k4096 h16 d576/512 top_k=300:slots second_top_k=90",
       {"of one query, whose list names the keys", "of the second list, 1",
        "\nrefused  tiles of 64 rows: it is for more than 32 rows of a query"}},
      {"gfx942",
       "b4 q9 k4096 h16 d576/512 cache=e4m3_fnuz row_scales=128",
       {"\nrefused  tiles of 64 rows: rows=64 with row_scales need more registers than there are"}}};
  for (const Explained& one : explained) {
    const auto lines =
        runtime::explain(config_, "attention_latent bf16 " + std::string(one.words), one.target, *codegen_);
    ASSERT_TRUE(lines) << lines.error().detail;
    std::string text;
    for (const std::string& line : *lines) text += "\n" + line;
    for (const char* line : one.lines) EXPECT_THAT(text, HasSubstr(line));
  }
  for (const auto& [words, detail] : {std::pair{"b1 q1 k70 h129 d576/512", "h1 to h128"},
                                      {"b1 q1 k70 h16 d576/256", "accepted: d576/512, d512, d320/256"},
                                      {"b1 q1 k70 h16 d576/512 layout=paged:20", "1 or a multiple of 16"},
                                      {"b1 q1 k70 h16 d576/512 window=3,3", "'window=3,3'"},
                                      {"b1 q1 k70 h16 d576/512 top_k=0", "top_k=1 to top_k=1048576"},
                                      {"b1 q1 k70 h16 d576/512 cache=e4m3_fnuz", "e4m3_fnuz"}}) {
    const auto refused = runtime::explain(config_, "attention_latent bf16 " + std::string(words), "gfx950", *codegen_);
    ASSERT_FALSE(refused) << words;
    EXPECT_THAT(refused.error().detail, HasSubstr(detail)) << words;
  }
}

// No planner and no lists of work: whatever the lengths on the device are, a warm call is its launches.
TEST_F(LatentLife, AWarmCallAsksTheDeviceForNothing) {
  const auto engine = make_engine();
  for (const std::int32_t splits : {1, 0, 8}) {
    const Arguments call = call_of({.splits = splits});
    ASSERT_TRUE(run(*engine, call));
    const std::uint64_t allocations = fake_hip().allocations;
    const std::uint64_t loads = fake_hip().module_loads;
    for (int again = 0; again < 20; ++again) ASSERT_TRUE(run(*engine, call));
    EXPECT_EQ(fake_hip().allocations, allocations) << splits;
    EXPECT_EQ(fake_hip().frees, 0U) << splits;
    EXPECT_EQ(fake_hip().module_loads, loads) << splits;
  }
}

// Seen elsewhere: grids by the longest context that a model allows. Lists of 2,048 entries have the same ones over
// 4,096 keys and over a million.
TEST_F(LatentLife, GridsOfListsAreThoseOfTheirEntries) {
  const auto engine = make_engine();
  const auto grids_of = [&](const Step& step) {
    for (int twice = 0; twice < 2; ++twice) EXPECT_TRUE(run(*engine, call_of(step)));
    return std::array{fake_hip().before_last.grid, fake_hip().last.grid};
  };
  for (const std::int32_t splits : {1, 8}) {
    Step step = {.batch = 48, .keys = 4096, .splits = splits};
    step.top_k = 2048;
    const auto grids = grids_of(step);
    step.keys = 1 << 20;
    EXPECT_EQ(grids_of(step), grids) << splits;
    step.batch = 47;
    EXPECT_NE(grids_of(step), grids) << splits;
  }
}

// Workgroups go to the dies in turn. Tiles of a sequence are a multiple of the dies apart where there are as many
// sequences, else next to each other: on one die one prompt took 7 times as long.
TEST_F(LatentLife, FewSequencesHaveAllDies) {
  const auto engine = make_engine();
  for (const auto& [batch, apart] : {std::pair{1U, 1U}, {3U, 3U}, {8U, 8U}, {9U, 16U}}) {
    for (int twice = 0; twice < 2; ++twice)
      EXPECT_TRUE(run(*engine, call_of({.batch = batch, .rows = 700, .splits = 1})));
    EXPECT_EQ(fake_hip().last.grid[0], apart) << batch << " sequences";
    EXPECT_GT(fake_hip().last.grid[1], 1U);
  }
}

// By the sequences and keys of the call, never by what a device could have: 256 MiB where the caller brings none.
TEST_F(LatentLife, AWorkspaceIsBounded) {
  const auto engine = make_engine();
  constexpr std::uint64_t most = std::uint64_t{256} << 20U;
  for (const std::int64_t heads : {1, 16, 128})
    for (const std::int64_t batch : {1, 64, 1024})
      for (const std::int64_t rows : {1, 8, 4096})
        for (const std::int64_t keys : {1024, 8192, 131072, 1 << 20}) {
          const Arguments call = call_of({.heads = heads, .batch = batch, .rows = rows, .keys = keys});
          const auto problem = attention_latent::check(&call);
          ASSERT_TRUE(problem) << problem.error().detail;
          const auto runs = attention_latent::plan_splits(*problem, engine->target_row());
          EXPECT_LE(runs.workspace_bytes, most) << "h" << heads << " b" << batch << " q" << rows << " k" << keys;
        }
}

// Chunks of lists are short: four runs of 256 keys and a merge take less time than one of 1,024, in three turns or less.
TEST_F(LatentLife, AutoCutsShortLists) {
  const auto engine = make_engine("gfx950");
  const auto runs = [&](std::int64_t batch) {
    const Arguments call = call_of({.heads = 16, .batch = batch, .rows = 1, .keys = 4096, .top_k = 1024});
    const auto problem = attention_latent::check(&call);
    EXPECT_TRUE(problem) << problem.error().detail;
    return attention_latent::plan_splits(*problem, engine->target_row()).runs;
  };
  EXPECT_EQ(runs(160), 4U);
  EXPECT_EQ(runs(200), 1U) << "800 runs of 256 places";
}

// 65 sequences of 128 heads: as many workgroups of 64 rows as half the compute units, however many chunks a run has.
TEST_F(LatentLife, RowsOfAWorkgroupFollowTheRunsThatTheCallAsksFor) {
  const auto engine = make_engine("gfx950");
  const auto rows = [&](std::int64_t batch, std::int32_t splits) {
    const Arguments call = call_of({.heads = 128, .batch = batch, .rows = 1, .keys = 8192, .splits = splits});
    const auto problem = attention_latent::check(&call);
    EXPECT_TRUE(problem) << problem.error().detail;
    return attention_latent::plan_splits(*problem, engine->target_row()).rows;
  };
  EXPECT_EQ(rows(65, 1), attention_latent::Rows::r64);
  EXPECT_EQ(rows(64, 2), attention_latent::Rows::r64) << "256 runs";
  EXPECT_EQ(rows(65, 2), attention_latent::Rows::r128) << "260 runs";
  EXPECT_EQ(rows(65, 0), attention_latent::Rows::r128) << "the planner may cut each of eight chunks off";
}

}  // namespace
}  // namespace wavejit::tests
