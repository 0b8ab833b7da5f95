// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Loops with the instruction mix of published attention kernels whose utilisation others measured. The mixes are
// published (counts by kind, tiles, waves, workgroups); the order within a cluster is not, so that two of ours bound
// it.
#pragma once

#include <string>

namespace wavejit::simgpu::testing {

// gfx950, head dim 64, a maximum fixed in advance, row sums on the matrix pipe; two groups of four waves that take
// turns at memory and at matrix work, two workgroups a compute unit. One turn is two tiles of 64 keys.
struct FixedMaximumMix {
  bool woven = true;  // softmax between the matrix instructions; else before those of its cluster
  bool exponentials = true;
  bool dma = true;
  bool value_reads = true;
  bool stagger = true;
  bool raised_priority = false;  // around the second product
};
struct MixTime {
  double cycles = 0;       // of one turn; negative: it could not be run
  double matrix_busy = 0;  // 0 to 1
  double beside = 0;       // of the cycles in which the pipe works, those in which the vector port works too
};
MixTime time_mix(const FixedMaximumMix& mix);

// gfx950, head dim 128: FlyDSL's dual-wave kernel, of which thread traces are published. Two groups of four waves take
// turns at memory and at matrix work, one workgroup a compute unit. One turn is two tiles of 64 keys: 64 matrix
// instructions a wave, 64 exponentials, 134 additions, 34 maxima, 32 conversions, 96 reads of LDS, 8 DMA, 8 barriers,
// 16 no-ops. The order of its clusters is public, that within one is not.
struct DualwaveMix {
  bool stagger = true;
  bool raised_priority = true;  // around the second product
  bool lazy = true;             // no rescale of O; else one for every tile
  bool pacing = true;           // six of the no-ops
};
MixTime time_dualwave_mix(const DualwaveMix& mix);

// gfx942, head dim 128, bf16 rounded to nearest: AMD's assembly. One turn is two tiles of 32 keys, eight waves.
MixTime time_rounding_mix(bool woven);

}  // namespace wavejit::simgpu::testing
