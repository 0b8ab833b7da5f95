// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "analysis/observe.h"

#include <array>

#include "analysis/steady_state.h"
#include "simgpu/machine/memory/transfer.h"
#include "simgpu/machine/wave/wave.h"
#include "timing/lds_banks.h"

namespace wavejit::analysis {

void Recorder::before(const simgpu::Wave& wave, const simgpu::Instruction& instruction) {
  paths_[wave.index].push_back(instruction.offset_in_function);
  const std::string name = lds_access_name(instruction);
  if (name.empty()) return;
  const timing::LdsAccess* access = timing::find_lds_access(timing_, name);
  if (access == nullptr) {
    unknown_.insert(name);
    return;
  }
  std::array<std::uint32_t, simgpu::lane_places> addresses{};
  for (unsigned lane = 0; lane < simgpu::lane_places; ++lane) {
    addresses[lane] =
        instruction.lds ? simgpu::lds_dma_address(wave, instruction, lane, static_cast<unsigned>(access->bytes))
                        : wave.vgpr[instruction.source[0].index][lane] + static_cast<std::uint32_t>(instruction.offset);
  }
  const timing::BankUse use = timing::bank_use(*access, addresses, wave.exec());
  LdsUse& total = lds_[instruction.offset_in_function];
  total.name = name;
  ++total.visits;
  total.phases += use.phases;
  total.extra += use.extra;
}

}  // namespace wavejit::analysis
