# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Heads without dims. Where q and k have none, each score is 0 before masks and modifiers, so that a row without those has the mean of
the values that it sees; where v has none, rows still have their log-sum-exp. Kernels know no such heads: zeros stand in their place.
"""
from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch

from .._errors import InvalidArgument, Unsupported
from . import _dispatch
from ._dispatch import Words

FEWEST, MOST = 8, 256  # dims of a head that kernels have, in multiples of the first


class Call(NamedTuple):
    """A call with dims, for one that has none."""

    q: torch.Tensor
    k: torch.Tensor
    v: torch.Tensor
    words: dict[str, Any]
    has_values: bool  # else out has no elements


def are_there(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> bool:
    """Whether rows lack dims and nothing else: of a call without rows there is nothing to compute."""
    if q.ndim != 4 or k.ndim not in (4, _dispatch.VECTORISED) or v.ndim not in (4, k.ndim) or 0 in q.shape[:3]:
        return False
    return q.shape[3] == 0 or _dispatch.value_dim(k, v) == 0


def with_dims(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, words: Words) -> Call:
    dims = _dispatch.value_dim(k, v)
    vectorised = k.ndim == _dispatch.VECTORISED
    words = dict(words)
    if q.shape[3] == 0:
        unit = k.shape[4] if vectorised else 1
        of_keys = k.shape[2] * unit if vectorised else k.shape[3]
        if of_keys != 0:
            raise InvalidArgument(f"k: head dim {of_keys}; accepted: 0, that of q")
        if dims > MOST or dims % FEWEST != 0:
            raise Unsupported(f"v: head dim {dims}, beside q and k of 0; accepted: multiples of {FEWEST} up to {MOST}")
        width = dims or FEWEST  # as many as v has: those have gradients, and kernels of 8 bits know no others
        q = _zeros(q, 3, width)
        k = _zeros(k, 2, width // unit) if vectorised else _zeros(k, 3, width)
        _check_scale(words.get("scale"))
        words["scale"] = 1.0  # of zeros
    if dims == 0:
        v = _zeros(v, v.ndim - 2 if vectorised else 3, q.shape[3])
    return Call(q, k, v, words, dims != 0)


def _check_scale(scale: Any) -> None:
    """As the engine checks it, which does not see it."""
    if scale is None:
        return
    if not isinstance(scale, (int, float)):
        raise InvalidArgument(f"scale = {scale}; accepted: a number")
    if not abs(scale) * math.log2(math.e) <= torch.finfo(torch.float32).max:
        raise InvalidArgument(f"scale = {scale:g}; accepted: finite values whose product with log2 e is finite in fp32")


def _zeros(like: torch.Tensor, dimension: int, size: int) -> torch.Tensor:
    """`like` with `size` dims of a head: zeros, which all batches, or pages, share."""
    sizes = list(like.shape)
    sizes[dimension] = size
    return like.new_zeros((1, *sizes[1:])).expand(sizes)
