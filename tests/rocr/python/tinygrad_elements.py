# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operations on elements and conversions, with their references."""
import math

import numpy
from tinygrad import Tensor, dtypes
from tinygrad_case import FLOATS, Case, distinct, normal, positive, truth, unit, whole

ERF = numpy.vectorize(math.erf, otypes=[float])


def sigmoid(x):
    return 1.0 / (1.0 + numpy.exp(-x))


def softplus(x):
    return numpy.log1p(numpy.exp(-numpy.abs(x))) + numpy.maximum(x, 0)


def gelu(x):
    return 0.5 * x * (1 + numpy.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


# name, tinygrad's, numpy's, where from, with a gradient
UNARY = [
    ("negative", lambda x: -x, lambda x: -x, normal, True),
    ("absolute", lambda x: x.abs(), numpy.abs, normal, True),
    ("square", lambda x: x.square(), lambda x: x * x, normal, True),
    ("reciprocal", lambda x: x.reciprocal(), lambda x: 1 / x, positive, True),
    ("sqrt", lambda x: x.sqrt(), numpy.sqrt, positive, True),
    ("rsqrt", lambda x: x.rsqrt(), lambda x: 1 / numpy.sqrt(x), positive, True),
    ("exp", lambda x: x.exp(), numpy.exp, normal, True),
    ("exp2", lambda x: x.exp2(), numpy.exp2, normal, True),
    ("log", lambda x: x.log(), numpy.log, positive, True),
    ("log2", lambda x: x.log2(), numpy.log2, positive, True),
    ("log10", lambda x: x.log10(), numpy.log10, positive, True),
    ("sin", lambda x: x.sin(), numpy.sin, normal, True),
    ("cos", lambda x: x.cos(), numpy.cos, normal, True),
    ("tan", lambda x: x.tan(), numpy.tan, unit, True),
    ("asin", lambda x: x.asin(), numpy.arcsin, unit, False),
    ("acos", lambda x: x.acos(), numpy.arccos, unit, False),
    ("atan", lambda x: x.atan(), numpy.arctan, normal, False),
    ("sinh", lambda x: x.sinh(), numpy.sinh, normal, True),
    ("cosh", lambda x: x.cosh(), numpy.cosh, normal, True),
    ("tanh", lambda x: x.tanh(), numpy.tanh, normal, True),
    ("asinh", lambda x: x.asinh(), numpy.arcsinh, normal, False),
    ("atanh", lambda x: x.atanh(), numpy.arctanh, unit, False),
    ("sigmoid", lambda x: x.sigmoid(), sigmoid, normal, True),
    ("relu", lambda x: x.relu(), lambda x: numpy.maximum(x, 0), normal, True),
    ("leaky_relu", lambda x: x.leaky_relu(0.1), lambda x: numpy.where(x > 0, x, 0.1 * x), normal, True),
    ("relu6", lambda x: x.relu6(), lambda x: numpy.clip(x, 0, 6), normal, True),
    ("elu", lambda x: x.elu(0.7), lambda x: numpy.where(x > 0, x, 0.7 * (numpy.exp(x) - 1)), normal, True),
    ("gelu", lambda x: x.gelu(), gelu, normal, True),
    ("silu", lambda x: x.silu(), lambda x: x * sigmoid(x), normal, True),
    ("softplus", lambda x: x.softplus(), softplus, normal, True),
    ("mish", lambda x: x.mish(), lambda x: x * numpy.tanh(softplus(x)), normal, True),
    ("hardswish", lambda x: x.hardswish(), lambda x: x * numpy.clip(x + 3, 0, 6) / 6, normal, True),
    ("softsign", lambda x: x.softsign(), lambda x: x / (1 + numpy.abs(x)), normal, True),
    ("clamp", lambda x: x.clamp(-0.5, 0.75), lambda x: numpy.clip(x, -0.5, 0.75), normal, True),
    ("sign", lambda x: x.sign(), numpy.sign, normal, False),
    ("floor", lambda x: x.floor(), numpy.floor, normal, False),
    ("ceil", lambda x: x.ceil(), numpy.ceil, normal, False),
    ("trunc", lambda x: x.trunc(), numpy.trunc, normal, False),
    ("round", lambda x: x.round(), numpy.rint, normal, False),
]
BINARY = [
    ("add", lambda a, b: a + b, lambda a, b: a + b, normal, True),
    ("subtract", lambda a, b: a - b, lambda a, b: a - b, normal, True),
    ("multiply", lambda a, b: a * b, lambda a, b: a * b, normal, True),
    ("divide", lambda a, b: a / b, lambda a, b: a / b, positive, True),
    ("power", lambda a, b: a**b, lambda a, b: a**b, positive, True),
    ("maximum", lambda a, b: a.maximum(b), numpy.maximum, normal, True),
    ("minimum", lambda a, b: a.minimum(b), numpy.minimum, normal, True),
    ("less", lambda a, b: a < b, lambda a, b: a < b, distinct, False),
    ("equal", lambda a, b: a == b, lambda a, b: a == b, distinct, False),
    ("copysign", lambda a, b: a.copysign(b), numpy.copysign, normal, False),
]
# Polynomials of tinygrad's own: exact to what they are, not to float32's last bits. Their approximations are not the GPU's.
ROUGH = {"asin": 2500.0, "acos": 2500.0, "atan": 5000.0, "asinh": 64.0, "atanh": 64.0, "power": 64.0, "tan": 16.0, "sinh": 16.0, "mish": 16.0}
SAMPLE = {"gelu", "sin"}

CASES = [
    Case(name, theirs, ours, (numbers(7, 37),), FLOATS, ROUGH.get(name, 8.0), gradient, name in SAMPLE)
    for name, theirs, ours, numbers, gradient in UNARY
]
CASES += [
    Case(name, theirs, ours, (numbers(5, 1, 19), numbers(4, 19)), FLOATS, ROUGH.get(name, 8.0), gradient)
    for name, theirs, ours, numbers, gradient in BINARY
]
# Doubles have instructions of their own.
CASES += [
    Case(f"double_{name}", theirs, ours, (numbers(3, 21),), ("f64",), 4096.0 if name in ("sin", "exp", "log", "sqrt", "sigmoid") else 8.0, False)
    for name, theirs, ours, numbers, _ in UNARY
    if name in ("negative", "square", "reciprocal", "sqrt", "floor", "ceil", "trunc", "relu")
]


def c_division(a, b):
    return numpy.trunc(a.astype(numpy.float64) / b).astype(numpy.int32)


INTEGERS = (whole(-1000, 1000, 6, 33), whole(1, 50, 6, 33))
CASES += [
    Case("where", lambda c, a, b: c.where(a, b), numpy.where, (truth(6, 33), normal(6, 33), normal(6, 33)), FLOATS, 1.0, True),
    Case("integer_multiply", lambda a, b: a * b, lambda a, b: a * b, INTEGERS),
    Case("integer_floor_division", lambda a, b: a // b, lambda a, b: a // b, INTEGERS),
    Case("integer_division", lambda a, b: a.div(b, rounding_mode="trunc"), c_division, INTEGERS),
    Case("integer_remainder", lambda a, b: a % b, lambda a, b: a % b, INTEGERS, sample=True),
    Case("integer_xor", lambda a, b: a ^ b, lambda a, b: a ^ b, INTEGERS),
    Case("integer_and_or", lambda a, b: (a & b) | (a + 5), lambda a, b: (a & b) | (a + 5), INTEGERS),
    Case("shift_left", lambda a: a << 3, lambda a: a << 3, (whole(-1000, 1000, 99),)),
    Case("shift_right", lambda a: a.cast(dtypes.uint32) >> 3, lambda a: (a >> 3).astype(numpy.uint32), (whole(0, 100000, 99),)),
    Case("long_multiply", lambda a, b: a.cast(dtypes.int64) * b.cast(dtypes.int64) * 1000003,
         lambda a, b: a.astype(numpy.int64) * b * 1000003, (whole(-(2**31), 2**31 - 1, 99), whole(-2000, 2000, 99))),
    Case("long_division", lambda a, b: a.cast(dtypes.int64).div(b.cast(dtypes.int64), rounding_mode="trunc"),
         lambda a, b: c_division(a, b).astype(numpy.int64), (whole(-(2**31), 2**31 - 1, 99), whole(1, 2000, 99))),
    Case("bytes_to_floats", lambda a: a.cast(dtypes.uint8).cast(dtypes.float32) / 255,
         lambda a: (a & 255) / 255, (whole(0, 256, 4, 31),)),
    Case("signed_bytes", lambda a: a.cast(dtypes.int8).cast(dtypes.int32) * 3,
         lambda a: a.astype(numpy.int8).astype(numpy.int32) * 3, (whole(-128, 128, 4, 31),)),
    Case("shorts", lambda a: (a.cast(dtypes.int16) + a.cast(dtypes.int16)).cast(dtypes.int32), lambda a: 2 * a, (whole(-9000, 9000, 4, 31),)),
    Case("floats_to_integers", lambda a: (a * 100).cast(dtypes.int32), lambda a: numpy.trunc(a * 100).astype(numpy.int32), (distinct(4, 31),)),
    Case("floats_to_truth", lambda a: a.cast(dtypes.bool), lambda a: a != 0, (distinct(4, 31),)),
    Case("to_half_and_back", lambda a: a.cast(dtypes.float16).contiguous().cast(dtypes.float32),
         lambda a: a.astype(numpy.float16).astype(numpy.float64), (normal(4, 31),), ("f32",), 0.0),
    Case("double_sum_of_products", lambda a, b: (a * b).sum(-1), lambda a, b: (a * b).sum(-1), (normal(5, 40), normal(5, 40)), ("f64",)),
    Case("is_not_a_number", lambda a: (a + 0.5).sqrt().isnan(), lambda a: a < 0, (whole(-1, 2, 60),)),
    Case("is_infinite", lambda a: (1.0 / a.cast(dtypes.float32)).isinf(), lambda a: a == 0, (whole(-1, 2, 60),)),
    Case("lerp", lambda a, b, w: a.lerp(b, w), lambda a, b, w: a + (b - a) * w, (normal(44), normal(44), unit(44)), FLOATS, 16.0, True),
    Case("logical_not", lambda a: a.logical_not(), lambda a: ~a, (truth(5, 13),)),
    Case("error_function", lambda x: x.erf(), ERF, (normal(70),), ("f32",), 16.0),
]
