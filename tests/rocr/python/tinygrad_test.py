# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""tinygrad's HIP device under AMD's own runtime, on a simulated GPU: results and gradients of its operations against float64.

    tinygrad_test.py sample|whole|checked [<regular expression of names>]

checked: as whole, for `wavejit sim --check all`, but for cases in which the checks find what is known (KNOWN_FINDINGS).

Float inputs are rounded to a case's type first. Gradients are those of a weighted sum of the results, in float32 as well as in half
types; the reference differentiates itself by differences, in float64. Prints counts, and a line for each result that is wrong.
"""
import re
import sys
import time
import zlib

import numpy
from tinygrad import Device, Tensor, dtypes
from tinygrad.helpers import GlobalCounters

import judge
import tinygrad_arrays
import tinygrad_elements
import tinygrad_networks

TYPES = {"f64": dtypes.float64, "f32": dtypes.float32, "f16": dtypes.float16, "bf16": dtypes.bfloat16}
# case, type, target. Ours: a bfloat16 whose other half holds nothing, moved by v_cndmask_b32_sdwa, is taken for unknown.
KNOWN_FINDINGS = {("linear_layer", "bf16", "gfx950")}
GRADIENT_UNITS = 4.0  # times what a result may be off
SAMPLE_GRADIENTS = ("product_small", "softmax", "layer_norm")


# On the GPU before anything is done with it: tinygrad moves some work in front of the copy, to the processor.
def tensor_of(values, kind):
    if values.ndim == 0:  # a scalar would be a constant of the processor's
        return tensor_of(values.reshape(1), kind).reshape(())
    if values.dtype != numpy.float64 or kind == "f64":
        return Tensor(values).realize()
    if kind == "f16":
        return Tensor(values.astype(numpy.float16)).realize()
    tensor = Tensor(values.astype(numpy.float32)).realize()
    return tensor.cast(dtypes.bfloat16).contiguous().realize() if kind == "bf16" else tensor


def array_of(tensor):
    # Made contiguous on the GPU, or tinygrad would copy a view as it lies, and order it with code for the processor.
    array = (tensor.cast(dtypes.float32) if tensor.dtype == dtypes.bfloat16 else tensor).contiguous().realize().numpy()
    return array.astype(numpy.float64) if array.dtype.kind == "f" else array


def run_case(case, kind, verdict, gradient):
    random = numpy.random.default_rng(zlib.crc32(case.name.encode()))
    inputs = [numbers.draw(random) for numbers in case.inputs]
    inputs = [judge.rounded(each, kind) if each.dtype == numpy.float64 else each for each in inputs]
    tensors = [tensor_of(each, kind) for each in inputs]
    want = numpy.asarray(case.ours(*inputs))
    result = case.theirs(*tensors)
    verdict.compare(f"{case.name} {kind}", array_of(result), want, kind, case.units)
    if not gradient:
        return
    weights = judge.rounded(random.standard_normal(max(1, want.size)), kind).reshape(want.shape)
    floats = [each for each, values in zip(tensors, inputs) if values.dtype == numpy.float64]
    gradients = (result * tensor_of(weights, kind)).sum().gradient(*floats)
    expected = [each for each in judge.difference_gradients(case.ours, inputs, weights) if each is not None]
    for number, (got, each) in enumerate(zip(gradients, expected)):
        verdict.compare(f"{case.name} {kind}, gradient {number}", array_of(got), each, kind, GRADIENT_UNITS * max(case.units, 8.0))


def main():
    whole = sys.argv[1] != "sample"
    part = sys.argv[2] if len(sys.argv) > 2 else ""
    verdict = judge.Judge()
    started = time.process_time()
    for case in tinygrad_elements.CASES + tinygrad_arrays.CASES + tinygrad_networks.CASES:
        if not re.search(part, case.name) or not (whole or case.sample):
            continue
        for kind in case.kinds if whole else case.kinds[:1]:
            if sys.argv[1] == "checked" and (case.name, kind, Device["HIP"].arch.split(":")[0]) in KNOWN_FINDINGS:
                print(f"left out: {case.name} {kind}: what the checks say of it is known")
                continue
            try:
                run_case(case, kind, verdict, case.gradient and (whole or case.name in SAMPLE_GRADIENTS))
            except Exception as problem:  # a case that cannot run is a wrong one, and the others go on
                if "-v" in sys.argv:
                    raise
                verdict.failed(f"{case.name} {kind}", f"{type(problem).__name__}: {str(problem)[:300]}")
        if whole:
            print(f"{time.process_time() - started:6.1f} s {case.name}: {verdict.cases} results, {len(verdict.wrong)} wrong", flush=True)
    for line in verdict.wrong:
        print("WRONG:", line)
    worst = sorted(verdict.largest.items(), key=lambda each: -each[1])
    if whole:
        print("largest errors:", "; ".join(f"{name} {error:.1f}" for name, error in worst[:12]))
    print(f"tinygrad on {Device['HIP'].arch}: {verdict.cases} results of {GlobalCounters.kernel_count} kernels, {verdict.elements} elements, {len(verdict.wrong)} wrong")
    assert Device.DEFAULT == "HIP" and verdict.cases > 0
    return 1 if verdict.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
