# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""CuPy on a simulated GPU: elements, reductions, scans, sorting, selection, kernels of one's own, products, transforms and a solution, against NumPy
in float64.

    wavejit sim --target gfx942 -- python3 cupy_test.py
"""
import sys

import cupy
import numpy

from judge import Judge


def main():
    judge = Judge()
    random = numpy.random.default_rng(1)
    values = random.standard_normal((65, 129))
    array = cupy.asarray(values)

    def compare(name, got, want, units=64):
        judge.compare(name, cupy.asnumpy(got), want, "f64", units)

    compare("elements", cupy.exp(array) + 3 * array, numpy.exp(values) + 3 * values)
    compare("sum", array.sum(axis=1), values.sum(1))
    compare("cumsum", cupy.cumsum(array, axis=1), numpy.cumsum(values, 1), 256)
    compare("sort", cupy.sort(array, axis=1), numpy.sort(values, axis=1), 0)
    # rocPRIM's look-back, many workgroups: positions by a scan over all.
    many = random.integers(0, 100, 50_000)
    compare("nonzero", cupy.nonzero(cupy.asarray(many) > 60)[0], numpy.nonzero(many > 60)[0], 0)
    compare("unique", cupy.unique(cupy.asarray(many)), numpy.unique(many), 0)
    own = cupy.RawKernel('extern "C" __global__ void twice(double* x) { x[blockIdx.x * blockDim.x + threadIdx.x] *= 2; }', "twice")
    doubled = array.copy()
    own((65,), (129,), (doubled,))
    compare("kernel", doubled, 2 * values, 0)
    compare("product", array @ array.T, values @ values.T, 256)
    compare("einsum", cupy.einsum("ij,kj->ik", array, array), values @ values.T, 256)
    signal = numpy.fft.fft(values, axis=1)
    transformed = cupy.asnumpy(cupy.fft.fft(array, axis=1))
    compare("transform, real", transformed.real, signal.real, 256)
    compare("transform, imaginary", transformed.imag, signal.imag, 256)
    for line in judge.wrong:
        print("WRONG:", line)
    print(f"CuPy {cupy.__version__}: {judge.cases} results, {judge.elements} elements, {len(judge.wrong)} wrong")
    return 1 if judge.wrong or judge.cases == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
