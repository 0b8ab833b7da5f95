# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""torch.nn.functional.scaled_dot_product_attention."""
from __future__ import annotations

from typing import Any

import torch

from .._errors import InvalidArgument
from ._faces import HEADS_FIRST
from ._operators import called, tensors_only

# What the operator's words are called here.
NAMES = {"q": "query", "k": "key", "v": "value", "bias": "attn_mask"}


def scaled_dot_product_attention(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, attn_mask: torch.Tensor | None = None, dropout_p: float = 0.0,
                                 is_causal: bool = False, scale: float | None = None, enable_gqa: bool = False) -> torch.Tensor:
    """softmax(scale · query·keyᵀ + mask) · value, as torch.nn.functional.scaled_dot_product_attention has it.

    query [N…, Hq, L, E], key [N…, H, S, E], value [N…, H, S, Ev] → [N…, Hq, L, Ev]
        fp16 or bf16. Any number of batch dimensions; those of key and value may be 1, or missing.
    attn_mask [L, S], or what broadcasts to [N…, Hq, L, S]
        bool: True where a key takes part. Floating point: added to the scores; float32 as it stands, others after they were
        rounded to query's dtype. A row that sees no key is 0. It may require grad.
    dropout_p
        0: there is none here.
    is_causal
        Row i sees keys 0 … i: aligned top-left, whatever L and S are. Not beside attn_mask.
    scale
        1 / sqrt(E) by default.
    enable_gqa
        Hq may be a multiple of H: query head h reads kv head h // (Hq // H). No copies are made for it.

    On ROCm on torch's current stream, without copies of tensors that lie well: elements of a row side by side, other strides
    multiples of 8 elements. Raises InvalidArgument and Unsupported, which name the argument.

    >>> import torch, wavejit.torch
    >>> engine = wavejit.torch.use("sim:gfx950")
    >>> query = torch.ones(1, 4, 3, 64, dtype=torch.float16)
    >>> key = torch.ones(1, 2, 5, 64, dtype=torch.float16)
    >>> value = torch.arange(5, dtype=torch.float16).reshape(1, 1, 5, 1).expand(1, 2, 5, 64)
    >>> out = wavejit.torch.scaled_dot_product_attention(query, key, value, is_causal=True, enable_gqa=True)
    >>> out[0, 0, :, 0].tolist()
    [0.0, 0.5, 1.0]
    """
    if dropout_p:
        raise InvalidArgument(f"dropout_p = {dropout_p}; accepted: 0, there is no dropout")
    if is_causal and attn_mask is not None:
        raise InvalidArgument("is_causal beside attn_mask; accepted: one of them")
    if not (type(query) is type(key) is type(value) is torch.Tensor):  # the quick question
        tensors_only({"query": query, "key": key, "value": value})
    if attn_mask is not None and not isinstance(attn_mask, torch.Tensor):
        tensors_only({"attn_mask": attn_mask})
    of_query, of_key, of_value = query.shape, key.shape, value.shape  # torch makes them anew each time
    if not len(of_query) == len(of_key) == len(of_value) == 4 or not of_query[0] == of_key[0] == of_value[0]:
        return _of_any_shape(query, key, value, attn_mask, is_causal, scale, enable_gqa)
    heads = of_query[1]
    if of_key[1] != heads or of_value[1] != heads:
        if not enable_gqa and (heads == 1 or of_key[1] != of_value[1]) and len({heads, of_key[1], of_value[1]} - {1}) == 1:
            query, key, value = _with_heads(query, key, value)
        else:
            _check_heads(heads, of_key[1], of_value[1], enable_gqa)
    if attn_mask is not None:
        return called(NAMES, HEADS_FIRST, query, key, value, {"scale": scale, "bias": _bias_of(attn_mask, of_query[2], of_key[2])})
    if is_causal and of_query[2] != of_key[2]:
        return called(NAMES, HEADS_FIRST, query, key, value, {"scale": scale, "causal": True, "causal_prefix": 0})
    return called(NAMES, HEADS_FIRST, query, key, value, {"scale": scale, "causal": is_causal})


def _check_mask(mask: torch.Tensor) -> None:
    if mask.dtype is not torch.bool and not mask.dtype.is_floating_point:
        raise InvalidArgument(f"attn_mask: dtype {mask.dtype}; accepted: bool, floating point")
    if mask.ndim < 1:
        raise InvalidArgument("attn_mask: shape (); accepted: [..., length of query, length of key]")


def _bias_of(mask: torch.Tensor, rows: int, keys: int) -> torch.Tensor:
    """In four dimensions, of which the last two are whole; those in front may be 1."""
    _check_mask(mask)
    if mask.ndim == 1:
        mask = mask[None]
    if mask.ndim > 4 or mask.shape[-2] not in (1, rows) or mask.shape[-1] not in (1, keys):
        raise InvalidArgument(f"attn_mask: shape {tuple(mask.shape)}; accepted: what broadcasts to [batch, heads, {rows}, {keys}]")
    whole = mask if mask.ndim == 4 else mask[(None,) * (4 - mask.ndim)]
    return whole if whole.shape[2:] == (rows, keys) else whole.expand(-1, -1, rows, keys)


def _with_heads(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """One head broadcasts, as in PyTorch: nothing is copied for it. One of both key and value needs no such."""
    heads = max(query.shape[1], key.shape[1], value.shape[1])

    def of_all(tensor: torch.Tensor) -> torch.Tensor:
        return tensor.expand(-1, heads, -1, -1) if tensor.shape[1] == 1 else tensor

    return of_all(query), of_all(key), of_all(value)


def _check_heads(queries: int, keys: int, values: int, enable_gqa: bool) -> None:
    # One head for all is what PyTorch broadcasts.
    if not (keys == values == 1) and not (enable_gqa and keys == values and keys > 0 and queries % keys == 0):
        accepted = f"as many for key and value, of which {queries} is a multiple" if enable_gqa else "as many for all three, or enable_gqa=True"
        raise InvalidArgument(f"heads: {queries} of query, {keys} of key, {values} of value; accepted: {accepted}")


def _of_any_shape(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, mask: torch.Tensor | None, is_causal: bool, scale: float | None,
                  enable_gqa: bool) -> torch.Tensor:
    """Other numbers of dimensions: batch dimensions become one. In three, [N, L, E], the first is heads' as well as batch's."""
    for field, tensor in (("query", query), ("key", key), ("value", value)):
        if tensor.ndim < 2:
            raise InvalidArgument(f"{field}: shape {tuple(tensor.shape)}; accepted: [..., heads, length, head dim]")
    dimensions = max(query.ndim, key.ndim, value.ndim, 3)
    query_, key_, value_ = (tensor[(None,) * (dimensions - tensor.ndim)] for tensor in (query, key, value))
    try:
        batch: Any = torch.broadcast_shapes(query_.shape[:-3], key_.shape[:-3], value_.shape[:-3])  # type: ignore[no-untyped-call,unused-ignore]
    except RuntimeError as error:
        raise InvalidArgument(f"query, key and value: {error}") from error
    q, k, v = (_in_one_batch(tensor, batch) for tensor in (query_, key_, value_))
    if mask is not None:
        _check_mask(mask)
        whole = mask[(None,) * (dimensions - mask.ndim)]
        try:
            mask = _in_one_batch(whole, batch)
        except RuntimeError as error:
            raise InvalidArgument(f"attn_mask: {error}") from error
    out = scaled_dot_product_attention(q, k, v, mask, 0.0, is_causal, scale, enable_gqa)
    out = out.reshape(*batch, *out.shape[1:])
    return out if max(query.ndim, key.ndim, value.ndim) > 2 else out[0]


def _in_one_batch(tensor: torch.Tensor, batch: Any) -> torch.Tensor:
    """Batch dimensions as one, of all batches; it is said how many, since sizes of 0 leave -1 open."""
    number = 1
    for size in batch:
        number = number * size
    return tensor.expand(*batch, *tensor.shape[-3:]).reshape(number, *tensor.shape[-3:])
