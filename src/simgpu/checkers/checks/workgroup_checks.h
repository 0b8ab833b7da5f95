// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The checks of one workgroup while it runs: the step loop that takes the place of the plain one, and the state behind
// it. One object per host thread, used for one workgroup after another.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <vector>

#include "simgpu/checkers/checks/arrivals.h"
#include "simgpu/checkers/checks/definedness.h"
#include "simgpu/checkers/checks/hazards.h"
#include "simgpu/checkers/checks/lds_shadow.h"
#include "simgpu/checkers/checks/memory_shadow.h"
#include "simgpu/checkers/checks/pace.h"
#include "simgpu/checkers/checks/rdna4_hazards.h"
#include "simgpu/machine/launch/seats.h"
#include "simgpu/machine/wave/wave.h"
#include "simgpu/process/check.h"
#include "simgpu/process/config.h"

namespace wavejit::simgpu {
class Observer;
struct Launch;
struct Workgroup;
struct Allocation;
}  // namespace wavejit::simgpu

namespace wavejit::simgpu::checks {

class WorkgroupChecks final : public Checker {
 public:
  WorkgroupChecks();
  ~WorkgroupChecks() override;

  void prepare(Launch& launch, Workgroup& workgroup, std::uint64_t seed, Observer* observer) override;
  void run_slice(Wave& wave, std::int64_t instructions) override;
  void barrier() override;
  // What has arrived by then is visible.
  std::size_t next_by_time(std::span<Wave* const> ready) override;

 private:
  struct WaveChecks {
    Arrivals arrivals;
    Definedness definedness;
    Hazards hazards;
    Rdna4Hazards rdna4_hazards;
    OrderTicket ticket;  // of the instruction at hand
    const Function* function = nullptr;
    const FunctionEffects* effects = nullptr;
    const Instruction* first_instruction = nullptr;
    const Allocation* last_allocation = nullptr;  // of a base address
    const Allocation* data_allocation = nullptr;
    const Instruction* ended_at = nullptr;
    const Instruction* waits_at = nullptr;  // comes to it again: what it waits for has not arrived
    // Per vector register, the lanes that the last instruction to write it gave a value; kept for `uniform`.
    std::array<std::uint64_t, 512> written_lanes{};
  };
  void step(Wave& wave, WaveChecks& checks, const Instruction& instruction, const Effects& effects);
  void memory(Wave& wave, WaveChecks& checks, const Instruction& instruction, const Effects& effects);
  void check_bounds(Wave& wave, WaveChecks& checks, const Instruction& instruction, const Effects& effects,
                    const Runs& runs);
  void check_local_bounds(Wave& wave, const Instruction& instruction, const Effects& effects,
                          const LocalAddresses& local) const;
  void check_memory_definedness(WaveChecks& checks, const Effects& effects, const Runs& runs, UndefinedLanes& loaded);
  // Which dwords hold nothing of what a scalar load is about to get, a bit each.
  std::uint32_t undefined_scalars(const Wave& wave, const Instruction& instruction, const Effects& effects) const;
  static void check_uniform(Wave& wave, const WaveChecks& checks, const Instruction& instruction);

  bool on(Check check) const { return includes(checks_, check); }
  // What the accesses to LDS are followed for. Of a launch that is watched for its order, races and waits too.
  static constexpr std::uint32_t shadowing = static_cast<std::uint32_t>(Check::races) |
                                             static_cast<std::uint32_t>(Check::waits) |
                                             static_cast<std::uint32_t>(Check::uninitialised);
  std::uint32_t shadow_checks() const;
  // What an access to device memory must find done of what the other waves have issued. Returns what it touches.
  DeviceSpan take_place(const Wave& wave, const Effects& effects, const LaneAddresses& device);
  // Where time is kept: whether what the wave waits for is not there yet. It comes to this instruction again when it
  // is.
  bool waits_for_time(Wave& wave, WaveChecks& checks, const Instruction& instruction, Counts counts);

  std::uint32_t checks_ = 0;
  Launch* launch_ = nullptr;
  Observer* observer_ = nullptr;
  Workgroup* workgroup_ = nullptr;
  bool keeps_time_ = false;
  bool is_rdna4_ = false;
  bool shares_path_ = false;    // the waves' vector memory is in order
  SwapLoops* loops_ = nullptr;  // of the launch; null where its races are not followed
  Pace pace_;
  LdsShadow lds_;
  WorkgroupMemory memory_;
  std::vector<std::unique_ptr<WaveChecks>> waves_;
  std::vector<AccessId> oldest_local_;
  std::vector<AccessId> oldest_dma_;
  std::vector<AccessId> oldest_memory_;
};

}  // namespace wavejit::simgpu::checks
