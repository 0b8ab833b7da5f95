// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Toggles that are launch arguments: when sums are rescaled, and where heads run.
#include <gtest/gtest.h>

#include <cmath>
#include <format>
#include <string>

#include "attention/modified.h"

namespace wavejit::tests {
namespace {

class AttentionToggles : public ::testing::TestWithParam<std::string> {};

wavejit_engine_options lazy(const char* value) {
  wavejit_engine_options options{};
  options.pipeline = value;
  return options;
}

// Maxima that grow a little with every tile: kept behind with lazy rescaling, followed without.
TEST_P(AttentionToggles, LazyRescaleIsRightOnAndOff) {
  const Pipelines on(GetParam(), lazy("auto lazy_rescale=on"));
  const Pipelines off(GetParam(), lazy("auto lazy_rescale=off"));
  for (const Storage storage : {Storage::fp16, Storage::bf16}) {
    for (const double step : {0.7, 3.0, 9.0}) {
      SCOPED_TRACE(std::format("step {}", step));
      AttentionCase which = make_case(storage, 1, 40, 385, 1, 1, 64, false, 300);
      for (int key = 0; key < 385; ++key) which.inputs.k[std::size_t(key) * 64] = static_cast<float>(key >> 6);
      for (int row = 0; row < 40; ++row) {
        which.inputs.q[std::size_t(row) * 64] =
            from_storage(storage, to_storage(storage, row % 3 == 0 ? 0 : step * 5.5));
      }
      const AttentionOutput late = on.check(which);
      const AttentionOutput at_once = off.check(which);
      EXPECT_EQ(late.kernel_spec, at_once.kernel_spec) << "a launch argument";
      if (storage == Storage::fp16 && step == 0.7) EXPECT_NE(late.o, at_once.o) << "the toggle does nothing";
    }
  }
}

TEST_P(AttentionToggles, SwizzledHeadsHaveTheSameBits) {
  wavejit_engine_options options{};
  options.pipeline = "auto xcd_swizzle=on";
  const Pipelines on(GetParam(), options);
  options.pipeline = "auto xcd_swizzle=off";
  const Pipelines off(GetParam(), options);
  for (const int kv_heads : {2, 16}) {
    AttentionCase which = make_case(Storage::bf16, 2, 40, 70, 16, kv_heads, 64, true, 301);
    add_alibi(which, 2);
    add_sink(which, 0);
    const AttentionOutput swizzled = on.check(which);
    const AttentionOutput plain = off.run(which);
    EXPECT_EQ(swizzled.o, plain.o);
    EXPECT_EQ(swizzled.lse, plain.lse);
  }
}

// MI300A, MI308X, a partition of one die, a gfx950 board of four: other dies get the heads, and nobody sees it.
TEST_P(AttentionToggles, BoardsOfFewDiesHaveTheSameBits) {
  wavejit_engine_options options{};
  options.pipeline = "auto xcd_swizzle=on";
  AttentionCase which = make_case(Storage::bf16, 2, 40, 70, 12, 4, 64, true, 302);
  add_alibi(which, 2);
  set_schedule(WAVEJIT_SIMGPU_IN_ORDER, 1);
  const Engine table(GetParam(), options);
  const AttentionOutput whole = run_attention(table.get(), which);
  ASSERT_EQ(whole.status, WAVEJIT_OK) << whole.detail;
  EXPECT_EQ(compare_rows(which, attention_reference(which.inputs), whole).wrong(), "");
  for (const char* counts : {"@6x38", "@4x20", "@1x38", "@4x32"}) {
    const Engine board(GetParam() + counts, options);
    const AttentionOutput output = run_attention(board.get(), which);
    ASSERT_EQ(output.status, WAVEJIT_OK) << output.detail;
    EXPECT_EQ(output.o, whole.o) << counts;
    EXPECT_EQ(bits_of(output.lse), bits_of(whole.lse)) << counts;
    EXPECT_EQ(output.kernel_spec, whole.kernel_spec) << "counts stand in no spec";
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, AttentionToggles, ::testing::Values("gfx942", "gfx950"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace wavejit::tests
