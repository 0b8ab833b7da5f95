# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention over the blocks of keys that a FlexAttention BlockMask names."""
from __future__ import annotations

import math
from typing import Any

import torch

from .._errors import InvalidArgument, Unsupported
from .._lists import BlockLists
from . import _engines, _dispatch
from ._operators import tensors_only

SIZES = (64, 128)


def block_mask_attention(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, block_mask: Any, *, scale: float | None = None, causal: bool = False,
                         window_size: tuple[int, int] = (-1, -1), alike: bool = False, return_lse: bool = False) -> Any:
    """softmax(scale · query·keyᵀ + mask) · value over the blocks that `block_mask` names. No gradients.

    query [B, Hq, Sq, D], key and value [B, Hkv, Sk, D] → [B, Hq, Sq, D]
        fp16 or bf16, as torch.nn.attention.flex_attention has them.
    block_mask
        What create_block_mask makes, or anything with its kv_num_blocks, kv_indices, full_kv_num_blocks, full_kv_indices and BLOCK_SIZE, of 64 or 128.
        Its lists alone are read: full blocks are seen whole, and of the others what `causal` and `window_size` show. Its mask_mod is
        not, so these two must say what it says.
    causal, window_size
        Aligned bottom-right. The window (left, right) counts keys from the diagonal; −1 is no limit.
    alike
        A hint: neighbouring rows of blocks share most of their blocks.
    return_lse
        (out, LSE [B, Hq, Sq] fp32). A row that sees no key is 0, its LSE −∞.

    >>> import torch, types, wavejit.torch
    >>> engine = wavejit.torch.use("sim:gfx950")
    >>> q = k = v = torch.ones(1, 1, 256, 64, dtype=torch.bfloat16)
    >>> lists = types.SimpleNamespace(BLOCK_SIZE=(128, 128), kv_num_blocks=torch.tensor([[[1, 1]]], dtype=torch.int32),
    ...                               kv_indices=torch.tensor([[[[0, 1], [1, 0]]]], dtype=torch.int32), full_kv_num_blocks=None, full_kv_indices=None)
    >>> out, lse = wavejit.torch.block_mask_attention(q, k, v, lists, causal=True, return_lse=True)
    >>> [round(lse[0, 0, row].item() - 8, 3) for row in (1, 255)]    # ln 2, ln 128
    [0.693, 4.852]
    """
    tensors_only({"query": query, "key": key, "value": value})
    if torch.is_grad_enabled() and any(tensor.requires_grad for tensor in (query, key, value)):
        raise Unsupported("query, key or value requires grad, and lists of blocks have no backward; accepted: torch.no_grad(), or detach()")
    for field, tensor in (("query", query), ("key", key), ("value", value)):
        if tensor.ndim != 4:
            raise InvalidArgument(f"{field}: shape {tuple(tensor.shape)}; accepted: [batch, heads, length, head dim]")
    lengths = getattr(block_mask, "seq_lengths", None)
    if lengths is not None and tuple(lengths) != (query.shape[2], key.shape[2]):
        raise InvalidArgument(f"block_mask.seq_lengths = {tuple(lengths)}; accepted: {(query.shape[2], key.shape[2])}, the lengths of query and key")
    rows, keys = block_mask.BLOCK_SIZE
    if rows not in SIZES or keys not in SIZES:
        raise InvalidArgument(f"block_mask.BLOCK_SIZE = {(rows, keys)}; accepted: of 64 and 128")
    lists = BlockLists(indices=_int32("kv_indices", block_mask), counts=_int32("kv_num_blocks", block_mask), full_indices=_int32("full_kv_indices", block_mask),
                       full_counts=_int32("full_kv_num_blocks", block_mask), rows=rows, keys=keys, alike=alike)
    engine = _engines.of_device(query.device, "query")
    q, k, v = (_readable(tensor.detach().transpose(1, 2)) for tensor in (query, key, value))
    out = torch.empty((*q.shape[:3], v.shape[3]), dtype=q.dtype, device=q.device)
    lse = torch.empty((q.shape[0], q.shape[2], q.shape[1]), dtype=torch.float32, device=q.device) if return_lse else False
    window = None if tuple(window_size) == (-1, -1) else tuple(None if side == -1 else side for side in window_size)
    engine.attention_forward(q, k, v, out, scale=1 / math.sqrt(q.shape[3]) if scale is None else scale, causal=causal, window=window, lse=lse, lists=lists,
                             stream=None if q.is_cpu else _dispatch.current_stream(q.device))
    return (out.transpose(1, 2), lse) if return_lse else out.transpose(1, 2)


def _int32(field: str, block_mask: Any) -> torch.Tensor | None:
    tensor: torch.Tensor | None = getattr(block_mask, field, None)
    if tensor is None:
        return None
    if tensor.dtype is not torch.int32:
        raise InvalidArgument(f"block_mask.{field}: dtype {tensor.dtype}; accepted: torch.int32")
    return tensor.contiguous()


def _readable(tensor: torch.Tensor) -> torch.Tensor:
    return tensor if _dispatch._lies_well(tensor) and tensor.data_ptr() % _dispatch.ALIGNED == 0 else _dispatch._copy(tensor)
