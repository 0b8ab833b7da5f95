// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "simgpu/machine/memory/lane_kernels.h"
#include "simgpu/process/host_set.h"

namespace wavejit::simgpu::lanes {

const KernelsOfSizes* const kernels_for_host =
    for_this_host(&x86_64_v2::kernels, &x86_64_v3::kernels, &x86_64_v4::kernels);

}  // namespace wavejit::simgpu::lanes
