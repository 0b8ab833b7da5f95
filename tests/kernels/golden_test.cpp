#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <string>

#include "kernels/facts.h"

namespace wavejit::tests {
namespace {

std::map<std::string, std::string> golden_lines(const char* path = WAVEJIT_GOLDEN_FACTS) {
  std::map<std::string, std::string> lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) lines[line.substr(0, line.find(':'))] = line;
  return lines;
}

class GoldenFacts : public ::testing::TestWithParam<attention_forward::KernelSpec> {};

TEST_P(GoldenFacts, AreThoseOfTheTable) {
  const auto golden = golden_lines();
  const auto line = golden.find(attention_forward::to_text(GetParam()));
  ASSERT_NE(line, golden.end()) << "no line for it in " << WAVEJIT_GOLDEN_FACTS;
  // A change on purpose: bin/kernel_facts > tests/kernels/golden.txt
  EXPECT_EQ(facts_line(GetParam()), line->second);
  for (const char* must : {" spills=0 ", " private=0 ", " kernarg=296 "})
    EXPECT_NE(line->second.find(must), std::string::npos) << must;
  // Head dim 256 has one wave a SIMD, and O may stand in accumulation registers.
  if (GetParam().head_dim_v <= 128) {
    EXPECT_NE(line->second.find(" agprs=0 "), std::string::npos);
  }
  EXPECT_TRUE(line->second.ends_with(" threads=" + std::to_string(GetParam().tile_queries * 2))) << "32 rows a wave";
}

TEST(GoldenTable, NamesEveryKernelAndNoOther) { EXPECT_EQ(golden_lines().size(), all_kernel_specs().size()); }

// The kernels of split keys: one test for each target would be as good, one for all is shorter.
TEST(GoldenSplits, AreThoseOfTheTable) {
  const auto golden = golden_lines(WAVEJIT_GOLDEN_SPLITS);
  const std::vector<families::KernelSpec> specs = split_kernel_specs();
  EXPECT_EQ(golden.size(), specs.size());
  for (const families::KernelSpec& spec : specs) {
    const auto line = golden.find(spec.text());
    ASSERT_NE(line, golden.end()) << spec.text();
    // A change on purpose: bin/kernel_facts splits > tests/kernels/golden_splits.txt
    EXPECT_EQ(facts_line(spec), line->second);
    const std::string kernarg = " kernarg=" + std::to_string(spec.argument_bytes()) + " ";
    for (const char* must : {" spills=0 ", " private=0 ", kernarg.c_str()})
      EXPECT_NE(line->second.find(must), std::string::npos) << must;
    const auto* split = spec.get_if<attention_forward::KernelSpec>();
    if (split == nullptr || split->head_dim_v <= 128) {
      EXPECT_NE(line->second.find(" agprs=0 "), std::string::npos);
    }
  }
}

std::string test_name(const ::testing::TestParamInfo<attention_forward::KernelSpec>& info) {
  const attention_forward::KernelSpec& spec = info.param;
  std::string name = spec.target + "_" + std::string(to_text(spec.dtype)) + "_d" + std::to_string(spec.head_dim_qk);
  if (spec.mask == attention_forward::Mask::causal) name += "_causal";
  if (spec.mask == attention_forward::Mask::window) name += "_window";
  if (spec.lse) name += "_lse";
  for (const auto& row : attention_forward::modifier_rows)
    if (spec.has(row.modifier)) name += "_" + std::string(row.word);
  name += "_" + std::string(to_text(spec.pipeline)) + "_" + std::to_string(spec.tile_queries) + "rows";
  return name + "_" + std::string(to_text(spec.output_store));
}

INSTANTIATE_TEST_SUITE_P(EveryKernel, GoldenFacts, ::testing::ValuesIn(all_kernel_specs()), test_name);

}  // namespace
}  // namespace wavejit::tests
