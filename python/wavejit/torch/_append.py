# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""New keys and values into a cache, over tensors: `cache_append`, its operator, and what flash-attn's functions append."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from .. import _append, _documented, _dtypes, _fields
from .._arrays import DeviceArray
from .._engine import Engine
from .._errors import InvalidArgument, Unsupported
from . import _engines, _dispatch
from ._operators import LIBRARY

NUMBERS = ("slots", "positions")
ROTARY = _fields.words_of("cache_append", "rotary")
INTEGERS = (torch.int32, torch.int64)


@_documented.with_rows_of("cache_append")
def cache_append(k: torch.Tensor, v: torch.Tensor | None, k_cache: torch.Tensor, v_cache: torch.Tensor | None, slots: torch.Tensor, *, q: torch.Tensor | None = None,
                 rotary: str | None = None, cos: torch.Tensor | None = None, sin: torch.Tensor | None = None, rotary_base: float | None = None,
                 rotary_dim: int | None = None, positions: torch.Tensor | None = None, k_scale: torch.Tensor | None = None, v_scale: torch.Tensor | None = None) -> torch.Tensor | None:
    """New keys and values into a cache, with rotary embedding on the way, in one launch; the turned `q`, or None.

    {k}
    {k_cache}
    {slots}
    {rotary}
    {cos}
    {rotary_dim}
    k_scale, v_scale
        For caches of float8 and int8, in what they are counted: fp32 [heads] or [1], which are read, or [pages, page size, heads], which are
        written. Rows of latent attention as in `wavejit.Engine.cache_append`.

    Nothing of it has a gradient. torch.compile traces it as `torch.ops.wavejit.cache_append`, which says what it writes.

    >>> import torch, wavejit.torch
    >>> _ = wavejit.torch.use("sim:gfx950")
    >>> cache = torch.zeros(4, 16, 1, 8, dtype=torch.float16)
    >>> keys = torch.arange(16, dtype=torch.float16).reshape(2, 1, 8)
    >>> wavejit.torch.cache_append(keys, None, cache, None, torch.tensor([17, -1]))
    >>> cache[1, 1, 0].tolist(), cache.sum().item()
    ([0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0], 28.0)
    """
    _fields.chosen("rotary", rotary, ROTARY)
    turned = operator(k, v, k_cache, v_cache, slots, q=q, rotary=rotary or "", cos=cos, sin=sin, rotary_base=rotary_base or 0.0, rotary_dim=rotary_dim or 0,
                      positions=positions, k_scale=k_scale, v_scale=v_scale)
    return None if q is None else turned


# ---- The operator: the turned q, or nothing

ARGUMENTS = (
    "Tensor k, Tensor? v, Tensor(a!) k_cache, Tensor(b!)? v_cache, Tensor slots, *, Tensor? q=None, str rotary='', Tensor? cos=None, Tensor? sin=None, "
    "float rotary_base=0.0, SymInt rotary_dim=0, Tensor? positions=None, Tensor(c!)? k_scale=None, Tensor(d!)? v_scale=None"
)
LIBRARY.define(f"cache_append({ARGUMENTS}) -> Tensor", tags=(torch.Tag.pt2_compliant_tag,))


def _run(k: torch.Tensor, v: torch.Tensor | None, k_cache: torch.Tensor, v_cache: torch.Tensor | None, slots: torch.Tensor, *, q: torch.Tensor | None = None,
         rotary: str = "", rotary_base: float = 0.0, rotary_dim: int = 0, **tensors: torch.Tensor | None) -> torch.Tensor:
    engine = _engines.of_device(k.device, "k")
    turned = k.new_empty(0) if q is None else torch.empty_like(q, memory_format=torch.contiguous_format)
    given = {"k": k, "v": v, "k_cache": k_cache, "v_cache": v_cache, "slots": slots, "q": q, "q_out": None if q is None else turned, **tensors}
    append(engine, given, rotary, rotary_base, rotary_dim)
    return turned


def _traced(k: torch.Tensor, v: torch.Tensor | None, k_cache: torch.Tensor, v_cache: torch.Tensor | None, slots: torch.Tensor, *, q: torch.Tensor | None = None,
            **_: Any) -> torch.Tensor:
    return k.new_empty(0) if q is None else torch.empty_like(q, memory_format=torch.contiguous_format)


def _without_gradients(*tensors: Any, **words: Any) -> torch.Tensor:
    for tensor in (*tensors, words.get("q")):
        if isinstance(tensor, torch.Tensor) and tensor.requires_grad and torch.is_grad_enabled():
            raise Unsupported("cache_append: a tensor that requires grad; accepted: none does, or torch.no_grad(): what is written to a cache has no gradient")
    with torch._C._AutoDispatchBelowAutograd():
        return operator(*tensors, **words)


# ---- Over a device's tensors, and over copies of CPU tensors


def append(engine: Engine, given: dict[str, torch.Tensor | None], rotary: str = "", rotary_base: float = 0.0, rotary_dim: int = 0) -> None:
    """One launch. A call of shapes that were seen before is checked no more in Python: only addresses change."""
    k = given["k"]
    assert k is not None
    if all([tensor is None or 0 in tensor.shape for tensor in (k, given.get("v"), given.get("q"))]):
        return
    if k.is_cpu:
        _through_copies(engine, given, rotary, rotary_base, rotary_dim)
        return
    key: list[Any] = ["append", rotary, rotary_base, rotary_dim]
    for name, tensor in given.items():
        if tensor is not None:
            key += (name, tensor.shape, tensor.stride(), tensor.dtype, tensor.get_device())
    shapes = tuple(key)
    launch = engine._plans.get(shapes)
    if launch is None:
        launch = planned(engine, shapes, given, rotary, rotary_base, rotary_dim)
    launch(_dispatch.current_stream(k.device), {name: tensor.data_ptr() for name, tensor in given.items() if tensor is not None}, 0)


def planned(engine: Engine, shapes: Any, given: dict[str, torch.Tensor | None], rotary: str, rotary_base: float, rotary_dim: int) -> Callable[..., None]:
    """Checks a call as `Engine.cache_append` does, and remembers it."""
    k = given["k"]
    assert k is not None
    for field, tensor in given.items():
        if tensor is not None and tensor.device != k.device:
            raise InvalidArgument(f"{field}: a tensor on {tensor.device}; accepted: {k.device}, where k is")
    for field in NUMBERS:
        tensor = given.get(field)
        if tensor is not None and (tensor.dtype not in INTEGERS or not tensor.is_contiguous()):
            raise InvalidArgument(f"{field}: {tensor.dtype}, strides {tensor.stride()}; accepted: torch.int32 or torch.int64, side by side")
    arrays: dict[str, Any] = {field: _array(engine, field, tensor.detach()) for field, tensor in given.items() if tensor is not None}
    call = _append.CacheAppendCall(engine, arrays.pop("k"), arrays.pop("v", None), arrays.pop("k_cache"), arrays.pop("v_cache", None), arrays.pop("slots"),
                                   **_words(rotary, rotary_base, rotary_dim), **arrays)
    if not call.supported():  # told by the call, which knows the tensors' dimensions
        raise Unsupported(call.why_unsupported() or "")
    # Only the checked fields are kept of it: no memory.
    found: Callable[..., None] = call._call.launch_over
    if len(engine._plans) >= _dispatch.SHAPES:
        engine._plans.clear()
    engine._plans[shapes] = found
    return found


def _array(engine: Engine, field: str, tensor: torch.Tensor) -> DeviceArray:
    if tensor.dtype is torch.int64:  # of numbers alone, which other calls do not have
        return DeviceArray(engine, tensor, tensor.data_ptr(), _dtypes.INT64, tuple(tensor.shape), tensor.stride())
    return _dispatch._array(engine, field, tensor)


def _words(rotary: str, rotary_base: float, rotary_dim: int) -> dict[str, Any]:
    return {"rotary": rotary or None, "rotary_base": rotary_base or None, "rotary_dim": rotary_dim or None}


def _through_copies(engine: Engine, given: dict[str, torch.Tensor | None], rotary: str, rotary_base: float, rotary_dim: int) -> None:
    tensors = {}
    words = _words(rotary, rotary_base, rotary_dim)
    for field, tensor in given.items():
        if tensor is None:
            continue
        if not tensor.is_cpu:
            raise InvalidArgument(f"{field}: a tensor on {tensor.device}; accepted: cpu, where k is")
        if field in ("k_cache", "v_cache") and tensor.dtype in _dispatch.EIGHT_BITS:  # as bits, which every DLPack has
            words["cache_dtype"] = _dtypes.named(tensor.dtype)
            tensor = tensor.view(torch.uint8)
        tensors[field] = tensor.detach()
    engine.call("cache_append", tensors.pop("k"), tensors.pop("v", None), tensors.pop("k_cache"), tensors.pop("v_cache", None), tensors.pop("slots"), **tensors, **words).launch()


_untraced: Any = torch.compiler.disable  # what is below an operator is not looked into
LIBRARY.impl("cache_append", _untraced(_run), "CompositeExplicitAutograd")
LIBRARY.impl("cache_append", _without_gradients, "Autograd")
torch.library.register_fake("wavejit::cache_append", _traced, lib=LIBRARY)
operator: Callable[..., torch.Tensor] = torch.ops.wavejit.cache_append.default
