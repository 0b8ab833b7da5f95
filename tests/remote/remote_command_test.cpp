// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// `wavejit` with a remote layer: prebuild sends, stats tells, push and pull carry.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "test_servers.h"
#include "tests/tools/tool_test_support.h"

namespace wavejit::tools {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using tests::RedisServer;

// The machine that runs the tests may be busy.
const std::map<std::string, std::string> patient = {{"WAVEJIT_CACHE_REMOTE_CONNECT_TIMEOUT", "20000"},
                                                    {"WAVEJIT_CACHE_REMOTE_TIMEOUT", "20000"}};

TEST(RemoteCommandTest, PrebuildPushPullAndStats) {
  const RedisServer server({"--requirepass", "hidden"});
  const ScratchDirectory scratch;
  const std::string key = tests::write_key(scratch / "key");
  const std::vector<std::string> remote = {"--cache-remote", server.address(":hidden@"), "--cache-remote-key-file",
                                           key};
  const auto run = [&](std::vector<std::string> words, const std::string& folder) {
    words.insert(words.end(), remote.begin(), remote.end());
    words.insert(words.end(), {"--cache-dir", scratch / folder});
    return run_program(scratch, words, patient);
  };
  const Outcome built = run({"prebuild", "--target", "gfx942,gfx950", "attention_forward fp16 b1 q1 k1 h1 d64"}, "one");
  ASSERT_EQ(built.code, 0) << built.err;
  const auto pulled = nlohmann::json::parse(run({"cache", "pull", "--json", "--target", "gfx950"}, "two").out);
  EXPECT_EQ(pulled.at("copied"), 2);
  EXPECT_EQ(nlohmann::json::parse(run({"cache", "pull", "--json"}, "two").out).at("present"), 2);
  EXPECT_EQ(nlohmann::json::parse(run({"cache", "push", "--json"}, "two").out).at("copied"), 4);
  const Outcome verified = run_program(scratch, {"cache", "verify", "--cache-dir", scratch / "two"});
  EXPECT_EQ(verified.code, 0) << verified.out;

  const Outcome stats = run({"cache", "stats"}, "two");
  EXPECT_THAT(stats.out, HasSubstr("remote"));
  EXPECT_THAT(stats.out, HasSubstr("answers in"));
  EXPECT_THAT(stats.out, Not(HasSubstr("hidden")));
  const Outcome explained = run({"explain", "--target", "gfx950", "attention_forward fp16 b1 q1 k1 h1 d64"}, "three");
  EXPECT_EQ(explained.code, 0) << explained.err;
  EXPECT_THAT(explained.out, HasSubstr("has it"));
  EXPECT_THAT(explained.out, Not(HasSubstr("hidden")));
}

TEST(RemoteCommandTest, RefusalsSayWhatToDo) {
  const ScratchDirectory scratch;
  const std::string key = tests::write_key(scratch / "key");
  const auto refused = [&](const std::vector<std::string>& words) {
    const Outcome outcome = run_program(scratch, words);
    EXPECT_NE(outcome.code, 0);
    return outcome.err;
  };
  EXPECT_THAT(refused({"cache", "push"}), HasSubstr("no remote layer"));
  EXPECT_THAT(refused({"cache", "push", "--cache-remote", "redis://127.0.0.1:1"}), HasSubstr("openssl rand -hex 32"));
  EXPECT_THAT(refused({"cache", "pull", "--cache-remote", "redis://u:hidden@h:0", "--cache-remote-key-file", key}),
              ::testing::AllOf(HasSubstr("port"), Not(HasSubstr("hidden"))));
  EXPECT_THAT(refused({"cache", "pull", "--cache-remote", "redis://u:word@h", "--cache-remote-key-file", key}),
              HasSubstr("would travel in clear to another machine"));
  EXPECT_THAT(refused({"cache", "pull", "--cache-remote", "redis://127.0.0.1:1", "--cache-remote-key-file", key}),
              HasSubstr("Connection refused"));
  const Outcome stats =
      run_program(scratch, {"cache", "stats", "--cache-remote", "redis://127.0.0.1:1", "--cache-remote-key-file", key});
  EXPECT_EQ(stats.code, 0) << "looking is no failure";
  EXPECT_THAT(stats.out, HasSubstr("Connection refused"));
}

}  // namespace
}  // namespace wavejit::tools
