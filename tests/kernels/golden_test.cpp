// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "assembled.h"
#include "kernels/facts.h"
#include "kernels/golden_tables.h"
#include "kernels/mixed_products.h"
#include "support/part.h"
#include "targets/targets.h"
#include "templates/attention_forward/kernel/parameters.h"
#include "timing/timing.h"

namespace wavejit::tests {
namespace {

// One of the kernels that differ in their type alone: bf16 and fp16 alternate along the table, or the one type that
// there is. All of them in ./dev soak.
template <typename Spec, typename Text>
std::vector<Spec> one_type_of_each(const std::vector<Spec>& specs, Text text_of) {
  struct Typed {
    std::size_t place = 0;  // of the text without a type
    std::size_t types = 0;
  };
  std::map<std::string, Typed> without_type;
  const auto text_and_type = [&](const Spec& spec) {
    std::string text = text_of(spec);
    const std::size_t at = std::min(text.find(" fp16 "), text.find(" bf16 "));
    if (at == std::string::npos) return std::pair(text, false);
    const bool bf16 = text[at + 1] == 'b';
    text.erase(at, 5);
    return std::pair(text, bf16);
  };
  for (const Spec& spec : specs) {
    const std::size_t place = without_type.size();
    ++without_type.try_emplace(text_and_type(spec).first, Typed{place, 0}).first->second.types;
  }
  std::vector<Spec> chosen;
  for (const Spec& spec : specs) {
    const auto [text, bf16] = text_and_type(spec);
    const Typed& typed = without_type.at(text);
    if (whole_lists() || typed.types == 1 || (typed.place % 2 == 0) == bf16) chosen.push_back(spec);
  }
  return chosen;
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

class GoldenFacts : public ::testing::TestWithParam<GoldenTable> {};

TEST_P(GoldenFacts, AreThoseOfTheTable) {
  const auto golden = golden_lines(GetParam());
  const std::vector<families::KernelSpec> specs = GetParam().specs();
  EXPECT_EQ(golden.size(), specs.size()) << "the table has other kernels than there are";
  std::vector<std::string> drifted;
  for (const families::KernelSpec& spec : one_type_of_each(specs, [](const auto& of) { return of.text(); })) {
    const auto line = golden.find(spec.text());
    ASSERT_NE(line, golden.end()) << spec.text();
    const ComparedFacts compared = compare_facts(spec.target(), line->second, facts_line(spec));
    EXPECT_THAT(compared.broken, ::testing::IsEmpty()) << spec.text();
    for (const std::string& change : compared.drifted) drifted.push_back(spec.text() + ": " + change);
    // Only code of simulated targets can be read.
    if (timing::find_timing(*targets::find_target(spec.target())) == nullptr) continue;
    EXPECT_THAT(mixed_products(known_kernel(spec).code_object), ::testing::IsEmpty()) << spec.text();
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

TEST(GoldenTable, KernelsOfOneTypeAloneAreChosen) {
  if (whole_lists()) GTEST_SKIP() << "all are chosen";
  const std::vector<std::string> texts = {"a bf16 x", "b bf16 x", "c fp16 x", "d fp16 x",
                                          "e fp16 x", "e bf16 x", "f",        "g"};
  const auto chosen = one_type_of_each(texts, [](const std::string& text) { return text; });
  std::set<std::string> kinds;
  for (const std::string& text : chosen) kinds.insert(text.substr(0, 1));
  EXPECT_EQ(kinds.size(), chosen.size()) << "two types of one kernel";
  EXPECT_EQ(kinds.size(), 7U);
}

}  // namespace
}  // namespace wavejit::tests
