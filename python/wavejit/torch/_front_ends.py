# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""PyTorch's own front ends: its functions for attention, computed by wavejit.

    torch.nn.attention.activate_flash_attention_impl("wavejit")

From then on PyTorch's flash attention is wavejit's: what scaled_dot_product_attention, nn.attention.varlen and whatever calls the same
operators end in. Importing this package only makes the name known. ROCm tensors have PyTorch's dispatch key of CUDA; CPU tensors go
along where a simulated GPU serves them when it is activated.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from .. import _device
from .._errors import InvalidArgument, Unsupported
from . import _engines, _gradients, _into, _plainly, _dispatch, _sdpa

NAME = "wavejit"
INSTEAD = "torch.nn.attention.sdpa_kernel(SDPBackend.MATH), which leaves it to PyTorch"
Forward = tuple[torch.Tensor, torch.Tensor]
Gradients = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


def make_known() -> None:
    """PyTorch 2.13 and later have the list."""
    register: Callable[..., None] | None = getattr(torch.nn.attention, "register_flash_attention_impl", None)
    if register is not None:
        register(NAME, register_fn=_activate)


class _Active:
    """While it lives PyTorch's operators are wavejit's; `torch.nn.attention.restore_flash_attention_impl` ends it."""

    def __init__(self, library: torch.library.Library) -> None:
        self._library: torch.library.Library | None = library

    def remove(self) -> None:
        if self._library is not None:
            self._library._destroy()
            self._library = None


def _activate() -> _Active:
    library = torch.library.Library("aten", "IMPL")
    keys = ["CUDA"] if torch.version.hip is not None else []
    if torch.device("cpu") in _engines._of or _device.is_simulated(_device.chosen(None)):
        keys.append("CPU")
        for name, kernel in (("", _sdpa_on_cpu), ("_backward", _sdpa_on_cpu_backward)):
            _take(library, f"_scaled_dot_product_flash_attention_for_cpu{name}", kernel, "CPU")
    if not keys:
        raise InvalidArgument(f'{NAME}: this PyTorch is {torch.__version__}, not one for ROCm; accepted: wavejit.torch.use("sim:gfx950") before it is activated, '
                              "for CPU tensors that are copied to a simulated GPU")
    for key in keys:
        for operator, kernel in KERNELS.items():
            _take(library, operator, kernel, key)
    return _Active(library)


def _take(library: torch.library.Library, operator: str, kernel: Callable[..., Any], key: str) -> None:
    library.impl(operator, torch.compiler.disable(kernel), key, allow_override=True)


# ---- over rows that lie as [batch, length, heads, head dim]


def _check(q: torch.Tensor, dropout: float) -> None:
    if dropout:
        raise InvalidArgument(f"dropout_p = {dropout}; accepted: 0, there is no dropout, or {INSTEAD}")
    if q.dtype not in _dispatch.ELEMENTS:
        raise Unsupported(f"query: dtype {q.dtype}; accepted: torch.float16, torch.bfloat16, or {INSTEAD}")


def _attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, dropout: float, words: dict[str, Any]) -> Forward:
    _check(q, dropout)
    return _plainly.kernel(q, k, v, True, words)  # type: ignore[no-any-return]


def _differentiate(inputs: tuple[torch.Tensor, ...], words: dict[str, Any]) -> Gradients:
    _gradients.check(inputs[0], inputs[2], words)
    return _gradients.backward_kernel((), inputs, words)  # type: ignore[return-value]


def _heads_first(*tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return tuple([tensor.transpose(1, 2) for tensor in tensors])


def _top_left(q: torch.Tensor, k: torch.Tensor, causal: bool, scale: float | None) -> dict[str, Any]:
    """The words of scaled_dot_product_attention, whose tensors have their heads first and whose diagonal begins top-left."""
    words: dict[str, Any] = {"scale": scale, "causal": causal}
    return {**words, "causal_prefix": 0} if causal and q.shape[2] != k.shape[2] else words


def _without_dropout(q: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """What the operators give beside: a seed, an offset, a mask."""
    return (torch.zeros(2, dtype=torch.uint64, device=q.device), torch.zeros((), dtype=torch.uint64, device=q.device), torch.empty(0, dtype=q.dtype, device=q.device))


# ---- scaled_dot_product_attention


def _sdpa_forward(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, dropout_p: float = 0.0, is_causal: bool = False, return_debug_mask: bool = False, *,
                  scale: float | None = None) -> tuple[Any, ...]:
    q, k, v = _heads_first(query, key, value)
    out, lse = _attend(q, k, v, dropout_p, _top_left(query, key, is_causal, scale))
    return out.transpose(1, 2), lse, None, None, query.shape[2], key.shape[2], *_without_dropout(query)


def _sdpa_backward(grad_out: torch.Tensor, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, out: torch.Tensor, logsumexp: torch.Tensor,
                   cum_seq_q: torch.Tensor | None, cum_seq_k: torch.Tensor | None, max_q: int, max_k: int, dropout_p: float, is_causal: bool,
                   philox_seed: torch.Tensor, philox_offset: torch.Tensor, *, scale: float | None = None) -> tuple[torch.Tensor, ...]:
    q, k, v, o, d_out = _heads_first(query, key, value, out, grad_out)
    return _heads_first(*_differentiate((q, k, v, o, logsumexp.contiguous(), d_out), _top_left(query, key, is_causal, scale)))


def _sdpa_on_cpu(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, dropout_p: float = 0.0, is_causal: bool = False, *,
                 attn_mask: torch.Tensor | None = None, scale: float | None = None) -> Forward:
    q, k, v = _heads_first(query, key, value)
    out, lse = _attend(q, k, v, dropout_p, _with_mask(query, key, is_causal, scale, attn_mask))
    return out.transpose(1, 2), lse


def _sdpa_on_cpu_backward(grad_out: torch.Tensor, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, out: torch.Tensor, logsumexp: torch.Tensor,
                          dropout_p: float, is_causal: bool, *, attn_mask: torch.Tensor | None = None, scale: float | None = None) -> tuple[torch.Tensor, ...]:
    q, k, v, o, d_out = _heads_first(query, key, value, out, grad_out)
    return _heads_first(*_differentiate((q, k, v, o, logsumexp.contiguous(), d_out), _with_mask(query, key, is_causal, scale, attn_mask)))


def _with_mask(query: torch.Tensor, key: torch.Tensor, causal: bool, scale: float | None, mask: torch.Tensor | None) -> dict[str, Any]:
    words = _top_left(query, key, causal, scale)
    return words if mask is None else {**words, "bias": _sdpa._bias_of(mask.detach(), query.shape[2], key.shape[2])}


# ---- the operators beneath, which nn.attention.varlen has: dense, packed, or keys in pages


def _flash_words(cum_seq_q: torch.Tensor | None, cum_seq_k: torch.Tensor | None, max_q: int, max_k: int, causal: bool, scale: float | None, left: int | None,
                 right: int | None, seqused_k: torch.Tensor | None = None, alibi_slopes: torch.Tensor | None = None, block_table: torch.Tensor | None = None,
                 num_splits: int | None = None) -> dict[str, Any]:
    words: dict[str, Any] = {"scale": scale, "causal": causal, "window_left": -1 if left is None else left, "window_right": -1 if right is None else right,
                             "query_starts": cum_seq_q, "key_lengths": seqused_k, "alibi": alibi_slopes, "splits": num_splits}
    if cum_seq_q is not None:
        words["max_query_length"] = max_q
    if block_table is not None:
        words |= {"block_table": block_table, "max_key_length": max_k}
        if seqused_k is None and cum_seq_k is not None:
            words["key_lengths"] = cum_seq_k[1:] - cum_seq_k[:-1]
    elif cum_seq_k is not None:
        words |= {"key_starts": cum_seq_k, "max_key_length": max_k}
    return {name: word for name, word in words.items() if word is not None}


def _flash_forward(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, cum_seq_q: torch.Tensor | None, cum_seq_k: torch.Tensor | None, max_q: int,
                   max_k: int, dropout_p: float, is_causal: bool, return_debug_mask: bool, *, scale: float | None = None, window_size_left: int | None = None,
                   window_size_right: int | None = None, seqused_k: torch.Tensor | None = None, alibi_slopes: torch.Tensor | None = None,
                   block_table: torch.Tensor | None = None, num_splits: int | None = None) -> tuple[torch.Tensor, ...]:
    words = _flash_words(cum_seq_q, cum_seq_k, max_q, max_k, is_causal, scale, window_size_left, window_size_right, seqused_k, alibi_slopes, block_table, num_splits)
    q, k, v = _in_batches(query, key, value)
    out, lse = _attend(q, k, v, dropout_p, words)
    if query.ndim == 3:
        out, lse = out[0], lse[0]
    return out, lse, *_without_dropout(query)


def _in_batches(*tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return tuple([tensor[None] if tensor.ndim == 3 else tensor for tensor in tensors])


def _flash_forward_into(out: torch.Tensor, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, cum_seq_q: torch.Tensor | None,
                        cum_seq_k: torch.Tensor | None, max_q: int, max_k: int, dropout_p: float, is_causal: bool, return_debug_mask: bool, *,
                        scale: float | None = None, window_size_left: int | None = None, window_size_right: int | None = None, **words: Any) -> torch.Tensor:
    """The caller's rows that are no sequence's stay as they are."""
    _check(query, dropout_p)
    q, k, v, into = _in_batches(query, key, value, out)
    lse = torch.empty(_dispatch._sizes(q, v, k)[1], dtype=torch.float32, device=q.device)
    if cum_seq_q is not None:
        _dispatch.clear(None, lse)
    _into._run(q, k, v, into, lse, **_flash_words(cum_seq_q, cum_seq_k, max_q, max_k, is_causal, scale, window_size_left, window_size_right, **words))
    return lse[0] if query.ndim == 3 else lse


def _flash_backward(grad_out: torch.Tensor, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, out: torch.Tensor, logsumexp: torch.Tensor,
                    cum_seq_q: torch.Tensor | None, cum_seq_k: torch.Tensor | None, max_q: int, max_k: int, dropout_p: float, is_causal: bool,
                    rng_state: torch.Tensor, unused: torch.Tensor, *, scale: float | None = None, window_size_left: int | None = None,
                    window_size_right: int | None = None) -> tuple[torch.Tensor, ...]:
    words = _flash_words(cum_seq_q, cum_seq_k, max_q, max_k, is_causal, scale, window_size_left, window_size_right)
    inputs = (query, key, value, out, logsumexp, grad_out)
    if query.ndim == 3:
        return tuple(gradient[0] for gradient in _differentiate(tuple(tensor[None] for tensor in inputs), words))
    return _differentiate(inputs, words)


KERNELS: dict[str, Callable[..., Any]] = {
    "_scaled_dot_product_flash_attention": _sdpa_forward,
    "_scaled_dot_product_flash_attention_backward": _sdpa_backward,
    "_flash_attention_forward": _flash_forward,
    "_flash_attention_forward_no_dropout_inplace": _flash_forward_into,
    "_flash_attention_backward": _flash_backward,
}
make_known()
