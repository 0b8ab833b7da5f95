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

}  // namespace
}  // namespace wavejit::vocabulary
