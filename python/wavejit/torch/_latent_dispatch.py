# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The two ways of a call of latent attention: over tensors that are on the device, and over copies of CPU tensors.

As _dispatch.py has them: a shape that was seen before is checked no more, only addresses change, and memory is torch's, the workspace
among it. Queries that do not lie well are copied first. A cache never is: it may be most of the device's memory.
"""
from __future__ import annotations

from typing import Any

import torch

from .. import _dtypes, _fields, _latent
from .._arrays import DeviceArray
from .._engine import Engine
from .._errors import InvalidArgument
from .._pages import BSHD
from . import _dispatch
from ._dispatch import Plan, Words

NUMBERS = ("query_starts", "key_starts", "key_lengths", "block_table", "table_starts")
LISTS = ("indices", "counts", "second_indices", "second_counts")
LIKE_K = ("k_rope", "second_k")
OF_TENSORS = frozenset(_fields.moved("attention_latent", "q", "k", "out", "lse", "workspace"))
DTYPES = {"sinks": torch.float32, "k_scale": torch.float32, **dict.fromkeys((*NUMBERS, *LISTS), torch.int32)}
# What a word that is not given says, where it is not what the engine takes for that.
UNSAID = {"causal_prefix": -1, "softcap": 0.0, "value_dim": 0, "max_query_length": 0, "max_key_length": 0, "max_total_keys": 0}


def sizes_of(q: torch.Tensor, words: Words) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """The sizes of out and of LSE."""
    if q.ndim != 4:
        raise InvalidArgument(f"q: shape {tuple(q.shape)}; accepted: {BSHD}")
    batch, rows, heads, columns = q.shape
    dims = _latent.value_dim_of(columns, words.get("q_rope") is not None, words.get("value_dim") or None)
    return (batch, rows, heads, dims), (batch, heads, rows)


def run(engine: Engine, q: torch.Tensor, k: torch.Tensor, out: torch.Tensor | None, with_lse: bool, words: dict[str, Any]) -> tuple[torch.Tensor, Any]:
    """out, which is written where it is given, and LSE or None."""
    for field, tensor in (("k", k), ("out", out), *words.items()):
        if isinstance(tensor, torch.Tensor) and tensor.device != q.device:
            raise InvalidArgument(f"{field}: a tensor on {tensor.device}; accepted: {q.device}, where q is")
    return (_through_copies if q.is_cpu else _on_device)(engine, q, k, out, with_lse, words)


def _engine_words(words: Words) -> dict[str, Any]:
    """What `Engine.attention_latent` takes, from what the operators take."""
    return {name: value for name, value in words.items() if value is not None and (name not in UNSAID or value != UNSAID[name])}


def _check_dtypes(q: torch.Tensor, k: torch.Tensor, out: torch.Tensor | None, words: Words) -> None:
    """In torch's names: what the engine says, it says in its own."""
    if q.dtype not in _dispatch.ELEMENTS:
        raise InvalidArgument(f"q: dtype {q.dtype}; accepted: {', '.join(map(str, _dispatch.ELEMENTS))}")
    if k.dtype is not q.dtype and k.dtype not in _dispatch.CACHES:
        raise InvalidArgument(f"k: dtype {k.dtype}; accepted: {q.dtype}, q's, {', '.join(map(str, _dispatch.CACHES))}")
    for field, tensor in (("out", out), ("q_rope", words.get("q_rope"))):
        if tensor is not None and tensor.dtype is not q.dtype:
            raise InvalidArgument(f"{field}: dtype {tensor.dtype}; accepted: {q.dtype}, q's")
    for field in LIKE_K:
        tensor = words.get(field)
        if tensor is not None and tensor.dtype is not k.dtype:
            raise InvalidArgument(f"{field}: dtype {tensor.dtype}; accepted: {k.dtype}, k's")
    for field, dtype in DTYPES.items():
        number = words.get(field)
        if number is not None and number.dtype is not dtype:
            raise InvalidArgument(f"{field}: dtype {number.dtype}; accepted: {dtype}")


def _made(q: torch.Tensor, out: torch.Tensor | None, with_lse: bool, sizes: tuple[Any, ...], lse_sizes: tuple[Any, ...]) -> tuple[torch.Tensor, torch.Tensor | None]:
    lse = torch.empty(lse_sizes, dtype=torch.float32, device=q.device) if with_lse else None
    return torch.empty(sizes, dtype=q.dtype, device=q.device) if out is None else out, lse


def _cleared(out: torch.Tensor | None, made: tuple[torch.Tensor, torch.Tensor | None], words: Words) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Packed queries' rows that no launch writes are cleared, where `out` is not the caller's."""
    if _dispatch.is_packed(words):
        _dispatch.clear(made[0] if out is None else None, made[1])
    return made


# ---- CPU tensors, copied to a simulated device and back


def _through_copies(engine: Engine, q: torch.Tensor, k: torch.Tensor, out: torch.Tensor | None, with_lse: bool, words: Words) -> tuple[torch.Tensor, Any]:
    _check_dtypes(q, k, out, words)
    out, lse = _cleared(out, _made(q, out, with_lse, *sizes_of(q, words)), words)
    if 0 not in q.shape[:3]:
        given: dict[str, Any] = {name: value.detach() if isinstance(value, torch.Tensor) else value for name, value in _engine_words(words).items()}
        k = k.detach()
        if k.dtype in _dispatch.EIGHT_BITS:  # as bits, which every DLPack has
            given["cache_dtype"] = _dtypes.named(k.dtype)
            k = k.view(torch.uint8)
            given.update({name: given[name].view(torch.uint8) for name in LIKE_K if name in given})
        engine.attention_latent(q.detach(), k, out.detach(), lse=lse if with_lse else False, **given)
    return out, lse


# ---- tensors on the device


def _on_device(engine: Engine, q: torch.Tensor, k: torch.Tensor, out: torch.Tensor | None, with_lse: bool, words: dict[str, Any]) -> tuple[torch.Tensor, Any]:
    q = _readable(q)
    if words.get("q_rope") is not None:
        words = {**words, "q_rope": _readable(words["q_rope"])}
    others: dict[str, torch.Tensor] = {}
    key: list[Any] = ["latent", with_lse, q.shape, q.stride(), q.dtype, k.shape, k.stride(), k.dtype]
    if out is not None:
        key += (out.shape, out.stride(), out.dtype)
    for name, value in words.items():  # torch gives those that are not their defaults
        key.append(name)
        if name in OF_TENSORS and value is not None:
            others[name] = value
            key += (value.shape, value.stride(), value.dtype)
        else:
            key.append(value)
    shapes = tuple(key)
    plan: Plan | None = engine._plans.get(shapes)
    if plan is None:
        plan = _planned(engine, shapes, q, k, out, with_lse, words)
    out, lse = _cleared(out, _made(q, out, with_lse, plan.out, plan.lse), words)
    if 0 in plan.out:
        return out, lse
    _dispatch.launch(plan, {"q": q, "k": k, "out": out, "lse": lse, **others}, _dispatch._workspace(plan, q.device) if plan.workspace else None)
    return out, lse


def _readable(queries: torch.Tensor) -> torch.Tensor:
    return queries if _dispatch._lies_well(queries) and queries.data_ptr() % _dispatch.ALIGNED == 0 else _dispatch._copy(queries)


def _planned(engine: Engine, shapes: Any, q: torch.Tensor, k: torch.Tensor, out: torch.Tensor | None, with_lse: bool, words: Words) -> Plan:
    """Checks a call as `Engine.attention_latent` does, and remembers it."""
    _check_dtypes(q, k, out, words)
    sizes, lse_sizes = sizes_of(q, words)
    known, launch, workspace = None, _dispatch._nothing, 0
    if 0 not in sizes:
        def array(field: str, tensor: torch.Tensor) -> DeviceArray:
            return _dispatch._array(engine, field, tensor)

        given: dict[str, Any] = {name: array(name, value) if isinstance(value, torch.Tensor) else value for name, value in _engine_words(words).items()}
        # Outputs that are not written: those of a launch are its own.
        made, lse = _made(q, out, with_lse, sizes, lse_sizes)
        call = _latent.AttentionLatentCall(engine, array("q", q), array("k", k), array("out", made), lse=False if lse is None else array("lse", lse), **given)
        # Only the checked fields are kept of it: no memory.
        known, launch = call._call, call._call.launch_over
        if call.supported():  # else the launch says why not
            workspace = call.workspace_bytes()
    # Parts of two lists are merged, whatever there is room for.
    needed = words.get("splits", 0) > 1 or words.get("second_indices") is not None
    plan = Plan(known, launch, sizes, lse_sizes, _dispatch.READ_AS_THEY_LIE, workspace, workspace if needed else _dispatch.LEAST_WORKSPACE)
    if len(engine._plans) >= _dispatch.SHAPES:
        engine._plans.clear()
    engine._plans[shapes] = plan
    return plan
