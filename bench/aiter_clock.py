# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the clock predicts for AITER's attention kernels, which this tree does not hold, beside what was published of them.

    python3 bench/aiter_clock.py <libwavejit_simgpu.so> <folder of hsa/> [<aiter_anchors.json>]
    python3 bench/aiter_clock.py <libwavejit_simgpu.so> <folder of hsa/> --backward [<aiter_backward.json>]

The folder is that of ROCm/aiter, or of its package (scripts/aiter_package.sh fetches it): gfx942/fmha_v3_fwd/MI300/*.co,
gfx950/fmha_v3_fwd/*.co, gfx950/fmha_v3_bwd/*.co, gfx950/pa/*.co. Kernels that are not there are left out, with a line. Nothing is measured here. Without a file to write the figures are printed only.

    {"kernel": ..., "target": ..., "batch": 16, "heads": 16, "keys": 8192, "cycles": ..., "matrix_busy": ..., ...}
"""
import ctypes
import json
import os
import pathlib
import struct
import sys

from simulated_gpu import SimulatedGpu

HEAD_DIM = 128
THREADS = 512
ROWS = 256  # queries of a tile
COUNTERS = "[M] MfmaUtil, attn-dsl-bench, MI300X"
README = "[M] AITER's README of its attention programs, MI355X"
DECODE = "[M] published times of AITER's paged decode, MI355X"
MATRIX_FLOPS = {"gfx942": 2048, "gfx950": 4096}  # a compute unit and cycle, 16-bit
COMPUTE_UNITS = {"gfx942": 304, "gfx950": 256}


def kernel_name(code_object):
    """The one symbol that ends in .kd, without that."""
    end = code_object.index(b".kd\0")
    return code_object[code_object.rindex(b"\0", 0, end) + 1:end].decode()


def argument_bytes(code_object):
    """.kernarg_segment_size of the metadata, a msgpack integer; the first kernel's."""
    key = b".kernarg_segment_size"
    at = code_object.index(key) + len(key)
    head = code_object[at]
    if head < 0x80:
        return head
    width = {0xcc: 1, 0xcd: 2, 0xce: 4}[head]
    return int.from_bytes(code_object[at + 1:at + 1 + width], "big")


def pack(values, size):
    """Every argument takes 16 bytes: its value, then zeros."""
    text = b""
    for value in values:
        if isinstance(value, ctypes.c_void_p):
            text += struct.pack("<QQ", value.value or 0, 0)
        elif isinstance(value, float):
            text += struct.pack("<fIQ", value, 0, 0)
        else:
            text += struct.pack("<IIQ", value, 0, 0)
    if len(text) > size:
        text = text[:size]
    return text + bytes(size - len(text))


def forward(gpu, code_object, batch, heads, kv_heads, keys, causal):
    """Dense BSHD forward, D = 128, bf16, as many queries as keys. In this order: o, q, k, v, lse; scale; lengths and strides in bytes."""
    null = ctypes.c_void_p(0)
    row, head = heads * HEAD_DIM * 2, HEAD_DIM * 2
    kv_row = kv_heads * HEAD_DIM * 2
    q, o = gpu.allocate(batch * keys * row), gpu.allocate(batch * keys * row)
    k, v = gpu.allocate(batch * keys * kv_row), gpu.allocate(batch * keys * kv_row)
    lse = gpu.allocate(batch * heads * keys * 4)
    mask = 3 if causal and heads % 8 else 5
    values = [o, q, k, v, lse, HEAD_DIM ** -0.5, keys, row, ROWS * row, head, keys * row, heads // kv_heads,
              kv_row, head, keys * kv_row, mask, 0, keys, HEAD_DIM, HEAD_DIM, heads,
              kv_row, head, keys * kv_row, row, head, keys * row, null, null, keys * 4] + [null] * 5 + [0] * 6
    tiles = -(-keys // ROWS)
    grid = (-(-tiles // 2) if causal else tiles, heads, batch)  # a causal workgroup takes a late and an early tile
    cycles = gpu.launch(gpu.function(code_object, kernel_name(code_object)), grid, THREADS,
                        buffer=pack(values, argument_bytes(code_object)))
    for each in (q, o, k, v, lse):
        gpu.free(each)
    return cycles


def backward(gpu, code_object, batch, heads, kv_heads, keys, causal=False, block=ROWS):
    """Dense BSHD backward, D = 128, bf16, as many queries as keys: dQ by atomics, dK and dV of every query head.

    In the order of the kernel's own list of arguments; lengths in rows, strides (of a head, of the batch, of a row) in bytes. A
    workgroup has `block` keys."""
    null = ctypes.c_void_p(0)
    row, kv_row, head = heads * HEAD_DIM * 2, kv_heads * HEAD_DIM * 2, HEAD_DIM * 2
    q, do, dk, dv = (gpu.allocate(batch * keys * row) for _ in range(4))
    dq = gpu.allocate(2 * batch * keys * row)  # of four bytes, where atomics are
    k, v = (gpu.allocate(batch * keys * kv_row) for _ in range(2))
    lse, delta = (gpu.allocate(batch * heads * keys * 4) for _ in range(2))
    values = [dq, dk, dv, q, k, v, do, lse, delta, HEAD_DIM ** -0.5, 1.4426950408889634, keys, block * kv_row, head, keys * row, row,
              heads // kv_heads, head, keys * kv_row, kv_row, row, keys, HEAD_DIM, HEAD_DIM, heads, head, keys * kv_row, kv_row,
              head, keys * row, row, head, keys * row, head, keys * row, row, keys * 4, null, null, null, null, keys, 0, 0]
    blocks = -(-keys // block)
    grid = (-(-blocks // 2) if causal else blocks, heads, batch)  # a causal workgroup takes a late and an early block
    cycles = gpu.launch(gpu.function(code_object, kernel_name(code_object)), grid, 256, buffer=pack(values, argument_bytes(code_object)))
    for each in (q, do, dk, dv, dq, k, v, lse, delta):
        gpu.free(each)
    return cycles


def decode(gpu, code_object, batch, kv_heads, keys, page=16, group=8):
    """Paged decode, bf16, one query a sequence, `group` query heads a kv head; pages in order."""
    null = ctypes.c_void_p(0)
    pages = keys // page
    cache = batch * pages * kv_heads * page * HEAD_DIM * 2
    rows = batch * kv_heads * group * HEAD_DIM * 2
    table = struct.pack(f"<{batch * pages}I", *range(batch * pages))
    lengths = struct.pack(f"<{batch}I", *[keys] * batch)
    o, q, k, v = gpu.allocate(rows), gpu.allocate(rows), gpu.allocate(cache), gpu.allocate(cache)
    block_table, context = gpu.allocate(len(table), table), gpu.allocate(len(lengths), lengths)
    values = [o, q, k, v, block_table, context, null, null, 1.4426950408889634 * HEAD_DIM ** -0.5, pages, kv_heads,
              kv_heads * group * HEAD_DIM * 2, kv_heads * page * HEAD_DIM * 2, page * HEAD_DIM * 2, group, null]
    cycles = gpu.launch(gpu.function(code_object, kernel_name(code_object)), (kv_heads, batch, 1), 256,
                        buffer=pack(values, argument_bytes(code_object)))
    for each in (o, q, k, v, block_table, context):
        gpu.free(each)
    return cycles


def published_tflops(column, batch, heads, kv_heads, causal):
    """A column of published_forward.json, head dim 128: {keys: TFLOPS}."""
    found = {}
    for block in json.loads(pathlib.Path(__file__).with_name("published_forward.json").read_text())["blocks"]:
        if column in block["columns"]:
            place = block["columns"].index(column)
            found.update({shape[5]: tflops[place] for shape, tflops in block["rows"]
                          if shape[:5] == [batch, heads, kv_heads, HEAD_DIM, causal]})
    return found


def rows_of(gpu, folder):
    def code(path):
        file = folder / path
        if file.exists():
            return file.read_bytes()
        print(f"{file} is not there: its rows are left out", file=sys.stderr)
        return None

    def attention(target, path, causal, unit, source, published):
        code_object = code(path)
        if code_object is None:
            return
        gpu.select(target)
        for keys, value in published.items():
            cycles = forward(gpu, code_object, 16, 16, 16, keys, causal)
            flops = 4 * 256 * keys * keys * HEAD_DIM / (2 if causal else 1)
            yield {"kernel": kernel_name(code_object), "target": target, "batch": 16, "heads": 16, "keys": keys,
                   "mask": "causal" if causal else "full", "unit": unit, "published": value, "source": source, "cycles": cycles["cycles"],
                   "matrix_busy": round(cycles["matrix_busy"], 4), "steady_matrix_busy": round(cycles["steady_matrix_busy"], 4),
                   "useful": round(flops / MATRIX_FLOPS[target] / COMPUTE_UNITS[target] / cycles["cycles"], 4)}

    yield from attention("gfx942", "gfx942/fmha_v3_fwd/MI300/fwd_hd128_bf16_causal_rtna.co", True, "% matrix busy", COUNTERS,
                         {1024: 42.2, 2048: 50.1, 4096: 64.5, 8192: 67.7, 16384: 72.1})
    throughput = "[M] HipKittens' benchmark, MI355X"
    for causal in (False, True):
        yield from attention("gfx950", f"gfx950/fmha_v3_fwd/fwd_hd128_bf16{'_causal' if causal else ''}.co", causal, "TFLOPS", throughput,
                             published_tflops(["gfx950", "AITER"], 16, 16, 16, causal))
    gpu.select("gfx950")
    for atomics, published in (("16-bit", {4096: 1140, 8192: 1159}), ("32-bit", {4096: 788, 8192: 823})):
        code_object = code(f"gfx950/fmha_v3_bwd/bwd_hd128_bf16_a{atomics[:2]}_psskddv.co")
        if code_object is None:
            continue
        for keys, value in published.items():
            cycles = backward(gpu, code_object, 1, 64, 8, keys)
            flops = 10 * 64 * keys * keys * HEAD_DIM
            yield {"kernel": kernel_name(code_object), "target": "gfx950", "batch": 1, "heads": 64, "keys": keys,
                   "mask": f"backward, {atomics} atomics", "unit": "TFLOPS", "published": value, "source": README, "cycles": cycles["cycles"],
                   "matrix_busy": round(cycles["matrix_busy"], 4), "steady_matrix_busy": round(cycles["steady_matrix_busy"], 4),
                   "useful": round(flops / MATRIX_FLOPS["gfx950"] / COMPUTE_UNITS["gfx950"] / cycles["cycles"], 4)}
    code_object = code("gfx950/pa/pa_bf16_noquant_gqa8_1tg_4w.co")
    if code_object is None:
        return
    for batch, kv_heads, keys, microseconds in ((1, 1, 32768, 169.0), (32, 2, 8192, 52.6)):
        cycles = decode(gpu, code_object, batch, kv_heads, keys)
        gpu.set_warm(True)
        warm = decode(gpu, code_object, batch, kv_heads, keys)["cycles"]
        gpu.set_warm(False)
        yield {"kernel": kernel_name(code_object), "target": "gfx950", "batch": batch, "heads": kv_heads, "keys": keys, "mask": "decode",
               "unit": "microseconds", "published": microseconds, "source": DECODE, "cycles": cycles["cycles"], "warm_cycles": warm,
               "matrix_busy": round(cycles["matrix_busy"], 4), "steady_matrix_busy": round(cycles["steady_matrix_busy"], 4), "useful": 0}


def backward_rows_of(gpu, folder):
    """The main kernel of a backward call, with 16-bit atomics, on shapes of bench/predicted_backward.md."""
    shapes = ([(1, 32, 8, keys, False) for keys in (1024, 2048, 4096, 8192)] + [(8, 64, 8, keys, causal) for keys in (1024, 2048) for causal in (False, True)] +
              [(1, 64, 8, 8192, True)])
    for target, block, file in (("gfx950", 256, "gfx950/fmha_v3_bwd/bwd_hd128_bf16{}_a16_psskddv.co"), ("gfx942", 192, "gfx942/fmha_v3_bwd/bwd_hd128_bf16{}_a16_rtne_pddv.co")):
        gpu.select(target)
        for batch, heads, kv_heads, keys, causal in shapes:
            path = folder / file.format("_causal" if causal else "")
            if not path.exists():
                print(f"{path} is not there: its rows are left out", file=sys.stderr)
                continue
            code_object = path.read_bytes()
            cycles = backward(gpu, code_object, batch, heads, kv_heads, keys, causal, block)
            yield {"kernel": kernel_name(code_object), "target": target, "shape": [batch, heads, kv_heads, HEAD_DIM, causal, keys], "cycles": cycles["cycles"],
                   "matrix_busy": round(cycles["matrix_busy"], 4)}


def main():
    wants_backward = "--backward" in sys.argv
    if wants_backward:
        sys.argv.remove("--backward")
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    folder = pathlib.Path(sys.argv[2])
    if not folder.is_dir():
        sys.exit(f"{folder} is no folder")
    gpu = SimulatedGpu(sys.argv[1])
    rows = []
    for row in (backward_rows_of if wants_backward else rows_of)(gpu, folder):
        rows.append(row)
        print(json.dumps(row), flush=True)
    if not rows:
        sys.exit(f"{folder} has none of the kernels; it should hold gfx942/ and gfx950/")
    if len(sys.argv) == 4:
        temporary = sys.argv[3] + ".part"
        with open(temporary, "w") as file:
            file.write("[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n")
        os.replace(temporary, sys.argv[3])


if __name__ == "__main__":
    main()
