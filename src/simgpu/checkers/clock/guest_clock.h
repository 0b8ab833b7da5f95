// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What clocks show that a kernel reads (s_memtime, s_memrealtime, RDNA4's shader cycles), while its launch is timed.
//
// A wave that reads a clock is told when it would issue that instruction: what the waves of its workgroup have executed
// so far is replayed, alone on a compute unit. A loop that waits for a clock reads it often. So replays may take a
// number of cycles, and a multiple of what the workgroup has run beyond that; what lies between two of them goes on at
// the pace that they have shown. Every workgroup begins with its launch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "simgpu/checkers/clock/compute_unit.h"
#include "simgpu/checkers/clock/launch_memory.h"
#include "simgpu/machine/launch/observer.h"
#include "simgpu/process/simulated_time.h"

namespace wavejit::simgpu {
struct Launch;
}

namespace wavejit::simgpu::clock {

// Whether some instruction of the kernel reads a clock. Functions that it calls are not looked at.
bool reads_clock(const Launch& launch);

// Sees all workgroups of a launch, and hands on to `recorder` what that wants to see.
class GuestClock final : public Observer {
 public:
  GuestClock(Observer& recorder, const Launch& launch, const LaunchBegin& begin, LaunchMemory memory);
  bool wants(std::uint64_t /*workgroup*/) const override { return true; }
  void before(const Wave& wave, const Instruction& instruction) override;
  std::optional<GuestTime> time(const Wave& wave) override;

 private:
  struct WaveTime {
    std::uint64_t shown = 0;     // last, in cycles of the workgroup
    std::uint64_t executed = 0;  // instructions at the last replay
    double then = 0;             // its time
    double pace = 0;             // cycles an instruction, up to it
  };
  // A workgroup that runs, on one host thread.
  struct Guest {
    explicit Guest(Program its_program) : program(std::move(its_program)) {}
    Program program;
    WorkgroupTrace trace;
    std::vector<WaveTime> waves;
    std::size_t records = 0;
    std::size_t ended = 0;  // waves
    double replayed = 0;    // cycles
  };
  Guest& guest_of(const Wave& wave);
  // Nothing where it would cost too much.
  std::optional<double> replay(Guest& guest, std::size_t wave, double now) const;

  Observer* recorder_;
  const Launch* launch_;
  const timing::Timing* timing_;
  LaunchBegin begin_;
  std::uint64_t before_;  // cycles of the launch before its first instruction
  Neighbours neighbours_;
  double share_;  // of what replays may take: where many workgroups run, each may take less
  std::mutex mutex_;
  std::unordered_map<std::uint64_t, std::unique_ptr<Guest>> guests_;
};

}  // namespace wavejit::simgpu::clock
