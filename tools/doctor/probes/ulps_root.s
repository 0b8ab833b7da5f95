// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// settles: src/simgpu/machine/numerics, v_sqrt_f32 is within 0.51 ulp (the ISA allows 1)
// risk: 1
// targets: gfx942 gfx950
// check: ulps root
// inputs: positive 1
// outputs: 1
// workgroups: 32
// lds: 0
  v_sqrt_f32_e32 v64, v16
  s_nop 1
