# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Masks by tile: kernels read them as they are, leave out what they hide, and mask only what is mixed (docs/sparse.md).

Where there is no such kernel, and of few rows of which heads have masks of their own, a mask of bools becomes a bias, and one of numbers
is one. Nobody sees which it was (_masks.py).
"""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from .. import _dtypes, _fields, _masks
from .._engine import Engine
from ._repeats import without_repeats

# With one of these arguments there is no kernel that walks masks by tile, or it is no faster.
NOT_BESIDE = ("block_table", "causal_flags", "k_scale", "v_scale", "q_scale")
MOST_STRIDE = 1 << 25  # bytes from row to row that kernels of masks count
ELEMENTS = (torch.float16, torch.bfloat16)


def words_of(engine: Engine, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, words: Mapping[str, Any]) -> dict[str, Any]:
    """The words with a bias of bools as `mask`, and with one of numbers by tile, where that has a kernel and is a gain; else as they are."""
    bias = words.get("bias")
    if bias is None or not _fits(q, k, v, bias, words):
        return words if isinstance(words, dict) else dict(words)
    numbers = None if bias.dtype is torch.bool else _dtypes.named(torch.float32 if bias.dtype is torch.float32 else q.dtype)
    if not _masks.have_kernel(engine, _dtypes.named(q.dtype), q.shape[3], v.shape[3], numbers):
        return words if isinstance(words, dict) else dict(words)
    if numbers is not None:
        return {**words, "bias": _of_all(bias), "bias_by_tile": True}
    others = {name: value for name, value in words.items() if name != "bias"}
    if others.get("alibi") is None and others.get("softcap", 0.0) == 0.0:
        others["alibi"] = torch.zeros(q.shape[2], dtype=torch.float32, device=q.device)
    return {**others, "mask": _readable(bias)}


def _fits(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor, words: Mapping[str, Any]) -> bool:
    if not q.ndim == k.ndim == v.ndim == mask.ndim == 4 or 0 in q.shape or 0 in k.shape:
        return False
    if q.dtype not in ELEMENTS or k.dtype is not q.dtype or v.dtype is not q.dtype or any([words.get(name) is not None for name in NOT_BESIDE]):
        return False
    rows, keys = words.get("max_query_length", 0) or q.shape[1], words.get("max_key_length", 0) or k.shape[1]
    if words.get("splits", 0) > 1 or any([words.get(kind, 0) != 0 for kind in _fields.MASK_KINDS]) or not words.get("window_left", -1) == words.get("window_right", -1) == -1:
        return False
    if mask.shape[0] not in (1, q.shape[0]) or mask.shape[1] not in (1, q.shape[2]) or mask.shape[2:] != (q.shape[1], keys):
        return False  # the bias says what is wrong
    if mask.dtype is torch.bool:
        return _masks.fit(q.shape[0], q.shape[2], rows, keys, _of_all(mask).shape[1]) and mask.stride(2) < MOST_STRIDE
    return mask.dtype.is_floating_point and _masks.numbers_fit(q.shape[0], q.shape[2], rows, keys, _of_all(mask).shape[1])


def _of_all(mask: torch.Tensor) -> torch.Tensor:
    """What is the same for all batches or heads is looked at once."""
    return without_repeats(mask, 2)


def _readable(mask: torch.Tensor) -> torch.Tensor:
    mask = _of_all(mask)
    return mask if mask.shape[3] < 2 or mask.stride(3) == 1 else mask.contiguous()
