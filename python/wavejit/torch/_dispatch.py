# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The two ways of a call: over tensors that are on the device, and over copies of CPU tensors.

On the device nothing is copied, and a call of a shape that was seen before costs little: its arguments were checked then, and
only addresses change (_seen.py). Memory is torch's: its allocator gives back nothing that the stream still uses, and while a graph is
captured it takes from the graph's own pool. So calls that split keys, whose workspace comes from there too, do so in graphs.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import torch

from .. import _dtypes, _fields, _forward
from .._arrays import DeviceArray, dense_strides
from .._engine import Engine
from .._errors import Error, InvalidArgument, error_of
from .._pages import BSHD
from . import _by_tiles, _seen
from ._repeats import changed_once

Words = Mapping[str, Any]
FAMILY = "attention_forward"
# The words that are tensors; those of every operator, which makes `mask` of a bias itself; and that of a caller's out.
TENSORS = _fields.moved(FAMILY, "q", "k", "v", "out", "lse", "workspace")
OF_TENSORS = frozenset(TENSORS)
OF_OUT = ("o_scale",)
OF_OPERATORS = tuple([name for name in TENSORS if name not in ("mask", *OF_OUT)])
# Shapes that are remembered for an engine; then they are forgotten all at once. Decoding makes one for each length.
SHAPES = 4096
ALIGNED = 16  # bytes
ELEMENTS = (torch.float16, torch.bfloat16)
EIGHT_BITS = (torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e4m3fnuz, torch.float8_e5m2fnuz)
QUERIES = (*ELEMENTS, torch.float8_e4m3fn)  # the last beside k and v of its own
INTEGERS = torch.int8  # of q and k, beside v of 16 bits, or of k and v
CACHES = (*EIGHT_BITS, INTEGERS)  # of k and v
WRITTEN = (torch.float8_e4m3fn, torch.float8_e4m3fnuz, INTEGERS)  # of a caller's out, beside a scale
TYPES = {"fp32": torch.float32, "int32": torch.int32}
# What rows tell, and of what is set by code: scales of 8 bits; starts and tables.
DTYPES = {**dict.fromkeys(("k_scale", "v_scale", "q_scale"), torch.float32), **dict.fromkeys(("query_starts", "key_starts", "block_table", "table_starts"), torch.int32),
          **{field: TYPES[kind] for field, kind in _fields.types_of(FAMILY).items() if kind in TYPES}}
FLAGS = (torch.bool, torch.int8, torch.uint8)  # of causal_flags
LEAST_WORKSPACE = 256  # bytes: one that has room for nothing leaves keys whole
# What rows of packed queries that are no sequence's have in out and in LSE: no launch writes them.
OF_NO_SEQUENCE = (0.0, float("-inf"))
READ_AS_THEY_LIE = (True, True, True)
AS_THEY_ARE: tuple[Callable[[torch.Tensor], torch.Tensor], ...] = (lambda tensor: tensor,) * 5  # outputs, for callers of the operators


_raw_stream: Callable[[int], int] | None = getattr(torch._C, "_cuda_getCurrentRawStream", None)


class Plan(NamedTuple):
    """A call that was checked, without its addresses."""

    call: Any  # the extension's
    launch: Callable[..., None]  # stream, addresses by names, bytes of the workspace
    out: tuple[int, ...]
    lse: tuple[int, ...]
    dense: tuple[bool, bool, bool]  # q, k and v: whether the kernel reads them as they lie
    workspace: int  # bytes that it has use for
    least_workspace: int  # bytes with which it is content
    clears: bool = False  # queries are packed: rows behind the last sequence are not written


def current_stream(device: torch.device) -> int:
    """torch's current stream of the device, a hipStream_t."""
    # What compiled kernels ask in each launch; the public way makes an object that costs as much as the rest of a call.
    if _raw_stream is not None:
        return int(_raw_stream(device.index))
    return int(torch.cuda.current_stream(device).cuda_stream)


def engine_words(words: Words) -> dict[str, Any]:
    """What `Engine.attention_forward` takes, from what the operators take."""
    given = {name: words[name] for name in ("scale", "causal", "splits", "bias_by_tile", *TENSORS) if words.get(name) is not None}
    left, right = words.get("window_left", -1), words.get("window_right", -1)
    if left != -1 or right != -1:
        given["window"] = tuple(None if side == -1 else side for side in (left, right))
    if words.get("causal_prefix", -1) != -1:
        given["causal_prefix"] = words["causal_prefix"]
    if words.get("softcap", 0.0) != 0.0:
        given["softcap"] = words["softcap"]
    if words.get("score_rounding", "fp32") != "fp32":
        given["score_rounding"] = words["score_rounding"]
    if words.get("hints", ""):
        given["hints"] = words["hints"].split(",")
    for field in ("max_query_length", "max_key_length", "max_total_keys", *_fields.MASK_KINDS):
        if words.get(field, 0) != 0:
            given[field] = words[field]
    return given


VECTORISED = 5  # dimensions of k in such pages


def value_dim(k: torch.Tensor, v: torch.Tensor) -> int:
    """The head dim of v, whose pages are, vectorised, [pages, heads, dim, page size] or [pages, heads, page size / 8, dim, 8]."""
    return v.shape[v.ndim - 2] if k.ndim == VECTORISED else v.shape[3]


def _sizes(q: torch.Tensor, v: torch.Tensor, k: torch.Tensor | None = None) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The sizes of out and of LSE."""
    vectorised = k is not None and k.ndim == VECTORISED
    for field, tensor in (("q", q), ("v", v)):
        if tensor.ndim != 4 and not (field == "v" and vectorised and tensor.ndim == VECTORISED):
            raise InvalidArgument(f"{field}: shape {tuple(tensor.shape)}; accepted: {BSHD}")
    batch, rows, heads, _ = q.shape
    return (batch, rows, heads, v.shape[3] if k is None else value_dim(k, v)), (batch, heads, rows)


def out_type(q: torch.Tensor, v: torch.Tensor) -> torch.dtype:
    """The type of out and of a bias: bf16 for queries of 8 bits; v's for integers and float32, or bf16 beside 8 bits; else q's."""
    if q.dtype is torch.float32:
        return v.dtype if v.dtype in ELEMENTS else torch.bfloat16
    return torch.bfloat16 if q.dtype is torch.float8_e4m3fn else v.dtype if q.dtype is INTEGERS else q.dtype


def _check_dtypes(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, words: Words) -> None:
    """In torch's names: what the engine says, it says in its own."""
    if q.dtype is INTEGERS:
        if k.dtype is not INTEGERS:
            raise InvalidArgument(f"k: dtype {k.dtype}; accepted: {INTEGERS}, q's")
        if v.dtype not in ELEMENTS:
            raise InvalidArgument(f"v: dtype {v.dtype}; accepted: {', '.join(map(str, ELEMENTS))} beside q of {INTEGERS}")
    elif q.dtype is torch.float32 and k.dtype in (*ELEMENTS, *CACHES):  # rounded to them
        if v.dtype is not k.dtype:
            raise InvalidArgument(f"v: dtype {v.dtype}; accepted: {k.dtype}, k's")
    elif q.dtype not in QUERIES:
        raise InvalidArgument(f"q: dtype {q.dtype}; accepted: {', '.join(map(str, (*QUERIES, INTEGERS)))}")
    elif q.dtype not in ELEMENTS and k.dtype is not q.dtype:
        raise InvalidArgument(f"k: dtype {k.dtype}; accepted: {q.dtype}, q's")
    elif k.dtype is not q.dtype and k.dtype not in CACHES:
        raise InvalidArgument(f"k: dtype {k.dtype}; accepted: {q.dtype}, q's, {', '.join(map(str, CACHES))}")
    elif v.dtype is not k.dtype:
        raise InvalidArgument(f"v: dtype {v.dtype}; accepted: {k.dtype}, k's")
    for field, dtype in DTYPES.items():
        tensor = words.get(field)
        if tensor is not None and tensor.dtype is not dtype:
            raise InvalidArgument(f"{field}: dtype {tensor.dtype}; accepted: {dtype}")
    flags = words.get("causal_flags")
    if flags is not None and flags.dtype not in FLAGS:
        raise InvalidArgument(f"causal_flags: dtype {flags.dtype}; accepted: {', '.join(map(str, FLAGS))}")
    bias = words.get("bias")
    if bias is not None and bias.dtype is not torch.bool and not bias.dtype.is_floating_point:
        raise InvalidArgument(f"bias: dtype {bias.dtype}; accepted: {out_type(q, v)}, other floating-point types that are rounded to it, torch.bool")


def bias_type(mask: torch.Tensor, dtype: torch.dtype) -> torch.dtype:
    """What a mask is read as beside queries of `dtype`: float32 stays what it is."""
    return torch.float32 if mask.dtype is torch.float32 else dtype


def bias_of(mask: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """A mask as a bias: `dtype`, −∞ where a bool mask is False. Its rows begin at multiples of 8 elements."""
    keys = mask.shape[-1]

    def as_bias(once: torch.Tensor) -> torch.Tensor:
        bias = torch.empty((*once.shape[:-1], -(-keys // 8) * 8), dtype=dtype, device=once.device)[..., :keys]
        return bias.fill_(0.0).masked_fill_(~once, float("-inf")) if once.dtype is torch.bool else bias.copy_(once)

    return changed_once(mask, as_bias)


# ---- CPU tensors, copied to a simulated device and back


def through_copies(engine: Engine, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, with_lse: bool, words: Words, caller: _seen.Caller | None = None) -> tuple[torch.Tensor, torch.Tensor]:
    sizes, lse_sizes = _sizes(q, v, k)
    out = torch.empty(sizes, dtype=out_type(q, v))
    lse = torch.empty(lse_sizes if with_lse else 0, dtype=torch.float32)
    if is_packed(words):
        clear(out, lse)
    if 0 not in q.shape:
        copied_into(engine, q, k, v, out, lse if with_lse else None, words)
    return out, lse


def is_packed(words: Words) -> bool:
    """Whether there may be rows of queries that are no sequence's."""
    return words.get("query_starts") is not None


def clear(out: torch.Tensor | None, lse: torch.Tensor | None) -> None:
    """Outputs that are not the caller's, in front of a launch that may leave rows out."""
    if out is not None:
        out.zero_()
    if lse is not None:
        lse.fill_(OF_NO_SEQUENCE[1])


def copied_into(engine: Engine, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, out: torch.Tensor, lse: torch.Tensor | None, words: Words) -> None:
    """The same into tensors that there are."""
    _copied_call(engine, q, k, v, out.detach(), False if lse is None else lse.detach(), words).launch()


def _copied_call(engine: Engine, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, out: torch.Tensor | None, lse: torch.Tensor | bool, words: Words) -> _forward.AttentionForwardCall:
    for field, tensor in (("k", k), ("v", v), *words.items()):
        if isinstance(tensor, torch.Tensor) and not tensor.is_cpu:
            raise InvalidArgument(f"{field}: a tensor on {tensor.device}; accepted: cpu, where q is")
    _check_dtypes(q, k, v, words)
    words = _by_tiles.words_of(engine, q, k, v, words)
    given: dict[str, Any] = {name: value.detach() if isinstance(value, torch.Tensor) else value for name, value in engine_words(words).items()}
    dtype = out_type(q, v)
    if "bias" in given and given["bias"].dtype is not bias_type(given["bias"], dtype):
        given["bias"] = bias_of(given["bias"], dtype)
    if q.dtype in EIGHT_BITS:  # as bits, which every DLPack has
        given["dtype"] = _dtypes.named(q.dtype)
        q = q.view(torch.uint8)
    if k.dtype in EIGHT_BITS:
        given["cache_dtype"] = _dtypes.named(k.dtype)
        k, v = k.view(torch.uint8), v.view(torch.uint8)
    if out is not None and out.dtype in EIGHT_BITS:
        given["out_dtype"] = _dtypes.named(out.dtype, "out")
        out = out.view(torch.uint8)
    return engine.attention_forward_call(q.detach(), k.detach(), v.detach(), out, lse=lse, **given)


# ---- tensors on the device


def on_device(engine: Engine, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, with_lse: bool, words: dict[str, Any], caller: _seen.Caller | None = None) -> Any:
    """out, and LSE or something else behind it. With a caller, who has asked whether its call was seen."""
    if caller is not None:
        return _on_device(engine, q, k, v, with_lse, words, caller)
    calls = engine._torch_calls.get("forward")
    found = None if calls is None else calls.run(current_stream(q.device), with_lse, (q, k, v), words)
    return found if found is not None else _on_device(engine, q, k, v, with_lse, words, _seen.Caller(with_lse, (q, k, v), AS_THEY_ARE))


def _on_device(engine: Engine, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, with_lse: bool, words: dict[str, Any],
               caller: _seen.Caller | None) -> tuple[torch.Tensor, Any]:
    told, words = words, _by_tiles.words_of(engine, q, k, v, words)
    others: dict[str, torch.Tensor] = {}
    key: list[Any] = [with_lse, q.shape, q.stride(), q.dtype, k.shape, k.stride(), k.dtype, k.get_device(), v.shape, v.stride(), v.dtype, v.get_device()]
    for name, value in words.items():  # torch gives those that are not their defaults
        key.append(name)
        if name in OF_TENSORS and value is not None:
            value = others[name] = value if name != "bias" else _readable(value, bias_type(value, out_type(q, v)))
            key += (value.shape, value.stride(), value.dtype, value.get_device())
        else:
            key.append(value)
    shapes = tuple(key)
    plan: Plan | None = engine._plans.get(shapes)
    if plan is None:
        plan = _planned(engine, shapes, q, k, v, with_lse, {**words, **others})
    if plan.dense != READ_AS_THEY_LIE:
        q, k, v = (tensor if well else _copy(tensor) for tensor, well in zip((q, k, v), plan.dense))
    if (q.data_ptr() | k.data_ptr() | v.data_ptr()) % ALIGNED:
        q, k, v = (_copy(tensor) if tensor.data_ptr() % ALIGNED else tensor for tensor in (q, k, v))
        return _on_device(engine, q, k, v, with_lse, words, None)
    out, lse = _launched(plan, q, k, v, with_lse, others)
    if caller is not None and plan.call is not None and plan.dense == READ_AS_THEY_LIE and "mask" not in words and _seen.all_of(others, told):
        outputs = {"out": out, "lse": lse} if with_lse else {"out": out}
        _seen.remember(engine, "forward", caller, told, plan, "qkv", outputs, OF_NO_SEQUENCE[: len(outputs)] if plan.clears else ())
    return out, lse


def launched_into(engine: Engine, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, out: torch.Tensor, lse: torch.Tensor | None, workspace: torch.Tensor | None,
                  words: Words) -> None:
    """Into tensors that there are, and in a workspace of the caller's; without one it comes from torch."""
    words = _by_tiles.words_of(engine, q, k, v, words)
    others = {name: value if name != "bias" else _readable(value, bias_type(value, out_type(q, v))) for name, value in words.items()
              if name in OF_TENSORS and value is not None}
    key: list[Any] = ["into"]
    for tensor in (q, k, v, out, lse, *others.values()):
        key.append(None if tensor is None else (tensor.shape, tensor.stride(), tensor.dtype, tensor.get_device()))
    key += [(name, name if name in others else value) for name, value in words.items()]
    shapes = tuple(key)
    plan: Plan | None = engine._plans.get(shapes)
    if plan is None:
        plan = _planned(engine, shapes, q, k, v, lse is not None, {**words, **others}, out, lse)
    q, k, v = (tensor if well and tensor.data_ptr() % ALIGNED == 0 else _copy(tensor) for tensor, well in zip((q, k, v), plan.dense))
    if workspace is None and plan.workspace:
        workspace = _workspace(plan, q.device)
    launch(plan, {"q": q, "k": k, "v": v, "out": out, "lse": lse, **others}, workspace)


def launch(plan: Plan, given: Mapping[str, torch.Tensor | None], workspace: torch.Tensor | None) -> None:
    """A call that was checked, over these tensors by their names."""
    at = {name: tensor.data_ptr() for name, tensor in given.items() if tensor is not None}
    room = 0
    if workspace is not None:
        at["workspace"], room = workspace.data_ptr(), workspace.numel() * workspace.element_size()
    plan.launch(current_stream(given["q"].device), at, room)  # type: ignore[union-attr]


def _launched(plan: Plan, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, with_lse: bool, others: dict[str, torch.Tensor]) -> tuple[torch.Tensor, Any]:
    device = q.device
    # empty_like is the quicker one.
    dtype = out_type(q, v)
    out = torch.empty_like(q) if plan.out == q.shape and dtype is q.dtype and q.is_contiguous() else torch.empty(plan.out, dtype=dtype, device=device)
    lse = torch.empty(plan.lse, dtype=torch.float32, device=device) if with_lse else None
    if plan.clears:
        clear(out, lse)
    if 0 in plan.out:
        return out, lse
    launch(plan, {"q": q, "k": k, "v": v, "out": out, "lse": lse, **others}, _workspace(plan, device) if plan.workspace else None)
    return out, lse


def _workspace(plan: Plan, device: torch.device) -> torch.Tensor:
    """For partial results, which are fp32. Where torch has no memory for all of it, a quarter, and so on: fewer sequences at a
    time then, at last whole keys, and the same bits."""
    size = plan.workspace
    while True:
        try:
            return torch.empty(size // 4, dtype=torch.float32, device=device)
        except torch.cuda.OutOfMemoryError:
            if size <= plan.least_workspace:
                raise
            size = max(size // 4, plan.least_workspace)


def _copy(tensor: torch.Tensor) -> torch.Tensor:
    """Dense, but for what all batches, heads or rows share."""
    return changed_once(tensor, lambda once: once.clone(memory_format=torch.contiguous_format))


def _readable(mask: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """A bias as it is, if it lies as a kernel reads it: whole rows up to a multiple of 8 keys. `bias_of` makes such."""
    if mask.dtype is dtype and _lies_well(mask) and mask.data_ptr() % ALIGNED == 0:
        end = mask.storage_offset() + sum((size - 1) * step for size, step in zip(mask.shape[:-1], mask.stride())) + -(-mask.shape[-1] // 8) * 8
        if end * mask.element_size() <= mask.untyped_storage().nbytes():
            return mask
    return bias_of(mask, dtype)


def _lies_well(tensor: torch.Tensor) -> bool:
    """Whether kernels read it as it is. A stride of 0 is none to them: what all batches, heads or rows share is read where it lies."""
    if 0 in tensor.shape:
        return True
    steps = [stride for size, stride in zip(tensor.shape[:-1], tensor.stride()) if size > 1]
    granule = max(8, ALIGNED // tensor.element_size())
    return (tensor.shape[-1] < 2 or tensor.stride(-1) == 1) and all(step >= 0 and step % granule == 0 for step in steps)


def _planned(engine: Engine, shapes: Any, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, with_lse: bool, words: Words, into: torch.Tensor | None = None,
             into_lse: torch.Tensor | None = None) -> Plan:
    """Checks a call as `Engine.attention_forward` does, and remembers it."""
    sizes, lse_sizes = _sizes(q, v, k)
    for field, tensor in (("k", k), ("v", v), *words.items()):
        if isinstance(tensor, torch.Tensor) and tensor.device != q.device:
            raise InvalidArgument(f"{field}: a tensor on {tensor.device}; accepted: {q.device}, where q is")
    _check_dtypes(q, k, v, words)
    dense = _lies_well(q), _lies_well(k), _lies_well(v)
    known, launch, workspace = None, _nothing, 0
    if 0 not in sizes:
        # As a launch will have them; copies are of this first call alone.
        inputs = [_array(engine, field, tensor if well and tensor.data_ptr() % ALIGNED == 0 else _copy(tensor)) for field, tensor, well in zip("qkv", (q, k, v), dense)]
        given: dict[str, Any] = {name: _array(engine, name, value) if isinstance(value, torch.Tensor) else value for name, value in engine_words(words).items()}
        # Outputs that are not written: those of a launch are its own.
        out = _array(engine, "out", torch.empty(sizes, dtype=out_type(q, v), device=q.device) if into is None else into)
        lse = _array(engine, "lse", torch.empty(lse_sizes, dtype=torch.float32, device=q.device) if into_lse is None else into_lse) if with_lse else False
        # Only the checked fields are kept of it: no memory.
        call = _forward.AttentionForwardCall(engine, inputs[0], inputs[1], inputs[2], out, lse=lse, **given)
        known, launch = call._call, call._call.launch_over
        if call.supported():  # else the launch says why not
            workspace = call.workspace_bytes()
    plan = Plan(known, launch, sizes, lse_sizes, dense, workspace, workspace if words.get("splits", 0) > 1 else LEAST_WORKSPACE, is_packed(words))
    if len(engine._plans) >= SHAPES:
        engine._plans.clear()
    engine._plans[shapes] = plan
    return plan


def check(engine: Engine, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, out: torch.Tensor | None, with_lse: bool, words: Words) -> None:
    """Refuses what a launch of the call would refuse, and fetches or compiles its kernel: after that something may be written that
    the call reads."""
    if q.is_cpu:
        found = _copied_call(engine, q, k, v, None if out is None else out.detach(), with_lse, words)
        _require(engine, found._call)
        return
    key: list[Any] = ["checked", with_lse]
    for tensor in (q, k, v, out):
        key.append(None if tensor is None else (tensor.shape, tensor.stride(), tensor.dtype, tensor.get_device()))
    for name, value in words.items():
        key += (name, (value.shape, value.stride(), value.dtype, value.get_device()) if isinstance(value, torch.Tensor) else value)
    shapes = tuple(key)
    if shapes in engine._plans:
        return
    plan = _planned(engine, shapes, q, k, v, with_lse, words, out)
    if plan.call is not None:
        try:
            _require(engine, plan.call)
        except Error:
            del engine._plans[shapes]
            raise


def _require(engine: Engine, call: Any) -> None:
    status, detail = call.supported()
    if status:
        raise error_of(status, detail)
    status, detail = call.ready()
    if not status:
        return
    if torch.cuda.is_available() and torch.cuda.is_current_stream_capturing():  # nothing can be loaded
        raise error_of(status, detail)
    for line in engine.prepare(call.describe(), strict=False):  # an error speaks of the call, not of a line
        if line.status:
            raise error_of(line.status, line.failure)


def _nothing(*_: Any) -> None:
    """The launch of a call without rows."""


def _array(engine: Engine, field: str, tensor: torch.Tensor) -> DeviceArray:
    """A tensor of the device, as the checks of `Engine.attention_forward` take one."""
    # torch says anything for the stride of a dimension of size 1.
    steps = [dense if size < 2 else stride for size, stride, dense in zip(tensor.shape, tensor.stride(), dense_strides(tuple(tensor.shape)))]
    dtype = torch.int8 if field == "mask" else tensor.dtype  # the same bytes
    return DeviceArray(engine, tensor, tensor.data_ptr(), _dtypes.named(dtype, field), tuple(tensor.shape), steps)
