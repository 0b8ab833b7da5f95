# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Floats of 8 and 4 bits, decoded from their definitions: OCP's (e4m3fn, e5m2, e2m1) and those of gfx942 (fnuz)."""
import numpy

# name: bits of the exponent, its bias
FORMATS = {"e4m3fn": (4, 7), "e5m2": (5, 15), "e4m3fnuz": (4, 8), "e5m2fnuz": (5, 16)}
SMALL = {"e4m3": "e4m3fn", "e5m2": "e5m2"}
FP4 = numpy.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])


def decoded_small(held, name):
    exponent_bits, bias = FORMATS[name]
    mantissa_bits = 7 - exponent_bits
    held = held.astype(numpy.int64)
    exponent = (held >> mantissa_bits) & ((1 << exponent_bits) - 1)
    mantissa = held & ((1 << mantissa_bits) - 1)
    fraction = mantissa / 2.0**mantissa_bits
    values = numpy.where(exponent == 0, fraction * 2.0 ** (1 - bias), (1 + fraction) * 2.0 ** (exponent - bias))
    if name.endswith("fnuz"):
        return numpy.where(held == 0x80, numpy.nan, numpy.where(held & 0x80, -values, values))
    values = numpy.where(held & 0x80, -values, values)
    if name == "e4m3fn":
        return numpy.where((held & 0x7F) == 0x7F, numpy.nan, values)
    return numpy.where(exponent == 31, numpy.where(mantissa == 0, numpy.copysign(numpy.inf, values), numpy.nan), values)


def decoded_fp4(held):
    """Two in a byte, the first one in the low bits."""
    return numpy.stack((FP4[held & 15], FP4[held >> 4]), -1).reshape(*held.shape[:-1], -1)
