# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The calls under jit over sharded arrays: each device has the batches and heads that its shards of q have, and calls with these alone.

XLA knows nothing of a foreign call, and would gather what it reads. Packed sequences and pages have no batch to part: they are gathered.
"""
from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
from jax.experimental.custom_partitioning import custom_partitioning
from jax.sharding import NamedSharding, PartitionSpec

from . import _ffi
from ._ffi import FORWARD, Words

# What the dimensions of operands and results stand for: batches, heads of q, heads of k; others are whole on each device.
AXES = {
    "q": "b.h.", "k": "b.k.", "v": "b.k.", "out": "b.h.", "d_out": "b.h.", "lse": "bh.", "d_lse": "bh.", "bias": "bh..", "mask": "bh..", "sinks": "h", "alibi": "bh", "key_lengths": "b",
    "d_q": "b.h.", "d_k": "b.k.", "d_v": "b.k.", "d_sinks": "bh", "d_bias": "bh..",
}  # fmt: skip
SCALES = {2: "bk", 3: "b.k"}
GATHERED = frozenset(("query_starts", "key_starts", "block_table"))
REMEMBERED = 1024  # kinds of calls

Shape = Sequence[int]


def call(target: str, words: Words, wanted: tuple[str, ...], operands: dict[str, Any]) -> tuple[Any, ...]:
    if GATHERED & operands.keys() or jax.device_count() == 1 or any(_ffi.varying(array) for array in operands.values()):
        return _ffi.call(target, words, wanted, operands)
    names = _ffi.names_of(target, operands)
    return tuple(_parted(target, words, wanted, names)(*[operands[name] for name in names]))


@functools.lru_cache(maxsize=REMEMBERED)
def _parted(target: str, words: Words, wanted: tuple[str, ...], names: tuple[str, ...]) -> Callable[..., tuple[Any, ...]]:
    results = ("out", *wanted) if target == FORWARD else ("d_q", "d_k", "d_v", *wanted)

    def attend(*arrays: Any) -> tuple[Any, ...]:
        return _ffi.call(target, words, wanted, dict(zip(names, arrays)))

    def specs(mesh: Any, arg_shapes: Any, result_shapes: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        shapes = {name: each.shape for name, each in zip(names, arg_shapes)}
        along = _along(mesh, arg_shapes[0].sharding, shapes, wanted)
        every = [(name, each.shape) for listed in (zip(names, arg_shapes), zip(results, result_shapes)) for name, each in listed]
        made = [NamedSharding(mesh, PartitionSpec(*(along.get(axis) if size > 1 else None for axis, size in zip(_axes(name, shape), shape)))) for name, shape in every]
        return tuple(made[: len(names)]), tuple(made[len(names) :])

    def partition(mesh: Any, arg_shapes: Any, result_shapes: Any) -> Any:
        of_operands, of_results = specs(mesh, arg_shapes, result_shapes)
        return mesh, attend, of_results, of_operands

    def infer(mesh: Any, arg_shapes: Any, result_shapes: Any) -> Any:
        return specs(mesh, arg_shapes, result_shapes)[1]

    def rule(mesh: Any, operand_types: Any, result_types: Any) -> Any:
        return _rule([(name, tuple(each.shape)) for name, each in zip(names, operand_types)], [(name, tuple(each.shape)) for name, each in zip(results, result_types)])

    parted = custom_partitioning(attend)
    parted.def_partition(partition, infer_sharding_from_operands=infer, sharding_rule=rule)
    return parted


def _axes(name: str, shape: Shape) -> str:
    return SCALES[len(shape)] if name in ("k_scale", "v_scale") else AXES[name]


def _along(mesh: Any, of_queries: Any, shapes: dict[str, Shape], wanted: tuple[str, ...]) -> dict[str, Any]:
    """The mesh's axes of batches and of heads, as q has them; none where shards would not be whole, or a gradient would be a sum over them."""
    spec = (*getattr(of_queries, "spec", ()), *(None,) * 4)
    q, k, bias = shapes["q"], shapes["k"], shapes.get("bias")
    summed = bias if "d_bias" in wanted else None

    def whole(axes: Any, *sizes: int) -> bool:
        parts = math.prod(mesh.shape[axis] for axis in (axes if isinstance(axes, tuple) else (axes,)))
        return all(size % parts == 0 for size in sizes)

    found = {}
    if spec[0] is not None and whole(spec[0], q[0]) and not (summed is not None and summed[0] == 1):
        found["b"] = spec[0]
    if spec[2] is not None and whole(spec[2], q[2], k[2]) and not (summed is not None and summed[1] == 1):
        found["h"] = found["k"] = spec[2]
    return found


def _rule(operands: list[tuple[str, Shape]], results: list[tuple[str, Shape]]) -> Any:
    """In Shardy's words: which dimensions are alike. A dimension of one, which is for all, is like no other."""
    shapes = dict(operands)
    heads, kv_heads = shapes["q"][2], shapes["k"][2]
    factors = {"b": "b", "k": "g", "h": "g" if heads == kv_heads else "(g r)" if kv_heads > 1 else "r"}
    others = iter(f"o{number}" for number in range(128))

    def side(listed: list[tuple[str, Shape]]) -> str:
        return ", ".join(" ".join(factors[axis] if axis in factors and size > 1 else next(others) for axis, size in zip(_axes(name, shape), shape)) for name, shape in listed)

    sizes = {"r": heads // kv_heads} if factors["h"] == "(g r)" else {}  # k says how many g are
    return f"{side(operands)} -> {side(results)}", sizes
