// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// An engine over a HIP and a compiler that count: what is compiled, loaded, launched, remembered and told.
#include <fstream>
#include <latch>
#include <thread>

#include "boards/known_products.h"
#include "runtime/offline/explain.h"
#include "runtime/offline/prebuild.h"
#include "runtime_fixture.h"
#include "templates/attention_forward/kernel/spec.h"

namespace wavejit::tests {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

class EngineTest : public RuntimeTest {
 protected:
  static wavejit_call_report reported(runtime::Engine& engine, wavejit_attention_forward_arguments call) {
    wavejit_call_report report{};
    report.size = sizeof report;
    call.head.report = &report;
    const auto outcome = ForwardCalls::run(engine, &call, nullptr);
    if (!outcome) throw std::runtime_error(outcome.error().detail);
    return report;
  }
};

TEST_F(EngineTest, CompilesThenRemembersThenReadsFromDisk) {
  auto engine = make_engine();
  const wavejit_call_report cold = reported(*engine, good_call());
  EXPECT_EQ(cold.origin, WAVEJIT_ORIGIN_COMPILED);
  EXPECT_STREQ(cold.kernel_spec,
               "attention_forward fp16 d128 pipeline=generic tile=64x64 o_store=permlane target=gfx950 lowering=llvm");
  EXPECT_EQ(std::string(cold.key).size(), 64U);
  EXPECT_EQ(cold.emit_ns, 1U);
  EXPECT_EQ(cold.lower_ns, 2U);
  EXPECT_EQ(cold.link_ns, 3U);
  EXPECT_EQ(cold.inspect_ns, 4U);
  EXPECT_GT(cold.publish_ns, 0U);
  EXPECT_GT(cold.load_ns, 0U);
  EXPECT_GT(cold.launch_ns, 0U);

  const wavejit_call_report hot = reported(*engine, good_call(1, 70, 9, 4, 4));
  EXPECT_EQ(hot.origin, WAVEJIT_ORIGIN_MEMORY);
  EXPECT_STREQ(hot.key, cold.key) << "sizes are no part of the key";
  EXPECT_EQ(hot.emit_ns + hot.lookup_ns + hot.load_ns, 0U);

  auto statistics = statistics_of(*engine);
  EXPECT_EQ(statistics.calls, 2U);
  EXPECT_EQ(statistics.memory_hits, 1U);
  EXPECT_EQ(statistics.compiled, 1U);
  EXPECT_EQ(statistics.published, 1U);

  engine = make_engine();
  const wavejit_call_report warm = reported(*engine, good_call());
  EXPECT_EQ(warm.origin, WAVEJIT_ORIGIN_DISK);
  EXPECT_STREQ(warm.key, cold.key);
  EXPECT_GT(warm.lookup_ns, 0U);
  EXPECT_EQ(warm.emit_ns, 0U);
  EXPECT_EQ(fake_codegen().compiles, 1U);
  statistics = statistics_of(*engine);
  EXPECT_EQ(statistics.disk_hits, 1U);
  EXPECT_EQ(statistics.misses, 0U);
}

TEST_F(EngineTest, TheKeyIsTheDigestOfSpecGeneratorAndLowering) {
  auto engine = make_engine();
  const wavejit_call_report report = reported(*engine, good_call());
  runtime::Logger logger(runtime::LogLevel::off);
  runtime::KernelSource source(config_, *codegen_, logger);
  const auto spec = attention_forward::parse_spec(report.kernel_spec);
  ASSERT_TRUE(spec);
  const auto key = source.key_of(*spec);
  ASSERT_TRUE(key);
  EXPECT_EQ(key->hex(), report.key);
  EXPECT_THAT(key->text(), ::testing::StartsWith(std::string(report.kernel_spec) + " generator="));
  EXPECT_THAT(key->text(), HasSubstr(" llvm="));
  auto comgr = *spec;
  comgr.lowering = attention_forward::Lowering::comgr;
  EXPECT_THAT(source.key_of(comgr)->text(), HasSubstr("comgr=3.0.0-fake"));
}

TEST_F(EngineTest, ShapesWithoutKernelsDoNotFillMemory) {
  const auto engine = make_engine();
  for (std::int64_t head_dim = 264; head_dim <= 512; head_dim += 8)
    for (const std::int64_t queries : {1, 40, 100, 300})
      for (const std::uint32_t mask : {WAVEJIT_MASK_NONE, WAVEJIT_MASK_CAUSAL}) {
        auto call = good_call(1, queries, queries, 1, 1, head_dim);
        call.mask.bits = mask;
        const auto outcome = ForwardCalls::run(*engine, &call, nullptr);
        ASSERT_FALSE(outcome);
        EXPECT_EQ(outcome.error().status, WAVEJIT_UNSUPPORTED);
      }
  EXPECT_EQ(statistics_of(*engine).refused_unsupported, 32U * 4 * 2);
  EXPECT_EQ(fake_codegen().compiles, 0U);
}

TEST_F(EngineTest, LoggedCallsAreDescriptorsThatExplainReads) {
  const auto engine = make_engine();
  auto call = good_call();
  call.mask.bits = WAVEJIT_MASK_CAUSAL;
  reported(*engine, call);
  const std::string text = "attention_forward fp16 b2 q255 k512 h8/2 d128 causal scale=0.125";
  EXPECT_THAT(log_, Contains("debug: call " + text));
  EXPECT_TRUE(runtime::explain(config_, text, "gfx950", *codegen_));
}

TEST_F(EngineTest, LengthsThatLeadToOneKernelShareIt) {
  const auto engine = make_engine("gfx942");
  const std::string key = reported(*engine, good_call(1, 40)).key;
  for (const int length : {64, 100, 300}) {
    const wavejit_call_report report = reported(*engine, good_call(1, length));
    EXPECT_EQ(report.key, key);
    EXPECT_EQ(report.origin, WAVEJIT_ORIGIN_MEMORY);
  }
  EXPECT_EQ(fake_codegen().compiles, 1U);
  EXPECT_EQ(fake_hip().module_loads, 1U);
}

TEST_F(EngineTest, EachShapeHasItsKernel) {
  const auto engine = make_engine();
  std::set<std::string> keys;
  for (const bool causal : {false, true}) {
    for (const bool lse : {false, true}) {
      for (const int head_dim : {64, 128}) {
        for (const auto dtype : {WAVEJIT_FP16, WAVEJIT_BF16}) {
          auto call = good_call(1, 128, 128, 4, 4, head_dim);
          for (wavejit_tensor* t : {&call.q, &call.k, &call.v, &call.o}) t->dtype = dtype;
          if (lse) call.lse = good_lse(call);
          call.mask.bits = causal ? WAVEJIT_MASK_CAUSAL : WAVEJIT_MASK_NONE;
          keys.emplace(reported(*engine, call).key);
        }
      }
    }
  }
  EXPECT_EQ(keys.size(), 16U);
  EXPECT_EQ(fake_codegen().compiles, 16U);
  EXPECT_EQ(fake_hip().module_loads, 16U);
}

TEST_F(EngineTest, ManyThreadsCompileOnce) {
  fake_codegen().delay_ms = 50;
  const auto engine = make_engine();
  constexpr int count = 8;
  std::latch start(count);
  std::atomic<int> failed{0};
  {
    std::vector<std::jthread> threads;
    threads.reserve(count);
    for (int i = 0; i < count; ++i) {
      threads.emplace_back([&] {
        auto call = good_call();
        start.arrive_and_wait();
        if (!ForwardCalls::run(*engine, &call, nullptr)) ++failed;
      });
    }
  }
  EXPECT_EQ(failed, 0);
  EXPECT_EQ(fake_codegen().compiles, 1U);
  EXPECT_EQ(fake_hip().module_loads, 1U);
  EXPECT_EQ(fake_hip().launches, static_cast<std::uint64_t>(count));
  const auto statistics = statistics_of(*engine);
  EXPECT_EQ(statistics.calls, static_cast<std::uint64_t>(count));
  EXPECT_EQ(statistics.compiled, 1U);
}

TEST_F(EngineTest, DifferentShapesCompileAtOnce) {
  fake_codegen().together = 4;
  const auto engine = make_engine();
  {
    std::vector<std::jthread> threads;
    for (const int head_dim : {64, 128}) {
      for (const bool causal : {false, true}) {
        threads.emplace_back([&, head_dim, causal] {
          auto call = good_call(1, 128, 128, 4, 4, head_dim);
          call.mask.bits = causal ? WAVEJIT_MASK_CAUSAL : WAVEJIT_MASK_NONE;
          EXPECT_TRUE(ForwardCalls::run(*engine, &call, nullptr));
        });
      }
    }
  }
  EXPECT_EQ(fake_codegen().compiles, 4U);
  EXPECT_EQ(fake_codegen().met, 4) << "each saw the other three under way";
}

// A compile under way when the second call has been counted; from there it is a few instructions to waiting for it.
std::function<bool()> both_called(const runtime::Engine& engine) {
  return [&engine] {
    wavejit_statistics statistics{};
    engine.fill(statistics);
    return statistics.calls >= 2;
  };
}

// Queries of 255 and of 300 rows are two shapes; without the pipeline for long ones they are one kernel.
TEST_F(EngineTest, ShapesThatLeadToOneKernelCompileOnce) {
  config_.pipeline.value.name = "generic";
  fake_codegen().delay_ms = 100;
  const auto engine = make_engine();
  fake_codegen().awaits = both_called(*engine);
  {
    std::vector<std::jthread> threads;
    for (const std::int64_t queries : {64, 255}) {
      threads.emplace_back([&, queries] {
        auto call = good_call(1, queries, 512);
        EXPECT_TRUE(ForwardCalls::run(*engine, &call, nullptr));
      });
    }
  }
  EXPECT_EQ(fake_codegen().compiles, 1U);
  EXPECT_EQ(fake_hip().module_loads, 1U);
  EXPECT_EQ(fake_hip().launches, 2U);
  const auto statistics = statistics_of(*engine);
  EXPECT_EQ(statistics.compiled, 1U);
  EXPECT_EQ(statistics.memory_hits, 1U);
}

TEST_F(EngineTest, ShapesThatLeadToOneKernelFailTogether) {
  config_.pipeline.value.name = "generic";
  fake_codegen().delay_ms = 100;
  fake_codegen().status = WAVEJIT_CODEGEN_CRASHED;
  const auto engine = make_engine();
  fake_codegen().awaits = both_called(*engine);
  std::atomic<int> failed{0};
  {
    std::vector<std::jthread> threads;
    for (const std::int64_t queries : {64, 255}) {
      threads.emplace_back([&, queries] {
        auto call = good_call(1, queries, 512);
        const auto outcome = ForwardCalls::run(*engine, &call, nullptr);
        if (!outcome && outcome.error().status == WAVEJIT_COMPILE_FAILED) ++failed;
      });
    }
  }
  EXPECT_EQ(failed, 2);
  EXPECT_EQ(fake_codegen().compiles, 1U);
  EXPECT_EQ(statistics_of(*engine).compile_failures, 2U);
}

TEST_F(EngineTest, ThreadsThatWaitForAFailedCompileFailToo) {
  fake_codegen().delay_ms = 50;
  fake_codegen().status = WAVEJIT_CODEGEN_CRASHED;
  const auto engine = make_engine();
  constexpr int count = 6;
  std::atomic<int> failed{0};
  {
    std::vector<std::jthread> threads;
    threads.reserve(count);
    for (int i = 0; i < count; ++i) {
      threads.emplace_back([&] {
        auto call = good_call();
        const auto outcome = ForwardCalls::run(*engine, &call, nullptr);
        if (!outcome && outcome.error().status == WAVEJIT_COMPILE_FAILED) ++failed;
      });
    }
  }
  EXPECT_EQ(failed, count);
  EXPECT_EQ(fake_codegen().compiles, 1U);
  EXPECT_EQ(fake_hip().launches, 0U);
  EXPECT_EQ(statistics_of(*engine).compile_failures, static_cast<std::uint64_t>(count));
}

struct CodegenAnswer {
  std::int32_t codegen;
  wavejit_status status;
  bool remembered;
};
class CompilerAnswers : public EngineTest, public ::testing::WithParamInterface<CodegenAnswer> {};

TEST_P(CompilerAnswers, BecomeStatuses) {
  fake_codegen().status = GetParam().codegen;
  const auto engine = make_engine();
  auto call = good_call();
  for (int round = 1; round <= 2; ++round) {
    const auto outcome = ForwardCalls::run(*engine, &call, nullptr);
    ASSERT_FALSE(outcome);
    EXPECT_EQ(outcome.error().status, GetParam().status);
    EXPECT_THAT(outcome.error().detail, HasSubstr("told to fail"));
    EXPECT_THAT(outcome.error().detail, HasSubstr("attention_forward fp16 d128"));
  }
  EXPECT_EQ(fake_codegen().compiles, GetParam().remembered ? 1U : 2U);
  EXPECT_EQ(fake_codegen().released, fake_codegen().compiles) << "results are handed back";
  EXPECT_TRUE(cache_files().empty());
  EXPECT_EQ(fake_hip().launches, 0U);
  const wavejit_statistics statistics = statistics_of(*engine);
  EXPECT_EQ(GetParam().status == WAVEJIT_UNSUPPORTED ? statistics.refused_unsupported : statistics.compile_failures,
            2U);
}

INSTANTIATE_TEST_SUITE_P(All, CompilerAnswers,
                         ::testing::Values(CodegenAnswer{WAVEJIT_CODEGEN_UNSUPPORTED, WAVEJIT_UNSUPPORTED, true},
                                           CodegenAnswer{WAVEJIT_CODEGEN_INVALID, WAVEJIT_INTERNAL, false},
                                           CodegenAnswer{WAVEJIT_CODEGEN_CRASHED, WAVEJIT_COMPILE_FAILED, true},
                                           CodegenAnswer{WAVEJIT_CODEGEN_REJECTED, WAVEJIT_COMPILE_FAILED, true},
                                           CodegenAnswer{WAVEJIT_CODEGEN_UNAVAILABLE, WAVEJIT_NO_COMPILER, false},
                                           CodegenAnswer{WAVEJIT_CODEGEN_INTERNAL, WAVEJIT_INTERNAL, false},
                                           CodegenAnswer{999, WAVEJIT_INTERNAL, false}));

// Every byte of an entry matters; a handful of places stand for all (tests/cache damages every one).
TEST_F(EngineTest, DamagedEntriesAreCompiledAgainAndReplaced) {
  reported(*make_engine(), good_call());
  ASSERT_EQ(cache_files().size(), 1U);
  const std::filesystem::path file = cache_files()[0];
  std::string bytes;
  {
    std::ifstream in(file, std::ios::binary);
    bytes.assign(std::istreambuf_iterator<char>(in), {});
  }
  std::vector<std::string> damaged = {"", bytes.substr(0, 10), bytes.substr(0, bytes.size() - 1), bytes + "x"};
  for (const std::size_t at : {std::size_t{0}, std::size_t{9}, std::size_t{60}, bytes.size() / 2, bytes.size() - 1}) {
    damaged.push_back(bytes);
    damaged.back()[at] ^= 1;
  }
  std::uint64_t compiles = fake_codegen().compiles;
  for (const std::string& content : damaged) {
    std::ofstream(file, std::ios::binary | std::ios::trunc) << content;
    const auto engine = make_engine();
    EXPECT_EQ(reported(*engine, good_call()).origin, WAVEJIT_ORIGIN_COMPILED);
    EXPECT_EQ(fake_codegen().compiles, ++compiles);
    const auto statistics = statistics_of(*engine);
    EXPECT_EQ(statistics.damaged_entries, 1U);
    EXPECT_EQ(statistics.published, 1U);
    EXPECT_EQ(reported(*make_engine(), good_call()).origin, WAVEJIT_ORIGIN_DISK) << "it was replaced";
  }
  EXPECT_THAT(log_, Contains(HasSubstr("warning: ")));
}

TEST_F(EngineTest, AnEntryThatTheLoaderRefusesIsDroppedAndCompiledOnce) {
  reported(*make_engine(), good_call());
  fake_hip().loads_to_refuse = 1;
  const auto engine = make_engine();
  EXPECT_EQ(reported(*engine, good_call()).origin, WAVEJIT_ORIGIN_COMPILED);
  EXPECT_EQ(fake_codegen().compiles, 2U);
  EXPECT_EQ(fake_hip().errors_cleared, 1U);
  const auto statistics = statistics_of(*engine);
  EXPECT_EQ(statistics.loader_rejections, 1U);
  EXPECT_EQ(statistics.disk_hits, 0U);
  EXPECT_EQ(statistics.compiled, 1U);
  EXPECT_THAT(log_, Contains(HasSubstr("refused the cached kernel")));
  EXPECT_EQ(reported(*make_engine(), good_call()).origin, WAVEJIT_ORIGIN_DISK);
}

TEST_F(EngineTest, AFreshKernelThatTheLoaderRefusesIsAnErrorAfterOneCompile) {
  fake_hip().loads_to_refuse = 100;
  const auto engine = make_engine();
  auto call = good_call();
  const auto outcome = ForwardCalls::run(*engine, &call, nullptr);
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().status, WAVEJIT_LAUNCH_FAILED);
  EXPECT_THAT(outcome.error().detail, HasSubstr("hipErrorInvalidImage (200)"));
  EXPECT_EQ(fake_hip().errors_cleared, 1U) << "the host's next look at HIP's errors finds none";
  EXPECT_EQ(fake_codegen().compiles, 1U);
  EXPECT_EQ(fake_hip().launches, 0U);
}

TEST_F(EngineTest, ADeviceOutOfMemoryIsNoReasonToDropAnEntry) {
  reported(*make_engine(), good_call());
  fake_hip().load_error = hip_abi::hipErrorOutOfMemory;
  fake_hip().loads_to_refuse = 1;
  const auto engine = make_engine();
  auto call = good_call();
  const auto outcome = ForwardCalls::run(*engine, &call, nullptr);
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().status, WAVEJIT_OUT_OF_MEMORY);
  EXPECT_EQ(statistics_of(*engine).loader_rejections, 0U);
  EXPECT_EQ(cache_files().size(), 1U);
  EXPECT_TRUE(ForwardCalls::run(*engine, &call, nullptr)) << "and the next call may succeed";
  EXPECT_EQ(fake_codegen().compiles, 1U);
}

TEST_F(EngineTest, AKernelThatReadsMoreArgumentsThanWeGiveIsNotLaunched) {
  fake_codegen().kernarg_bytes = sizeof(attention_forward::Arguments) + 8;
  const auto engine = make_engine();
  auto call = good_call();
  const auto outcome = ForwardCalls::run(*engine, &call, nullptr);
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().status, WAVEJIT_LAUNCH_FAILED);
  EXPECT_EQ(fake_hip().launches, 0U);
}

TEST_F(EngineTest, ALaunchErrorIsToldWithHipsWords) {
  const auto engine = make_engine();
  fake_hip().launch_error = hip_abi::hipErrorInvalidValue;
  auto call = good_call();
  const auto outcome = ForwardCalls::run(*engine, &call, nullptr);
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().status, WAVEJIT_LAUNCH_FAILED);
  EXPECT_THAT(outcome.error().detail, HasSubstr("hipErrorInvalidValue"));
  fake_hip().launch_error = hip_abi::hipSuccess;
  EXPECT_TRUE(ForwardCalls::run(*engine, &call, nullptr));
}

// HIP tells a kernel's error at a later call. That call is not to blame, and neither is what lies on disk.
TEST_F(EngineTest, AfterADeviceFaultCallsNameTheKernelsThatMayHaveFailed) {
  const auto engine = make_engine();
  auto first = good_call();
  auto second = good_call();
  second.mask.bits = WAVEJIT_MASK_CAUSAL;
  const std::string spec_of_first = reported(*engine, first).kernel_spec;
  ASSERT_TRUE(engine->synchronize());
  const std::string spec_of_second = reported(*engine, second).kernel_spec;

  fake_hip().launch_error = hip_abi::hipErrorIllegalAddress;
  auto outcome = ForwardCalls::run(*engine, &first, nullptr);
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().status, WAVEJIT_DEVICE_ERROR);
  EXPECT_THAT(outcome.error().detail, HasSubstr("an earlier kernel on "));
  EXPECT_THAT(outcome.error().detail, HasSubstr("hipErrorIllegalAddress (700)"));
  EXPECT_THAT(outcome.error().detail,
              HasSubstr("since the device last came to rest this engine launched " + spec_of_second + " (replays"));

  // Both, when nobody has waited in between.
  fake_hip().launch_error = hip_abi::hipSuccess;
  reported(*engine, first);
  fake_hip().launch_error = hip_abi::hipErrorLaunchFailure;
  outcome = ForwardCalls::run(*engine, &second, nullptr);
  ASSERT_FALSE(outcome);
  EXPECT_THAT(outcome.error().detail,
              HasSubstr("this engine launched " + spec_of_first + "; " + spec_of_second + " (replays"));

  // A fresh engine meets the fault when it loads a kernel that is good.
  const std::size_t entries = cache_files().size();
  fake_hip().load_error = hip_abi::hipErrorIllegalAddress;
  fake_hip().loads_to_refuse = 1;
  const auto other = make_engine();
  outcome = ForwardCalls::run(*other, &first, nullptr);
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().status, WAVEJIT_DEVICE_ERROR);
  EXPECT_THAT(outcome.error().detail, HasSubstr("this engine launched none (replays"));
  EXPECT_EQ(statistics_of(*other).loader_rejections, 0U);
  EXPECT_EQ(cache_files().size(), entries);
}

// AMD's HIP may answer a launch with the fault of the very kernel that it has begun.
TEST_F(EngineTest, AFaultThatReachesItsOwnLaunchIsThatKernels) {
  const auto engine = make_engine();
  auto first = good_call();
  auto second = good_call();
  second.mask.bits = WAVEJIT_MASK_CAUSAL;
  reported(*engine, first);
  const std::string spec_of_second = reported(*engine, second).kernel_spec;
  ASSERT_TRUE(engine->synchronize());
  fake_hip().launch_error = hip_abi::hipErrorIllegalAddress;
  for (const auto* call : {&second, &first}) {
    const auto outcome = ForwardCalls::run(*engine, call, nullptr);
    ASSERT_FALSE(outcome);
    EXPECT_EQ(outcome.error().status, WAVEJIT_DEVICE_ERROR);
    EXPECT_THAT(outcome.error().detail, HasSubstr("this engine launched " + spec_of_second + " (replays"));
  }
}

TEST_F(EngineTest, CacheModesDoWhatTheySay) {
  config_.cache_mode.value = cache::Mode::off;
  reported(*make_engine(), good_call());
  EXPECT_TRUE(cache_files().empty());
  config_.cache_mode.value = cache::Mode::read_only;
  reported(*make_engine(), good_call());
  EXPECT_TRUE(cache_files().empty());
  config_.cache_mode.value = cache::Mode::read_write;
  reported(*make_engine(), good_call());
  EXPECT_EQ(cache_files().size(), 1U);
  config_.cache_mode.value = cache::Mode::read_only;
  EXPECT_EQ(reported(*make_engine(), good_call()).origin, WAVEJIT_ORIGIN_DISK);
  EXPECT_EQ(fake_codegen().compiles, 3U);
}

TEST_F(EngineTest, AnUnusableCacheDirectoryFailsNoCall) {
  config_.cache_directory.value = "/proc/no/such/place";
  const auto engine = make_engine();
  EXPECT_EQ(reported(*engine, good_call()).origin, WAVEJIT_ORIGIN_COMPILED);
  EXPECT_EQ(statistics_of(*engine).publish_failures, 1U);
}

// A read-only layer whose entry the driver refuses is no verdict on what the user's folder has.
TEST_F(EngineTest, ALayersEntryThatTheLoaderRefusesGivesWayToTheUsersOwn) {
  const ScratchDirectory image;
  const std::string user = config_.cache_directory.value;
  config_.cache_directory.value = image.path();
  reported(*make_engine(), good_call());
  config_.cache_directory.value = user;
  config_.cache_layers.value = {image.path()};
  {
    const auto engine = make_engine();
    EXPECT_EQ(reported(*engine, good_call()).origin, WAVEJIT_ORIGIN_DISK);
    EXPECT_EQ(statistics_of(*engine).layer_hits, 1U);
    EXPECT_TRUE(cache_files().empty());
  }
  fake_hip().loads_to_refuse = 1;
  EXPECT_EQ(reported(*make_engine(), good_call()).origin, WAVEJIT_ORIGIN_COMPILED);
  EXPECT_EQ(cache_files().size(), 1U);
  fake_hip().loads_to_refuse = 1;
  const auto engine = make_engine();
  EXPECT_EQ(reported(*engine, good_call()).origin, WAVEJIT_ORIGIN_DISK);
  EXPECT_EQ(statistics_of(*engine).loader_rejections, 1U);
  EXPECT_EQ(statistics_of(*engine).user_hits, 1U);
  EXPECT_EQ(fake_codegen().compiles, 2U);
}

// Two engines, each with a cache of its own on one folder, as two processes have: one of them compiles.
TEST_F(EngineTest, EnginesOnOneFolderCompileOnce) {
  fake_codegen().delay_ms = 50;
  const auto first = make_engine();
  const auto second = make_engine();
  {
    const std::jthread one([&] { reported(*first, good_call()); });
    const std::jthread two([&] { reported(*second, good_call()); });
  }
  EXPECT_EQ(fake_codegen().compiles, 1U);
  EXPECT_EQ(statistics_of(*first).compiled + statistics_of(*second).compiled, 1U);
  EXPECT_EQ(statistics_of(*first).disk_hits + statistics_of(*second).disk_hits, 1U);
  EXPECT_EQ(cache_files().size(), 1U) << "and no lock is left";
}

TEST_F(EngineTest, WithoutAFolderEnginesShareMemory) {
  cache::MemoryLayer memory(std::size_t{1} << 20U);
  config_.cache_directory.value.clear();
  config_.cache_memory = &memory;
  EXPECT_EQ(reported(*make_engine(), good_call()).origin, WAVEJIT_ORIGIN_COMPILED);
  const auto engine = make_engine();
  EXPECT_EQ(reported(*engine, good_call()).origin, WAVEJIT_ORIGIN_DISK);
  EXPECT_EQ(statistics_of(*engine).cache_memory_hits, 1U);
  EXPECT_EQ(fake_codegen().compiles, 1U);
}

TEST_F(EngineTest, TheCallersCurrentDeviceSurvives) {
  const auto engine = make_engine();  // on device 1
  set_current_device(0);
  auto call = good_call();
  ASSERT_TRUE(ForwardCalls::run(*engine, &call, nullptr));
  EXPECT_EQ(fake_hip().last.current_device, 1) << "the null stream is the current device's";
  EXPECT_EQ(current_device(), 0);
  const std::uint64_t switches = fake_hip().device_switches;
  ASSERT_TRUE(ForwardCalls::run(*engine, &call, reinterpret_cast<ihipStream_t*>(0x1000)));
  EXPECT_EQ(fake_hip().device_switches, switches) << "a created stream knows its device";
  set_current_device(1);
  ASSERT_TRUE(ForwardCalls::run(*engine, &call, nullptr));
  EXPECT_EQ(fake_hip().device_switches, switches);
  EXPECT_TRUE(engine->synchronize());
}

TEST_F(EngineTest, ModulesAreUnloadedWithTheEngine) {
  auto engine = make_engine();
  reported(*engine, good_call());
  reported(*engine, good_call(1, 1, 1, 1, 1, 64));
  EXPECT_EQ(fake_hip().module_unloads, 0U);
  engine.reset();
  EXPECT_EQ(fake_hip().module_unloads, 2U);
}

TEST_F(EngineTest, AnArchitectureOutsideTheTableIsRefused) {
  auto engine = runtime::Engine::assemble(config_, fake_device("gfx1100"), *codegen_,
                                          std::make_unique<runtime::Logger>(runtime::LogLevel::off));
  ASSERT_FALSE(engine);
  EXPECT_EQ(engine.error().status, WAVEJIT_UNSUPPORTED);
  EXPECT_THAT(engine.error().detail, HasSubstr("): gfx1100 (Radeon RX 7900 XTX, "));
  EXPECT_THAT(engine.error().detail, HasSubstr(boards::known_products()));
}

TEST_F(EngineTest, DeviceMemoryHelpersCheckTheirPointers) {
  const auto engine = make_engine();
  const auto memory = engine->allocate(16);
  ASSERT_TRUE(memory);
  const std::uint64_t value = 42;
  std::uint64_t back = 0;
  EXPECT_TRUE(engine->copy_in(*memory, &value, sizeof value));
  EXPECT_TRUE(engine->copy_out(&back, *memory, sizeof back));
  EXPECT_EQ(back, 42U);
  EXPECT_FALSE(engine->copy_in(nullptr, &value, 8));
  EXPECT_FALSE(engine->copy_in(*memory, nullptr, 8));
  EXPECT_FALSE(engine->copy_out(nullptr, *memory, 8));
  EXPECT_FALSE(engine->copy_out(&back, nullptr, 8));
  EXPECT_TRUE(engine->copy_in(nullptr, nullptr, 0));
  EXPECT_TRUE(engine->release(*memory));
  EXPECT_TRUE(engine->release(nullptr));
  fake_hip().allocate_error = hip_abi::hipErrorOutOfMemory;
  EXPECT_EQ(engine->allocate(16).error().status, WAVEJIT_OUT_OF_MEMORY);
}

// ---- explain and prebuild ------------------------------------------------------------------------------------------

TEST_F(EngineTest, ExplainTellsTheRouteTheKeyAndWhetherItIsOnDisk) {
  const char* descriptor = "attention_forward fp16 b2 q255 k512 h8/2 d128";
  auto lines = runtime::explain(config_, descriptor, "gfx950", *codegen_);
  ASSERT_TRUE(lines) << lines.error().detail;
  EXPECT_THAT(*lines, Contains("problem  attention_forward fp16 b2 q255 k512 h8/2 d128"));
  EXPECT_THAT(*lines, Contains("route    generic 64x64, 2 waves, permlane O store"));
  EXPECT_THAT(*lines, Contains(HasSubstr("not on disk")));
  EXPECT_THAT(*lines, Contains(::testing::StartsWith("refused  generic 64x64, scalar O store: ")));
  EXPECT_EQ(fake_codegen().compiles, 0U);
  const std::string key = reported(*make_engine(), good_call()).key;
  lines = runtime::explain(config_, descriptor, "gfx950", *codegen_);
  EXPECT_THAT(*lines, Contains("key      " + key + "  on disk (user)"));
  config_.cache_mode.value = cache::Mode::off;
  lines = runtime::explain(config_, descriptor, "gfx950", *codegen_);
  EXPECT_THAT(*lines, Contains(HasSubstr("the disk cache is off")));
}

TEST_F(EngineTest, ExplainNeedsATargetOrASimulatedDevice) {
  const char* descriptor = "attention_forward fp16 b2 q255 k512 h8/2 d128";
  EXPECT_THAT(runtime::explain(config_, descriptor, "", *codegen_).error().detail, HasSubstr("target is not given"));
  EXPECT_THAT(
      runtime::explain(config_, descriptor, "gfx1100", *codegen_).error().detail,
      HasSubstr(
          "target = \"gfx1100\" (Radeon RX 7900 XTX, RX 7900 XT and PRO W7900) has no kernels: it is RDNA 3, and "));
  EXPECT_THAT(runtime::explain(config_, descriptor, "gfx9999", *codegen_).error().detail,
              HasSubstr("target = \"gfx9999\" is not known; accepted: " + boards::known_products()));
  EXPECT_THAT(runtime::explain(config_, descriptor, "mi300x", *codegen_).error().detail,
              HasSubstr("target = \"mi300x\" is a GPU's name, not a target: MI300X is gfx942; "));
  EXPECT_THAT(runtime::explain(config_, descriptor, "gfx90a", *codegen_).error().detail,
              HasSubstr("target = \"gfx90a\" (Instinct MI210, MI250 and MI250X) has no kernels: it is CDNA 2"));
  config_.device.value = *runtime::parse_device("sim:gfx942");
  EXPECT_THAT(*runtime::explain(config_, descriptor, "", *codegen_), Contains("target   gfx942 (MI300X)"));
}

TEST_F(EngineTest, PrebuildFillsWhatCallsThenFindOnDisk) {
  std::vector<runtime::PrebuildProgress> seen;
  const auto note = [&](const runtime::PrebuildProgress& p) { seen.push_back(p); };
  runtime::PrebuildRequest everything{.descriptors = {}, .everything = true, .targets = "gfx942,gfx950", .jobs = 4};
  ASSERT_TRUE(runtime::prebuild(config_, everything, *codegen_, note));
  // Which kernels these are, prebuild_list_test.cpp asks.
  const std::uint64_t all = seen.front().total;
  EXPECT_GE(all, 48U);
  EXPECT_EQ(cache_files().size(), all);
  ASSERT_EQ(seen.size(), all + 1);
  EXPECT_EQ(seen.front().done, 0U);
  for (std::size_t i = 0; i < seen.size(); ++i) {
    EXPECT_EQ(seen[i].done, i);
    EXPECT_EQ(seen[i].total, all);
    EXPECT_EQ(seen[i].done, seen[i].compiled + seen[i].present + seen[i].failed);
  }
  EXPECT_EQ(seen.back().compiled, all);
  seen.clear();
  ASSERT_TRUE(runtime::prebuild(config_, everything, *codegen_, note));
  EXPECT_EQ(seen.back().present, all);
  EXPECT_EQ(fake_codegen().compiles, all);
  EXPECT_EQ(reported(*make_engine("gfx942"), good_call()).origin, WAVEJIT_ORIGIN_DISK);
  EXPECT_EQ(reported(*make_engine("gfx950"), good_call()).origin, WAVEJIT_ORIGIN_DISK);
  const wavejit_call_report longer = reported(*make_engine("gfx950"), good_call(2, 256));
  EXPECT_EQ(longer.origin, WAVEJIT_ORIGIN_DISK);
  EXPECT_THAT(longer.kernel_spec, HasSubstr("pipeline=dualwave"));
  EXPECT_EQ(fake_hip().launches, 3U);
}

TEST_F(EngineTest, PrebuildOfProblemsBuildsEachKernelOnce) {
  runtime::PrebuildRequest request{
      .descriptors = {"attention_forward fp16 b1 q1 k1 h1 d64", "attention_forward fp16 b9 q8 k7 h6 d64 scale=2",
                      "attention_forward fp16 b9 q8 k7 h6 d64 causal"},
      .everything = false,
      .targets = "gfx950,gfx950",
      .jobs = 0};
  ASSERT_TRUE(runtime::prebuild(config_, request, *codegen_, [](const auto&) {}));
  EXPECT_EQ(fake_codegen().compiles, 4U) << "waves share chunks, or not";
}

TEST_F(EngineTest, PrebuildRefusesBeforeItCompiles) {
  const auto refused = [&](const runtime::PrebuildRequest& request) {
    const auto outcome = runtime::prebuild(config_, request, *codegen_, [](const auto&) {});
    return outcome ? std::string("it ran") : outcome.error().detail;
  };
  const std::string good = "attention_forward fp16 b1 q1 k1 h1 d64";
  EXPECT_THAT(refused({{good}, false, "gfx950,gfx1", 0}), HasSubstr("\"gfx1\" is not known"));
  EXPECT_THAT(refused({{good}, false, "", 0}), HasSubstr("\"\" is not known"));
  EXPECT_THAT(refused({{good}, false, "gfx950,", 0}), HasSubstr("\"\" is not known"));
  EXPECT_THAT(refused({{good, "attention_forward x"}, false, "gfx950", 0}), HasSubstr("descriptors[1]: "));
  EXPECT_THAT(refused({{"attention_forward fp16 b1 q1 k1 h1 d100"}, false, "gfx950", 0}), HasSubstr("head dim 100"));
  EXPECT_THAT(refused({{good}, false, "gfx950", -1}), HasSubstr("jobs = -1"));
  EXPECT_THAT(refused({{}, false, "gfx950", 0}), HasSubstr("no kernel to build"));
  config_.cache_mode.value = cache::Mode::read_only;
  EXPECT_THAT(refused({{good}, false, "gfx950", 0}), HasSubstr("cache_mode = ro"));
  EXPECT_EQ(fake_codegen().compiles, 0U);
}

TEST_F(EngineTest, PrebuildGoesOnAfterFailuresAndReportsThem) {
  fake_codegen().status = WAVEJIT_CODEGEN_CRASHED;
  std::uint64_t failed = 0;
  runtime::PrebuildRequest request{.descriptors = {}, .everything = true, .targets = "gfx950", .jobs = 2};
  const auto outcome = runtime::prebuild(config_, request, *codegen_, [&](const auto& p) {
    failed = p.failed;
    if (p.done > 0) {
      EXPECT_THAT(*p.failure, HasSubstr("told to fail"));
    }
  });
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().status, WAVEJIT_COMPILE_FAILED);
  EXPECT_GE(failed, 32U);
  EXPECT_THAT(outcome.error().detail, HasSubstr(std::to_string(failed) + " of " + std::to_string(failed)));
  EXPECT_TRUE(cache_files().empty());
}

// At once: hours of compiling would be for nothing.
TEST_F(EngineTest, PrebuildThatCannotPublishFailsBeforeItCompiles) {
  config_.log_level.value = runtime::LogLevel::off;
  config_.cache_directory.value = "/proc/no/such/place";
  runtime::PrebuildRequest request{
      .descriptors = {"attention_forward fp16 b1 q1 k1 h1 d64"}, .everything = false, .targets = "gfx950", .jobs = 1};
  std::uint64_t done = 0;
  const auto outcome = runtime::prebuild(config_, request, *codegen_, [&](const auto& told) { done = told.done; });
  ASSERT_FALSE(outcome);
  EXPECT_THAT(outcome.error().detail, HasSubstr("/proc"));
  EXPECT_EQ(done, 0U);
}

}  // namespace
}  // namespace wavejit::tests
