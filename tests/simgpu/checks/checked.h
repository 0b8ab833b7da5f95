// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// One kernel under checks: what was found, check by check.
#pragma once

#include <array>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "assembled.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "simgpu/process/check.h"
#include "simgpu/process/process.h"

namespace wavejit::simgpu::testing {

// What one line of JSON said about a finding. Lines that lack something that every finding says fail the test.
struct ReportedFinding {
  struct Source {
    std::string instruction;
    std::uint64_t offset = 0;
    int wave = -1;
    std::optional<std::array<std::uint32_t, 3>> workgroup;  // where it is another one
  };
  std::string line;
  std::string check;
  std::string kernel;
  std::string function;
  std::string instruction;
  std::string text;
  std::uint64_t offset = 0;
  std::array<std::uint32_t, 3> workgroup{};
  int wave = -1;
  int lane = -1;  // below zero: the whole wave
  Source source;
};
std::ostream& operator<<(std::ostream& to, const ReportedFinding& finding);

struct Checked {
  Status status;
  std::vector<ReportedFinding> findings;

  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const ReportedFinding& finding : findings) all.push_back(finding.check);
    return all;
  }
  std::string text() const { return findings.empty() ? "" : findings.front().text; }
};

struct CheckedRun {
  std::uint32_t checks = all_checks;
  Arrival arrival = Arrival::late;
  Schedule schedule = Schedule::in_order;
  std::uint64_t seed = 1;
  std::array<std::uint32_t, 3> workgroups = {1, 1, 1};
  std::uint32_t threads = 64;      // of a workgroup
  std::uint32_t host_threads = 0;  // that run workgroups; 0: one a core
  Rules rules = Rules::compiler;
};

Checked run_checked(const Assembled& kernel, const std::vector<std::uint64_t>& arguments, CheckedRun how = {});

// In every schedule and order of arrival: who is first must not decide whether a race is seen. The kernel gets 4 KiB.
void expect_race(const Assembled& kernel, CheckedRun how, bool race, const std::string& text = "");

// The output pointer in s[6:7] and 4 times the thread's number in v1.
inline constexpr const char* prologue = R"(
  s_load_dwordx2 s[6:7], s[0:1], 0x0
  v_lshlrev_b32 v1, 2, v0
  s_waitcnt lgkmcnt(0)
)";

}  // namespace wavejit::simgpu::testing
