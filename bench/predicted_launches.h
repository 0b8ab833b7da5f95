// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the clock predicts for whole calls: all launches, and what each that waits for another loses.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "targets/targets.h"
#include "tools/exit_code.h"
#include "tools/worker_processes.h"

namespace wavejit::bench {

struct LaunchTask {
  const targets::Target* target = nullptr;
  std::string descriptor;
  bool warm = false;       // timed once more, as it is when the last level cache has all that it reads
  bool captured = false;   // for attention_forward: the launch of a graph that has the call, its workspace the caller's
  std::string pipeline{};  // the engine's option; empty: by default
};

// Lines of memory by who has them.
struct LaunchLines {
  double l2 = 0;  // that L1 has not got: all of these pass L2
  double last_level = 0;
  double memory = 0;
};

struct OneLaunch {
  std::string name;        // the kernel's
  std::uint64_t wait = 0;  // for the launch before it
  std::uint64_t cold = 0;  // those of its cycles until code and arguments are there
  std::uint64_t cycles = 0;
  double busy = 0;  // matrix pipes, 0 to 1
  double steady_busy = 0;
  LaunchLines lines;  // that all workgroups load, if all do as those that were timed
};

// The prediction for a call of any family.
struct LaunchPrediction {
  std::string kernel;  // "dualwave 256x64"
  int launches = 0;
  std::uint64_t cycles = 0;
  double busy = 0;                // matrix pipes, 0 to 1
  double steady_busy = 0;         // the longest launch's, in the middle half of a compute unit's time
  std::uint64_t warm_cycles = 0;  // 0: not asked for
  std::vector<OneLaunch> each;
};

// In as many processes at a time as there are processors; says on stderr how far it is. An engine's memory lies where
// the calls before left room, and where arrays lie moves some cycles by up to 0.1 %: with one_task each call is a
// process's first, and has the same cycles beside any others.
tools::Result<std::vector<LaunchPrediction>> predict_launches(
    const std::vector<LaunchTask>& tasks, tools::WorkerLife life = tools::WorkerLife::all_its_tasks);

}  // namespace wavejit::bench
