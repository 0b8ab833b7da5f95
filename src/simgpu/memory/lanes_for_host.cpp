#include "simgpu/memory/lane_kernels.h"
#include "simgpu/vector/vector.h"

namespace wavejit::simgpu::lanes {

const Kernels* const kernels_for_host = [] {
  switch (vector::best_host_set()) {
    case vector::HostSet::x86_64_v4:
      return &x86_64_v4::kernels;
    case vector::HostSet::x86_64_v3:
      return &x86_64_v3::kernels;
    case vector::HostSet::x86_64_v2:
      break;
  }
  return &x86_64_v2::kernels;
}();

}  // namespace wavejit::simgpu::lanes
