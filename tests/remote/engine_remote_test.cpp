// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Engines that share a real server: what one compiles the others fetch, and nothing that the server does fails a call.
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "runtime/libraries/remote_library.h"
#include "runtime/offline/cache_commands.h"
#include "runtime/offline/explain.h"
#include "runtime/offline/prebuild.h"
#include "runtime_fixture.h"
#include "test_servers.h"

namespace wavejit::tests {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

class EngineRemoteTest : public RuntimeTest {
 protected:
  void use(const std::string& address, const std::string& key_file) {
    const auto parsed = cache::parse_remote(address);
    ASSERT_TRUE(parsed) << parsed.error();
    config_.cache_remote.value = *parsed;
    config_.cache_remote_key_file.value = key_file;
    config_.cache_remote_connect_timeout.value = 20'000'000'000;
    config_.cache_remote_timeout.value = 20'000'000'000;
  }
  void move_to(const std::string& folder) { config_.cache_directory.value = directory_.path() + "/" + folder; }

  static wavejit_call_report reported(runtime::Engine& engine) {
    wavejit_call_report report{};
    report.size = sizeof report;
    auto call = good_call();
    call.head.report = &report;
    const auto done = ForwardCalls::run(engine, &call, nullptr);
    EXPECT_TRUE(done) << done.error().detail;
    return report;
  }
  static wavejit_statistics summed(const runtime::Engine& engine) {
    const wavejit_statistics s = statistics_of(engine);
    EXPECT_EQ(s.remote_lookups,
              s.remote_hits + s.remote_misses + s.remote_damaged + s.remote_faults + s.remote_skipped);
    return s;
  }
  std::string log() {
    const std::scoped_lock lock(mutex_);
    std::string text;
    for (const std::string& line : log_) text += line + "\n";
    return text;
  }

  ScratchDirectory keys_;
};

TEST_F(EngineRemoteTest, WhatOneCompilesTheOthersFetchOnce) {
  const RedisServer server({"--requirepass", "pass word"});
  use(server.address(":pass%20word@"), write_key(keys_ / "key"));
  move_to("one");
  {
    const auto engine = make_engine();
    EXPECT_EQ(reported(*engine).origin, WAVEJIT_ORIGIN_COMPILED);
    const auto statistics = summed(*engine);
    EXPECT_EQ(statistics.remote_misses, 1U);
    EXPECT_EQ(statistics.remote_publishes, 1U);
    for (int i = 0; i < 2000 && summed(*engine).remote_published == 0; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    EXPECT_EQ(summed(*engine).remote_published, 1U);
  }
  move_to("two");
  {
    const auto engine = make_engine();
    EXPECT_EQ(reported(*engine).origin, WAVEJIT_ORIGIN_DISK);
    const auto statistics = summed(*engine);
    EXPECT_EQ(statistics.remote_hits, 1U);
    EXPECT_EQ(statistics.disk_hits, 1U);
    EXPECT_EQ(statistics.compiled, 0U);
    EXPECT_EQ(statistics.remote_publishes, 0U);
    EXPECT_THAT(engine->statistics_json(), HasSubstr("\"remote_hits\":1,"));
  }
  {
    const auto engine = make_engine();
    EXPECT_EQ(reported(*engine).origin, WAVEJIT_ORIGIN_DISK);
    EXPECT_EQ(summed(*engine).remote_lookups, 0U) << "it is in the user's folder now";
  }
  EXPECT_EQ(fake_codegen().compiles, 1U);
  EXPECT_THAT(log(), Not(HasSubstr("warning: ")));
  EXPECT_THAT(log(), Not(HasSubstr("pass word")));
}

TEST_F(EngineRemoteTest, PrebuildWaitsUntilAllIsSentAndFindsWhatIsThere) {
  const RedisServer server;
  use(server.address(), write_key(keys_ / "key"));
  const runtime::PrebuildRequest request{
      .descriptors = {"attention_forward fp16 b1 q1 k1 h1 d64", "attention_forward fp16 b1 q1 k1 h1 d128"},
      .everything = false,
      .targets = "gfx942,gfx950",
      .jobs = 2};
  move_to("one");
  ASSERT_TRUE(runtime::prebuild(config_, request, *codegen_, [](const auto&) {}));
  EXPECT_EQ(fake_codegen().compiles, 8U) << "waves may share chunks, or not";
  move_to("two");
  std::uint64_t present = 0;
  ASSERT_TRUE(
      runtime::prebuild(config_, request, *codegen_, [&](const auto& progress) { present = progress.present; }));
  EXPECT_EQ(fake_codegen().compiles, 8U);
  EXPECT_EQ(present, 8U);
  EXPECT_EQ(cache_files().size(), 16U) << "both folders are whole";

  move_to("three");
  const auto lines = runtime::explain(config_, request.descriptors[0], "gfx950", *codegen_);
  ASSERT_TRUE(lines);
  EXPECT_THAT(*lines, Contains(HasSubstr("not on disk")));
  EXPECT_THAT(*lines, Contains(::testing::AllOf(HasSubstr("remote"), HasSubstr("has it"))));
  EXPECT_FALSE(std::filesystem::exists(config_.cache_directory.value)) << "explaining publishes nothing";
}

TEST_F(EngineRemoteTest, ExplainTellsOfBothKernelsOfASplitCall) {
  const RedisServer server;
  use(server.address(), write_key(keys_ / "key"));
  const std::string line = "attention_forward fp16 b1 q1 k4096 h8/2 d128 splits=2 launches=2";
  const auto remote_lines = [&] {
    std::vector<std::string> found;
    const auto lines = runtime::explain(config_, line, "gfx950", *codegen_);
    EXPECT_TRUE(lines);
    for (const std::string& one : *lines)
      if (one.starts_with("remote ")) found.push_back(one);
    return found;
  };
  EXPECT_THAT(remote_lines(), ElementsAre(EndsWith("has it not"), EndsWith("has it not")));
  ASSERT_TRUE(runtime::prebuild(config_, {.descriptors = {line}, .targets = "gfx950"}, *codegen_, [](const auto&) {}));
  ASSERT_EQ(fake_codegen().compiles, 3U) << "of larger batches, too";
  EXPECT_THAT(remote_lines(), ElementsAre(EndsWith("has it"), EndsWith("has it")));
}

// The copy in the cache's own folder stands on its own, whatever read-only layers hold today.
TEST_F(EngineRemoteTest, APullFillsTheUsersFolderBesideLayers) {
  const RedisServer server;
  use(server.address(), write_key(keys_ / "key"));
  move_to("layer");
  const runtime::PrebuildRequest request{.descriptors = {"attention_forward fp16 b1 q1 k1 h1 d64"},
                                         .targets = "gfx950"};
  ASSERT_TRUE(runtime::prebuild(config_, request, *codegen_, [](const auto&) {}));
  config_.cache_layers.value = {config_.cache_directory.value};
  move_to("own");
  runtime::CacheCopy pull;
  pull.remote = WAVEJIT_CACHE_FROM_REMOTE;
  const auto first = runtime::copy_cache(config_, pull);
  ASSERT_TRUE(first) << first.error().detail;
  EXPECT_EQ(first->copied, 2U);
  EXPECT_EQ(runtime::copy_cache(config_, pull)->present, 2U);
}

TEST_F(EngineRemoteTest, DownAtTheStartAndDownInTheMiddleFailNoCall) {
  RedisServer server;
  use(server.address(), write_key(keys_ / "key"));
  move_to("one");
  const auto engine = make_engine();
  EXPECT_EQ(reported(*engine).origin, WAVEJIT_ORIGIN_COMPILED);
  server.stop();
  auto other = good_call();
  other.mask.bits = WAVEJIT_MASK_CAUSAL;
  EXPECT_TRUE(ForwardCalls::run(*engine, &other, nullptr));
  EXPECT_EQ(summed(*engine).compiled, 2U);
  EXPECT_EQ(summed(*engine).remote_faults, 1U);
  move_to("two");
  const auto late = make_engine();
  EXPECT_EQ(reported(*late).origin, WAVEJIT_ORIGIN_COMPILED);
  EXPECT_EQ(summed(*late).remote_faults, 1U);
  EXPECT_THAT(log(), HasSubstr("Connection refused"));
}

TEST_F(EngineRemoteTest, ASlowServerDelaysACallByItsTimesAtMost) {
  JunkServer server(JunkServer::silent());
  use("redis://127.0.0.1:" + std::to_string(server.port()), write_key(keys_ / "key"));
  config_.cache_remote_timeout.value = 1'000'000'000;
  const auto engine = make_engine();
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(reported(*engine).origin, WAVEJIT_ORIGIN_COMPILED);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
  auto other = good_call();
  other.mask.bits = WAVEJIT_MASK_CAUSAL;
  EXPECT_TRUE(ForwardCalls::run(*engine, &other, nullptr));
  EXPECT_EQ(summed(*engine).remote_faults, 1U);
  EXPECT_EQ(summed(*engine).remote_skipped, 1U) << "the next call does not wait";
}

TEST_F(EngineRemoteTest, WithoutAKeyItIsNotUsedAndSaysSo) {
  JunkServer server(JunkServer::silent());
  use("redis://127.0.0.1:" + std::to_string(server.port()), "");
  EXPECT_EQ(reported(*make_engine()).origin, WAVEJIT_ORIGIN_COMPILED);
  EXPECT_THAT(log(), HasSubstr("warning: cache: the remote layer redis://127.0.0.1:"));
  EXPECT_THAT(log(), HasSubstr("WAVEJIT_CACHE_REMOTE_KEY_FILE"));
  EXPECT_THAT(log(), HasSubstr("could otherwise run code on this machine's GPUs"));
  EXPECT_THAT(log(), HasSubstr("openssl rand -hex 32"));
  const std::size_t said = log().size();
  move_to("two");
  reported(*make_engine());
  EXPECT_THAT(log().substr(said), Not(HasSubstr("warning: "))) << "once a process";
  EXPECT_EQ(server.connections(), 0) << "nobody connects";
}

TEST_F(EngineRemoteTest, AKeyThatOthersCanReadIsNoKey) {
  JunkServer server(JunkServer::silent());
  use("redis://127.0.0.1:" + std::to_string(server.port()), write_key(keys_ / "key", 1, 0644));
  EXPECT_EQ(reported(*make_engine()).origin, WAVEJIT_ORIGIN_COMPILED);
  EXPECT_THAT(log(), HasSubstr("its mode 0644 lets others in"));
  EXPECT_EQ(server.connections(), 0);
}

TEST_F(EngineRemoteTest, GarbageIsOneWarningAndACompile) {
  JunkServer server(JunkServer::answering("HTTP/1.1 400 Bad Request\r\n\r\n"));
  use("redis://127.0.0.1:" + std::to_string(server.port()), write_key(keys_ / "key"));
  const auto engine = make_engine();
  EXPECT_EQ(reported(*engine).origin, WAVEJIT_ORIGIN_COMPILED);
  EXPECT_EQ(summed(*engine).remote_damaged, 1U);
  EXPECT_THAT(log(), HasSubstr("does not speak the Redis protocol"));
}

// The library is found by its name here; a process that finds an empty file first, whatever the system has installed,
// runs this test's second half.
TEST_F(EngineRemoteTest, ALibraryThatDoesNotLoadIsOneWarning) {
  constexpr const char* second_half = "WAVEJIT_TEST_WITHOUT_THE_LIBRARY";
  if (std::getenv(second_half) == nullptr) {
    std::ofstream(keys_ / "libwavejit_remote.so").close();
    const std::string program = std::filesystem::read_symlink("/proc/self/exe");
    const std::string command = "env " + std::string(second_half) + "=1 LD_LIBRARY_PATH='" + keys_.path() + "' '" +
                                program +
                                "' --gtest_filter=EngineRemoteTest.ALibraryThatDoesNotLoadIsOneWarning > /dev/null";
    EXPECT_EQ(std::system(command.c_str()), 0);
    return;
  }
  use("redis://127.0.0.1:1", write_key(keys_ / "key"));
  EXPECT_EQ(reported(*make_engine()).origin, WAVEJIT_ORIGIN_COMPILED);
  EXPECT_THAT(log(), HasSubstr("libwavejit_remote.so beside libwavejit.so"));
  const std::size_t said = log().size();
  move_to("two");
  EXPECT_EQ(reported(*make_engine()).origin, WAVEJIT_ORIGIN_COMPILED);
  EXPECT_THAT(log().substr(said), Not(HasSubstr("warning: "))) << "once a process";
}

}  // namespace
}  // namespace wavejit::tests
