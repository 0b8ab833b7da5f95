# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention into the caller's memory: `torch.ops.wavejit.attention_forward_out`, with out, LSE and workspace of the caller's."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from .._errors import Error, InvalidArgument, Unsupported, in_callers_words
from . import _engines, _no_dims, _operators, _dispatch
from ._faces import Face

WORDS = ", ".join([_operators.WORDS, *[f"Tensor? {name}=None" for name in _dispatch.OF_OUT]])
_operators.LIBRARY.define(f"attention_forward_out(Tensor q, Tensor k, Tensor v, Tensor(a!) out, Tensor(b!)? lse=None, Tensor(c!)? workspace=None, *, {WORDS}) -> ()",
                          tags=(torch.Tag.pt2_compliant_tag,))


def check_outputs(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, out: torch.Tensor, lse: torch.Tensor | None, workspace: torch.Tensor | None) -> None:
    """What the engine would say of them by its own names, or not at all. Of the words beside them it says it itself."""
    sizes, lse_sizes = _dispatch._sizes(q, v, k)
    accepted = (_dispatch.out_type(q, v), torch.float32, *_dispatch.WRITTEN)
    if tuple(out.shape) != sizes or out.dtype not in accepted:
        raise InvalidArgument(f"out: {out.dtype}, shape {tuple(out.shape)}; accepted: {' or '.join(map(str, accepted))}, {sizes}")
    if lse is not None and (tuple(lse.shape) != lse_sizes or lse.dtype is not torch.float32):
        raise InvalidArgument(f"lse: {lse.dtype}, shape {tuple(lse.shape)}; accepted: torch.float32, {lse_sizes}")
    if workspace is not None and not workspace.is_contiguous():
        raise InvalidArgument(f"workspace: strides {workspace.stride()}; accepted: numbers side by side, of any type")
    for field, tensor in (("out", out), ("lse", lse), ("workspace", workspace)):
        if tensor is not None and tensor.device != q.device:
            raise InvalidArgument(f"{field}: a tensor on {tensor.device}; accepted: {q.device}, where q is")


def _run(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, out: torch.Tensor, lse: torch.Tensor | None = None, workspace: torch.Tensor | None = None, **words: Any) -> None:
    check_outputs(q, k, v, out, lse, workspace)
    if 0 in out.shape and (lse is None or 0 in lse.shape):
        return
    if _no_dims.are_there(q, k, v):
        call = _no_dims.with_dims(q, k, v, words)
        q, k, v, words = call.q, call.k, call.v, call.words
        out = out if call.has_values else out.new_empty((*out.shape[:3], q.shape[3]))
    engine = _engines.of_device(q.device, "q")
    if q.is_cpu:  # what is copied has a workspace of the engine's
        _dispatch.copied_into(engine, q, k, v, out, lse, words)
    else:
        _dispatch.launched_into(engine, q, k, v, out, lse, workspace, words)


def _without_gradients(*tensors: Any, **words: Any) -> None:
    given = [tensor for tensor in (*tensors, *words.values()) if isinstance(tensor, torch.Tensor)]
    if torch.is_grad_enabled() and any(tensor.requires_grad for tensor in given):
        raise Unsupported("out: given, and a tensor requires grad; accepted: out = None, or torch.no_grad(): what is written to a caller's tensor has no gradient")
    with torch._C._AutoDispatchBelowAutograd():
        operator(*tensors, **words)


def called_into(names: dict[str, str], face: Face, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, out: torch.Tensor, words: dict[str, Any], with_lse: bool) -> torch.Tensor | None:
    """A function's call into its caller's `out`; the LSE, if it is wanted, as the operators have it."""
    _operators.tensors_only({"out": out})
    inside = face.inside(q, k, v)
    lse = out.new_empty(_dispatch._sizes(inside[0], inside[2], inside[1])[1], dtype=torch.float32) if with_lse else None
    if _dispatch.is_packed(words):
        _dispatch.clear(None, lse)
    try:
        operator(*inside, face.out.inside(out), lse, **words)
    except Error as error:
        raise in_callers_words(error, names) from None
    return lse


_untraced: Any = torch.compiler.disable  # what is below an operator is not looked into
_operators.LIBRARY.impl("attention_forward_out", _untraced(_run), "CompositeExplicitAutograd")
_operators.LIBRARY.impl("attention_forward_out", _without_gradients, "Autograd")
torch.library.register_fake("wavejit::attention_forward_out", lambda *_, **__: None, lib=_operators.LIBRARY)
operator: Callable[..., None] = torch.ops.wavejit.attention_forward_out.default
