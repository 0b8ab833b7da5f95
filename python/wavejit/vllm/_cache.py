# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""vLLM's cache of a layer, [pages, kv heads, keys of a page, dims of K and V], in whatever order it lies: read as pages, and written."""
from __future__ import annotations

import torch

FORMATS = {"e4m3": torch.float8_e4m3fn, "e5m2": torch.float8_e5m2, "e4m3_fnuz": torch.float8_e4m3fnuz, "e5m2_fnuz": torch.float8_e5m2fnuz}
Scales = tuple[torch.Tensor, torch.Tensor]


def pages(kv_cache: torch.Tensor, head_dim: int, cache: str) -> tuple[torch.Tensor, torch.Tensor]:
    """K and V as [pages, keys, heads, dim]: views."""
    if cache:
        kv_cache = kv_cache.view(FORMATS[cache])
    turned = kv_cache.transpose(1, 2)
    return turned.narrow(-1, 0, head_dim), turned.narrow(-1, head_dim, turned.shape[-1] - head_dim)


def append(key: torch.Tensor, value: torch.Tensor, kv_cache: torch.Tensor, slots: torch.Tensor, cache: str, scales: Scales | None) -> None:
    """Row i of key and value goes to slot slots[i], page · page size + key; a row whose slot is negative goes nowhere.

    Nothing is asked of the device, so a graph may capture it. Rows of no slot write what stands in slot 0 back there. Slot 0 is nobody's: vLLM
    keeps page 0 as the page of no sequence.
    """
    if kv_cache.numel() == 0:
        return
    rows = slots.shape[0]
    head_dim = key.shape[-1]
    known = slots >= 0
    slot = slots.clamp(min=0)
    page, place = slot // kv_cache.shape[2], slot % kv_cache.shape[2]
    for index, (given, held) in enumerate(zip((key, value), pages(kv_cache, head_dim, ""))):
        given = given[:rows]
        if scales is not None:
            given = _narrow(given, FORMATS[cache], scales[index]).view(held.dtype)
        held[page, place] = torch.where(known[:, None, None], given, held[0, 0])


def _narrow(given: torch.Tensor, dtype: torch.dtype, scale: torch.Tensor) -> torch.Tensor:
    """What the cache's bits count times scale is next to what was given; beyond its range the largest number."""
    limit = torch.finfo(dtype).max
    return (given.to(torch.float32) / scale).clamp(-limit, limit).to(dtype)
