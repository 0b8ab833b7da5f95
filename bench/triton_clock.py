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

HEADS = 256  # 16 sequences of 16 heads, as published
MATRIX_FLOPS = {"gfx942": 2048, "gfx950": 4096}  # a compute unit and cycle, 16-bit
COMPUTE_UNITS = {"gfx942": 304, "gfx950": 256}
SAMPLE = 12  # four and two neighbours each, as tools/simulated_gpu.h

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


class Settings(ctypes.Structure):
    """struct wavejit_simgpu_settings of include/wavejit/simgpu.h."""
    _fields_ = [("size", ctypes.c_size_t), ("schedule", ctypes.c_int32), ("threads", ctypes.c_uint32), ("seed", ctypes.c_uint64),
                ("workgroup_first", ctypes.c_uint64), ("workgroup_step", ctypes.c_uint64), ("workgroup_count", ctypes.c_uint64),
                ("checks", ctypes.c_uint32), ("arrival", ctypes.c_int32), ("sampled_only", ctypes.c_uint32),
                ("reserved", ctypes.c_uint32)]


def must(status, what):
    if status != 0:
        sys.exit(f"{what}: HIP error {status}")


class SimulatedGpu:
    def __init__(self, library):
        self.library = ctypes.CDLL(library)
        settings = Settings(size=ctypes.sizeof(Settings))
        self.library.wavejit_simgpu_get_settings(ctypes.byref(settings))
        settings.sampled_only = 1
        must(self.library.wavejit_simgpu_set_settings(ctypes.byref(settings)), "settings")
        self.library.wavejit_simgpu_set_clock(SAMPLE)

    def select(self, target):
        ordinal = (ctypes.c_int * 1)()
        must(self.library.wavejit_simgpu_open_devices(target.encode(), 1, ordinal), target)
        must(self.library.hipSetDevice(ordinal[0]), "hipSetDevice")

    def allocate(self, size):
        pointer = ctypes.c_void_p()
        must(self.library.hipMalloc(ctypes.byref(pointer), ctypes.c_size_t(size)), "hipMalloc")
        return pointer

    def launch(self, code_object, facts, head_dim, keys, block_m):
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        must(self.library.hipModuleLoadData(ctypes.byref(module), code_object), "hipModuleLoadData")
        must(self.library.hipModuleGetFunction(ctypes.byref(function), module, facts["name"].encode()), facts["name"])
        row = HEADS * head_dim
        tensors = [self.allocate(keys * row * 2) for _ in range(4)]
        integer = ctypes.c_int32
        arguments = tensors + [integer(head_dim)] * 4 + [integer(row)] * 4 + [integer(keys), integer(keys), integer(1)]
        arguments += [ctypes.c_float(0.1275), ctypes.c_void_p(0), ctypes.c_void_p(0)]  # Triton appends two scratch pointers
        pointers = (ctypes.c_void_p * len(arguments))(*[ctypes.cast(ctypes.byref(each), ctypes.c_void_p) for each in arguments])
        must(self.library.hipModuleLaunchKernel(function, HEADS, keys // block_m, 1, 64 * facts["num_warps"], 1, 1,
                                                facts["shared"], None, pointers, None), "hipModuleLaunchKernel")
        must(self.library.hipDeviceSynchronize(), "hipDeviceSynchronize")
        for each in tensors:
            self.library.hipFree(each)
        text = ctypes.create_string_buffer(1 << 22)
        self.library.wavejit_simgpu_take_cycles(text, ctypes.c_size_t(len(text)))
        cycles = json.loads(text.value)
        if "refused" in cycles:
            sys.exit(cycles["refused"])
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
            cycles = gpu.launch(code_object, facts, head_dim, keys, block_m)
            flops = 4 * HEADS * keys * keys * head_dim / (2 if mask == "causal" else 1)
            useful = flops / MATRIX_FLOPS[target] / COMPUTE_UNITS[target] / cycles["cycles"]
            rows.append({"target": target, "head_dim": head_dim, "mask": mask, "keys": keys, "unit": unit, "published": value,
                         "source": source, "matrix_busy": round(cycles["matrix_busy"], 4),
                         "steady_matrix_busy": round(cycles["steady_matrix_busy"], 4), "useful": round(useful, 4),
                         "tile": f"{block_m}x64", "triton": version})
            print(rows[-1], flush=True)
    temporary = sys.argv[2] + ".part"
    with open(temporary, "w") as file:
        file.write("[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n")
    os.replace(temporary, sys.argv[2])


main()
