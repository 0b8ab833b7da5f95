// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The compile service: one compile per spec, parallel compiles, lost compiles, memory.
#include "codegen/service.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <format>
#include <string_view>
#include <thread>
#include <vector>

#include "codegen/containment.h"
#include "ir_samples.h"

namespace wavejit::codegen {
namespace {

using ::testing::HasSubstr;

Request ir(std::string text, std::string target = "gfx942") {
  return {.source = Request::Source::ir, .text = std::move(text), .target = std::move(target)};
}

Request spec(std::string text) { return {.source = Request::Source::spec, .text = std::move(text), .target = {}}; }

const char* const small_spec =
    "attention_forward fp16 d64 pipeline=generic tile=128x64 o_store=scalar target=gfx942 lowering=llvm";

TEST(Service, CompilesASpec) {
  Service service({});
  const auto compiled = service.compile(spec(small_spec));
  ASSERT_EQ(compiled->status, Status::ok) << compiled->detail;
  EXPECT_GT(compiled->bytes.size(), 1000U);
  EXPECT_EQ(compiled->facts.vgpr_spills, 0U);
  EXPECT_GT(compiled->facts.matrix_instructions, 0U);
  EXPECT_GT(compiled->times.lower_ns, 0U);
  EXPECT_EQ(service.live_symbols(), 0U);
}

// AMD's HIP refuses images without this section (hipErrorInvalidImage), though nothing is loaded from it.
TEST(Service, TheImageHasTheSectionOfNamesThatHipAsksFor) {
  Service service({});
  const auto compiled = service.compile(ir(samples::add_constant(1)));
  ASSERT_EQ(compiled->status, Status::ok) << compiled->detail;
  constexpr std::string_view name("\0.strtab\0", 9);  // among the names of sections
  EXPECT_FALSE(std::ranges::search(compiled->bytes, name).empty());
}

TEST(Service, RefusesBeforeAnyIrExists) {
  Service service({});
  const auto unsupported = service.compile(
      spec("attention_forward fp16 d64 pipeline=generic tile=128x64 o_store=permlane target=gfx942 lowering=llvm"));
  EXPECT_EQ(unsupported->status, Status::unsupported);
  EXPECT_THAT(unsupported->detail, HasSubstr("o_store"));
  EXPECT_EQ(unsupported->times.emit_ns, 0U);
  EXPECT_EQ(service.compile(spec("attention_forward fp16"))->status, Status::invalid);
  EXPECT_EQ(service.compile(spec(""))->status, Status::invalid);
  EXPECT_EQ(service.compile(spec(std::string(100'000, 'x')))->status, Status::invalid);
  const auto broken = service.compile(ir("define void @k( {"));
  EXPECT_EQ(broken->status, Status::invalid);
  EXPECT_THAT(broken->detail, HasSubstr("IR line"));
  EXPECT_EQ(service.compile(ir("", "gfx942"))->status, Status::rejected);
  EXPECT_EQ(service.compile(ir(samples::add_constant(1), "gfx000"))->status, Status::unsupported);
  EXPECT_EQ(service.abandoned_sessions(), 0U);
}

// LLVM aborts on what it cannot select: the compile is lost, its session given up, and the next compile works.
TEST(Service, ALostCompileIsAStatusAndTheNextOneWorks) {
  Service service({});
  ASSERT_EQ(service.compile(ir(samples::add_constant(1)))->status, Status::ok);
  const auto lost = service.compile(ir(samples::permlane32_swap()));
  EXPECT_EQ(lost->status, Status::crashed);
  EXPECT_THAT(lost->detail, HasSubstr("Cannot select"));
  EXPECT_EQ(service.abandoned_sessions(), 1U);
  const auto next = service.compile(ir(samples::add_constant(1)));
  EXPECT_EQ(next->status, Status::ok) << next->detail;
  const auto supported = service.compile(ir(samples::permlane32_swap(), "gfx950"));
  EXPECT_EQ(supported->status, Status::ok) << supported->detail;
}

TEST(Service, CompilesBesideALostOneFinish) {
  Service service({});
  std::vector<std::shared_ptr<const Compiled>> results(6);
  {
    std::vector<std::jthread> threads;
    threads.reserve(8);
    for (int i = 0; i < 6; ++i) {
      threads.emplace_back(
          [&, i] { results[i] = service.compile(ir(i == 2 ? samples::permlane32_swap() : samples::add_constant(i))); });
    }
  }
  for (int i = 0; i < 6; ++i)
    EXPECT_EQ(results[i]->status, i == 2 ? Status::crashed : Status::ok) << i << ": " << results[i]->detail;
  EXPECT_EQ(service.abandoned_sessions(), 1U);
}

// Lost compiles keep their memory, so a process that only crashes is told to stop trying.
// In a process of its own, which is spoilt afterwards.
TEST(ServiceDeathTest, TooManyLostCompilesAreRefused) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        static Service* const service = new Service({});
        for (int i = 0; i < 8; ++i) service->compile(ir(samples::permlane32_swap()));
        const auto refused = service->compile(ir(samples::add_constant(1)));
        std::fputs(refused->detail.c_str(), stderr);
        std::exit(refused->status == Status::crashed && parked_threads() == 8 ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "8 compiles were lost in this process; compile isolated");
}

TEST(Service, EightThreadsCompileDifferentKernelsAtOnce) {
  Service service({});
  std::vector<std::shared_ptr<const Compiled>> results(8);
  {
    std::vector<std::jthread> threads;
    threads.reserve(8);
    for (int i = 0; i < 8; ++i) {
      threads.emplace_back(
          [&, i] { results[i] = service.compile(ir(samples::add_constant(100 + i, std::format("kernel_{}", i)))); });
    }
  }
  for (int i = 0; i < 8; ++i) {
    ASSERT_EQ(results[i]->status, Status::ok) << results[i]->detail;
    EXPECT_EQ(results[i]->facts.kernel_name, std::format("kernel_{}", i));
  }
  EXPECT_EQ(service.live_symbols(), 0U);
}

TEST(Service, TheSameSpecIsCompiledOnceForEveryoneWhoWaits) {
  Service service({});
  std::vector<std::shared_ptr<const Compiled>> results(6);
  std::atomic<int> waiting = 0;
  {
    std::vector<std::jthread> threads;
    threads.reserve(8);
    for (int i = 0; i < 6; ++i) {
      threads.emplace_back([&, i] {
        ++waiting;
        while (waiting < 6) std::this_thread::yield();
        // Words in another order name the same kernel.
        results[i] = service.compile(spec(i % 2 == 0 ? small_spec
                                                     : "attention_forward target=gfx942 d64 fp16 tile=128x64 "
                                                       "pipeline=generic lowering=llvm o_store=scalar"));
      });
    }
  }
  ASSERT_EQ(results[0]->status, Status::ok) << results[0]->detail;
  for (int i = 1; i < 6; ++i) EXPECT_EQ(results[i], results[0]) << "thread " << i << " compiled on its own";
  // Afterwards nothing is kept: a new request is a new compile with the same bytes.
  const auto again = service.compile(spec(small_spec));
  EXPECT_NE(again, results[0]);
  EXPECT_EQ(again->bytes, results[0]->bytes);
}

TEST(Service, DestroyedIdleOrNeverUsed) {
  {
    const Service unused({});
  }
  for (int i = 0; i < 3; ++i) {
    Service service({});
    EXPECT_EQ(service.compile(ir(samples::add_constant(i)))->status, Status::ok);
  }
}

// exit() on one thread while another compiles, or is about to: LLVM's static objects must not be destroyed under a
// compile.
TEST(ServiceDeathTest, ExitDuringACompileIsHarmless) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  for (const int delay_ms : {0, 1, 3, 10}) {
    EXPECT_EXIT(
        {
          static Service* const service = new Service({});
          std::thread([] { service->compile(spec(small_spec)); }).detach();
          std::this_thread::sleep_for(std::chrono::milliseconds(delay_ms));
          std::exit(0);
        },
        ::testing::ExitedWithCode(0), "")
        << "after " << delay_ms << " ms";
  }
}

TEST(Service, EmitsIrAndDisassembles) {
  Service service({});
  const Compiled text = service.emit_ir(spec(small_spec));
  ASSERT_EQ(text.status, Status::ok) << text.detail;
  const std::string emitted(text.bytes.begin(), text.bytes.end());
  EXPECT_THAT(emitted, HasSubstr("amdgpu_kernel void @attention_forward_fp16_d64_128x64_gfx942"));
  EXPECT_THAT(emitted, HasSubstr("llvm.amdgcn.mfma"));
  const auto compiled = service.compile(spec(small_spec));
  const Compiled listing = service.disassemble(compiled->bytes);
  ASSERT_EQ(listing.status, Status::ok) << listing.detail;
  const std::string printed(listing.bytes.begin(), listing.bytes.end());
  EXPECT_THAT(printed, HasSubstr("v_mfma_f32_32x32x8_f16"));
  EXPECT_THAT(printed, HasSubstr("s_endpgm"));
  EXPECT_EQ(static_cast<std::size_t>(std::ranges::count(printed, '\n')), compiled->facts.instructions + 1U);
  EXPECT_EQ(service.disassemble(Bytes{1, 2, 3}).status, Status::rejected);
  EXPECT_EQ(service.emit_ir(spec("nonsense")).status, Status::invalid);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && !__has_feature(address_sanitizer) && \
    !__has_feature(thread_sanitizer)
// Modules, objects and symbols go when the answer is given. One kept module of this kind is over 100 KB.
TEST(Service, MemoryStaysBounded) {
  mallopt(M_ARENA_MAX, 1);  // so that mallinfo2 sees every thread's memory
  Service service({});
  const auto compile_some = [&](int first, int count) {
    for (int i = first; i < first + count; ++i)
      ASSERT_EQ(service.compile(ir(samples::add_constant(i)))->status, Status::ok);
  };
  compile_some(0, 10);
  const std::size_t before = mallinfo2().uordblks;
  compile_some(10, 50);
  const std::size_t after = mallinfo2().uordblks;
  EXPECT_LT(after, before + 200'000) << "50 compiles kept " << (after - before) << " bytes";
}
#endif

}  // namespace
}  // namespace wavejit::codegen
