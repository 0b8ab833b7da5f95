# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Gradients: what the forward operators are where a tensor requires grad, and the operator that computes them.

    torch.ops.wavejit.attention_backward(q, k, v, out, lse, d_out, *, …) -> (Tensor, Tensor, Tensor)
    torch.ops.wavejit.attention_backward_sinks(q, k, v, out, lse, d_out, sinks, *, …) -> (Tensor, Tensor, Tensor, Tensor)
    attention_backward_bias(…, bias, *, …) and attention_backward_sinks_bias(…, sinks, bias, *, …), the like

Forward with LSE, then one call for dq, dk and dv, for d_sinks [sequences, heads] where sinks require grad, and for d_bias, of the
bias' own sizes, where a bias does. Each call is deterministic: no additions in the order of arrival.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.autograd import forward_ad

from .. import _fields
from .._errors import Unsupported
from . import _backward_dispatch, _engines, _no_dims, _dispatch, _seen

INPUTS = "Tensor q, Tensor k, Tensor v, Tensor out, Tensor lse, Tensor d_out"
WORDS_OF_BACKWARD = (
    "*, Tensor? d_lse=None, float? scale=None, bool causal=False, "
    "SymInt window_left=-1, SymInt window_right=-1, SymInt causal_prefix=-1, float softcap=0.0, Tensor? alibi=None, Tensor? query_starts=None, "
    "Tensor? key_starts=None, Tensor? key_lengths=None, SymInt max_query_length=0, SymInt max_key_length=0"
)
WITH_A_CONSTANT_BIAS = ", Tensor? bias=None"
# The forward operators' words that change a gradient; the other words change none.
WORDS = frozenset(("scale", "causal", "window_left", "window_right", "causal_prefix", "softcap", "max_query_length", "max_key_length"))
SAVED = frozenset(("alibi", "bias", *_backward_dispatch.NUMBERS))
WITHOUT_BACKWARD = _dispatch.OF_TENSORS - SAVED - {"sinks"}
HEAD_DIMS = ((64, 64), (128, 128), (192, 128), (256, 256))  # of q and k, of v
INSTEAD = "torch.no_grad(), torch.inference_mode(), or detach()"
SLOPES = "{}: they require grad, and slopes have no gradient: they are constants of a model, and no kernel sums over their scores; accepted: detach()"
SCALES = "{}: it requires grad, and scales of a cache have no gradient; accepted: detach()"


def wanted(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *others: torch.Tensor | None) -> bool:
    """Whether a gradient may be asked for later."""
    if not torch.is_grad_enabled():
        return False
    return q.requires_grad or k.requires_grad or v.requires_grad or any([tensor is not None and tensor.requires_grad for tensor in others])


def nothing_traces(q: torch.Tensor) -> bool:
    """Whether what lies below autograd is the kernel itself: no mode, no subclass, no transform and no compiler wants to see the
    operator. Then a call may leave out the dispatcher, which costs as much as the kernel's launch."""
    return type(q) in PLAIN_TENSORS and not _dispatch_modes() and _transform() is None and not _compiles()


PLAIN_TENSORS = frozenset((torch.Tensor, torch.nn.Parameter))


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
        and (only_numbers(words) or all([type(value) in PLAIN or (name in _dispatch.OF_TENSORS and type(value) in PLAIN_TENSORS) for name, value in words.items()]))
    )


def only_numbers(words: dict[str, Any]) -> bool:
    """Whether no tensor is among them."""
    return PLAIN.issuperset(map(type, words.values()))


_profiled: Callable[[], bool] = torch._C._autograd._profiler_enabled
_autocast: Callable[[], bool] = torch._C._is_any_autocast_enabled
_function_modes: Callable[[], int] = torch._C._len_torch_function_stack
_dispatch_modes: Callable[[], int] = torch._C._len_torch_dispatch_stack
_transform: Callable[[], Any] = torch._C._functorch.peek_interpreter_stack
_compiles: Callable[[], Any] = torch._C._dynamo.eval_frame.get_eval_frame_callback


def check(q: torch.Tensor, v: torch.Tensor, words: dict[str, Any]) -> None:
    """Refuses what has no gradient, where one is wanted."""
    if v.dtype not in _dispatch.ELEMENTS and v.dtype in _dispatch.CACHES:
        raise Unsupported(f"k: dtype {v.dtype}, and q, k or v requires grad: there is no backward over 8 bits; accepted: {INSTEAD}")
    if q.dtype is torch.float32 and v.dtype is not torch.float32:
        raise Unsupported(f"q: dtype {q.dtype} beside v of {v.dtype}, and q, k or v requires grad: there is no backward over it; accepted: {INSTEAD}")
    if q.dtype is _dispatch.INTEGERS:
        raise Unsupported(f"q: dtype {q.dtype}, and v requires grad: there is no backward over 8 bits; accepted: {INSTEAD}")
    for kind in _fields.MASK_KINDS:
        if words.get(kind, 0) == 0:
            continue
        raise Unsupported(f"{kind} = {words[kind]}, and q, k or v requires grad: there is no backward of it yet; accepted: {INSTEAD}")
    if not only_numbers(words):
        _check_tensors(words)
    _check_head_dims(q, v)


def _check_head_dims(q: torch.Tensor, v: torch.Tensor) -> None:
    of_values = v.size(-1)  # shape is the slower one
    if (q.size(-1) or of_values, of_values) not in HEAD_DIMS:  # without dims of their own q and k have as many (_no_dims.py)
        raise Unsupported(f"q: head dims {q.shape[-1]} and {v.shape[-1]} of v, and one of q, k, v requires grad; accepted: 64, 128, 256 of all alike, 192 with 128 of v, or {INSTEAD}")


def _check_tensors(words: dict[str, Any]) -> None:
    alibi = words.get("alibi")
    if alibi is not None and alibi.requires_grad:
        raise Unsupported(SLOPES.format("alibi"))
    for field, value in words.items():
        if field in WITHOUT_BACKWARD and value is not None:
            raise Unsupported(f"{field}: given, and q, k or v requires grad: there is no backward of it yet; accepted: {INSTEAD}")


class WavejitAttention(torch.autograd.Function):
    """Forward with LSE, and the gradients of both outputs."""

    @staticmethod
    def forward(ctx: Any, operator: Any, kernel: Any, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, sinks: torch.Tensor | None, bias: torch.Tensor | None,
                words: dict[str, Any]) -> tuple[torch.Tensor, torch.Tensor]:
        if nothing_traces(q):
            out, lse = kernel(q, k, v, **words)
        else:
            with torch._C._AutoDispatchBelowAutograd():
                out, lse = operator(q, k, v, **words)
        ctx.words = {name: value for name, value in words.items() if name in WORDS}
        tensors = {name: value for name, value in words.items() if name in SAVED and value is not None}
        ctx.extras = tuple([name for name, value in (("sinks", sinks), ("bias", bias)) if value is not None and value.requires_grad])
        if "sinks" in ctx.extras:
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
            return (None,) * 8
        if d_out is None:
            d_out = torch.zeros_like(out)
        words = ctx.words
        if others:
            words = {**words, **dict(zip(ctx.tensors, others, strict=True))}
        if d_lse is not None:
            words = {**words, "d_lse": d_lse}
        direct = nothing_traces(d_out) and not torch.is_grad_enabled()
        given = [words.pop(name) for name in ctx.extras]
        dq, dk, dv, *more = (_KERNELS if direct else OPERATORS)[ctx.extras](q, k, v, out, lse, d_out, *given, **words)
        found = dict(zip(ctx.extras, more))
        d_sinks = found["sinks"].sum(0) if "sinks" in found else None  # over sequences
        return None, None, dq, dk, dv, d_sinks, found.get("bias"), None


def with_gradients(operator: Any, kernel: Any, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, words: dict[str, Any]) -> tuple[torch.Tensor, torch.Tensor]:
    check(q, v, words)
    return WavejitAttention.apply(operator, kernel, q, k, v, words.get("sinks"), words.get("bias"), words)  # type: ignore[no-any-return]


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


# ---- The operators, one for each combination of words that have a gradient of their own


def _name(extras: tuple[str, ...]) -> str:
    return "_".join(("attention_backward", *extras))


def _kernel(extras: tuple[str, ...]) -> Any:
    def call(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, out: torch.Tensor, lse: torch.Tensor, d_out: torch.Tensor, *given: torch.Tensor,
             **words: Any) -> tuple[torch.Tensor, ...]:
        return backward_kernel(extras, (q, k, v, out, lse, d_out), {**words, **dict(zip(extras, given))} if extras else words)

    return torch.compiler.disable(call)


def backward_kernel(extras: tuple[str, ...], inputs: tuple[torch.Tensor, ...], words: dict[str, Any], caller: _seen.Caller | None = None) -> tuple[torch.Tensor, ...]:
    q = inputs[0]
    if q.size(-1) == 0 and _no_dims.are_there(*inputs[:3]):
        return _without_dims(extras, inputs, words)
    bias = words.get("bias")
    if bias is not None and 0 in bias.shape:  # there are no scores; sinks have a gradient still
        others = backward_kernel(tuple([name for name in extras if name != "bias"]), inputs, {name: word for name, word in words.items() if name != "bias"})
        return (*others, torch.zeros_like(bias)) if "bias" in extras else others
    dispatch = _backward_dispatch.through_copies if q.is_cpu else _backward_dispatch.on_device
    return dispatch(_engines.of_device(q.device, "q"), inputs, words, extras, caller)


def _without_dims(extras: tuple[str, ...], inputs: tuple[torch.Tensor, ...], words: dict[str, Any]) -> tuple[torch.Tensor, ...]:
    q, k, v, *others = inputs
    call = _no_dims.with_dims(q, k, v, words)
    _, _, *gradients = backward_kernel(extras, (call.q, call.k, call.v, *others), call.words)
    return q.new_empty(q.shape), k.new_empty(k.shape), *gradients


def _operator(extras: tuple[str, ...]) -> Any:
    def call(*inputs: Any, **words: Any) -> tuple[torch.Tensor, ...]:
        return getattr(torch.ops.wavejit, _name(extras)).default(*inputs, **words)  # type: ignore[no-any-return]

    return call


_KERNELS = {extras: _kernel(extras) for extras in _backward_dispatch.COMBINATIONS}
OPERATORS = {extras: _operator(extras) for extras in _backward_dispatch.COMBINATIONS}


def _traced(extras: tuple[str, ...]) -> Any:
    def call(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, out: torch.Tensor, lse: torch.Tensor, d_out: torch.Tensor, *given: torch.Tensor,
             **words: Any) -> tuple[torch.Tensor, ...]:
        of: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
            "sinks": lambda sinks: q.new_empty((_backward_dispatch.sequences_of(q, words), q.shape[2]), dtype=torch.float32),
            "bias": lambda bias: _backward_dispatch.like_bias(q, bias).to(bias.dtype),
        }
        return q.new_empty(q.shape), k.new_empty(k.shape), v.new_empty(v.shape), *[of[name](value) for name, value in zip(extras, given)]

    return call


def _no_second(operator: Any) -> Any:
    def call(*inputs: torch.Tensor, **words: Any) -> Any:
        if torch.is_grad_enabled() and any([tensor.requires_grad for tensor in inputs]):
            raise Unsupported("create_graph: gradients of gradients have no kernel; accepted: create_graph=False")
        with torch._C._AutoDispatchBelowAutograd():
            return operator(*inputs, **words)

    return call


def define(library: Any) -> None:
    """The operators, in the library of the forward ones."""
    for extras in _backward_dispatch.COMBINATIONS:
        name, results = _name(extras), ", ".join(["Tensor"] * (3 + len(extras)))
        words = WORDS_OF_BACKWARD + ("" if "bias" in extras else WITH_A_CONSTANT_BIAS)
        library.define(f"{name}({', '.join((INPUTS, *[f'Tensor {extra}' for extra in extras]))}, {words}) -> ({results})", tags=(torch.Tag.pt2_compliant_tag,))
        library.impl(name, _KERNELS[extras], "CompositeExplicitAutograd")
        library.impl(name, _no_second(OPERATORS[extras]), "Autograd")
        torch.library.register_fake(f"wavejit::{name}", _traced(extras), lib=library)
