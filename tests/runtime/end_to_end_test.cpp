// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Whole processes on the simulated GPU, configured by their environment: cold, warm, refused.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "runtime_fixture.h"

namespace wavejit::tests {
namespace {

using ::testing::HasSubstr;

struct Outcome {
  int status = 0;  // of waitpid
  std::string out;
  std::string error;
};

std::string assignment(std::string name, const std::string& value) {
  name += '=';
  name += value;
  return name;
}

std::string whole_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

class EndToEnd : public ::testing::Test {
 protected:
  // The probe with nothing of our own environment but what loaders and sanitizers need.
  Outcome run(const std::map<std::string, std::string>& variables) const {
    const std::filesystem::path out = std::filesystem::path(directory_.path()) / "out";
    const std::filesystem::path error = std::filesystem::path(directory_.path()) / "error";
    std::vector<std::string> environment = {"HOME=" + directory_.path(), "PATH=/usr/bin:/bin"};
    for (const char* kept : {"LD_LIBRARY_PATH", "ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS"})
      if (const char* value = std::getenv(kept)) environment.push_back(assignment(kept, value));
    for (const auto& [name, value] : variables) environment.push_back(assignment(name, value));
    std::vector<char*> pointers;
    pointers.reserve(environment.size() + 1);
    for (std::string& entry : environment) pointers.push_back(entry.data());
    pointers.push_back(nullptr);
    std::string program = WAVEJIT_CALL_PROBE;
    std::array<char*, 2> arguments = {program.data(), nullptr};
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 1, out.c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0600);
    posix_spawn_file_actions_addopen(&actions, 2, error.c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0600);
    pid_t child = 0;
    Outcome outcome;
    const int started = posix_spawn(&child, program.c_str(), &actions, nullptr, arguments.data(), pointers.data());
    posix_spawn_file_actions_destroy(&actions);
    if (started != 0) throw std::runtime_error("cannot start " + program);
    waitpid(child, &outcome.status, 0);
    outcome.out = whole_file(out);
    outcome.error = whole_file(error);
    return outcome;
  }

  std::map<std::string, std::string> on(const std::string& device) const {
    return {{"WAVEJIT_DEVICE", device}, {"WAVEJIT_CACHE_DIR", directory_.path() + "/cache"}};
  }

  ScratchDirectory directory_;
};

TEST_F(EndToEnd, ColdThenWarmWithoutTheCompiler) {
  for (const char* target : {"gfx942", "gfx950"}) {
    const Outcome cold = run(on(std::string("sim:") + target));
    ASSERT_EQ(cold.status, 0) << cold.out << cold.error;
    EXPECT_THAT(cold.out, HasSubstr(std::string("target=") + target + " origin=3 compiler_mapped=1 correct=1"));
    EXPECT_EQ(cold.error, "");
    const Outcome warm = run(on(std::string("sim:") + target));
    ASSERT_EQ(warm.status, 0) << warm.out << warm.error;
    EXPECT_THAT(warm.out, HasSubstr(std::string("target=") + target + " origin=2 compiler_mapped=0 correct=1"));
    EXPECT_EQ(warm.error, "");
  }
}

TEST_F(EndToEnd, EachVariableIsObeyed) {
  auto variables = on("sim:gfx950");
  variables["WAVEJIT_PIPELINE"] = "auto o_store=scalar";
  variables["WAVEJIT_LOG_LEVEL"] = "info";
  const Outcome scalar = run(variables);
  ASSERT_EQ(scalar.status, 0) << scalar.out << scalar.error;
  EXPECT_THAT(scalar.out, HasSubstr("o_store=scalar"));
  EXPECT_THAT(scalar.out, HasSubstr("correct=1"));
  EXPECT_THAT(scalar.error, HasSubstr("[info] compile attention_forward fp16 d64"));
  variables.erase("WAVEJIT_PIPELINE");
  variables["WAVEJIT_CACHE"] = "off";
  variables["WAVEJIT_CACHE_DIR"] = directory_.path() + "/other";
  ASSERT_EQ(run(variables).status, 0);
  EXPECT_FALSE(std::filesystem::exists(directory_.path() + "/other"));
}

TEST_F(EndToEnd, AnIsolatedCompileGivesTheSameKernel) {
  auto variables = on("sim:gfx950");
  variables["WAVEJIT_COMPILE"] = "isolated";
  const Outcome isolated = run(variables);
  ASSERT_EQ(isolated.status, 0) << isolated.out << isolated.error;
  EXPECT_THAT(isolated.out, HasSubstr("origin=3 compiler_mapped=1 correct=1"));
}

TEST_F(EndToEnd, AWrongVariableIsOneWarning) {
  auto variables = on("sim:gfx950");
  variables["WAVEJIT_CACHE"] = "sometimes";
  const Outcome outcome = run(variables);
  ASSERT_EQ(outcome.status, 0) << outcome.out << outcome.error;
  EXPECT_THAT(outcome.error, HasSubstr("WAVEJIT_CACHE=sometimes"));
  EXPECT_THAT(outcome.error, HasSubstr("accepted: off, ro, rw"));
  EXPECT_EQ(std::ranges::count(outcome.error, '\n'), 1) << outcome.error;
}

TEST_F(EndToEnd, WhatCannotBeDoneIsAStatus) {
  auto variables = on("sim:gfx942");
  variables["WAVEJIT_PIPELINE"] = "o_store=permlane";
  Outcome outcome = run(variables);
  EXPECT_EQ(WEXITSTATUS(outcome.status), WAVEJIT_UNSUPPORTED) << outcome.out << outcome.error;
  EXPECT_THAT(outcome.out, HasSubstr("v_permlane32_swap"));
  outcome = run(on("sim:gfx90a"));
  EXPECT_EQ(WEXITSTATUS(outcome.status), WAVEJIT_NO_DEVICE);
  EXPECT_THAT(outcome.out, HasSubstr("WAVEJIT_DEVICE = \"sim:gfx90a\""));
}

TEST_F(EndToEnd, WithoutAGpuTheErrorNamesTheSimulatedOne) {
  if (std::filesystem::exists("/dev/kfd")) GTEST_SKIP() << "this machine may have a GPU";
  const Outcome outcome = run(on("hip"));
  EXPECT_EQ(WEXITSTATUS(outcome.status), WAVEJIT_NO_DEVICE) << outcome.out << outcome.error;
  EXPECT_THAT(outcome.out, HasSubstr("WAVEJIT_DEVICE=sim:"));
}

TEST_F(EndToEnd, APackagedReadOnlyCacheNeedsNoCompiler) {
  ASSERT_EQ(run(on("sim:gfx950")).status, 0);
  auto variables = on("sim:gfx950");
  variables["WAVEJIT_CACHE"] = "ro";
  const Outcome outcome = run(variables);
  ASSERT_EQ(outcome.status, 0) << outcome.out << outcome.error;
  EXPECT_THAT(outcome.out, HasSubstr("origin=2 compiler_mapped=0"));
}

}  // namespace
}  // namespace wavejit::tests
