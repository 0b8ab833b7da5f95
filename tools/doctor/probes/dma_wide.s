// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// settles: docs/isa.md, "LDS": 16 bytes a lane follow each other without gaps
// risk: 2
// targets: gfx950
// check: bits
// inputs: numbers 4
// outputs: 4
// workgroups: 1
// lds: 4096
  s_mov_b32 s12, s8
  s_and_b32 s13, s9, 0xffff
  s_mov_b32 s14, 1024
  s_mov_b32 s15, 0x27000
  s_mov_b32 m0, 2048
  s_nop 0
  buffer_load_dwordx4 v2, s[12:15], 0 offen lds
  s_waitcnt vmcnt(0)
  v_lshlrev_b32_e32 v5, 4, v0
  ds_read_b128 v[64:67], v5 offset:2048
  s_waitcnt lgkmcnt(0)
