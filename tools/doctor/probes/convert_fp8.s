// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// settles: src/simgpu/machine/numerics: the 8-bit format, its largest value and its NaN
// risk: 1
// targets: gfx942 gfx950
// check: bits
// inputs: floats 2
// outputs: 1
// workgroups: 16
// lds: 0
  v_mov_b32_e32 v64, 0
  v_cvt_pk_fp8_f32 v64, v16, v17
