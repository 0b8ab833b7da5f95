// Every ladder makes a kernel of every problem that its pipeline has, without spills and with the standard ladder's LDS
// and matrix instructions. What they compute is compared in tests/attention/ladders_test.cpp.
#include "templates/attention_forward/ladders.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "kernels/facts.h"
#include "targets/targets.h"
#include "templates/attention_forward/parameters.h"

namespace wavejit::tests {
namespace {

using attention_forward::KernelSpec;
using attention_forward::Ladder;
using attention_forward::Pipeline;

std::vector<Ladder> all_ladders() {
  std::vector<Ladder> all;
  for (const Pipeline pipeline : attention_forward::all_pipelines) {
    for (const Ladder& ladder : attention_forward::ladders(pipeline))
      if (ladder.name != attention_forward::standard_ladder) all.push_back(ladder);
  }
  return all;
}

class LadderCode : public ::testing::TestWithParam<Ladder> {};

TEST_P(LadderCode, FitsInRegistersAndLds) {
  int kernels = 0;
  for (const KernelSpec& standard : all_kernel_specs()) {
    // LSE and the O store stand behind the loop: one of each.
    if (standard.pipeline != GetParam().pipeline || !standard.lse ||
        standard.output_store != attention_forward::default_output_store(*targets::find_target(standard.target)))
      continue;
    KernelSpec spec = standard;
    spec.ladder = GetParam().name;
    SCOPED_TRACE(to_text(spec));
    const CompiledKernel kernel = compile_kernel(spec);
    ASSERT_EQ(kernel.error, "");
    const CompiledKernel before = compile_kernel(standard);
    EXPECT_EQ(kernel.facts.vgpr_spills, 0U);
    EXPECT_EQ(kernel.facts.sgpr_spills, 0U);
    EXPECT_EQ(kernel.facts.private_bytes, 0U);
    EXPECT_EQ(kernel.facts.agprs, 0U);
    EXPECT_EQ(kernel.facts.lds_bytes, before.facts.lds_bytes);
    EXPECT_EQ(kernel.facts.matrix_instructions, before.facts.matrix_instructions);
    EXPECT_NE(kernel.code_object, before.code_object) << "it places nothing elsewhere";
    ++kernels;
  }
  EXPECT_GT(kernels, 0);
}

std::string name_of(const ::testing::TestParamInfo<Ladder>& info) {
  return std::string(to_text(info.param.pipeline)) + "_" + std::string(info.param.name);
}
INSTANTIATE_TEST_SUITE_P(All, LadderCode, ::testing::ValuesIn(all_ladders()), name_of);

}  // namespace
}  // namespace wavejit::tests
