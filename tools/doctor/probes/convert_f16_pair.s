// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// settles: src/simgpu/machine/vector: v_cvt_pk_f16_f32 rounds to nearest even
// risk: 1
// targets: gfx950
// check: bits
// inputs: floats 2
// outputs: 1
// workgroups: 16
// lds: 0
  v_cvt_pk_f16_f32 v64, v16, v17
