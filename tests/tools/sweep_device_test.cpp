// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A problem's arrays on a simulated device: whole calls, and views of some rows on the same memory.
#include <gtest/gtest.h>

#include <memory>

#include "templates/attention/program/row_reference.h"
#include "templates/attention/program/sampling.h"
#include "templates/attention_forward/program/attention_case.h"
#include "templates/attention_forward/program/described_experiment.h"
#include "templates/attention_forward/program/device_case.h"
#include "tools/simulated_gpu.h"

namespace wavejit::attention_forward::program {
namespace {

std::unique_ptr<wavejit_engine, DestroyEngine> simulated_engine() {
  wavejit_engine_options options{};
  options.size = sizeof options;
  options.device = "sim:gfx950";
  options.cache_mode = "off";
  options.pipeline = "generic";
  wavejit_engine* engine = nullptr;
  if (wavejit_engine_create(&options, &engine) != WAVEJIT_OK) return nullptr;
  return std::unique_ptr<wavejit_engine, DestroyEngine>(engine);
}

// A program that went on would check or time something else than it says.
TEST(SimulatedGpuDeathTest, SettingsThatTheLibraryRefusesEndTheProgram) {
  const auto engine = simulated_engine();
  ASSERT_NE(engine, nullptr) << wavejit_last_detail();
  const auto gpu = tools::SimulatedGpu::resident();
  ASSERT_TRUE(gpu);
  wavejit_simgpu_settings settings = gpu->settings();
  gpu->set(settings);
  settings.threads = 5000;
  EXPECT_EXIT(gpu->set(settings), ::testing::ExitedWithCode(7), "must be of one version");
}

class SweepDeviceTest : public ::testing::TestWithParam<const char*> {};

// A row's bits belong to the row: a view that says where its diagonal begins gives what the whole call gives, and
// touches nothing else.
TEST_P(SweepDeviceTest, ViewsGiveTheRowsOfTheWhole) {
  const auto problem = parse_experiment(GetParam());
  ASSERT_TRUE(problem) << problem.error().what;
  const auto engine = simulated_engine();
  ASSERT_NE(engine, nullptr) << wavejit_last_detail();
  wavejit_engine* const raw = engine.get();

  const Inputs inputs(problem->type, problem->inputs, problem->seed);
  Reference reference(*problem, inputs);
  auto device = DeviceCase::prepare(raw, *problem, inputs, reference.head_values());
  ASSERT_TRUE(device) << device.error().what;
  ASSERT_TRUE(device->erase());
  EXPECT_EQ(count_of(*device->written()), 0);
  const auto ran = device->run(raw, nullptr);
  ASSERT_TRUE(ran) << ran.error().what;
  EXPECT_EQ(*device->written(), all_rows(*problem));
  EXPECT_EQ(*device->broken_fence(), "");
  const auto whole = device->read(all_rows(*problem));
  ASSERT_TRUE(whole);
  reference.want(all_rows(*problem));
  EXPECT_EQ(compare_rows(*problem, reference, all_rows(*problem), *whole).wrong(), "");

  const std::vector<View> all = choose_views(*problem, 1e12);
  for (const View& view : {all.front(), all[all.size() / 2], all.back()}) {
    ASSERT_TRUE(device->erase());
    const auto viewed = device->run(raw, view, nullptr);
    ASSERT_TRUE(viewed) << viewed.error().what;
    const Rows rows = rows_of(*problem, {view});
    EXPECT_EQ(*device->written(), rows);
    EXPECT_EQ(*device->broken_fence(), "");
    const auto some = device->read(rows);
    ASSERT_TRUE(some);
    for (const auto& [head, of_head] : *some)
      for (const auto& [row, bits] : of_head) EXPECT_EQ(bits, whole->at(head).at(row)) << head.head << ' ' << row;
  }
}

// A problem with sinks or slopes is never run as the call without them: predicted pages time calls whose arrays hold nothing.
TEST(SweepDevice, GivesEachHeadOfAModifierANumberOrRefuses) {
  const auto problem = parse_experiment("attention_forward fp16 b2 q3 k40 h4/2 d64 alibi=bh sink");
  ASSERT_TRUE(problem) << problem.error().what;
  const auto engine = simulated_engine();
  ASSERT_NE(engine, nullptr) << wavejit_last_detail();
  const Inputs inputs(problem->type, problem->inputs, problem->seed);
  const auto values = head_values(*problem, inputs);
  EXPECT_EQ(values[attention::program::index_of(Modifier::sink)].size(), 4U);
  EXPECT_EQ(values[attention::program::index_of(Modifier::alibi)].size(), 8U);
  EXPECT_TRUE(DeviceCase::prepare_unfilled(engine.get(), *problem, inputs, values));
  const auto without = DeviceCase::prepare_unfilled(engine.get(), *problem, inputs, {});
  ASSERT_FALSE(without);
  EXPECT_EQ(without.error().what, "a modifier of the problem was given no numbers of heads");
}

// What one run was given to report into is gone when the next question is asked.
TEST(SweepDevice, ARunsReportIsForgottenAfterIt) {
  const auto problem = parse_experiment("attention_forward fp16 b1 q40 k1100 h2 d64 splits=2");
  ASSERT_TRUE(problem) << problem.error().what;
  const auto engine = simulated_engine();
  ASSERT_NE(engine, nullptr) << wavejit_last_detail();
  const Inputs inputs(problem->type, problem->inputs, problem->seed);
  auto device = DeviceCase::prepare(engine.get(), *problem, inputs, {});
  ASSERT_TRUE(device) << device.error().what;
  wavejit_call_report report{};
  report.size = sizeof report;
  const auto ran = device->run(engine.get(), &report);
  ASSERT_TRUE(ran) << ran.error().what;
  report.size = ~std::size_t{0};
  const auto bytes = device->workspace_bytes(engine.get());
  ASSERT_TRUE(bytes) << bytes.error().what;
  EXPECT_GT(*bytes, 0u);
}

// Keys of the whole are split, though those of one run of its rows are not: no workgroup of it is a tile.
TEST(SweepDevice, AProblemThatIsSplitIsSampledByRuns) {
  constexpr double sample = 3e6;
  const auto problem = parse_experiment("attention_forward bf16 b2 q9 k3500 h8/2 d128 lse bool_mask=bh splits=2");
  ASSERT_TRUE(problem) << problem.error().what;
  const ParsedProblem parsed(*problem);
  const auto engine = simulated_engine();
  ASSERT_NE(engine, nullptr) << wavejit_last_detail();
  const auto one = parsed.make_case();
  ASSERT_TRUE(one->prepare(engine.get()));
  ASSERT_GT(*one->workspace_bytes(engine.get()), 0U);
  wavejit_call_report report{};
  report.size = sizeof report;
  ASSERT_TRUE(one->run_least(engine.get(), sample, &report));
  const auto plan = one->plan(report.kernel_spec, sample);
  EXPECT_EQ(plan->workgroups.total, 0U);
  ASSERT_TRUE(one->erase());
  ASSERT_TRUE(one->run_plan(engine.get(), *plan));
  const auto written = one->written();
  ASSERT_TRUE(written) << written.error().what;
  EXPECT_EQ(one->missing(**written, *plan, 0), "");
  EXPECT_EQ(one->compare(**written, sample).wrong(), "");
}

INSTANTIATE_TEST_SUITE_P(
    All, SweepDeviceTest,
    ::testing::Values("attention_forward fp16 b2 q300 k310 h4/2 d64 causal lse layout=bhsd",
                      "attention_forward bf16 b3 q280 k310 h4/2 d64 causal window=100,0 lse layout=packed "
                      "q_lengths=280,3,77 k_lengths=310,5,90 bias=bh alibi=bh sink softcap=4",
                      "attention_forward fp16 b2 q40 k310 h4/2 d128 k_lengths=310,33 bias=h alibi=h",
                      "attention_forward fp16 b2 q300 k120 h2 d64 causal lse bias=1 sink"));

}  // namespace
}  // namespace wavejit::attention_forward::program
