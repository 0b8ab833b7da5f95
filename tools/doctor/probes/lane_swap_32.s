// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// settles: docs/isa.md, "Moving between lanes": which halves v_permlane32_swap_b32 exchanges
// risk: 1
// targets: gfx950
// check: bits
// inputs: numbers 2
// outputs: 2
// workgroups: 1
// lds: 0
  v_mov_b32_e32 v64, v16
  v_mov_b32_e32 v65, v17
  s_nop 4
  v_permlane32_swap_b32_e32 v64, v65
