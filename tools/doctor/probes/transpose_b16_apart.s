// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// settles: docs/isa.md, "LDS": ds_read_b64_tr_b16 takes each lane's own address
// risk: 2
// targets: gfx950
// check: bits
// inputs: numbers 2
// outputs: 2
// workgroups: 1
// lds: 512
  v_lshlrev_b32_e32 v4, 3, v0
  ds_write_b64 v4, v[16:17]
  s_waitcnt lgkmcnt(0)
  // Lane 4 r + c of sixteen: row r of every fourth, eight bytes c.
  v_and_b32_e32 v5, 15, v0
  v_lshrrev_b32_e32 v6, 4, v0
  v_lshlrev_b32_e32 v5, 5, v5
  v_lshl_add_u32 v5, v6, 3, v5
  ds_read_b64_tr_b16 v[64:65], v5
  s_waitcnt lgkmcnt(0)
