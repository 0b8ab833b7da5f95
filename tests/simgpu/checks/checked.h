// One kernel under checks: what was found, check by check.
#pragma once

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "assembled.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "simgpu/checks/check.h"
#include "simgpu/process.h"

namespace wavejit::simgpu::testing {

struct Checked {
  Status status;
  std::vector<nlohmann::json> findings;

  [[nodiscard]] std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const auto& finding : findings) all.push_back(finding["check"]);
    return all;
  }
  [[nodiscard]] std::string text() const { return findings.empty() ? "" : findings.front()["text"].get<std::string>(); }
};

struct CheckedRun {
  uint32_t checks = all_checks;
  Arrival arrival = Arrival::late;
  Schedule schedule = Schedule::in_order;
  uint64_t seed = 1;
  std::array<uint32_t, 3> workgroups = {1, 1, 1};
  uint32_t threads = 64;      ///< of a workgroup
  uint32_t host_threads = 0;  ///< that run workgroups; 0: one a core
};

inline Checked run_checked(const Assembled& kernel, const std::vector<uint64_t>& arguments, CheckedRun how = {}) {
  const ScopedSettings scope;
  Settings settings = scope.before();
  settings.checks = how.checks;
  settings.arrival = how.arrival;
  settings.schedule = how.schedule;
  settings.seed = how.seed;
  settings.threads = how.host_threads;
  scope.set(settings);
  Process::instance().take_findings(SIZE_MAX);
  Checked result;
  result.status = kernel.run(arguments, how.workgroups, {how.threads, 1, 1});
  std::istringstream lines(Process::instance().take_findings(SIZE_MAX));
  for (std::string line; std::getline(lines, line);) {
    result.findings.push_back(nlohmann::json::parse(line));
    // What every finding says, whatever the check.
    const nlohmann::json& finding = result.findings.back();
    for (const char* text : {"check", "kernel", "function", "instruction", "text"})
      EXPECT_FALSE(finding.at(text).get<std::string>().empty()) << text << ": " << line;
    EXPECT_TRUE(finding.at("offset").is_number_unsigned()) << line;
    EXPECT_EQ(finding.at("workgroup").size(), 3U) << line;
    EXPECT_GE(finding.at("wave"), 0) << line;
    if (finding.contains("source")) {
      EXPECT_FALSE(finding.at("source").at("instruction").get<std::string>().empty()) << line;
      EXPECT_TRUE(finding.at("source").at("offset").is_number_unsigned()) << line;
    }
  }
  return result;
}

/// In every schedule and order of arrival: who is first must not decide whether a race is seen. The kernel gets 4 KiB.
inline void expect_race(const Assembled& kernel, CheckedRun how, bool race, const std::string& text = "") {
  how.checks = static_cast<uint32_t>(Check::races);
  for (const Schedule schedule : {Schedule::in_order, Schedule::reverse, Schedule::random}) {
    for (const Arrival arrival : {Arrival::early, Arrival::late}) {
      Buffer<uint32_t> memory(1024, 7);
      how.schedule = schedule;
      how.arrival = arrival;
      const Checked checked = run_checked(kernel, {memory.address()}, how);
      if (race) {
        using namespace ::testing;
        EXPECT_THAT(checked.names(), AllOf(Contains("races"), Each(Eq("races"))));
        EXPECT_THAT(checked.text(), HasSubstr(text));
      } else {
        EXPECT_THAT(checked.findings, ::testing::IsEmpty()) << checked.text();
        EXPECT_TRUE(checked.status.ok()) << checked.status.text;
      }
    }
  }
}

/// The output pointer in s[6:7] and 4 times the thread's number in v1.
inline constexpr const char* prologue = R"(
  s_load_dwordx2 s[6:7], s[0:1], 0x0
  v_lshlrev_b32 v1, 2, v0
  s_waitcnt lgkmcnt(0)
)";

}  // namespace wavejit::simgpu::testing
