# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The calls as XLA has them: targets, operands in their order, attributes, results."""
from __future__ import annotations

import pathlib
import re
import warnings
from typing import Any, NamedTuple

import jax
import numpy
from jax import numpy as jnp
from jax.sharding import NamedSharding, PartitionSpec

from .. import _wavejit

# Versions of JAX whose own tests have run here; another one is told by a warning.
TRIED = ("0.9.1", "0.12.0")
OLDEST = (0, 5)
FORWARD, BACKWARD = "wavejit_attention_forward", "wavejit_attention_backward"
# The arguments after q, k, v (backward: and out, d_out, LSE), in the order of the handler. Each has a bit of `given`.
OTHERS = ("bias", "sinks", "alibi", "query_starts", "key_starts", "key_lengths", "block_table", "k_scale", "v_scale", "d_lse", "mask")
WANTED = ("lse", "d_sinks", "d_bias")
BITS = {name: 1 << place for place, name in enumerate((*OTHERS, *WANTED))}
FIRST = {FORWARD: ("q", "k", "v"), BACKWARD: ("q", "k", "v", "out", "d_out", "lse")}


class Words(NamedTuple):
    """A call's numbers, which are the program's: XLA compiles them in."""

    scale: float = 0.0
    mask: int = 0
    window_left: int = 0
    window_right: int = 0
    causal_prefix: int = 0
    softcap: float = 0.0
    splits: int = 0
    flags: int = 0
    max_query_length: int = 0
    max_key_length: int = 0


def register() -> None:
    """Tells XLA of the handlers; twice does no harm."""
    version = jax.__version__
    if jax.__version_info__ < OLDEST:
        raise ImportError(f"wavejit.jax: JAX {version}; accepted: {'.'.join(map(str, OLDEST))} or later")
    if not any(version == tried or version.startswith(f"{tried}.") for tried in TRIED):
        warnings.warn(f"wavejit.jax: JAX {version} has not been tried with this version of wavejit; tried: {', '.join(TRIED)}", stacklevel=3)
    for platform, handlers in _wavejit.jax_handlers(_minor_version()).items():
        for name in (FORWARD, BACKWARD):
            jax.ffi.register_ffi_target(name, handlers[name], platform=platform)


def _minor_version() -> int:
    """The interface's minor version, from jaxlib's own header: jaxlib takes what is as old as itself or older."""
    header = pathlib.Path(jax.ffi.include_dir()) / "xla" / "ffi" / "api" / "c_api.h"
    try:
        found = re.search(r"^#define XLA_FFI_API_MINOR (\d+)", header.read_text(), re.MULTILINE)
    except OSError:
        found = None
    return int(found[1]) if found else 1


def names_of(target: str, operands: dict[str, Any]) -> tuple[str, ...]:
    """The names of a call's operands, in order."""
    return FIRST[target] + tuple(name for name in OTHERS if name in operands)


def call(target: str, words: Words, wanted: tuple[str, ...], operands: dict[str, Any]) -> tuple[Any, ...]:
    """Forward: out, LSE if it is wanted. Backward: dq, dk, dv, and of d_sinks and d_bias what is wanted."""
    names = names_of(target, operands)
    given = sum(BITS[name] for name in (*names, *wanted) if name in BITS and name not in FIRST[target])
    attributes: dict[str, Any] = {
        "scale": numpy.float32(words.scale), "softcap": numpy.float32(words.softcap), "mask": numpy.int32(words.mask), "flags": numpy.int32(words.flags),
        "window_left": numpy.int32(words.window_left), "window_right": numpy.int32(words.window_right), "causal_prefix": numpy.int64(words.causal_prefix),
        "max_query_length": numpy.int64(words.max_query_length), "max_key_length": numpy.int64(words.max_key_length), "given": numpy.int64(given),
    }
    if target == FORWARD:
        attributes["splits"] = numpy.int32(words.splits)
    results = (_forward_results if target == FORWARD else _backward_results)(wanted, operands)
    return tuple(jax.ffi.ffi_call(target, results)(*[operands[name] for name in names], **attributes))


def varying(array: Any) -> frozenset[str]:
    """Inside of shard_map: the axes of the mesh along which it differs from device to device."""
    of = jax.typeof(array)
    axes: Any = getattr(getattr(of, "manual_axis_type", None), "varying", None) or getattr(of, "vma", ())
    return frozenset(axes)


def _like(array: Any, shape: tuple[int, ...], dtype: Any) -> jax.ShapeDtypeStruct:
    """A result that differs from device to device where its operands do; JAX had another word for it before 0.12."""
    if not varying(array):
        return jax.ShapeDtypeStruct(shape, dtype)
    of = jax.typeof(array)
    word = "manual_axis_type" if hasattr(of, "manual_axis_type") else "vma"
    sharding = NamedSharding(of.sharding.mesh, PartitionSpec(*[None] * len(shape)))
    return jax.ShapeDtypeStruct(shape, dtype, sharding=sharding, **{word: getattr(of, word)})


def sequences_of(operands: dict[str, Any]) -> int:
    starts = operands.get("query_starts", operands.get("key_starts"))
    return int(operands["q"].shape[0] if starts is None else starts.shape[0] - 1)


def out_type(q: Any, v: Any) -> Any:
    """The type of out and of a bias: q's; v's where q is float32, or bfloat16 beside 8 bits."""
    if q.dtype != jnp.float32:
        return q.dtype
    return v.dtype if v.dtype in (jnp.float16, jnp.bfloat16) else jnp.dtype(jnp.bfloat16)


def _forward_results(wanted: tuple[str, ...], operands: dict[str, Any]) -> list[jax.ShapeDtypeStruct]:
    q, v = operands["q"], operands["v"]
    batch, rows, heads, _ = q.shape
    results = [_like(q, (batch, rows, heads, v.shape[3]), out_type(q, v))]
    return [*results, _like(q, (batch, heads, rows), jnp.float32)] if "lse" in wanted else results


def _backward_results(wanted: tuple[str, ...], operands: dict[str, Any]) -> list[jax.ShapeDtypeStruct]:
    q = operands["q"]
    results = [_like(q, operands[name].shape, operands[name].dtype) for name in ("q", "k", "v")]
    if "d_sinks" in wanted:
        results.append(_like(q, (sequences_of(operands), q.shape[2]), jnp.float32))
    if "d_bias" in wanted:
        results.append(_like(q, operands["bias"].shape, operands["bias"].dtype))
    return results
