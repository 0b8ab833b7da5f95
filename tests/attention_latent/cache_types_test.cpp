// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Caches of 8 bits: against float64, and bit by bit against the same values in the queries' type.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "attention/schedules.h"
#include "attention_latent/latent_run.h"
#include "support/part.h"

namespace wavejit::tests {
namespace {

using attention_latent::program::widened;
using ::testing::HasSubstr;
using ::testing::Not;

class LatentCaches : public ::testing::TestWithParam<const char*> {
 protected:
  // What the target reads.
  std::vector<std::string> formats() const {
    if (std::string(GetParam()) == "gfx942") return {"e4m3_fnuz", "e5m2_fnuz", "i8"};
    return {"e4m3", "e5m2", "i8"};
  }
  LatentOutput run(const LatentArrays& arrays, const ChangeLatentCall& change = {}) {
    LatentOutput output = run_latent(engine_.get(), arrays, change);
    EXPECT_EQ(output.status, WAVEJIT_OK) << output.detail << output.reports;
    EXPECT_EQ(output.reports, "");
    EXPECT_TRUE(output.fence_intact) << "something outside O or LSE was written";
    return output;
  }
  // Scales that are powers of two: every product with one is a value of the queries' type.
  static LatentArrays with_exact_scales(LatentArrays arrays) {
    for (std::size_t each = 0; each < arrays.k_scales.size(); ++each) arrays.k_scales[each] = each % 2 == 0 ? 0.5F : 2;
    return arrays;
  }
  // Under three orders of waves the bits of the call on widened keys.
  void has_bits_of_wide_keys(const std::string& words) {
    int index = 0;
    for (const std::string& format : formats()) {
      if (!in_part(index++, 2)) continue;
      const std::string line = words + " cache=" + format;
      SCOPED_TRACE(line);
      const LatentArrays arrays = with_exact_scales(latent_arrays(line));
      const LatentOutput wide = run(widened(arrays));
      EXPECT_THAT(wide.kernel_spec, Not(HasSubstr("cache=")));
      for (const Schedule& schedule : schedules) {
        set_schedule(schedule.order, schedule.seed);
        const LatentOutput output = run(arrays);
        EXPECT_THAT(output.kernel_spec, HasSubstr("cache=" + format));
        EXPECT_EQ(output, wide);
      }
    }
  }
  // Scales that are none.
  void matches(const std::string& words, std::int64_t step) {
    const std::string line = words + " cache=" + formats().front();
    SCOPED_TRACE(line);
    const LatentArrays arrays = latent_arrays(line);
    EXPECT_EQ(wrong_latent(arrays, run(arrays), step), "");
  }

  Engine engine_{GetParam()};
};

TEST_P(LatentCaches, HaveTheBitsOfWideKeys) {
  has_bits_of_wide_keys("bf16 b2 q2 k200 h12 d576/512 causal lse k_lengths=200,65");
  has_bits_of_wide_keys("fp16 b1 q1 k330 h40 d576/512 lse cache_scales=1");
  has_bits_of_wide_keys("bf16 b3 q1 k70 h96 d576/512 lse cache_scales=b k_lengths=70,0,64");
}

TEST_P(LatentCaches, HaveTheBitsOfWideKeysInEveryWidth) {
  has_bits_of_wide_keys("bf16 b1 q2 k100 h12 d512 causal lse");
  has_bits_of_wide_keys("fp16 b2 q3 k100 h20 d320/256 causal lse cache_scales=b");
  has_bits_of_wide_keys("bf16 b1 q1 k100 h10 d320/256 lse apart");
  has_bits_of_wide_keys("bf16 b1 q2 k80 h16 d576/512 apart lse");
}

TEST_P(LatentCaches, HaveTheBitsOfWideKeysInPages) {
  for (const char* page : {"1", "16", "64", "192"})
    has_bits_of_wide_keys("bf16 b2 q1 k410 h12 d576/512 causal lse cache_scales=b k_lengths=410,67 layout=paged:" +
                          std::string(page));
  has_bits_of_wide_keys("bf16 b2 q3 k150 h12 d576/512 causal apart layout=paged:64 q_lengths=1,3 k_lengths=150,0 lse");
}

TEST_P(LatentCaches, HaveTheBitsOfWideKeysOverChunks) {
  for (const char* splits : {"1", "3"})
    has_bits_of_wide_keys("bf16 b1 q1 k2100 h16 d576/512 lse cache_scales=1 splits=" + std::string(splits));
  has_bits_of_wide_keys("fp16 b2 q1 k1300 h9 d576/512 lse softcap=20 sink cache_scales=b layout=paged:64 splits=2");
  has_bits_of_wide_keys("bf16 b1 q1 k1030 h40 d576/512 lse softcap=20 splits=2");
  has_bits_of_wide_keys("fp16 b1 q1 k1030 h40 d576/512 lse layout=paged:1 splits=2");
}

TEST_P(LatentCaches, HaveTheBitsOfWideKeysThatListsName) {
  has_bits_of_wide_keys("bf16 b2 q2 k400 h16 d576/512 causal lse k_lengths=400,40 top_k=300:mixed");
  has_bits_of_wide_keys("bf16 b1 q1 k900 h8 d576/512 lse layout=paged:64 top_k=700 cache_scales=1");
  has_bits_of_wide_keys("fp16 b2 q1 k150 h40 d320/256 lse top_k=70:slots:mixed");
  has_bits_of_wide_keys("bf16 b1 q1 k400 h40 d576/512 lse layout=paged:64 top_k=300:slots splits=2");
  has_bits_of_wide_keys(
      "bf16 b2 q1 k90 h16 d576/512 lse cache_scales=1 layout=paged:16 top_k=20:slots:mixed second_top_k=50");
}

TEST_P(LatentCaches, MatchFloat64) {
  matches("bf16 b2 q2 k150 h12 d576/512 causal lse sink cache_scales=b k_lengths=150,67", 5);
  matches("fp16 b1 q1 k1100 h24 d576/512 lse cache_scales=1 splits=2", 7);
  matches(
      "bf16 b3 q2 k90 h10 d512 causal lse softcap=20 sink cache_scales=b layout=packed q_lengths=2,1,2 k_lengths=33,90,0",
      3);
  matches("bf16 b2 q1 k300 h16 d576/512 lse cache_scales=b layout=paged:16 top_k=200:mixed", 5);
  matches("bf16 b1 q1 k130 h16 d576/512 lse scale=-0.05 cache_scales=1", 5);
}

INSTANTIATE_TEST_SUITE_P(Targets, LatentCaches, ::testing::Values("gfx942", "gfx950"),
                         [](const auto& parameter) { return std::string(parameter.param); });

// 128 rows a workgroup, where compute units are few.
TEST(LatentCacheRows, Of128HaveTheBitsOfWideKeys) {
  const Engine one("gfx950@1x1");
  for (const char* words :
       {"bf16 b1 q1 k330 h128 d576/512 lse cache_scales=1", "fp16 b1 q3 k1100 h48 d576/512 causal lse splits=2",
        "bf16 b2 q2 k90 h96 d512 causal lse layout=paged:16 k_lengths=90,0",
        "bf16 b1 q9 k100 h20 d320/256 causal lse layout=paged:1", "bf16 b1 q1 k90 h100 d576/512 lse apart top_k=70"}) {
    SCOPED_TRACE(words);
    LatentArrays arrays = latent_arrays(std::string(words) + " cache=e4m3");
    for (float& scale : arrays.k_scales) scale = 4;
    const LatentOutput wide = run_latent(one.get(), widened(arrays));
    const LatentOutput output = run_latent(one.get(), arrays);
    EXPECT_THAT(output.kernel_spec, HasSubstr(" rows=128 "));
    ASSERT_EQ(output.status, WAVEJIT_OK) << output.detail << output.reports;
    EXPECT_EQ(output.reports, "");
    EXPECT_EQ(output, wide);
  }
}

TEST(LatentCacheFormats, OfTheOtherTargetAreRefusedByName) {
  for (const auto& [target, format, accepted] :
       {std::tuple{"gfx942", "e4m3", "use a cache in e4m3_fnuz, e5m2_fnuz, i8 or 16 bits"},
        {"gfx950", "e5m2_fnuz", "use a cache in e4m3, e5m2, i8 or 16 bits"}}) {
    const Engine engine(target);
    const LatentOutput output =
        run_latent(engine.get(), latent_arrays("bf16 b1 q1 k70 h16 d576/512 cache=" + std::string(format)));
    EXPECT_EQ(output.status, WAVEJIT_UNSUPPORTED);
    EXPECT_THAT(output.detail, HasSubstr("k.dtype = "));
    EXPECT_THAT(output.detail, HasSubstr(accepted));
  }
}

TEST(LatentCacheFormats, AndScalesAreRefusedByField) {
  const Engine engine("gfx950");
  const LatentArrays bytes = latent_arrays("bf16 b2 q1 k70 h16 d576/512 apart cache=e4m3 cache_scales=b");
  const auto refused = [&](const LatentArrays& arrays, const std::string& field, const ChangeLatentCall& change) {
    const LatentOutput output = run_latent(engine.get(), arrays, change);
    EXPECT_NE(output.status, WAVEJIT_OK) << field;
    EXPECT_THAT(output.detail, HasSubstr(field));
  };
  refused(bytes, "k_rope.dtype", [](auto& call) { call.k_rope.dtype = WAVEJIT_BF16; });
  refused(bytes, "q.dtype", [](auto& call) { call.q.dtype = WAVEJIT_E4M3; });
  refused(bytes, "k_scale.sizes[0]", [](auto& call) { call.scales.k_scale.sizes[0] = 3; });
  refused(bytes, "k_scale.sizes[2]", [](auto& call) { call.scales.k_scale.sizes[2] = 16; });
  refused(bytes, "k_scale.dtype", [](auto& call) { call.scales.k_scale.dtype = WAVEJIT_FP16; });
  refused(bytes, "k.strides[1]", [](auto& call) { call.k.strides[1] = 520; });
  refused(latent_arrays("bf16 b2 q1 k70 h16 d576/512"), "k_scale.data",
          [](auto& call) { call.scales.k_scale = wavejit_dense_tensor(call.q.data, WAVEJIT_FP32, 1, 1, 1, 1); });
}

}  // namespace
}  // namespace wavejit::tests
