// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "checked.h"

#include <nlohmann/json.hpp>
#include <ostream>
#include <sstream>

namespace wavejit::simgpu::testing {
namespace {

using nlohmann::json;

std::string words_of(const json& finding, const char* name) {
  std::string words = finding.at(name);
  EXPECT_FALSE(words.empty()) << name << ": " << finding;
  return words;
}
std::array<std::uint32_t, 3> workgroup_of(const json& finding) {
  EXPECT_EQ(finding.at("workgroup").size(), 3U) << finding;
  return finding.at("workgroup");
}
std::uint64_t offset_of(const json& finding) {
  EXPECT_TRUE(finding.at("offset").is_number_unsigned()) << finding;
  return finding.at("offset");
}

ReportedFinding read(const std::string& line) {
  const json finding = json::parse(line);
  ReportedFinding found{.line = line,
                        .check = words_of(finding, "check"),
                        .kernel = words_of(finding, "kernel"),
                        .function = words_of(finding, "function"),
                        .instruction = words_of(finding, "instruction"),
                        .text = words_of(finding, "text"),
                        .offset = offset_of(finding),
                        .workgroup = workgroup_of(finding),
                        .wave = finding.at("wave"),
                        .lane = finding.value("lane", -1),
                        .source = {}};
  EXPECT_GE(found.wave, 0) << line;
  if (const auto source = finding.find("source"); source != finding.end()) {
    found.source = {.instruction = words_of(*source, "instruction"),
                    .offset = offset_of(*source),
                    .wave = source->value("wave", -1),
                    .workgroup = std::nullopt};
    if (source->contains("workgroup")) found.source.workgroup = workgroup_of(*source);
  }
  return found;
}

}  // namespace

std::ostream& operator<<(std::ostream& to, const ReportedFinding& finding) { return to << finding.line; }

Checked run_checked(const Assembled& kernel, const std::vector<std::uint64_t>& arguments, CheckedRun how) {
  const ScopedSettings scope;
  Settings settings = scope.before();
  settings.checks = how.checks;
  settings.arrival = how.arrival;
  settings.schedule = how.schedule;
  settings.seed = how.seed;
  settings.threads = how.host_threads;
  settings.rules = how.rules;
  scope.set(settings);
  Process::instance().take_findings(SIZE_MAX);
  Checked result;
  result.status = kernel.run(arguments, how.workgroups, {how.threads, 1, 1});
  std::istringstream lines(Process::instance().take_findings(SIZE_MAX));
  for (std::string line; std::getline(lines, line);) {
    result.findings.push_back(read(line));
  }
  return result;
}

void expect_race(const Assembled& kernel, CheckedRun how, bool race, const std::string& text) {
  how.checks = static_cast<std::uint32_t>(Check::races);
  for (const Schedule schedule : {Schedule::in_order, Schedule::reverse, Schedule::random}) {
    for (const Arrival arrival : {Arrival::early, Arrival::late}) {
      Buffer<std::uint32_t> memory(1024, 7);
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

}  // namespace wavejit::simgpu::testing
