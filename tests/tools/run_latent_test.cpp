// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// `wavejit run attention_latent`: absorbed queries and a cache in, O and its log-sum-exp out.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "tool_test_support.h"
#include "tools/npy.h"

namespace wavejit::tools {
namespace {

using ::testing::HasSubstr;
using Words = std::vector<std::string>;

class RunLatentTest : public ::testing::Test {
 protected:
  void save(const std::string& name, const Shape& shape, std::uint64_t seed) {
    write_text(scratch_ / name, npy_file(shape, normal_values(shape, seed), {}));
  }
  Outcome run(const Words& more) {
    Words words = {"run", "attention_latent", "--device", "sim:gfx950",       "--q",     scratch_ / "q.npy",
                   "--k", scratch_ / "k.npy", "--out",    scratch_ / "o.npy", "--scale", "0.0721688"};
    words.insert(words.end(), more.begin(), more.end());
    return run_program(scratch_, words, {{"WAVEJIT_CACHE_DIR", scratch_ / "cache"}});
  }

  ScratchDirectory scratch_;
};

TEST_F(RunLatentTest, IsCheckedAgainstTheDefinition) {
  save("q.npy", {2, 3, 12, 576}, 1);
  save("k.npy", {2, 70, 1, 576}, 2);
  write_text(scratch_ / "sink.npy", npy_bytes(std::vector<float>(12, 0.5F), std::vector<std::int64_t>{12}));
  const Outcome outcome = run({"--lse", scratch_ / "lse.npy", "--causal", "--softcap", "20", "--sink",
                               scratch_ / "sink.npy", "--check", "--repeat", "1"});
  ASSERT_EQ(outcome.code, 0) << outcome.err << outcome.out;
  EXPECT_THAT(outcome.out, HasSubstr("kernel   attention_latent bf16 d576/512 mask=causal softcap"));
  EXPECT_THAT(outcome.out, HasSubstr("check    passed"));
  EXPECT_THAT(outcome.out, HasSubstr("the same bits each time"));
  EXPECT_EQ(floats_of(scratch_ / "o.npy", "(2, 3, 12, 512)").size(), 2U * 3 * 12 * 512);
  EXPECT_EQ(floats_of(scratch_ / "lse.npy", "(2, 12, 3)").size(), 2U * 12 * 3);
}

// With one key O is its value, which is its first columns.
TEST_F(RunLatentTest, OfOneKeyIsItsFirstColumns) {
  save("q.npy", {1, 1, 3, 320}, 1);
  save("k.npy", {1, 1, 1, 320}, 2);
  const Outcome outcome = run({"--dtype", "fp16", "--check"});
  ASSERT_EQ(outcome.code, 0) << outcome.err << outcome.out;
  const std::vector<float> o = floats_of(scratch_ / "o.npy", "(1, 1, 3, 256)");
  const std::vector<float> k = normal_values({1, 1, 1, 320}, 2);
  for (std::size_t i = 0; i < o.size(); ++i)
    ASSERT_NEAR(o[i], k[i % 256], std::fabs(k[i % 256]) / 1024 + 1e-6) << i;  // k is rounded to fp16
}

TEST_F(RunLatentTest, RefusesByFile) {
  save("q.npy", {1, 1, 3, 584}, 1);
  save("k.npy", {1, 4, 1, 576}, 2);
  EXPECT_THAT(run({}).err, HasSubstr("its shape is [1, 1, 3, 584]; [batch, length, heads, 576 or 512 or 320] is acc"));
  save("q.npy", {1, 1, 3, 576}, 1);
  save("k.npy", {1, 4, 2, 576}, 2);
  const Outcome heads = run({});
  EXPECT_EQ(heads.code, 3);
  EXPECT_THAT(heads.err, HasSubstr("its shape is [1, 4, 2, 576]; [1, length, 1, 576] is accepted"));
  const Outcome scale = run_program(scratch_, {"run", "attention_latent", "--q", scratch_ / "q.npy", "--k",
                                               scratch_ / "k.npy", "--out", scratch_ / "o.npy"});
  EXPECT_EQ(scale.code, 2);
  EXPECT_THAT(scale.err, HasSubstr("--scale"));
}

}  // namespace
}  // namespace wavejit::tools
