// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Every ladder makes kernels of its pipeline's problems, without spills and with the standard ladder's LDS. What they
// compute is compared in tests/attention/ladders_test.cpp.
#include "templates/attention_forward/kernel/ladders.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "kernels/facts.h"
#include "support/part.h"
#include "targets/targets.h"
#include "templates/attention_forward/kernel/parameters.h"

namespace wavejit::tests {
namespace {

using attention_forward::ForwardKernel;
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
  int index = 0;
  for (const ForwardKernel& standard : all_kernel_specs()) {
    // LSE and the O store stand behind the loop: one of each. What takes the most registers: plain and with all
    // modifiers.
    const bool plain = standard.mask == attention_forward::Mask::none;
    const bool all_modifiers = standard.modifiers == all_code_modifiers();
    if (standard.pipeline != GetParam().pipeline || !standard.lse || (!plain && !all_modifiers) ||
        standard.output_store != attention_forward::default_output_store(*targets::find_target(standard.target)))
      continue;
    if (!in_part(index++, 4)) continue;
    ForwardKernel spec = standard;
    spec.ladder = GetParam().name;
    SCOPED_TRACE(to_text(spec));
    const CompiledKernel kernel = compile_kernel(spec);
    ASSERT_EQ(kernel.error, "");
    EXPECT_EQ(kernel.facts.vgpr_spills, 0U);
    EXPECT_EQ(kernel.facts.sgpr_spills, 0U);
    EXPECT_EQ(kernel.facts.private_bytes, planned_private_bytes(spec));
    EXPECT_EQ(kernel.facts.agprs, 0U);
    const auto resources = attention_forward::resources_of(standard);
    ASSERT_TRUE(resources) << resources.error();
    EXPECT_EQ(static_cast<int>(kernel.facts.lds_bytes), resources->lds_bytes);
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
