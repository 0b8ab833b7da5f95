# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The indexer of sparse attention as a call."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import _arrays, _dtypes, _fields, _lengths, _wavejit
from ._errors import InvalidArgument
from ._fields import keeps_words
from ._sequences import SequencesCall

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ._arrays import DeviceArray
    from ._dtypes import DType
    from ._opened_device import OpenedDevice

QUERIES = "[batch, queries, heads, 128]"
KEYS = "[batch, keys, 128], or of pages [pages, page size, 128]"


class SparseIndexerCall(SequencesCall):
    """The keys that each row is to attend to, with the arguments of `Engine.sparse_indexer`. `indices`, `values`, `counts` and
    `scores` are the outputs, or None.

    >>> import wavejit
    >>> engine = wavejit.Engine("sim:gfx950")
    >>> queries, keys = engine.empty((2, 1, 64, 128), "bf16"), engine.empty((2, 500, 128), "bf16")
    >>> call = engine.sparse_indexer_call(queries, keys, engine.empty((2, 1, 64), "fp32"), 64, counts=True)
    >>> call.indices.shape, call.counts.shape, call.workspace_bytes()
    ((2, 1, 64), (2, 1), 4096)
    """

    _outputs = ("indices", "values", "counts", "scores")
    indices: Any
    values: Any
    counts: Any
    scores: Any

    @keeps_words
    def __init__(self, engine: OpenedDevice, queries: Any, keys: Any, weights: Any, top_k: int | None = None, *, key_scales: Any = None, scores: Any = None,
                 indices: Any = None, values: Any = None, counts: Any = None, causal: bool = False, window: Sequence[int | None] | None = None,
                 causal_prefix: int | None = None, key_lengths: Any = None, key_begins: Any = None, key_ends: Any = None, block_table: Any = None,
                 table_starts: Any = None, max_key_length: int | None = None, workspace: DeviceArray | None = None, compile: str = "wait",
                 check_lengths: bool = False, dtype: Any = None, stream: object = None) -> None:
        super().__init__(engine, _wavejit.calls.sparse_indexer(engine._open()), stream)
        element = _dtypes.eight_bits(queries) if dtype is None else _dtypes.named(dtype, accepted=_dtypes.INDEXED)
        top = 0 if top_k is None else _fields.whole("top_k", top_k)
        if top < 0:
            raise InvalidArgument(f"top_k = {top}; accepted: 0, or None, and more")
        if queries is None:
            rows, length = self._given(keys, weights, key_scales, block_table, scores)
            self.scores = None
        else:
            rows, length = self._inputs(queries, keys, weights, key_scales, element, key_lengths, block_table, table_starts, max_key_length)
            # Without a list they are what is wanted.
            wanted = scores if scores is not None or top != 0 else True
            self.scores = self._output("scores", wanted, (*rows, length), _dtypes.FP32)
        self._words["weights"] = weights
        self._set(**{"batch": rows[0], "batch · queries": rows[0] * rows[1]})
        self._list(top, rows, indices, values, counts)
        _lengths.check_keys(_lengths.Keys(length, None, None, None, _lengths.known("key_lengths", key_lengths), None))

    def workspace_bytes(self) -> int:
        """Device memory for scores that no array takes, with which the call takes its fewest rounds."""
        return self._workspace_bytes()

    def _given(self, keys: Any, weights: Any, key_scales: Any, block_table: Any, scores: Any) -> tuple[tuple[int, int], int]:
        """Sizes where scores are given: [batch, queries], and the number of keys."""
        for field, array in (("keys", keys), ("weights", weights), ("key_scales", key_scales), ("block_table", block_table)):
            if array is not None:
                raise InvalidArgument(f"{field} without queries; accepted: both, or neither")
        if scores is None or scores is True:
            raise InvalidArgument("queries and scores are missing; accepted: one of them")
        array = self._tensor("scores", scores, _dtypes.FP32, shape="[batch, queries, keys]", dimensions=(3,), order=_with_one_at(2), places=(0, 1, None, 2))
        return (array.shape[0], array.shape[1]), array.shape[2]

    def _inputs(self, queries: Any, keys: Any, weights: Any, key_scales: Any, element: DType | None, key_lengths: Any, block_table: Any, table_starts: Any,
                max_key_length: int | None) -> tuple[tuple[int, int], int]:
        unit = 16 if element in _dtypes.EIGHT_BITS else 8
        rows = self._tensor("queries", queries, element, shape=QUERIES, dimensions=(4,), row_multiple=unit, accepted=_dtypes.INDEXED)
        vectors = self._tensor("keys", keys, rows._dtype, shape=KEYS, dimensions=(3,), row_multiple=unit, order=_with_one_at(2), places=(0, 1, None, 2), accepted=(rows._dtype,))
        batch = (rows.shape[0], rows.shape[1])
        if block_table is None:
            if table_starts is not None or max_key_length is not None:
                raise InvalidArgument("table_starts or max_key_length without block_table; accepted: all, or none of them")
            return batch, vectors.shape[1]
        told = _lengths.Keys(vectors.shape[1], vectors.shape[0], max_key_length, None, _lengths.known("key_lengths", key_lengths), None)
        longest = self._longest("max_key_length", max_key_length, told.lengths)
        self._call.set_number("max_key_length", longest)
        self._table(block_table, table_starts, batch[0], told)
        return batch, longest

    def _list(self, top: int, rows: tuple[int, int], indices: Any, values: Any, counts: Any) -> None:
        self.indices = self.values = self.counts = None
        self._call.set_number("top_k", top)
        if top == 0:
            for field, array in (("indices", indices), ("values", values), ("counts", counts)):
                if array is not None and array is not False:
                    raise InvalidArgument(f"{field} without top_k; accepted: both, or neither")
            return
        self.indices = self._output("indices", True if indices is None else indices, (*rows, top), _dtypes.INT32)
        self.values = self._output("values", values, (*rows, top), _dtypes.FP32)
        self.counts = self._output("counts", counts, rows, _dtypes.INT32)

    def _output(self, field: str, given: Any, shape: tuple[int, ...], dtype: DType) -> Any:
        """False and None for none, True for one of wavejit's own, else the caller's, of this shape and dense."""
        if given is None or given is False:
            return None
        if given is True:
            given = _arrays.allocate(self._engine, shape, dtype)
        if field == "scores":
            self._tensor(field, given, dtype, shape="[batch, queries, keys]", dimensions=(3,), output=True, order=_with_one_at(2), places=(0, 1, None, 2))
            return given
        array, host = _arrays.on_device(self._engine, given, field, self._stream, None, accepted=(dtype,))  # never a copy, which integers of any width may get
        if array.shape != shape or not array._is_dense():
            raise InvalidArgument(f"{field}: shape {array.shape}, strides {array.strides}; accepted: {list(shape)}, dense")
        self._take(array)
        self._write(field, array, host)
        self._call.set_address(field, array._address)
        return given


def _with_one_at(dimension: int) -> Any:
    """Three dimensions as the C call's four: one more, of one."""

    def order(_field: str, array: DeviceArray) -> tuple[tuple[int, ...], tuple[int, ...]]:
        sizes, strides = list(array.shape), list(array.strides)
        sizes.insert(dimension, 1)
        strides.insert(dimension, strides[dimension])
        return tuple(sizes), tuple(strides)

    return order
