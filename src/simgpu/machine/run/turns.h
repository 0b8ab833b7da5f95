// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Workgroups of a launch that share one host thread.
#pragma once

#include <cstdint>
#include <functional>

#include "simgpu/machine/run/worker_pool.h"

namespace wavejit::simgpu {

struct Launch;

// Runs workgroup `id_of(first)` to its end. One that has run for long may wait for another: then others of the launch
// begin, and take turns with it on this thread. Those of a cooperative launch do so from the start, since each waits
// for all. False when the launch is to hand out no more.
bool run_in_turns(Launch& launch, WorkgroupRunner& runner, std::uint64_t first, const WorkerPool::Take& take,
                  const std::function<std::uint64_t(std::uint64_t)>& id_of);

}  // namespace wavejit::simgpu
