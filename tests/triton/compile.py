# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiles the project's Triton attention for the tests: code objects, and what a launch needs to know of each, into a folder.

    compile.py <folder> <target>-d<head dim>-<causal|full>...

What is in the folder already, from the same Triton and the same kernel, stays (Triton's own cache stands beside it).
"""
import json
import os
import pathlib
import sys

folder = pathlib.Path(sys.argv[1]).resolve()
folder.mkdir(parents=True, exist_ok=True)
os.environ["TRITON_CACHE_DIR"] = str(folder) + ".cache"
os.environ.setdefault("TRITON_DEFAULT_FP_FUSION", "1")  # today's default, said aloud: else Triton 3.9 warns
sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "bench"))

from triton_attention import attention_source, compile_attention, rows_of_workgroup  # noqa: E402

for old in folder.glob("*.json"):
    old.unlink()
for case in sys.argv[2:]:
    target, head_dim, mask = case.split("-")
    dim, causal = int(head_dim.removeprefix("d")), mask == "causal"
    kernel = compile_attention(target, dim, causal)
    metadata = kernel.metadata
    signature = attention_source(target, dim, causal).signature
    (folder / f"{case}.co").write_bytes(kernel.asm["hsaco"])
    (folder / f"{case}.json").write_text(json.dumps({
        "kernel": metadata.name,
        "target": target,
        "head_dim": dim,
        "causal": causal,
        "rows": rows_of_workgroup(target),
        "threads": metadata.num_warps * metadata.warp_size,
        "lds_bytes": metadata.shared,
        "global_scratch_bytes": metadata.global_scratch_size,
        "profile_scratch_bytes": metadata.profile_scratch_size,
        "arguments": [name for name, kind in signature.items() if kind != "constexpr"],
    }))
    print(f"{case}: {len(kernel.asm['hsaco'])} bytes", flush=True)
