// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// settles: docs/simulated-gpu.md, "Buffers": lanes past num_records read zero, and soffset counts
// risk: 2
// targets: gfx942 gfx950
// check: bits
// inputs: numbers 4
// outputs: 8
// workgroups: 1
// lds: 0
  // 512 bytes count; the allocation holds 1,024, so that nothing outside is touched whatever counts.
  s_mov_b32 s12, s8
  s_and_b32 s13, s9, 0xffff
  s_mov_b32 s14, 512
  s_mov_b32 s15, 0x27000
  s_movk_i32 s16, 256
  v_lshlrev_b32_e32 v4, 3, v0
  buffer_load_dwordx4 v[64:67], v2, s[12:15], 0 offen
  buffer_load_dwordx2 v[68:69], v4, s[12:15], s16 offen
  buffer_load_dwordx2 v[70:71], v4, s[12:15], 0 offen offset:256
  s_waitcnt vmcnt(0)
