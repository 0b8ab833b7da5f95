// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// One call, captured into a graph as an engine captures a decode step, and one launch of that graph.
#pragma once

#include <cstddef>

#include "templates/attention_forward/program/device_case.h"
#include "tools/exit_code.h"
#include "tools/simulated_gpu.h"

namespace wavejit::bench {

// The workspace is the caller's, as large as the call asks for. The call must have run before, so that its kernels are
// loaded. Answers how many nodes the graph has: nothing runs while it is captured.
tools::Result<std::size_t> launch_captured(const tools::SimulatedGpu& gpu, wavejit_engine* engine,
                                           attention_forward::program::DeviceCase& call);

}  // namespace wavejit::bench
