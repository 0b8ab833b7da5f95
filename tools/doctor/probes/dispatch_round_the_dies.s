// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// settles: docs/timing-model.md: consecutive workgroups go to the dies in turn; the XCD swizzle rests on it
// risk: 1
// targets: gfx942 gfx950
// check: round
// inputs: numbers 1
// outputs: 1
// workgroups: 64
// lds: 0
  s_getreg_b32 s12, hwreg(HW_REG_XCC_ID, 0, 4)
  v_mov_b32_e32 v64, s12
