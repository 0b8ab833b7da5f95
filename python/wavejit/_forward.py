# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The call of attention: softmax(scale · Q·Kᵀ + mask) · V, and what of its arguments depends on others."""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from . import _arrays, _dtypes, _key_lists, _lengths, _lists, _scales, _wavejit
from ._arrays import DeviceArray
from ._dtypes import DType
from ._fields import keeps_words
from ._lists import BlockLists
from ._pages import BSHD, UNIT_BYTES, as_units, shape_of_units
from ._sequences import SequencesCall

if TYPE_CHECKING:
    from ._opened_device import OpenedDevice


class AttentionForwardCall(SequencesCall):
    """softmax(scale · Q·Kᵀ + mask) · V with its arguments. `out` is the output, `lse` the log-sum-exp or None.

    >>> import wavejit
    >>> engine = wavejit.Engine("sim:gfx950")
    >>> rows = engine.empty((1, 128, 8, 128), "bf16")
    >>> call = engine.attention_forward_call(rows, rows, rows, causal=True, lse=True)
    >>> call.out.shape, call.lse.shape, call.workspace_bytes()
    ((1, 128, 8, 128), (1, 8, 128), 0)
    """

    _outputs = ("out", "lse")
    out: Any
    lse: Any

    @keeps_words
    def __init__(self, engine: OpenedDevice, q: Any, k: Any, v: Any, out: Any = None, *, scale: float | None = None, causal: bool = False,
                 window: Sequence[int | None] | None = None, causal_prefix: int | None = None, local_chunk: int | None = None, causal_flags: Any = None,
                 mask: Any = None, softcap: float | None = None, bias: Any = None, bias_by_tile: bool = False, alibi: Any = None, sinks: Any = None, lse: Any = False, splits: int = 0, launches: int | None = None, query_starts: Any = None, key_starts: Any = None,
                 key_lengths: Any = None, first_keys: Any = None, block_table: Any = None, table_starts: Any = None,
                 max_query_length: int | None = None, max_key_length: int | None = None, max_total_keys: int | None = None,
                 lists: BlockLists | None = None, indices: Any = None, counts: Any = None, slots: bool = False, second_k: Any = None, second_v: Any = None,
                 second_indices: Any = None, second_counts: Any = None, q_scale: Any = None, k_scale: Any = None, v_scale: Any = None, o_scale: Any = None,
                 score_rounding: str = "fp32", hints: Sequence[str] = (), workspace: DeviceArray | None = None,
                 check_lengths: bool = False, compile: str = "wait", dtype: Any = None, cache_dtype: Any = None, out_dtype: Any = None, stream: object = None) -> None:
        super().__init__(engine, _wavejit.calls.attention_forward(engine._open()), stream)
        element = None if dtype is None else _dtypes.named(dtype, accepted=_dtypes.QUERIES)
        integers = _dtypes.is_integer(q) and element is not _dtypes.E4M3
        wide = _dtypes.is_fp32(q)
        as_told = _dtypes.INT8 if integers else _dtypes.FP32 if wide else _dtypes.eight_bits(q)
        accepted = (*_dtypes.QUERIES, _dtypes.INT8, _dtypes.FP32)
        queries = self._tensor("q", q, as_told if as_told in accepted else element, shape=BSHD, dimensions=(4,), accepted=accepted)
        in_bytes = queries._dtype is _dtypes.E4M3
        cache: DType | None
        if integers:  # beside them v says the type
            cache = _dtypes.INT8
            keys = self._tensor("k", k, cache, shape=BSHD, dimensions=(4,))
            values = self._tensor("v", v, element, shape=BSHD, dimensions=(4,), accepted=_dtypes.NARROW)
            alike: tuple[DType, ...] = (values._dtype,)
            value_dim = values.shape[3]
        elif wide:  # rounded to the type of k and v, and beside 8 bits to that of out
            cache = _dtypes.cache_type(k, element, cache_dtype, _dtypes.NARROW)
            keys, value_dim = self._keys_and_values(k, v, cache, block_table is not None, (*_dtypes.NARROW, *_dtypes.CACHES))
            alike = (keys._dtype,) if keys._dtype in _dtypes.NARROW else _dtypes.NARROW
        else:
            # O has q's type, or one of 16 bits beside queries of 8.
            alike = _dtypes.NARROW if in_bytes else (queries._dtype,)
            cache = _dtypes.cache_type(k, queries._dtype if in_bytes else element, cache_dtype, (queries._dtype,))
            keys, value_dim = self._keys_and_values(k, v, cache, block_table is not None, (queries._dtype, *_dtypes.CACHES))
        element = None if in_bytes else element
        sizes = (*queries.shape[:3], value_dim)
        usual = alike[0] if len(alike) == 1 else _dtypes.BF16
        of_out = self._result_type(out, element, out_dtype)  # `dtype` says what 16-bit integers mean; f32 is f32
        if out is None or isinstance(out, str):
            unwritten = 0.0 if _lengths.leave_rows("query_starts", query_starts, queries.shape[1]) else None
            of_out = usual if out is None else _dtypes.named(out, "out", (*alike, *_dtypes.RESULTS))
            out = _arrays.allocate_output(engine, sizes, of_out, unwritten, UNIT_BYTES if of_out in _dtypes.WRITTEN else 1)
        written = self._tensor("out", out, of_out, shape=BSHD, dimensions=(4,), output=True, accepted=(*alike, *_dtypes.RESULTS),
                               row_multiple=UNIT_BYTES if of_out in _dtypes.WRITTEN else 1)
        self.out = out
        _scales.check_output_scale(written._dtype, o_scale)

        sequences = self._starts(queries, query_starts, key_starts)
        if lists is not None and getattr(lists, "alike", False) and isinstance(hints, (list, tuple)):
            self._words["hints"] = [*hints, "lists_alike"]
        self._set(sequences=sequences)
        told = self._lengths(queries, keys, query_starts, key_starts, key_lengths, first_keys, block_table is not None, max_query_length,
                             max_key_length, max_total_keys)
        self._table(block_table, table_starts, sequences, told)
        if lists is not None:
            _lists.set_lists(self, lists)
        list_heads = _key_lists.set_key_lists(self, queries, indices, counts, slots, keys.shape[2])
        _key_lists.set_second_list(self, queries, {"second_k": second_k, "second_v": second_v}, second_indices, second_counts, list_heads, cache, (keys._dtype,))
        _scales.set_scale(self, "q_scale", q_scale, integers)
        _scales.set_scale(self, "k_scale", k_scale, integers)
        _scales.set_scale(self, "v_scale", v_scale)
        if bias is not None:
            self._bias(written._dtype if written._dtype in alike else usual, bias, element)
        self.lse = self._lse(queries, lse, query_starts)

    def _keys_and_values(self, k: Any, v: Any, element: DType | None, paged: bool, alike: tuple[DType, ...]) -> tuple[DeviceArray, int]:
        """k, and the head dim of v. Pages of 5 dimensions are vectorised, and those of v say in which order."""
        if not paged or len(getattr(k, "shape", ())) != 5:
            keys = self._tensor("k", k, element, shape=BSHD, dimensions=(4,), accepted=alike)
            return keys, self._tensor("v", v, element, shape=BSHD, dimensions=(4,), accepted=(keys._dtype,)).shape[3]
        unit = UNIT_BYTES // (element or _dtypes.FP16).bytes
        keys = self._tensor("k", k, element, shape=shape_of_units("k", unit), dimensions=(5,), order=as_units, accepted=alike)
        values = self._tensor("v", v, element, shape=shape_of_units("v", unit), dimensions=(4, 5), order=as_units, accepted=(keys._dtype,))
        self._call.set_number("page_layout", values.ndim - 3)
        return keys, values.shape[values.ndim - 2]

    def workspace_bytes(self) -> int:
        """Device memory that the call uses beside its arrays: 0 unless it splits keys."""
        return self._workspace_bytes()
