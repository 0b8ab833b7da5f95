// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "vocabulary/gpus.h"

#include <gtest/gtest.h>

namespace wavejit::vocabulary {
namespace {

std::string_view target_of(std::string_view name) {
  const auto gpu = gpu_of_name(name);
  return gpu ? gpu->target : "";
}

TEST(GpusTest, AreFoundByTheNamesThatPeopleType) {
  EXPECT_EQ(target_of("MI300X"), "gfx942");
  EXPECT_EQ(target_of("mi300a"), "gfx942");
  EXPECT_EQ(target_of("mi355x"), "gfx950");
  EXPECT_EQ(target_of("rx9070"), "gfx1201");
  EXPECT_EQ(target_of("Radeon RX 9070 XT"), "gfx1201");
  EXPECT_EQ(target_of("r9700"), "gfx1201");
  EXPECT_EQ(target_of("strix-halo"), "gfx1151");
  EXPECT_EQ(target_of("gfx942"), "") << "a target is no GPU's name";
  EXPECT_EQ(target_of(""), "");
}

// Nobody is sent to a target that is refused as well.
TEST(GpusTest, SayWhetherTheirTargetHasKernels) {
  EXPECT_EQ(target_of_named_gpu("mi300x"), "MI300X is gfx942");
  EXPECT_EQ(target_of_named_gpu("mi250"), "MI250 is gfx90a, which has no kernels");
  EXPECT_EQ(target_of_named_gpu("gfx942"), std::nullopt);
}

}  // namespace
}  // namespace wavejit::vocabulary
