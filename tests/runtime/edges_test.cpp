// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The engine's edges as a caller meets them: public functions only, on the simulated GPU, with the real compiler. What
// they do inside, the tests on fakes ask (questions_test.cpp, serving_test.cpp, engine_test.cpp).
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>
#include <wavejit/wavejit.hpp>

#include "hip_abi/hip_functions.h"
#include "support/test_device.h"

namespace wavejit::tests {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::int64_t heads = 2;
constexpr std::int64_t head_dim = 64;

EngineOptions plain_options() {
  EngineOptions options;
  options.device = test_device(a_target());
  options.cache_mode = "off";
  return options;
}

// fp16 numbers between 0.5 and 2.
std::vector<std::uint16_t> pattern(std::uint32_t seed, std::int64_t length) {
  std::vector<std::uint16_t> values(static_cast<std::size_t>(length * heads * head_dim));
  for (std::uint16_t& value : values) {
    seed = seed * 1664525U + 1013904223U;
    value = static_cast<std::uint16_t>(0x3800U + (seed >> 21U));
  }
  return values;
}

struct Problem {
  explicit Problem(Engine& engine, std::int64_t queries = 40, std::int64_t keys = 40)
      : q(engine, pattern(1, queries)),
        k(engine, pattern(2, keys)),
        v(engine, pattern(3, keys)),
        o(engine, pattern(4, queries)) {
    call.q = dense(q, WAVEJIT_FP16, 1, queries, heads, head_dim);
    call.k = dense(k, WAVEJIT_FP16, 1, keys, heads, head_dim);
    call.v = dense(v, WAVEJIT_FP16, 1, keys, heads, head_dim);
    call.o = dense(o, WAVEJIT_FP16, 1, queries, heads, head_dim);
    call.modifiers.scale = 0.125F;
  }
  std::vector<std::uint16_t> run(Engine& engine) {
    engine.attention_forward(call);
    engine.synchronize();
    return o.read<std::uint16_t>();
  }

  DeviceBuffer q, k, v, o;
  AttentionForward call;
};

// What a call answers; WAVEJIT_OK and "" when it works.
std::pair<wavejit_status, std::string> answer_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    return {error.status(), error.what()};
  }
  return {WAVEJIT_OK, ""};
}

TEST(Edges, ACallIsAskedForBeforeItIsMade) {
  Engine engine(plain_options());
  Problem problem(engine);
  EXPECT_TRUE(engine.supports(problem.call));
  EXPECT_FALSE(engine.is_ready(problem.call));
  const std::string line = engine.describe(problem.call);
  EXPECT_EQ(line, "attention_forward fp16 b1 q40 k40 h2 d64 scale=0.125");
  engine.prepare({line});
  EXPECT_TRUE(engine.is_ready(problem.call));
  EXPECT_EQ(engine.statistics().calls, 0U);

  AttentionForward none = problem.call;
  none.q.sizes[3] = none.k.sizes[3] = none.v.sizes[3] = none.o.sizes[3] = 60;
  EXPECT_FALSE(engine.supports(none));
  for (const auto& ask : {std::function<void()>([&] { engine.attention_forward(none); }),
                          std::function<void()>([&] { (void)engine.workspace_bytes(none); })}) {
    const auto [status, why] = answer_of(ask);
    EXPECT_EQ(status, WAVEJIT_UNSUPPORTED);
    EXPECT_THAT(why, HasSubstr("head dim"));
  }
}

TEST(Edges, AZeroScaleIsTheDefaultUnlessItIsMeant) {
  Engine engine(plain_options());
  Problem problem(engine);
  const auto wanted = problem.run(engine);
  problem.call.modifiers.scale = 0;
  EXPECT_EQ(problem.run(engine), wanted) << "1 / sqrt(64)";
  problem.call.head.flags = WAVEJIT_SCALE_IS_ZERO;
  const auto uniform = problem.run(engine);
  EXPECT_NE(uniform, wanted);
  EXPECT_TRUE(std::equal(uniform.begin(), uniform.begin() + heads * head_dim, uniform.begin() + heads * head_dim))
      << "every row is the mean of v";
}

TEST(Edges, APackedCallSaysHowLongItsLongestKeysAre) {
  Engine engine(plain_options());
  Problem problem(engine);
  const DeviceBuffer starts(engine, std::vector<std::int32_t>{0, 15, 40});
  problem.call.sequences.query_starts = problem.call.sequences.key_starts =
      static_cast<const std::int32_t*>(starts.data());
  problem.call.sequences.count = 2;
  problem.call.sequences.max_query_length = 25;
  problem.call.sequences.max_key_length = -1;
  const auto [status, why] = answer_of([&] { engine.attention_forward(problem.call); });
  EXPECT_EQ(status, WAVEJIT_INVALID_ARGUMENT);
  EXPECT_THAT(why, HasSubstr("max_key_length"));
  problem.call.sequences.max_key_length = 25;
  EXPECT_TRUE(engine.supports(problem.call));
}

TEST(Edges, ACallMayRefuseToCompileAndHaveItDoneMeanwhile) {
  Engine engine(plain_options());
  Problem problem(engine);
  problem.call.head.flags = WAVEJIT_NO_COMPILE;
  EXPECT_EQ(answer_of([&] { engine.attention_forward(problem.call); }).first, WAVEJIT_NOT_READY);
  EXPECT_EQ(engine.statistics().compiled, 0U);
  problem.call.head.flags = WAVEJIT_NO_COMPILE | WAVEJIT_COMPILE_BEHIND;
  EXPECT_EQ(answer_of([&] { engine.attention_forward(problem.call); }).first, WAVEJIT_NOT_READY);
  for (int i = 0; i < 60'000 && !engine.is_ready(problem.call); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(answer_of([&] { engine.attention_forward(problem.call); }).first, WAVEJIT_OK);
}

TEST(Edges, ALineWithARangePreparesEveryClassOfLength) {
  Engine engine(plain_options());
  engine.prepare({"attention_forward fp16 b1 q1..300 k1..300 h2 d64"});
  engine.seal();
  for (const std::int64_t queries : {1, 40, 200, 300}) {
    Problem problem(engine, queries, 300);
    EXPECT_EQ(answer_of([&] { engine.attention_forward(problem.call); }).second, "") << queries;
  }
  engine.synchronize();
}

// A line that is forgotten shows as WAVEJIT_SEALED under load, long after it was refused.
TEST(Edges, PrepareThrowsWhatItCouldNotPrepareAndPreparesTheRest) {
  Engine engine(plain_options());
  const std::vector<std::string> lines = {"attention_forward fp16 b1 q1 k1 h1 d264",
                                          "attention_forward fp16 b1 q40 k40 h2 d64", "nonsense"};
  const auto [status, told] = answer_of([&] { engine.prepare(lines); });
  EXPECT_EQ(status, WAVEJIT_UNSUPPORTED) << "of the first that failed";
  EXPECT_THAT(told, ::testing::StartsWith("prepare: 2 of 3 lines could not be prepared:\n'" + lines[0] + "': "));
  EXPECT_THAT(told, HasSubstr("\n'nonsense': "));
  EXPECT_THAT(told, Not(HasSubstr(lines[1])));
  Problem problem(engine);
  EXPECT_TRUE(engine.is_ready(problem.call));
  const std::vector<Prepared> each = engine.try_prepare(lines);
  EXPECT_EQ(each[0].status, WAVEJIT_UNSUPPORTED);
  EXPECT_EQ(each[1].status, WAVEJIT_OK);
  EXPECT_EQ(each[2].status, WAVEJIT_INVALID_ARGUMENT);
}

TEST(Edges, LogLinesGoToTheCaller) {
  struct Log {
    std::mutex mutex;
    std::vector<std::string> lines;
  } log;
  EngineOptions options = plain_options();
  options.log_level = "info";
  options.on_log_context = &log;
  options.on_log = [](void* context, std::int32_t, const char* line) {
    auto& to = *static_cast<Log*>(context);
    const std::scoped_lock lock(to.mutex);
    to.lines.emplace_back(line);
  };
  Engine engine(options);
  Problem problem(engine);
  problem.run(engine);
  EXPECT_THAT(log.lines, Contains(HasSubstr("compile attention_forward fp16 d64")));
}

TEST(Edges, WhatNoKernelDoesIsNoFailureOfTheCompiler) {
  Engine engine(plain_options());
  EXPECT_EQ(engine.try_prepare({"attention_forward fp16 b1 q1 k1 h1 d264"})[0].status, WAVEJIT_UNSUPPORTED);
  const auto statistics = engine.statistics();
  EXPECT_EQ(statistics.compile_failures, 0U);
  EXPECT_EQ(statistics.refused_unsupported, 1U) << "the kernel that the line leads to";
}

// The caller's functions may call the engine that calls them, and trim gives back what they gave.
TEST(Edges, NoLockIsHeldInTheCallersFunctionsAndTrimGivesBack) {
  struct Pool {
    Engine* engine = nullptr;
    AttentionForward call;
    std::map<void*, std::size_t> given;
    int asked = 0;
  } pool;
  EngineOptions options = plain_options();
  options.allocator_context = &pool;
  options.allocate = [](void* context, std::size_t bytes, ihipStream_t*) -> void* {
    auto& own = *static_cast<Pool*>(context);
    // From another thread, too: a lock that is held here would never be had there.
    std::thread([&] { own.asked += own.engine != nullptr && own.engine->supports(own.call) ? 1 : 0; }).join();
    void* memory = nullptr;
    if (hip_abi::hipMalloc(&memory, bytes) != hip_abi::hipSuccess) return nullptr;
    own.given.emplace(memory, bytes);
    return memory;
  };
  options.release = [](void* context, void* memory, std::size_t, ihipStream_t*) {
    auto& own = *static_cast<Pool*>(context);
    std::thread([&] { own.asked += own.engine != nullptr && own.engine->supports(own.call) ? 1 : 0; }).join();
    own.given.erase(memory);
    (void)hip_abi::hipFree(memory);
  };
  Engine engine(options);
  Problem problem(engine, 1, 4096);
  hip_abi::hipPointerAttribute_t attributes = {};
  ASSERT_EQ(hip_abi::hipPointerGetAttributes(&attributes, problem.q.data()), hip_abi::hipSuccess);
  ASSERT_EQ(hip_abi::hipSetDevice(attributes.device), hip_abi::hipSuccess);
  pool.engine = &engine;
  pool.call = problem.call;
  problem.call.split.splits = 2;
  problem.run(engine);
  EXPECT_EQ(pool.given.size(), 1U);
  problem.call.split.splits = 4;
  problem.run(engine);
  engine.trim();
  EXPECT_TRUE(pool.given.empty());
  EXPECT_GE(pool.asked, 2) << "once in each function";
  problem.run(engine);
  EXPECT_EQ(pool.given.size(), 1U) << "and is there again when it is needed";
  pool.engine = nullptr;  // its end gives back, too, and then there is nobody to ask
}

TEST(Edges, APasswordIsNotSentInClearUnlessAsked) {
  EngineOptions options = plain_options();
  options.cache_remote = "redis://user:hunter2@192.0.2.1";
  const auto [status, why] = answer_of([&] { const Engine engine(options); });
  EXPECT_EQ(status, WAVEJIT_INVALID_ARGUMENT);
  EXPECT_THAT(why, HasSubstr("rediss://"));
  EXPECT_THAT(why, Not(HasSubstr("hunter2")));
  options.log_level = "off";  // there is no key: the layer is not used
  for (const char* accepted : {"rediss://user:hunter2@192.0.2.1", "redis://user:hunter2@192.0.2.1?password=clear",
                               "redis://:hunter2@localhost"}) {
    options.cache_remote = accepted;
    EXPECT_EQ(answer_of([&] { const Engine engine(options); }).second, "") << accepted;
  }
}

TEST(Edges, AnIsolatedCompileGivesTheSameBits) {
  Engine here(plain_options());
  Problem one(here);
  const auto wanted = one.run(here);
  EngineOptions options = plain_options();
  options.compile = "isolated";
  Engine engine(options);
  Problem problem(engine);
  EXPECT_EQ(problem.run(engine), wanted);
  EXPECT_EQ(engine.statistics().compiled, 1U);
}

// The per-thread default stream is another one on each thread.
TEST(Edges, CallsOnThePerThreadStreamGiveTheSameBits) {
  Engine engine(plain_options());
  Problem problem(engine);
  const auto wanted = problem.run(engine);
  std::vector<std::vector<std::uint16_t>> found(3);
  std::vector<std::thread> threads;
  hip_abi::hipPointerAttribute_t attributes = {};
  ASSERT_EQ(hip_abi::hipPointerGetAttributes(&attributes, problem.q.data()), hip_abi::hipSuccess);
  threads.reserve(found.size());
  for (auto& values : found) {
    threads.emplace_back([&] {
      EXPECT_EQ(hip_abi::hipSetDevice(attributes.device), hip_abi::hipSuccess);
      Problem mine(engine);
      engine.attention_forward(mine.call, hip_abi::stream_per_thread());
      EXPECT_EQ(hip_abi::hipStreamSynchronize(hip_abi::stream_per_thread()), hip_abi::hipSuccess);
      values = mine.o.read<std::uint16_t>();
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& values : found) EXPECT_EQ(values, wanted);
}

// The device's memory is as large as its target's. What does not fit is said by its own status, and hurts nothing.
TEST(Edges, DeviceMemoryThatIsFullIsAStatusOfItsOwn) {
  constexpr std::size_t block = std::size_t{16} << 30;
  Engine engine(plain_options());
  Problem problem(engine, 1, 4096);
  problem.call.split.splits = 4;
  const auto wanted = problem.run(engine);
  engine.trim();
  std::size_t free_bytes = 0;
  std::size_t total = 0;
  hip_abi::hipPointerAttribute_t attributes = {};
  ASSERT_EQ(hip_abi::hipPointerGetAttributes(&attributes, problem.q.data()), hip_abi::hipSuccess);
  ASSERT_EQ(hip_abi::hipSetDevice(attributes.device), hip_abi::hipSuccess);
  ASSERT_EQ(hip_abi::hipMemGetInfo(&free_bytes, &total), hip_abi::hipSuccess);
  {
    std::vector<DeviceBuffer> taken;
    for (std::size_t bytes = block; bytes >= 64;) {
      const auto [status, why] = answer_of([&] { taken.push_back(engine.allocate(bytes)); });
      if (status == WAVEJIT_OK) continue;
      ASSERT_EQ(status, WAVEJIT_OUT_OF_MEMORY) << why;
      bytes /= 2;
    }
    std::size_t sum = 0;
    for (const DeviceBuffer& buffer : taken) sum += buffer.bytes();
    EXPECT_LE(sum, total);
    EXPECT_GT(sum, total - block);
    void* none = nullptr;
    EXPECT_EQ(hip_abi::hipMalloc(&none, block), hip_abi::hipErrorOutOfMemory);
    EXPECT_EQ(hip_abi::hipGetLastError(), hip_abi::hipErrorOutOfMemory);
    // A call that needs memory of the engine's for its parts.
    const auto [status, why] = answer_of([&] { engine.attention_forward(problem.call); });
    EXPECT_EQ(status, WAVEJIT_OUT_OF_MEMORY) << why;
  }
  problem.o.write(pattern(4, 1));
  EXPECT_EQ(problem.run(engine), wanted);
}

// The exit code of a child that does `work`; no assertion of a test library's there. -1: it hangs, or was killed.
int exit_of_child(const std::function<int()>& work) {
  const pid_t child = fork();
  if (child == 0) _exit(work());
  if (child < 0) return -1;
  int status = -1;
  pid_t ended = 0;
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (ended == 0 && std::chrono::steady_clock::now() < give_up) {
    ended = waitpid(child, &status, WNOHANG);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  if (ended == 0) {
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// Threads and devices stay behind in the parent: a child is told so, at once, whatever it asks for.
TEST(Edges, AForkedChildIsToldAndDoesNotHang) {
  auto engine = std::make_unique<Engine>(plain_options());
  Problem problem(*engine);
  problem.run(*engine);
  EXPECT_EQ(0, exit_of_child([&] {
              const auto says = [](const std::pair<wavejit_status, std::string>& answer, wavejit_status status) {
                return answer.first == status && answer.second.find("forked") != std::string::npos &&
                       answer.second.find("spawn") != std::string::npos;
              };
              if (!says(answer_of([&] { engine->attention_forward(problem.call); }), WAVEJIT_DEVICE_ERROR)) return 1;
              if (!says(answer_of([&] { engine->synchronize(); }), WAVEJIT_DEVICE_ERROR)) return 2;
              if (!says(answer_of([&] { (void)engine->allocate(16); }), WAVEJIT_DEVICE_ERROR)) return 3;
              if (!says(answer_of([] { Engine another(plain_options()); }), WAVEJIT_NO_DEVICE)) return 4;
              // HIP itself, beneath whatever else the child is.
              if (hip_abi::hipDeviceSynchronize() == hip_abi::hipSuccess) return 5;
              void* memory = nullptr;
              if (hip_abi::hipMalloc(&memory, 16) == hip_abi::hipSuccess) return 6;
              engine.reset();
              return 0;
            }));
  // Nor does its end: what runs at the end of a process has no streams to wait for.
  EXPECT_EQ(7, exit_of_child([]() -> int { std::exit(7); }));
  // The parent goes on.
  problem.run(*engine);
}

// Until a simulated device has work there is nothing to leave behind: `wavejit tune` asks for a target's name, and
// its workers for its devices.
TEST(Edges, AChildOfAnIdleEngineMakesItsOwn) {
  const auto works = [] {
    Engine engine(plain_options());
    Problem problem(engine);
    return problem.run(engine) == problem.run(engine) ? 0 : 1;
  };
  {
    const Engine asked(plain_options());
  }
  const Engine idle(plain_options());
  EXPECT_EQ(0, exit_of_child(works));
  EXPECT_EQ(0, exit_of_child(works));
  EXPECT_EQ(0, works());
}

// What a cold decode call's report tells is what its caller waited for: the call's own kernels, and nothing beside
// them.
TEST(Edges, AColdDecodeCallsReportAddsUpToTheWait) {
  Engine engine(plain_options());
  Problem warm(engine);
  warm.run(engine);  // the compiler is there
  const DeviceBuffer k(engine, pattern(2, 4096));
  const DeviceBuffer v(engine, pattern(3, 4096));
  Problem decode(engine, 1, 1);
  decode.call.k = dense(k, WAVEJIT_FP16, 1, 4096, heads, head_dim);
  decode.call.v = dense(v, WAVEJIT_FP16, 1, 4096, heads, head_dim);
  auto report = make_report();
  decode.call.head.report = &report;
  const auto begun = std::chrono::steady_clock::now();
  engine.attention_forward(decode.call);
  const std::chrono::nanoseconds wait = std::chrono::steady_clock::now() - begun;
  const auto waited = static_cast<std::uint64_t>(wait.count());
  const std::uint64_t told = report.route_ns + report.lookup_ns + report.emit_ns + report.lower_ns + report.link_ns +
                             report.inspect_ns + report.publish_ns + report.load_ns + report.launch_ns;
  EXPECT_LE(told, waited);
  EXPECT_GE(told, waited / 4 * 3) << "of " << waited << " ns that the caller waited";
}

// A kernel that reads what is no memory fails after its call has returned. Later calls say so, and name it.
TEST(Edges, AfterADeviceFaultCallsNameTheKernelThatFailed) {
  Engine engine(plain_options());
  Problem problem(engine);
  auto report = make_report();
  problem.call.head.report = &report;
  problem.run(engine);
  hip_abi::hipPointerAttribute_t attributes = {};
  ASSERT_EQ(hip_abi::hipPointerGetAttributes(&attributes, problem.q.data()), hip_abi::hipSuccess);
  AttentionForward wild = problem.call;
  wild.mask.bits = WAVEJIT_MASK_CAUSAL;
  // The report names the kernel here: where the fault comes before the call's end, that call fills no report.
  engine.attention_forward(wild);
  engine.synchronize();
  wild.k.data = reinterpret_cast<void*>(std::uintptr_t{0x7000'0000'0000});  // nobody's
  const auto launched = answer_of([&] { engine.attention_forward(wild); });
  EXPECT_TRUE(launched.first == WAVEJIT_OK || launched.first == WAVEJIT_DEVICE_ERROR) << launched.second;
  for (const auto& later : {std::function<void()>([&] { engine.synchronize(); }),
                            std::function<void()>([&] { engine.attention_forward(problem.call); }),
                            std::function<void()>([&] { (void)engine.allocate(16); })}) {
    const auto [status, why] = answer_of(later);
    EXPECT_EQ(status, WAVEJIT_DEVICE_ERROR) << why;
    EXPECT_THAT(why, HasSubstr("an earlier kernel on "));
    EXPECT_THAT(why, HasSubstr("this engine launched " + std::string(report.kernel_spec) + " (replays")) << why;
  }
  if (on_hip()) return;  // nothing revives AMD's HIP 7.2 in a process
  // For whoever uses the device next in this process.
  ASSERT_EQ(hip_abi::hipSetDevice(attributes.device), hip_abi::hipSuccess);
  EXPECT_EQ(hip_abi::hipDeviceReset(), hip_abi::hipSuccess);
}

}  // namespace
}  // namespace wavejit::tests
