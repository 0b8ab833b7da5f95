"""One compile of an attention forward kernel by Triton, in a process where everything else is loaded. Prints one JSON line.

    peers_triton.py <target> <head dim> <full|causal> <cold|hit> <cache directory>

The kernel is the plain form of what wavejit's dual-wave pipeline computes: online softmax over key tiles of 64, one workgroup a
tile of query rows, tiles wholly visible apart from those at the edge, bf16 in and out, f32 sums, row statistics in log2.
Compiling needs no GPU: the target is given. `cold` wants an empty cache directory, `hit` one that `cold` has filled.
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
from triton.backends.compiler import GPUTarget  # noqa: E402
from triton.compiler import ASTSource  # noqa: E402

imported = time.perf_counter()


@triton.jit
def attend_tiles(acc, row_sum, row_max, q, k_tile, v_tile, k_stride, v_stride, first, last, keys, diagonal, rows, scale_log2e,
                 BLOCK_N: tl.constexpr, EDGE: tl.constexpr, CAUSAL: tl.constexpr):
    columns = tl.arange(0, BLOCK_N)
    for start in range(first, last, BLOCK_N):
        if EDGE:
            k = tl.load(k_tile, mask=(start + columns)[None, :] < keys, other=0.0)
        else:
            k = tl.load(k_tile)
        scores = tl.dot(q, k)
        if EDGE:
            visible = (start + columns)[None, :] < keys
            if CAUSAL:
                visible = visible & ((start + columns)[None, :] <= (rows + diagonal)[:, None])
            scores = tl.where(visible, scores, float("-inf"))
        new_max = tl.maximum(row_max, tl.max(scores, 1) * scale_log2e)
        shift = tl.where(new_max == float("-inf"), 0.0, new_max)
        weights = tl.math.exp2(scores * scale_log2e - shift[:, None])
        factor = tl.math.exp2(row_max - shift)
        row_sum = row_sum * factor + tl.sum(weights, 1)
        acc = acc * factor[:, None]
        if EDGE:
            v = tl.load(v_tile, mask=(start + columns)[:, None] < keys, other=0.0)
        else:
            v = tl.load(v_tile)
        acc = tl.dot(weights.to(v.dtype), v, acc)
        row_max = new_max
        k_tile += BLOCK_N * k_stride
        v_tile += BLOCK_N * v_stride
    return acc, row_sum, row_max, k_tile, v_tile


@triton.jit
def attention_forward(q, k, v, o, q_head, k_head, v_head, o_head, q_row, k_row, v_row, o_row, queries, keys, group, scale_log2e,
                      D: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, CAUSAL: tl.constexpr):
    head = tl.program_id(0)
    first_row = tl.program_id(1) * BLOCK_M
    rows = first_row + tl.arange(0, BLOCK_M)
    columns = tl.arange(0, BLOCK_N)
    dims = tl.arange(0, D)
    kv_head = head // group
    q_tile = tl.load(q + head * q_head + rows[:, None] * q_row + dims[None, :], mask=rows[:, None] < queries, other=0.0)
    k_tile = k + kv_head * k_head + columns[None, :] * k_row + dims[:, None]
    v_tile = v + kv_head * v_head + columns[:, None] * v_row + dims[None, :]
    acc = tl.zeros([BLOCK_M, D], dtype=tl.float32)
    row_sum = tl.zeros([BLOCK_M], dtype=tl.float32)
    row_max = tl.full([BLOCK_M], float("-inf"), dtype=tl.float32)
    diagonal = keys - queries
    seen = keys
    whole = keys // BLOCK_N * BLOCK_N
    if CAUSAL:
        seen = tl.minimum(keys, tl.maximum(first_row + BLOCK_M + diagonal, 0))
        whole = tl.minimum(whole, tl.maximum(first_row + diagonal + 1, 0) // BLOCK_N * BLOCK_N)
    acc, row_sum, row_max, k_tile, v_tile = attend_tiles(acc, row_sum, row_max, q_tile, k_tile, v_tile, k_row, v_row, 0, whole, keys,
                                                         diagonal, rows, scale_log2e, BLOCK_N, False, CAUSAL)
    acc, row_sum, row_max, k_tile, v_tile = attend_tiles(acc, row_sum, row_max, q_tile, k_tile, v_tile, k_row, v_row, whole, seen, keys,
                                                         diagonal, rows, scale_log2e, BLOCK_N, True, CAUSAL)
    inverse = tl.where(row_sum == 0.0, 0.0, 1.0 / row_sum)
    tl.store(o + head * o_head + rows[:, None] * o_row + dims[None, :], (acc * inverse[:, None]).to(o.dtype.element_ty),
             mask=rows[:, None] < queries)


@triton.jit
def something_else(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, mask=at < n) * 2.0, mask=at < n)


gpu = GPUTarget("hip", target, 64)
divisible = [["tt.divisibility", 16]]


def attention_source():
    pointers = ["q", "k", "v", "o"]
    # Strides and pointers are multiples of 16, as Triton's own launcher finds out for tensors like these.
    strides = [name + end for end in ("_head", "_row") for name in pointers]
    signature = {name: "*bf16" for name in pointers} | {name: "i32" for name in strides + ["queries", "keys", "group"]}
    signature |= {"scale_log2e": "fp32", "D": "constexpr", "BLOCK_M": "constexpr", "BLOCK_N": "constexpr", "CAUSAL": "constexpr"}
    names = attention_forward.arg_names
    attributes = {(names.index(name),): divisible for name in pointers + strides}
    constants = {"D": head_dim, "BLOCK_M": block_m, "BLOCK_N": 64, "CAUSAL": mask == "causal"}
    return ASTSource(attention_forward, signature, constants, attributes)


# The rows of wavejit's workgroup for long queries, 32 of them a wave.
block_m = 256 if target == "gfx950" else 128
options = {"num_warps": block_m // 32, "num_stages": 2, "waves_per_eu": 2}

splits = []


def listen(*, times, cache_hit, **_):
    splits.append((cache_hit, times))


triton.knobs.compilation.listener = listen

# Everything else: back end, dialects, code generator, the hash over Triton's own files.
other = ASTSource(something_else, {"x": "*fp32", "y": "*fp32", "n": "i32", "BLOCK": "constexpr"}, {"BLOCK": 256}, {})
triton.compile(other, target=gpu, options={"num_warps": 4})
loaded, loaded_cpu = time.perf_counter(), time.process_time()

kernel = triton.compile(attention_source(), target=gpu, options=options)
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
    "matrix_instructions": assembly.count("v_mfma_"),
    "spills": sum(int(line.split(":")[1]) for line in assembly.splitlines() if "vgpr_spill_count:" in line),
}))
