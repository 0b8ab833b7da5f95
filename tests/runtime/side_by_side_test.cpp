// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Kernels of one call are made by several threads: how many, in which order, whose failure is told, and what the times
// say.
#include "runtime/kernels/side_by_side.h"

#include <atomic>
#include <chrono>
#include <latch>
#include <new>
#include <set>
#include <thread>

#include "runtime_fixture.h"

namespace wavejit::tests {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// ---- pieces and helpers --------------------------------------------------------------------------------------------

TEST(SideBySide, WhoHiresNobodyDoesAllInOrder) {
  runtime::Helpers helpers(7);
  std::vector<std::size_t> done;
  std::set<std::thread::id> threads;
  runtime::SideBySide crew(4, helpers, [&](std::size_t piece, std::size_t worker) {
    EXPECT_EQ(worker, 0U);
    done.push_back(piece);
    threads.insert(std::this_thread::get_id());
  });
  crew.run();
  EXPECT_THAT(done, ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(threads, ElementsAre(std::this_thread::get_id()));
}

// Pieces that wait for one another: they end only if each has a thread.
TEST(SideBySide, HelpersTakeWhatIsLeft) {
  runtime::Helpers helpers(7);
  std::latch all(3);
  std::mutex mutex;
  std::set<std::size_t> workers;
  runtime::SideBySide crew(3, helpers, [&](std::size_t, std::size_t worker) {
    crew.hire(worker);
    all.arrive_and_wait();
    const std::scoped_lock lock(mutex);
    workers.insert(worker);
  });
  crew.run();
  EXPECT_THAT(workers, ElementsAre(0, 1, 2));
  EXPECT_EQ(helpers.take(100), 7U) << "they are free again";
}

TEST(SideBySide, NoMoreHelpThanThereIs) {
  runtime::Helpers helpers(3);
  ASSERT_EQ(helpers.take(2), 2U);
  std::mutex mutex;
  std::set<std::size_t> workers;
  std::atomic<bool> helped{false};
  runtime::SideBySide crew(8, helpers, [&](std::size_t piece, std::size_t worker) {
    if (worker != 0) {
      helped = true;
      helped.notify_all();
    }
    if (piece == 0) {
      EXPECT_TRUE(crew.hire(worker));
      helped.wait(false);
    }
    const std::scoped_lock lock(mutex);
    workers.insert(worker);
  });
  crew.run();
  EXPECT_THAT(workers, ElementsAre(0, 1));
  helpers.give_back(2);
  EXPECT_EQ(helpers.take(100), 3U);
  // None at all: the caller's thread does it.
  std::size_t done = 0;
  runtime::SideBySide alone(5, helpers, [&](std::size_t, std::size_t worker) {
    EXPECT_FALSE(alone.hire(worker));
    ++done;
  });
  alone.run();
  EXPECT_EQ(done, 5U);
}

TEST(SideBySide, AfterAFailureNothingIsBegun) {
  runtime::Helpers helpers(1);
  std::vector<std::size_t> begun;
  runtime::SideBySide crew(4, helpers, [&](std::size_t piece, std::size_t) {
    begun.push_back(piece);
    if (piece == 1) crew.stop();
  });
  crew.run();
  EXPECT_THAT(begun, ElementsAre(0, 1));
}

TEST(SideBySide, WhatAHelperThrowsIsThrownToTheCaller) {
  runtime::Helpers helpers(1);
  std::latch both(2);
  runtime::SideBySide crew(2, helpers, [&](std::size_t, std::size_t worker) {
    crew.hire(worker);
    both.arrive_and_wait();
    if (worker == 1) throw std::bad_alloc();
  });
  EXPECT_THROW(crew.run(), std::bad_alloc);
  EXPECT_EQ(helpers.take(100), 1U);
}

// ---- a call of several kernels -------------------------------------------------------------------------------------

// Splits that are asked for: a kernel that walks keys and one that combines.
wavejit_attention_forward_arguments call_of_two(std::int64_t head_dim = 64) {
  auto call = good_call(2, 100, 5000, 8, 1, head_dim);
  call.split.splits = 4;
  return call;
}

class CallOfTwo : public RuntimeTest {
 protected:
  static wavejit_call_report made(runtime::Engine& engine) {
    wavejit_call_report report{};
    report.size = sizeof report;
    auto call = call_of_two();
    call.head.report = &report;
    const auto outcome = ForwardCalls::run(engine, &call, nullptr);
    EXPECT_TRUE(outcome) << outcome.error().detail;
    return report;
  }
};

TEST_F(CallOfTwo, CompilesBothAtOnce) {
  fake_codegen().together = 2;
  const auto engine = make_engine();
  made(*engine);
  EXPECT_EQ(fake_codegen().compiles, 2U);
  EXPECT_EQ(fake_codegen().met, 2) << "each saw the other under way";
  EXPECT_EQ(fake_hip().launches, 2U);
  EXPECT_EQ(fake_hip().module_loads, 2U);
  EXPECT_EQ(fake_hip().strict_loads, 0U) << "a helper relaxes its capture mode too";
  EXPECT_EQ(fake_hip().loaders.size(), 2U);
  EXPECT_EQ(statistics_of(*engine).compiled, 1U) << "a call counts once";
}

// The fake's compiler says 1, 2, 3 and 4 ns of each kernel.
TEST_F(CallOfTwo, TheCallIsToldItsWaitAndStatisticsTheWork) {
  fake_codegen().together = 2;
  const auto engine = make_engine();
  const wavejit_call_report report = made(*engine);
  EXPECT_EQ(report.origin, WAVEJIT_ORIGIN_COMPILED);
  EXPECT_EQ(report.emit_ns, 1U);
  EXPECT_EQ(report.lower_ns, 2U);
  EXPECT_EQ(statistics_of(*engine).compile_ns, 2U * (1 + 2 + 3 + 4));
}

TEST_F(CallOfTwo, FromDiskNobodyHelps) {
  made(*make_engine());
  fake_hip().loaders.clear();
  const wavejit_call_report report = made(*make_engine());
  EXPECT_EQ(report.origin, WAVEJIT_ORIGIN_DISK);
  EXPECT_EQ(fake_codegen().compiles, 2U);
  EXPECT_THAT(fake_hip().loaders, ElementsAre(std::this_thread::get_id()));
}

TEST_F(CallOfTwo, WithoutHelpersCompilesOneAfterTheOther) {
  fake_codegen().delay_ms = 5;
  const std::size_t all = runtime::process_helpers().take(1 << 20);
  const auto engine = make_engine();
  const wavejit_call_report report = made(*engine);
  runtime::process_helpers().give_back(all);
  EXPECT_EQ(fake_codegen().most_under_way, 1);
  EXPECT_EQ(report.lower_ns, 4U) << "of both";
  EXPECT_EQ(statistics_of(*engine).compile_ns, 2U * (1 + 2 + 3 + 4));
}

// Both fail: the one that would have been compiled first is told, however long either takes.
TEST_F(CallOfTwo, OfTwoFailuresTheFirstInOrderIsTold) {
  for (const bool combine_is_slow : {false, true}) {
    reset_fake_codegen();
    fake_codegen().together = 2;
    fake_codegen().judges = [combine_is_slow](std::string_view spec) -> std::int32_t {
      const bool combine = spec.starts_with("attention_combine");
      if (combine == combine_is_slow) std::this_thread::sleep_for(std::chrono::milliseconds(30));
      return WAVEJIT_CODEGEN_REJECTED;
    };
    const auto engine = make_engine();
    auto call = call_of_two();
    for (int round = 0; round < 2; ++round) {
      const auto outcome = ForwardCalls::run(*engine, &call, nullptr);
      ASSERT_FALSE(outcome);
      EXPECT_EQ(outcome.error().status, WAVEJIT_COMPILE_FAILED);
      EXPECT_THAT(outcome.error().detail, HasSubstr("attention_combine"));
    }
    EXPECT_EQ(fake_codegen().compiles, 2U) << "the failures are remembered";
    EXPECT_EQ(fake_hip().launches, 0U);
    EXPECT_EQ(statistics_of(*engine).compile_failures, 2U);
  }
}

TEST_F(CallOfTwo, OneFailureLeavesTheOtherKernelInTheCache) {
  fake_codegen().together = 2;
  fake_codegen().judges = [](std::string_view spec) -> std::int32_t {
    return spec.starts_with("attention_combine") ? WAVEJIT_CODEGEN_REJECTED : WAVEJIT_CODEGEN_OK;
  };
  const auto engine = make_engine();
  auto call = call_of_two();
  const auto outcome = ForwardCalls::run(*engine, &call, nullptr);
  ASSERT_FALSE(outcome);
  EXPECT_THAT(outcome.error().detail, HasSubstr("attention_combine"));
  EXPECT_EQ(statistics_of(*engine).published, 1U);
}

// Kernels that shapes share, from many threads: none waits in a circle, none is compiled twice.
TEST_F(CallOfTwo, ManyThreadsShareKernels) {
  fake_codegen().delay_ms = 1;
  const auto engine = make_engine();
  constexpr int count = 12;
  std::latch start(count);
  {
    std::vector<std::jthread> threads;
    threads.reserve(count);
    for (int i = 0; i < count; ++i) {
      threads.emplace_back([&, i] {
        auto call = call_of_two(i % 2 == 0 ? 64 : 128);
        if (i % 3 == 1) call.mask.bits = WAVEJIT_MASK_CAUSAL;
        if (i % 3 == 2) call.split.splits = 2;
        start.arrive_and_wait();
        const auto outcome = ForwardCalls::run(*engine, &call, nullptr);
        EXPECT_TRUE(outcome) << outcome.error().detail;
      });
    }
  }
  EXPECT_EQ(fake_hip().launches, 2U * count);
  EXPECT_EQ(statistics_of(*engine).published, fake_codegen().compiles);
  const std::size_t all = runtime::process_helpers().take(1 << 20);
  EXPECT_EQ(all, std::max(2U, std::thread::hardware_concurrency()) - 1) << "every helper is free again";
  runtime::process_helpers().give_back(all);
}

// Jobs of prepare are all threads that work for it.
TEST_F(CallOfTwo, PrepareTakesNoMoreThreadsThanItsJobs) {
  const char* const line = "attention_forward fp16 b2 q100 k5000 h8/1 d64 splits=4";
  for (const int jobs : {1, 2}) {
    reset_fake_codegen();
    fake_codegen().delay_ms = 5;
    fake_codegen().together = jobs;
    config_.cache_directory.value = directory_.path() + "/jobs" + std::to_string(jobs);
    const auto engine = make_engine();
    ASSERT_TRUE(engine->prepare(std::span(&line, 1), jobs, {}, [](const runtime::PrepareProgress&) {}));
    EXPECT_EQ(fake_codegen().compiles, 2U);
    EXPECT_EQ(fake_codegen().most_under_way, jobs);
  }
}

}  // namespace
}  // namespace wavejit::tests
