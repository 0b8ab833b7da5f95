# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The calls under vmap: what is mapped over becomes batch, and one launch does all of it.

Packed sequences, pages, and sinks of which each map has its own have no batch to become part of: those go one after the other.
"""
from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
from jax import numpy as jnp

from . import _ffi, _partition
from ._ffi import Words

# Operands without a batch.
WHOLE = frozenset(("query_starts", "key_starts", "block_table", "k_scale", "v_scale"))
# Operands whose batch may be 1, for all sequences.
FOR_ALL = frozenset(("bias", "mask", "alibi"))
REMEMBERED = 1024  # kinds of calls


def call(target: str, words: Words, wanted: tuple[str, ...], operands: dict[str, Any]) -> tuple[Any, ...]:
    names = _ffi.names_of(target, operands)
    return tuple(_operator(target, words, wanted, names)(*[operands[name] for name in names]))


@functools.lru_cache(maxsize=REMEMBERED)
def _operator(target: str, words: Words, wanted: tuple[str, ...], names: tuple[str, ...]) -> Callable[..., Any]:
    @jax.custom_batching.custom_vmap
    def operator(*arrays: Any) -> tuple[Any, ...]:
        return _partition.call(target, words, wanted, dict(zip(names, arrays)))

    @operator.def_vmap
    def mapped(size: int, is_mapped: Sequence[bool], *arrays: Any) -> tuple[tuple[Any, ...], tuple[bool, ...]]:
        given = dict(zip(names, arrays))
        mapped_names = frozenset(name for name, each in zip(names, is_mapped) if each)
        if WHOLE & given.keys() or "sinks" in mapped_names:
            results = _one_after_the_other(operator, names, mapped_names, given)
        else:
            results = _as_batch(target, words, wanted, size, mapped_names, given)
        return results, tuple(True for _ in results)

    return operator


def _one_after_the_other(operator: Callable[..., Any], names: tuple[str, ...], mapped: frozenset[str], given: dict[str, Any]) -> tuple[Any, ...]:
    def once(each: dict[str, Any]) -> Any:
        return operator(*[each[name] if name in mapped else given[name] for name in names])

    return tuple(jax.lax.map(once, {name: given[name] for name in mapped}))


def _as_batch(target: str, words: Words, wanted: tuple[str, ...], size: int, mapped: frozenset[str], given: dict[str, Any]) -> tuple[Any, ...]:
    batch = given["q"].shape[1 if "q" in mapped else 0]
    folded = {}
    for name, array in given.items():
        if name == "sinks":
            folded[name] = array
            continue
        alone = array.shape[1 if name in mapped else 0] == 1 and batch != 1  # one for all sequences
        if name in FOR_ALL and name not in mapped and (alone or batch == 1) and not (name == "bias" and "d_bias" in wanted):
            folded[name] = array
            continue
        inner = array.shape[1:] if name in mapped else array.shape
        whole = array if name in mapped else array[None]
        if name in FOR_ALL:
            inner = (batch, *inner[1:])
        folded[name] = jnp.broadcast_to(whole, (size, *inner)).reshape(size * inner[0], *inner[1:])
    results = [each.reshape(size, each.shape[0] // size, *each.shape[1:]) for each in call(target, words, wanted, folded)]
    if "d_bias" in wanted:
        bias = given["bias"]
        if bias.shape[1 if "bias" in mapped else 0] == 1 and batch != 1:  # it was one for all, and has the sum over them
            results[-1] = results[-1].astype(jnp.float32).sum(1, keepdims=True).astype(bias.dtype)
    return tuple(results)
