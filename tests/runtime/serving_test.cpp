// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a serving engine leans on: prepared kernels, sealed engines, captured streams, hooks, the miss log, statistics.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <latch>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "runtime/offline/prebuild.h"
#include "runtime_fixture.h"
#include "templates/attention_forward/call/call_descriptor.h"

namespace wavejit::tests {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr const char* prefill = "attention_forward fp16 b1 q4096 k4096 h8/2 d128";
constexpr const char* decode = "attention_forward fp16 b64 q1 k512 h8/2 d128";
constexpr const char* good_line = "attention_forward fp16 b2 q255 k512 h8/2 d128";  // of good_call()

// A kernel's event with its texts kept.
struct Event {
  std::string descriptor;
  std::string kernel_spec;
  std::string key;
  std::string detail;
  wavejit_compile_event raw{};
};

class Serving : public RuntimeTest {
 protected:
  using Lines = std::vector<const char*>;

  static runtime::Result<void> prepare(runtime::Engine& engine, const Lines& lines,
                                       std::vector<wavejit_status>* statuses = nullptr, int jobs = 2) {
    if (statuses != nullptr) statuses->assign(lines.size(), WAVEJIT_INTERNAL);
    return engine.prepare(lines, jobs, statuses != nullptr ? std::span(*statuses) : std::span<wavejit_status>(),
                          [](const runtime::PrepareProgress&) {});
  }
  static runtime::Failure failure_of(runtime::Engine& engine, const wavejit_attention_forward_arguments& call,
                                     ihipStream_t* stream = nullptr) {
    auto outcome = ForwardCalls::run(engine, &call, stream);
    if (outcome) throw std::runtime_error("the call succeeded");
    return outcome.error();
  }
  void listen() {
    config_.hooks.on_compile_context = this;
    config_.hooks.on_compile = [](void* context, const wavejit_compile_event* event) {
      auto& self = *static_cast<Serving*>(context);
      const std::scoped_lock lock(self.mutex_);
      self.events_.push_back({.descriptor = event->descriptor,
                              .kernel_spec = event->kernel_spec,
                              .key = event->key,
                              .detail = event->detail != nullptr ? event->detail : "",
                              .raw = *event});
    };
  }
  std::string miss_log() {
    config_.miss_log.value = directory_.path() + "/misses";
    return config_.miss_log.value;
  }
  static std::vector<std::string> lines_of(const std::string& path) {
    std::ifstream file(path);
    std::vector<std::string> lines;
    for (std::string line; std::getline(file, line);) lines.push_back(line);
    return lines;
  }
  static ihipStream_t* created_stream() { return numbered<ihipStream_t>(0x1000); }

  std::vector<Event> events_;
};

// ---- prepare -------------------------------------------------------------------------------------------------------

TEST_F(Serving, PreparedCallsFindTheirKernels) {
  const auto engine = make_engine();
  std::vector<wavejit_status> statuses;
  const auto prepared = prepare(*engine, {prefill, decode, good_line, decode}, &statuses);
  ASSERT_TRUE(prepared) << prepared.error().detail;
  EXPECT_THAT(statuses, ::testing::Each(WAVEJIT_OK));
  EXPECT_EQ(fake_codegen().compiles, 4U) << "two lines share kernels; decode has two, by the batch";
  EXPECT_EQ(fake_hip().module_loads, 4U);
  auto call = good_call();
  ASSERT_TRUE(ForwardCalls::run(*engine, &call, nullptr));
  EXPECT_EQ(fake_hip().module_loads, 4U);
  const auto statistics = statistics_of(*engine);
  EXPECT_EQ(statistics.prepared, 4U);
  EXPECT_EQ(statistics.compiled, 4U);
  EXPECT_EQ(statistics.memory_hits, 1U);
  EXPECT_TRUE(prepare(*make_engine(), {}));
}

TEST_F(Serving, ALineWithARangePreparesEveryClassOfLength) {
  const auto engine = make_engine();
  std::vector<wavejit_status> statuses;
  const auto prepared = prepare(*engine, {"attention_forward fp16 b1 q1..4096 k0..8192 h8/2 d128"}, &statuses);
  ASSERT_TRUE(prepared) << prepared.error().detail;
  EXPECT_THAT(statuses, ElementsAre(WAVEJIT_OK));
  const std::uint64_t compiles = fake_codegen().compiles;
  EXPECT_GE(compiles, 3U);
  engine->seal(true);
  for (const std::int64_t queries : {1, 32, 33, 64, 65, 255, 256, 4096}) {
    const auto call = good_call(2, queries);
    const auto outcome = ForwardCalls::run(*engine, &call, nullptr);
    EXPECT_TRUE(outcome) << queries << ": " << outcome.error().detail;
  }
  EXPECT_EQ(fake_codegen().compiles, compiles);
  // A line fails when one of its kernels does, and is told once; single problems are asked for elsewhere.
  const auto other = make_engine("gfx942");
  const auto refused = prepare(*other, {"attention_forward fp16 b1 q1..300 k1 h8 d256 cache=e4m3", decode}, &statuses);
  ASSERT_FALSE(refused);
  EXPECT_THAT(statuses, ElementsAre(WAVEJIT_UNSUPPORTED, WAVEJIT_OK));
  EXPECT_THAT(families::parse_problem("attention_forward fp16 b1 q1..300 k1 h8 d64").error().detail,
              HasSubstr("a range of lengths; accepted here: single lengths"));
}

// Whether query tiles go in pairs shows in the batch that comes, not in the line that was prepared.
TEST_F(Serving, ACausalLinePreparesSingleAndPairedTiles) {
  const auto engine = make_engine();
  ASSERT_TRUE(prepare(*engine, {"attention_forward fp16 b1 q1024 k1024 h8/2 d128 causal"}));
  EXPECT_EQ(fake_codegen().compiles, 2U);
  engine->seal(true);
  for (const std::int64_t batch : {1, 16, 64}) {
    auto call = good_call(batch, 1024, 1024);
    call.mask.bits = WAVEJIT_MASK_CAUSAL;
    const auto outcome = ForwardCalls::run(*engine, &call, nullptr);
    EXPECT_TRUE(outcome) << batch << ": " << outcome.error().detail;
  }
  EXPECT_EQ(fake_hip().launches, 3U);
}

TEST_F(Serving, ALineThatFailsLeavesTheOthersAlone) {
  const auto engine = make_engine();
  std::vector<wavejit_status> statuses;
  std::vector<std::string> told;
  const Lines lines = {decode, "attention_forward fp16 b1 q1 k1 h1 d128 casual", nullptr,
                       "attention_forward fp16 b1 q1 k1 h1 d130"};
  statuses.resize(lines.size());
  const auto outcome = engine->prepare(lines, 3, statuses, [&](const runtime::PrepareProgress& progress) {
    EXPECT_EQ(progress.total, 4U);
    EXPECT_EQ(progress.done, progress.compiled + progress.from_disk + progress.present + progress.failed);
    EXPECT_EQ(progress.done, told.size());
    told.emplace_back(progress.failure != nullptr ? *progress.failure : "");
    throw std::runtime_error("contained");
  });
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().status, WAVEJIT_INVALID_ARGUMENT);
  EXPECT_THAT(outcome.error().detail, HasSubstr("descriptors[1]: "));
  EXPECT_THAT(outcome.error().detail, HasSubstr("casual"));
  EXPECT_THAT(outcome.error().detail, HasSubstr("the first of 3 that failed"));
  EXPECT_THAT(statuses,
              ElementsAre(WAVEJIT_OK, WAVEJIT_INVALID_ARGUMENT, WAVEJIT_INVALID_ARGUMENT, WAVEJIT_UNSUPPORTED));
  EXPECT_EQ(told.size(), 5U) << "the start, and each line";
  EXPECT_THAT(log_, Contains(HasSubstr("warning: the progress callback of prepare threw")));
  EXPECT_THAT(prepare(*engine, {decode}, nullptr, 1025).error().detail, HasSubstr("jobs = 1025"));
  EXPECT_THAT(prepare(*engine, {decode}, nullptr, -1).error().detail, HasSubstr("jobs = -1"));
}

TEST_F(Serving, ManyThreadsThatPrepareTheSameCompileEachOnce) {
  fake_codegen().delay_ms = 20;
  const auto engine = make_engine();
  const Lines lines = {prefill, decode, "attention_forward bf16 b1 q1 k1 h1 d64",
                       "attention_forward fp16 b1 q7 k9 h4 d64 causal lse"};
  constexpr int count = 8;
  std::latch start(count);
  std::atomic<int> failed{0};
  {
    std::vector<std::jthread> threads;
    threads.reserve(count);
    for (int i = 0; i < count; ++i) {
      threads.emplace_back([&] {
        std::vector<wavejit_status> statuses;
        start.arrive_and_wait();
        if (!prepare(*engine, lines, &statuses)) ++failed;
      });
    }
  }
  EXPECT_EQ(failed, 0);
  const std::size_t kernels = lines.size() + 3;  // of few rows two, by the batch
  EXPECT_EQ(fake_codegen().compiles, kernels);
  EXPECT_EQ(fake_hip().module_loads, kernels);
  EXPECT_EQ(statistics_of(*engine).prepared, count * kernels);
}

TEST_F(Serving, EnginesOfOneProcessShareTheDiskAndNothingElse) {
  const auto first = make_engine();
  const auto second = make_engine();
  ASSERT_TRUE(prepare(*first, {decode}));
  first->seal(true);
  ASSERT_TRUE(prepare(*second, {decode, prefill}));
  EXPECT_EQ(fake_codegen().compiles, 3U);
  EXPECT_EQ(fake_hip().module_loads, 5U);
  EXPECT_EQ(statistics_of(*second).disk_hits, 2U);
  EXPECT_FALSE(second->sealed());
}

// ---- seal ----------------------------------------------------------------------------------------------------------

TEST_F(Serving, ASealedEngineRefusesAndNamesTheLine) {
  const std::string log = miss_log();
  const auto engine = make_engine();
  ASSERT_TRUE(prepare(*engine, {decode}));
  engine->seal(true);
  auto warm = good_call(64, 1, 512);
  EXPECT_TRUE(ForwardCalls::run(*engine, &warm, nullptr));
  auto cold = good_call();
  cold.mask.bits = WAVEJIT_MASK_CAUSAL;
  const std::uint64_t launches = fake_hip().launches;
  for (int round = 0; round < 3; ++round) {
    const runtime::Failure failure = failure_of(*engine, cold);
    EXPECT_EQ(failure.status, WAVEJIT_SEALED);
    EXPECT_THAT(failure.detail, HasSubstr("\"" + std::string(good_line) + " causal\""));
  }
  EXPECT_EQ(fake_codegen().compiles, 2U);
  EXPECT_EQ(fake_hip().launches, launches);
  EXPECT_EQ(prepare(*engine, {prefill}).error().status, WAVEJIT_SEALED);
  EXPECT_TRUE(prepare(*engine, {decode})) << "what is loaded is prepared";
  const auto statistics = statistics_of(*engine);
  EXPECT_EQ(statistics.refused_sealed, 4U);
  EXPECT_EQ(statistics.compiled, 2U);
  EXPECT_THAT(lines_of(log), Contains(std::string(good_line) + " causal"));
  // The named line is what was missing.
  engine->seal(false);
  ASSERT_TRUE(prepare(*engine, {(std::string(good_line) + " causal").c_str()}));
  engine->seal(true);
  EXPECT_TRUE(ForwardCalls::run(*engine, &cold, nullptr));
}

TEST_F(Serving, WhatNoKernelDoesIsToldAsSuch) {
  const auto engine = make_engine();
  const auto impossible = good_call(1, 1, 1, 1, 1, 264);
  fake_hip().capturing = hip_abi::hipStreamCaptureStatusActive;
  EXPECT_EQ(failure_of(*engine, impossible, created_stream()).status, WAVEJIT_UNSUPPORTED);
  engine->seal(true);
  EXPECT_EQ(failure_of(*engine, impossible).status, WAVEJIT_UNSUPPORTED);
  EXPECT_EQ(statistics_of(*engine).refused_unsupported, 2U);
}

TEST_F(Serving, SealedMeansNoLookAtTheDiskEither) {
  ASSERT_TRUE(prepare(*make_engine(), {decode}));  // on disk now
  const auto engine = make_engine();
  engine->seal(true);
  EXPECT_EQ(failure_of(*engine, good_call(64, 1, 512)).status, WAVEJIT_SEALED);
  EXPECT_EQ(statistics_of(*engine).disk_hits, 0U);
}

// ---- capture -------------------------------------------------------------------------------------------------------

TEST_F(Serving, AColdCallInACaptureIsRefusedBeforeAnythingHappens) {
  const auto engine = make_engine();
  for (const auto status : {hip_abi::hipStreamCaptureStatusActive, hip_abi::hipStreamCaptureStatusInvalidated}) {
    fake_hip().capturing = status;
    const runtime::Failure failure = failure_of(*engine, good_call(), created_stream());
    EXPECT_EQ(failure.status, WAVEJIT_NOT_READY);
    EXPECT_THAT(failure.detail, HasSubstr("\"" + std::string(good_line) + "\""));
  }
  EXPECT_EQ(fake_codegen().compiles, 0U);
  EXPECT_EQ(fake_hip().module_loads, 0U);
  EXPECT_EQ(fake_hip().launches, 0U);
  EXPECT_EQ(statistics_of(*engine).refused_capturing, 2U);
  // Prepared, it is launched like any other, and nobody asks about captures any more.
  ASSERT_TRUE(prepare(*engine, {good_line}));
  const std::uint64_t questions = fake_hip().capture_questions;
  auto call = good_call();
  EXPECT_TRUE(ForwardCalls::run(*engine, &call, created_stream()));
  EXPECT_EQ(fake_hip().launches, 1U);
  EXPECT_EQ(fake_hip().capture_questions, questions);
}

TEST_F(Serving, ACallWithAReportIsRefusedTheSameWay) {
  const auto engine = make_engine();
  fake_hip().capturing = hip_abi::hipStreamCaptureStatusActive;
  wavejit_call_report report{};
  report.size = sizeof report;
  auto call = good_call();
  call.head.report = &report;
  EXPECT_EQ(failure_of(*engine, call, created_stream()).status, WAVEJIT_NOT_READY);
}

TEST_F(Serving, TheNullStreamIsNeverCaptured) {
  fake_hip().capturing = hip_abi::hipStreamCaptureStatusActive;
  const auto engine = make_engine();
  auto call = good_call();
  EXPECT_TRUE(ForwardCalls::run(*engine, &call, nullptr));
  EXPECT_EQ(fake_hip().capture_questions, 0U);
}

TEST_F(Serving, CheckingLengthsWouldWaitForTheStream) {
  const auto engine = make_engine();
  fake_hip().capturing = hip_abi::hipStreamCaptureStatusActive;
  auto call = good_call();
  call.head.flags = WAVEJIT_CHECK_LENGTHS;
  const runtime::Failure failure = failure_of(*engine, call, created_stream());
  EXPECT_EQ(failure.status, WAVEJIT_INVALID_ARGUMENT);
  EXPECT_THAT(failure.detail, HasSubstr("WAVEJIT_CHECK_LENGTHS"));
}

TEST_F(Serving, LoadingBreaksNobodysCapture) {
  const auto engine = make_engine();
  auto call = good_call();
  ASSERT_TRUE(ForwardCalls::run(*engine, &call, created_stream()));
  EXPECT_EQ(fake_hip().module_loads, 1U);
  EXPECT_EQ(fake_hip().strict_loads, 0U) << "the thread's capture mode was relaxed";
  hip_abi::hipStreamCaptureMode mode = hip_abi::hipStreamCaptureModeGlobal;
  fake_hip_functions().hipThreadExchangeStreamCaptureMode(&mode);
  EXPECT_EQ(mode, hip_abi::hipStreamCaptureModeGlobal) << "and is the caller's own again";
}

// ---- cold decode ---------------------------------------------------------------------------------------------------

// Splits of `auto`, whose parts are merged in the same launch. What captures may take is made behind it: the kernel of
// whole keys, without a workspace, and both of two launches, without counters.
wavejit_attention_forward_arguments split_decode() { return good_call(1, 1, 4096, 8, 1, 64); }
constexpr std::uint64_t kernels_of_split = 1;
constexpr std::uint64_t kernels_behind = 3;

TEST_F(Serving, AColdDecodeCallMakesItsOwnKernelsFirst) {
  const auto engine = make_engine();
  // Whatever is made behind the call waits until it has launched.
  fake_codegen().awaits = [] {
    return fake_codegen().begun <= static_cast<int>(kernels_of_split) || fake_hip().launches > 0;
  };
  auto call = split_decode();
  ASSERT_TRUE(ForwardCalls::run(*engine, &call, nullptr));
  EXPECT_EQ(fake_hip().launches, kernels_of_split);
  engine->seal(true);  // waits for what is made behind
  EXPECT_EQ(fake_codegen().compiles, kernels_of_split + kernels_behind);
  const wavejit_statistics statistics = statistics_of(*engine);
  EXPECT_EQ(statistics.calls, 1U);
  EXPECT_EQ(statistics.prepared, 2U);
  EXPECT_EQ(statistics.compiled, 3U);  // calls and lines, not kernels
  EXPECT_EQ(statistics.memory_hits, 0U);
}

// A capture without counters takes two launches: what is missing then, and named, are their kernels, though those of one
// launch are on their way.
TEST_F(Serving, ACaptureWithoutCountersAsksForTwoLaunches) {
  const auto engine = make_engine();
  std::atomic<bool> captured{false};
  const auto begun = std::chrono::steady_clock::now();
  fake_codegen().awaits = [&] {
    return captured.load() || std::chrono::steady_clock::now() - begun > std::chrono::seconds(5);
  };
  auto call = split_decode();
  call.head.flags = WAVEJIT_NO_COMPILE | WAVEJIT_COMPILE_BEHIND;
  ASSERT_FALSE(ForwardCalls::run(*engine, &call, nullptr));
  call.head.flags = 0;
  call.split.workspace = fake_address(900);
  call.split.workspace_bytes = std::size_t{1} << 28U;
  fake_hip().capturing = hip_abi::hipStreamCaptureStatusActive;
  const auto refused = ForwardCalls::run(*engine, &call, created_stream());
  fake_hip().capturing = hip_abi::hipStreamCaptureStatusNone;
  captured = true;
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().status, WAVEJIT_NOT_READY);
  EXPECT_THAT(refused.error().detail, HasSubstr("launches=2"));
  EXPECT_EQ(fake_hip().launches, 0U);
  engine->seal(true);
}

// Kernels that leave the keys whole serve a call that may not compile, and no other.
TEST_F(Serving, WholeKeysAreReadyForCallsThatMayNotCompile) {
  const auto engine = make_engine();
  auto call = good_call(1, 1, 4096, 8, 1, 64);
  call.split.splits = 1;
  ASSERT_TRUE(ForwardCalls::run(*engine, &call, nullptr));
  call.split.splits = 4;
  const auto would_compile = ForwardCalls::is_ready(*engine, &call);
  ASSERT_FALSE(would_compile);
  EXPECT_EQ(would_compile.error().status, WAVEJIT_NOT_READY);
  call.head.flags = WAVEJIT_NO_COMPILE;
  EXPECT_TRUE(ForwardCalls::is_ready(*engine, &call));
  EXPECT_TRUE(ForwardCalls::run(*engine, &call, nullptr));
  EXPECT_EQ(fake_hip().launches, 2U);
  EXPECT_THAT(log_, Not(Contains(HasSubstr("splits=4"))));  // a line says what is launched
}

TEST_F(Serving, ARefusedDecodeCallIsCountedOnce) {
  const auto engine = make_engine();
  auto never = split_decode();
  never.head.flags = WAVEJIT_NO_COMPILE;
  EXPECT_EQ(failure_of(*engine, never).status, WAVEJIT_NOT_READY);
  engine->seal(true);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(failure_of(*engine, split_decode()).status, WAVEJIT_SEALED);
  const wavejit_statistics statistics = statistics_of(*engine);
  EXPECT_EQ(statistics.calls, 4U);
  EXPECT_EQ(statistics.prepared, 0U);
  EXPECT_EQ(statistics.refused_no_compile, 1U);
  EXPECT_EQ(statistics.refused_sealed, 3U);
  EXPECT_EQ(statistics.memory_hits, 0U);
  EXPECT_EQ(fake_codegen().compiles, 0U);
}

// The capture begins while the kernel that it needs is still being made.
TEST_F(Serving, ACaptureBehindAColdDecodeCallFindsItsKernel) {
  const auto engine = make_engine();
  auto call = split_decode();
  fake_codegen().delay_ms = 50;
  ASSERT_TRUE(ForwardCalls::run(*engine, &call, created_stream()));
  fake_hip().capturing = hip_abi::hipStreamCaptureStatusActive;
  EXPECT_TRUE(ForwardCalls::run(*engine, &call, created_stream()));
  EXPECT_EQ(fake_hip().launches, kernels_of_split + 1);
  EXPECT_EQ(statistics_of(*engine).refused_capturing, 0U);
}

// How many splits there are is a hint: where nothing may be loaded, keys that stay whole are as good.
TEST_F(Serving, SplitsThatNobodyPreparedAreNoReasonToRefuse) {
  const auto engine = make_engine();
  auto prompt = good_call(2, 100, 5000, 8, 1, 64);
  ASSERT_TRUE(ForwardCalls::run(*engine, &prompt, nullptr));  // whole
  const std::uint64_t launches = fake_hip().launches;
  prompt.split.splits = 4;
  auto never = prompt;
  never.head.flags = WAVEJIT_NO_COMPILE;
  EXPECT_TRUE(ForwardCalls::is_ready(*engine, &never));
  EXPECT_TRUE(ForwardCalls::run(*engine, &never, nullptr));
  engine->seal(true);
  EXPECT_TRUE(ForwardCalls::is_ready(*engine, &prompt));
  EXPECT_TRUE(ForwardCalls::run(*engine, &prompt, nullptr));
  EXPECT_EQ(fake_hip().launches, launches + 2) << "no combine";
  EXPECT_EQ(fake_codegen().compiles, 1U);
  engine->seal(false);
  EXPECT_TRUE(ForwardCalls::run(*engine, &prompt, nullptr));
  EXPECT_EQ(fake_hip().launches, launches + 4) << "walk and combine: who may compile gets what it asks for";
  const wavejit_statistics statistics = statistics_of(*engine);
  EXPECT_EQ(statistics.refused_sealed, 0U);
  EXPECT_EQ(statistics.refused_no_compile, 0U);
  // Where neither is loaded the call says what it lacks.
  engine->seal(true);
  auto other = good_call(2, 100, 5000, 8, 1, 128);
  other.split.splits = 4;
  EXPECT_EQ(failure_of(*engine, other).status, WAVEJIT_SEALED);
}

// ---- hooks ---------------------------------------------------------------------------------------------------------

TEST_F(Serving, TheHookHearsOfEachKernelOnTheThreadThatMadeIt) {
  listen();
  auto engine = make_engine();
  auto call = good_call();
  for (int round = 0; round < 2; ++round) ASSERT_TRUE(ForwardCalls::run(*engine, &call, nullptr));
  ASSERT_EQ(events_.size(), 1U) << "hot calls are no events";
  EXPECT_EQ(events_[0].descriptor, good_line);
  EXPECT_THAT(events_[0].kernel_spec, HasSubstr("attention_forward fp16 d128"));
  EXPECT_EQ(events_[0].key.size(), 64U);
  EXPECT_EQ(events_[0].raw.origin, WAVEJIT_ORIGIN_COMPILED);
  EXPECT_EQ(events_[0].raw.status, WAVEJIT_OK);
  EXPECT_EQ(events_[0].raw.thread, static_cast<std::uint64_t>(gettid()));
  EXPECT_EQ(events_[0].raw.emit_ns, 1U);
  EXPECT_GT(events_[0].raw.load_ns, 0U);
  engine = make_engine();
  std::uint64_t other = 0;
  std::thread([&] {
    other = static_cast<std::uint64_t>(gettid());
    EXPECT_TRUE(ForwardCalls::run(*engine, &call, nullptr));
  }).join();
  ASSERT_EQ(events_.size(), 2U);
  EXPECT_EQ(events_[1].raw.origin, WAVEJIT_ORIGIN_DISK);
  EXPECT_EQ(events_[1].raw.thread, other);
}

TEST_F(Serving, TheHookHearsOfFailuresOnce) {
  listen();
  fake_codegen().status = WAVEJIT_CODEGEN_CRASHED;
  const auto engine = make_engine();
  for (int round = 0; round < 3; ++round) EXPECT_EQ(failure_of(*engine, good_call()).status, WAVEJIT_COMPILE_FAILED);
  ASSERT_EQ(events_.size(), 1U) << "what is remembered is not tried again";
  EXPECT_EQ(events_[0].raw.status, WAVEJIT_COMPILE_FAILED);
  EXPECT_EQ(events_[0].raw.origin, WAVEJIT_ORIGIN_NONE);
  EXPECT_EQ(events_[0].key.size(), 64U);
  EXPECT_THAT(events_[0].detail, HasSubstr("told to fail"));
}

TEST_F(Serving, AShapeWhoseKernelAnotherShapeLoadedIsNoEvent) {
  config_.pipeline.value.name = "generic";
  listen();
  const auto engine = make_engine();
  for (const std::int64_t queries : {64, 255}) {
    auto call = good_call(1, queries, 512);
    ASSERT_TRUE(ForwardCalls::run(*engine, &call, nullptr));
  }
  ASSERT_EQ(events_.size(), 1U);
  EXPECT_EQ(events_.front().raw.origin, WAVEJIT_ORIGIN_COMPILED);
}

TEST_F(Serving, AHookMayCallTheEngineThatCallsIt) {
  struct Nested {
    runtime::Engine* engine = nullptr;
    int depth = 0;
    std::set<std::string> keys;
  } nested;
  config_.hooks.on_compile_context = &nested;
  config_.hooks.on_compile = [](void* context, const wavejit_compile_event* event) {
    auto& self = *static_cast<Nested*>(context);
    self.keys.emplace(event->key);
    EXPECT_LT(++self.depth, 3);
    // The same kernel is there by now; another is a miss of its own, with an event of its own.
    auto same = good_call();
    EXPECT_TRUE(ForwardCalls::run(*self.engine, &same, nullptr));
    auto other = good_call(1, 1, 1, 1, 1, 64);
    EXPECT_TRUE(ForwardCalls::run(*self.engine, &other, nullptr));
    wavejit_statistics statistics{};
    self.engine->fill(statistics);
  };
  const auto engine = make_engine();
  nested.engine = engine.get();
  auto call = good_call();
  ASSERT_TRUE(ForwardCalls::run(*engine, &call, nullptr));
  EXPECT_EQ(nested.depth, 2);
  EXPECT_EQ(nested.keys.size(), 2U);
}

TEST_F(Serving, AHookThatThrowsHarmsNothing) {
  config_.hooks.on_compile = [](void*, const wavejit_compile_event*) { throw std::runtime_error("contained"); };
  const auto engine = make_engine();
  auto call = good_call();
  EXPECT_TRUE(ForwardCalls::run(*engine, &call, nullptr));
  EXPECT_THAT(log_, Contains(HasSubstr("warning: options.on_compile threw")));
}

TEST_F(Serving, WorkspacesComeFromTheCallersAllocator) {
  struct Arena {
    alignas(256) std::array<char, 512> memory{};
    std::size_t offset = 0;
    int given = 0;
    int back = 0;
    bool throws = false;
  } arena;
  config_.hooks.allocator_context = &arena;
  config_.hooks.allocate = [](void* context, std::size_t bytes, ihipStream_t* stream) -> void* {
    auto& self = *static_cast<Arena*>(context);
    EXPECT_EQ(stream, created_stream());
    if (self.throws) throw std::runtime_error("contained");
    if (self.offset + bytes > self.memory.size()) return nullptr;
    ++self.given;
    return self.memory.data() + self.offset;
  };
  config_.hooks.release = [](void* context, void* memory, std::size_t bytes, ihipStream_t*) {
    auto& self = *static_cast<Arena*>(context);
    EXPECT_EQ(memory, self.memory.data() + self.offset);
    EXPECT_GT(bytes, 0U);
    ++self.back;
  };
  const runtime::HipDevice device = fake_device();
  const runtime::WorkspaceAllocator workspaces(device, config_.hooks);
  const auto memory = workspaces.allocate(512, created_stream());
  ASSERT_TRUE(memory);
  EXPECT_EQ(*memory, arena.memory.data());
  workspaces.release(*memory, 512, created_stream());
  EXPECT_EQ(arena.back, 1);
  EXPECT_EQ(workspaces.allocate(513, created_stream()).error().status, WAVEJIT_OUT_OF_MEMORY);
  arena.offset = 64;
  const auto crooked = workspaces.allocate(64, created_stream());
  ASSERT_FALSE(crooked);
  EXPECT_EQ(crooked.error().status, WAVEJIT_INVALID_ARGUMENT);
  EXPECT_EQ(arena.back, arena.given) << "what is not used goes back";
  arena.throws = true;
  EXPECT_EQ(workspaces.allocate(64, created_stream()).error().status, WAVEJIT_OUT_OF_MEMORY);
  workspaces.release(nullptr, 0, nullptr);
}

TEST_F(Serving, WithoutAnAllocatorWorkspacesAreHips) {
  const runtime::HipDevice device = fake_device();
  const runtime::WorkspaceAllocator workspaces(device, {});
  const auto memory = workspaces.allocate(256, nullptr);
  ASSERT_TRUE(memory);
  workspaces.release(*memory, 256, nullptr);
  fake_hip().allocate_error = hip_abi::hipErrorOutOfMemory;
  EXPECT_EQ(workspaces.allocate(256, nullptr).error().status, WAVEJIT_OUT_OF_MEMORY);
  EXPECT_EQ(current_device(), 0);
}

// ---- the miss log --------------------------------------------------------------------------------------------------

TEST_F(Serving, MissesBecomeALineEachThatPrebuildReads) {
  const std::string log = miss_log();
  const auto engine = make_engine();
  auto call = good_call();
  ASSERT_TRUE(ForwardCalls::run(*engine, &call, nullptr));
  auto other_sizes = good_call(1, 3, 5, 4, 4);
  ASSERT_TRUE(ForwardCalls::run(*engine, &other_sizes, nullptr));
  auto lse = good_call(1, 3, 5, 4, 4);
  lse.lse = good_lse(lse);
  ASSERT_TRUE(ForwardCalls::run(*engine, &lse, nullptr));
  EXPECT_THAT(lines_of(log), ElementsAre(good_line, "attention_forward fp16 b1 q3 k5 h4 d128",
                                         "attention_forward fp16 b1 q3 k5 h4 d128 lse"))
      << "queries of three rows have a kernel of their own";
  // A second engine finds them on disk: nothing was missing.
  const auto warm = make_engine();
  ASSERT_TRUE(ForwardCalls::run(*warm, &call, nullptr));
  EXPECT_EQ(lines_of(log).size(), 3U);
  // An empty cache and the log give the same kernels.
  ScratchDirectory elsewhere;
  config_.cache_directory.value = elsewhere.path();
  const auto built = runtime::prebuild(config_, {.descriptors = lines_of(log), .targets = "gfx950"}, *codegen_,
                                       [](const runtime::PrebuildProgress&) {});
  ASSERT_TRUE(built) << built.error().detail;
  const std::uint64_t compiles = fake_codegen().compiles;
  const auto again = make_engine();
  ASSERT_TRUE(ForwardCalls::run(*again, &call, nullptr));
  ASSERT_TRUE(ForwardCalls::run(*again, &lse, nullptr));
  EXPECT_EQ(fake_codegen().compiles, compiles);
}

TEST_F(Serving, AMissLogThatCannotBeWrittenFailsNoCall) {
  for (const char* path : {"/proc/no/such/place", "/dev/full"}) {
    log_.clear();
    config_.miss_log.value = path;
    config_.cache_mode.value = cache::Mode::off;
    const auto engine = make_engine();
    auto call = good_call();
    EXPECT_TRUE(ForwardCalls::run(*engine, &call, nullptr));
    auto other = good_call(1, 1, 1, 1, 1, 64);
    EXPECT_TRUE(ForwardCalls::run(*engine, &other, nullptr));
    EXPECT_EQ(std::ranges::count_if(log_, [](const std::string& line) { return line.contains("miss_log"); }), 1)
        << path << ": one warning";
  }
}

TEST_F(Serving, ManyThreadsNoteWholeLines) {
  const std::string log = miss_log();
  const auto engine = make_engine();
  {
    std::vector<std::jthread> threads;
    for (int head_dim : {64, 128}) {
      for (const bool causal : {false, true}) {
        for (const auto dtype : {WAVEJIT_FP16, WAVEJIT_BF16}) {
          threads.emplace_back([&, head_dim, causal, dtype] {
            auto call = good_call(1, 128, 128, 4, 4, head_dim);
            for (wavejit_tensor* t : {&call.q, &call.k, &call.v, &call.o}) t->dtype = dtype;
            call.mask.bits = causal ? WAVEJIT_MASK_CAUSAL : WAVEJIT_MASK_NONE;
            EXPECT_TRUE(ForwardCalls::run(*engine, &call, nullptr));
          });
        }
      }
    }
  }
  const auto lines = lines_of(log);
  EXPECT_EQ(std::set<std::string>(lines.begin(), lines.end()).size(), 8U);
  for (const std::string& line : lines) EXPECT_TRUE(attention_forward::parse_descriptor(line)) << line;
}

// ---- statistics ----------------------------------------------------------------------------------------------------

TEST_F(Serving, StatisticsAsJsonSayTheSame) {
  const auto engine = make_engine();
  auto call = good_call();
  for (int round = 0; round < 3; ++round) ASSERT_TRUE(ForwardCalls::run(*engine, &call, nullptr));
  engine->seal(true);
  EXPECT_EQ(failure_of(*engine, good_call(1, 1, 1, 1, 1, 64)).status, WAVEJIT_SEALED);
  const auto json = nlohmann::json::parse(engine->statistics_json());
  const auto statistics = statistics_of(*engine);
  EXPECT_EQ(json["calls"], statistics.calls);
  EXPECT_EQ(json["memory_hits"], 2);
  EXPECT_EQ(json["compiled"], 1);
  EXPECT_EQ(json["refused_sealed"], 1);
  EXPECT_EQ(json["sealed"], true);
  EXPECT_EQ(json["target"], "gfx950");
  EXPECT_EQ(json["compile_ns"], 1 + 2 + 3 + 4) << "emit, lower, link, inspect of the fake";
  ASSERT_EQ(json["kernels"].size(), 1U);
  EXPECT_EQ(json["kernels"][0]["descriptor"], good_line);
  EXPECT_EQ(json["kernels"][0]["origin"], "compiled");
  EXPECT_EQ(json["kernels"][0]["lower_ns"], 2);
}

// ---- fork ----------------------------------------------------------------------------------------------------------

TEST_F(Serving, AProcessMayForkBeforeItsFirstEngine) {
  const auto use = [this] {
    const auto engine = make_engine();
    auto call = good_call();
    return ForwardCalls::run(*engine, &call, nullptr).has_value() && prepare(*engine, {prefill, decode}).has_value();
  };
  const pid_t child = fork();
  if (child == 0) _exit(use() ? 0 : 1);
  EXPECT_TRUE(use());
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace wavejit::tests
