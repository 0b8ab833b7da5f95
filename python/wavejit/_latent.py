# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The call of latent attention: keys and values in one tensor (MLA, absorbed)."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import _arrays, _dtypes, _fields, _key_lists, _lengths, _scales, _wavejit
from ._arrays import DeviceArray
from ._calls import Call
from ._errors import InvalidArgument
from ._fields import keeps_words
from ._forward import AttentionForwardCall
from ._pages import BSHD

if TYPE_CHECKING:
    from ._opened_device import OpenedDevice


# Columns of K, and how many of them are V.
WIDTHS = ((576, 512), (512, 512), (320, 256))


def value_dim_of(columns: Any, rope_apart: bool, value_dim: Any) -> Any:
    """The columns of V: what is said, q's own beside a rope, else what the widths that kernels have say."""
    if value_dim is not None:
        return value_dim
    if rope_apart:
        return columns
    for width, dims in WIDTHS:  # not looked up: a width that torch traces has no hash
        if columns == width:
            return dims
    raise InvalidArgument(f"q: {columns} columns; accepted: 576, 512 or 320, or value_dim beside them")


class AttentionLatentCall(AttentionForwardCall):
    """softmax(scale · Q·Kᵀ + mask) · V, V being the first columns of K, with its arguments. `out` is the output, `lse` the
    log-sum-exp or None.

    >>> import wavejit
    >>> engine = wavejit.Engine("sim:gfx950")
    >>> q, cache = engine.empty((2, 1, 16, 576), "bf16"), engine.empty((2, 4096, 1, 576), "bf16")
    >>> call = engine.attention_latent_call(q, cache, scale=192 ** -0.5, lse=True)
    >>> call.out.shape, call.lse.shape, call.describe()
    ((2, 1, 16, 512), (2, 16, 1), 'attention_latent bf16 b2 q1 k4096 h16 d576/512 lse scale=0.07216878')
    """

    @keeps_words
    def __init__(self, engine: OpenedDevice, q: Any, k: Any, out: Any = None, *, scale: float, q_rope: Any = None, k_rope: Any = None,
                 indices: Any = None, counts: Any = None, slots: bool = False, second_k: Any = None, second_indices: Any = None, second_counts: Any = None, value_dim: int | None = None, causal: bool = False, causal_prefix: int | None = None, softcap: float | None = None, sinks: Any = None,
                 k_scale: Any = None, row_scales: str | None = None, lse: Any = False, splits: int = 0, launches: int | None = None, query_starts: Any = None, key_starts: Any = None, key_lengths: Any = None, block_table: Any = None,
                 table_starts: Any = None, max_query_length: int | None = None, max_key_length: int | None = None, max_total_keys: int | None = None,
                 workspace: DeviceArray | None = None, check_lengths: bool = False, compile: str = "wait", dtype: Any = None,
                 cache_dtype: Any = None, stream: object = None) -> None:
        if value_dim is not None:
            value_dim = _fields.whole("value_dim", value_dim)
        Call.__init__(self, engine, _wavejit.calls.attention_latent(engine._open()), stream)
        element = None if dtype is None else _dtypes.named(dtype, accepted=_dtypes.NARROW)
        queries = self._tensor("q", q, element, shape=BSHD, dimensions=(4,), accepted=_dtypes.NARROW)
        alike = (queries._dtype,)
        cache = _dtypes.cache_type(k, element, cache_dtype, alike)
        keys = self._tensor("k", k, cache, shape="[batch, length, 1, columns], in pages [pages, page size, 1, columns]", dimensions=(4,),
                            accepted=(*alike, *_dtypes.CACHES))
        for field, given, of_field, accepted in (("q_rope", q_rope, element, alike), ("k_rope", k_rope, cache, (keys._dtype,))):
            if given is not None:
                self._tensor(field, given, of_field, shape=BSHD, dimensions=(4,), accepted=accepted)
        if out is None:
            sizes = (*queries.shape[:3], value_dim_of(queries.shape[3], q_rope is not None, value_dim))
            out = _arrays.allocate_output(engine, sizes, queries._dtype, 0.0 if _lengths.leave_rows("query_starts", query_starts, queries.shape[1]) else None)
        elif value_dim is not None and tuple(out.shape)[3:] != (value_dim,):
            raise InvalidArgument(f"value_dim = {value_dim} beside out, whose shape is {tuple(out.shape)}; accepted: out's last dimension, or none")
        self._tensor("out", out, element, shape=BSHD, dimensions=(4,), output=True, accepted=alike)
        self.out = out

        sequences = self._starts(queries, query_starts, key_starts)
        self._set(sequences=sequences)
        told = self._lengths(queries, keys, query_starts, key_starts, key_lengths, None, block_table is not None, max_query_length,
                             max_key_length, max_total_keys)
        self._table(block_table, table_starts, sequences, told)
        _key_lists.set_key_lists(self, queries, indices, counts, slots)
        _key_lists.set_second_list(self, queries, {"second_k": second_k}, second_indices, second_counts, 1, cache, (keys._dtype,))
        _scales.set_scale(self, "k_scale", k_scale)
        self.lse = self._lse(queries, lse, query_starts)
