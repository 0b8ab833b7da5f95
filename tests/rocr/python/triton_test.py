# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Triton's own AMD driver under AMD's own runtime, on a simulated GPU: kernels that it compiles and launches, against float64.

    triton_test.py sample|whole|checked [<regular expression of names>]

checked: as whole, for `wavejit sim --check all`, but for kernels in which the checks find what is known (KNOWN_FINDINGS).
The module torch that the driver imports is torch_stub/torch.py. Prints counts, and a line for each result that is wrong.
"""
import math
import pathlib
import re
import sys
import time

import numpy
import torch
import triton
import triton.language as tl

import judge
import triton_kernels as kernels
from small_floats import SMALL, decoded_fp4, decoded_small

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "bench"))
from triton_attention import attention_forward  # noqa: E402

KINDS = {"f64": torch.float64, "f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}
TARGET = triton.runtime.driver.active.get_current_target().arch
VERDICT = judge.Judge()
RANDOM = numpy.random.default_rng(11)
LAUNCHES = 0
# check, target, first argument: what is wrong with the kernel that Triton's compiler makes.
KNOWN_FINDINGS = {
    ("check_attention_gradients", "gfx942", "f16"): "a wait state fewer between v_mfma_f32_32x32x8 and v_pk_add_f32 than LLVM's own table asks for, where a branch is taken",
    ("check_attention_gradients", "gfx942", "bf16"): "the same",
    # Ours: which bits a vector instruction with a constant looks at is not followed.
    ("check_elements", "gfx950", 1000): "uniform: a wave's number behind v_bitop3_b32 is not seen as one",
}


def device(values, kind):
    """float64 values that the type holds exactly, on the device."""
    if kind == "bf16":
        return torch.from_held((values.astype(numpy.float32).view(numpy.uint32) >> 16).astype(numpy.uint16), torch.bfloat16)
    return torch.from_held(values, KINDS[kind])


def host(tensor):
    held = tensor.held()
    if tensor.dtype == torch.bfloat16:
        held = (held.astype(numpy.uint32) << 16).view(numpy.float32)
    return held.astype(numpy.float64) if held.dtype.kind == "f" else held


def drawn(kind, *shape, scale=1.0):
    return judge.rounded(RANDOM.standard_normal(shape) * scale, kind)


def empty(kind, *shape):
    """Full of what is no number, so that what is not written shows."""
    return device(numpy.full(shape, numpy.nan), kind)


def launch(kernel, grid, *arguments, **more):
    global LAUNCHES
    LAUNCHES += 1
    kernel[grid](*arguments, **more)
    torch.cuda.synchronize()


def softmax(x):
    weights = numpy.exp(x - x.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True)


def check_softmax(kind, rows, columns, warps):
    x = drawn(kind, rows, columns, scale=3.0)
    y = empty(kind, rows, columns)
    launch(kernels.softmax_rows, (rows,), device(x, kind), y, columns, columns, columns, BLOCK=triton.next_power_of_2(columns), num_warps=warps)
    VERDICT.compare(f"softmax {kind} {rows}x{columns}", host(y), softmax(x), kind, 16.0 if kind == "f32" else 2.0)


def check_layer_norm(kind, rows, columns):
    x, above = drawn(kind, rows, columns), drawn(kind, rows, columns)
    scale, shift = drawn("f32", columns), drawn("f32", columns)
    y, means, inverses = empty(kind, rows, columns), empty("f32", rows), empty("f32", rows)
    name = f"layer norm {kind} {rows}x{columns}"
    launch(kernels.layer_norm_rows, (rows,), device(x, kind), y, device(scale, "f32"), device(shift, "f32"), means, inverses, columns, columns, 1e-5,
           BLOCK=128, num_warps=4)
    centred = x - x.mean(-1, keepdims=True)
    inverse = 1 / numpy.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5)
    normal = centred * inverse
    units = 16.0 if kind == "f32" else 2.0
    VERDICT.compare(name, host(y), normal * scale + shift, kind, units)
    VERDICT.compare(f"{name}, inverse deviations", host(inverses), inverse[:, 0], "f32", 16.0)
    x_gradient, sums = empty(kind, rows, columns), [device(numpy.zeros(columns), "f32") for _ in range(2)]
    launch(kernels.layer_norm_gradient, (rows,), device(x, kind), device(above, kind), device(scale, "f32"), means, inverses, x_gradient, *sums, columns,
           columns, BLOCK=triton.next_power_of_2(columns), num_warps=4)
    weighted = above * scale
    expected = (weighted - weighted.mean(-1, keepdims=True) - normal * (weighted * normal).mean(-1, keepdims=True)) * inverse
    VERDICT.compare(f"{name}, gradient of x", host(x_gradient), expected, kind, 4 * units)
    VERDICT.compare(f"{name}, gradient of scale", host(sums[0]), (above * normal).sum(0), "f32", 64.0)
    VERDICT.compare(f"{name}, gradient of shift", host(sums[1]), above.sum(0), "f32", 64.0)


def check_product(kind, m, n, k, blocks=(64, 64, 32), warps=4, stages=2, by_columns=False, out=None, precision="ieee"):
    a, b = drawn(kind, m, k), drawn(kind, k, n)
    out = out or kind
    c = empty(out, m, n)
    right, strides = (device(b.T.copy(), kind), (1, k)) if by_columns else (device(b, kind), (n, 1))
    tiles = triton.cdiv(m, blocks[0]) * triton.cdiv(n, blocks[1])
    launch(kernels.product, (tiles,), device(a, kind), right, c, m, n, k, k, 1, *strides, n, BLOCK_M=blocks[0], BLOCK_N=blocks[1], BLOCK_K=blocks[2],
           GROUP=4, SUM=tl.float64 if kind == "f64" else tl.float32, PRECISION=precision, num_warps=warps, num_stages=stages)
    name = f"product {kind} {m}x{n}x{k} in {'x'.join(map(str, blocks))}, {warps} waves, {stages} stages{', by columns' if by_columns else ''}, {precision}, to {out}"
    # tf32 keeps as many bits of its operands as float16 has: xf32 instructions, where a target has them.
    kept = "f16" if precision == "tf32" else out
    VERDICT.compare(name, host(c), a @ b, kept, 32.0 if kept in ("f32", "f64") else 2.0)


def check_product_of_bytes(m, n, k, blocks=(64, 64, 64)):
    a, b = (RANDOM.integers(-128, 128, shape).astype(numpy.int8) for shape in ((m, k), (k, n)))
    c = torch.from_held(numpy.full((m, n), -1), torch.int32)
    tiles = triton.cdiv(m, blocks[0]) * triton.cdiv(n, blocks[1])
    launch(kernels.product, (tiles,), torch.from_held(a, torch.int8), torch.from_held(b, torch.int8), c, m, n, k, k, 1, n, 1, n, BLOCK_M=blocks[0],
           BLOCK_N=blocks[1], BLOCK_K=blocks[2], GROUP=4, SUM=tl.int32, PRECISION="ieee", num_warps=4)
    VERDICT.compare(f"product int8 {m}x{n}x{k}", host(c), a.astype(numpy.int32) @ b.astype(numpy.int32))


def check_product_of_small(name, m, n, k):
    kind = getattr(torch, "float8_" + name)
    held = [RANDOM.integers(0, 256, shape).astype(numpy.uint8) for shape in ((m, k), (k, n))]
    held = [numpy.where(numpy.isfinite(decoded_small(each, name)), each, 0) for each in held]
    c = empty("f32", m, n)
    tiles = triton.cdiv(m, 64) * triton.cdiv(n, 64)
    a, b = (torch.from_held(each, kind) for each in held)
    launch(kernels.product, (tiles,), a, b, c, m, n, k, k, 1, n, 1, n, BLOCK_M=64, BLOCK_N=64, BLOCK_K=64, GROUP=4, SUM=tl.float32, PRECISION="ieee", num_warps=4)
    a, b = (decoded_small(each, name) for each in held)
    # The largest product of a sum bounds its error, so the mean of the results is no measure here.
    bound = numpy.abs(a) @ numpy.abs(b)
    VERDICT.compare(f"product {name} {m}x{n}x{k}", (host(c) - a @ b) / bound + 1, numpy.ones((m, n)), "f32", 8.0)


def check_scaled_product(a_kind, b_kind, m=64, n=64, k=256):
    def draw(kind, rows):
        packed = 2 if kind == "e2m1" else 1
        held = RANDOM.integers(0, 256, (rows, k // packed)).astype(numpy.uint8)
        if packed == 2:
            return held, decoded_fp4(held), packed
        held = numpy.where(numpy.isfinite(decoded_small(held, SMALL[kind])), held, 0)
        return held, decoded_small(held, SMALL[kind]), packed
    (a, a_values, a_packed), (b, b_values, b_packed) = draw(a_kind, m), draw(b_kind, n)
    scales = [RANDOM.integers(120, 135, (rows, k // 32)).astype(numpy.uint8) for rows in (m, n)]
    c = empty("f32", m, n)
    launch(kernels.scaled_product, (1,), *(torch.from_held(each, torch.uint8) for each in (a, scales[0], b, scales[1])), c, M=m, N=n, K=k, A_KIND=a_kind,
           B_KIND=b_kind, A_PACKED=a_packed, B_PACKED=b_packed, num_warps=4)
    a_values = a_values * numpy.repeat(2.0 ** (scales[0].astype(float) - 127), 32, 1)
    b_values = b_values * numpy.repeat(2.0 ** (scales[1].astype(float) - 127), 32, 1)
    want, bound = a_values @ b_values.T, numpy.abs(a_values) @ numpy.abs(b_values).T
    VERDICT.compare(f"scaled product {a_kind} {b_kind} {m}x{n}x{k}", (host(c) - want) / bound + 1, numpy.ones((m, n)), "f32", 8.0)


def attended(q, k, v, causal):
    scores = q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])
    if causal:
        rows, columns = numpy.arange(q.shape[1]), numpy.arange(k.shape[1])
        scores = numpy.where(columns[None] <= rows[:, None] + k.shape[1] - q.shape[1], scores, -numpy.inf)
    return scores, softmax(scores)


def check_attention(heads, kv_heads, queries, keys, dim, causal, rows=64, warps=2):
    q, k, v = drawn("bf16", heads, queries, dim), drawn("bf16", kv_heads, keys, dim), drawn("bf16", kv_heads, keys, dim)
    o = empty("bf16", heads, queries, dim)
    scale_log2e = math.log2(math.e) / math.sqrt(dim)
    launch(attention_forward, (heads, triton.cdiv(queries, rows)), *(device(each, "bf16") for each in (q, k, v)), o, queries * dim, keys * dim, keys * dim,
           queries * dim, dim, dim, dim, dim, queries, keys, heads // kv_heads, scale_log2e, D=dim, BLOCK_M=rows, BLOCK_N=64, CAUSAL=causal, num_warps=warps,
           num_stages=2)
    group = heads // kv_heads
    _, weights = attended(q, numpy.repeat(k, group, 0), numpy.repeat(v, group, 0), causal)
    name = f"attention {heads}/{kv_heads} heads, {queries} over {keys}, {dim}{', causal' if causal else ''}"
    VERDICT.compare(name, host(o), weights @ numpy.repeat(v, group, 0), "bf16", 2.0)


def check_attention_gradients(kind, heads, tokens, dim, causal):
    q, k, v, above = (drawn(kind, heads, tokens, dim) for _ in range(4))
    scores, weights = attended(q, k, v, causal)
    top = scores.max(-1, keepdims=True)
    level = (numpy.log(numpy.exp(scores - top).sum(-1, keepdims=True)) + top)[..., 0] * math.log2(math.e)
    delta = ((weights @ v) * above).sum(-1)
    gradients = [empty("f32", heads, tokens, dim) for _ in range(3)]
    inputs = [device(each, kind) for each in (q, k, v, above)] + [device(level, "f32"), device(delta, "f32")]
    scale = 1 / math.sqrt(dim)
    grid = (heads, triton.cdiv(tokens, 32))
    blocks = {"D": dim, "BLOCK_M": 32, "BLOCK_N": 32, "CAUSAL": causal, "num_warps": 4}
    launch(kernels.attention_gradients_of_rows, grid, *inputs, gradients[0], tokens, scale, scale * math.log2(math.e), **blocks)
    launch(kernels.attention_gradients_of_keys, grid, *inputs, *gradients[1:], tokens, scale, scale * math.log2(math.e), **blocks)
    slope = weights * (above @ v.swapaxes(-1, -2) - delta[..., None])
    wanted = (slope @ k * scale, slope.swapaxes(-1, -2) @ q * scale, weights.swapaxes(-1, -2) @ above)
    for name, got, want in zip("qkv", gradients, wanted):
        VERDICT.compare(f"attention {kind} {heads}x{tokens}x{dim}{', causal' if causal else ''}, gradient of {name}", host(got), want, kind, 256.0 if kind == "f32" else 4.0)


def check_rows(columns):
    x = drawn("f32", 5, columns)
    for reverse in (False, True):
        y = empty("f32", 5, columns)
        launch(kernels.running_sums, (5,), device(x, "f32"), y, columns, BLOCK=triton.next_power_of_2(columns), REVERSE=reverse)
        want = x[:, ::-1].cumsum(1)[:, ::-1] if reverse else x.cumsum(1)
        VERDICT.compare(f"running sums of {columns}{' from behind' if reverse else ''}", host(y), want, "f32", 64.0)
    places = torch.from_held(numpy.full(5, -1), torch.int32)
    launch(kernels.places_of_maxima, (5,), device(x, "f32"), places, columns, BLOCK=triton.next_power_of_2(columns))
    VERDICT.compare(f"places of maxima of {columns}", host(places), x.argmax(1).astype(numpy.int32))
    x = drawn("f32", 5, 128)
    y = empty("f32", 5, 128)
    launch(kernels.sorted_rows, (5,), device(x, "f32"), y, COLUMNS=128)
    VERDICT.compare("sorted rows", host(y), numpy.sort(x, 1), "f32", 0.0)


def check_elements(count):
    x = drawn("f32", count)
    y = empty("f32", count)
    launch(kernels.functions, (triton.cdiv(count, 256),), device(x, "f32"), y, count, BLOCK=256)
    error_function = numpy.vectorize(math.erf, otypes=[float])
    want = numpy.sin(x) + numpy.cos(x) * numpy.sqrt(abs(x)) + numpy.exp2(-x * x) + numpy.log(1 + x * x) + error_function(x) + 1 / (1 + numpy.exp(-x))
    VERDICT.compare(f"functions of {count}", host(y), want + numpy.floor(x), "f32", 32.0)
    values = RANDOM.integers(0, 37, count).astype(numpy.int32)
    bins = torch.from_held(numpy.zeros(37), torch.int32)
    launch(kernels.counts, (triton.cdiv(count, 256),), torch.from_held(values, torch.int32), bins, count, BLOCK=256)
    VERDICT.compare(f"counts of {count}", host(bins), numpy.bincount(values, minlength=37).astype(numpy.int32))
    for kind in ("f32", "f16"):
        x = drawn(kind, 50, 77)
        y = empty(kind, 77, 50)
        launch(kernels.transposed, (2, 3), device(x, kind), y, 50, 77, BLOCK=32)
        VERDICT.compare(f"transposed {kind}", host(y), x.T, kind, 0.0)


def sample():
    yield check_softmax, ("f32", 3, 200, 4)
    yield check_layer_norm, ("f16", 3, 200)
    yield check_product, ("f16", 70, 66, 80)
    yield check_attention, (2, 1, 70, 90, 64, True)


def whole():
    yield from sample()
    for kind in ("f32", "f16", "bf16"):
        for rows, columns, warps in ((5, 61, 1), (3, 1000, 4), (2, 4097, 8)):
            yield check_softmax, (kind, rows, columns, warps)
        for rows, columns in ((4, 64), (3, 333), (2, 1024)):
            yield check_layer_norm, (kind, rows, columns)
        for problem in ((64, 64, 64), (130, 70, 96), (33, 200, 257), (1, 128, 512)):
            yield check_product, (kind, *problem)
        yield check_product, (kind, 128, 128, 160, (128, 128, 32), 8, 3)
        yield check_product, (kind, 100, 100, 100, (32, 32, 32), 1, 1)
        yield check_product, (kind, 96, 80, 128, (64, 64, 64), 4, 2, True)
        yield check_product, (kind, 64, 64, 64, (16, 16, 64), 1, 2, False, "f32")
        for causal in (False, True):
            yield check_attention_gradients, (kind, 2, 80, 64, causal)
    if TARGET == "gfx942":  # has xf32 instructions
        yield check_product, ("f32", 96, 80, 128, (64, 64, 32), 4, 2, False, None, "tf32")
    yield check_product, ("f64", 64, 64, 48, (32, 32, 16))
    for problem in ((64, 64, 64), (70, 90, 130)):
        yield check_product_of_bytes, problem
    for name in ("e4m3fn", "e5m2") if TARGET == "gfx950" else ("e4m3fnuz", "e5m2fnuz"):
        yield check_product_of_small, (name, 64, 64, 128)
    for pair in (("e4m3", "e4m3"), ("e5m2", "e5m2"), ("e2m1", "e2m1"), ("e4m3", "e2m1")):
        yield check_scaled_product, pair
    for dim in (64, 128):
        for causal in (False, True):
            for heads, kv_heads, queries, keys in ((2, 2, 128, 128), (4, 2, 100, 200), (2, 1, 1, 333)):
                yield check_attention, (heads, kv_heads, queries, keys, dim, causal)
        yield check_attention, (2, 2, 300, 300, dim, True, 128, 4)
    for columns in (64, 500):
        yield check_rows, (columns,)
    yield check_elements, (1000,)


def main():
    part = sys.argv[2] if len(sys.argv) > 2 else ""
    for check, arguments in sample() if sys.argv[1] == "sample" else whole():
        if not re.search(part, check.__name__):
            continue
        known = KNOWN_FINDINGS.get((check.__name__, TARGET, arguments[0]))
        if known and sys.argv[1] == "checked":
            print(f"left out: {check.__name__}{arguments}: {known}")
            continue
        try:
            check(*arguments)
        except Exception as problem:  # one that cannot run is a wrong one, and the others go on
            VERDICT.failed(f"{check.__name__}{arguments}", f"{type(problem).__name__}: {str(problem)[:300]}")
        if sys.argv[1] != "sample":
            print(f"{time.process_time():6.1f} s {check.__name__}{arguments}: {VERDICT.cases} results, {len(VERDICT.wrong)} wrong", flush=True)
    for line in VERDICT.wrong:
        print("WRONG:", line)
    worst = sorted(VERDICT.largest.items(), key=lambda each: -each[1])
    if sys.argv[1] != "sample":
        print("largest errors:", "; ".join(f"{name}: {error:.1f}" for name, error in worst[:8]))
    print(f"Triton {triton.__version__} on {TARGET}: {VERDICT.cases} results of {LAUNCHES} launches, {VERDICT.elements} elements, {len(VERDICT.wrong)} wrong")
    return 1 if VERDICT.wrong or VERDICT.cases == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
