// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// settles: docs/isa.md, "LDS": where buffer_load_dword … lds puts a lane's dword
// risk: 2
// targets: gfx942 gfx950
// check: bits
// inputs: numbers 1
// outputs: 1
// workgroups: 1
// lds: 4096
  s_mov_b32 s12, s8
  s_and_b32 s13, s9, 0xffff
  s_mov_b32 s14, 256
  s_mov_b32 s15, 0x27000
  v_xor_b32_e32 v4, 0xfc, v2
  s_mov_b32 m0, 1024
  s_nop 0
  buffer_load_dword v4, s[12:15], 0 offen lds
  s_waitcnt vmcnt(0)
  v_lshlrev_b32_e32 v5, 2, v0
  ds_read_b32 v64, v5 offset:1024
  s_waitcnt lgkmcnt(0)
