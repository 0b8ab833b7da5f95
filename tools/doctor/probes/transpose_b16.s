// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// settles: docs/isa.md, "LDS": which lane ds_read_b64_tr_b16 gives which element
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
  ds_read_b64_tr_b16 v[64:65], v4
  s_waitcnt lgkmcnt(0)
