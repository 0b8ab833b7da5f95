// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// PM4 commands, as vendor packets carry them: the runtime uses them to invalidate caches after it loaded code.
#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace wavejit::simgpu::queues {

// An INDIRECT_BUFFER command and what it points to. The text names the command that is not known; empty: done.
std::string run_pm4(const std::array<std::uint32_t, 4>& command);

}  // namespace wavejit::simgpu::queues
