// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// settles: docs/isa.md, "LDS": M0 counts with more than 16 bits (dualwave pipelines keep tiles there)
// risk: 3
// targets: gfx950
// check: bits
// inputs: numbers 4
// outputs: 8
// workgroups: 1
// lds: 98304
  s_mov_b32 s12, s8
  s_and_b32 s13, s9, 0xffff
  s_mov_b32 s14, 1024
  s_mov_b32 s15, 0x27000
  v_mov_b32_e32 v4, 0
  v_mov_b32_e32 v5, 0
  v_mov_b32_e32 v6, 0
  v_mov_b32_e32 v7, 0
  v_lshlrev_b32_e32 v8, 4, v0
  v_add_u32_e32 v9, 0x4000, v8
  v_add_u32_e32 v10, 0x14000, v8
  ds_write_b128 v9, v[4:7]
  ds_write_b128 v10, v[4:7]
  s_waitcnt lgkmcnt(0)
  s_mov_b32 m0, 0x14000
  s_nop 0
  buffer_load_dwordx4 v2, s[12:15], 0 offen lds
  s_waitcnt vmcnt(0)
  // Where it goes if 16 bits count, and where it should go.
  ds_read_b128 v[64:67], v9
  ds_read_b128 v[68:71], v10
  s_waitcnt lgkmcnt(0)
