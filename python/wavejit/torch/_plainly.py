# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The short way of a call that nobody looks at: no trace, no mode, no profile, no autocast, no transform, and no gradient but those of
q, k and v. It leaves out PyTorch's dispatcher, which costs as much as the rest of a call.

The extension goes it alone where it remembers the call (python/bindings/torch_node.cpp): it asks who looks, is autograd's node, reads
what the node saved, makes tensors and launches. Here is what it asks for where a shape comes for the first time, and the same way in
Python, for a PyTorch whose functions the extension does not have.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.autograd import forward_ad

from .. import _wavejit
from . import _backward_dispatch, _engines, _gradients, _no_dims, _dispatch, _seen
from ._faces import FACES, Layout

# How a call is remembered: which face (_faces.py), and whether its kernel has an LSE and gradients were checked. 1 is the
# operator's, with an LSE.
STEP, FOR_GRADIENTS = 4, 3
_VIEWS = torch._C.DispatchKeySet(torch._C.DispatchKey.ADInplaceOrView)
GIVEN_TO_BACKWARD = _gradients.WORDS | _gradients.SAVED


def without_gradients(face_number: int, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, words: dict[str, Any]) -> torch.Tensor:
    face = FACES[face_number]
    caller = _seen.Caller(STEP * face_number, (q, k, v), (face.out.outside,))
    return _outside(face.out, kernel(*face.inside(q, k, v), False, words, caller)[0])


def forward(face_number: int, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, words: dict[str, Any]) -> tuple[torch.Tensor, torch.Tensor]:
    """Out as the caller has it, and LSE."""
    face = FACES[face_number]
    inside = face.inside(q, k, v)
    _gradients.check(inside[0], inside[2], words)
    caller = _seen.Caller(STEP * face_number + FOR_GRADIENTS, (q, k, v), (face.out.outside, _dispatch.AS_THEY_ARE[0]))
    out, lse = kernel(*inside, True, words, caller)
    return _outside(face.out, out), lse


def _outside(layout: Layout, tensor: torch.Tensor) -> torch.Tensor:
    """An output as its caller has it, and no view to autograd, as the extension makes them: it may be changed in place."""
    with torch._C._ExcludeDispatchKeyGuard(_VIEWS):
        return layout.outside(tensor)


def kernel(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, with_lse: bool, words: dict[str, Any], caller: _seen.Caller | None = None) -> Any:
    if 0 in q.shape or 0 in v.shape:
        if _no_dims.are_there(q, k, v):
            return _without_dims(q, k, v, with_lse, words)
    dispatch = _dispatch.through_copies if q.is_cpu else _dispatch.on_device
    return dispatch(_engines.of_device(q.device, "q"), q, k, v, with_lse, words, caller)


def _without_dims(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, with_lse: bool, words: dict[str, Any]) -> Any:
    call = _no_dims.with_dims(q, k, v, words)
    out, lse = kernel(call.q, call.k, call.v, with_lse, call.words)
    return out if call.has_values else out.new_empty((*out.shape[:3], 0)), lse


def backward(call: tuple[int, dict[str, Any], tuple[str, ...]], saved: tuple[torch.Tensor, ...], d_out: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
    """`call`: the face, the words without tensors, and the names of those, which are the last of what was saved. None for what is no
    tensor of `forward`'s."""
    face_number, words, names = call
    face = FACES[face_number]
    q, k, v, out, lse, *others = saved
    words = {**words, **dict(zip(names, others, strict=True))}
    inputs = (*face.inside(q, k, v), face.out.inside(out), lse, face.out.inside(d_out))
    if _gradients.nothing_traces(d_out) and not torch.is_grad_enabled():
        caller = _seen.Caller(STEP * face_number, (q, k, v, out, lse, d_out), (face.q.outside, face.keys.outside, face.keys.outside))
        gradients = _gradients.backward_kernel((), inputs, words, caller)
    else:
        gradients = _gradients.OPERATORS[()](*inputs, **{name: value for name, value in words.items() if name in GIVEN_TO_BACKWARD})
    dq, dk, dv = gradients
    return None, face.q.outside(dq), face.keys.outside(dk), face.keys.outside(dv), None


class Plainly(torch.autograd.Function):
    """`WavejitAttention` with less around it. Its tensors are the caller's."""

    @staticmethod
    def forward(ctx: Any, face_number: int, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, words: dict[str, Any]) -> torch.Tensor:
        out, lse = forward(face_number, q, k, v, words)
        others = {name: value for name, value in words.items() if isinstance(value, torch.Tensor)}
        ctx.call = face_number, {name: value for name, value in words.items() if name not in others}, tuple(others)
        ctx.save_for_backward(q, k, v, out, lse, *others.values())
        return out

    @staticmethod
    def backward(ctx: Any, d_out: torch.Tensor) -> Any:
        return backward(ctx.call, ctx.saved_tensors, d_out)


# Autograd's own entry: what stands before it is for transforms, and there are none. Documents are made beside a stand-in for torch,
# whose Function is no class.
_apply: Any = super(torch.autograd.Function, Plainly).apply if isinstance(torch.autograd.Function, type) else None


def _in_python(face_number: int, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, words: dict[str, Any]) -> torch.Tensor | None:
    """None: somebody looks, or wants another gradient."""
    if forward_ad._current_level >= 0 or not (_plain(q) and _plain(k) and _plain(v)) or not _gradients.without_an_operator(q, words):
        return None
    if torch.is_grad_enabled():
        if any([isinstance(value, torch.Tensor) and value.requires_grad for value in words.values()]):
            return None
        if q.requires_grad or k.requires_grad or v.requires_grad:
            return None if words.get("sinks") is not None else _apply(face_number, q, k, v, words)
    return without_gradients(face_number, q, k, v, words)


def _plain(tensor: torch.Tensor) -> bool:
    return type(tensor) in _gradients.PLAIN_TENSORS


def _in_the_extension(torch_tensors: Any) -> Callable[..., torch.Tensor | None]:
    """`_in_python` of calls that were seen; the node's two functions with it."""
    before_backward = [_gradients._dispatch_modes, _gradients._transform, _gradients._compiles]
    in_front = [*before_backward, _gradients._function_modes, _gradients._autocast, _gradients._profiled]
    node = _wavejit.TorchNode(torch_tensors, torch.nn.Parameter, _engines._of, vars(_dispatch), vars(forward_ad), in_front, before_backward, torch.is_grad_enabled,
                              _apply, forward, without_gradients, backward)
    Plainly.forward = staticmethod(node.forward)  # type: ignore[assignment,method-assign]
    Plainly._backward_cls.apply = node.backward_method()  # type: ignore[attr-defined]
    return node.attend


# attend(face number, q, k, v, words) -> out
attend: Callable[..., torch.Tensor | None] = _in_python if _seen.TORCH is None else _in_the_extension(_seen.TORCH)
