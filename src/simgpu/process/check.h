// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What can be checked while a kernel runs. Each check is one bit, one name (WAVEJIT_SIM_CHECK) and one paragraph of
// docs/simulated-gpu.md.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace wavejit::simgpu {

enum class Check : std::uint32_t {
  waits = 1,          // results used or overwritten before the counter that covers them was waited for
  races = 2,          // LDS or device memory touched by two waves, or workgroups, with nothing that orders them
  uninitialised = 4,  // what was never written reaches an address, a branch or memory
  bounds = 8,         // accesses that leave the allocation that their base address lies in
  hazards = 16,       // wait states that software owes the hardware
  exec = 32,          // EXEC not full where an instruction works on all lanes whatever EXEC says
  barriers = 64,      // barriers that not all waves of a workgroup reach
  uniform = 128,      // lanes that differ where one of them speaks for all
};

inline constexpr std::uint32_t all_checks = 255;

struct NamedCheck {
  std::string_view name;
  Check check;
};
inline constexpr std::array<NamedCheck, 8> named_checks = {{{"waits", Check::waits},
                                                            {"races", Check::races},
                                                            {"uninitialised", Check::uninitialised},
                                                            {"bounds", Check::bounds},
                                                            {"hazards", Check::hazards},
                                                            {"exec", Check::exec},
                                                            {"barriers", Check::barriers},
                                                            {"uniform", Check::uniform}}};

constexpr std::string_view name_of(Check check) {
  for (const NamedCheck& named : named_checks) {
    if (named.check == check) return named.name;
  }
  return "fault";
}

constexpr bool includes(std::uint32_t checks, Check check) { return (checks & static_cast<std::uint32_t>(check)) != 0; }

}  // namespace wavejit::simgpu
