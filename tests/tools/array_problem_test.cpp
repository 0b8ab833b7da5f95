// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A small family's problem out of one struct, on a simulated device: a call that copies rows stands in for a kernel.
#include "tools/array_problem.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "tools/device_array.h"

namespace wavejit::tools {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t rows = 5;
constexpr std::int64_t columns = 3;

std::unique_ptr<wavejit_engine, DestroyEngine> simulated_engine() {
  wavejit_engine_options options{};
  options.size = sizeof options;
  options.device = "sim:gfx950";
  options.cache_mode = "off";
  wavejit_engine* engine = nullptr;
  if (wavejit_engine_create(&options, &engine) != WAVEJIT_OK) return nullptr;
  return std::unique_ptr<wavejit_engine, DestroyEngine>(engine);
}

// The output is the input; `spoil` changes it on its way, `bytes` and `offset` say what of it arrives where.
struct Copy {
  std::function<void(std::vector<float>&)> spoil = [](std::vector<float>&) {};
  std::ptrdiff_t offset = 0;
  std::size_t bytes = rows * columns * sizeof(float);
};

ArrayProblem copy_of(const std::vector<float>& values, const Copy& how) {
  ArrayProblem problem{.text = "copy", .rows = rows, .columns = columns};
  problem.inputs = {bytes_of(values)};
  problem.launch = [how](wavejit_engine* engine, std::span<void* const> inputs, void* output, wavejit_call_report*) {
    std::vector<float> read(rows * columns);
    if (auto done = checked(wavejit_device_copy_out(engine, read.data(), inputs[0], read.size() * 4)); !done)
      return done;
    how.spoil(read);
    return checked(wavejit_device_copy_in(engine, static_cast<char*>(output) + how.offset, read.data(), how.bytes));
  };
  problem.exact = [values](std::int64_t row) {
    const auto begin = values.begin() + row * columns;
    return std::vector<double>(begin, begin + columns);
  };
  problem.allowed = 1e-6;
  return problem;
}

struct Ran {
  std::string missing;
  std::string fence;
  std::string verdict;
};

Ran run(const Copy& how) {
  const auto engine = simulated_engine();
  EXPECT_NE(engine, nullptr) << wavejit_last_detail();
  const auto problem = make_problem(copy_of(seeded_values(7, rows * columns), how));
  const auto one = problem->make_case();
  EXPECT_TRUE(one->prepare(engine.get()));
  EXPECT_TRUE(one->erase());
  const auto plan = one->plan("", 1);
  EXPECT_TRUE(one->run_plan(engine.get(), *plan));
  const auto written = one->written();
  EXPECT_TRUE(written);
  EXPECT_TRUE((*written)->same_as(**written));
  return {.missing = one->missing(**written, *plan, 0),
          .fence = one->broken_fence().value_or("cannot be read"),
          .verdict = one->compare(**written, 1).wrong()};
}

TEST(ArrayProblem, WhatIsRightPasses) {
  const Ran ran = run({});
  EXPECT_EQ(ran.missing, "");
  EXPECT_EQ(ran.fence, "");
  EXPECT_EQ(ran.verdict, "");
}

TEST(ArrayProblem, WhatIsWrongIsTold) {
  EXPECT_THAT(run({.spoil = [](std::vector<float>& values) { values[7] += 0.01F; }}).verdict,
              HasSubstr("token 2, head 0, dim 1"));
  EXPECT_EQ(run({.bytes = (rows - 1) * columns * sizeof(float)}).missing, "4 rows were written instead of 5");
  EXPECT_EQ(run({.offset = 4}).fence, "byte 0 behind the output was written");
  EXPECT_EQ(run({.offset = -4}).fence, "byte 4 before the output was written");
}

TEST(ArrayProblem, SeededValuesAreUniformAndTheSeedsOwn) {
  const auto values = seeded_values(1, 4096);
  double sum = 0;
  double squares = 0;
  for (const float value : values) {
    EXPECT_LT(std::abs(value), 1.0F);
    sum += static_cast<double>(value);
    squares += static_cast<double>(value) * static_cast<double>(value);
  }
  EXPECT_NEAR(sum / 4096, 0, 0.04);
  EXPECT_NEAR(squares / 4096, 1.0 / 3, 0.02);
  EXPECT_EQ(values, seeded_values(1, 4096));
  EXPECT_NE(values, seeded_values(2, 4096));
}

}  // namespace
}  // namespace wavejit::tools
