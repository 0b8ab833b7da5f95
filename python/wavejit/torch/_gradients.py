# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Gradients: what the forward operators are where a tensor requires grad, and the operator that computes them.

    torch.ops.wavejit.attention_backward(q, k, v, out, lse, d_out, *, …) -> (Tensor, Tensor, Tensor)

Forward with LSE, then one call for dq, dk and dv. Each call is deterministic: no additions in the order of arrival.
"""
from __future__ import annotations

from typing import Any

import torch
from torch.autograd import forward_ad

from .. import _dtypes
from .._arrays import DeviceArray, dense_strides
from .._engine import Engine
from .._errors import Unsupported
from . import _engines, _roads

ARGUMENTS = (
    "Tensor q, Tensor k, Tensor v, Tensor out, Tensor lse, Tensor d_out, *, Tensor? d_lse=None, float? scale=None, bool causal=False, "
    "SymInt window_left=-1, SymInt window_right=-1, SymInt causal_prefix=-1, float softcap=0.0, Tensor? alibi=None, Tensor? query_starts=None, "
    "Tensor? key_starts=None, Tensor? key_lengths=None, SymInt max_query_length=0, SymInt max_key_length=0"
)
NUMBERS = ("query_starts", "key_starts", "key_lengths")
# The forward operators' words that a gradient hangs on; of the others there is none.
WORDS = ("scale", "causal", "window_left", "window_right", "causal_prefix", "softcap", "max_query_length", "max_key_length")
WITHOUT_BACKWARD = ("bias", "first_keys", "block_table")
HEAD_DIMS = (64, 128)
INSTEAD = "torch.no_grad(), torch.inference_mode(), or detach()"


def wanted(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *others: torch.Tensor | None) -> bool:
    """Whether a gradient may be asked for later."""
    return torch.is_grad_enabled() and any(tensor is not None and tensor.requires_grad for tensor in (q, k, v, *others))


def check(q: torch.Tensor, v: torch.Tensor, words: dict[str, Any]) -> None:
    """Refuses what has no gradient, where one is wanted."""
    for field in ("bias", "alibi", "sinks"):
        tensor = words.get(field)
        if tensor is not None and tensor.requires_grad:
            raise Unsupported(f"{field}: it requires grad, and has no backward yet; accepted: {INSTEAD}")
    for field in WITHOUT_BACKWARD:
        if words.get(field) is not None:
            raise Unsupported(f"{field}: given, and q, k or v requires grad: there is no backward of it yet; accepted: {INSTEAD}")
    if q.shape[-1] not in HEAD_DIMS or v.shape[-1] != q.shape[-1]:
        raise Unsupported(f"q: head dims {q.shape[-1]} and {v.shape[-1]} of v, and one of q, k, v requires grad; accepted: 64, 128 of all alike, or {INSTEAD}")


class Attention(torch.autograd.Function):
    """Forward with LSE, and the gradients of both outputs."""

    @staticmethod
    def forward(ctx: Any, operator: Any, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, words: dict[str, Any]) -> tuple[torch.Tensor, torch.Tensor]:
        with torch._C._AutoDispatchBelowAutograd():
            out, lse = operator(q, k, v, **words)
        ctx.words = {name: words[name] for name in WORDS if name in words}
        ctx.tensors = [name for name in ("alibi", *NUMBERS) if words.get(name) is not None]
        ctx.save_for_backward(q, k, v, out, lse, *(words[name] for name in ctx.tensors))
        ctx.set_materialize_grads(False)
        return out, lse

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        d_out, d_lse = gradients
        q, k, v, out, lse, *others = ctx.saved_tensors
        if d_out is None and d_lse is None:
            return None, None, None, None, None
        if d_out is None:
            d_out = torch.zeros_like(out)
        dq, dk, dv = attention_backward(q, k, v, out, lse, d_out, d_lse=d_lse, **ctx.words, **dict(zip(ctx.tensors, others)))
        return None, dq, dk, dv, None


def differentiable(operator: Any, with_lse: bool, with_lse_operator: Any, check_forward_mode: Any) -> Any:
    """What a forward operator is above its kernel: with a gradient where one is wanted, itself elsewhere. Tangents are seen
    here, and not below."""

    def call(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, **words: Any) -> Any:
        if forward_ad._current_level >= 0:
            check_forward_mode(q, k, v, words)
        if wanted(q, k, v, words.get("bias"), words.get("alibi"), words.get("sinks")):
            check(q, v, words)
            both = Attention.apply(with_lse_operator(), q, k, v, words)  # type: ignore[no-untyped-call]
            return both if with_lse else both[0]
        with torch._C._AutoDispatchBelowAutograd():
            return operator()(q, k, v, **words)

    return call


# ---- The operator


def _attention_backward(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, out: torch.Tensor, lse: torch.Tensor, d_out: torch.Tensor,
                        **words: Any) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    engine = _engines.of_device(q.device, "q")
    gradients = _traced(q, k, v, out, lse, d_out, **words)
    if 0 in q.shape or 0 in k.shape:
        return tuple(gradient.zero_() for gradient in gradients)  # type: ignore[return-value]
    if words.get("query_starts") is not None or words.get("key_starts") is not None:
        # Rows of no sequence are not written.
        for gradient in gradients:
            gradient.zero_()
    inputs = [_readable(tensor) for tensor in (q, k, v, out, lse, d_out if d_out.dtype is q.dtype else d_out.to(q.dtype))]
    given = {name: value for name, value in words.items() if value is not None}
    d_lse = given.pop("d_lse", None)
    known = _roads.engine_words(given)
    if d_lse is not None:
        known["d_lse"] = _readable(d_lse)
    known.pop("splits", None)
    if q.is_cpu:
        known = {name: value.detach() if isinstance(value, torch.Tensor) else value for name, value in known.items()}
        engine.attention_backward(*(tensor.detach() for tensor in inputs), *gradients, **known)
        return gradients
    _on_device(engine, inputs, gradients, known)
    return gradients


def _readable(tensor: torch.Tensor) -> torch.Tensor:
    """As the kernels read a tensor; LSE has three dimensions, and rows side by side."""
    well = tensor.is_contiguous() if tensor.ndim == 3 else _roads._lies_well(tensor)
    return tensor if well and tensor.data_ptr() % _roads.ALIGNED == 0 else tensor.clone(memory_format=torch.contiguous_format)


def _on_device(engine: Engine, inputs: list[torch.Tensor], gradients: tuple[torch.Tensor, ...], words: dict[str, Any]) -> None:
    def array(field: str, tensor: torch.Tensor) -> DeviceArray:
        return _roads._array(engine, field, tensor)

    given = {name: array(name, value) if isinstance(value, torch.Tensor) else value for name, value in words.items()}
    names = ("q", "k", "v", "out", "lse", "d_out", "dq", "dk", "dv")
    arrays = [array(name, tensor) for name, tensor in zip(names, (*inputs, *gradients))]
    call = engine.attention_backward_call(*arrays, stream=_roads.current_stream(inputs[0].device), **given)
    # torch's own memory, so that its allocator knows until when the stream needs it: delta, and sums of runs of rows.
    dwords = call.workspace_bytes() // 4
    numbers = torch.empty(dwords, dtype=torch.float32, device=inputs[0].device)
    call._give_workspace(DeviceArray(engine, numbers, numbers.data_ptr(), _dtypes.FP32, (dwords,), dense_strides((dwords,))))
    call.run()


def _traced(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, out: torch.Tensor, lse: torch.Tensor, d_out: torch.Tensor,
            **words: Any) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    return q.new_empty(q.shape), k.new_empty(k.shape), v.new_empty(v.shape)


def _no_second(operator: Any) -> Any:
    def call(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, out: torch.Tensor, lse: torch.Tensor, d_out: torch.Tensor, **words: Any) -> Any:
        if wanted(q, k, v, out, d_out):
            raise Unsupported("create_graph: gradients of gradients have no kernel; accepted: create_graph=False")
        with torch._C._AutoDispatchBelowAutograd():
            return operator()(q, k, v, out, lse, d_out, **words)

    return call


def define(library: Any) -> None:
    """The operator, in the library of the forward ones."""
    library.define(f"attention_backward({ARGUMENTS}) -> (Tensor, Tensor, Tensor)", tags=(torch.Tag.pt2_compliant_tag,))
    library.impl("attention_backward", torch.compiler.disable(_attention_backward), "CompositeExplicitAutograd")
    library.impl("attention_backward", _no_second(lambda: attention_backward), "Autograd")
    torch.library.register_fake("wavejit::attention_backward", _traced, lib=library)


def attention_backward(*inputs: Any, **words: Any) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The operator."""
    return torch.ops.wavejit.attention_backward.default(*inputs, **words)  # type: ignore[no-any-return]
