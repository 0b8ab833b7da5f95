# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One compile of an attention forward kernel by Triton, in a process where everything else is loaded. Prints one JSON line.

    peers_triton.py <target> <head dim> <full|causal> <cold|hit> <cache directory>

The kernel (triton_attention.py) is the plain form of what wavejit's dual-wave pipeline computes. Compiling needs no GPU: the target is
given. `cold` wants an empty cache directory, `hit` one that `cold` has filled.
"""
import json
import os
import sys
import time

target, head_dim, mask, mode, cache = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4], sys.argv[5]
os.environ["TRITON_CACHE_DIR"] = cache
os.environ.setdefault("TRITON_DEFAULT_FP_FUSION", "1")  # today's default, said aloud: else Triton 3.9 warns
started = time.perf_counter()

import triton  # noqa: E402
import triton.language as tl  # noqa: E402
from triton.compiler import ASTSource  # noqa: E402

from triton_attention import compile_attention, target_of  # noqa: E402

imported = time.perf_counter()


@triton.jit
def something_else(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, mask=at < n) * 2.0, mask=at < n)


splits = []


def listen(*, times, cache_hit, **_):
    splits.append((cache_hit, times))


triton.knobs.compilation.listener = listen

# Everything else: back end, dialects, code generator, the hash over Triton's own files.
other = ASTSource(something_else, {"x": "*fp32", "y": "*fp32", "n": "i32", "BLOCK": "constexpr"}, {"BLOCK": 256}, {})
triton.compile(other, target=target_of(target), options={"num_warps": 4})
loaded, loaded_cpu = time.perf_counter(), time.process_time()

kernel = compile_attention(target, head_dim, mask == "causal")
code_object = kernel.asm["hsaco"]
finished, finished_cpu = time.perf_counter(), time.process_time()

hit, times = splits[-1]
if hit != (mode == "hit"):
    sys.exit(f"{mode} was asked for; Triton's cache says hit={hit}")
split = {"ast_to_ttir": times.ir_initialization / 1e3, "store": times.store_results / 1e3}
for stage, microseconds in times.lowering_stages:
    split[stage] = microseconds / 1e3
assembly = kernel.asm["amdgcn"]
print(json.dumps({
    "version": triton.__version__,
    "ms": (finished - loaded) * 1e3,
    "cpu_ms": (finished_cpu - loaded_cpu) * 1e3,
    "import_ms": (imported - started) * 1e3,
    "others_ms": (loaded - imported) * 1e3,
    "split_ms": split,
    "code_object_bytes": len(code_object),
    "matrix_instructions": assembly.count("v_mfma_") + assembly.count("v_wmma_"),
    "spills": sum(int(line.split(":")[1]) for line in assembly.splitlines() if "vgpr_spill_count:" in line),
}))
