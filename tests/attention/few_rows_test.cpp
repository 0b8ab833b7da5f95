// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Workgroups of fewer query rows against the 128-row generic kernel, bit by bit. Short queries get a small workgroup;
// the same rows at the end of a longer query get the 128-row one (with a causal mask the diagonal is aligned there, so
// they see the same keys). Each case under wave schedules in which one wave runs as far ahead as barriers allow.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <format>
#include <string>
#include <tuple>

#include "attention/schedules.h"
#include "support/attention_run.h"
#include "support/part.h"

namespace wavejit::tests {
namespace {

struct Heads {
  int query;
  int kv;
};
constexpr std::array heads = {Heads{2, 2}, Heads{4, 1}, Heads{8, 1}, Heads{8, 2}};
constexpr std::array layouts = {Layout::bshd, Layout::bhsd, Layout::padded};

using Combination = std::tuple<Storage, int, bool>;

class FewRows : public ::testing::TestWithParam<Combination> {
 protected:
  Storage storage() const { return std::get<0>(GetParam()); }
  int head_dim() const { return std::get<1>(GetParam()); }
  bool causal() const { return std::get<2>(GetParam()); }
};

constexpr int longer = 260;  // rows of the long query; the short query is its last rows

// The last `rows` query rows of one batch.
AttentionCase end_of(const AttentionCase& whole, int rows) {
  AttentionCase end = whole;
  const std::size_t row = std::size_t(whole.inputs.query_heads) * whole.inputs.head_dim;
  end.inputs.query_length = rows;
  end.inputs.q.assign(whole.inputs.q.end() - static_cast<std::ptrdiff_t>(rows * row), whole.inputs.q.end());
  return end;
}

TEST_P(FewRows, HaveTheBitsThatTheyHaveInALargeWorkgroup) {
  wavejit_engine_options options{};
  options.pipeline = "generic";
  Engine engine("gfx950", options);
  int index = 0;
  for (const int rows : {1, 31, 32, 33, 64, 65, 200}) {
    for (const int keys : {1, 63, 65, 129, 320, 513}) {
      ++index;
      if (!in_part(index, 5)) continue;
      const Heads head = heads[index % heads.size()];
      SCOPED_TRACE(std::format("q{} k{} h{}/{}", rows, keys, head.query, head.kv));
      AttentionCase whole =
          make_case(storage(), 1, longer, keys, head.query, head.kv, head_dim(), causal(), 4000 + index, 1 + index % 4);
      whole.layout = layouts[index % layouts.size()];
      const AttentionCase few = end_of(whole, rows);
      set_schedule(WAVEJIT_SIMGPU_IN_ORDER, 1);
      const AttentionOutput all = run_attention(engine.get(), whole);
      ASSERT_EQ(all.status, WAVEJIT_OK) << all.detail;
      ASSERT_THAT(all.kernel_spec, ::testing::HasSubstr(" tile=128x64 "));
      for (const Schedule& schedule : schedules) {
        set_schedule(schedule.order, schedule.seed);
        const AttentionOutput output = run_attention(engine.get(), few);
        ASSERT_EQ(output.status, WAVEJIT_OK) << output.detail << output.reports;
        // Up to 32 rows: those of all heads of a kv head.
        const int group = rows <= 32 ? head.query / head.kv : 1;
        const int tile = rows * group <= 32 ? 32 : group == 1 || rows * group <= 64 ? 64 : 128;
        EXPECT_THAT(output.kernel_spec, ::testing::HasSubstr(std::format(" tile={}x64 ", tile)));
        EXPECT_EQ(output.kernel_spec.contains(" heads=packed "), group > 1);
        EXPECT_EQ(output.reports, "");
        EXPECT_TRUE(output.fence_intact) << "something outside O or LSE was written";
        const auto end = all.o.end() - static_cast<std::ptrdiff_t>(output.o.size());
        ASSERT_TRUE(std::equal(output.o.begin(), output.o.end(), end)) << "O differs";
        for (int h = 0; h < head.query; ++h)
          for (int row = 0; row < rows; ++row)
            ASSERT_EQ(std::bit_cast<std::uint32_t>(output.lse[std::size_t(h) * rows + row]),
                      std::bit_cast<std::uint32_t>(all.lse[std::size_t(h) * longer + longer - rows + row]))
                << "LSE differs";
      }
    }
  }
}

std::string name_of(const ::testing::TestParamInfo<Combination>& info) {
  const auto [storage, head_dim, causal] = info.param;
  return std::format("{}_d{}_{}", storage == Storage::fp16 ? "fp16" : "bf16", head_dim, causal ? "causal" : "full");
}

INSTANTIATE_TEST_SUITE_P(All, FewRows,
                         ::testing::Combine(::testing::Values(Storage::fp16, Storage::bf16), ::testing::Values(64, 128),
                                            ::testing::Bool()),
                         name_of);

}  // namespace
}  // namespace wavejit::tests
