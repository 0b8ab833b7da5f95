// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How often a family is asked on the way to a launch: once for its kernels, never why not others.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime_fixture.h"
#include "templates/attention_forward/call/call.h"
#include "templates/attention_forward/kernel/row_limits.h"

namespace wavejit::tests {
namespace {

// A real family, and how often each question came.
class CountedFamily final : public families::Family {
 public:
  std::string_view name() const override { return real_.name(); }
  families::Result<std::unique_ptr<families::DescribedProblem>> parse(std::string_view descriptor) const override {
    return real_.parse(descriptor);
  }
  families::Result<families::Route> route(const families::Shape& shape, const targets::Target& target,
                                          const families::Toggles& toggles) const override {
    ++routes;
    return real_.route({&real_, shape.code}, target, toggles);
  }
  families::Explanation explain(const families::Shape& shape, const targets::Target& target,
                                const families::Toggles& toggles) const override {
    ++explanations;
    return real_.explain({&real_, shape.code}, target, toggles);
  }
  std::vector<families::Shape> every_shape(const targets::Target& target,
                                           const families::Toggles& toggles) const override {
    return real_.every_shape(target, toggles);
  }
  std::string supported(const targets::Target& target) const override { return real_.supported(target); }

  mutable std::atomic<int> routes = 0;
  mutable std::atomic<int> explanations = 0;

 private:
  const families::Family& real_ = attention_forward::family();
};

class CountedCall final : public families::Call {
 public:
  CountedCall(const CountedFamily& family, const attention_forward::AttentionShape& shape)
      : Call({.family = &family, .code = shape.code()}) {}
  families::Result<void> plan(Kernels kernels, const void*, families::LaunchPlan& plan) override {
    for (const families::KernelSpec* kernel : kernels)
      plan.add({.threads = 64, .arguments = &arguments_, .argument_bytes = kernel->argument_bytes()});
    return {};
  }
  WhenMissing when_missing() const override { return missing; }
  std::string descriptor(Line) const override { return "a counted call"; }

  WhenMissing missing = WhenMissing::make_them;

 private:
  attention_forward::LimitedArguments arguments_{};
};

class RouteCount : public RuntimeTest {
 protected:
  CountedFamily family_;
  const attention_forward::AttentionShape shape_ = {{.mask = attention_forward::Mask::causal, .lse = true}};
};

TEST_F(RouteCount, AColdCallRoutesOnceAndAHotOneNever) {
  const auto engine = make_engine();
  CountedCall call(family_, shape_);
  ASSERT_TRUE(engine->run(call, nullptr));
  EXPECT_EQ(statistics_of(*engine).compiled, 1U);
  EXPECT_EQ(family_.routes, 1);
  ASSERT_TRUE(engine->run(call, nullptr));
  EXPECT_EQ(family_.routes, 1);
  EXPECT_EQ(family_.explanations, 0);
}

TEST_F(RouteCount, AKernelOnDiskIsRoutedOnce) {
  CountedCall call(family_, shape_);
  ASSERT_TRUE(make_engine()->run(call, nullptr));
  const auto engine = make_engine();
  ASSERT_TRUE(engine->run(call, nullptr));
  EXPECT_EQ(statistics_of(*engine).disk_hits, 1U);
  EXPECT_EQ(family_.routes, 2) << "once an engine";
  EXPECT_EQ(family_.explanations, 0);
}

// The hook tells the kernel that could not be made: what was routed is still known.
TEST_F(RouteCount, ACompileThatFailsIsRoutedOnceThoughAHookTellsIt) {
  static std::vector<std::string> told;
  told.clear();
  config_.hooks.on_compile = [](void*, const wavejit_compile_event* event) { told.emplace_back(event->kernel_spec); };
  fake_codegen().status = WAVEJIT_CODEGEN_CRASHED;
  const auto engine = make_engine();
  CountedCall call(family_, shape_);
  EXPECT_FALSE(engine->run(call, nullptr));
  ASSERT_EQ(told.size(), 1U);
  EXPECT_THAT(told.front(), ::testing::StartsWith("attention_forward fp16 d128 causal lse"));
  EXPECT_EQ(family_.routes, 1);
  EXPECT_EQ(family_.explanations, 0);
}

TEST_F(RouteCount, ACallThatNoKernelDoesIsRoutedOnce) {
  const auto engine = make_engine();
  attention_forward::AttentionShape shape = shape_;
  shape.head_dim_qk = shape.head_dim_v = 264;
  CountedCall call(family_, shape);
  EXPECT_FALSE(engine->run(call, nullptr));
  EXPECT_FALSE(engine->run(call, nullptr));
  EXPECT_EQ(family_.routes, 1) << "what it said is remembered";
  EXPECT_EQ(family_.explanations, 0);
}

TEST_F(RouteCount, ACallThatWaitsForItsKernelIsRoutedOnce) {
  const auto engine = make_engine();
  CountedCall call(family_, shape_);
  call.missing = families::Call::WhenMissing::refuse;
  EXPECT_FALSE(engine->run(call, nullptr));
  EXPECT_EQ(family_.routes, 1);
  EXPECT_EQ(family_.explanations, 0);
}

}  // namespace
}  // namespace wavejit::tests
