# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Results of a simulated GPU against float64, element by element, and counts of what was compared.

An element is right when |got - want| <= units · epsilon(type) · (|want| + mean |want|). Integers and truth values are right when equal.
"""
import numpy

EPSILON = {"f64": 2.0**-52, "f32": 2.0**-23, "f16": 2.0**-10, "bf16": 2.0**-7}


def rounded(values, kind):
    """float64 values as a type holds them, as float64 again."""
    if kind == "f16":
        return values.astype(numpy.float16).astype(numpy.float64)
    if kind == "f32":
        return values.astype(numpy.float32).astype(numpy.float64)
    if kind == "bf16":  # to nearest, ties to even
        bits = values.astype(numpy.float32).view(numpy.uint32)
        bits = (bits + 0x7FFF + ((bits >> 16) & 1)) & numpy.uint32(0xFFFF0000)
        return bits.view(numpy.float32).astype(numpy.float64)
    return values


class Judge:
    """Counts what was compared; keeps a line for each result that is wrong."""

    def __init__(self):
        self.cases = 0
        self.elements = 0
        self.wrong = []
        self.largest = {}  # by name: the largest error, in its units

    def compare(self, name, got, want, kind="f32", units=8.0):
        got, want = numpy.asarray(got), numpy.asarray(want)
        self.cases += 1
        self.elements += want.size
        if got.shape != want.shape:
            self.wrong.append(f"{name}: shape {got.shape}, expected {want.shape}")
            return
        if want.dtype.kind != "f":
            bad = got != want
        else:
            got = got.astype(numpy.float64)
            finite = numpy.isfinite(want)
            mean = numpy.abs(want[finite]).mean() if finite.any() else 0.0
            with numpy.errstate(all="ignore"):
                error = numpy.abs(got - want) / (EPSILON[kind] * (numpy.abs(want) + mean + 1e-300))
                same = (got == want) | (numpy.isnan(got) & numpy.isnan(want))
            error = numpy.where(same, 0.0, numpy.where(numpy.isfinite(error), error, numpy.inf))
            self.largest[name] = float(error.max()) if error.size else 0.0
            bad = error > units
        if bad.any():
            at = numpy.unravel_index(numpy.argmax(bad), bad.shape)
            error = f", {self.largest[name]:.1f} of {units:g} units" if name in self.largest else ""
            self.wrong.append(f"{name}: {int(bad.sum())} of {bad.size} wrong{error}; first at {tuple(int(i) for i in at)}: {got[at]}, expected {want[at]}")

    def failed(self, name, problem):
        self.cases += 1
        self.wrong.append(f"{name}: {problem}")


def difference_gradients(function, inputs, weights):
    """Gradients of sum(function(inputs) · weights), by central differences in float64: good to about 1e-8."""
    gradients = []
    for position, values in enumerate(inputs):
        if values.dtype != numpy.float64:
            gradients.append(None)
            continue
        gradient = numpy.empty_like(values)
        moved = [each.copy() for each in inputs]
        for at in numpy.ndindex(values.shape):
            step = 1e-5 * max(1.0, abs(values[at]))
            sums = []
            for sign in (1, -1):
                moved[position][at] = values[at] + sign * step
                sums.append(float((function(*moved) * weights).sum()))
            moved[position][at] = values[at]
            gradient[at] = (sums[0] - sums[1]) / (2 * step)
        gradients.append(gradient)
    return gradients
