// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A sample of docs/fault-injection.md: faults put into results are seen, true results are not flagged.
#include <gtest/gtest.h>

#include <format>
#include <string>
#include <tuple>

#include "attention/fault_cases.h"

namespace wavejit::tests {
namespace {

class FaultInjection : public ::testing::TestWithParam<std::tuple<std::string, Storage>> {};

TEST_P(FaultInjection, IsSeenAndNothingElseIs) {
  const auto [name, storage] = GetParam();
  for (const FaultCase& which : fault_cases()) {
    if (which.name != name) continue;
    const FaultResult result = inject(which, storage);
    EXPECT_EQ(result.wrong, "");
    for (std::size_t f = 0; f < faults.size(); ++f) {
      EXPECT_GT(result.seen[f].rows, 0) << to_text(faults[f]);
      EXPECT_GT(result.seen[f].changed, 50) << to_text(faults[f]);
    }
    return;
  }
  FAIL() << "no case " << name;
}

std::string name_of(const ::testing::TestParamInfo<FaultInjection::ParamType>& info) {
  std::string name =
      std::format("{}_{}", std::get<0>(info.param), std::get<1>(info.param) == Storage::fp16 ? "fp16" : "bf16");
  for (char& c : name)
    if (c == ' ' || c == ',') c = '_';
  return name;
}

INSTANTIATE_TEST_SUITE_P(Bf16, FaultInjection,
                         ::testing::Combine(::testing::Values("full", "packed, causal"),
                                            ::testing::Values(Storage::bf16)),
                         name_of);
INSTANTIATE_TEST_SUITE_P(Fp16, FaultInjection,
                         ::testing::Combine(::testing::Values("split keys", "ALiBi, sink"),
                                            ::testing::Values(Storage::fp16)),
                         name_of);

}  // namespace
}  // namespace wavejit::tests
