# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""An attention forward in Triton, written for this project from the algorithm: what bench/peers.py compiles beside wavejit's own, and what
tests/triton runs on the simulated GPU. Imports Triton: for the Python of scripts/python_environment.py triton.

Online softmax over key tiles of 64, one workgroup a tile of query rows, tiles wholly visible apart from those at the edge, bf16 in and out,
f32 sums, row statistics in log2. Causal: the last row sees all keys, whatever the two lengths; rows that see nothing are zero.
"""
import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


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


def lanes_of(target):
    return 32 if target.startswith("gfx12") else 64


def target_of(name):
    return GPUTarget("hip", name, lanes_of(name))


def rows_of_workgroup(target):
    """As many as wavejit's workgroup has for long queries."""
    return 256 if target == "gfx950" else 128


def options_of(target):
    """Each wave has 32 rows, of 32 lanes 16, as wavejit's have."""
    return {"num_warps": rows_of_workgroup(target) * 2 // lanes_of(target), "num_stages": 2, "waves_per_eu": 2}


def attention_source(target, head_dim, causal):
    pointers = ["q", "k", "v", "o"]
    # Strides and pointers are multiples of 16, as Triton's own launcher finds out for tensors like these.
    strides = [name + end for end in ("_head", "_row") for name in pointers]
    signature = {name: "*bf16" for name in pointers} | {name: "i32" for name in strides + ["queries", "keys", "group"]}
    signature |= {"scale_log2e": "fp32", "D": "constexpr", "BLOCK_M": "constexpr", "BLOCK_N": "constexpr", "CAUSAL": "constexpr"}
    names = attention_forward.arg_names
    attributes = {(names.index(name),): [["tt.divisibility", 16]] for name in pointers + strides}
    constants = {"D": head_dim, "BLOCK_M": rows_of_workgroup(target), "BLOCK_N": 64, "CAUSAL": causal}
    return ASTSource(attention_forward, signature, constants, attributes)


def compile_attention(target, head_dim, causal):
    return triton.compile(attention_source(target, head_dim, causal), target=target_of(target), options=options_of(target))
