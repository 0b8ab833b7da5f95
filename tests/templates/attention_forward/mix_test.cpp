// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Calls of long and short queries: when two kernels share one, what each is asked for, what is launched, what the lines
// of such calls prepare.
#include "templates/attention_forward/call/mix.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "runtime_fixture.h"
#include "templates/attention_forward/api/calls.h"
#include "templates/attention_forward/call/call.h"
#include "templates/attention_forward/call/descriptor.h"
#include "templates/attention_forward/call/splits.h"
#include "templates/attention_forward/kernel/combine/spec.h"

namespace wavejit::tests {
namespace {

using namespace attention_forward;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

const boards::Board& gfx950() { return *boards::find_product("gfx950"); }

// One of 2,048 rows, 63 of one.
AttentionProblem mixed() {
  AttentionProblem problem;
  problem.shape = {{.dtype = DataType::bf16, .mask = Mask::causal, .lse = true}};
  problem.batch = 64;
  problem.query_length = 2048;
  problem.query_rows = 2048 + 63;
  problem.key_length = 8192;
  problem.query_heads = 64;
  problem.kv_heads = 8;
  problem.uneven_lengths = true;
  problem.packed_queries = true;
  problem.shape.set_rows(plan_rows(problem.query_length, problem.group()));
  return problem;
}

TEST(Mix, TheHostSeesItInTheRows) {
  AttentionProblem problem = mixed();
  EXPECT_EQ(few_rows_of(problem), 4U) << "32 rows of 8 heads";
  problem.packed_queries = false;
  EXPECT_EQ(few_rows_of(problem), 0U);
  problem = mixed();
  problem.query_length = 32;
  EXPECT_EQ(few_rows_of(problem), 0U) << "all are short";
  problem = mixed();
  problem.key_length = chunk_keys;
  EXPECT_EQ(few_rows_of(problem), 0U);
  problem = mixed();
  problem.query_rows = 64 * 2048;
  EXPECT_EQ(few_rows_of(problem), 0U) << "all are long";
  problem.query_rows = 16 * 2048 + 1;
  EXPECT_EQ(few_rows_of(problem), 0U);
  problem.query_rows = 16 * 2048;
  EXPECT_EQ(few_rows_of(problem), 4U) << "of 64 sequences 48 may be short";
  // Prompts, or a training batch: nobody is short.
  problem.batch = 8;
  problem.query_rows = 2048 + 7 * 600;
  EXPECT_EQ(few_rows_of(problem), 0U);
  problem.query_rows = 2048 + 7 * 300;
  EXPECT_EQ(few_rows_of(problem), 0U);
  // Two sequences, one of them short.
  problem.batch = 2;
  problem.query_rows = 2048 + 32;
  EXPECT_EQ(few_rows_of(problem), 32U);
  problem.query_rows = 2048 + 33;
  EXPECT_EQ(few_rows_of(problem), 0U);
  problem.batch = 1;
  problem.query_rows = 2048;
  EXPECT_EQ(few_rows_of(problem), 0U);
  // A few more than tokens, as drafts of four to eight have them: more tiles of 32 rows.
  problem = mixed();
  problem.query_rows = 2048 + 63 * 3;
  EXPECT_EQ(few_rows_of(problem), 8U);
  problem.query_rows = 2048 + 63 * 8;
  EXPECT_EQ(few_rows_of(problem), 16U);
  EXPECT_EQ(of_few_rows(problem, 16).shape.query_rows, QueryRows::up_to_32);
  problem.query_rows = 2048 + 63 * 32;
  EXPECT_EQ(few_rows_of(problem), 32U);
  problem = mixed();
  problem.close_heads = false;
  EXPECT_EQ(few_rows_of(problem), 32U) << "a head a workgroup";
  problem.close_heads = true;
  problem.kv_heads = 1;
  EXPECT_EQ(few_rows_of(problem), 1U);
}

TEST(Mix, WhoPinsOrAsksForSplitsHasOneKernel) {
  AttentionProblem problem = mixed();
  EXPECT_EQ(plan_splits(problem, gfx950(), {}).few_rows, 4U);
  EXPECT_EQ(plan_splits(problem, gfx950(), {.pins = "pipeline=generic"}).few_rows, 0U);
  EXPECT_EQ(plan_splits(problem, gfx950(), {.kv_splits = 4}).few_rows, 0U);
  EXPECT_EQ(plan_splits(problem, gfx950(), {.kv_splits = 1}).few_rows, 4U);
  EXPECT_EQ(plan_splits(problem, gfx950(), {.kv_splits = 1}).runs, 1U);
  problem.splits = 1;
  EXPECT_EQ(plan_splits(problem, gfx950(), {}).few_rows, 4U);
  EXPECT_EQ(plan_splits(problem, gfx950(), {}).workspace_bytes, 0U);
  problem.splits = 2;
  EXPECT_EQ(plan_splits(problem, gfx950(), {}).few_rows, 0U);
}

// Not with the rows of the long ones, and no further than 256 MiB before one row a sequence is all.
TEST(Mix, TheWorkspaceHasRoomForFewRowsASequence) {
  AttentionProblem problem = mixed();
  const std::uint64_t record = (128 + 4) * 4;
  EXPECT_EQ(plan_splits(problem, gfx950(), {}).workspace_bytes, 64 * 4 * 64 * 8 * record);
  problem.query_length = problem.query_rows = 1 << 20;
  EXPECT_EQ(plan_splits(problem, gfx950(), {}).workspace_bytes, 64 * 4 * 64 * 8 * record);
  problem = mixed();
  problem.key_length = 64 * chunk_keys;
  const attention_forward::SplitPlan plan = plan_splits(problem, gfx950(), {});
  EXPECT_EQ(plan.few_rows, 1U);
  EXPECT_EQ(plan.workspace_bytes, 64 * 64 * 64 * record);
}

TEST(Mix, ShapesAreNumbersAndBack) {
  const AttentionProblem problem = mixed();
  const AttentionShape shape = kernel_shape(problem, plan_splits(problem, gfx950(), {}), gfx950());
  EXPECT_TRUE(shape.mixed && shape.split && shape.packed_heads && shape.lse);
  EXPECT_EQ(shape.query_rows, QueryRows::more);
  EXPECT_EQ(shape.short_query_rows, QueryRows::up_to_32);
  EXPECT_EQ(AttentionShape::of_code(shape.code()), shape);
  AttentionShape other = shape;
  other.short_query_rows = QueryRows::more;
  EXPECT_NE(other.code(), shape.code());
  EXPECT_EQ(AttentionShape::of_code(other.code()), other);
}

std::vector<std::string> specs_of(const families::DescribedProblem& problem, const boards::Board& target) {
  const auto route = family().route(*problem.shape(target, {}), target, {});
  if (!route) throw std::runtime_error(route.error().detail);
  std::vector<std::string> specs;
  for (const families::RoutedKernel& kernel : route->kernels) specs.push_back(kernel.label + ": " + kernel.spec.text());
  return specs;
}
std::vector<std::string> specs_of(const std::string& words, const boards::Board& target) {
  const auto problem = families::parse_problem(words);
  if (!problem) throw std::runtime_error(problem.error().detail);
  return specs_of(**problem, target);
}

const std::string mixed_line =
    "attention_forward bf16 b64 q2048 k8192 h64/8 d128 causal lse layout=paged:64 q_rows=2111";

TEST(Mix, TheRouteHasBothKernels) {
  EXPECT_THAT(specs_of(mixed_line, gfx950()),
              ::testing::ElementsAre(
                  "spec: attention_forward bf16 d128 causal lse paged whole_tiles rows=many pipeline=dualwave "
                  "tile=256x64 o_store=permlane target=gfx950 lowering=llvm",
                  "few rows: attention_forward bf16 d128 causal split=1024 heads=packed paged rows=few "
                  "pipeline=generic tile=32x64 o_store=scalar target=gfx950 lowering=llvm",
                  "combine: attention_combine bf16 d128 rows=few target=gfx950 lowering=llvm"));
  const auto whole = specs_of(mixed_line + " splits=1", gfx950());
  ASSERT_EQ(whole.size(), 2U);
  EXPECT_THAT(whole[1], HasSubstr("few rows: attention_forward bf16 d128 causal lse heads=packed paged rows=few "));
  for (const std::string& text : specs_of(mixed_line, gfx950())) {
    const std::string spec = text.substr(text.find(": ") + 2);
    if (spec.starts_with("attention_combine")) {
      EXPECT_EQ(attention_combine::to_text(*attention_combine::parse_spec(spec)), spec);
    } else {
      EXPECT_EQ(to_text(*parse_spec(spec)), spec);
    }
  }
  EXPECT_FALSE(parse_spec(
      "attention_forward bf16 d128 rows=some pipeline=generic tile=32x64 o_store=scalar target=gfx950 lowering=llvm"));
}

// 16 sequences of one kv head have no more workgroups than there are compute units, whole or cut.
TEST(Mix, WavesShareTheChunksOfFewRows) {
  const std::string few = "attention_forward bf16 b16 q2048 k8192 h8/1 d128 causal layout=packed q_rows=2063";
  EXPECT_THAT(specs_of(few, gfx950())[1], HasSubstr(" heads=packed rows=few chunk_waves=4 "));
  EXPECT_THAT(specs_of(few + " splits=1", gfx950())[1], HasSubstr(" heads=packed rows=few chunk_waves=4 "));
  EXPECT_THAT(specs_of(few, *boards::find_product("gfx942"))[1], HasSubstr(" heads=packed rows=few chunk_waves=4 "));
  EXPECT_THAT(specs_of(mixed_line, gfx950())[1], ::testing::Not(HasSubstr("chunk_waves"))) << "4,096 workgroups";
  // One scalar too many there: the kernel spilled, so such calls failed.
  const std::string window =
      "attention_forward bf16 b16 q900 k8192 h8/1 d64 causal window=700,0 layout=paged:16 q_rows=915 splits=1";
  EXPECT_THAT(specs_of(window, *boards::find_product("gfx942"))[1], ::testing::Not(HasSubstr("chunk_waves")));
  EXPECT_THAT(specs_of(window, gfx950())[1], HasSubstr("chunk_waves=4"));
  const auto problem = families::parse_problem(few);
  ASSERT_TRUE(problem);
  std::vector<std::string> said;
  for (const families::Note& note : (*problem)->notes(gfx950(), {})) said.push_back(note.text);
  EXPECT_THAT(said, ::testing::Contains("of few rows share each chunk: 128 workgroups for 256 compute units"));
  EXPECT_THAT(said, ::testing::Contains(HasSubstr("; merged in a second launch: parts of short queries beside long "
                                                  "ones always are")));
}

TEST(Mix, LinesSayHowManyRowsThereAre) {
  const auto parsed = parse_descriptor(mixed_line);
  ASSERT_TRUE(parsed);
  EXPECT_EQ(to_text(*parsed), mixed_line);
  EXPECT_EQ(problem_of(*parsed).query_rows, 2111U);
  EXPECT_TRUE(problem_of(*parsed).packed_queries);
  const std::string head = "attention_forward bf16 b2 q40 k2000 h2 d64 ";
  for (const auto& [words, part] :
       std::vector<std::pair<std::string, std::string>>{{"q_rows=39", "40 and more"},
                                                        {"q_rows=0", "q_rows=<"},
                                                        {"q_rows=x", "q_rows=<"},
                                                        {"layout=packed q_lengths=40,5 q_rows=44", "45 and more"}}) {
    const auto refused = parse_descriptor(head + words);
    ASSERT_FALSE(refused) << words;
    EXPECT_THAT(refused.error().detail, HasSubstr(part)) << words;
  }
  EXPECT_FALSE(parse_descriptor("attention_forward bf16 b2 q1..40 k2000 h2 d64 q_rows=41"));
  // A problem that becomes arrays is told lengths.
  const auto descriptor = parse_descriptor("attention_forward bf16 b4 q40 k2000 h2 d64 layout=packed q_rows=46");
  ASSERT_TRUE(descriptor);
  EXPECT_EQ(with_lengths(*descriptor).query_lengths, (std::vector<std::int64_t>{40, 2, 2, 2}));
}

// Lines of packed queries, which may be mixed: with ranges or without, split and whole.
TEST(Mix, LinesPrepareWhatTheirCallsMayReach) {
  const auto reached = [](const std::string& text) {
    std::set<std::string> specs;
    const auto problems = families::parse_problems(text);
    if (!problems) throw std::runtime_error(problems.error().detail);
    for (const auto& one : *problems)
      for (const std::string& spec : specs_of(*one, gfx950())) specs.insert(spec);
    return specs;
  };
  const std::string head = "attention_forward bf16 b64 ";
  const std::string tail = " k8192 h64/8 d128 causal lse layout=paged:64";
  for (const std::string& text : {mixed_line, head + "q2048" + tail, head + "q1..2048" + tail}) {
    const std::set<std::string> specs = reached(text);
    for (const std::string& spec : specs_of(mixed_line, gfx950())) EXPECT_THAT(specs, Contains(spec)) << text;
    for (const std::string& spec : specs_of(mixed_line + " splits=1", gfx950()))
      EXPECT_THAT(specs, Contains(spec)) << text;
  }
  for (const std::string& text : {head + "q2048 k8192 h64/8 d128", "attention_forward bf16 b1 q2048" + tail})
    EXPECT_THAT(reached(text), Not(Contains(HasSubstr("rows=many")))) << text;
  EXPECT_THAT(reached("attention_forward bf16 b2 q2048 k8192 h64/8 d128 layout=packed q_lengths=2048,2000"),
              Not(Contains(HasSubstr("rows=many"))));
}

class MixedCall : public RuntimeTest {
 protected:
  // One of 512 rows among 7 others over keys in pages; heads 8 over 2: few are 8 rows.
  static wavejit_attention_forward_arguments call() {
    auto call = good_call(1, 519, 4096);
    call.k = wavejit_dense_tensor(fake_address(2), WAVEJIT_FP16, 600, 64, 2, 128);
    call.v = wavejit_dense_tensor(fake_address(3), WAVEJIT_FP16, 600, 64, 2, 128);
    call.sequences.query_starts = static_cast<const std::int32_t*>(fake_address(6));
    call.sequences.key_lengths = static_cast<const std::int32_t*>(fake_address(7));
    call.pages.block_table = static_cast<const std::int32_t*>(fake_address(8));
    call.pages.table_columns = 64;
    call.sequences.count = 8;
    call.sequences.max_query_length = 512;
    call.sequences.max_key_length = 4096;
    return call;
  }
  static void launch(runtime::Engine& engine, const wavejit_attention_forward_arguments& call) {
    const auto outcome = ForwardCalls::run(engine, &call, numbered<ihipStream_t>(0x1000));
    ASSERT_TRUE(outcome) << outcome.error().detail;
  }
  static std::size_t bytes_of(runtime::Engine& engine, const wavejit_attention_forward_arguments& call) {
    const auto bytes = ForwardCalls::workspace(engine, &call);
    if (!bytes) throw std::runtime_error(bytes.error().detail);
    return *bytes;
  }
};

TEST_F(MixedCall, LaunchesTheLongTheShortAndTheCombine) {
  auto engine = make_engine();
  auto one = call();
  wavejit_call_report report{};
  report.size = sizeof report;
  one.head.report = &report;
  launch(*engine, one);
  EXPECT_EQ(fake_hip().launches, 3U);
  EXPECT_THAT(report.kernel_spec, HasSubstr(" rows=many "));
  const FakeLaunch& few = fake_hip().before_last;
  EXPECT_EQ(few.argument_bytes, sizeof(LimitedArguments));
  EXPECT_EQ(few.grid, (std::array<unsigned, 3>{2 * 4, 1, 8}))
      << "kv heads · runs, tiles of 8 rows · 4 heads, sequences";
  const FakeLaunch& combine = fake_hip().last;
  EXPECT_EQ(combine.grid, (std::array<unsigned, 3>{8, 8, 8}));
  EXPECT_EQ(combine.combine.few_rows, 8U);
  EXPECT_EQ(combine.combine.query_length, 512U) << "no sequence counts as longer";
  EXPECT_EQ(combine.combine.workspace, few.arguments.workspace);
  // Whole: the long ones' grid is the launch before.
  one.split.splits = 1;
  launch(*engine, one);
  EXPECT_EQ(fake_hip().launches, 5U);
  const FakeLaunch& many = fake_hip().before_last;
  const unsigned tile = many.block[0] / 2;  // 64 lanes for 32 rows
  const unsigned y = 512 / tile;
  EXPECT_EQ(many.grid, (std::array<unsigned, 3>{8, y, (519 / tile + 8 + y - 1) / y}));
}

// Callers may have brought one for decode: it is used as far as it reaches, and refused where it overlaps.
TEST_F(MixedCall, AnyWorkspaceWillDo) {
  auto engine = make_engine();
  auto one = call();
  const std::size_t bytes = bytes_of(*engine, one);
  EXPECT_EQ(bytes, std::size_t{8} * 8 * 8 * 4 * (128 + 4) * 4);
  one.split.workspace = fake_address(9);
  one.split.workspace_bytes = bytes;
  launch(*engine, one);
  EXPECT_EQ(fake_hip().launches, 3U);
  EXPECT_EQ(fake_hip().last.combine.workspace, reinterpret_cast<std::uintptr_t>(one.split.workspace));
  one.split.workspace_bytes = bytes - 1;
  EXPECT_EQ(bytes_of(*engine, one), bytes) << "the useful size, whatever was brought";
  engine->seal(true);  // what the call had made behind it is there
  engine->seal(false);
  const std::uint64_t compiles = fake_codegen().compiles;
  launch(*engine, one);
  EXPECT_EQ(fake_hip().launches, 6U);
  EXPECT_EQ(fake_hip().last.combine.few_rows, 4U) << "fewer rows count as few";
  one.split.workspace_bytes = 1000;
  launch(*engine, one);
  EXPECT_EQ(fake_hip().launches, 8U) << "keys whole";
  EXPECT_EQ(fake_codegen().compiles, compiles) << "the first call made those kernels, too";
  EXPECT_EQ(fake_hip().allocations, 0U);
  one.split.workspace_bytes = bytes;
  one.split.workspace = one.o.data;
  const auto refused = ForwardCalls::run(*engine, &one, nullptr);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().detail, HasSubstr("o does not use"));
}

TEST_F(MixedCall, PreparedByItsLineASealedEngineCapturesIt) {
  auto engine = make_engine();
  const auto one = call();
  const auto text = ForwardCalls::describe(*engine, &one);
  ASSERT_TRUE(text);
  EXPECT_THAT(*text, HasSubstr(" q_rows=519"));
  const std::vector<const char*> lines = {text->c_str()};
  ASSERT_TRUE(engine->prepare(lines, 1, {}, [](const auto&) {}));
  engine->seal(true);
  launch(*engine, one);
  EXPECT_EQ(fake_hip().launches, 3U);
  fake_hip().capturing = hip_abi::hipStreamCaptureStatusActive;
  launch(*engine, one);
  EXPECT_EQ(fake_hip().launches, 5U) << "without a workspace: not split";
  fake_hip().capturing = hip_abi::hipStreamCaptureStatusNone;
}

}  // namespace
}  // namespace wavejit::tests
