// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a caller asks of a call before it makes it; calls that must not compile, and kernels that are made behind them;
// where log lines go.
#include <algorithm>
#include <array>
#include <chrono>
#include <thread>

#include "runtime_fixture.h"

namespace wavejit::tests {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

constexpr const char* asked_line = "attention_forward fp16 b2 q255 k512 h8/2 d128";  // of good_call()

using Call = wavejit_attention_forward_arguments;

class Questions : public RuntimeTest {
 protected:
  static wavejit_status status_of(const runtime::Result<void>& outcome) {
    return outcome ? WAVEJIT_OK : outcome.error().status;
  }
  static void expect_nothing_happened() {
    EXPECT_EQ(fake_hip().launches, 0U);
    EXPECT_EQ(fake_hip().module_loads, 0U);
    EXPECT_EQ(fake_codegen().compiles, 0U);
  }
  // Until the engine's thread has loaded the call's kernel; 20 s at most.
  static bool becomes_ready(const runtime::Engine& engine, const Call& call) {
    for (int i = 0; i < 20'000; ++i) {
      if (ForwardCalls::is_ready(engine, &call)) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return false;
  }
};

TEST_F(Questions, SupportedAnswersWhatTheCallWould) {
  const auto engine = make_engine();
  const auto asked = [&](const Call& call) { return ForwardCalls::supports(*engine, &call); };
  const auto made = [&](const Call& call) { return ForwardCalls::run(*engine, &call, nullptr); };
  std::vector<Call> bad;
  bad.push_back(good_call(1, 4, 4, 1, 1, 264));  // no kernel for the head dim
  bad.push_back(good_call());
  bad.back().q.data = nullptr;
  bad.push_back(good_call());
  bad.back().split.splits = -1;
  bad.push_back(good_call(1, 4, 4096));
  bad.back().split.splits = 4;
  bad.back().split.workspace = fake_address(9);
  bad.back().split.workspace_bytes = 256;
  bad.push_back(good_call(1, (std::int64_t{1} << 24) + 256, 4, 1, 1, 64));  // more query tiles than a grid has
  for (const Call& call : bad) {
    const auto answer = asked(call);
    expect_nothing_happened();
    ASSERT_FALSE(answer);
    fake_codegen().compiles = 0;
    const auto outcome = made(call);
    ASSERT_FALSE(outcome);
    EXPECT_EQ(answer.error().status, outcome.error().status);
    EXPECT_EQ(answer.error().detail, outcome.error().detail);
    EXPECT_EQ(fake_hip().launches, 0U);
    reset_fake_hip();
    fake_codegen().compiles = 0;
  }
  EXPECT_TRUE(asked(good_call()));
  expect_nothing_happened();
  ASSERT_TRUE(made(good_call()));
  EXPECT_TRUE(asked(good_call()));
}

TEST_F(Questions, TheWorkspaceOfACallThatNoKernelDoesIsRefused) {
  const auto engine = make_engine("gfx942");
  Call call = good_call(1, 4, 4, 1, 1, 264);
  const auto bytes = ForwardCalls::workspace(*engine, &call);
  ASSERT_FALSE(bytes);
  EXPECT_EQ(bytes.error().status, WAVEJIT_UNSUPPORTED);
  EXPECT_THAT(bytes.error().detail, HasSubstr("head dim 264"));
}

TEST_F(Questions, ReadyOnceTheKernelIsLoaded) {
  const auto engine = make_engine();
  Call call = good_call();
  const auto before = ForwardCalls::is_ready(*engine, &call);
  EXPECT_EQ(status_of(before), WAVEJIT_NOT_READY);
  EXPECT_THAT(before.error().detail, HasSubstr(asked_line));
  expect_nothing_happened();
  ASSERT_TRUE(ForwardCalls::run(*engine, &call, nullptr));
  EXPECT_TRUE(ForwardCalls::is_ready(*engine, &call));
  const Call impossible = good_call(1, 4, 4, 1, 1, 264);
  EXPECT_EQ(status_of(ForwardCalls::is_ready(*engine, &impossible)), WAVEJIT_UNSUPPORTED);
}

TEST_F(Questions, PreparedACallLaunchesNothingAndIsReady) {
  const auto engine = make_engine();
  Call call = good_call();
  call.head.flags = WAVEJIT_NO_COMPILE;  // whoever prepares may wait
  ASSERT_TRUE(ForwardCalls::prepare(*engine, &call));
  EXPECT_EQ(fake_hip().launches, 0U);
  EXPECT_EQ(fake_codegen().compiles, 1U);
  EXPECT_TRUE(ForwardCalls::is_ready(*engine, &call));
  ASSERT_TRUE(ForwardCalls::prepare(*engine, &call)) << "what is loaded is left alone";
  EXPECT_EQ(fake_codegen().compiles, 1U);
  EXPECT_EQ(statistics_of(*engine).prepared, 2U);
  EXPECT_EQ(statistics_of(*engine).memory_hits, 1U);

  engine->seal(true);
  EXPECT_TRUE(ForwardCalls::prepare(*engine, &call));
  const Call other = good_call(1, 4, 4, 1, 1, 64);
  const auto refused = ForwardCalls::prepare(*engine, &other);
  EXPECT_EQ(status_of(refused), WAVEJIT_SEALED);
  EXPECT_THAT(refused.error().detail, HasSubstr("wavejit_engine_seal(engine, 0)"));
  const Call impossible = good_call(1, 4, 4, 1, 1, 264);
  EXPECT_EQ(status_of(ForwardCalls::prepare(*engine, &impossible)), WAVEJIT_UNSUPPORTED);
  EXPECT_EQ(statistics_of(*engine).refused_sealed, 1U);
}

// A newer caller's struct ends with fields that this library does not know, all of them 0.
TEST_F(Questions, ALargerStructIsAskedAsItIs) {
  const auto engine = make_engine();
  struct Newer {
    Call call;
    std::array<unsigned char, 64> more;
  } newer = {.call = good_call(1, 1, 16384, 64, 8, 128), .more = {}};
  newer.call.head.size = sizeof newer;
  const auto bytes = ForwardCalls::workspace(*engine, &newer.call);
  ASSERT_TRUE(bytes) << bytes.error().detail;
  EXPECT_GT(*bytes, 0U);
  EXPECT_TRUE(ForwardCalls::supports(*engine, &newer.call));
  EXPECT_TRUE(ForwardCalls::describe(*engine, &newer.call));
  EXPECT_TRUE(ForwardCalls::run(*engine, &newer.call, nullptr));
}

// No later call is cold: what a capture may need must be made here, too.
TEST_F(Questions, PreparedACallThatSplitsKeysMayBeCaptured) {
  const auto engine = make_engine();
  Call call = good_call(1, 1, 16384, 64, 8, 128);
  ASSERT_TRUE(ForwardCalls::prepare(*engine, &call));
  engine->seal(true);  // waits for what is made behind
  EXPECT_TRUE(ForwardCalls::is_ready(*engine, &call));
  Call whole = call;
  whole.split.splits = 1;
  EXPECT_TRUE(ForwardCalls::is_ready(*engine, &whole)) << "a capture without a workspace leaves its keys whole";
}

TEST_F(Questions, TheDescriptionIsALineOfTheCall) {
  const auto engine = make_engine();
  Call call = good_call();
  call.mask.bits = WAVEJIT_MASK_CAUSAL;
  EXPECT_EQ(*ForwardCalls::describe(*engine, &call), std::string(asked_line) + " causal scale=0.125");
  call.modifiers.scale = 0;
  EXPECT_EQ(*ForwardCalls::describe(*engine, &call), std::string(asked_line) + " causal");
  call.head.flags = WAVEJIT_SCALE_IS_ZERO;
  EXPECT_EQ(*ForwardCalls::describe(*engine, &call), std::string(asked_line) + " causal scale=0");
  expect_nothing_happened();
  call.q.data = nullptr;
  EXPECT_EQ(ForwardCalls::describe(*engine, &call).error().status, WAVEJIT_INVALID_ARGUMENT);
}

// ---- Calls that must not compile
// -------------------------------------------------------------------------------------

TEST_F(Questions, NoCompileMakesNothing) {
  const auto engine = make_engine();
  Call call = good_call();
  call.head.flags = WAVEJIT_NO_COMPILE;
  const auto refused = ForwardCalls::run(*engine, &call, nullptr);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().status, WAVEJIT_NOT_READY);
  EXPECT_THAT(refused.error().detail,
              HasSubstr("WAVEJIT_NO_COMPILE and no kernel is loaded for \"" + std::string(asked_line) + "\""));
  expect_nothing_happened();
  EXPECT_EQ(statistics_of(*engine).refused_no_compile, 1U);

  call.head.flags = 0;
  ASSERT_TRUE(ForwardCalls::run(*engine, &call, nullptr));
  call.head.flags = WAVEJIT_NO_COMPILE;
  EXPECT_TRUE(ForwardCalls::run(*engine, &call, nullptr)) << "what is loaded is launched";
  EXPECT_EQ(fake_hip().launches, 2U);

  Call impossible = good_call(1, 4, 4, 1, 1, 264);
  impossible.head.flags = WAVEJIT_NO_COMPILE;
  EXPECT_EQ(status_of(ForwardCalls::run(*engine, &impossible, nullptr)), WAVEJIT_UNSUPPORTED);
  engine->seal(true);
  Call other = good_call(1, 4, 4, 1, 1, 64);
  other.head.flags = WAVEJIT_NO_COMPILE;
  EXPECT_EQ(status_of(ForwardCalls::run(*engine, &other, nullptr)), WAVEJIT_SEALED);
}

TEST_F(Questions, BehindTheCallTheKernelIsMade) {
  std::atomic<bool> may_go{false};
  fake_codegen().awaits = [&] { return may_go.load(); };
  const auto engine = make_engine();
  Call call = good_call();
  call.head.flags = WAVEJIT_NO_COMPILE | WAVEJIT_COMPILE_BEHIND;
  for (int i = 0; i < 3; ++i) {
    const auto refused = ForwardCalls::run(*engine, &call, nullptr);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().status, WAVEJIT_NOT_READY) << "the caller does not wait";
    EXPECT_THAT(refused.error().detail, HasSubstr("it is being made meanwhile"));
  }
  may_go = true;
  ASSERT_TRUE(becomes_ready(*engine, call));
  EXPECT_TRUE(ForwardCalls::run(*engine, &call, nullptr));
  EXPECT_EQ(fake_codegen().compiles, 1U) << "three calls asked for one kernel";
  EXPECT_EQ(fake_hip().launches, 1U);
  const auto statistics = statistics_of(*engine);
  EXPECT_EQ(statistics.refused_no_compile, 3U);
  EXPECT_EQ(statistics.prepared, 1U);
  EXPECT_EQ(statistics.compiled, 1U);
}

TEST_F(Questions, WhatFailedBehindIsToldToTheNextCall) {
  fake_codegen().status = WAVEJIT_CODEGEN_CRASHED;
  const auto engine = make_engine();
  Call call = good_call();
  call.head.flags = WAVEJIT_NO_COMPILE | WAVEJIT_COMPILE_BEHIND;
  wavejit_status last = status_of(ForwardCalls::run(*engine, &call, nullptr));
  EXPECT_EQ(last, WAVEJIT_NOT_READY);
  for (int i = 0; i < 20'000 && last == WAVEJIT_NOT_READY; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    last = status_of(ForwardCalls::run(*engine, &call, nullptr));
  }
  EXPECT_EQ(last, WAVEJIT_COMPILE_FAILED);
}

// An engine that goes waits for the kernel under way and drops those behind it.
TEST_F(Questions, AnEngineMayGoWhileKernelsAreMade) {
  fake_codegen().delay_ms = 50;
  {
    const auto engine = make_engine();
    for (const std::int64_t head_dim : {64, 128, 256}) {
      Call call = good_call(1, 4, 4, 1, 1, head_dim);
      call.head.flags = WAVEJIT_NO_COMPILE | WAVEJIT_COMPILE_BEHIND;
      EXPECT_FALSE(ForwardCalls::run(*engine, &call, nullptr));
    }
  }
  EXPECT_LT(fake_codegen().compiles, 3U);
  EXPECT_EQ(fake_hip().module_loads, fake_hip().module_unloads);
}

// ---- Failures and logs
// -------------------------------------------------------------------------------------------------

TEST_F(Questions, WhatNoKernelDoesIsNoFailureOfTheCompiler) {
  const auto engine = make_engine();
  const std::vector<const char*> lines = {"attention_forward fp16 b1 q1 k1 h1 d264", asked_line};
  EXPECT_FALSE(engine->prepare(lines, 1, {}, [](const runtime::PrepareProgress&) {}));
  const auto statistics = statistics_of(*engine);
  EXPECT_EQ(statistics.compile_failures, 0U);
  EXPECT_EQ(statistics.refused_unsupported, 1U) << "the kernel that the line leads to";
  EXPECT_EQ(statistics.compiled, 1U);
}

TEST_F(Questions, LogLinesGoToTheCallersFunction) {
  using Lines = std::vector<std::pair<std::int32_t, std::string>>;
  Lines lines;
  wavejit_engine_options options{};
  options.size = sizeof options;
  options.log_level = "info";
  options.on_log = [](void* context, std::int32_t level, const char* line) {
    static_cast<Lines*>(context)->emplace_back(level, line);
  };
  options.on_log_context = &lines;
  const auto config = runtime::make_config(&options, {});
  ASSERT_TRUE(config) << config.error().detail;
  runtime::Logger logger(config->log_level.value, runtime::log_sink(*config));
  logger.write(runtime::LogLevel::warning, "a");
  logger.write(runtime::LogLevel::info, "b");
  logger.write(runtime::LogLevel::debug, "c");
  EXPECT_EQ(lines, (Lines{{WAVEJIT_LOG_WARNING, "a"}, {WAVEJIT_LOG_INFO, "b"}}));
}

// The file of misses cannot be written, which is a warning, which the caller's function may take time to tell.
TEST_F(Questions, NoLogLineIsWrittenUnderTheMissLogsLock) {
  config_.miss_log.value = directory_.path() + "/no/such/folder/misses";
  runtime::Engine* raw = nullptr;
  bool called = false;
  auto logger = std::make_unique<runtime::Logger>(runtime::LogLevel::warning,
                                                  [&](runtime::LogLevel /*level*/, std::string_view line) {
                                                    if (called || !line.starts_with("miss_log")) return;
                                                    called = true;
                                                    // Another thread's miss meanwhile.
                                                    std::thread([&] {
                                                      Call other = good_call(1, 4, 4, 1, 1, 64);
                                                      EXPECT_TRUE(ForwardCalls::run(*raw, &other, nullptr));
                                                    }).join();
                                                  });
  const auto engine = runtime::Engine::assemble(config_, fake_device(), *codegen_, std::move(logger));
  ASSERT_TRUE(engine);
  raw = engine->get();
  Call call = good_call();
  EXPECT_TRUE(ForwardCalls::run(*raw, &call, nullptr));
  EXPECT_TRUE(called);
}

}  // namespace
}  // namespace wavejit::tests
