# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Gradients: what the forward operators are where a tensor requires grad, and the operator that computes them.

    torch.ops.wavejit.attention_backward(q, k, v, out, lse, d_out, *, …) -> (Tensor, Tensor, Tensor)
    torch.ops.wavejit.attention_backward_sinks(q, k, v, out, lse, d_out, sinks, *, …) -> (Tensor, Tensor, Tensor, Tensor)

Forward with LSE, then one call for dq, dk and dv, and for d_sinks [sequences, heads] where sinks require grad. Each call is
deterministic: no additions in the order of arrival.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.autograd import forward_ad

from .._errors import Unsupported
from . import _backward_road, _engines

INPUTS = "Tensor q, Tensor k, Tensor v, Tensor out, Tensor lse, Tensor d_out"
WORDS_OF_BACKWARD = (
    "*, Tensor? d_lse=None, float? scale=None, bool causal=False, "
    "SymInt window_left=-1, SymInt window_right=-1, SymInt causal_prefix=-1, float softcap=0.0, Tensor? alibi=None, Tensor? query_starts=None, "
    "Tensor? key_starts=None, Tensor? key_lengths=None, SymInt max_query_length=0, SymInt max_key_length=0"
)
# The forward operators' words that a gradient hangs on; of the others there is none.
WORDS = frozenset(("scale", "causal", "window_left", "window_right", "causal_prefix", "softcap", "max_query_length", "max_key_length"))
SAVED = frozenset(("alibi", *_backward_road.NUMBERS))
TENSORS = frozenset(("bias", "alibi", "sinks", "query_starts", "key_starts", "key_lengths", "first_keys", "block_table"))
WITHOUT_BACKWARD = frozenset(("bias", "first_keys", "block_table"))
CONSTANTS = frozenset(("bias", "alibi"))
HEAD_DIMS = ((64, 64), (128, 128), (192, 128), (256, 256))  # of q and k, of v
INSTEAD = "torch.no_grad(), torch.inference_mode(), or detach()"


def wanted(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *others: torch.Tensor | None) -> bool:
    """Whether a gradient may be asked for later."""
    if not torch.is_grad_enabled():
        return False
    return q.requires_grad or k.requires_grad or v.requires_grad or any([tensor is not None and tensor.requires_grad for tensor in others])


def nothing_traces(q: torch.Tensor) -> bool:
    """Whether what lies below autograd is the kernel itself: no mode, no subclass and no transform wants to see the operator. Then a
    call may leave out the dispatcher, which costs as much as the kernel's launch."""
    return type(q) is torch.Tensor and not _dispatch_modes() and _transform() is None


# What a call without an operator may have for words: anything else is the dispatcher's to convert or refuse.
PLAIN = frozenset((bool, int, float, type(None)))


def without_an_operator(q: torch.Tensor, words: dict[str, Any]) -> bool:
    """Whether a function of this package may leave out its operator: nobody traces it or takes a profile, and autocast has nothing to
    cast. The dispatcher costs twice what the rest of a call does."""
    return (
        nothing_traces(q)
        and not _function_modes()
        and not _autocast()
        and not _profiled()
        and all([type(value) in PLAIN or (name in TENSORS and type(value) is torch.Tensor) for name, value in words.items()])
    )


_profiled: Callable[[], bool] = torch.autograd._profiler_enabled
_autocast: Callable[[], bool] = torch._C._is_any_autocast_enabled
_function_modes: Callable[[], int] = torch._C._len_torch_function_stack
_dispatch_modes: Callable[[], int] = torch._C._len_torch_dispatch_stack
_transform: Callable[[], Any] = torch._C._functorch.peek_interpreter_stack


def check(q: torch.Tensor, v: torch.Tensor, words: dict[str, Any]) -> None:
    """Refuses what has no gradient, where one is wanted."""
    for field, value in words.items():
        if field in CONSTANTS and value is not None and value.requires_grad:
            raise Unsupported(f"{field}: it requires grad, and has no backward yet; accepted: {INSTEAD}")
        if field in WITHOUT_BACKWARD and value is not None:
            raise Unsupported(f"{field}: given, and q, k or v requires grad: there is no backward of it yet; accepted: {INSTEAD}")
    if (q.shape[-1], v.shape[-1]) not in HEAD_DIMS:
        raise Unsupported(f"q: head dims {q.shape[-1]} and {v.shape[-1]} of v, and one of q, k, v requires grad; accepted: 64, 128, 256 of all alike, 192 with 128 of v, or {INSTEAD}")


class WavejitAttention(torch.autograd.Function):
    """Forward with LSE, and the gradients of both outputs."""

    @staticmethod
    def forward(ctx: Any, operator: Any, kernel: Any, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, sinks: torch.Tensor | None,
                words: dict[str, Any]) -> tuple[torch.Tensor, torch.Tensor]:
        if nothing_traces(q):
            out, lse = kernel(q, k, v, **words)
        else:
            with torch._C._AutoDispatchBelowAutograd():
                out, lse = operator(q, k, v, **words)
        ctx.words = {name: value for name, value in words.items() if name in WORDS}
        tensors = {name: value for name, value in words.items() if name in SAVED and value is not None}
        if sinks is not None and sinks.requires_grad:
            tensors["sinks"] = sinks
        ctx.tensors = tuple(tensors)
        ctx.save_for_backward(q, k, v, out, lse, *tensors.values())
        ctx.set_materialize_grads(False)
        return out, lse

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        d_out, d_lse = gradients
        q, k, v, out, lse, *others = ctx.saved_tensors
        if d_out is None and d_lse is None:
            return None, None, None, None, None, None, None
        if d_out is None:
            d_out = torch.zeros_like(out)
        words = ctx.words
        if others:
            words = {**words, **dict(zip(ctx.tensors, others, strict=True))}
        if d_lse is not None:
            words = {**words, "d_lse": d_lse}
        direct = nothing_traces(d_out) and not torch.is_grad_enabled()
        if "sinks" in words:
            given = {**words}
            dq, dk, dv, each = (_kernel_sinks if direct else attention_backward_sinks)(q, k, v, out, lse, d_out, given.pop("sinks"), **given)
            return None, None, dq, dk, dv, each.sum(0), None  # over sequences
        dq, dk, dv = (_kernel if direct else attention_backward)(q, k, v, out, lse, d_out, **words)
        return None, None, dq, dk, dv, None, None


def with_gradients(operator: Any, kernel: Any, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, words: dict[str, Any]) -> tuple[torch.Tensor, torch.Tensor]:
    check(q, v, words)
    return WavejitAttention.apply(operator, kernel, q, k, v, words.get("sinks"), words)  # type: ignore[no-any-return,no-untyped-call]


def differentiable(operator: Any, with_lse: bool, with_lse_operator: Any, kernel: Any, check_forward_mode: Any) -> Any:
    """What a forward operator is above its kernel: with a gradient where one is wanted, itself elsewhere. Tangents are seen
    here, and not below."""

    def call(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, **words: Any) -> Any:
        if forward_ad._current_level >= 0:
            check_forward_mode(q, k, v, words)
        if wanted(q, k, v, words.get("bias"), words.get("alibi"), words.get("sinks")):
            both = with_gradients(with_lse_operator(), kernel, q, k, v, words)
            return both if with_lse else both[0]
        with torch._C._AutoDispatchBelowAutograd():
            return operator()(q, k, v, **words)

    return call


# ---- The operator


Three = tuple[torch.Tensor, torch.Tensor, torch.Tensor]
Four = tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]


def _attention_backward(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, out: torch.Tensor, lse: torch.Tensor, d_out: torch.Tensor, **words: Any) -> Three:
    engine = _engines.of_device(q.device, "q")
    road = _backward_road.through_copies if q.is_cpu else _backward_road.on_device
    return road(engine, (q, k, v, out, lse, d_out), words)[0]


def _attention_backward_sinks(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, out: torch.Tensor, lse: torch.Tensor, d_out: torch.Tensor, sinks: torch.Tensor,
                              **words: Any) -> Four:
    engine = _engines.of_device(q.device, "q")
    road = _backward_road.through_copies if q.is_cpu else _backward_road.on_device
    three, d_sinks = road(engine, (q, k, v, out, lse, d_out), {**words, "sinks": sinks})
    assert d_sinks is not None
    return *three, d_sinks


_kernel: Any = torch.compiler.disable(_attention_backward)
_kernel_sinks: Any = torch.compiler.disable(_attention_backward_sinks)


def _traced(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, out: torch.Tensor, lse: torch.Tensor, d_out: torch.Tensor, **words: Any) -> Three:
    return q.new_empty(q.shape), k.new_empty(k.shape), v.new_empty(v.shape)


def _traced_sinks(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, out: torch.Tensor, lse: torch.Tensor, d_out: torch.Tensor, sinks: torch.Tensor,
                  **words: Any) -> Four:
    return *_traced(q, k, v, out, lse, d_out), q.new_empty((_backward_road.sequences_of(q, words), q.shape[2]), dtype=torch.float32)


def _no_second(operator: Any) -> Any:
    def call(*inputs: torch.Tensor, **words: Any) -> Any:
        if torch.is_grad_enabled() and any([tensor.requires_grad for tensor in inputs]):
            raise Unsupported("create_graph: gradients of gradients have no kernel; accepted: create_graph=False")
        with torch._C._AutoDispatchBelowAutograd():
            return operator()(*inputs, **words)

    return call


def define(library: Any) -> None:
    """The operators, in the library of the forward ones."""
    for name, inputs, results, kernel, operator, traced in (
        ("attention_backward", INPUTS, 3, _kernel, lambda: attention_backward, _traced),
        ("attention_backward_sinks", f"{INPUTS}, Tensor sinks", 4, _kernel_sinks, lambda: attention_backward_sinks, _traced_sinks),
    ):
        library.define(f"{name}({inputs}, {WORDS_OF_BACKWARD}) -> ({', '.join(['Tensor'] * results)})", tags=(torch.Tag.pt2_compliant_tag,))
        library.impl(name, kernel, "CompositeExplicitAutograd")
        library.impl(name, _no_second(operator), "Autograd")
        torch.library.register_fake(f"wavejit::{name}", traced, lib=library)


def attention_backward(*inputs: Any, **words: Any) -> Three:
    """The operator."""
    return torch.ops.wavejit.attention_backward.default(*inputs, **words)  # type: ignore[no-any-return]


def attention_backward_sinks(*inputs: Any, **words: Any) -> Four:
    """The operator."""
    return torch.ops.wavejit.attention_backward_sinks.default(*inputs, **words)  # type: ignore[no-any-return]
