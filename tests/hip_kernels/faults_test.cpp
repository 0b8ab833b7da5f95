// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Each fault of each check, planted in HIP kernels: without optimisation, where every pointer is a flat one, and with.
// The program says which device it wants before it says anything else, as programs do that embed the library; what it
// allocates before its first launch is followed all the same. CMakeLists.txt sets WAVEJIT_SIM_CHECK=all.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "hip_abi/hip_functions.h"
#include "wavejit/simgpu.h"

namespace wavejit::hip_kernels {
namespace {

using namespace hip_abi;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

struct FaultBuild {
  const char* target;
  int optimisation;
};

std::ostream& operator<<(std::ostream& to, const FaultBuild& build) {
  return to << build.target << "_O" << build.optimisation;
}

// What the library has to say.
struct Reported {
  std::vector<nlohmann::json> findings;
  std::string errors;  // on stderr
};

class Faults : public ::testing::TestWithParam<FaultBuild> {
 protected:
  static constexpr std::uint32_t threads = 128;

  void SetUp() override {
    int ordinal = -1;
    ASSERT_EQ(wavejit_simgpu_open_devices(GetParam().target, 1, &ordinal), 0);
    ASSERT_EQ(hipSetDevice(ordinal), hipSuccess);
    ASSERT_EQ(hipMalloc(&in_, threads * sizeof(float)), hipSuccess);
    ASSERT_EQ(hipMalloc(&out_, threads * sizeof(float)), hipSuccess);
    const std::string path = std::string(WAVEJIT_TEST_KERNELS) + "/faults." + GetParam().target + "_O" +
                             std::to_string(GetParam().optimisation) + ".co";
    ASSERT_EQ(hipModuleLoad(&module_, path.c_str()), hipSuccess) << path;
  }
  void TearDown() override {
    EXPECT_EQ(hipDeviceReset(), hipSuccess);
    (void)hipGetLastError();
  }

  template <typename... Arguments>
  Reported run(const char* kernel, Arguments... arguments) {
    return run_blocks(1, kernel, arguments...);
  }
  template <typename... Arguments>
  Reported run_blocks(std::uint32_t blocks, const char* kernel, Arguments... arguments) {
    void* pointers[] = {static_cast<void*>(&arguments)...};
    hipFunction_t function = nullptr;
    EXPECT_EQ(hipModuleGetFunction(&function, module_, kernel), hipSuccess) << kernel;
    ::testing::internal::CaptureStderr();
    EXPECT_EQ(hipModuleLaunchKernel(function, blocks, 1, 1, threads, 1, 1, 0, nullptr, pointers, nullptr), hipSuccess);
    EXPECT_NE(hipDeviceSynchronize(), hipSuccess) << kernel;
    Reported reported{.findings = {}, .errors = ::testing::internal::GetCapturedStderr()};
    std::string text(wavejit_simgpu_take_findings(nullptr, 0) + 1, 0);
    wavejit_simgpu_take_findings(text.data(), text.size());
    std::istringstream lines(text.c_str());
    for (std::string line; std::getline(lines, line);) reported.findings.push_back(nlohmann::json::parse(line));
    return reported;
  }

  // All of them are of this check, one is at a line of the source that is marked so, and stderr has them all.
  static void expect(const Reported& reported, const std::string& check, const std::string& mark) {
    ASSERT_THAT(reported.findings, Not(IsEmpty())) << reported.errors;
    std::set<unsigned> seen;
    for (const auto& finding : reported.findings) {
      EXPECT_EQ(finding.at("check"), check) << finding;
      EXPECT_THAT(reported.errors, HasSubstr(finding.at("text").get<std::string>()));
      ASSERT_TRUE(finding.contains("line")) << finding;
      EXPECT_THAT(finding.at("file").get<std::string>(), HasSubstr("kernels/faults.hip"));
      seen.insert(finding.at("line").get<unsigned>());
    }
    EXPECT_THAT(seen, Contains(::testing::AnyOfArray(lines_marked(mark)))) << reported.errors;
    for (const unsigned line : seen) EXPECT_THAT(reported.errors, HasSubstr("faults.hip:" + std::to_string(line)));
  }
  static std::vector<unsigned> lines_marked(const std::string& mark) {
    std::ifstream source(WAVEJIT_TEST_FAULTS);
    std::vector<unsigned> lines;
    unsigned number = 0;
    for (std::string line; std::getline(source, line);) {
      ++number;
      const std::size_t at = line.find("// fault:");
      if (at == std::string::npos) continue;
      std::istringstream marks(line.substr(at + 9));
      for (std::string one; marks >> one;) {
        if (one == mark) lines.push_back(number);
      }
    }
    EXPECT_THAT(lines, Not(IsEmpty())) << mark;
    return lines;
  }

  void* in_ = nullptr;
  void* out_ = nullptr;
  hipModule_t module_ = nullptr;
};

TEST_P(Faults, MemoryThatWasNeverWritten) {
  expect(run("_ZN6faults20uninitialised_memoryEPKfPf", in_, out_), "uninitialised", "uninitialised_memory");
}
TEST_P(Faults, RacesThroughAPointerThatAFunctionGot) {
  const Reported reported = run("_ZN6faults5racesIfEEvPT_", out_);
  expect(reported, "races", "races");
  // Names as they were written; the parameters stand once a line.
  EXPECT_THAT(reported.errors, AllOf(HasSubstr("kernel void faults::races<float>(float*): "), Not(HasSubstr("_Z")),
                                     HasSubstr("of load (faults.hip:")));
}
TEST_P(Faults, WhatAnotherBlockDidNotRelease) {
  void* parts = nullptr;
  EXPECT_EQ(hipMalloc(&parts, 2 * threads * sizeof(float)), hipSuccess);
  EXPECT_EQ(hipMemset(in_, 0, threads * sizeof(float)), hipSuccess);
  const Reported reported = run_blocks(2, "_ZN6faults9unorderedILb0EEEvPjS1_S1_", parts, in_, out_);
  expect(reported, "races", "unordered");
  EXPECT_THAT(reported.errors, HasSubstr("no buffer_wbl2 sc1 behind it was waited for"));
}
TEST_P(Faults, WhatABlockDidNotAcquire) {
  void* parts = nullptr;
  EXPECT_EQ(hipMalloc(&parts, 2 * threads * sizeof(float)), hipSuccess);
  EXPECT_EQ(hipMemset(in_, 0, threads * sizeof(float)), hipSuccess);
  const Reported reported = run_blocks(2, "_ZN6faults9unorderedILb1EEEvPjS1_S1_", parts, in_, out_);
  expect(reported, "races", "unordered");
  EXPECT_THAT(reported.errors, HasSubstr("no buffer_inv sc1 lies between"));
}
TEST_P(Faults, LdsThatWasNeverWritten) {
  const Reported reported = run("_ZN6faults13uninitialisedIfEEvPT_", out_);
  expect(reported, "uninitialised", "uninitialised");
  EXPECT_EQ(reported.findings.front().at("lane"), 32);
}
TEST_P(Faults, HalvesOfWordsInLdsThatWereNeverWritten) {
  expect(run("_ZN6faults19uninitialised_bytesEPj", out_), "uninitialised", "uninitialised_bytes");
}
TEST_P(Faults, MissingWaits) { expect(run("_ZN6faults5waitsEPf", out_), "waits", "waits"); }
TEST_P(Faults, MissingWaitStates) { expect(run("_ZN6faults7hazardsEPj", out_), "hazards", "hazards"); }
TEST_P(Faults, MatrixInstructionsOfSomeLanes) { expect(run("_ZN6faults4execEPf", out_), "exec", "exec"); }
TEST_P(Faults, BarriersThatSomeWavesMiss) { expect(run("_ZN6faults8barriersEPf", out_), "barriers", "barriers"); }
TEST_P(Faults, LanesThatSpeakForOthers) { expect(run("_ZN6faults7uniformEPj", out_), "uniform", "uniform"); }
TEST_P(Faults, WritesBehindTheEnd) {
  for (const std::uint32_t distance : {1U, 3000U, 500'000U}) {
    expect(run("_ZN6faults13writes_behindEPfj", out_, distance), "fault", "writes_behind");
    TearDown();
    SetUp();
  }
}
TEST_P(Faults, ReadsBehindTheEnd) {
  for (const std::uint32_t distance : {1U, 3000U, 500'000U}) {
    EXPECT_EQ(hipMemset(in_, 0, threads * sizeof(float)), hipSuccess);
    expect(run("_ZN6faults12reads_behindEPKfPfj", in_, out_, distance), "fault", "reads_behind");
    TearDown();
    SetUp();
  }
}

INSTANTIATE_TEST_SUITE_P(Builds, Faults,
                         ::testing::Values(FaultBuild{"gfx942", 0}, FaultBuild{"gfx950", 0}, FaultBuild{"gfx942", 2},
                                           FaultBuild{"gfx950", 2}),
                         [](const auto& build) {
                           return std::string(build.param.target) + "_O" + std::to_string(build.param.optimisation);
                         });

}  // namespace
}  // namespace wavejit::hip_kernels
