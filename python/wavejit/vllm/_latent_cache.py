# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""New rows into a cache of latent attention, [pages, keys, columns]: the latent and the rope of each, in one launch."""
from __future__ import annotations

import torch

from .._engine import Engine
from ..torch import _append, _dispatch
from . import _cache
from ._latent_lines import LatentKind


def append(engine: Engine, latent: torch.Tensor, rope: torch.Tensor, kv_cache: torch.Tensor, slots: torch.Tensor, kind: LatentKind, scale: torch.Tensor | None) -> None:
    """Row i of latent [rows, columns] and of rope [rows, 1, columns] goes to slot slots[i]; a row whose slot is none goes nowhere."""
    rows = slots.shape[0]
    if kv_cache.numel() == 0 or rows == 0:
        return
    if latent.shape[0] != rows:  # a padded step has more rows than slots
        latent = latent.narrow(0, 0, rows)
    if rope.shape[0] != rows:
        rope = rope.narrow(0, 0, rows)
    (_through_copies if kv_cache.is_cpu else _on_device)(engine, latent, rope, kv_cache, slots, kind, scale)


def _through_copies(engine: Engine, latent: torch.Tensor, rope: torch.Tensor, kv_cache: torch.Tensor, slots: torch.Tensor, kind: LatentKind, scale: torch.Tensor | None) -> None:
    _cache.through_pages(engine, kv_cache, kv_cache.shape[1], slots, lambda some, place: _given(latent, rope, some, place, kind, scale))


def _on_device(engine: Engine, latent: torch.Tensor, rope: torch.Tensor, kv_cache: torch.Tensor, slots: torch.Tensor, kind: LatentKind, scale: torch.Tensor | None) -> None:
    rows = slots.shape[0]
    shapes = ("vllm latent append", rows, latent.stride(), rope.stride(), kv_cache.shape, kv_cache.stride(), kind, slots.dtype)
    launch = engine._plans.get(shapes)
    if launch is None:
        launch = _append.planned(engine, shapes, _given(latent, rope, kv_cache, slots, kind, scale), "", 0.0, 0)
    row, columns, of_scale = kv_cache.data_ptr(), latent.shape[-1], 0 if scale is None else scale.data_ptr()
    if kind.rows:
        at = {"k": rope.data_ptr(), "v": latent.data_ptr(), "k_cache": row}
    elif kv_cache.shape[2] == columns:
        at = {"k": latent.data_ptr(), "k_cache": row, "k_scale": of_scale}
    else:
        at = {"k": rope.data_ptr(), "v": latent.data_ptr(), "k_cache": row + columns * kv_cache.element_size(), "v_cache": row, "k_scale": of_scale, "v_scale": of_scale}
    at["slots"] = slots.data_ptr()
    launch(_dispatch.current_stream(kv_cache.device), at, 0)


def _given(latent: torch.Tensor, rope: torch.Tensor, kv_cache: torch.Tensor, slots: torch.Tensor, kind: LatentKind, scale: torch.Tensor | None) -> dict[str, torch.Tensor | None]:
    """A row as keys and values: the rope stands behind the latent. Without a rope it is keys alone."""
    pages = _cache.of_type(kv_cache, kind.cache).unsqueeze(2)
    columns = latent.shape[-1]
    scale = None if scale is None else scale.reshape(1)
    if kind.rows:  # latent, scales and rope, as the kernel knows them
        return {"k": rope, "v": latent.unsqueeze(1), "k_cache": pages, "v_cache": None, "slots": slots, "k_scale": None, "v_scale": None}
    if pages.shape[3] == columns:
        return {"k": latent.unsqueeze(1), "v": None, "k_cache": pages, "v_cache": None, "slots": slots, "k_scale": scale, "v_scale": None}
    of_rope = pages.narrow(3, columns, pages.shape[3] - columns)
    return {"k": rope, "v": latent.unsqueeze(1), "k_cache": of_rope, "v_cache": pages.narrow(3, 0, columns), "slots": slots, "k_scale": scale, "v_scale": scale}
