# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the clock predicts for Triton's attention, beside what was published for Triton's attention. Writes bench/triton_anchors.json.

    build/peers-venv/bin/python bench/triton_clock.py <libwavejit_simgpu.so> <triton_anchors.json>

The kernel is that of triton_attention.py, compiled by Triton itself; the code object is launched on the simulated GPU, of which only
the sampled workgroups run. Nothing is measured here. The published kernels are Triton's too, but not this source: tiles, stages
and the walk over a causal mask may differ.
"""
import ctypes
import glob
import json
import os
import pathlib
import subprocess
import sys
import tempfile

from simulated_gpu import SimulatedGpu

HEADS = 256  # 16 sequences of 16 heads, as published
MATRIX_FLOPS = {"gfx942": 2048, "gfx950": 4096}  # a compute unit and cycle, 16-bit
COMPUTE_UNITS = {"gfx942": 304, "gfx950": 256}

COUNTERS = "[M] MfmaUtil, attn-dsl-bench, MI300X"
THROUGHPUT = "[M] HipKittens' benchmark, MI355X"


def published_throughput(head_dim, causal):
    """Triton's column of published_forward.json without groups of heads: {keys: TFLOPS}."""
    block = json.loads(pathlib.Path(__file__).with_name("published_forward.json").read_text())["blocks"][0]
    column = block["columns"].index(["gfx950", "Triton"])
    return {shape[5]: tflops[column] for shape, tflops in block["rows"] if shape[:5] == [16, 16, 16, head_dim, causal]}


# target, head dim, mask, unit, source, {keys: published}
PUBLISHED = [
    ("gfx942", 128, "causal", "% matrix busy", COUNTERS, {16384: 34.0}),
    ("gfx942", 64, "causal", "% matrix busy", COUNTERS, {16384: 31.8}),
    ("gfx950", 128, "full", "TFLOPS", THROUGHPUT, published_throughput(128, False)),
    ("gfx950", 64, "full", "TFLOPS", THROUGHPUT, published_throughput(64, False)),
    ("gfx950", 128, "causal", "TFLOPS", THROUGHPUT, published_throughput(128, True)),
    ("gfx950", 64, "causal", "TFLOPS", THROUGHPUT, published_throughput(64, True)),
]


def launch(gpu, code_object, facts, head_dim, keys, block_m):
    function = gpu.function(code_object, facts["name"])
    row = HEADS * head_dim
    tensors = [gpu.allocate(keys * row * 2) for _ in range(4)]
    integer = ctypes.c_int32
    arguments = tensors + [integer(head_dim)] * 4 + [integer(row)] * 4 + [integer(keys), integer(keys), integer(1)]
    arguments += [ctypes.c_float(0.1275), ctypes.c_void_p(0), ctypes.c_void_p(0)]  # Triton appends two scratch pointers
    cycles = gpu.launch(function, (HEADS, keys // block_m, 1), 64 * facts["num_warps"], facts["shared"], arguments)
    for each in tensors:
        gpu.free(each)
    return cycles


def compile_attention(target, head_dim, mask):
    """Triton's code object, its own facts, and Triton's version."""
    with tempfile.TemporaryDirectory(prefix="wavejit-triton-") as cache:
        script = pathlib.Path(__file__).with_name("peers_triton.py")
        command = [sys.executable, script, target, str(head_dim), mask, "cold", cache]
        version = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)["version"]
        binary = pathlib.Path(glob.glob(cache + "/*/attention_forward.hsaco")[0])
        return binary.read_bytes(), json.loads(binary.with_suffix(".json").read_text()), version


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    gpu = SimulatedGpu(sys.argv[1])
    rows = []
    for target, head_dim, mask, unit, source, published in PUBLISHED:
        code_object, facts, version = compile_attention(target, head_dim, mask)
        gpu.select(target)
        for keys, value in published.items():
            block_m = 32 * facts["num_warps"]
            cycles = launch(gpu, code_object, facts, head_dim, keys, block_m)
            flops = 4 * HEADS * keys * keys * head_dim / (2 if mask == "causal" else 1)
            useful = flops / MATRIX_FLOPS[target] / COMPUTE_UNITS[target] / cycles["cycles"]
            rows.append({"target": target, "head_dim": head_dim, "mask": mask, "keys": keys, "unit": unit, "published": value,
                         "source": source, "cycles": cycles["cycles"], "matrix_busy": round(cycles["matrix_busy"], 4),
                         "steady_matrix_busy": round(cycles["steady_matrix_busy"], 4), "useful": round(useful, 4),
                         "tile": f"{block_m}x64", "triton": version})
            print(rows[-1], flush=True)
    temporary = sys.argv[2] + ".part"
    with open(temporary, "w") as file:
        file.write("[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n")
    os.replace(temporary, sys.argv[2])


main()
