# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls over sequences: where each begins, how long it is, in which pages its keys lie; and what has a number for each row."""
from __future__ import annotations

from typing import Any

from . import _arrays, _dtypes, _fields, _lengths
from ._arrays import DeviceArray
from ._calls import Call
from ._dtypes import DType
from ._errors import Error, InvalidArgument
from ._lengths import Keys


class SequencesCall(Call):
    """A call over sequences, dense or packed."""

    def _starts(self, queries: DeviceArray, query_starts: Any, key_starts: Any) -> int:
        """How many sequences there are."""
        sequences = None
        for field, given in (("query_starts", query_starts), ("key_starts", key_starts)):
            starts = self._numbers(field, given, None if sequences is None else sequences + 1, "sequences + 1")
            if starts is not None:
                sequences = starts.shape[0] - 1
                if sequences < 1:
                    raise InvalidArgument(f"{field}: shape {starts.shape}; accepted: [sequences + 1], of one sequence or more")
        if sequences is None:
            return queries.shape[0]
        self._call.set_number("sequences", sequences)
        return sequences

    @staticmethod
    def _longest(field: str, given: int | None, known: list[int] | None) -> int:
        """The longest sequence: the host sizes the launch, and reads no device memory for it."""
        if given is not None:
            return given
        if known is None:
            raise InvalidArgument(f"{field} is missing, and the lengths are on the device; accepted: the longest sequence's length")
        return max(known, default=0)

    def _lengths(self, queries: DeviceArray, keys: DeviceArray, query_starts: Any, key_starts: Any, key_lengths: Any, first_keys: Any,
                 paged: bool, max_query_length: int | None, max_key_length: int | None, max_total_keys: int | None) -> Keys:
        """Sets them. What the host knows of them is checked."""
        max_query_length = _fields.whole_or_none("max_query_length", max_query_length)
        max_key_length = _fields.whole_or_none("max_key_length", max_key_length)
        max_total_keys = _fields.whole_or_none("max_total_keys", max_total_keys)
        starts = _lengths.known("query_starts", query_starts)
        _lengths.check_starts("query_starts", starts, queries.shape[1], max_query_length, "q", "max_query_length")
        # A page of vectorised keys: [heads, head dim / 8, keys, 8].
        told = Keys(keys.shape[3 if keys.ndim == 5 else 1], keys.shape[0] if paged else None, max_key_length,
                             _lengths.known("key_starts", key_starts), _lengths.known("key_lengths", key_lengths), _lengths.known("first_keys", first_keys))
        _lengths.check_keys(told)
        if query_starts is not None:
            self._call.set_number("max_query_length", self._longest("max_query_length", max_query_length, _lengths.steps(starts)))
        elif max_query_length is not None:
            self._call.set_number("max_query_length", max_query_length)
        known = told.lengths if key_starts is None else _lengths.steps(told.starts)
        if key_starts is not None or paged:
            self._call.set_number("max_key_length", self._longest("max_key_length", max_key_length, known))
        elif max_key_length is not None:
            self._call.set_number("max_key_length", max_key_length)
        # A hint, which costs nothing where the host knows the lengths.
        total = sum(known) if max_total_keys is None and known is not None else max_total_keys
        if total:
            self._call.set_number("max_total_keys", total)
        return told

    def _table(self, block_table: Any, table_starts: Any, sequences: int, keys: Keys) -> None:
        if block_table is None:
            if table_starts is not None:
                raise InvalidArgument("table_starts without block_table; accepted: both, or neither")
            return
        if table_starts is not None:
            pages = self._numbers("block_table", block_table, None, "pages of all sequences")
            self._numbers("table_starts", table_starts, sequences + 1, "sequences + 1")
            assert pages is not None
            self._call.set_number("table_columns", pages.shape[0])
            _lengths.check_table(keys, block_table, table_starts, pages.shape[0])
            return
        table, _ = _arrays.on_device(self._engine, block_table, "block_table", self._stream, _dtypes.INT32, copies=True)
        if table.ndim != 2 or table.shape[0] != sequences or (table.shape[1] > 1 and table.strides[1] != 1):
            raise InvalidArgument(f"block_table: shape {table.shape}, strides {table.strides}; accepted: [{sequences}, columns], a row's columns side by side")
        self._take(table)
        self._call.set_address("block_table", table._address)
        self._call.set_number("table_columns", table.shape[1])
        if table.shape[0] > 1:
            self._call.set_number("table_row_stride", table.strides[0])
        _lengths.check_table(keys, block_table, None, table.shape[1])

    def _bias(self, dtype: DType, bias: Any, element: DType | None) -> DeviceArray:
        return self._tensor("bias", bias, bias_type(bias, element), shape="[batch or 1, heads or 1, queries, keys]", dimensions=(2, 3, 4), row_multiple=8,
                            accepted=(dtype, _dtypes.FP32))

    def _lse(self, queries: DeviceArray, lse: Any, query_starts: Any) -> Any:
        unwritten = float("-inf") if _lengths.leave_rows("query_starts", query_starts, queries.shape[1]) else None
        return self._row_sums(lse, (queries.shape[0], queries.shape[2], queries.shape[1]), unwritten)

    def _workspace_bytes(self) -> int:
        try:
            return self._call.workspace_bytes()
        except Error as error:
            raise self._by_callers_dimensions(error) from None


def bias_type(bias: Any, element: DType | None) -> DType | None:
    """fp32 of an array that says so, else q's."""
    wide = bias._dtype is _dtypes.FP32 if isinstance(bias, DeviceArray) else str(getattr(bias, "dtype", "")) in ("float32", "torch.float32")
    return _dtypes.FP32 if wide else element
