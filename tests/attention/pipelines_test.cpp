// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The dual-wave and the interleaved pipeline against the generic one, bit by bit, under many schedules and with every
// toggle. Numbers of tiles, maxima that jump, lengths, layouts and float64 are in value_rows.txt. NaN stands around every
// tensor (support/attention_run.h).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <format>
#include <string>
#include <tuple>

#include "attention/schedules.h"
#include "support/attention_run.h"
#include "support/bits_of.h"
#include "support/part.h"

namespace wavejit::tests {
namespace {

// A pipeline where it runs.
struct Subject {
  const char* pipeline;
  const char* target;
};
constexpr Subject dualwave = {"dualwave", "gfx950"};
constexpr Subject interleaved = {"interleaved", "gfx942"};

using Combination = std::tuple<Subject, Storage, int, bool>;

wavejit_engine_options with_pipeline(const char* pipeline) {
  wavejit_engine_options options{};
  options.pipeline = pipeline;
  return options;
}

class Pipelines : public ::testing::TestWithParam<Combination> {
 protected:
  static const Subject& subject() { return std::get<0>(GetParam()); }
  static Storage storage() { return std::get<1>(GetParam()); }
  static int head_dim() { return std::get<2>(GetParam()); }
  static bool causal() { return std::get<3>(GetParam()); }

  AttentionOutput expected(const AttentionCase& which) {
    set_schedule(WAVEJIT_SIMGPU_IN_ORDER, 1);
    const AttentionOutput output = run_attention(generic_.get(), which);
    EXPECT_EQ(output.status, WAVEJIT_OK) << output.detail;
    EXPECT_THAT(output.kernel_spec, ::testing::HasSubstr(" pipeline=generic "));
    return output;
  }

  static void expect_same(const AttentionOutput& output, const AttentionOutput& wanted) {
    ASSERT_EQ(output.status, WAVEJIT_OK) << output.detail << output.reports;
    EXPECT_THAT(output.kernel_spec, ::testing::HasSubstr(std::format(" pipeline={} ", subject().pipeline)));
    EXPECT_EQ(output.reports, "");
    EXPECT_TRUE(output.fence_intact) << "something outside O or LSE was written";
    EXPECT_TRUE(output.o == wanted.o) << "O differs from the generic pipeline's";
    EXPECT_TRUE(bits_of(output.lse) == bits_of(wanted.lse)) << "LSE differs from the generic pipeline's";
  }

  Engine generic_{subject().target, with_pipeline("generic")};
  Engine engine_{subject().target, with_pipeline(subject().pipeline)};
};

// Waves that run ahead in many ways.
TEST_P(Pipelines, HasTheBitsOfGenericUnderManyRandomSchedules) {
  const AttentionCase which = make_case(storage(), 1, 300, 427, 1, 1, head_dim(), causal(), 41);
  const AttentionOutput wanted = expected(which);
  for (std::uint64_t seed = 100; seed < 112; ++seed) {
    SCOPED_TRACE(std::format("seed {}", seed));
    set_schedule(WAVEJIT_SIMGPU_RANDOM, seed);
    expect_same(run_attention(engine_.get(), which), wanted);
    if (HasFailure()) return;
  }
}

class DualWave : public Pipelines {};

TEST_P(DualWave, TogglesMoveWorkAndNoBits) {
  const AttentionCase which = make_case(storage(), 1, 300, 333, 2, 1, head_dim(), causal(), 44);
  const AttentionOutput wanted = expected(which);
  for (const char* stagger : {"on", "off"}) {
    for (const char* setprio : {"on", "off"}) {
      for (const char* store : {"permlane", "scalar"}) {
        const std::string pipeline = std::format("dualwave stagger={} setprio={} o_store={}", stagger, setprio, store);
        SCOPED_TRACE(pipeline);
        Engine engine(subject().target, with_pipeline(pipeline.c_str()));
        for (const Schedule& schedule : schedules) {
          set_schedule(schedule.order, schedule.seed);
          expect_same(run_attention(engine.get(), which), wanted);
        }
      }
    }
  }
}

std::string name_of(const ::testing::TestParamInfo<Combination>& info) {
  const auto [subject, storage, head_dim, causal] = info.param;
  return std::format("{}_{}_{}_d{}_{}", subject.pipeline, subject.target, storage == Storage::fp16 ? "fp16" : "bf16",
                     head_dim, causal ? "causal" : "full");
}

constexpr std::array storages = {Storage::fp16, Storage::bf16};
INSTANTIATE_TEST_SUITE_P(All, Pipelines,
                         ::testing::ValuesIn(half_of_combinations<Subject, Storage, int, bool>(
                             {dualwave, interleaved}, {storages.begin(), storages.end()}, {64, 128}, {false, true})),
                         name_of);
INSTANTIATE_TEST_SUITE_P(All, DualWave,
                         ::testing::ValuesIn(half_of_combinations<Subject, Storage, int, bool>(
                             {dualwave}, {storages.begin(), storages.end()}, {64, 128}, {false, true})),
                         name_of);

}  // namespace
}  // namespace wavejit::tests
