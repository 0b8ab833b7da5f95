// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "simgpu/process/host_set.h"

#include <array>
#include <cstddef>

namespace wavejit::simgpu {

bool host_supports(HostSet set) {
  __builtin_cpu_init();
  switch (set) {
    case HostSet::x86_64_v2:
      return __builtin_cpu_supports("x86-64-v2") != 0;
    case HostSet::x86_64_v3:
      return __builtin_cpu_supports("x86-64-v3") != 0;
    case HostSet::x86_64_v4:
      return __builtin_cpu_supports("x86-64-v4") != 0;
  }
  return false;
}

HostSet best_host_set() {
  static const HostSet best = host_supports(HostSet::x86_64_v4)   ? HostSet::x86_64_v4
                              : host_supports(HostSet::x86_64_v3) ? HostSet::x86_64_v3
                                                                  : HostSet::x86_64_v2;
  return best;
}

std::string_view name_of(HostSet set) {
  constexpr std::array<std::string_view, host_set_count> names = {"x86-64-v2", "x86-64-v3", "x86-64-v4"};
  return names[static_cast<std::size_t>(set)];
}

}  // namespace wavejit::simgpu
