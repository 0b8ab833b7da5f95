// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "assembled.h"
#include "kernels/facts.h"
#include "kernels/mixed_products.h"
#include "support/part.h"
#include "templates/attention_forward/kernel/parameters.h"

namespace wavejit::tests {
namespace {

std::map<std::string, std::string> golden_lines(const char* path = WAVEJIT_GOLDEN_FACTS) {
  std::map<std::string, std::string> lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) lines[line.substr(0, line.find(':'))] = line;
  return lines;
}

// Whether nothing of what makes kernels is other than at the last commit but one. Without git nobody knows: no.
bool emission_is_as_it_was() {
  static const bool same =
      std::system("git -C " WAVEJIT_SOURCE_FOLDER
                  " diff --quiet HEAD~1 -- src/codegen src/targets src/families templates/*/emit "
                  "templates/*/kernel tests/kernels/golden*.txt tests/kernels/facts* cmake >/dev/null 2>&1") == 0;
  return same;
}

// What the table says of a kernel, and that no matrix instruction goes on with another one's accumulator.
template <typename Spec>
void expect_facts(const Spec& spec, const std::string& line) {
  EXPECT_EQ(facts_line(spec), line);
  EXPECT_THAT(mixed_products(known_kernel(spec).code_object), ::testing::IsEmpty()) << line;
}

// One of the kernels that differ in their type alone: bf16 and fp16 by turns, or the one type that there is. All of
// them in ./dev soak. In ./dev test a sixteenth of these, another one each commit, unless this commit or what is not
// committed touched what makes kernels: between them sixteen commits hold all.
template <typename Spec, typename Text>
std::vector<Spec> one_type_of_each(const std::vector<Spec>& specs, Text text_of) {
  constexpr std::size_t parts = 16;
  const bool one_part = sampled() && emission_is_as_it_was();
  const std::size_t its_turn = one_part ? turn() % parts : 0;
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
    if (one_part && typed.place % parts != its_turn) continue;
    if (whole_lists() || typed.types == 1 || (typed.place % 2 == 0) == bf16) chosen.push_back(spec);
  }
  return chosen;
}

// One alone has 512 registers a lane, and the upper half of them are accumulation registers.
bool has_two_waves_a_simd(const attention_forward::ForwardKernel& spec) {
  const auto resources = attention_forward::resources_of(spec);
  return resources && resources->vgpr_budget <= 256;
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

class GoldenFacts : public ::testing::TestWithParam<attention_forward::ForwardKernel> {};

TEST_P(GoldenFacts, AreThoseOfTheTable) {
  const auto golden = golden_lines();
  const auto line = golden.find(attention_forward::to_text(GetParam()));
  ASSERT_NE(line, golden.end()) << "no line for it in " << WAVEJIT_GOLDEN_FACTS;
  // A change on purpose: bin/kernel_facts > tests/kernels/golden.txt
  expect_facts(GetParam(), line->second);
  const std::string private_bytes = " private=" + std::to_string(planned_private_bytes(GetParam())) + " ";
  const std::string arguments = " kernarg=" + std::to_string(attention_forward::argument_bytes(GetParam())) + " ";
  for (const std::string& must : {std::string(" spills=0 "), private_bytes, arguments})
    EXPECT_NE(line->second.find(must), std::string::npos) << must;
  if (has_two_waves_a_simd(GetParam())) {
    EXPECT_NE(line->second.find(" agprs=0 "), std::string::npos);
  }
  EXPECT_TRUE(line->second.ends_with(" threads=" + std::to_string(GetParam().tile_queries * 2))) << "32 rows a wave";
}

TEST(GoldenTable, NamesEveryKernelAndNoOther) { EXPECT_EQ(golden_lines().size(), all_kernel_specs().size()); }

// Also of rows whose turn it is not: a table that was printed anew has what the compiler said, were it a refusal.
TEST(GoldenTable, HasNoKernelThatSpills) {
  for (const char* table :
       {WAVEJIT_GOLDEN_FACTS, WAVEJIT_GOLDEN_SPLITS, WAVEJIT_GOLDEN_SOFTMAX_LSE, WAVEJIT_GOLDEN_CACHE_APPEND,
        WAVEJIT_GOLDEN_ATTENTION_MERGE, WAVEJIT_GOLDEN_SPARSE_INDEXER, WAVEJIT_GOLDEN_ATTENTION_LATENT,
        WAVEJIT_GOLDEN_ATTENTION_BACKWARD, WAVEJIT_GOLDEN_OTHER_TARGETS})
    for (const auto& [spec, facts] : golden_lines(table))
      EXPECT_NE(facts.find(" spills=0 "), std::string::npos) << table << ": " << spec << ": " << facts;
}

TEST(GoldenTable, KernelsOfOneTypeAloneAreChosen) {
  if (whole_lists()) GTEST_SKIP() << "all are chosen";
  const std::vector<std::string> texts = {"a bf16 x", "b bf16 x", "c fp16 x", "d fp16 x",
                                          "e fp16 x", "e bf16 x", "f",        "g"};
  const auto chosen = one_type_of_each(texts, [](const std::string& text) { return text; });
  std::set<std::string> kinds;
  for (const std::string& text : chosen) kinds.insert(text.substr(0, 1));
  EXPECT_EQ(kinds.size(), chosen.size()) << "two types of one kernel";
  if (!sampled() || !emission_is_as_it_was()) {
    EXPECT_EQ(kinds.size(), 7U);
  }
}

// The kernels of split keys: one test for each target would be as good, one for all is shorter.
TEST(GoldenSplits, AreThoseOfTheTable) {
  const auto golden = golden_lines(WAVEJIT_GOLDEN_SPLITS);
  const std::vector<families::KernelSpec> specs = split_kernel_specs();
  EXPECT_EQ(golden.size(), specs.size());
  for (const families::KernelSpec& spec : one_type_of_each(specs, [](const auto& of) { return of.text(); })) {
    const auto line = golden.find(spec.text());
    ASSERT_NE(line, golden.end()) << spec.text();
    // A change on purpose: bin/kernel_facts splits > tests/kernels/golden_splits.txt
    expect_facts(spec, line->second);
    const std::string kernarg = " kernarg=" + std::to_string(spec.argument_bytes()) + " ";
    const auto* walk = spec.get_if<attention_forward::ForwardKernel>();
    const std::string private_bytes =
        " private=" + std::to_string(walk == nullptr ? 0 : planned_private_bytes(*walk)) + " ";
    for (const std::string& must : {std::string(" spills=0 "), private_bytes, kernarg})
      EXPECT_NE(line->second.find(must), std::string::npos) << spec.text() << must;
    if (walk == nullptr || has_two_waves_a_simd(*walk)) {
      EXPECT_NE(line->second.find(" agprs=0 "), std::string::npos) << spec.text();
    }
  }
}

TEST(GoldenSoftmax, AreThoseOfTheTable) {
  const auto golden = golden_lines(WAVEJIT_GOLDEN_SOFTMAX_LSE);
  const std::vector<families::KernelSpec> specs = softmax_kernel_specs();
  EXPECT_EQ(golden.size(), specs.size());
  for (const families::KernelSpec& spec : one_type_of_each(specs, [](const auto& of) { return of.text(); })) {
    const auto line = golden.find(spec.text());
    ASSERT_NE(line, golden.end()) << spec.text();
    // A change on purpose: bin/kernel_facts softmax_lse > tests/kernels/golden_softmax_lse.txt
    expect_facts(spec, line->second);
    for (const char* must : {" spills=0 ", " private=0 ", " agprs=0 ", " kernarg=128 ", " threads=256"})
      EXPECT_NE(line->second.find(must), std::string::npos) << must;
  }
}

TEST(GoldenAppend, AreThoseOfTheTable) {
  const auto golden = golden_lines(WAVEJIT_GOLDEN_CACHE_APPEND);
  const std::vector<families::KernelSpec> specs = append_kernel_specs();
  EXPECT_EQ(golden.size(), specs.size());
  for (const families::KernelSpec& spec : one_type_of_each(specs, [](const auto& of) { return of.text(); })) {
    const auto line = golden.find(spec.text());
    ASSERT_NE(line, golden.end()) << spec.text();
    // A change on purpose: bin/kernel_facts cache_append > tests/kernels/golden_cache_append.txt
    expect_facts(spec, line->second);
    const std::string kernarg = " kernarg=" + std::to_string(spec.argument_bytes()) + " ";
    for (const std::string& must :
         {std::string(" spills=0 "), std::string(" private=0 "), std::string(" agprs=0 "), kernarg})
      EXPECT_NE(line->second.find(must), std::string::npos) << must;
  }
}

TEST(GoldenMerge, AreThoseOfTheTable) {
  const auto golden = golden_lines(WAVEJIT_GOLDEN_ATTENTION_MERGE);
  const std::vector<families::KernelSpec> specs = merge_kernel_specs();
  EXPECT_EQ(golden.size(), specs.size());
  for (const families::KernelSpec& spec : specs) {
    const auto line = golden.find(spec.text());
    ASSERT_NE(line, golden.end()) << spec.text();
    // A change on purpose: bin/kernel_facts attention_merge > tests/kernels/golden_attention_merge.txt
    expect_facts(spec, line->second);
    const std::string kernarg = " kernarg=" + std::to_string(spec.argument_bytes()) + " ";
    for (const std::string& must :
         {std::string(" spills=0 "), std::string(" private=0 "), std::string(" agprs=0 "), kernarg})
      EXPECT_NE(line->second.find(must), std::string::npos) << must;
  }
}

TEST(GoldenIndexer, AreThoseOfTheTable) {
  const auto golden = golden_lines(WAVEJIT_GOLDEN_SPARSE_INDEXER);
  const std::vector<families::KernelSpec> specs = indexer_kernel_specs();
  EXPECT_EQ(golden.size(), specs.size());
  for (const families::KernelSpec& spec : one_type_of_each(specs, [](const auto& of) { return of.text(); })) {
    const auto line = golden.find(spec.text());
    ASSERT_NE(line, golden.end()) << spec.text();
    // A change on purpose: bin/kernel_facts sparse_indexer > tests/kernels/golden_sparse_indexer.txt
    expect_facts(spec, line->second);
    const std::string kernarg = " kernarg=" + std::to_string(spec.argument_bytes()) + " ";
    for (const std::string& must : {std::string(" spills=0 "), std::string(" private=0 "), kernarg})
      EXPECT_NE(line->second.find(must), std::string::npos) << spec.text() << must;
  }
}

TEST(GoldenLatent, AreThoseOfTheTable) {
  const auto golden = golden_lines(WAVEJIT_GOLDEN_ATTENTION_LATENT);
  const std::vector<families::KernelSpec> specs = latent_kernel_specs();
  EXPECT_EQ(golden.size(), specs.size());
  for (const families::KernelSpec& spec : one_type_of_each(specs, [](const auto& of) { return of.text(); })) {
    const auto line = golden.find(spec.text());
    ASSERT_NE(line, golden.end()) << spec.text();
    // A change on purpose: bin/kernel_facts attention_latent > tests/kernels/golden_attention_latent.txt
    expect_facts(spec, line->second);
    const auto* walk = spec.get_if<attention_latent::WalkKernel>();
    const std::string merged = " private=" + std::to_string(walk == nullptr ? 0 : planned_private_bytes(*walk)) + " ";
    const std::string kernarg = " kernarg=" + std::to_string(spec.argument_bytes()) + " ";
    for (const std::string& must : {std::string(" spills=0 "), merged, kernarg})
      EXPECT_NE(line->second.find(must), std::string::npos) << spec.text() << must;
  }
}

TEST(GoldenBackward, AreThoseOfTheTable) {
  const auto golden = golden_lines(WAVEJIT_GOLDEN_ATTENTION_BACKWARD);
  const std::vector<families::KernelSpec> specs = backward_kernel_specs();
  EXPECT_EQ(golden.size(), specs.size());
  for (const families::KernelSpec& spec : one_type_of_each(specs, [](const auto& of) { return of.text(); })) {
    const auto line = golden.find(spec.text());
    ASSERT_NE(line, golden.end()) << spec.text();
    // A change on purpose: bin/kernel_facts attention_backward > tests/kernels/golden_attention_backward.txt
    expect_facts(spec, line->second);
    for (const char* must : {" spills=0 ", " private=0 ", " threads=256"})
      EXPECT_NE(line->second.find(must), std::string::npos) << spec.text() << must;
  }
}

std::string test_name(const ::testing::TestParamInfo<attention_forward::ForwardKernel>& info) {
  const attention_forward::ForwardKernel& spec = info.param;
  std::string name = spec.target + "_" + std::string(to_text(spec.dtype)) + "_d" + std::to_string(spec.head_dim_qk);
  if (spec.mask == attention_forward::Mask::causal) name += "_causal";
  if (spec.mask == attention_forward::Mask::window) name += "_window";
  if (spec.lse) name += "_lse";
  for (const auto& row : attention_forward::modifier_rows)
    if (spec.has(row.modifier)) name += "_" + std::string(row.word);
  name += "_" + std::string(to_text(spec.pipeline)) + "_" + std::to_string(spec.tile_queries) + "rows";
  return name + "_" + std::string(to_text(spec.output_store));
}

INSTANTIATE_TEST_SUITE_P(EveryKernel, GoldenFacts,
                         ::testing::ValuesIn(one_type_of_each(all_kernel_specs(),
                                                              [](const auto& of) { return to_text(of); })),
                         test_name);

}  // namespace
}  // namespace wavejit::tests
