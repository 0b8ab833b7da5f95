# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What `flash_attn_with_kvcache` does before it attends: new keys into the cache, and rows of a cache that a batch chooses."""
from __future__ import annotations

from typing import Any, NamedTuple

import torch

from .._errors import InvalidArgument
from . import _append, _roads


class New(NamedTuple):
    """New keys and values, and how they are turned."""

    k: torch.Tensor
    v: torch.Tensor | None
    cos: torch.Tensor | None
    sin: torch.Tensor | None
    interleaved: bool
    turns_alike: bool  # all rows of q by the position of the first


def appended(new: New, q: torch.Tensor, k_cache: torch.Tensor, v_cache: torch.Tensor, lengths: int | torch.Tensor | None, rows: torch.Tensor | None,
             first_keys: torch.Tensor | None, block_table: torch.Tensor | None, k_descale: Any, v_descale: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """Writes new keys behind those that are there: q, turned, and the new lengths."""
    k, v = new.k, new.v
    if v is None or v.ndim != 4 or k.ndim != 4:
        raise InvalidArgument(f"k, v: shapes {tuple(k.shape)}, {None if v is None else tuple(v.shape)}; accepted: [B, new keys, kv heads, head dim] of both")
    if k.shape[0] != q.shape[0]:
        raise InvalidArgument(f"k: shape {tuple(k.shape)}; accepted: [{q.shape[0]}, new keys, kv heads, head dim], q's batch")
    if (new.cos is None) != (new.sin is None):
        raise InvalidArgument("rotary_cos, rotary_sin: one of them; accepted: both, or neither")
    if lengths is None:
        raise InvalidArgument("cache_seqlens: None beside k; accepted: how many keys each sequence has")
    batch, count = k.shape[:2]
    device = q.device
    before = torch.full((batch,), lengths, dtype=torch.int64, device=device) if isinstance(lengths, int) else lengths.to(torch.int64)
    place = before[:, None] + torch.arange(count, device=device)
    slots = _slots(place, k_cache, rows, block_table)
    words: dict[str, Any] = {}
    for field, given in (("k_scale", k_descale), ("v_scale", v_descale)):
        if given is not None:
            words[field] = _scale(field, given, k_cache)
    if new.cos is None:
        _append.cache_append(k, v, k_cache, v_cache, slots, **words)
        return q, (before + count).to(torch.int32)
    begin = before if first_keys is None else before - first_keys
    positions = begin[:, None] + torch.arange(count, device=device)
    words |= {"rotary": "interleaved" if new.interleaved else "halves", "cos": new.cos, "sin": new.sin}
    if q.shape[1] == count and not (new.turns_alike and count > 1):
        turned = _append.cache_append(k, v, k_cache, v_cache, slots, positions=positions.reshape(-1), q=q, **words)
    else:
        # Rows of q are others than those of k, or have other positions: a launch of their own, which writes no key.
        _append.cache_append(k, v, k_cache, v_cache, slots, positions=positions.reshape(-1), **words)
        of_rows = begin[:, None] + (0 if new.turns_alike else torch.arange(q.shape[1], device=device))
        nowhere = torch.full((batch * q.shape[1],), -1, dtype=torch.int64, device=device)
        narrow = {name: words[name] for name in ("rotary", "cos", "sin")}
        stand_in = q[:, :, :1]
        turned = _append.cache_append(stand_in, None, q.new_empty(1, 1, 1, q.shape[3]), None, nowhere, positions=of_rows.expand(batch, q.shape[1]).reshape(-1), q=q, **narrow)
    assert turned is not None
    return turned, (before + count).to(torch.int32)


def _slots(place: torch.Tensor, k_cache: torch.Tensor, rows: torch.Tensor | None, block_table: torch.Tensor | None) -> torch.Tensor:
    """Of keys that stand at `place` of their sequences; −1 behind the cache's end, where nothing is written."""
    size = k_cache.shape[1]
    if block_table is None:
        row = torch.arange(place.shape[0], device=place.device) if rows is None else rows.to(torch.int64)
        return torch.where(place < size, row[:, None] * size + place, -1).reshape(-1)
    column = place // size
    page = block_table.to(torch.int64).gather(1, column.clamp(max=block_table.shape[1] - 1))
    return torch.where(column < block_table.shape[1], page * size + place % size, -1).reshape(-1)


def _scale(field: str, given: Any, k_cache: torch.Tensor) -> torch.Tensor:
    if k_cache.dtype not in _roads.CACHES:
        raise InvalidArgument(f"{field.replace('scale', 'descale')}: given beside a cache of {k_cache.dtype}; accepted: a cache of 8 bits")
    if isinstance(given, (int, float)):
        return torch.full((1,), given, dtype=torch.float32, device=k_cache.device)
    if given.numel() == 1 or (given.ndim == 2 and given.shape[0] == 1):
        return given.reshape(-1)
    if given.ndim == 1:
        return given
    raise InvalidArgument(f"{field.replace('scale', 'descale')}: shape {tuple(given.shape)}; accepted beside k: one number, or one for each kv head")


def chosen(k_cache: torch.Tensor, v_cache: torch.Tensor, rows: torch.Tensor, lengths: int | torch.Tensor | None,
           in_place: bool) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None, int | torch.Tensor]:
    """Rows of a dense cache as a batch has them: each row is a page, where pages may be as long, else a copy."""
    length = k_cache.shape[1] if lengths is None else lengths
    if in_place and k_cache.shape[1] % 16 == 0:
        return k_cache, v_cache, rows[:, None], length
    index = rows.to(torch.int64)
    return k_cache.index_select(0, index), v_cache.index_select(0, index), None, length
