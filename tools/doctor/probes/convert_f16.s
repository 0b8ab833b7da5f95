// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// settles: src/simgpu/machine/vector: v_cvt_f16_f32 rounds as MODE says and keeps denormals
// risk: 1
// targets: gfx942 gfx950
// check: bits
// inputs: floats 2
// outputs: 1
// workgroups: 16
// lds: 0
  v_cvt_f16_f32_e32 v64, v16
