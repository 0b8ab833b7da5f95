// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Split keys on the host: how many runs, what they cost, whose memory they use, what is launched and what is refused.
#include "templates/attention_forward/call/splits.h"

#include <latch>
#include <set>
#include <thread>

#include "boards/board.h"
#include "hip_abi/hip_functions.h"
#include "runtime/offline/explain.h"
#include "runtime/offline/prebuild.h"
#include "runtime_fixture.h"
#include "support/part.h"
#include "templates/attention_forward/call/shared_chunks.h"
#include "templates/attention_forward/kernel/combine/parameters.h"
#include "templates/attention_forward/kernel/combine/spec.h"
#include "templates/attention_forward/kernel/parameters.h"

namespace wavejit::tests {
namespace {

using attention_forward::AttentionProblem;
using attention_forward::SplitPlan;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;

using Reason = SplitPlan::Reason;

constexpr std::uint32_t chunk = attention_forward::chunk_keys;

const boards::Board& target() { return *boards::find_product("gfx950"); }

AttentionProblem problem(std::uint32_t keys, std::uint32_t splits = 0) {
  AttentionProblem problem;
  problem.shape.head_dim_qk = problem.shape.head_dim_v = 128;
  problem.batch = 2;
  problem.query_length = 3;
  problem.query_rows = 6;
  problem.key_length = keys;
  problem.query_heads = 8;
  problem.kv_heads = 2;
  problem.splits = splits;
  return problem;
}

SplitPlan plan(const AttentionProblem& problem, std::optional<std::int32_t> kv_splits = {}) {
  return attention_forward::plan_splits(problem, target(), {.kv_splits = kv_splits});
}

AttentionProblem decode(std::uint32_t batch, std::uint32_t keys) {
  AttentionProblem one = problem(keys);
  one.batch = batch;
  one.query_length = 1;
  one.query_rows = batch;
  one.query_heads = 64;
  one.kv_heads = 8;
  one.shape.set_rows(attention_forward::plan_rows(1, 8));
  return one;
}

// What a line with ranges prepares, against every length in them one by one. ./dev test has a third of the
// combinations: any kind of line meets any range of queries and any range of keys.
TEST(Ranges, ReachEveryKernelThatALengthInThemReaches) {
  const auto shapes_of = [](const families::DescribedProblem& problem, std::optional<std::int32_t> kv_splits) {
    families::Toggles toggles;
    toggles.kv_splits = kv_splits;
    const auto shape = problem.shape(target(), toggles);
    return shape ? shape->code : 0;
  };
  const auto line = [](const std::string& queries, const std::string& keys, const char* more) {
    return "attention_forward bf16 b1 q" + queries + " k" + keys + " d128 " + more;
  };
  std::size_t kind = 0;
  for (const char* more : {"h2", "h2 causal", "h2 splits=4", "h8/2 splits=auto", "h40/8"}) {
    std::size_t queries = kind++;
    for (const auto& [first, last] : {std::pair{1, 300}, {33, 64}, {40, 41}, {250, 520}, {64, 65}}) {
      std::size_t keys = queries++;
      for (const auto& [least, most] : {std::pair{0, 3000}, {256, 257}, {1024, 1024}}) {
        if (tests::sampled() && keys++ % 3 != 0) continue;
        for (const std::optional<std::int32_t> kv_splits : {std::optional<std::int32_t>{}, {8}}) {
          std::set<std::uint64_t> wanted;
          for (int queries = first; queries <= last; ++queries) {
            for (int keys = least; keys <= most; keys += 64) {
              const auto one = families::parse_problem(line(std::to_string(queries), std::to_string(keys), more));
              wanted.insert(shapes_of(**one, kv_splits));
            }
          }
          std::set<std::uint64_t> reached;
          const std::string text = line(std::to_string(first) + ".." + std::to_string(last),
                                        std::to_string(least) + ".." + std::to_string(most), more);
          const auto problems = families::parse_problems(text);
          ASSERT_TRUE(problems) << text;
          EXPECT_LE(problems->size(), 40U);
          for (const auto& one : *problems) reached.insert(shapes_of(*one, kv_splits));
          EXPECT_TRUE(std::ranges::includes(reached, wanted)) << text;
        }
      }
    }
  }
}

TEST(Splits, AreThoseOfTheCallElseOfTheEngine) {
  EXPECT_EQ(plan(problem(8192, 5)).runs, 5U);
  EXPECT_EQ(plan(problem(8192, 5), 3).runs, 5U);
  EXPECT_EQ(plan(problem(8192), 3).runs, 3U);
  EXPECT_EQ(plan(problem(8192), 3).reason, Reason::asked_by_engine);
  EXPECT_EQ(plan(problem(8192, 1), 3).runs, 1U);
}

TEST(Splits, AreNoMoreThanChunks) {
  EXPECT_EQ(plan(problem(4 * chunk, 64)).runs, 4U);
  EXPECT_EQ(plan(problem(4 * chunk + 1, 64)).runs, 5U);
  EXPECT_EQ(plan(problem(chunk, 64)).runs, 1U);
  EXPECT_EQ(plan(problem(chunk, 64)).reason, Reason::one_chunk);
  EXPECT_EQ(plan(problem(0, 64)).runs, 1U);
  EXPECT_EQ(plan(problem(1 << 20), 0xFFFF / 64).runs, 1023U);
}

TEST(Splits, TakeTheDocumentedWorkspace) {
  const SplitPlan four = plan(problem(4096, 4));
  EXPECT_EQ(four.workspace_bytes, 6U * 8 * 4 * (128 + 4) * 4);
  EXPECT_EQ(plan(problem(4096, 2)).workspace_bytes, four.workspace_bytes) << "a slot a chunk, whoever fills it";
  EXPECT_EQ(plan(problem(4096, 1)).workspace_bytes, 0U);
}

// A gigabyte for all sequences at once is nobody's to take: they go in rounds over what a workspace holds.
TEST(Splits, GoInRoundsOverALargeWorkspace) {
  const auto of_sequence = [](std::uint32_t keys) { return std::uint64_t{64} * (keys / chunk) * (128 + 4) * 4; };
  for (const auto& [batch, keys] : {std::pair{256U, 131072U}, {256U, 32768U}, {64U, 131072U}, {64U, 8192U}}) {
    AttentionProblem one = decode(batch, keys);
    one.uneven_lengths = true;
    const SplitPlan all = plan(one);
    EXPECT_GT(all.runs, 1U);
    EXPECT_LE(all.workspace_bytes, attention_forward::most_workspace);
    const std::uint64_t sequences = all.sequences_a_round == 0 ? batch : all.sequences_a_round;
    EXPECT_EQ(all.workspace_bytes, sequences * of_sequence(keys));
    EXPECT_EQ(all.sequences_a_round == 0, batch * of_sequence(keys) <= attention_forward::most_workspace);
    // Whatever a caller brings.
    for (const std::uint64_t fitting :
         {std::uint64_t{batch}, std::uint64_t{batch - 1}, std::uint64_t{7}, std::uint64_t{1}}) {
      const SplitPlan within = attention_forward::plan_splits(one, target(), {}, fitting * of_sequence(keys) + 1);
      EXPECT_GT(within.runs, 1U);
      EXPECT_LE(within.workspace_bytes, fitting * of_sequence(keys) + 1);
      EXPECT_EQ(within.sequences_a_round == 0, fitting == batch);
    }
    const SplitPlan nothing_fits = attention_forward::plan_splits(one, target(), {}, of_sequence(keys) - 1);
    EXPECT_EQ(nothing_fits.runs, 1U);
    EXPECT_EQ(nothing_fits.reason, Reason::beyond_workspace);
    // A caller that says how many is told that it does not fit.
    one.splits = 4;
    const SplitPlan asked = attention_forward::plan_splits(one, target(), {}, of_sequence(keys) - 1);
    EXPECT_EQ(asked.runs, 4U);
    EXPECT_GT(asked.workspace_bytes, of_sequence(keys) - 1);
  }
}

// A caller that says how many splits brings what he was told of, or all.
TEST(Splits, ThatAreAskedForFitWhatTheWorkspaceIsSaidToBe) {
  for (const bool packed : {false, true}) {
    AttentionProblem one = decode(256, 131072);
    one.packed_queries = packed;
    one.splits = 4;
    const SplitPlan said = plan(one);
    EXPECT_LE(said.workspace_bytes, attention_forward::most_workspace);
    const auto within = [&](std::uint64_t reach) { return attention_forward::plan_splits(one, target(), {}, reach); };
    EXPECT_EQ(within(said.workspace_bytes).runs, 4U);
    EXPECT_EQ(within(said.workspace_bytes).workspace_bytes, said.workspace_bytes);
    EXPECT_EQ(within(said.workspace_bytes - 1).workspace_bytes, said.workspace_bytes) << "refused, with this size";
    const std::uint64_t all = said.workspace_bytes / said.sequences_a_round * 256;
    EXPECT_EQ(within(all).workspace_bytes, all);
  }
}

// One sequence whose parts are more than an engine takes for all: no round is smaller.
TEST(Splits, OfOneLargeSequenceAreARound) {
  AttentionProblem one = decode(3, 1 << 21);
  one.query_length = 32;
  one.query_rows = 96;
  const SplitPlan all = plan(one);
  EXPECT_EQ(all.sequences_a_round, 1U);
  EXPECT_EQ(all.workspace_bytes, std::uint64_t{32} * 64 * 2048 * (128 + 4) * 4);
}

// Where records stand only the device knows, unless each sequence has a place of its own.
TEST(Splits, OfPackedQueriesGoAtOnceOrByTheSequence) {
  const std::uint64_t of_sequence = std::uint64_t{64} * 128 * (128 + 4) * 4;
  AttentionProblem few = decode(62, 131072);
  few.uneven_lengths = few.packed_queries = true;
  const auto within = [](const AttentionProblem& one, std::uint64_t reach) {
    return attention_forward::plan_splits(one, target(), {}, reach);
  };
  const auto rows_of = [](const AttentionProblem& one, const SplitPlan& plan) {
    return attention_forward::kernel_shape(one, plan, target()).rows;
  };
  EXPECT_EQ(plan(few).sequences_a_round, 0U);
  EXPECT_EQ(plan(few).workspace_bytes, 62 * of_sequence);
  EXPECT_EQ(rows_of(few, plan(few)), attention_forward::QueriesOf::all);
  EXPECT_EQ(within(few, 62 * of_sequence - 1).runs, 1U);

  AttentionProblem many = decode(256, 131072);
  many.uneven_lengths = many.packed_queries = true;
  EXPECT_EQ(plan(many).sequences_a_round, 52U);
  EXPECT_EQ(plan(many).workspace_bytes, 52 * of_sequence) << "and not 1,056 MiB";
  EXPECT_GT(plan(many).runs, 1U);
  // The same kernel whatever the workspace.
  for (const std::uint64_t fitting : {256U, 255U, 7U, 1U}) {
    const SplitPlan some = within(many, fitting * of_sequence);
    EXPECT_LE(some.workspace_bytes, fitting * of_sequence);
    EXPECT_GT(some.runs, 1U);
    EXPECT_EQ(rows_of(many, some), attention_forward::QueriesOf::few);
  }
  EXPECT_EQ(within(many, of_sequence - 1).reason, Reason::beyond_workspace);
  EXPECT_EQ(rows_of(many, within(many, of_sequence - 1)), attention_forward::QueriesOf::all) << "whole";
  // Drafts, of which most are shorter than the longest: a place for each row that may be.
  many.query_length = 4;
  many.query_rows = 300;
  EXPECT_EQ(plan(many).workspace_bytes, 4 * plan(many).sequences_a_round * of_sequence);
  EXPECT_LE(plan(many).workspace_bytes, attention_forward::most_workspace);
  // Longer ones have no such kernel.
  many.query_length = 33;
  many.query_rows = 256 * 33;
  many.shape.packed_heads = false;
  many.splits = 4;
  EXPECT_EQ(plan(many).sequences_a_round, 0U);
  EXPECT_EQ(plan(many).workspace_bytes, 33 * 256 * of_sequence);
}

// A batch in a line is the largest; a smaller one goes at once, by another kernel.
TEST(Ranges, OfPackedRowsReachBothPlacesOfParts) {
  const auto rows_of = [](const char* line) {
    std::set<attention_forward::QueriesOf> rows;
    const auto problems = families::parse_problems("attention_forward bf16 " + std::string(line) + " h64/8 d128");
    for (const auto& one : *problems)
      rows.insert(attention_forward::AttentionShape::of_code(one->shape(target(), {})->code).rows);
    return rows;
  };
  using attention_forward::QueriesOf;
  EXPECT_EQ(rows_of("b256 q1 k131072 layout=packed"), (std::set<QueriesOf>{QueriesOf::all, QueriesOf::few}));
  EXPECT_EQ(rows_of("b256 q1 k0..131072 layout=packed"), (std::set<QueriesOf>{QueriesOf::all, QueriesOf::few}));
  EXPECT_EQ(rows_of("b62 q1 k131072 layout=packed"), (std::set<QueriesOf>{QueriesOf::all}));
  EXPECT_EQ(rows_of("b256 q1 k131072"), (std::set<QueriesOf>{QueriesOf::all}));
}

// Whatever the batch of the line, a call of few rows may come with another one.
TEST(Ranges, OfFewRowsReachBothWaysOfKeys) {
  for (const char* line : {"b1 q1..2 k0..8192", "b512 q1..2 k0..8192", "b1 q1 k8192", "b512 q1 k8192"}) {
    const auto problems = families::parse_problems("attention_forward bf16 " + std::string(line) + " h64/8 d128");
    ASSERT_TRUE(problems);
    std::set<bool> split;
    for (const auto& one : *problems)
      split.insert(attention_forward::AttentionShape::of_code(one->shape(target(), {})->code).split);
    EXPECT_EQ(split, (std::set<bool>{false, true})) << line;
  }
}

TEST(Splits, AutoLeavesKeysOfLongerQueriesWhole) {
  for (const std::uint32_t batch : {1U, 64U})
    for (const std::uint32_t keys : {100U, 8192U, 1U << 20}) {
      AttentionProblem one = problem(keys);
      one.query_length = 33;
      one.batch = batch;
      one.query_rows = std::uint64_t{batch} * one.query_length;
      EXPECT_EQ(plan(one).runs, 1U);
    }
}

TEST(Splits, AutoFillsTheDevice) {
  const SplitPlan few = plan(decode(1, 1 << 17));
  EXPECT_EQ(few.reason, Reason::fills_device);
  EXPECT_EQ(few.runs, 64U) << "eight kv heads, 512 places";
  EXPECT_EQ(plan(decode(1, 8 * chunk)).runs, 8U) << "a chunk each";
  EXPECT_EQ(plan(decode(64, 8 * chunk)).reason, Reason::device_is_full) << "512 workgroups";
  EXPECT_EQ(plan(decode(256, 2 * chunk)).runs, 1U);
  EXPECT_EQ(plan(decode(1, chunk + 1)).runs, 1U) << "one key more is no run";
  // Sequences of different lengths: short runs, whatever the longest has.
  AttentionProblem uneven = decode(32, 32 * chunk);
  uneven.uneven_lengths = true;
  // A host that says how many keys there are together can say that all sequences may be as long as the longest.
  using attention_forward::may_be_uneven;
  EXPECT_TRUE(may_be_uneven(true, 64, 8192, 0));
  EXPECT_TRUE(may_be_uneven(true, 64, 8192, 64 * 8191));
  EXPECT_FALSE(may_be_uneven(true, 64, 8192, 64 * 8192));
  EXPECT_FALSE(may_be_uneven(false, 64, 8192, 0));
  EXPECT_FALSE(may_be_uneven(true, 1, 8192, 0));
  EXPECT_EQ(plan(uneven).runs, 32U);
  uneven.key_length = 200 * chunk;
  EXPECT_EQ(plan(uneven).runs, 29U) << "sixteen times what the device holds are 32, of seven chunks: three are empty";
  uneven.batch = 2000;
  uneven.query_rows = 2000;
  EXPECT_EQ(plan(uneven).runs, 1U);
}

// Chunks of lists are short: two runs of 256 keys and a merge take less time than one of 512, while there are places.
TEST(Splits, AutoCutsShortLists) {
  AttentionProblem few = decode(32, 8 * chunk);
  few.shape.listed = true;
  few.top_k = 512;
  EXPECT_EQ(plan(few).runs, 2U) << "256 workgroups, 512 places";
  AttentionProblem many = decode(48, 8 * chunk);
  many.shape.listed = true;
  many.top_k = 512;
  EXPECT_EQ(plan(many).runs, 1U) << "768 workgroups of 512 places would take two turns";
}

// Half of the dies, half of the runs: MI300A, MI308X, a partition of one die, a board of four.
TEST(Splits, AutoFillsTheBoardThatIsThere) {
  const AttentionProblem one = decode(1, 1 << 17);
  for (const char* name : {"gfx942@6x38", "gfx942@4x20", "gfx942@1x38", "gfx950@4x32"}) {
    const auto board = boards::find_board(name);
    ASSERT_TRUE(board) << name;
    const std::uint32_t splits = attention_forward::plan_splits(one, *board, {}).runs;
    // Waves that share chunks have a compute unit for their workgroup.
    const std::uint32_t of_unit = attention_forward::shares_chunks(one, splits, *board) ? 1 : 2;
    const std::uint32_t places = of_unit * static_cast<std::uint32_t>(board->compute_units);
    const std::uint32_t run = (128 + splits - 1) / splits;
    const std::uint32_t rounds = ((8 * splits) + places - 1) / places;
    EXPECT_LE(rounds * run * places, 128U * 8 * 3 / 2) << name << ": " << splits;
  }
}

// Records of a group's heads stand so far apart.
TEST(Splits, PackedHeadsReachTheirRecords) {
  AttentionProblem one = decode(1, 1 << 20);
  one.splits = 4;
  EXPECT_EQ(plan(one).runs, 4U);
  one.query_rows = 1 << 10;
  EXPECT_EQ(plan(one).reason, Reason::beyond_kernels);
}

// A hint is never refused.
TEST(Splits, BeyondWhatKernelsCountNothingIsCut) {
  EXPECT_EQ(plan(problem(2048 * chunk, 4096)).runs, 2048U);
  const SplitPlan chunks = plan(problem((2048 * chunk) + 1, 4));
  EXPECT_EQ(chunks.runs, 1U);
  EXPECT_EQ(chunks.reason, Reason::beyond_kernels);
  EXPECT_EQ(chunks.workspace_bytes, 0U);
  AttentionProblem heads = problem(1 << 20, 64);
  heads.query_heads = 0xFFFF;
  EXPECT_EQ(plan(heads).reason, Reason::beyond_kernels);
  heads.query_heads = 0x3FFF;
  EXPECT_EQ(plan(heads).runs, 16U);
  AttentionProblem rows = problem(1 << 20, 2000);
  rows.query_rows = std::uint64_t{1} << 50;
  EXPECT_EQ(plan(rows).reason, Reason::beyond_kernels) << "2^64 bytes of workspace";
}

// x · multiplier / 2³² is x / divisor wherever kernels use it: the grid's x by heads, chunks by splits.
TEST(Splits, DivideExactlyByMultiplication) {
  const auto quotient = [](std::uint64_t x, std::uint32_t divisor) {
    const std::uint64_t multiplier = attention_forward::division_multiplier(divisor);
    return multiplier == 0 ? x : x * multiplier >> 32U;
  };
  for (const std::uint32_t divisor : {1U, 2U, 3U, 7U, 63U, 64U, 1447U, 2048U}) {
    const std::uint64_t end = 0xFFFFFFFF / divisor;
    for (std::uint64_t k = 1; k * divisor < end; k = k * 3 / 2 + 1) {
      EXPECT_EQ(quotient(k * divisor, divisor), k) << divisor;
      EXPECT_EQ(quotient(k * divisor - 1, divisor), k - 1) << divisor;
    }
    EXPECT_EQ(quotient(end - 1, divisor), (end - 1) / divisor) << divisor;
  }
}

class SplitCallTest : public RuntimeTest {
 protected:
  static constexpr std::size_t megabyte = std::size_t{1} << 20;

  static wavejit_attention_forward_arguments split_call(std::int32_t splits, std::int64_t keys = 4096) {
    auto call = good_call(2, 255, keys);
    call.split.splits = splits;
    return call;
  }
  static void launch(runtime::Engine& engine, const wavejit_attention_forward_arguments& call,
                     hip_abi::hipStream_t stream = nullptr) {
    const auto outcome = ForwardCalls::run(engine, &call, stream);
    ASSERT_TRUE(outcome) << outcome.error().detail;
  }
  static std::uint64_t workspace_of_last_launch() { return fake_hip().last.combine.workspace; }
  static std::size_t bytes_of(runtime::Engine& engine, const wavejit_attention_forward_arguments& call) {
    const auto bytes = ForwardCalls::workspace(engine, &call);
    if (!bytes) throw std::runtime_error(bytes.error().detail);
    return *bytes;
  }
};

// A graph may be replayed on any stream, beside calls that borrow the engine's workspace of this one.
TEST_F(SplitCallTest, ACapturedCallSplitsInTheCallersWorkspaceOnly) {
  auto engine = make_engine();
  auto call = split_call(3);
  auto* const stream = numbered<ihipStream_t>(0x1000);
  launch(*engine, call, stream);           // the kernels are loaded, and the engine has a workspace for the stream
  launch(*engine, split_call(1), stream);  // the kernel that leaves the keys whole
  const std::uint64_t launches = fake_hip().launches;
  const std::uint64_t allocations = fake_hip().allocations;
  fake_hip().capturing = hip_abi::hipStreamCaptureStatusActive;
  launch(*engine, call, stream);
  EXPECT_EQ(fake_hip().launches, launches + 1) << "no combine";
  EXPECT_EQ(fake_hip().last.arguments.splits, 1U);
  EXPECT_EQ(fake_hip().last.arguments.workspace, 0U);
  call.split.workspace = fake_address(11);
  call.split.workspace_bytes = bytes_of(*engine, call);
  launch(*engine, call, stream);
  EXPECT_EQ(fake_hip().launches, launches + 3);
  EXPECT_EQ(workspace_of_last_launch(), reinterpret_cast<std::uintptr_t>(call.split.workspace));
  EXPECT_EQ(fake_hip().allocations, allocations);
  fake_hip().capturing = hip_abi::hipStreamCaptureStatusNone;
}

// What it lacks then is named as what would load it.
TEST_F(SplitCallTest, ACapturedCallWithoutWorkspaceNeedsTheWholeKernelLoaded) {
  auto engine = make_engine();
  auto* const stream = numbered<ihipStream_t>(0x1000);
  launch(*engine, split_call(3), stream);
  fake_hip().capturing = hip_abi::hipStreamCaptureStatusActive;
  const auto call = split_call(3);
  const auto refused = ForwardCalls::run(*engine, &call, stream);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().status, WAVEJIT_NOT_READY);
  EXPECT_THAT(refused.error().detail, HasSubstr("splits=1"));
  fake_hip().capturing = hip_abi::hipStreamCaptureStatusNone;
}

TEST_F(SplitCallTest, LaunchesTheWalkAndThenTheCombine) {
  auto engine = make_engine();
  auto call = split_call(3);
  call.lse = good_lse(call);
  wavejit_call_report report{};
  report.size = sizeof report;
  call.head.report = &report;
  launch(*engine, call);
  EXPECT_EQ(fake_hip().launches, 2U);
  EXPECT_THAT(report.kernel_spec, HasSubstr(" split=1024 "));
  EXPECT_EQ(report.origin, WAVEJIT_ORIGIN_COMPILED);
  EXPECT_EQ(fake_codegen().compiles, 2U);

  const FakeLaunch& walk = fake_hip().before_last;
  EXPECT_EQ(walk.grid, (std::array<unsigned, 3>{8 * 3, 4, 2}));
  EXPECT_EQ(walk.arguments.splits, 3U);
  EXPECT_EQ(walk.arguments.query_heads, 8U);
  const FakeLaunch& combine = fake_hip().last;
  EXPECT_EQ(combine.argument_bytes, offsetof(attention_combine::Arguments, lists));
  EXPECT_EQ(combine.grid, (std::array<unsigned, 3>{255, 8, 2}));  // a row each
  EXPECT_EQ(combine.combine.workspace, walk.arguments.workspace);
  EXPECT_EQ(combine.combine.o, walk.arguments.o);
  EXPECT_EQ(combine.combine.lse, walk.arguments.lse);
  EXPECT_EQ(combine.combine.key_length, 4096U);
  EXPECT_EQ(combine.stream, walk.stream);

  // The next kind of call with the same head dim and type shares the combine kernel; LSE changes neither.
  call.mask.bits = WAVEJIT_MASK_CAUSAL;
  launch(*engine, call);
  EXPECT_EQ(fake_codegen().compiles, 3U);
  call.lse.data = nullptr;
  launch(*engine, call);
  EXPECT_EQ(fake_codegen().compiles, 3U);
  EXPECT_EQ(fake_hip().last.combine.lse, 0U);
  const auto statistics = statistics_of(*engine);
  EXPECT_EQ(statistics.calls, 3U);
  EXPECT_EQ(statistics.compiled, 2U) << "by the kernel that walks the keys";
  EXPECT_EQ(statistics.memory_hits, 1U);
}

TEST_F(SplitCallTest, OneSplitIsTheKernelThatDoesNotSplit) {
  auto engine = make_engine();
  launch(*engine, split_call(1));
  launch(*engine, split_call(64, chunk));
  EXPECT_EQ(fake_hip().launches, 2U);
  EXPECT_EQ(fake_codegen().compiles, 1U);
  EXPECT_EQ(bytes_of(*engine, split_call(64, chunk)), 0U);
}

TEST_F(SplitCallTest, TheCallersWorkspaceIsChecked) {
  auto engine = make_engine();
  auto call = split_call(4);
  const std::size_t bytes = bytes_of(*engine, call);
  EXPECT_EQ(bytes, std::size_t{2} * 255 * 8 * 4 * (128 + 4) * 4);
  call.split.workspace = fake_address(9);
  call.split.workspace_bytes = bytes - 1;
  auto refused = ForwardCalls::run(*engine, &call, nullptr);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().status, WAVEJIT_INVALID_ARGUMENT);
  EXPECT_THAT(refused.error().detail,
              AllOf(HasSubstr("workspace_bytes = " + std::to_string(bytes - 1)), HasSubstr(std::to_string(bytes))));
  call.split.workspace_bytes = bytes;
  call.split.workspace = call.o.data;
  refused = ForwardCalls::run(*engine, &call, nullptr);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().detail, AllOf(HasSubstr("workspace = "), HasSubstr("o does not use")));
  EXPECT_EQ(fake_hip().launches, 0U);
  EXPECT_EQ(fake_codegen().compiles, 0U);

  call.split.workspace = fake_address(9);
  launch(*engine, call);
  EXPECT_EQ(workspace_of_last_launch(), reinterpret_cast<std::uintptr_t>(fake_address(9)));
  EXPECT_EQ(fake_hip().allocations, 0U);
}

TEST_F(SplitCallTest, StreamsShareNoWorkspace) {
  auto engine = make_engine();
  const auto call = split_call(2);
  std::set<std::uint64_t> seen;
  for (const std::uint64_t stream : {0U, 1U, 100U, 200U}) {
    launch(*engine, call, numbered<ihipStream_t>(stream));
    EXPECT_TRUE(seen.insert(workspace_of_last_launch()).second) << "stream " << stream;
  }
  EXPECT_EQ(fake_hip().allocations, 4U);
  launch(*engine, call, numbered<ihipStream_t>(100));
  EXPECT_TRUE(seen.contains(workspace_of_last_launch()));
  // The stream that every thread has for itself goes by one name.
  for (int i = 0; i < 2; ++i) {
    std::jthread([&] { launch(*engine, call, hip_abi::stream_per_thread()); }).join();
    EXPECT_TRUE(seen.insert(workspace_of_last_launch()).second);
  }
  EXPECT_EQ(fake_hip().frees, 0U);
  engine.reset();
  EXPECT_EQ(fake_hip().frees, 6U);
}

// What a stream's kernels may still read stays until the engine goes.
TEST_F(SplitCallTest, AWorkspaceGrowsAndTheOldOneStays) {
  auto engine = make_engine();
  launch(*engine, split_call(2, 2 * chunk));
  const std::uint64_t small = workspace_of_last_launch();
  launch(*engine, split_call(2, 3 * chunk));
  const std::uint64_t large = workspace_of_last_launch();
  EXPECT_NE(small, large);
  EXPECT_EQ(fake_hip().allocations, 2U);
  EXPECT_EQ(fake_hip().frees, 0U);
  launch(*engine, split_call(2, 2 * chunk));
  launch(*engine, split_call(2, 4 * chunk));  // sizes double: room for it is there already
  EXPECT_EQ(workspace_of_last_launch(), large);
  EXPECT_EQ(fake_hip().allocations, 2U);
  engine.reset();
  EXPECT_EQ(fake_hip().frees, 2U);
}

TEST_F(SplitCallTest, TrimGivesWorkspacesBack) {
  auto engine = make_engine();
  launch(*engine, split_call(2));
  launch(*engine, split_call(2, 64 * chunk));  // outgrows the first
  launch(*engine, split_call(2), numbered<ihipStream_t>(100));
  EXPECT_EQ(fake_hip().frees, 0U);
  ASSERT_TRUE(engine->trim());
  EXPECT_EQ(fake_hip().frees, 3U);
  ASSERT_TRUE(engine->trim()) << "there is nothing left";
  EXPECT_EQ(fake_hip().frees, 3U);
  launch(*engine, split_call(2));
  EXPECT_EQ(fake_hip().allocations, 4U) << "what is needed is made again";
  engine.reset();
  EXPECT_EQ(fake_hip().frees, 4U);
}

// The caller's functions may wait for threads that make calls themselves.
TEST_F(SplitCallTest, NoLockIsHeldWhileWorkspacesAreGivenBack) {
  struct Pool {
    runtime::Engine* engine = nullptr;
    bool full = false;
    int nested = 0;
  } pool;
  config_.hooks.allocator_context = &pool;
  config_.hooks.allocate = [](void* context, std::size_t bytes, ihipStream_t*) -> void* {
    auto& self = *static_cast<Pool*>(context);
    return self.full ? nullptr : std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  };
  config_.hooks.release = [](void* context, void* memory, std::size_t, ihipStream_t*) {
    auto& self = *static_cast<Pool*>(context);
    std::free(memory);
    if (self.engine == nullptr || self.nested++ != 0) return;
    self.full = false;
    std::jthread([&] { launch(*self.engine, split_call(2), numbered<ihipStream_t>(300)); }).join();
  };
  auto engine = make_engine();
  launch(*engine, split_call(2));
  pool.engine = engine.get();
  pool.full = true;
  launch(*engine, split_call(8, 64 * chunk));  // no room beside the old one: that goes first
  EXPECT_EQ(pool.nested, 1);
  pool.engine = nullptr;
}

// Many threads on one stream: between the two launches of a call nobody else has its workspace.
TEST_F(SplitCallTest, ThreadsOnOneStreamBorrowInTurn) {
  auto engine = make_engine();
  const auto call = split_call(2);
  launch(*engine, call);
  constexpr int threads = 8;
  std::latch start(threads);
  {
    std::vector<std::jthread> pool;
    pool.reserve(threads);
    for (int t = 0; t < threads; ++t)
      pool.emplace_back([&] {
        start.arrive_and_wait();
        for (int i = 0; i < 200; ++i) EXPECT_TRUE(ForwardCalls::run(*engine, &call, nullptr));
      });
  }
  EXPECT_EQ(fake_hip().launches, 2U * (1 + threads * 200));
  EXPECT_LE(fake_hip().allocations, static_cast<std::uint64_t>(threads));
}

TEST_F(SplitCallTest, WhatDoesNotFitTheDeviceIsRefusedWithBothSizes) {
  auto device = fake_device();
  device.memory_bytes = 8 * megabyte;
  auto assembled =
      runtime::Engine::assemble(config_, device, *codegen_, std::make_unique<runtime::Logger>(runtime::LogLevel::off));
  ASSERT_TRUE(assembled);
  auto call = split_call(4);
  const std::string bytes = std::to_string(std::size_t{2} * 255 * 8 * 4 * (128 + 4) * 4);
  const auto refused = ForwardCalls::run(**assembled, &call, nullptr);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().status, WAVEJIT_OUT_OF_MEMORY);
  EXPECT_THAT(refused.error().detail, AllOf(HasSubstr(bytes), HasSubstr(std::to_string(8 * megabyte))));
  EXPECT_FALSE(ForwardCalls::workspace(**assembled, &call));
  EXPECT_EQ(fake_hip().launches, 0U);

  auto engine = make_engine();
  fake_hip().allocate_error = hip_abi::hipErrorOutOfMemory;
  const auto full = ForwardCalls::run(*engine, &call, nullptr);
  ASSERT_FALSE(full);
  EXPECT_EQ(full.error().status, WAVEJIT_OUT_OF_MEMORY);
  EXPECT_THAT(full.error().detail, HasSubstr(bytes));
  EXPECT_EQ(fake_hip().launches, 0U);
  fake_hip().allocate_error = hip_abi::hipSuccess;
  launch(*engine, call);
}

TEST_F(SplitCallTest, TheEnginesOwnNumberCounts) {
  config_.kv_splits.value = 4;
  auto engine = make_engine();
  launch(*engine, split_call(0));
  EXPECT_EQ(fake_hip().before_last.arguments.splits, 4U);
  launch(*engine, split_call(1));
  EXPECT_EQ(fake_hip().launches, 3U);
}

TEST_F(SplitCallTest, AutoSplitsWhatFewRowsLeaveEmpty) {
  auto engine = make_engine();
  auto call = good_call(1, 1, 1 << 18, 8, 1);
  launch(*engine, call);
  EXPECT_EQ(fake_hip().launches, 2U);
  EXPECT_EQ(fake_hip().before_last.arguments.splits, 256U);
  launch(*engine, good_call(1, 300, 1 << 16, 8, 1));
  EXPECT_EQ(fake_hip().launches, 3U) << "many rows: keys stay whole";
}

std::vector<std::string> explained(const runtime::Config& config, const char* descriptor,
                                   runtime::CodegenLibrary& codegen) {
  const auto lines = runtime::explain(config, descriptor, "gfx950", codegen);
  EXPECT_TRUE(lines) << lines.error().detail;
  return lines.value_or(std::vector<std::string>{});
}

TEST_F(SplitCallTest, ExplainSaysHowManyAndWhy) {
  EXPECT_THAT(explained(config_, "attention_forward fp16 b1 q33 k65536 h8/1 d128", *codegen_),
              Contains(HasSubstr("splits   1: auto leaves the keys of more than 32 query rows whole")));
  const auto lines = explained(config_, "attention_forward fp16 b1 q1 k262144 h8/1 d128", *codegen_);
  EXPECT_THAT(lines, Contains(AllOf(HasSubstr("splits   256, each up to 1 chunk of 1024 keys, 1081344 bytes"),
                                    HasSubstr("fills the device"))));
  EXPECT_THAT(lines, Contains(HasSubstr("attention_combine fp16 d128 target=gfx950")));
  EXPECT_THAT(explained(config_, "attention_forward fp16 b1 q1 k5000 h8/1 d64 splits=3", *codegen_),
              Contains(HasSubstr("splits   3, each up to 2 chunks")));
}

TEST_F(SplitCallTest, PrebuildMakesTheKernelsOfOneLaunchAndOfTwo) {
  std::set<std::string> specs;
  const runtime::PrebuildRequest request{
      .descriptors = {"attention_forward fp16 b1 q1 k4096 h8/1 d128 lse splits=4"}, .targets = "gfx942", .jobs = 1};
  ASSERT_TRUE(runtime::prebuild(config_, request, *codegen_, [&](const runtime::PrebuildProgress& progress) {
    if (progress.kernel_spec != nullptr) specs.insert(*progress.kernel_spec);
  }));
  const auto spec = [](const std::string& words) {
    return "attention_forward fp16 d128 split=1024 " + words + " tile=32x64 o_store=scalar target=gfx942 lowering=llvm";
  };
  EXPECT_EQ(specs, (std::set<std::string>{"attention_combine fp16 d128 target=gfx942 lowering=llvm",
                                          spec("heads=packed chunk_waves=4 pipeline=generic"),
                                          spec("heads=packed pipeline=generic"),
                                          spec("merged heads=packed chunk_waves=4 pipeline=generic"),
                                          spec("merged heads=packed pipeline=generic")}));
}

TEST(CombineSpec, ReadsBackAndSaysWhatIsWrong) {
  const attention_combine::CombineKernel spec{.dtype = attention::DataType::bf16, .head_dim = 64, .target = "gfx942"};
  const auto again = attention_combine::parse_spec(to_text(spec));
  ASSERT_TRUE(again) << again.error();
  EXPECT_EQ(*again, spec);
  for (const auto& [text, what] :
       {std::pair{"attention_combine bf16 d64 target=gfx942", "no word gives the lowering=<name>"},
        {"attention_combine bf16 d0 target=gfx942 lowering=llvm", "word 3 'd0'"},
        {"attention_combine bf16 bf16 d64 target=gfx942 lowering=llvm", "word 3 'bf16': says again"},
        {"attention_combine bf16 d64 causal target=gfx942 lowering=llvm",
         "word 4 'causal': accepted: bf16, fp16, fp32, e4m3, e4m3_fnuz, i8, d<n>"},
        {"attention_forward", "accepted: attention_combine"},
        {"", "accepted: attention_combine"}}) {
    const auto refused = attention_combine::parse_spec(text);
    ASSERT_FALSE(refused) << text;
    EXPECT_THAT(refused.error(), HasSubstr(what));
  }
  EXPECT_TRUE(attention_combine::refusal_of({.head_dim = 260, .target = "gfx942"}));
  EXPECT_TRUE(attention_combine::refusal_of({.head_dim = 128, .target = "gfx1"}));
  EXPECT_FALSE(attention_combine::refusal_of(spec));
}

// From 1 to 8 tiles for a merge choose alike on the devices that are known; a merge of 6,000 cycles is one tile where the
// device is full.
TEST(Splits, TheCostOfAMergeDecidesNothingOfLongChunks) {
  for (const std::uint64_t places : {512U, 608U}) {
    for (std::uint64_t workgroups = 8; workgroups <= 1024; workgroups += 8) {
      for (const std::uint64_t chunks : {2U, 3U, 4U, 6U, 8U, 12U, 16U, 32U, 64U}) {
        const attention::KeysToCut cut = {
            .keys = chunks * 1024, .chunk_keys = 1024, .chunks = chunks, .workgroups = workgroups};
        const std::uint64_t least = attention::chunks_a_run(cut, {.places = places, .merge_cost = 1});
        EXPECT_EQ(attention::chunks_a_run(cut, {.places = places, .merge_cost = 8}), least)
            << workgroups << " workgroups, " << chunks << " chunks, " << places << " places";
      }
    }
  }
}

}  // namespace
}  // namespace wavejit::tests
