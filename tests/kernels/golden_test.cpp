// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "assembled.h"
#include "kernels/facts.h"
#include "kernels/golden_tables.h"
#include "kernels/lds_dma_order.h"
#include "kernels/mixed_products.h"
#include "kernels/static_hazards.h"
#include "support/part.h"
#include "targets/targets.h"
#include "templates/attention_forward/kernel/parameters.h"
#include "timing/timing.h"

namespace wavejit::tests {
namespace {

// The kernels of a table that are compiled: in ./dev test those of tests/chosen/golden_kernels.txt, else all.
std::vector<families::KernelSpec> compiled_kernels(const GoldenTable& table) {
  std::vector<families::KernelSpec> specs = table.specs();
  if (!sampled()) return specs;
  std::set<std::string> chosen;
  std::ifstream file(WAVEJIT_CHOSEN_KERNELS);
  for (std::string line; std::getline(file, line);) {
    const std::size_t number = line.find_first_not_of("0123456789");
    if (number != 0 && number < line.size()) chosen.insert(line.substr(number + 1));
  }
  std::erase_if(specs, [&](const families::KernelSpec& spec) { return !chosen.contains(spec.text()); });
  return specs;
}

TEST(MixedProducts, AreSeenHoweverFarApart) {
  const std::string deep = "v_mfma_f32_16x16x32_f16 v[16:19], v[0:3], v[4:7], v[16:19]\n";
  const std::string shallow = "v_mfma_f32_16x16x16_f16 v[16:19], v[0:1], v[4:5], v[16:19]\n";
  const auto found = [](const std::string& body) { return mixed_products(simgpu::testing::assemble({.body = body})); };
  EXPECT_THAT(found(deep + "s_nop 15\n" + shallow),
              ::testing::ElementsAre(::testing::HasSubstr("goes on with the result of v_mfma_f32_16x16x32_f16")));
  EXPECT_THAT(found(deep + deep), ::testing::IsEmpty());
  EXPECT_THAT(found(deep + "v_mov_b64 v[16:17], 0\nv_mov_b64 v[18:19], 0\n" + shallow), ::testing::IsEmpty());
}

// Published faults of gfx950 (docs/simulated-gpu.md), on ways that a run does not take.
TEST(StaticHazards, AreSeenOnEveryWay) {
  using ::testing::ElementsAre;
  using ::testing::HasSubstr;
  using ::testing::IsEmpty;
  const auto found = [](const std::string& body) {
    return static_hazards(simgpu::testing::assemble({.body = body, .vgprs = 128}));
  };
  // llvm/llvm-project#222040: twenty states are needed behind sixteen passes. One way is a branch shorter.
  const std::string product = "v_mfma_f32_32x32x4_2b_f16 v[16:47], v[0:1], v[4:5], 0\ns_nop 15\n";
  const std::string use = "v_add_f32 v3, v47, v47\n";
  EXPECT_THAT(found(product + "s_nop 2\n" + use), ElementsAre(HasSubstr("19 wait states after")));
  EXPECT_THAT(found(product + "s_nop 3\n" + use), IsEmpty());
  const auto around = [&](int states) {
    return product + "s_cmp_eq_u32 s2, s2\ns_cbranch_scc0 .Llong\ns_nop " + std::to_string(states) +
           "\ns_branch .Luse\n.Llong:\ns_nop 15\n.Luse:\n" + use;
  };
  EXPECT_THAT(found(around(0)), IsEmpty());
  EXPECT_THAT(found(product + "s_cmp_eq_u32 s2, s2\ns_cbranch_scc1 .Luse\ns_nop 15\n.Luse:\n" + use),
              ElementsAre(HasSubstr("18 wait states after")));
  // Behind the end of a loop's body stands its beginning.
  EXPECT_THAT(found(".Lagain:\n" + use + product + "s_cbranch_scc1 .Lagain\n"),
              ElementsAre(HasSubstr("17 wait states after")));
  // ROCm/rocMLIR#2459.
  EXPECT_THAT(found("v_pk_fma_f32 v[12:13], v[8:9], v[10:11], v[8:9] op_sel:[0,1,0]\n"),
              ElementsAre(HasSubstr("takes the high half of its second source")));
}

// Private memory by the plan: merged rows of chunks that came before.
std::uint32_t planned_private(const families::KernelSpec& spec) {
  if (const auto* walk = spec.get_if<attention_forward::ForwardKernel>()) return planned_private_bytes(*walk);
  if (const auto* walk = spec.get_if<attention_latent::WalkKernel>()) return planned_private_bytes(*walk);
  return 0;
}

// A kernel that shares a SIMD with a second wave has 256 registers, and one without matrix instructions has no use for
// accumulation registers: copies to and from them would be spills by another name.
bool has_no_accumulation_registers(const families::KernelSpec& spec, const std::string& line) {
  if (line.contains(" matrix=0 ")) return true;
  const auto* walk = spec.get_if<attention_forward::ForwardKernel>();
  const auto resources = walk == nullptr ? std::nullopt : std::optional(attention_forward::resources_of(*walk));
  return resources && *resources && (*resources)->vgpr_budget <= 256;
}

// The kind of lds_dma_kinds.txt that a kernel which loads into LDS is of.
DmaKind kind_of(const std::string& spec) {
  static const std::vector<DmaKind> kinds = dma_kinds();
  DmaKind kind;
  int found = 0;
  for (const DmaKind& one : kinds) {
    if (!std::regex_search(spec, one.kernels)) continue;
    kind = one;
    ++found;
  }
  EXPECT_EQ(found, 1) << "kinds of tests/kernels/lds_dma_kinds.txt that " << spec << " is of";
  return kind;
}

class GoldenFacts : public ::testing::TestWithParam<GoldenTable> {};

TEST_P(GoldenFacts, AreThoseOfTheTable) {
  const auto golden = golden_lines(GetParam());
  EXPECT_EQ(golden.size(), GetParam().specs().size()) << "the table has other kernels than there are";
  const std::vector<families::KernelSpec> compiled = compiled_kernels(GetParam());
  EXPECT_THAT(compiled, ::testing::Not(::testing::IsEmpty()))
      << "tests/chosen/golden_kernels.txt has none of the table";
  std::vector<std::string> drifted;
  for (const families::KernelSpec& spec : compiled) {
    const auto line = golden.find(spec.text());
    ASSERT_NE(line, golden.end()) << spec.text();
    const ComparedFacts compared = compare_facts(spec.target(), line->second, facts_line(spec));
    EXPECT_THAT(compared.broken, ::testing::IsEmpty()) << spec.text();
    for (const std::string& change : compared.drifted) drifted.push_back(spec.text() + ": " + change);
    // Only code of simulated targets can be read.
    if (timing::find_timing(*targets::find_target(spec.target())) == nullptr) continue;
    const CompiledKernel known = known_kernel(spec);
    EXPECT_THAT(mixed_products(known.code_object), ::testing::IsEmpty()) << spec.text();
    EXPECT_THAT(static_hazards(known.code_object), ::testing::IsEmpty()) << spec.text();
    if (line->second.contains(" lds_dma=0 ")) continue;
    const std::string in_need = counts_on_dma_order(known.code_object);
    EXPECT_EQ(!in_need.empty(), kind_of(spec.text()).needs_order) << spec.text() << ": " << in_need;
  }
  if (drifted.empty()) return;
  std::printf("%zu counts of %s moved by up to 2 %%; for a reviewer to read:\n", drifted.size(),
              GetParam().name.data());
  for (const std::string& change : drifted) std::printf("  %s\n", change.c_str());
  std::printf("./dev run kernel_facts %s > tests/kernels/golden/%s.txt\n", GetParam().name.data(),
              GetParam().name.data());
}

// What the tables themselves promise, whatever the compiler makes now: a table that was printed anew has what the
// compiler said, even if that was a refusal.
TEST_P(GoldenFacts, PromiseNoSpillAndThePlannedMemory) {
  const auto golden = golden_lines(GetParam());
  for (const families::KernelSpec& spec : GetParam().specs()) {
    const auto line = golden.find(spec.text());
    ASSERT_NE(line, golden.end()) << spec.text();
    const std::string memory = " private=" + std::to_string(planned_private(spec)) + " ";
    const std::string arguments = " kernarg=" + std::to_string(spec.argument_bytes()) + " ";
    for (const std::string& must : {std::string(" spills=0 "), memory, arguments})
      EXPECT_THAT(line->second, ::testing::HasSubstr(must));
    if (line->second.contains(" lds_dma=") && !line->second.contains(" lds_dma=0 "))
      EXPECT_NE(kind_of(spec.text()).name, "");
    if (has_no_accumulation_registers(spec, line->second)) {
      EXPECT_THAT(line->second, ::testing::HasSubstr(" agprs=0 "));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(WholeTables, GoldenFacts, ::testing::ValuesIn(golden_tables()),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(ComparedFacts, HoldPromisesAndLetCountsMoveByTwoPercent) {
  const std::string golden = "k: instructions=1000 matrix=32 vgprs=250 agprs=0 spills=0";
  const auto compared = [&](const char* now) { return compare_facts("gfx942", golden, now); };
  const ComparedFacts near = compared("k: instructions=1020 matrix=32 vgprs=250 agprs=0 spills=0");
  EXPECT_THAT(near.broken, ::testing::IsEmpty());
  EXPECT_THAT(near.drifted, ::testing::ElementsAre("instructions=1020, was 1000"));
  EXPECT_THAT(compared("k: instructions=1021 matrix=32 vgprs=250 agprs=0 spills=0").broken,
              ::testing::ElementsAre("instructions=1021, was 1000"));
  EXPECT_THAT(compared("k: instructions=1000 matrix=33 vgprs=250 agprs=0 spills=2").broken,
              ::testing::ElementsAre("matrix=33, was 32", "spills=2, was 0"));
  EXPECT_THAT(compared("k: instructions=1000 matrix=32 vgprs=250 agprs=1 spills=0").broken,
              ::testing::ElementsAre("agprs=1, was 0"));
  // 256 registers are two waves a SIMD, 257 are one: within two percent, but a promise.
  const std::string full = "k: instructions=1000 matrix=32 vgprs=256 agprs=0 spills=0";
  EXPECT_THAT(compare_facts("gfx942", full, "k: instructions=1000 matrix=32 vgprs=257 agprs=0 spills=0").broken,
              ::testing::ElementsAre("waves_of_a_simd=1, was 2"));
  EXPECT_THAT(compared("k: status 4: spilled").broken, ::testing::SizeIs(1));
}

}  // namespace
}  // namespace wavejit::tests
