# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The two ways of a call for gradients: over tensors that are on the device, and over copies of CPU tensors.

As _dispatch.py has them for the forward call: a shape that was seen before is checked no more, only addresses change, and memory is
torch's, the workspace among it.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch

from .. import _backward
from .._arrays import DeviceArray
from .._engine import Engine
from .._errors import InvalidArgument
from . import _dispatch, _seen
from ._dispatch import Words

Gradients = tuple[torch.Tensor, torch.Tensor, torch.Tensor]
INPUTS = ("q", "k", "v", "out", "lse", "d_out")
NUMBERS = ("query_starts", "key_starts", "key_lengths")
OF_TENSORS = frozenset(("d_lse", "alibi", "sinks", "bias", *NUMBERS))
# Words that may have a gradient of their own, behind those of q, k and v; the engine calls it d_…. The operators' names say which.
COMBINATIONS = ((), ("sinks",), ("bias",), ("sinks", "bias"))
VARIANTS = {extras: number for number, extras in enumerate(COMBINATIONS)}


class Plan(NamedTuple):
    """A call that was checked, without its addresses."""

    call: Any  # the extension's
    launch: Callable[..., None]  # stream, addresses by names, bytes of the workspace
    sizes: tuple[tuple[int, ...], ...] | None  # of dq, dk and dv; None: q, k and v are dense, and these are like them
    as_they_lie: bool  # whether the kernels read all tensors as they are
    workspace: int  # bytes
    clears: bool  # rows of no sequence, or of a sequence without queries or keys, are not written


def through_copies(engine: Engine, inputs: tuple[torch.Tensor, ...], words: Words, extras: tuple[str, ...] = (), caller: _seen.Caller | None = None) -> tuple[torch.Tensor, ...]:
    """CPU tensors, copied to a simulated device and back: dq, dk, dv, and the gradients of `extras`, which are words."""
    gradients = _empty(tuple(tensor.shape for tensor in inputs[:3]), inputs[0])
    more = {name: _OF[name](inputs, words) for name in extras}
    if _clears(inputs, words):
        for gradient in gradients:
            gradient.zero_()
    if _is_launched(inputs, words, extras):
        given: dict[str, Any] = {name: value.detach() if isinstance(value, torch.Tensor) else value for name, value in _engine_words(words).items()}
        if "d_lse" in given:
            given["d_lse"] = _readable(given["d_lse"])
        if "bias" in given and given["bias"].dtype is not _dispatch.bias_type(given["bias"], inputs[0].dtype):
            given["bias"] = _dispatch.bias_of(given["bias"], inputs[0].dtype)
        given |= {f"d_{name}": gradient for name, gradient in more.items()}
        engine.attention_backward(*[*(_readable(tensor).detach() for tensor in _of_one_type(inputs)), *gradients], **given)
    return *gradients, *_in_their_types(more, words)


def on_device(engine: Engine, inputs: tuple[torch.Tensor, ...], words: dict[str, Any], extras: tuple[str, ...] = (),
              caller: _seen.Caller | None = None) -> tuple[torch.Tensor, ...]:
    """With a caller, who has asked whether its call was seen."""
    if caller is not None:
        return _on_device(engine, inputs, words, extras, caller)
    calls = engine._torch_calls.get("backward")
    found = None if calls is None else calls.run(_dispatch.current_stream(inputs[0].device), VARIANTS[extras], inputs, words)
    return found if found is not None else _on_device(engine, inputs, words, extras, _seen.Caller(VARIANTS[extras], inputs, _dispatch.AS_THEY_ARE))


def _on_device(engine: Engine, inputs: tuple[torch.Tensor, ...], words: dict[str, Any], extras: tuple[str, ...],
               caller: _seen.Caller | None) -> tuple[torch.Tensor, ...]:
    q, k, v, out, lse, d_out = inputs
    others: dict[str, torch.Tensor] = {}
    key: list[Any] = ["backward", extras]
    for tensor in inputs:
        key += (tensor.shape, tensor.stride(), tensor.dtype, tensor.get_device())
    for name, value in words.items():  # torch gives those that are not their defaults
        key.append(name)
        if name in OF_TENSORS and value is not None:
            value = others[name] = value if name != "bias" else _dispatch._readable(value, _dispatch.bias_type(value, q.dtype))
            key += (value.shape, value.stride(), value.dtype, value.get_device())
        else:
            key.append(value)
    shapes = tuple(key)
    plan: Plan | None = engine._plans.get(shapes)
    if plan is None:
        plan = _planned(engine, shapes, inputs, {**words, **others}, extras)
    if not plan.as_they_lie or (q.data_ptr() | k.data_ptr() | v.data_ptr() | out.data_ptr() | d_out.data_ptr()) % _dispatch.ALIGNED:
        copies = tuple(_readable(tensor) for tensor in _of_one_type(inputs))
        if "d_lse" in others:
            words = {**words, "d_lse": _readable(others["d_lse"])}
        return _on_device(engine, copies, words, extras, None)
    # empty_like is the quicker one.
    gradients = _empty(plan.sizes, q) if plan.sizes is not None else (torch.empty_like(q), torch.empty_like(k), torch.empty_like(v))
    if plan.clears:
        for gradient in gradients:
            gradient.zero_()
    more = {name: _OF[name](inputs, words) for name in extras}
    if plan.launch is not _nothing:
        _launch(plan, inputs, gradients, others, more)
        if caller is not None and _seen.all_of(others, words) and all([gradient.dtype is words[name].dtype for name, gradient in more.items()]):
            outputs = dict(zip(("dq", "dk", "dv", *[f"d_{name}" for name in extras]), (*gradients, *more.values())))
            _seen.remember(engine, "backward", caller, words, plan, INPUTS, outputs, [0.0] * len(outputs) if plan.clears else ())
    return *gradients, *_in_their_types(more, words)


def _launch(plan: Plan, inputs: tuple[torch.Tensor, ...], gradients: Gradients, others: dict[str, torch.Tensor], more: dict[str, torch.Tensor]) -> None:
    given = {**dict(zip((*INPUTS, "dq", "dk", "dv"), (*inputs, *gradients))), **others, **{f"d_{name}": gradient for name, gradient in more.items()}}
    given["workspace"] = workspace_of(plan, inputs[0].device)
    plan.launch(_dispatch.current_stream(inputs[0].device), {name: tensor.data_ptr() for name, tensor in given.items()}, plan.workspace)


def workspace_of(plan: Plan, device: torch.device) -> torch.Tensor:
    """torch's own memory, so that its allocator knows until when the stream needs it: delta, and sums of runs of rows."""
    return torch.empty(plan.workspace // 4, dtype=torch.float32, device=device)


def _planned(engine: Engine, shapes: Any, inputs: tuple[torch.Tensor, ...], words: Words, extras: tuple[str, ...]) -> Plan:
    """Checks a call as `Engine.attention_backward` does, and remembers it."""
    q = inputs[0]
    for field, tensor in (*zip(INPUTS[1:], inputs[1:]), *words.items()):
        if isinstance(tensor, torch.Tensor) and tensor.device != q.device:
            raise InvalidArgument(f"{field}: a tensor on {tensor.device}; accepted: {q.device}, where q is")
    sizes = tuple(tuple(tensor.shape) for tensor in inputs[:3])
    readable = tuple(_readable(tensor) for tensor in _of_one_type(inputs))
    as_they_lie = inputs[-1].dtype is q.dtype and all(_lies_well(tensor) for tensor in inputs)
    given = _engine_words(words)
    if "d_lse" in given:
        as_they_lie = as_they_lie and _lies_well(given["d_lse"])
        given["d_lse"] = _readable(given["d_lse"])
    made, launch, workspace = None, _nothing, 0
    if _is_launched(inputs, words, extras):
        def array(field: str, tensor: torch.Tensor) -> DeviceArray:
            return _dispatch._array(engine, field, tensor)

        known: dict[str, Any] = {name: array(name, value) if isinstance(value, torch.Tensor) else value for name, value in given.items()}
        # Outputs that are not written: those of a launch are its own.
        outputs = [array(name, gradient) for name, gradient in zip(("dq", "dk", "dv"), _empty(sizes, q))]
        # Only the checked fields are kept of it: no memory.
        known |= {f"d_{name}": array(f"d_{name}", _OF[name](inputs, words)) for name in extras}
        call = _backward.AttentionBackwardCall(engine, *(array(name, tensor) for name, tensor in zip(INPUTS, readable)), *outputs, **known)
        made, launch, workspace = call._call, call._call.launch_over, call.workspace_bytes()
    dense = all(tensor.is_contiguous() for tensor in inputs[:3])
    plan = Plan(made, launch, None if dense else sizes, as_they_lie, workspace, _clears(inputs, words))
    if len(engine._plans) >= _dispatch.SHAPES:
        engine._plans.clear()
    engine._plans[shapes] = plan
    return plan


def sequences_of(q: torch.Tensor, words: Words) -> int:
    starts = words.get("query_starts") if words.get("query_starts") is not None else words.get("key_starts")
    return q.shape[0] if starts is None else starts.shape[0] - 1


def _of_sinks(inputs: tuple[torch.Tensor, ...], words: Words) -> torch.Tensor:
    """Room for the gradients of sinks, of each sequence by itself; zeros where nothing is launched."""
    q = inputs[0]
    size = (sequences_of(q, words), q.shape[2])
    return (torch.empty if _is_launched(inputs, words, ("sinks",)) else torch.zeros)(size, dtype=torch.float32, device=q.device)


def _of_bias(inputs: tuple[torch.Tensor, ...], words: Words) -> torch.Tensor:
    """Room for the gradient of a bias, in the type in which it is read; zeros where nothing is launched."""
    bias, q = words["bias"], inputs[0]
    empty = like_bias(q, bias)
    return empty.zero_() if _clears(inputs, words) else empty


def like_bias(q: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """Its rows begin at multiples of 8 elements, as the kernel writes them."""
    strides = [1, -(-bias.shape[-1] // 8) * 8]
    for size in bias.shape[-2:0:-1]:
        strides.append(strides[-1] * size)
    return torch.empty_strided(bias.shape, strides[::-1], dtype=_dispatch.bias_type(bias, q.dtype), device=q.device)


_OF = {"sinks": _of_sinks, "bias": _of_bias}


def _in_their_types(more: dict[str, torch.Tensor], words: Words) -> tuple[torch.Tensor, ...]:
    """A bias that was rounded when it was read has a gradient of its own type."""
    return tuple([gradient.to(words[name].dtype) for name, gradient in more.items()])


def _nothing(*_: Any) -> None:
    """The launch of a call that computes nothing."""


def _engine_words(words: Words) -> dict[str, Any]:
    known = _dispatch.engine_words(words)
    known.pop("splits", None)
    if words.get("d_lse") is not None:
        known["d_lse"] = words["d_lse"]
    return known


def _is_empty(inputs: tuple[torch.Tensor, ...]) -> bool:
    return 0 in inputs[0].shape or 0 in inputs[1].shape


def _is_launched(inputs: tuple[torch.Tensor, ...], words: Words, extras: tuple[str, ...]) -> bool:
    """Whether there is something to compute. Rows without keys have the sink for their LSE, and its gradient goes there."""
    if not _is_empty(inputs):
        return True
    return 0 not in inputs[0].shape and "sinks" in extras and words.get("d_lse") is not None and 0 not in inputs[1].shape[2:]


def _clears(inputs: tuple[torch.Tensor, ...], words: Words) -> bool:
    return words.get("query_starts") is not None or words.get("key_starts") is not None or _is_empty(inputs)


def _empty(sizes: tuple[tuple[int, ...], ...], like: torch.Tensor) -> Gradients:
    dtype, device = like.dtype, like.device
    dq, dk, dv = sizes
    return torch.empty(dq, dtype=dtype, device=device), torch.empty(dk, dtype=dtype, device=device), torch.empty(dv, dtype=dtype, device=device)


def _of_one_type(inputs: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
    *others, d_out = inputs
    return (*others, d_out if d_out.dtype is inputs[0].dtype else d_out.to(inputs[0].dtype))


def _lies_well(tensor: torch.Tensor) -> bool:
    """Whether the kernels read it as it is; LSE has three dimensions, and rows side by side."""
    return tensor.is_contiguous() if tensor.ndim == 3 else _dispatch._lies_well(tensor)


def _readable(tensor: torch.Tensor) -> torch.Tensor:
    if _lies_well(tensor) and tensor.data_ptr() % _dispatch.ALIGNED == 0:
        return tensor
    return tensor.clone(memory_format=torch.contiguous_format) if tensor.ndim == 3 else _dispatch._copy(tensor)
