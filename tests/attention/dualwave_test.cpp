// The dual-wave pipeline against the generic one, bit by bit: every length of the matrix, both data types and head
// dims, full and causal, all layouts, under wave schedules in which one wave runs as far ahead of the others as
// barriers allow. The generic kernel is compared with float64 elsewhere (matrix_test.cpp, adversarial_test.cpp); what
// has its bits has its errors. NaN stands around every tensor (support/attention_run.h).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <format>
#include <string>
#include <tuple>

#include "attention/lengths.h"
#include "attention/schedules.h"
#include "support/attention_run.h"

namespace wavejit::tests {
namespace {

using Combination = std::tuple<Storage, int, bool>;

constexpr const char* target = "gfx950";

wavejit_engine_options with_pipeline(const char* pipeline) {
  wavejit_engine_options options{};
  options.pipeline = pipeline;
  return options;
}

// As integers: NaN is a result like any other, and −0 is not +0.
std::vector<std::uint32_t> bits_of(const std::vector<float>& values) {
  std::vector<std::uint32_t> bits(values.size());
  std::ranges::transform(values, bits.begin(), [](float x) {
    std::uint32_t word = 0;
    std::memcpy(&word, &x, sizeof word);
    return word;
  });
  return bits;
}

class DualWave : public ::testing::TestWithParam<Combination> {
 protected:
  Storage storage() const { return std::get<0>(GetParam()); }
  int head_dim() const { return std::get<1>(GetParam()); }
  bool causal() const { return std::get<2>(GetParam()); }

  AttentionOutput expected(const AttentionCase& which) {
    set_schedule(WAVEJIT_SIMGPU_IN_ORDER, 1);
    const AttentionOutput output = run_attention(generic_.get(), which);
    EXPECT_EQ(output.status, WAVEJIT_OK) << output.detail;
    EXPECT_THAT(output.kernel_spec, ::testing::HasSubstr(" pipeline=generic "));
    return output;
  }

  static void expect_same(const AttentionOutput& output, const AttentionOutput& wanted) {
    ASSERT_EQ(output.status, WAVEJIT_OK) << output.detail << output.reports;
    EXPECT_THAT(output.kernel_spec, ::testing::HasSubstr(" pipeline=dualwave "));
    EXPECT_EQ(output.reports, "");
    EXPECT_TRUE(output.fence_intact) << "something outside O or LSE was written";
    EXPECT_TRUE(output.o == wanted.o) << "O differs from the generic pipeline's";
    EXPECT_TRUE(bits_of(output.lse) == bits_of(wanted.lse)) << "LSE differs from the generic pipeline's";
  }

  void check(const AttentionCase& which) {
    const AttentionOutput wanted = expected(which);
    for (const Schedule& schedule : schedules) {
      SCOPED_TRACE(std::format("schedule {}, seed {}", static_cast<int>(schedule.order), schedule.seed));
      set_schedule(schedule.order, schedule.seed);
      expect_same(run_attention(dualwave_.get(), which), wanted);
    }
  }

  Engine generic_{target, with_pipeline("generic")};
  Engine dualwave_{target, with_pipeline("dualwave")};
};

TEST_P(DualWave, HasTheBitsOfGenericAtEveryLength) {
  int index = 0;
  for (const Lengths& length : lengths) {
    const Heads head = heads[index % heads.size()];
    const int batch = index % 3 == 1 ? 2 : 1;
    AttentionCase which =
        make_case(storage(), batch, length.query, length.key, head.query, head.kv, head_dim(), causal(), 2000 + index);
    which.layout = layouts[index % layouts.size()];
    which.lse = index % 4 != 3;
    SCOPED_TRACE(std::format("b{} q{} k{} h{}/{} layout {} lse {}", batch, length.query, length.key, head.query,
                             head.kv, static_cast<int>(which.layout), which.lse));
    check(which);
    if (HasFailure()) return;
    ++index;
  }
}

// 1 to 9 tiles, whole and cut, so that the pair loop runs 0 to 3 times with and without the odd tile.
TEST_P(DualWave, HasTheBitsOfGenericAtEveryTileCount) {
  for (int tiles = 1; tiles <= 9; ++tiles) {
    for (const int cut : {0, 27}) {
      SCOPED_TRACE(std::format("{} tiles less {} keys", tiles, cut));
      check(make_case(storage(), 1, 256, 64 * tiles - cut, 1, 1, head_dim(), causal(), 3000 + tiles));
      if (HasFailure()) return;
    }
  }
}

// Waves that run ahead in many ways.
TEST_P(DualWave, HasTheBitsOfGenericUnderManyRandomSchedules) {
  const AttentionCase which = make_case(storage(), 1, 300, 427, 1, 1, head_dim(), causal(), 41);
  const AttentionOutput wanted = expected(which);
  for (std::uint64_t seed = 100; seed < 112; ++seed) {
    SCOPED_TRACE(std::format("seed {}", seed));
    set_schedule(WAVEJIT_SIMGPU_RANDOM, seed);
    expect_same(run_attention(dualwave_.get(), which), wanted);
    if (HasFailure()) return;
  }
}

// Maxima that jump between tiles, in some rows of a wave and not in others: the rescale's rare branch.
TEST_P(DualWave, HasTheBitsOfGenericWhereMaximaJump) {
  for (const double spread : {3.0, 12.0}) {
    SCOPED_TRACE(std::format("spread {}", spread));
    check(make_case(storage(), 1, 257, 449, 2, 1, head_dim(), causal(), 42, spread));
  }
  AttentionCase which = make_case(storage(), 1, 256, 640, 1, 1, head_dim(), causal(), 43);
  std::ranges::fill(which.inputs.q, 0.0F);
  std::ranges::fill(which.inputs.k, 0.0F);
  which.inputs.scale = static_cast<float>(std::log(2.0));
  for (int row = 0; row < 256; row += 3) which.inputs.q[std::size_t(row) * head_dim()] = 1.0F;
  for (int key = 0; key < 640; ++key)
    which.inputs.k[std::size_t(key) * head_dim()] = static_cast<float>(10 * (key >> 6));
  check(which);
}

TEST_P(DualWave, TogglesMoveWorkAndNoBits) {
  const AttentionCase which = make_case(storage(), 1, 300, 333, 2, 1, head_dim(), causal(), 44);
  const AttentionOutput wanted = expected(which);
  for (const char* stagger : {"on", "off"}) {
    for (const char* setprio : {"on", "off"}) {
      for (const char* store : {"permlane", "scalar"}) {
        SCOPED_TRACE(std::format("stagger {} setprio {} o_store {}", stagger, setprio, store));
        wavejit_engine_options options = with_pipeline("dualwave");
        options.stagger = stagger;
        options.setprio = setprio;
        options.output_store = store;
        Engine engine(target, options);
        for (const Schedule& schedule : schedules) {
          set_schedule(schedule.order, schedule.seed);
          expect_same(run_attention(engine.get(), which), wanted);
        }
      }
    }
  }
}

std::string name_of(const ::testing::TestParamInfo<Combination>& info) {
  const auto [storage, head_dim, causal] = info.param;
  return std::format("{}_d{}_{}", storage == Storage::fp16 ? "fp16" : "bf16", head_dim, causal ? "causal" : "full");
}

INSTANTIATE_TEST_SUITE_P(All, DualWave,
                         ::testing::Combine(::testing::Values(Storage::fp16, Storage::bf16), ::testing::Values(64, 128),
                                            ::testing::Bool()),
                         name_of);

}  // namespace
}  // namespace wavejit::tests
