// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Output that must not pass, made by the real backend.
#include "codegen/inspection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <unistd.h>

#include <cstdlib>
#include <random>
#include <stdexcept>

#include "codegen/barrier_order_ir.h"
#include "codegen/containment.h"
#include "codegen/language/private_memory.h"
#include "codegen/metadata.h"
#include "codegen/pipeline.h"
#include "ir_samples.h"

namespace wavejit::codegen {
namespace {

using ::testing::HasSubstr;

const targets::Target& target(std::string_view id) { return *targets::find_target(id); }

struct Built {
  Bytes code_object;
  LdsFlowGraph order;
  int private_bytes = 0;
};

// The pipeline without its last step.
std::expected<Built, Failure> build(const std::string& ir, std::string_view target_id, LoweringOptions options = {}) {
  auto planned = plan({.source = Request::Source::ir, .text = ir, .target = std::string(target_id)});
  if (!planned) return std::unexpected(planned.error());
  planned->lowering_options = options;
  llvm::LLVMContext context;
  auto module = emit_module(*planned, context);
  if (!module) return std::unexpected(module.error());
  auto order = lds_flow_of_ir(**module);
  if (!order) return fail(Status::rejected, order.error());
  const int private_bytes = language::declared_private_bytes(**module);
  auto object = lower_module(*planned, **module);
  if (!object) return std::unexpected(object.error());
  auto linked = link_object(*planned, *object);
  if (!linked) return std::unexpected(linked.error());
  return Built{.code_object = std::move(*linked), .order = std::move(*order), .private_bytes = private_bytes};
}

std::expected<Facts, Failure> build_and_inspect(const std::string& ir, std::string_view target_id,
                                                LoweringOptions options = {}) {
  auto built = build(ir, target_id, options);
  if (!built) return std::unexpected(built.error());
  return inspect(built->code_object, target(target_id), built->order, built->private_bytes);
}

TEST(Inspection, ReadsTheFactsBack) {
  const auto facts = build_and_inspect(samples::static_lds(4096), "gfx942");
  ASSERT_TRUE(facts) << facts.error().detail;
  EXPECT_STREQ(facts->kernel_name, "static_lds");
  EXPECT_EQ(facts->lds_bytes, 4096U);
  EXPECT_EQ(facts->kernarg_bytes, 8U);
  EXPECT_EQ(facts->threads, 256U);
  EXPECT_EQ(facts->barriers, 1U);
  EXPECT_EQ(facts->private_bytes, 0U);
  EXPECT_EQ(facts->vgpr_spills, 0U);
  EXPECT_GT(facts->vgprs, 0U);
  EXPECT_GT(facts->instructions, 8U);
}

class SinkingTest : public ::testing::TestWithParam<std::tuple<std::string, bool>> {};

// The check can fail: with machine sinking left on, the reads of this loop end up behind the barrier.
TEST_P(SinkingTest, ReadsSunkBelowABarrierAreRefused) {
  const auto& [target_id, schedulers] = GetParam();
  const std::string ir = samples::reads_before_branch(4);
  const auto kept = build_and_inspect(ir, target_id, {.machine_sinking = false, .schedulers = schedulers});
  EXPECT_TRUE(kept) << kept.error().detail;
  const auto sunk = build_and_inspect(ir, target_id, {.machine_sinking = true, .schedulers = schedulers});
  ASSERT_FALSE(sunk);
  EXPECT_EQ(sunk.error().status, Status::rejected);
  EXPECT_THAT(sunk.error().detail, HasSubstr("LDS reads crossed a barrier"));
}

// A DMA counts as a store, behind which nothing is sunk: the same passes, and the order stays.
TEST_P(SinkingTest, ReadsBeforeADmaAreNotSunk) {
  const auto& [target_id, schedulers] = GetParam();
  const auto facts = build_and_inspect(samples::reads_before_branch(4, true), target_id,
                                       {.machine_sinking = true, .schedulers = schedulers});
  ASSERT_TRUE(facts) << facts.error().detail;
  EXPECT_EQ(facts->lds_dma_instructions, 1U);
}

INSTANTIATE_TEST_SUITE_P(Targets, SinkingTest,
                         ::testing::Combine(::testing::Values(std::string("gfx942"), std::string("gfx950")),
                                            ::testing::Bool()),
                         [](const auto& info) {
                           return std::get<0>(info.param) + (std::get<1>(info.param) ? "WithSchedulers" : "InOrder");
                         });

TEST(Inspection, RefusesAnotherTargetsOutput) {
  const auto built = build(samples::add_constant(1), "gfx942");
  ASSERT_TRUE(built) << built.error().detail;
  EXPECT_TRUE(inspect(built->code_object, target("gfx942"), built->order));
  const auto facts = inspect(built->code_object, target("gfx950"), built->order);
  ASSERT_FALSE(facts);
  EXPECT_THAT(facts.error().detail, HasSubstr("gfx942"));
  EXPECT_THAT(facts.error().detail, HasSubstr("gfx950"));
}

TEST(Inspection, RefusesAnotherMachineInTheElfHeader) {
  auto built = build(samples::add_constant(1), "gfx942");
  ASSERT_TRUE(built) << built.error().detail;
  constexpr std::size_t e_flags = 48;  // ELF64 header
  built->code_object.at(e_flags) = static_cast<unsigned char>(target("gfx950").elf_machine_flags);
  const auto facts = inspect(built->code_object, target("gfx942"), built->order);
  ASSERT_FALSE(facts);
  EXPECT_THAT(facts.error().detail, HasSubstr("ELF machine"));
}

TEST(Inspection, RefusesEncodingsThatTheTargetDoesNotHave) {
  EXPECT_TRUE(build_and_inspect(samples::scaled_convert(), "gfx950"));
  const auto facts = build_and_inspect(samples::scaled_convert(), "gfx942");
  ASSERT_FALSE(facts);
  EXPECT_EQ(facts.error().status, Status::rejected);
  EXPECT_THAT(facts.error().detail, HasSubstr("unknown encoding"));
}

TEST(Inspection, RefusesSpills) {
  EXPECT_TRUE(build_and_inspect(samples::register_pressure(8), "gfx950"));
  const auto facts = build_and_inspect(samples::register_pressure(150), "gfx950");
  ASSERT_FALSE(facts);
  EXPECT_EQ(facts.error().status, Status::rejected);
  EXPECT_THAT(facts.error().detail, HasSubstr("spilled"));
}

TEST(Inspection, RefusesScratch) {
  const auto facts = build_and_inspect(samples::scratch_array(), "gfx942");
  ASSERT_FALSE(facts);
  EXPECT_THAT(facts.error().detail, HasSubstr("scratch"));
}

TEST(Inspection, AdmitsThePrivateMemoryThatIsDeclaredAndNoMore) {
  const auto facts = build_and_inspect(samples::scratch_array(256), "gfx942");
  ASSERT_TRUE(facts) << facts.error().detail;
  EXPECT_GE(facts->private_bytes, 256U);
  EXPECT_LE(facts->private_bytes, 272U);
  EXPECT_EQ(facts->vgpr_spills, 0U);
  const auto more = build_and_inspect(samples::scratch_array(128), "gfx942");
  ASSERT_FALSE(more);
  EXPECT_THAT(more.error().detail, HasSubstr("the kernel declares 128"));
}

TEST(Inspection, RefusesFlatMemory) {
  const auto facts = build_and_inspect(samples::flat_load(), "gfx942");
  ASSERT_FALSE(facts);
  EXPECT_THAT(facts.error().detail, HasSubstr("flat_load"));
}

TEST(Inspection, RefusesIrThatTheBarrierCheckCannotFollow) {
  for (const std::string& ir : {samples::inline_assembly_read(), samples::function_call()}) {
    const auto facts = build_and_inspect(ir, "gfx942");
    ASSERT_FALSE(facts);
    EXPECT_EQ(facts.error().status, Status::rejected);
  }
}

TEST(Inspection, RefusesLdsThatDoesNotFit) {
  EXPECT_TRUE(build_and_inspect(samples::static_lds(68096), "gfx950"));
  const auto facts = build_and_inspect(samples::static_lds(68096), "gfx942");
  ASSERT_FALSE(facts);
  EXPECT_EQ(facts.error().status, Status::rejected);
  EXPECT_THAT(facts.error().detail, HasSubstr("68096"));
}

// Files are damaged, cut or not code objects at all: a Failure each time, never a crash. The parts that read foreign
// bytes run over thousands of damaged copies; the sanitizers watch.
TEST(Inspection, SurvivesDamagedCodeObjects) {
  const auto built = build(samples::static_lds(1024), "gfx942");
  ASSERT_TRUE(built) << built.error().detail;
  const Bytes& whole = built->code_object;
  ASSERT_TRUE(disassembly_text(whole));
  for (std::size_t size = 0; size < whole.size(); size += 1 + size / 64) {
    const Bytes cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_FALSE(read_kernel_image(cut)) << "cut to " << size << " of " << whole.size();
  }
  std::mt19937 random(1);
  int readable = 0;  // damage to instructions or padding leaves the headers in order
  for (int round = 0; round < 3000; ++round) {
    Bytes damaged = whole;
    for (int flips = 1 + round % 4; flips > 0; --flips) {
      // Half of the damage goes into the headers, where it can do most.
      const std::size_t range = round % 2 == 0 ? std::min<std::size_t>(damaged.size(), 1024) : damaged.size();
      damaged[random() % range] = static_cast<unsigned char>(random());
    }
    readable += read_kernel_image(damaged) ? 1 : 0;
    if (round % 16 == 0) readable += disassembly_text(damaged) ? 1 : 0;
  }
  EXPECT_GT(readable, 0);
  EXPECT_LT(readable, 3000);
  EXPECT_FALSE(disassembly_text(Bytes{}));
  EXPECT_FALSE(disassembly_text(Bytes(4096, 0x7f)));
}

TEST(Containment, AnExceptionEndsTheWorkWithItsReason) {
  EXPECT_EQ(run_contained([] {}), "");
  EXPECT_THAT(run_contained([] { throw std::runtime_error("out of ideas"); }), HasSubstr("out of ideas"));
}

TEST(Containment, EveryWayOutOfTheProcessIsParked) {
  const unsigned before = parked_threads();
  EXPECT_THAT(run_contained([] { abort(); }), HasSubstr("abort"));
  EXPECT_THAT(run_contained([] { exit(3); }), HasSubstr("exit"));
  EXPECT_THAT(run_contained([] { _exit(3); }), HasSubstr("exit"));
  EXPECT_EQ(parked_threads(), before + 3);
}

TEST(Containment, DutiesAreCalledOnceWhenTheThreadIsLost) {
  int lost = 0;
  int kept = 0;
  run_contained([&] {
    {
      const OnAbandon over([&](const std::string&) { ++kept; });
    }
    const OnAbandon duty([&](const std::string& reason) { lost += reason.contains("abort"); });
    abort();
  });
  EXPECT_EQ(lost, 1);
  EXPECT_EQ(kept, 0);
}

}  // namespace
}  // namespace wavejit::codegen
