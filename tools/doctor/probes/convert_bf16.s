// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// settles: docs/isa.md: v_cvt_pk_bf16_f32 rounds to nearest even; NaN and denormals as src/simgpu/machine/vector has them
// risk: 1
// targets: gfx950
// check: bits
// inputs: floats 2
// outputs: 1
// workgroups: 16
// lds: 0
  v_cvt_pk_bf16_f32 v64, v16, v17
