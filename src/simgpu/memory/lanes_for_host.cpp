#include "simgpu/memory/lane_kernels.h"
#include "simgpu/vector/vector.h"

namespace wavejit::simgpu::lanes {

const Kernels& kernels() {
  static const Kernels& chosen = [] -> const Kernels& {
    switch (vector::best_host_set()) {
      case vector::HostSet::x86_64_v4:
        return x86_64_v4::kernels;
      case vector::HostSet::x86_64_v3:
        return x86_64_v3::kernels;
      case vector::HostSet::x86_64_v2:
        break;
    }
    return x86_64_v2::kernels;
  }();
  return chosen;
}

}  // namespace wavejit::simgpu::lanes
