# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""aiter_clock.py on a code object made here with AITER's argument layout: it finds the kernel, packs what the layout says, and the clock times it.

    python3 bench/aiter_clock_test.py <clang> <libwavejit_simgpu.so>
"""
import json
import pathlib
import subprocess
import sys
import tempfile

# Slots of 16 bytes: 6 queries, 7 bytes of their rows, 15 the mask, 17 keys, 20 heads. A wave goes round once for every
# 64 keys if they are what they should be for 16 heads; else it leaves its memory, which ends the launch.
SOURCE = """
.amdgcn_target "amdgcn-amd-amdhsa--gfx942"
.text
.globl stand_in
.p2align 8
.type stand_in,@function
stand_in:
  s_load_dwordx2 s[8:9], s[0:1], 0x0
  s_load_dword s10, s[0:1], 0x60
  s_load_dword s11, s[0:1], 0x110
  s_load_dword s12, s[0:1], 0x140
  s_load_dword s13, s[0:1], 0x70
  s_load_dword s14, s[0:1], 0xf0
  s_waitcnt lgkmcnt(0)
  s_cmp_eq_u32 s10, s11
  s_cbranch_scc0 bad
  s_cmp_eq_u32 s12, 16
  s_cbranch_scc0 bad
  s_cmp_eq_u32 s13, 4096
  s_cbranch_scc0 bad
  s_cmp_eq_u32 s14, 5
  s_cbranch_scc0 bad
  s_lshr_b32 s10, s10, 6
loop:
  v_mfma_f32_32x32x8_bf16 v[8:23], v[2:3], v[4:5], v[8:23]
  s_sub_u32 s10, s10, 1
  s_cmp_lg_u32 s10, 0
  s_cbranch_scc1 loop
  v_mov_b32 v1, 0
  global_store_dword v1, v1, s[8:9]
  s_endpgm
bad:
  v_mov_b32 v2, 0
  v_mov_b32 v3, 0
  global_store_dword v[2:3], v2, off
  s_endpgm
.section .rodata,"a"
.p2align 6
.amdhsa_kernel stand_in
  .amdhsa_next_free_vgpr 128
  .amdhsa_next_free_sgpr 32
  .amdhsa_accum_offset 128
  .amdhsa_user_sgpr_kernarg_segment_ptr 1
  .amdhsa_kernarg_size 512
.end_amdhsa_kernel
.amdgpu_metadata
---
amdhsa.version: [1, 2]
amdhsa.target: amdgcn-amd-amdhsa--gfx942
amdhsa.kernels:
  - .name: stand_in
    .symbol: stand_in.kd
    .kernarg_segment_size: 512
    .kernarg_segment_align: 8
    .group_segment_fixed_size: 0
    .private_segment_fixed_size: 0
    .wavefront_size: 64
    .sgpr_count: 32
    .vgpr_count: 128
    .max_flat_workgroup_size: 512
    .args:
      - .offset: 0
        .size: 512
        .value_kind: by_value
...
.end_amdgpu_metadata
"""


def main():
    clang, library = sys.argv[1:]
    with tempfile.TemporaryDirectory(prefix="wavejit-aiter-") as folder:
        folder = pathlib.Path(folder)
        source, kernels = folder / "stand_in.s", folder / "hsa/gfx942/fmha_v3_fwd/MI300"
        source.write_text(SOURCE)
        kernels.mkdir(parents=True)
        subprocess.run([clang, "-target", "amdgcn-amd-amdhsa", "-mcpu=gfx942", source, "-o", kernels / "fwd_hd128_bf16_causal_rtna.co"],
                       check=True)
        script = pathlib.Path(__file__).with_name("aiter_clock.py")
        ran = subprocess.run([sys.executable, script, library, folder / "hsa", folder / "rows.json"], capture_output=True, text=True)
        if ran.returncode != 0:
            sys.exit(f"aiter_clock.py ended with {ran.returncode}:\n{ran.stderr}")
        rows = json.loads((folder / "rows.json").read_text())
        assert [row["keys"] for row in rows] == [1024, 2048, 4096, 8192, 16384], rows
        assert all(row["kernel"] == "stand_in" for row in rows), rows
        # 8 waves of keys ÷ 64 matrix instructions of 32 cycles: busy in proportion to the keys, and the clock saw them.
        assert all(row["matrix_busy"] > 0.1 for row in rows), rows
        assert rows[4]["cycles"] > 20 * rows[0]["cycles"], rows  # 16 times the rounds, 16 times the workgroups
        assert "gfx950" in ran.stderr and "left out" in ran.stderr, ran.stderr
        # Nothing at all is a refusal.
        empty = subprocess.run([sys.executable, script, library, folder / "hsa/gfx942"], capture_output=True, text=True)
        assert empty.returncode == 1 and "none of the kernels" in empty.stderr, empty.stderr
    print("the layout is AITER's: 5 rows")


main()
