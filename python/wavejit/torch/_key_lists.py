# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention of each query over the keys that a list names, and its operators."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from .. import _documented, _dtypes, _forward
from .._engine import Engine
from .._errors import InvalidArgument, Unsupported
from . import _engines, _dispatch
from ._flash import _int32
from ._operators import LIBRARY, tensors_only
from ._dispatch import Words

CACHES = ("k", "v", "second_k", "second_v")
LISTS = ("indices", "counts", "second_indices", "second_counts")
NUMBERS = ("query_starts", "key_starts", "key_lengths", "block_table", "table_starts")
# What a word that is not given says, where it is not what the engine takes for that.
UNSAID = {"causal_prefix": -1, "softcap": 0.0, "max_query_length": 0, "max_key_length": 0}


@_documented.with_rows_of("attention_forward")
def key_list_attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, indices: torch.Tensor, *, counts: torch.Tensor | None = None, slots: bool = False,
                       second_k: torch.Tensor | None = None, second_v: torch.Tensor | None = None, second_indices: torch.Tensor | None = None,
                       second_counts: torch.Tensor | None = None, scale: float | None = None, causal: bool = False, causal_prefix: int | None = None,
                       softcap: float | None = None, sinks: torch.Tensor | None = None, query_starts: torch.Tensor | None = None,
                       key_starts: torch.Tensor | None = None, key_lengths: torch.Tensor | None = None, block_table: torch.Tensor | None = None,
                       table_starts: torch.Tensor | None = None, max_query_length: int | None = None, max_key_length: int | None = None, splits: int = 0,
                       k_scale: torch.Tensor | None = None, v_scale: torch.Tensor | None = None, return_lse: bool = False) -> Any:
    """softmax(scale · q·kᵀ) · v of each query over the keys that its list names: [B, Sq, Hq, D] → [B, Sq, Hq, Dv]. No gradients.

    q [B, Sq, Hq, D], k and v [B, Sk, Hkv, D]; with block_table or slots pages [pages, page size, Hkv, D]
        fp16 or bf16; k and v also in float8 or int8 with `k_scale` and `v_scale`. A cache is never copied.
    {indices}
    {second_indices}
    return_lse
        (out, LSE [B, Hq, Sq] fp32). A row whose list names nothing is 0, its LSE −∞.

    The rest as in `wavejit.Engine.attention_forward`. torch.compile traces it as `torch.ops.wavejit.key_list_attention` or `…_lse`.

    >>> import torch, wavejit.torch
    >>> engine = wavejit.torch.use("sim:gfx950")
    >>> q, cache = torch.ones(1, 2, 4, 64).bfloat16(), torch.ones(1, 100, 2, 64).bfloat16()
    >>> out, lse = wavejit.torch.key_list_attention(q, cache, cache, torch.tensor([[[7, -1, 3], [-1, 200, 9]]], dtype=torch.int32), return_lse=True)
    >>> out.shape, [round(each - 8, 3) for each in lse[0, 0].tolist()]    # ln 2, ln 1
    (torch.Size([1, 2, 4, 64]), [0.693, 0.0])
    """
    tensors_only({"q": q, "k": k, "v": v, "indices": indices})
    if max_key_length is None and block_table is not None and table_starts is None and block_table.ndim == 2 and k.ndim == 4:
        max_key_length = block_table.shape[1] * k.shape[1]
    words: dict[str, Any] = {"counts": counts, "slots": slots or None, "second_k": second_k, "second_v": second_v, "second_indices": second_indices,
                             "second_counts": second_counts, "scale": scale, "causal": causal or None, "causal_prefix": causal_prefix, "softcap": softcap,
                             "sinks": sinks, "query_starts": query_starts, "key_starts": key_starts, "key_lengths": key_lengths, "block_table": block_table,
                             "table_starts": table_starts, "max_query_length": max_query_length, "max_key_length": max_key_length, "splits": splits or None,
                             "k_scale": k_scale, "v_scale": v_scale}
    for field in NUMBERS:
        if words[field] is not None:
            words[field] = _int32(field, words[field], 2 if field == "block_table" and table_starts is None else 1)
    words = {name: value for name, value in words.items() if value is not None}
    return (_with_lse if return_lse else _plain)(q, k, v, indices, **words)


# ---- The operators

ARGUMENTS = (
    "Tensor q, Tensor k, Tensor v, Tensor indices, *, Tensor? counts=None, bool slots=False, Tensor? second_k=None, Tensor? second_v=None, "
    "Tensor? second_indices=None, Tensor? second_counts=None, float? scale=None, bool causal=False, SymInt causal_prefix=-1, float softcap=0.0, "
    "Tensor? sinks=None, Tensor? query_starts=None, Tensor? key_starts=None, Tensor? key_lengths=None, Tensor? block_table=None, Tensor? table_starts=None, "
    "SymInt max_query_length=0, SymInt max_key_length=0, int splits=0, Tensor? k_scale=None, Tensor? v_scale=None"
)
LIBRARY.define(f"key_list_attention({ARGUMENTS}) -> Tensor", tags=(torch.Tag.pt2_compliant_tag,))
LIBRARY.define(f"key_list_attention_lse({ARGUMENTS}) -> (Tensor, Tensor)", tags=(torch.Tag.pt2_compliant_tag,))


def _run(with_lse: bool, tensors: tuple[torch.Tensor, ...], words: Words) -> tuple[torch.Tensor, torch.Tensor | None]:
    q = tensors[0]
    engine = _engines.of_device(q.device, "q")
    given = dict(zip(("q", "k", "v", "indices"), tensors))
    numbers: dict[str, Any] = {}
    for name, value in words.items():
        if isinstance(value, torch.Tensor):
            given[name] = value
        elif value is not None and (name not in UNSAID or value != UNSAID[name]):
            numbers[name] = value
    for field, tensor in given.items():
        if tensor.device != q.device:
            raise InvalidArgument(f"{field}: a tensor on {tensor.device}; accepted: {q.device}, where q is")
    _check_dtypes(given)
    sizes, lse_sizes = _dispatch._sizes(q, given["v"])
    out = torch.empty(sizes, dtype=q.dtype, device=q.device)
    lse = torch.empty(lse_sizes, dtype=torch.float32, device=q.device) if with_lse else None
    if _dispatch.is_packed(given):
        _dispatch.clear(out, lse)
    if 0 not in q.shape[:3]:
        (_through_copies if q.is_cpu else _on_device)(engine, {name: tensor.detach() for name, tensor in given.items()}, out, lse, numbers)
    return out, lse


def _check_dtypes(given: Words) -> None:
    """In torch's names: what the engine says, it says in its own."""
    _dispatch._check_dtypes(given["q"], given["k"], given["v"], given)
    for field in ("second_k", "second_v"):
        if field in given and given[field].dtype is not given["k"].dtype:
            raise InvalidArgument(f"{field}: dtype {given[field].dtype}; accepted: {given['k'].dtype}, k's")
    for field in LISTS:
        if field in given and given[field].dtype is not torch.int32:
            raise InvalidArgument(f"{field}: dtype {given[field].dtype}; accepted: torch.int32")


def _through_copies(engine: Engine, given: dict[str, Any], out: torch.Tensor, lse: torch.Tensor | None, numbers: dict[str, Any]) -> None:
    if given["k"].dtype in _dispatch.EIGHT_BITS:  # as bits, which every DLPack has
        numbers["cache_dtype"] = _dtypes.named(given["k"].dtype)
        given.update({name: given[name].view(torch.uint8) for name in CACHES if name in given})
    engine.attention_forward(given.pop("q"), given.pop("k"), given.pop("v"), out, lse=False if lse is None else lse, **given, **numbers)


def _on_device(engine: Engine, given: dict[str, Any], out: torch.Tensor, lse: torch.Tensor | None, numbers: dict[str, Any]) -> None:
    """Nothing is copied but queries that do not lie well, and the workspace is torch's: a captured graph has it in its pool."""
    q = given["q"]
    if not _dispatch._lies_well(q) or q.data_ptr() % _dispatch.ALIGNED:
        given["q"] = _dispatch._copy(q)
    arrays: dict[str, Any] = {name: _dispatch._array(engine, name, tensor) for name, tensor in given.items()}
    call = _forward.AttentionForwardCall(engine, arrays.pop("q"), arrays.pop("k"), arrays.pop("v"), _dispatch._array(engine, "out", out),
                                         lse=False if lse is None else _dispatch._array(engine, "lse", lse), stream=_dispatch.current_stream(q.device), **arrays, **numbers)
    size = call.workspace_bytes() if call.supported() else 0  # else the launch says why not
    if size:
        # Parts of two lists are merged, whatever there is room for.
        needed = numbers.get("splits", 0) > 1 or "second_indices" in given
        plan = _dispatch.Plan(None, _dispatch._nothing, (), (), _dispatch.READ_AS_THEY_LIE, size, size if needed else _dispatch.LEAST_WORKSPACE)
        call._give_workspace(_dispatch._array(engine, "workspace", _dispatch._workspace(plan, q.device)))
    call.launch()


def _kernel(*tensors: torch.Tensor, **words: Any) -> torch.Tensor:
    return _run(False, tensors, words)[0]


def _lse_kernel(*tensors: torch.Tensor, **words: Any) -> Any:
    return _run(True, tensors, words)


def _traced(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, indices: torch.Tensor, **words: Any) -> torch.Tensor:
    return q.new_empty((q.shape[0], q.shape[1], q.shape[2], v.shape[3]))


def _traced_lse(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, indices: torch.Tensor, **words: Any) -> tuple[torch.Tensor, torch.Tensor]:
    return _traced(q, k, v, indices), q.new_empty((q.shape[0], q.shape[2], q.shape[1]), dtype=torch.float32)


def _without_gradients(name: str) -> Callable[..., Any]:
    """They have none: zeros in their place would be silent."""

    def call(*tensors: torch.Tensor, **words: Any) -> Any:
        if torch.is_grad_enabled():
            for field, tensor in (*zip(("q", "k", "v"), tensors), *words.items()):
                if isinstance(tensor, torch.Tensor) and tensor.requires_grad:
                    raise Unsupported(f"{field}: it requires grad, and lists of keys have no backward; accepted: torch.no_grad(), or detach()")
        with torch._C._AutoDispatchBelowAutograd():
            return getattr(torch.ops.wavejit, name).default(*tensors, **words)

    return call


_untraced: Any = torch.compiler.disable  # what is below an operator is not looked into
for _name, _implementation, _fake in (("key_list_attention", _kernel, _traced), ("key_list_attention_lse", _lse_kernel, _traced_lse)):
    LIBRARY.impl(_name, _untraced(_implementation), "CompositeExplicitAutograd")
    LIBRARY.impl(_name, _without_gradients(_name), "Autograd")
    torch.library.register_fake(f"wavejit::{_name}", _fake, lib=LIBRARY)
_plain: Callable[..., torch.Tensor] = torch.ops.wavejit.key_list_attention.default
_with_lse: Callable[..., tuple[torch.Tensor, torch.Tensor]] = torch.ops.wavejit.key_list_attention_lse.default
