// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How findings are reported: words, JSON, order, number.
#include <gmock/gmock.h>

#include <set>
#include <span>

#include "checked.h"
#include "simgpu/machine/launch/launch.h"
#include "simgpu/machine/launch/observer.h"

namespace wavejit::simgpu::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::SizeIs;

const std::string missing_wait = std::string(prologue) + "global_load_dword v2, v1, s[6:7]\nv_add_u32 v3, 1, v2";

TEST(Reports, EverythingThatIsKnown) {
  Buffer<std::uint32_t> memory(64);
  Process::instance().take_reports(SIZE_MAX);
  const Checked checked = run_checked(Assembled(missing_wait), {memory.address()}, {.workgroups = {3, 1, 1}});
  ASSERT_THAT(checked.findings, SizeIs(1));  // once, not once a workgroup
  const ReportedFinding& finding = checked.findings[0];
  EXPECT_EQ(finding.check, "waits");
  EXPECT_EQ(finding.kernel, "k");
  EXPECT_EQ(finding.function, "k");
  EXPECT_EQ(finding.instruction, "v_add_u32_e32 v3, 1, v2");
  EXPECT_EQ(finding.offset, 0x18);
  EXPECT_EQ(finding.workgroup, (std::array<std::uint32_t, 3>{0, 0, 0}));
  EXPECT_EQ(finding.wave, 0);
  EXPECT_EQ(finding.lane, 0);
  EXPECT_EQ(finding.source.instruction, "global_load_dword v2, v1, s[6:7]");
  EXPECT_EQ(finding.source.offset, 0x10);
  EXPECT_EQ(finding.source.wave, 0);
  EXPECT_THAT(Process::instance().take_reports(SIZE_MAX),
              AllOf(HasSubstr("kernel k: 'v_add_u32_e32 v3, 1, v2' at offset 0x18 of k"),
                    HasSubstr("workgroup (0, 0, 0), wave 0, lane 0: waits: reads v2")));
}

TEST(Reports, FaultsAreFindingsToo) {
  const Checked checked = run_checked(Assembled(missing_wait), {0}, {.checks = 0, .arrival = Arrival::early});
  ASSERT_THAT(checked.findings, SizeIs(1));
  EXPECT_EQ(checked.findings[0].check, "fault");
  EXPECT_THAT(checked.text(), HasSubstr("reads 4 bytes at 0x0"));
}

TEST(Reports, TheLaunchGoesOnAndFailsAtTheEnd) {
  Buffer<std::uint32_t> memory(64, 3);
  const Checked checked = run_checked(
      Assembled(missing_wait + "\ns_waitcnt vmcnt(0)\nglobal_store_dword v1, v0, s[6:7]"), {memory.address()});
  EXPECT_EQ(checked.status.code, hip_error_launch_failure);
  EXPECT_EQ(memory[9], 9u);
}

TEST(Reports, ObserversSeeTheWorkgroupsThatTheyWant) {
  class Second : public Observer {
   public:
    bool wants(std::uint64_t workgroup) const override { return workgroup == 1; }
    void before(const Wave& wave, const Instruction&) override { seen.insert(wave.workgroup->linear_id); }
    std::set<std::uint64_t> seen;
  };
  const Assembled kernel{std::string(prologue)};
  const ScopedSettings scope;
  Settings settings = scope.before();
  settings.checks = all_checks;
  settings.threads = 1;
  scope.set(settings);
  const std::array<std::uint64_t, 1> arguments = {0};
  Second observer;
  const Status status = kernel.device().launch({.kernel = &kernel.kernel(),
                                                .workgroups = {3, 1, 1},
                                                .workgroup_size = {64, 1, 1},
                                                .kernarg = std::as_bytes(std::span(arguments)),
                                                .observer = &observer});
  ASSERT_TRUE(status.ok()) << status.text;
  EXPECT_EQ(observer.seen, std::set<std::uint64_t>{1});
}

}  // namespace
}  // namespace wavejit::simgpu::testing
