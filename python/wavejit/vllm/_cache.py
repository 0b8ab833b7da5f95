# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""vLLM's cache of a layer, [pages, kv heads, keys of a page, dims of K and V], in whatever order it lies: read as pages, and written."""
from __future__ import annotations

import torch

from .._engine import Engine
from ..torch import _append, _roads

FORMATS = {"e4m3": torch.float8_e4m3fn, "e5m2": torch.float8_e5m2, "e4m3_fnuz": torch.float8_e4m3fnuz, "e5m2_fnuz": torch.float8_e5m2fnuz}
Scales = tuple[torch.Tensor, torch.Tensor]


def pages(kv_cache: torch.Tensor, head_dim: int, cache: str) -> tuple[torch.Tensor, torch.Tensor]:
    """K and V as [pages, keys, heads, dim]: views."""
    if cache:
        kv_cache = kv_cache.view(FORMATS[cache])
    turned = kv_cache.transpose(1, 2)
    return turned.narrow(-1, 0, head_dim), turned.narrow(-1, head_dim, turned.shape[-1] - head_dim)


def append(engine: Engine, key: torch.Tensor, value: torch.Tensor, kv_cache: torch.Tensor, slots: torch.Tensor, cache: str, scales: Scales | None) -> None:
    """Row i of key and value goes to slot slots[i], page · page size + key; a row whose slot is none goes nowhere. One launch."""
    if kv_cache.numel() == 0:
        return
    rows = slots.shape[0]
    if key.shape[0] != rows:  # a padded step has more rows than slots
        key, value = key.narrow(0, 0, rows), value.narrow(0, 0, rows)
    if rows == 0:
        return
    (_through_pages if key.is_cpu else _on_device)(engine, key, value, kv_cache, slots, cache, scales)


def _on_device(engine: Engine, key: torch.Tensor, value: torch.Tensor, kv_cache: torch.Tensor, slots: torch.Tensor, cache: str, scales: Scales | None) -> None:
    rows = slots.shape[0]
    shapes = ("vllm append", rows, key.stride(), value.stride(), kv_cache.shape, kv_cache.stride(), cache, slots.dtype)
    launch = engine._plans.get(shapes)
    if launch is None:
        launch = _append.planned(engine, shapes, _given(key, value, kv_cache, slots, cache, scales), "", 0.0, 0)
    k = kv_cache.data_ptr()
    k_scale, v_scale = (0, 0) if scales is None else (scales[0].data_ptr(), scales[1].data_ptr())
    tensors = (key.data_ptr(), value.data_ptr(), k, k + key.shape[-1] * kv_cache.element_size(), 0, 0, 0, 0, k_scale, v_scale)
    launch(_roads.current_stream(key.device), tensors, (slots.data_ptr(), 0), 0)


def _given(key: torch.Tensor, value: torch.Tensor, kv_cache: torch.Tensor, slots: torch.Tensor, cache: str, scales: Scales | None) -> dict[str, torch.Tensor | None]:
    k, v = pages(kv_cache, key.shape[-1], cache)
    # One for all, or one for each kv head.
    k_scale, v_scale = (None, None) if scales is None else (scale if scale.ndim == 1 else scale.reshape(-1) for scale in scales)
    return {"k": key, "v": value, "k_cache": k, "v_cache": v, "slots": slots, "k_scale": k_scale, "v_scale": v_scale}


def _through_pages(engine: Engine, key: torch.Tensor, value: torch.Tensor, kv_cache: torch.Tensor, slots: torch.Tensor, cache: str, scales: Scales | None) -> None:
    """Of a cache in host memory the pages that are written go to the simulated device and back, and no others."""
    size = kv_cache.shape[2]
    known = (slots >= 0) & (slots < kv_cache.shape[0] * size)
    used = (slots[known] // size).unique()
    if used.numel() == 0:
        return
    some = kv_cache[used]
    place = torch.searchsorted(used, (slots // size).clamp(min=0)) * size + slots % size
    _append.append(engine, _given(key, value, some, torch.where(known, place, -1), cache, scales))
    kv_cache[used] = some
