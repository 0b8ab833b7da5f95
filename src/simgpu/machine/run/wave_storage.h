// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Where the waves of a workgroup are kept.
#pragma once

#include <cstddef>
#include <memory>

#include "simgpu/machine/wave/wave.h"

namespace wavejit::simgpu {

struct FreeWaves {
  void operator()(Wave* waves) const;
};
using WaveBlock = std::unique_ptr<Wave[], FreeWaves>;

// Waves, one behind the other, in large pages of the host where it has them: a workgroup's registers are hundreds of
// ordinary pages.
WaveBlock make_waves(std::size_t count);

}  // namespace wavejit::simgpu
