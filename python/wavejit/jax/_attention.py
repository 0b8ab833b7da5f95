# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The function with wavejit's own words, and its gradient."""
from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import jax
import numpy
from jax import numpy as jnp
from jax.custom_derivatives import SymbolicZero

from .. import _documented, _dtypes, _masks
from .._errors import InvalidArgument, Unsupported
from .._fields import CAUSAL, FLAGS, MOST_KEYS, PREFIX, SCALE_IS_ZERO, WINDOW, in_fp32, shown, whole, whole_or_none
from .._other_names import refuses_by_name
from . import _batching, _engines
from ._ffi import BACKWARD, FORWARD, Words, out_type, varying

BIAS_BY_TILE = FLAGS["bias_by_tile"][True]
BSHD = "[batch, length, heads, head dim]"
QUERIES = (jnp.float16, jnp.bfloat16)
CACHES = (jnp.float8_e4m3fn, jnp.float8_e5m2, jnp.float8_e4m3fnuz, jnp.float8_e5m2fnuz, jnp.int8)
HEAD_DIMS = ((64, 64), (128, 128), (192, 128), (256, 256))  # of q and k, of v: those that have gradients
WITHOUT_GRADIENT = {"alibi": "slopes are constants of a model", "k_scale": "scales of a cache have no gradient", "v_scale": "scales of a cache have no gradient"}
INSTEAD = "jax.lax.stop_gradient of it"
PADDED_KEYS = 8  # rows of a bias begin at multiples of this many elements
FEWEST_DIMS, MOST_DIMS = 8, 256  # of a head, in multiples of the first

Operands = dict[str, Any]


@refuses_by_name
@_documented.with_rows_of("attention_forward")
def attention(q: Any, k: Any, v: Any, *, scale: float | None = None, causal: bool = False, window: Sequence[int | None] | None = None,
              causal_prefix: int | None = None, softcap: float | None = None, bias: Any = None, alibi: Any = None, sinks: Any = None, lse: bool = False,
              query_starts: Any = None, key_starts: Any = None, key_lengths: Any = None, block_table: Any = None, max_query_length: int | None = None,
              max_key_length: int | None = None, k_scale: Any = None, v_scale: Any = None, splits: int = 0) -> Any:
    """softmax(scale · q·kᵀ + mask) · v for every batch and head; with `lse=True` also the log-sum-exp [batch, heads, length], float32.

    q [B, Sq, Hq, D], k [B, Sk, Hkv, D], v [B, Sk, Hkv, Dv] → [B, Sq, Hq, Dv]
        float16 or bfloat16, and k and v also both of 8 bits (float8, int8), which is widened exactly and has no gradient. q may be float32
        beside them: it is rounded once to their type, which is the result's, and has no gradient then. Head dims are
        multiples of 8 up to 256; gradients have 64, 128, 256, and 192 with 128 of v. Hq is a multiple of Hkv.
    {scale}
    {causal}
    {softcap}
        scale, causal, window, causal_prefix, softcap and splits are numbers of the program, not of an array. A bias may be bool, True where a key
        takes part, and 1 in place of Sq or Sk; numbers of another type are rounded to q's. It has a gradient, sinks have one, slopes none.
    query_starts, key_starts [sequences + 1], int32
        Packed: q is [1, rows of all, Hq, D], and sequence b has rows starts[b] … starts[b + 1] - 1. Rows behind the last are 0.
    {key_lengths}
    block_table [B, columns], int32
        k and v are pages, [pages, page size, Hkv, D]. Beside key_lengths; no gradient.
    max_query_length, max_key_length
        Of packed sequences and of pages: none is longer. By default as long as the arrays allow, which costs idle workgroups.
    k_scale, v_scale [B or 1, Hkv or 1], or of tokens as k lies, [B or 1, Sk, Hkv or 1]
        float32, beside k and v of 8 bits.

    What numbers and shapes say is checked when it is traced: InvalidArgument and Unsupported name the argument. What only a device knows comes from
    XLA when the program runs, with the same sentence.

    >>> import jax, wavejit.jax
    >>> engine = wavejit.jax.use("sim:gfx950")
    >>> q = jax.numpy.ones((1, 3, 4, 64), jax.numpy.float16)
    >>> v = jax.numpy.broadcast_to(jax.numpy.arange(3, dtype=jax.numpy.float16)[None, :, None, None], (1, 3, 2, 64))
    >>> jax.jit(wavejit.jax.attention, static_argnames="causal")(q, q[:, :, :2], v, causal=True)[0, :, 0, 0].tolist()
    [0.0, 0.5, 1.0]
    """
    splits, causal_prefix = whole("splits", splits), whole_or_none("causal_prefix", causal_prefix)
    operands: Operands = {"q": jnp.asarray(q), "k": jnp.asarray(k), "v": jnp.asarray(v)}
    _check_arrays(operands, paged=block_table is not None)
    q, k, v = operands["q"], operands["k"], operands["v"]
    for name, given, sizes in (("query_starts", query_starts, 1), ("key_starts", key_starts, 1), ("key_lengths", key_lengths, 1), ("block_table", block_table, 2)):
        if given is not None:
            operands[name] = _typed(name, given, (sizes,), jnp.int32)
    if block_table is not None and key_lengths is None:
        raise InvalidArgument("block_table without key_lengths; accepted: both")
    if block_table is not None and key_starts is not None:
        raise InvalidArgument("block_table beside key_starts; accepted: one of them")
    packed = (query_starts is not None, key_starts is not None)
    for field, array, is_packed in (("q", q, packed[0]), ("k", k, packed[1])):
        if is_packed and array.shape[0] != 1:
            raise InvalidArgument(f"{field}: shape {array.shape}; accepted: [1, rows of all sequences, heads, head dim] beside {'query' if field == 'q' else 'key'}_starts")
    if not any(packed) and block_table is None and q.shape[0] != k.shape[0]:
        raise InvalidArgument(f"k: a batch of {k.shape[0]}; accepted: {q.shape[0]}, that of q")
    longest_query = _longest("max_query_length", max_query_length, q.shape[1] if packed[0] else 0)
    longest_key = _longest("max_key_length", max_key_length,
                           k.shape[1] * operands["block_table"].shape[1] if block_table is not None else k.shape[1] if packed[1] else 0)
    by_tile = False
    if bias is not None:
        bias = _of_scores(bias, q, longest_key or k.shape[1])
        by_tile = block_table is None and window is None and splits < 2 and _has_masks_by_tile(operands, bias, longest_query, longest_key)
        as_mask = by_tile and bias.dtype == jnp.bool_
        operands["mask" if as_mask else "bias"] = bias if as_mask else _bias(bias, out_type(q, v))
    if sinks is not None:
        operands["sinks"] = _typed("sinks", sinks, (1,), jnp.float32)
        if operands["sinks"].shape != (q.shape[2],):
            raise InvalidArgument(f"sinks: shape {operands['sinks'].shape}; accepted: [{q.shape[2]}], one for each head of q")
    if alibi is not None:
        slopes = _typed("alibi", alibi, (1, 2), jnp.float32)
        if slopes.shape[-1] != q.shape[2]:
            raise InvalidArgument(f"alibi: shape {slopes.shape}; accepted: [{q.shape[2]}] or [batch, {q.shape[2]}], one for each head of q")
        operands["alibi"] = slopes if slopes.ndim == 2 else slopes[None]
    for name, given in (("k_scale", k_scale), ("v_scale", v_scale)):
        if given is not None:
            operands[name] = _typed(name, given, (2, 3), jnp.float32)
    mask, left, right = _mask(causal, window, causal_prefix)
    words = Words(scale=_number("scale", scale), mask=mask, window_left=left, window_right=right, causal_prefix=causal_prefix or 0, softcap=_number("softcap", softcap),
                  splits=splits, flags=(SCALE_IS_ZERO if scale == 0 and scale is not None else 0) | (BIAS_BY_TILE if by_tile and "bias" in operands else 0), max_query_length=longest_query, max_key_length=longest_key)
    out, row_sums = _of_any_size(words, lse, _varying_alike(operands))
    if packed[0]:  # nobody writes rows that are no sequence's
        written = jnp.arange(q.shape[1]) < operands["query_starts"][-1]
        out = jnp.where(written[None, :, None, None], out, 0)
        row_sums = jnp.where(written, row_sums, -jnp.inf) if lse else None
    return (out, row_sums) if lse else out


def _of_any_size(words: Words, with_lse: bool, operands: Operands) -> tuple[Any, Any]:
    q, k, v = (operands[name] for name in "qkv")
    batch, rows, heads, dims = q.shape
    if 0 in q.shape[:3]:
        return jnp.zeros((batch, rows, heads, v.shape[3]), out_type(q, v)), jnp.full((batch, heads, rows), -jnp.inf, jnp.float32)
    # Heads without dims: zeros stand in their place. Without those of q and k each score is 0 before masks and modifiers, and a row without
    # those has the mean of the values that it sees; without those of v it has its log-sum-exp still.
    of_values = v.shape[3]
    if dims == 0:
        if of_values > MOST_DIMS or of_values % FEWEST_DIMS != 0:
            raise Unsupported(f"v: head dim {of_values}, beside q and k of 0; accepted: multiples of {FEWEST_DIMS} up to {MOST_DIMS}")
        dims = of_values or FEWEST_DIMS
        operands = _varying_alike({**operands, "q": jnp.zeros((batch, rows, heads, dims), q.dtype), "k": jnp.zeros((*k.shape[:3], dims), k.dtype)})
        words = words._replace(scale=1.0, flags=words.flags & ~SCALE_IS_ZERO)
    if of_values == 0:
        operands = _varying_alike({**operands, "v": jnp.zeros((*v.shape[:3], dims), v.dtype)})
    results = _attend(words, with_lse, operands)
    out = results[0] if of_values else results[0][..., :0]
    return out, results[1] if with_lse else None


# ---- what is checked when it is traced


def _check_arrays(operands: Operands, paged: bool) -> None:
    q, k, v = operands["q"], operands["k"], operands["v"]
    for field, array in operands.items():
        if array.ndim != 4:
            raise InvalidArgument(f"{field}: shape {array.shape}; accepted: {'[pages, page size, heads, head dim]' if paged and field != 'q' else BSHD}")
    rounded = q.dtype == jnp.float32 and k.dtype in (*QUERIES, *CACHES)
    if q.dtype not in QUERIES and not rounded:
        raise InvalidArgument(f"q: dtype {q.dtype}; accepted: {', '.join(jnp.dtype(each).name for each in QUERIES)}")
    if k.dtype != q.dtype and k.dtype not in CACHES and not rounded:
        raise InvalidArgument(f"k: dtype {k.dtype}; accepted: {q.dtype}, q's, {', '.join(jnp.dtype(each).name for each in CACHES)}")
    if v.dtype != k.dtype:
        raise InvalidArgument(f"v: dtype {v.dtype}; accepted: {k.dtype}, k's")
    if q.shape[3] != k.shape[3]:
        raise InvalidArgument(f"k: head dim {k.shape[3]}; accepted: {q.shape[3]}, that of q")
    if v.shape[:3] != k.shape[:3]:
        raise InvalidArgument(f"v: shape {v.shape}; accepted: {(*k.shape[:3], 'head dim')}, as k")
    if k.shape[2] == 0 or q.shape[2] % k.shape[2] != 0:
        raise InvalidArgument(f"q: {q.shape[2]} heads, and {k.shape[2]} of k; accepted: a multiple of them")


def _typed(field: str, given: Any, dimensions: tuple[int, ...], dtype: Any) -> Any:
    array = jnp.asarray(given)
    if array.ndim not in dimensions:
        raise InvalidArgument(f"{field}: {array.ndim} dimensions; accepted: {' or '.join(map(str, dimensions))}")
    if array.dtype != dtype:
        raise InvalidArgument(f"{field}: dtype {array.dtype}; accepted: {jnp.dtype(dtype).name}")
    return array


def _number(field: str, given: Any) -> float:
    if given is None:
        return 0.0
    if isinstance(given, jax.core.Tracer):
        raise TypeError(f"{field}: a traced value; accepted: a number, which is part of the program (jit's static_argnames)")
    if not hasattr(given, "__float__"):
        raise InvalidArgument(f"{field} = {shown(given)}; accepted: a number")
    number = in_fp32(field, given)
    if not math.isfinite(number) or (field == "softcap" and number < 0):
        raise InvalidArgument(f"{field} = {number}; accepted: {'0 or more' if field == 'softcap' else 'a finite number'}")
    return number


def _longest(field: str, given: int | None, allowed: int) -> int:
    if given is None:
        return allowed
    if not allowed:
        raise InvalidArgument(f"{field} = {given}; accepted: None beside arrays that are dense")
    if not 0 <= whole(field, given) <= allowed:
        raise InvalidArgument(f"{field} = {given}; accepted: 0 … {allowed}")
    return given


def _mask(causal: bool, window: Sequence[int | None] | None, prefix: int | None) -> tuple[int, int, int]:
    bits = (CAUSAL if causal else 0) | (PREFIX if prefix is not None else 0)
    if window is None:
        return bits, 0, 0
    if not isinstance(window, Sequence) or len(window) != 2 or not all(side is None or (isinstance(side, (int, numpy.integer)) and -1 <= side <= MOST_KEYS) for side in window):
        raise InvalidArgument(f"window = {window!r}; accepted: (left, right), each an integer from 0 to {MOST_KEYS}, or None for no limit")
    left, right = (-1 if side is None else int(side) for side in window)
    return (bits, 0, 0) if window[0] is None and window[1] is None else (bits | WINDOW, left, right)


def _has_masks_by_tile(operands: Operands, mask: Any, longest_query: int, longest_key: int) -> bool:
    q, k, v = operands["q"], operands["k"], operands["v"]
    if not q.dtype == k.dtype == v.dtype or 0 in q.shape or 0 in k.shape or v.shape[3] == 0:
        return False
    sizes = q.shape[0], q.shape[2], longest_query or q.shape[1], longest_key or k.shape[1]
    if mask.dtype == jnp.bool_:
        return _masks.fit(*sizes, mask.shape[1]) and _engines.have_masks_by_tile(_dtypes.named(q.dtype), q.shape[3], v.shape[3])
    if not jnp.issubdtype(mask.dtype, jnp.floating) or not _masks.numbers_fit(*sizes, mask.shape[1]):
        return False
    return _engines.have_masks_by_tile(_dtypes.named(q.dtype), q.shape[3], v.shape[3], _dtypes.named(mask.dtype if mask.dtype == jnp.float32 else q.dtype))


def _of_scores(given: Any, q: Any, keys: int) -> Any:
    """A bias or a mask with all rows and keys."""
    bias = jnp.asarray(given)
    batch, rows, heads, _ = q.shape
    if bias.ndim != 4 or bias.shape[0] not in (1, batch) or bias.shape[1] not in (1, heads) or bias.shape[2] not in (1, rows) or bias.shape[3] not in (1, keys):
        raise InvalidArgument(f"bias: shape {bias.shape}; accepted: [{batch} or 1, {heads} or 1, {rows} or 1, {keys} or 1]")
    return jnp.broadcast_to(bias, (*bias.shape[:2], rows, keys))


def _bias(bias: Any, dtype: Any) -> Any:
    """As kernels read it: rows are padded."""
    if bias.dtype == jnp.bool_:
        bias = jnp.where(bias, jnp.zeros((), dtype), jnp.full((), -jnp.inf, dtype))
    elif not jnp.issubdtype(bias.dtype, jnp.floating):
        raise InvalidArgument(f"bias: dtype {bias.dtype}; accepted: bool, {dtype}, other floating-point types")
    elif bias.dtype != jnp.float32:
        bias = bias.astype(dtype)
    return jnp.pad(bias, ((0, 0), (0, 0), (0, 0), (0, -bias.shape[3] % PADDED_KEYS)))


def _varying_alike(operands: Operands) -> Operands:
    """Inside of shard_map: an array that is the same on all devices goes beside ones that are not. Outside of the gradient, so that the
    gradient of what is the same is the sum over devices."""
    axes = [varying(array) for array in operands.values()]
    every: frozenset[str] = frozenset().union(*axes)
    return {name: jax.lax.pcast(array, tuple(every - of), to="varying") if every - of else array for (name, array), of in zip(operands.items(), axes)}


# ---- the gradient


@functools.partial(jax.custom_vjp, nondiff_argnums=(0, 1))
def _attend(words: Words, with_lse: bool, operands: Operands) -> tuple[Any, ...]:
    return _launch(words, ("lse",) if with_lse else (), operands)


def _launch(words: Words, wanted: tuple[str, ...], operands: Operands) -> tuple[Any, ...]:
    if "mask" in operands and "alibi" not in operands and words.softcap == 0:  # the bits of a bias (_masks.py)
        operands = _varying_alike({**operands, "alibi": jnp.zeros((1, operands["q"].shape[2]), jnp.float32)})
    return _batching.call(FORWARD, words, wanted, operands)


def _forward(words: Words, with_lse: bool, primals: Operands) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    operands = {name: primal.value for name, primal in primals.items()}
    _check_gradients(operands, {name for name, primal in primals.items() if primal.perturbed})
    out, lse = _launch(words, ("lse",), operands)
    # Which gradients are wanted stands in what is there, which is the same each time a program is traced.
    wanted = {f"d_{name}": () for name in ("sinks", "bias") if name in primals and primals[name].perturbed}
    return ((out, lse) if with_lse else (out,)), (operands, out, lse, wanted)


def _backward(words: Words, with_lse: bool, saved: tuple[Any, ...], cotangents: tuple[Any, ...]) -> tuple[Operands]:
    operands, out, lse, wanted_names = saved
    d_out = cotangents[0]
    given = {**operands, "out": out, "lse": lse, "d_out": jnp.zeros_like(out) if isinstance(d_out, SymbolicZero) else d_out}
    if with_lse and not isinstance(cotangents[1], SymbolicZero):
        given["d_lse"] = cotangents[1]
    if "mask" in given:  # gradients read a bias
        given["bias"] = _bias(given.pop("mask"), out_type(given["q"], given["v"]))
    wanted = tuple(name for name in ("d_sinks", "d_bias") if name in wanted_names)
    dq, dk, dv, *others = _batching.call(BACKWARD, words._replace(flags=words.flags & ~BIAS_BY_TILE), wanted, given)
    gradients: Operands = {**{name: _none_of(array) for name, array in operands.items()}, "q": dq, "k": dk, "v": dv}
    for starts, fields in (("query_starts", ("q",)), ("key_starts", ("k", "v"))):
        if starts in operands:  # nobody writes rows that are no sequence's
            for field in fields:
                written = jnp.arange(gradients[field].shape[1]) < operands[starts][-1]
                gradients[field] = jnp.where(written[None, :, None, None], gradients[field], 0)
    for name, gradient in zip(wanted, others):
        gradients[name[2:]] = gradient.sum(0) if name == "d_sinks" else gradient
    return (gradients,)


def _none_of(array: Any) -> Any:
    """Zeros of what a gradient of it would be."""
    if jnp.issubdtype(array.dtype, jnp.floating):
        return jnp.zeros_like(array)
    return numpy.zeros(array.shape, jax.dtypes.float0)


def _check_gradients(operands: Operands, perturbed: set[str]) -> None:
    q, v = operands["q"], operands["v"]
    for field in ("alibi", "k_scale", "v_scale"):
        if field in perturbed:
            raise Unsupported(f"{field}: a gradient is wanted of it, and {WITHOUT_GRADIENT[field]}; accepted: {INSTEAD}")
    if q.dtype == jnp.float32:
        raise Unsupported(f"q: dtype {q.dtype} beside v of {v.dtype}, and a gradient is wanted: there is no backward over it; accepted: {INSTEAD}")
    if v.dtype in CACHES:
        raise Unsupported(f"k: dtype {v.dtype}, and a gradient is wanted: there is no backward over 8 bits; accepted: {INSTEAD}")
    if "block_table" in operands:
        raise Unsupported(f"block_table: given, and a gradient is wanted: there is no backward over pages; accepted: {INSTEAD}")
    if (q.shape[3], v.shape[3]) not in HEAD_DIMS:
        raise Unsupported(f"q: head dims {q.shape[3]} and {v.shape[3]} of v, and a gradient is wanted; accepted: 64, 128, 256 of all alike, 192 with 128 of v, or {INSTEAD}")


_attend.defvjp(_forward, _backward, symbolic_zeros=True)
