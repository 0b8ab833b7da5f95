// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The example family of docs/adding-a-family.md in a runtime and a code generator that have it: it runs on the
// simulated GPU, the tools' questions are answered, and the other families' keys stay what they are without it.
#include "tests/example_family/row_sum/api/row_sum.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "codegen/generator_id.h"
#include "codegen/table.h"
#include "runtime/call/c_call.h"
#include "runtime/offline/explain.h"
#include "runtime/offline/prebuild.h"
#include "tests/support/scratch_directory.h"
#include "tools/families.h"

namespace wavejit::tests {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class RowSum : public ::testing::TestWithParam<const char*> {
 protected:
  RowSum() {
    config_.device.value = *runtime::parse_device(std::string("sim:") + GetParam());
    config_.cache_directory.value = directory_.path();
    auto device = runtime::open_device(config_.device.value);
    if (!device) throw std::runtime_error(device.error().detail);
    auto engine = runtime::Engine::assemble(config_, *device, codegen_,
                                            std::make_unique<runtime::Logger>(runtime::LogLevel::warning));
    if (!engine) throw std::runtime_error(engine.error().detail);
    engine_.engine = *std::move(engine);
  }

  ScratchDirectory directory_;
  runtime::Config config_;
  runtime::CodegenLibrary codegen_{codegen::table(WAVEJIT_CODEGEN_ABI)};
  wavejit_engine engine_;
};

// What was put in, as a 16-bit float and as the number that it stands for.
struct Half {
  std::uint16_t bits;
  double value;
};
Half small_half(std::mt19937& random) {
  // 1.m · 2^e for e in −3 … 0, either sign: normal, and exact as a double.
  const auto mantissa = static_cast<std::uint16_t>(random() % 1024);
  const int exponent = -static_cast<int>(random() % 4);
  const bool negative = random() % 2 == 0;
  const auto bits =
      static_cast<std::uint16_t>((negative ? 0x8000U : 0U) | static_cast<unsigned>(exponent + 15) << 10U | mantissa);
  return {bits, (negative ? -1.0 : 1.0) * std::ldexp(1.0 + mantissa / 1024.0, exponent)};
}

TEST_P(RowSum, IsTheSumOfEachRow) {
  std::mt19937 random(7);
  for (const std::int32_t dtype : {WAVEJIT_FP32, WAVEJIT_FP16})
    for (const std::int64_t rows : {1, 256, 300})
      for (const std::int64_t columns : {4, 68}) {
        SCOPED_TRACE(std::to_string(dtype) + " r" + std::to_string(rows) + " c" + std::to_string(columns));
        const auto count = static_cast<std::size_t>(rows * columns);
        std::vector<float> floats(count);
        std::vector<std::uint16_t> halves(count);
        std::vector<double> exact(static_cast<std::size_t>(rows));
        for (std::size_t i = 0; i < count; ++i) {
          const Half half = small_half(random);
          halves[i] = half.bits;
          floats[i] = static_cast<float>(half.value);
          exact[i / static_cast<std::size_t>(columns)] += half.value;
        }
        runtime::Engine& engine = *engine_.engine;
        const bool wide = dtype == WAVEJIT_FP32;
        void* input = *engine.allocate(count * (wide ? 4 : 2));
        ASSERT_TRUE(engine.copy_in(input, wide ? static_cast<const void*>(floats.data()) : halves.data(),
                                   count * (wide ? 4 : 2)));
        constexpr float untouched = -77.5F;
        std::vector<float> sums(static_cast<std::size_t>(rows) + 64, untouched);
        void* output = *engine.allocate(sums.size() * sizeof(float));
        ASSERT_TRUE(engine.copy_in(output, sums.data(), sums.size() * sizeof(float)));
        wavejit_row_sum_arguments call{};
        call.head.size = sizeof call;
        call.head.family = WAVEJIT_ROW_SUM;
        call.input = input;
        call.output = output;
        call.rows = rows;
        call.columns = columns;
        call.dtype = dtype;
        ASSERT_EQ(wavejit_row_sum(&engine_, &call, nullptr), WAVEJIT_OK) << wavejit_last_detail();
        ASSERT_TRUE(engine.synchronize());
        ASSERT_TRUE(engine.copy_out(sums.data(), output, sums.size() * sizeof(float)));
        for (std::size_t row = 0; row < exact.size(); ++row) ASSERT_NEAR(sums[row], exact[row], 1e-4) << "row " << row;
        for (std::size_t row = exact.size(); row < sums.size(); ++row) ASSERT_EQ(sums[row], untouched);
        ASSERT_TRUE(engine.release(input));
        ASSERT_TRUE(engine.release(output));
      }
  wavejit_statistics statistics{};
  engine_.engine->fill(statistics);
  EXPECT_EQ(statistics.calls, 12U);
  EXPECT_EQ(statistics.compiled, 2U) << "one a data type: rows and columns are arguments";
  EXPECT_EQ(statistics.memory_hits, 10U);
}

TEST_P(RowSum, RefusesWithFieldValueAndWhatIsAccepted) {
  wavejit_row_sum_arguments call{};
  call.head.size = sizeof call;
  call.head.family = WAVEJIT_ROW_SUM;
  call.dtype = WAVEJIT_FP16;
  call.rows = 1;
  call.columns = 6;
  EXPECT_EQ(wavejit_row_sum(&engine_, &call, nullptr), WAVEJIT_INVALID_ARGUMENT);
  EXPECT_THAT(wavejit_last_detail(), HasSubstr("columns = 6; accepted: multiples of 4"));
  EXPECT_EQ(wavejit_row_sum(&engine_, nullptr, nullptr), WAVEJIT_INVALID_ARGUMENT);
}

TEST_P(RowSum, IsPreparedExplainedAndRefusedWhenSealed) {
  runtime::Engine& engine = *engine_.engine;
  const char* line = "row_sum fp16 r1000 c256";
  wavejit_status status = WAVEJIT_INTERNAL;
  ASSERT_TRUE(engine.prepare({&line, 1}, 1, {&status, 1}, [](const runtime::PrepareProgress&) {}));
  EXPECT_EQ(status, WAVEJIT_OK);
  engine.seal(true);
  wavejit_row_sum_arguments call{};
  call.head.size = sizeof call;
  call.head.family = WAVEJIT_ROW_SUM;
  call.dtype = WAVEJIT_FP32;
  call.rows = 1;
  call.columns = 4;
  call.input = *engine.allocate(16);
  call.output = *engine.allocate(16);
  EXPECT_EQ(wavejit_row_sum(&engine_, &call, nullptr), WAVEJIT_SEALED);
  EXPECT_THAT(wavejit_last_detail(), HasSubstr("\"row_sum fp32 r1 c4\""));

  const auto lines = runtime::explain(config_, line, {}, codegen_);
  ASSERT_TRUE(lines) << lines.error().detail;
  const std::string spec = std::string("row_sum fp16 target=") + GetParam() + " lowering=llvm";
  EXPECT_THAT(*lines, Contains("problem  row_sum fp16 r1000 c256"));
  EXPECT_THAT(*lines, Contains("spec     " + spec));
  EXPECT_THAT(*lines, Contains("key text " + spec + " generator=" + std::string(codegen::generator_id("row_sum")) +
                               " llvm=" + std::string(codegen::llvm_version())));
}

TEST_P(RowSum, IsPrebuiltWithAllOthers) {
  std::vector<std::string> specs;
  std::size_t others = 0;
  // Verifies an empty cache: every kernel is missing, and none is compiled.
  const auto outcome = runtime::prebuild(
      config_, {.descriptors = {}, .everything = true, .targets = GetParam(), .mode = runtime::PrebuildMode::verify},
      codegen_, [&](const runtime::PrebuildProgress& progress) {
        if (progress.kernel_spec == nullptr) return;
        if (progress.kernel_spec->starts_with("row_sum "))
          specs.push_back(*progress.kernel_spec);
        else
          ++others;
      });
  EXPECT_FALSE(outcome);
  const std::string target = GetParam();
  EXPECT_THAT(specs, ::testing::ElementsAre("row_sum fp32 target=" + target + " lowering=llvm",
                                            "row_sum fp16 target=" + target + " lowering=llvm"));
  EXPECT_GT(others, 10U);
}

// The program's half: what `sweep`, `profile` and `compare` do with a line of the family.
TEST_P(RowSum, IsAProblemOfTheProgram) {
  EXPECT_THAT(tools::family_names(), AllOf(StartsWith("attention_forward, "), EndsWith(", row_sum")));
  const tools::Family* family = tools::find_family("row_sum");
  ASSERT_NE(family, nullptr);
  std::vector<std::string> lines = family->listed();
  lines.emplace_back(family->example());
  for (const std::string& line : lines) {
    const auto problem = tools::parse_problem(line);
    ASSERT_TRUE(problem) << problem.error().what;
    EXPECT_EQ((*problem)->text(), line);
    const auto one = (*problem)->make_case();
    const auto ready = one->prepare(&engine_);
    ASSERT_TRUE(ready) << ready.error().what;
    const auto ran = one->run(&engine_, nullptr);
    ASSERT_TRUE(ran) << ran.error().what;
    const auto written = one->written();
    ASSERT_TRUE(written) << written.error().what;
    EXPECT_EQ(one->missing(**written, {}, 0), "");
    EXPECT_EQ(*one->broken_fence(), "");
    const tools::Comparison comparison = one->compare(**written, 1);
    EXPECT_EQ(comparison.wrong(), "");
    EXPECT_EQ(comparison.rows, one->rows());
  }
  const auto wrong = tools::parse_problem("row_sum fp16 r0 c4");
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().code, tools::ExitCode::usage);
}

INSTANTIATE_TEST_SUITE_P(Targets, RowSum, ::testing::Values("gfx942", "gfx950"),
                         [](const auto& info) { return std::string(info.param); });

TEST(ExampleFamily, IsSupportedBesideTheOthers) {
  const auto lines = runtime::supported();
  EXPECT_THAT(lines, Contains("gfx950 (MI355X): row_sum; dtypes fp32 fp16; columns multiples of 4"));
  EXPECT_THAT(lines, Contains(StartsWith("gfx950 (MI355X): attention_forward; ")));
}

TEST(ExampleFamily, FirstWordsLeadToFamilies) {
  const auto none = families::parse_problem("row_product fp16 r1 c4");
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().detail,
              AllOf(HasSubstr("accepted first word: attention_forward, "), HasSubstr(", row_sum")));
  EXPECT_FALSE(families::parse_problem("row_sum fp16 r0 c4"));
  EXPECT_FALSE(families::parse_problem("row_sum fp16 r1"));
  const auto problem = families::parse_problem("row_sum  c8 r2 fp32");
  ASSERT_TRUE(problem) << problem.error().detail;
  EXPECT_EQ((*problem)->text(), "row_sum fp32 r2 c8");
}

// A new family leaves every other one's kernels in the cache.
TEST(ExampleFamily, OtherFamiliesKeepTheirGeneratorId) {
  void* product = dlopen(WAVEJIT_CODEGEN_LIBRARY, RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(product, nullptr) << dlerror();
  const auto get = reinterpret_cast<wavejit_codegen_table_function>(dlsym(product, "wavejit_codegen_table"));
  ASSERT_NE(get, nullptr);
  const auto* table = get(WAVEJIT_CODEGEN_ABI);
  ASSERT_NE(table, nullptr);
  EXPECT_EQ(table->generator_id("row_sum"), nullptr);
  for (const codegen::FamilyGenerator& one : codegen::family_generators()) {
    if (one.family == "row_sum") continue;
    ASSERT_NE(table->generator_id(one.family.data()), nullptr) << one.family;
    EXPECT_EQ(one.id, table->generator_id(one.family.data())) << one.family;
  }
  EXPECT_NE(codegen::generator_id("row_sum"), codegen::generator_id("attention_forward"));
}

}  // namespace
}  // namespace wavejit::tests
