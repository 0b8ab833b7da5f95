// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A workgroup that runs: its waves from their first registers to their end.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "simgpu/machine/launch/launch.h"
#include "simgpu/machine/launch/seats.h"
#include "simgpu/machine/numerics/noise.h"
#include "simgpu/machine/run/wave_storage.h"
#include "simgpu/machine/wave/wave.h"

namespace wavejit::simgpu {

// Buffers that one host thread uses for one workgroup after another.
class WorkgroupRunner {
 public:
  WorkgroupRunner();
  ~WorkgroupRunner();
  WorkgroupRunner(const WorkgroupRunner&) = delete;
  WorkgroupRunner& operator=(const WorkgroupRunner&) = delete;
  void begin(Launch& launch, std::uint64_t linear_id);
  // Runs about `instructions` instructions of its waves, or until all of them have only slept for a while. True when
  // the workgroup is over.
  bool advance(std::int64_t instructions);
  // What ran is counted.
  void finish() const;
  std::uint64_t workgroup() const { return workgroup_.linear_id; }

 private:
  void prepare(const Launch& launch, Workgroup& workgroup);
  void prepare_wave(const Launch& launch, const Workgroup& workgroup, Wave& wave, unsigned index);
  void pass_barrier();
  void pass_completed_barrier();
  std::int64_t choose_wave();
  void run_slice_of(Wave& wave, std::int64_t instructions);
  void give_up_endless_loop(const Wave& wave);
  void say_when_long(const Wave& wave);

  // The launch of the workgroup that runs.
  Launch* launch_ = nullptr;
  Workgroup workgroup_;
  Observer* observer_ = nullptr;
  Checker* checking_ = nullptr;  // `checker_`, where it is wanted
  Random random_{0};
  std::vector<Wave*> ready_;
  std::size_t turn_ = 0;
  std::size_t choice_ = 0;  // among `ready_`: whose slice it is
  std::int64_t slice_ = 0;  // what is left of it
  bool is_rdna4_ = false;
  unsigned sleeps_ = 0;  // since a wave last did anything else
  std::chrono::steady_clock::time_point began_;
  std::int64_t ran_ = 0;  // instructions since the host's clock was looked at
  std::size_t ended_ = 0;
  bool stopped_ = false;

  WaveBlock storage_;
  std::vector<Wave*> waves_;
  std::vector<std::uint64_t> lds_;
  std::vector<std::uint64_t> scratch_;
  std::unique_ptr<Checker> checker_;  // made at the first launch that wants one
};

}  // namespace wavejit::simgpu
