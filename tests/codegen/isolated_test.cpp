// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Isolated compiles: what a process of their own is for, and comgr, which runs only there.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <format>
#include <fstream>
#include <string_view>
#include <thread>

#include "codegen_library.h"
#include "ir_samples.h"
#include "tests/support/scratch_directory.h"

namespace wavejit::codegen {
namespace {

using ::testing::HasSubstr;
using tests::ScratchDirectory;

const char* const isolated_spec =
    "attention_forward fp16 d64 pipeline=generic tile=128x64 o_store=scalar target=gfx942 lowering=llvm";
const char* const comgr_spec =
    "attention_forward fp16 d64 pipeline=generic tile=128x64 o_store=scalar target=gfx942 lowering=comgr";

// An executable shell script in place of wavejit-compile.
std::string script(const ScratchDirectory& folder, const std::string& body) {
  std::string file = folder / "compiler";
  std::ofstream(file) << "#!/bin/sh\n" << body << "\n";
  chmod(file.c_str(), 0755);
  return file;
}

int open_descriptors() {
  int count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) ++count;
  return count;
}

TEST(Isolated, CompilesLikeTheProcessItself) {
  const TableService isolated(WAVEJIT_CODEGEN_ISOLATED);
  const TableService inprocess;
  const Answer there = compile(isolated, isolated_spec);
  const Answer here = compile(inprocess, isolated_spec);
  ASSERT_EQ(there.status, WAVEJIT_CODEGEN_OK) << there.detail;
  EXPECT_EQ(there.bytes, here.bytes);
  EXPECT_STREQ(there.facts.kernel_name, here.facts.kernel_name);
  EXPECT_EQ(there.facts.instructions, here.facts.instructions);
  EXPECT_GT(there.nanoseconds, 0U);
}

TEST(Isolated, StatusesComeThrough) {
  const TableService service(WAVEJIT_CODEGEN_ISOLATED);
  EXPECT_EQ(compile(service, "nonsense").status, WAVEJIT_CODEGEN_INVALID);
  const Answer rejected = compile_ir(service, "gfx942", samples::scratch_array());
  EXPECT_EQ(rejected.status, WAVEJIT_CODEGEN_REJECTED);
  EXPECT_THAT(rejected.detail, HasSubstr("scratch"));
}

// The backend aborts on the first and segfaults on the second; each time the next kernel compiles.
TEST(Isolated, SurvivesAbortsAndSegmentationFaults) {
  const TableService service(WAVEJIT_CODEGEN_ISOLATED);
  const Answer aborted = compile_ir(service, "gfx942", samples::permlane32_swap());
  EXPECT_EQ(aborted.status, WAVEJIT_CODEGEN_CRASHED);
  EXPECT_THAT(aborted.detail, HasSubstr("permlane32.swap"));
  EXPECT_EQ(compile_ir(service, "gfx942", samples::add_constant(1)).status, WAVEJIT_CODEGEN_OK);
  const Answer crashed = compile_ir(service, "gfx942", samples::permlane64());
  EXPECT_EQ(crashed.status, WAVEJIT_CODEGEN_CRASHED);
  EXPECT_TRUE(crashed.bytes.empty());
  EXPECT_EQ(compile_ir(service, "gfx942", samples::add_constant(2)).status, WAVEJIT_CODEGEN_OK);
}

TEST(Isolated, NoDescriptorOrProcessIsLeftBehind) {
  const TableService service(WAVEJIT_CODEGEN_ISOLATED);
  compile_ir(service, "gfx942", samples::add_constant(1));
  const int before = open_descriptors();
  compile_ir(service, "gfx942", samples::add_constant(2));
  compile_ir(service, "gfx942", samples::permlane64());
  EXPECT_EQ(open_descriptors(), before);
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1) << "a child is left";
}

TEST(Isolated, AHungCompilerIsKilledAtTheTimeLimit) {
  const ScratchDirectory folder;
  const std::string program = script(folder, "exec sleep 600");
  const TableService service(WAVEJIT_CODEGEN_ISOLATED, program.c_str(), 200);
  const auto start = std::chrono::steady_clock::now();
  const Answer answer = compile(service, isolated_spec);
  EXPECT_EQ(answer.status, WAVEJIT_CODEGEN_CRASHED);
  EXPECT_THAT(answer.detail, HasSubstr("200 ms"));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
}

TEST(Isolated, UselessCompilersAreStatuses) {
  const ScratchDirectory folder;
  {
    const std::string program = script(folder, "echo 'cannot find my library' >&2; exit 127");
    const Answer answer = compile(TableService(WAVEJIT_CODEGEN_ISOLATED, program.c_str()), isolated_spec);
    EXPECT_EQ(answer.status, WAVEJIT_CODEGEN_CRASHED);
    EXPECT_THAT(answer.detail, HasSubstr("127"));
    EXPECT_THAT(answer.detail, HasSubstr("cannot find my library"));
  }
  {
    const std::string program = script(folder, "head -c 100000 /dev/zero");
    const Answer answer = compile(TableService(WAVEJIT_CODEGEN_ISOLATED, program.c_str()), isolated_spec);
    EXPECT_EQ(answer.status, WAVEJIT_CODEGEN_CRASHED);
    EXPECT_THAT(answer.detail, HasSubstr("build"));
  }
  {
    const std::string program = script(folder, "kill -SEGV $$");
    const Answer answer = compile(TableService(WAVEJIT_CODEGEN_ISOLATED, program.c_str()), isolated_spec);
    EXPECT_EQ(answer.status, WAVEJIT_CODEGEN_CRASHED);
    EXPECT_THAT(answer.detail, HasSubstr("SIGSEGV"));
  }
  const Answer absent = compile(TableService(WAVEJIT_CODEGEN_ISOLATED, "/nonexistent/compiler"), isolated_spec);
  EXPECT_EQ(absent.status, WAVEJIT_CODEGEN_UNAVAILABLE);
  EXPECT_THAT(absent.detail, HasSubstr("/nonexistent/compiler"));
}

// The answer of the real program, cut at any length: never taken for a code object.
TEST(Isolated, CutAnswersAreStatuses) {
  const ScratchDirectory folder;
  for (const int length : {1, 100, 500, 1000, 5000}) {
    const std::string program =
        script(folder, std::format("'{}' \"$@\" | head -c {}", WAVEJIT_COMPILE_PROGRAM, length));
    const Answer answer = compile(TableService(WAVEJIT_CODEGEN_ISOLATED, program.c_str()), isolated_spec);
    EXPECT_EQ(answer.status, WAVEJIT_CODEGEN_CRASHED) << length << ": " << answer.detail;
  }
}

TEST(Isolated, FourThreadsAtOnce) {
  const TableService service(WAVEJIT_CODEGEN_ISOLATED);
  std::vector<Answer> answers(4);
  {
    std::vector<std::jthread> threads;
    threads.reserve(8);
    for (int i = 0; i < 4; ++i)
      threads.emplace_back([&, i] { answers[i] = compile_ir(service, "gfx950", samples::add_constant(i)); });
  }
  for (const Answer& answer : answers) EXPECT_EQ(answer.status, WAVEJIT_CODEGEN_OK) << answer.detail;
}

// A host that lets the kernel reap its children has no exit status to ask for; the answer counts.
TEST(Isolated, WorksWhereChildrenAreReapedByTheKernel) {
  const auto before = signal(SIGCHLD, SIG_IGN);
  const TableService service(WAVEJIT_CODEGEN_ISOLATED);
  const Answer answer = compile_ir(service, "gfx950", samples::add_constant(1));
  const Answer crashed = compile_ir(service, "gfx942", samples::permlane64());
  signal(SIGCHLD, before);
  EXPECT_EQ(answer.status, WAVEJIT_CODEGEN_OK) << answer.detail;
  EXPECT_EQ(crashed.status, WAVEJIT_CODEGEN_CRASHED);
}

TEST(Isolated, WorksWithoutStandardDescriptors) {
  const TableService service(WAVEJIT_CODEGEN_ISOLATED);
  int saved[3];
  for (int descriptor = 0; descriptor < 3; ++descriptor) {
    saved[descriptor] = fcntl(descriptor, F_DUPFD_CLOEXEC, 10);
    close(descriptor);
  }
  const Answer answer = compile_ir(service, "gfx950", samples::add_constant(1));
  for (int descriptor = 0; descriptor < 3; ++descriptor) {
    dup2(saved[descriptor], descriptor);
    close(saved[descriptor]);
  }
  EXPECT_EQ(answer.status, WAVEJIT_CODEGEN_OK) << answer.detail;
}

class ComgrTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const TableService names_the_program;  // lowering_identity asks the program that services use
    identity_ = library().lowering_identity("comgr");
    if (identity_) return;
    const char* const without = getenv("WAVEJIT_WITHOUT_ROCM");
    if (without && std::string_view(without) == "1") GTEST_SKIP() << "left out: comgr (WAVEJIT_WITHOUT_ROCM=1)";
    FAIL() << "comgr (libamd-comgr-dev): './dev install' tries to get it. WAVEJIT_WITHOUT_ROCM=1 leaves this test out.";
  }
  const char* identity_ = nullptr;
};

TEST_F(ComgrTest, HasAnIdentity) {
  EXPECT_THAT(identity_, ::testing::MatchesRegex("comgr=[0-9]+\\.[0-9]+ build=[0-9a-f]{16}"));
  EXPECT_EQ(library().lowering_identity("comgr"), identity_);
}

// Asked of an in-process service: comgr never enters this process all the same.
TEST_F(ComgrTest, CompilesSpecsThatPassTheSameChecks) {
  const TableService service;
  for (const std::string& spec :
       {std::string(comgr_spec), std::string("attention_forward bf16 d128 causal lse pipeline=generic tile=128x64 "
                                             "o_store=permlane target=gfx950 lowering=comgr")}) {
    const Answer answer = compile(service, spec);
    ASSERT_EQ(answer.status, WAVEJIT_CODEGEN_OK) << answer.detail;
    EXPECT_GT(answer.facts.matrix_instructions, 0U);
    EXPECT_EQ(answer.facts.vgpr_spills + answer.facts.sgpr_spills, 0U);
    EXPECT_EQ(compile(service, spec).bytes, answer.bytes);
  }
  std::ifstream maps("/proc/self/maps");
  const std::string mapped((std::istreambuf_iterator<char>(maps)), std::istreambuf_iterator<char>());
  EXPECT_EQ(mapped.find("libamd_comgr"), std::string::npos);
}

// Same instructions as our own lowering, counted: the options that switch sinking and scheduling off arrive.
TEST_F(ComgrTest, KeepsTheEmittersOrder) {
  const TableService service;
  const Answer kept = compile_ir(service, "gfx942", samples::reads_before_branch(4), "comgr");
  EXPECT_EQ(kept.status, WAVEJIT_CODEGEN_OK) << kept.detail;
  const Answer rejected = compile_ir(service, "gfx942", samples::scratch_array(), "comgr");
  EXPECT_EQ(rejected.status, WAVEJIT_CODEGEN_REJECTED) << rejected.detail;
}

TEST_F(ComgrTest, ItsCrashesAreStatuses) {
  const TableService service;
  const Answer lost = compile_ir(service, "gfx942", samples::permlane32_swap(), "comgr");
  EXPECT_NE(lost.status, WAVEJIT_CODEGEN_OK);
  EXPECT_FALSE(lost.detail.empty());
  EXPECT_EQ(compile_ir(service, "gfx942", samples::add_constant(1), "comgr").status, WAVEJIT_CODEGEN_OK);
}

TEST_F(ComgrTest, TheUsersComgrCacheIsNotTouched) {
  const ScratchDirectory home;
  const char* const variables[] = {"HOME", "XDG_CACHE_HOME", "AMD_COMGR_CACHE_DIR"};
  std::vector<std::pair<std::string, std::string>> before;
  for (const char* variable : variables) {
    if (const char* value = getenv(variable)) before.emplace_back(variable, value);
    setenv(variable, home.path().c_str(), 1);
  }
  setenv("AMD_COMGR_CACHE", "1", 1);
  const Answer answer = compile(TableService(), comgr_spec);
  unsetenv("AMD_COMGR_CACHE");
  for (const char* variable : variables) unsetenv(variable);
  for (const auto& [variable, value] : before) setenv(variable.c_str(), value.c_str(), 1);
  ASSERT_EQ(answer.status, WAVEJIT_CODEGEN_OK) << answer.detail;
  EXPECT_TRUE(std::filesystem::is_empty(home.path()));
}

}  // namespace
}  // namespace wavejit::codegen
