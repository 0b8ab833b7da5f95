# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""vLLM's cache of a layer, [pages, kv heads, keys of a page, dims of K and V], in whatever order it lies: read as pages, and written."""
from __future__ import annotations

from collections.abc import Callable

import torch

from .._engine import Engine
from ..torch import _append, _dispatch

FORMATS = {"e4m3": torch.float8_e4m3fn, "e5m2": torch.float8_e5m2, "e4m3_fnuz": torch.float8_e4m3fnuz, "e5m2_fnuz": torch.float8_e5m2fnuz, "i8": torch.int8}
Scales = tuple[torch.Tensor, torch.Tensor]


def of_type(kv_cache: torch.Tensor, cache: str) -> torch.Tensor:
    """A cache of 8 bits as numbers of its format, whatever vLLM calls its bytes."""
    return kv_cache.view(FORMATS[cache]) if cache else kv_cache


def pages(kv_cache: torch.Tensor, head_dim: int, value_dim: int, cache: str) -> tuple[torch.Tensor, torch.Tensor]:
    """K and V as [pages, keys, heads, dim]: views."""
    turned = of_type(kv_cache, cache).transpose(1, 2)
    return turned.narrow(-1, 0, head_dim), turned.narrow(-1, head_dim, value_dim)


def token_scales(kv_cache: torch.Tensor, dims: int) -> Scales:
    """The scales of K and of V, [pages, keys, heads]: they lie behind the first `dims` bytes of each token of a head."""
    turned = kv_cache.view(torch.float32).transpose(1, 2)
    return turned.select(-1, dims // 4), turned.select(-1, dims // 4 + 1)


def append(engine: Engine, key: torch.Tensor, value: torch.Tensor, kv_cache: torch.Tensor, slots: torch.Tensor, cache: str, scales: Scales | None,
           tokens: bool = False) -> None:
    """Row i of key and value goes to slot slots[i], page · page size + key; a row whose slot is none goes nowhere. One launch."""
    if kv_cache.numel() == 0:
        return
    rows = slots.shape[0]
    if key.shape[0] != rows:  # a padded step has more rows than slots
        key, value = key.narrow(0, 0, rows), value.narrow(0, 0, rows)
    if rows == 0:
        return
    (_through_copies if key.is_cpu else _on_device)(engine, key, value, kv_cache, slots, cache, scales, tokens)


def _on_device(engine: Engine, key: torch.Tensor, value: torch.Tensor, kv_cache: torch.Tensor, slots: torch.Tensor, cache: str, scales: Scales | None, tokens: bool) -> None:
    rows = slots.shape[0]
    shapes = ("vllm append", rows, key.stride(), value.stride(), kv_cache.shape, kv_cache.stride(), cache, tokens, slots.dtype,
              None if scales is None else (scales[0].numel(), scales[1].numel()))
    launch = engine._plans.get(shapes)
    if launch is None:
        launch = _append.planned(engine, shapes, _given(key, value, kv_cache, slots, cache, scales, tokens), "", 0.0, 0)
    k = kv_cache.data_ptr()
    at = {"k": key.data_ptr(), "v": value.data_ptr(), "k_cache": k, "v_cache": k + key.shape[-1] * kv_cache.element_size(), "slots": slots.data_ptr()}
    if tokens:
        at["k_scale"] = k + key.shape[-1] + value.shape[-1]
        at["v_scale"] = at["k_scale"] + 4
    elif scales is not None:
        at["k_scale"], at["v_scale"] = scales[0].data_ptr(), scales[1].data_ptr()
    launch(_dispatch.current_stream(key.device), at, 0)


def _given(key: torch.Tensor, value: torch.Tensor, kv_cache: torch.Tensor, slots: torch.Tensor, cache: str, scales: Scales | None,
           tokens: bool) -> dict[str, torch.Tensor | None]:
    k, v = pages(kv_cache, key.shape[-1], value.shape[-1], cache)
    # One for all, or one for each kv head.
    k_scale: torch.Tensor | None
    v_scale: torch.Tensor | None
    if tokens:
        k_scale, v_scale = token_scales(kv_cache, key.shape[-1] + value.shape[-1])
    else:
        k_scale, v_scale = (None, None) if scales is None else (scale if scale.ndim == 1 else scale.reshape(-1) for scale in scales)
    return {"k": key, "v": value, "k_cache": k, "v_cache": v, "slots": slots, "k_scale": k_scale, "v_scale": v_scale}


def _through_copies(engine: Engine, key: torch.Tensor, value: torch.Tensor, kv_cache: torch.Tensor, slots: torch.Tensor, cache: str, scales: Scales | None, tokens: bool) -> None:
    through_pages(engine, kv_cache, kv_cache.shape[2], slots, lambda some, place: _given(key, value, some, place, cache, scales, tokens))


def through_pages(engine: Engine, kv_cache: torch.Tensor, size: int, slots: torch.Tensor, given: Callable[[torch.Tensor, torch.Tensor], dict[str, torch.Tensor | None]]) -> None:
    """Pages of a cache in host memory that are written go to the simulated device and back, and no others."""
    known = (slots >= 0) & (slots < kv_cache.shape[0] * size)
    used = (slots[known] // size).unique()
    if used.numel() == 0:
        return
    some = kv_cache[used]
    place = torch.searchsorted(used, (slots // size).clamp(min=0)) * size + slots % size
    _append.append(engine, given(some, torch.where(known, place, -1)))
    kv_cache[used] = some
