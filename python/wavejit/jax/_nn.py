# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""jax.nn.dot_product_attention."""
from __future__ import annotations

from typing import Any

import jax
from jax import numpy as jnp

from .._errors import Error, InvalidArgument, Unsupported, in_callers_words
from ._attention import attention

# What the words of `attention` are called here.
NAMES = {"q": "query", "k": "key", "v": "value", "causal": "is_causal", "window": "local_window_size", "key_lengths": "key_value_seq_lengths", "lse": "return_residual"}


def dot_product_attention(query: Any, key: Any, value: Any, bias: Any = None, mask: Any = None, *, scale: float | None = None, is_causal: bool = False,
                          query_seq_lengths: Any = None, key_value_seq_lengths: Any = None, local_window_size: int | tuple[int, int] | None = None,
                          implementation: str | None = None, return_residual: bool = False) -> Any:
    """softmax(scale · query·keyᵀ + bias, masked) · value, as jax.nn.dot_product_attention has it.

    query [B, T, N, H] or [T, N, H], key and value [B, S, K, H] or [S, K, H]
        float16 or bfloat16; N is a multiple of K. value's head dim may be another.
    bias, mask
        What broadcasts to [B, N, T, S]: added to the scores, and bool, True where a key takes part. bias has a gradient.
    is_causal
        Row i sees keys 0 … i: aligned top-left, whatever T and S are.
    query_seq_lengths, key_value_seq_lengths [B], int32
        Rows behind a sequence's length are 0; keys behind it do not count, and are never read.
    local_window_size
        (left, right) keys around a row's own, or one number for both.
    implementation
        None, or "wavejit": there is one.
    return_residual
        With the log-sum-exp [B, T, N], float32 here, and without a gradient as there. Rows behind a sequence's length have -inf.

    A row that sees no key is 0; jax.nn gives it the mean of value. Tokens, heads and lengths never become a mask in memory.

    >>> import jax, wavejit.jax
    >>> engine = wavejit.jax.use("sim:gfx950")
    >>> query = jax.numpy.ones((1, 3, 4, 64), jax.numpy.bfloat16)
    >>> wavejit.jax.dot_product_attention(query, query, query, is_causal=True).shape
    (1, 3, 4, 64)
    """
    if implementation not in (None, "wavejit"):
        raise InvalidArgument(f"implementation = {implementation!r}; accepted: None, 'wavejit'")
    arrays = {"query": jnp.asarray(query), "key": jnp.asarray(key), "value": jnp.asarray(value)}
    for field, array in arrays.items():
        if array.ndim not in (3, 4):
            raise InvalidArgument(f"{field}: shape {array.shape}; accepted: [batch, length, heads, head dim] or [length, heads, head dim]")
    if any(array.dtype == jnp.float32 for array in arrays.values()):
        raise Unsupported("query, key, value: dtype float32; accepted: float16 or bfloat16 of all three, there is no attention over float32")
    q, k, v = (array if array.ndim == 4 else array[None] for array in arrays.values())
    rows, keys = q.shape[1], k.shape[1]
    window = (local_window_size, local_window_size) if isinstance(local_window_size, int) else local_window_size
    # Diagonals begin at key 0; lengths would move them otherwise.
    aligned = (is_causal or window is not None) and (rows != keys or key_value_seq_lengths is not None)
    added = _added(bias, mask, q.dtype)
    names = NAMES if bias is not None or mask is None else {**NAMES, "bias": "mask"}
    try:
        out = attention(q, k, v, scale=scale, causal=is_causal, window=window, causal_prefix=0 if aligned else None, bias=added, key_lengths=key_value_seq_lengths,
                        lse=return_residual)
    except Error as error:
        raise in_callers_words(error, names) from None
    lse: Any = None
    if return_residual:
        out, lse = out
    if query_seq_lengths is not None:
        if jnp.shape(query_seq_lengths) != (q.shape[0],):
            raise InvalidArgument(f"query_seq_lengths: shape {jnp.shape(query_seq_lengths)}; accepted: [{q.shape[0]}], one for each batch")
        counts = jnp.arange(rows)[None, :] < jnp.asarray(query_seq_lengths)[:, None]
        out = jnp.where(counts[:, :, None, None], out, 0)
        lse = jnp.where(counts[:, None, :], lse, -jnp.inf) if return_residual else None
    out = out.reshape(*arrays["query"].shape[:-1], v.shape[3])
    if not return_residual:
        return out
    return out, jax.lax.stop_gradient(jnp.moveaxis(lse, 1, 2).reshape(arrays["query"].shape[:-1]))


def _added(bias: Any, mask: Any, dtype: Any) -> Any:
    """A bias with -inf where a mask hides, in four dimensions."""
    bias, mask = (None if each is None else jnp.asarray(each) for each in (bias, mask))
    for field, array in (("bias", bias), ("mask", mask)):
        if array is not None and array.ndim not in (1, 2, 3, 4):
            raise InvalidArgument(f"{field}: shape {array.shape}; accepted: what broadcasts to [batch, heads, length of query, length of key]")
    bias, mask = (None if each is None else each.reshape((1,) * (4 - each.ndim) + each.shape) for each in (bias, mask))
    if mask is None:
        return bias
    if mask.dtype != jnp.bool_:
        raise InvalidArgument(f"mask: dtype {mask.dtype}; accepted: bool")
    if bias is None:
        return mask
    bias = bias if bias.dtype == jnp.float32 else bias.astype(dtype)
    return jnp.where(mask, bias, -jnp.inf)
