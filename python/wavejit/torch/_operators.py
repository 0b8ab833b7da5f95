# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The operators, as torch.library knows them: their schema, what they do, and what they are when they are traced.

Both take the words of `Engine.attention_forward`, tensors [batch, length, heads, head dim]:

    torch.ops.wavejit.attention_forward(q, k, v, *, …) -> Tensor
    torch.ops.wavejit.attention_forward_lse(q, k, v, *, …) -> (Tensor, Tensor)     with LSE [batch, heads, length] fp32

Not torch.library.custom_op: what that does around a call costs as much as the rest of it.
"""
from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import torch
from torch.autograd import forward_ad

from .. import _fields
from .._errors import Error, Unsupported, in_callers_words
from . import _gradients, _plainly, _dispatch
from ._faces import Face
from ._repeats import changed_once

# bias: also bool, True where a key is seen. A window of −1 has no limit, a prefix of −1 is none, a length and a number of a kind of masks of 0 are not told. Hints: names, with commas between.
WORDS = ", ".join([
    "float? scale=None, bool causal=False, SymInt window_left=-1, SymInt window_right=-1, SymInt causal_prefix=-1, float softcap=0.0, SymInt max_query_length=0, "
    "SymInt max_key_length=0, SymInt max_total_keys=0, int splits=0, str score_rounding='fp32', str hints=''",
    *[f"SymInt {kind}=0" for kind in _fields.MASK_KINDS], *[f"Tensor? {name}=None" for name in _dispatch.OF_OPERATORS],
])  # fmt: skip
ARGUMENTS = f"Tensor q, Tensor k, Tensor v, *, {WORDS}"
LIBRARY: Any = torch.library.Library("wavejit", "DEF")  # type: ignore[no-untyped-call,unused-ignore]
LIBRARY.define(f"attention_forward({ARGUMENTS}) -> Tensor", tags=(torch.Tag.pt2_compliant_tag,))
LIBRARY.define(f"attention_forward_lse({ARGUMENTS}) -> (Tensor, Tensor)", tags=(torch.Tag.pt2_compliant_tag,))


# Threads whose call was looked at by one of the package's functions, inside torch.func.jvp: below, tangents are out of sight.
_looked_at = threading.local()


NAMES = ("q", "k", "v", "bias", "alibi", "sinks", "k_scale", "v_scale", "q_scale")
CONSTANTS = frozenset(("alibi", "k_scale", "v_scale", "q_scale"))


def without_derivative(*tensors: torch.Tensor | None, names: tuple[str, ...] = NAMES) -> None:
    """Refuses what has no derivative where one is wanted: it would be zeros, silently. Slopes and the scales of a cache have none.
    Nothing has a derivative of forward mode."""
    for known, field, tensor in zip(NAMES, names, tensors):
        if tensor is not None and known in CONSTANTS and tensor.requires_grad and torch.is_grad_enabled():
            raise Unsupported((_gradients.SLOPES if known == "alibi" else _gradients.SCALES).format(field))
    if forward_ad._current_level < 0:
        return
    for field, tensor in zip(names, tensors):
        if tensor is not None and forward_ad.unpack_dual(tensor).tangent is not None:
            raise Unsupported(f"{field}: it has a tangent (forward-mode AD, torch.func.jvp), and there is no derivative yet; accepted: tensors without one")


_attend = _plainly.attend
# Answered by torch.compile itself, where it traces. Other ways to trace have a mode, which is asked for.
_compiles: Callable[[], bool] = torch.compiler.is_dynamo_compiling


def called(names: dict[str, str], face: Face, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, words: dict[str, Any]) -> torch.Tensor:
    """`attention_forward` of a function's own tensors, and out as its caller has it. What is refused is told by the names that callers
    of the function know."""
    if not _compiles():
        try:
            out = _attend(face.number, q, k, v, words)
        except Error as error:
            raise in_callers_words(error, names) from None
        if out is not None:
            return out
    return face.out.outside(called_by_operator(attention_forward, names, *face.inside(q, k, v), words))


def called_by_operator(operator: Callable[..., Any], names: dict[str, str], q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, words: dict[str, Any]) -> Any:
    """One of both operators over tensors as they have them, and without it where nobody looks."""
    without_derivative(q, k, v, *[words.get(name) for name in NAMES[3:]], names=tuple([names.get(name, name) for name in NAMES]))
    if torch.compiler.is_compiling():
        return operator(q, k, v, **words)
    try:
        if forward_ad._current_level < 0:
            if not _gradients.without_an_operator(q, words):
                return operator(q, k, v, **words)
            with_lse = operator is attention_forward_lse
            if _gradients.wanted(q, k, v, words.get("bias"), words.get("alibi"), words.get("sinks")):
                both = _gradients.with_gradients(attention_forward_lse, _lse_kernel, q, k, v, words)
                return both if with_lse else both[0]
            found = _plainly.kernel(q, k, v, with_lse, words)
            return found if with_lse else found[0]
        _looked_at.by_a_function = True
        try:
            return operator(q, k, v, **words)
        finally:
            _looked_at.by_a_function = False
    except Error as error:
        raise in_callers_words(error, names) from None


def _check_derivatives(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, words: Any) -> None:
    without_derivative(q, k, v, *[words.get(name) for name in NAMES[3:]])
    from torch._functorch import eager_transforms

    if getattr(eager_transforms, "JVP_NESTING", 0) and forward_ad._current_level >= 0 and not getattr(_looked_at, "by_a_function", False):
        raise Unsupported("torch.ops.wavejit inside torch.func.jvp: there is no derivative yet; accepted: functions of wavejit.torch over tensors without a tangent")


def _attention_forward(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, **words: Any) -> torch.Tensor:
    return _plainly.kernel(q, k, v, False, words)[0]  # type: ignore[no-any-return]


def _attention_forward_lse(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, **words: Any) -> tuple[torch.Tensor, torch.Tensor]:
    return _plainly.kernel(q, k, v, True, words)  # type: ignore[no-any-return]


def tensors_only(named: dict[str, Any]) -> None:
    for field, given in named.items():
        if not isinstance(given, torch.Tensor):
            hint = " (wavejit.Engine.attention_forward takes numpy arrays)" if type(given).__module__ == "numpy" else ""
            raise TypeError(f"{field}: a {type(given).__module__}.{type(given).__name__}; accepted: a torch tensor{hint}")


def _traced(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, **words: Any) -> torch.Tensor:
    return q.new_empty((q.shape[0], q.shape[1], q.shape[2], _dispatch.value_dim(k, v)), dtype=_dispatch.out_type(q, v))


def _traced_lse(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, **words: Any) -> tuple[torch.Tensor, torch.Tensor]:
    return _traced(q, k, v, **words), q.new_empty((q.shape[0], q.shape[2], q.shape[1]), dtype=torch.float32)


# One kernel for every device: what it cannot do, it refuses by name. torch.compile must not look inside, which it would where it
# runs a graph in pieces.
_untraced: Callable[..., Any] = torch.compiler.disable
_kernel, _lse_kernel = _untraced(_attention_forward), _untraced(_attention_forward_lse)
LIBRARY.impl("attention_forward", _kernel, "CompositeExplicitAutograd")
LIBRARY.impl("attention_forward_lse", _lse_kernel, "CompositeExplicitAutograd")
torch.library.register_fake("wavejit::attention_forward", _traced, lib=LIBRARY)
torch.library.register_fake("wavejit::attention_forward_lse", _traced_lse, lib=LIBRARY)



# ---- under torch.autocast: q, k, v and bias in its dtype, as torch's own attention has them


def _in_dtype(tensor: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    kept = (dtype, torch.float64, *_dispatch.EIGHT_BITS)  # a cache of 8 bits is widened by the kernel
    if not tensor.is_floating_point() or tensor.dtype in kept:
        return tensor
    return tensor.to(dtype) if tensor.requires_grad else changed_once(tensor, lambda once: once.to(dtype))


def _under_autocast(name: str, device_type: str, key: str) -> Callable[..., Any]:
    operator: Callable[..., Any] = getattr(torch.ops.wavejit, name).default
    keys = torch._C.DispatchKeySet(getattr(torch._C.DispatchKey, key))

    def call(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, **words: Any) -> Any:
        dtype = torch.get_autocast_dtype(device_type)
        if words.get("bias") is not None:
            words["bias"] = _in_dtype(words["bias"], dtype)
        with torch._C._ExcludeDispatchKeyGuard(keys):
            return operator(_in_dtype(q, dtype), _in_dtype(k, dtype), _in_dtype(v, dtype), **words)

    return call


for _name in ("attention_forward", "attention_forward_lse"):
    for _device_type, _key in (("cpu", "AutocastCPU"), ("cuda", "AutocastCUDA")):
        LIBRARY.impl(_name, _under_autocast(_name, _device_type, _key), _key)

# ---- where a derivative is asked for

LIBRARY.impl("attention_forward", _gradients.differentiable(lambda: attention_forward, False, lambda: attention_forward_lse, _lse_kernel, _check_derivatives), "Autograd")
LIBRARY.impl("attention_forward_lse", _gradients.differentiable(lambda: attention_forward_lse, True, lambda: attention_forward_lse, _lse_kernel, _check_derivatives), "Autograd")
_gradients.define(LIBRARY)

attention_forward: Callable[..., torch.Tensor] = torch.ops.wavejit.attention_forward.default
attention_forward_lse: Callable[..., tuple[torch.Tensor, torch.Tensor]] = torch.ops.wavejit.attention_forward_lse.default
