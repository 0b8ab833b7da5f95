# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What an operation of the tests is: how tinygrad does it, how numpy does it in float64, and on which numbers."""
import dataclasses
import typing

import numpy

FLOATS = ("f32", "f16", "bf16")


@dataclasses.dataclass(frozen=True)
class Numbers:
    """An input: its shape and what is drawn. Floats are rounded to the case's type; other kinds keep theirs."""

    shape: tuple
    kind: str = "normal"  # normal, positive (0.5 to 2), unit (-0.9 to 0.9), distinct; or whole (int32 from low to below high), truth
    low: int = 0
    high: int = 0

    def draw(self, random):
        if self.kind == "whole":
            return random.integers(self.low, self.high, self.shape, dtype=numpy.int32)
        if self.kind == "truth":
            return random.integers(0, 2, self.shape).astype(bool)
        if self.kind == "positive":
            return random.uniform(0.5, 2.0, self.shape)
        if self.kind == "unit":
            return random.uniform(-0.9, 0.9, self.shape)
        if self.kind == "distinct":  # an eighth apart, so that types of eight bits order them alike
            return (random.permutation(int(numpy.prod(self.shape))) / 8.0 - 4.0).reshape(self.shape)
        return random.standard_normal(self.shape)


@dataclasses.dataclass(frozen=True)
class Case:
    """theirs takes tinygrad's tensors, ours float64 arrays. units: how far a result may be off (judge.py); gradient: is checked as well."""

    name: str
    theirs: typing.Callable
    ours: typing.Callable
    inputs: tuple
    kinds: tuple = ("f32",)
    units: float = 8.0
    gradient: bool = False
    sample: bool = False  # runs in ./dev test too


def normal(*shape):
    return Numbers(shape)


def positive(*shape):
    return Numbers(shape, "positive")


def unit(*shape):
    return Numbers(shape, "unit")


def distinct(*shape):
    return Numbers(shape, "distinct")


def whole(low, high, *shape):
    return Numbers(shape, "whole", low, high)


def truth(*shape):
    return Numbers(shape, "truth")
