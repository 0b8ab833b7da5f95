// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Host instruction sets that arithmetic and whole-wave accesses are compiled for (cmake/host_sets.cmake). All give the
// same bits.
#pragma once

#include <cstdint>
#include <string_view>

namespace wavejit::simgpu {

enum class HostSet : std::uint8_t { x86_64_v2, x86_64_v3, x86_64_v4 };
inline constexpr unsigned host_set_count = 3;

bool host_supports(HostSet set);
// The widest that this host supports.
HostSet best_host_set();
std::string_view name_of(HostSet set);

// Declares something in the namespace of each set: WAVEJIT_FOR_EACH_HOST_SET(WAVEJIT_DECLARE_LANE_KERNELS). What is
// declared is weak: a library may be linked with the host's set alone (cmake/demo.cmake). Builds with
// a sanitizer compile the narrowest set alone, and its names mean it too: the sources are the same
// (cmake/host_sets.cmake).
#ifdef WAVEJIT_ONE_HOST_SET
#define WAVEJIT_FOR_EACH_HOST_SET(declare) \
  declare(x86_64_v2);                      \
  namespace x86_64_v3 = x86_64_v2;         \
  namespace x86_64_v4 = x86_64_v2
#else
#define WAVEJIT_FOR_EACH_HOST_SET(declare) \
  declare(x86_64_v2);                      \
  declare(x86_64_v3);                      \
  declare(x86_64_v4)
#endif

// The one for this host, of three that were compiled for a set each.
template <typename T>
T for_this_host(T v2, T v3, T v4) {
  switch (best_host_set()) {
    case HostSet::x86_64_v4:
      return v4;
    case HostSet::x86_64_v3:
      return v3;
    case HostSet::x86_64_v2:
      break;
  }
  return v2;
}

}  // namespace wavejit::simgpu
