# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls: arguments that were checked and put on the device once, to be asked and launched any number of times."""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from . import _arrays, _device, _dtypes, _fields, _lengths, _offline, _wavejit
from ._arrays import DeviceArray
from ._dtypes import DType
from ._errors import Error, InvalidArgument, error_of
from ._fields import Fields, keeps_words
from ._lists import BlockLists

if TYPE_CHECKING:
    from ._fields import Order
    from ._opened_device import OpenedDevice

UNSUPPORTED, NOT_READY = 2, 12
ORIGINS = {0: None, 1: "memory", 2: "disk", 3: "compiled"}
# An output of 8 bits is divided by its scale, and multiplied by one over it.
LEAST_SCALE, MOST_SCALE = 2.0**-126, 2.0**126
ACCEPTED_SCALE = "a number from 2^-126 to 2^126, or fp32 of one element on the device: out is divided by it"


class Call(Fields):
    """A call with its arguments: `Engine.call("softmax_lse", …)` makes one, and so does `Engine.softmax_lse_call(…)`.

    It keeps every array that it was given, and host inputs as they were copied when it was made. `launch()` costs what
    the C call costs and next to nothing more; it may be launched any number of times, from any thread.

    >>> import wavejit
    >>> engine = wavejit.Engine("sim:gfx950")
    >>> call = engine.softmax_lse_call(engine.empty((1, 1, 1, 64), "fp32"))
    >>> call.launch()
    >>> call.launch_with_report()["origin"], call.is_ready()
    ('memory', True)
    """

    _call: _wavejit.NativeCall
    _outputs: tuple[str, ...]

    def __init__(self, engine: OpenedDevice, call: _wavejit.NativeCall, stream: object) -> None:
        self._engine = engine
        self._call = call
        self._launch = call.launch
        self._stream = _device.stream_number(stream)
        super().__init__()

    def launch(self) -> None:
        """Launches on the call's stream and returns; the first launch of a kind may compile. What host arrays were given for
        outputs are written when this returns."""
        if self._engine._handle is None or self._borrows:
            self._before()
        try:
            self._launch(self._stream)
        except Error as error:
            raise self._by_callers_dimensions(error) from None
        if self._borrows:
            self._engine._kept.add(self)  # once more: another thread may have waited for the device in between
        for written in self._written:
            written[0] = self._stream
        if self._copies_back:
            self._copy_back()

    @property
    def results(self) -> Any:
        """What the call writes: one array, a tuple of several, None for none."""
        written = tuple(array for array in (getattr(self, name) for name in self._outputs) if array is not None)
        return written[0] if len(written) == 1 else written or None

    def run(self) -> Any:
        """Launches, and returns the results."""
        self.launch()
        return self.results

    def launch_with_report(self) -> dict[str, Any]:
        """The same as `launch`, and tells which kernel ran, where it came from ("memory", "disk", "compiled") and nanoseconds by phase."""
        self._before()
        try:
            report = self._call.launch_with_report(self._stream)
        except Error as error:
            raise self._by_callers_dimensions(error) from None
        if self._borrows:
            self._engine._kept.add(self)
        report["origin"] = ORIGINS.get(report["origin"], report["origin"])
        for written in self._written:
            written[0] = self._stream
        self._copy_back()
        return report

    def _before(self) -> None:
        self._engine._open()
        if self._borrows:
            self._engine._keep(self)

    @staticmethod
    def _result_type(out: Any, element: DType | None, out_dtype: Any) -> DType | None:
        """What `out` must have: what it says itself, else what its integers are told to mean."""
        if out_dtype is not None:
            wanted = _dtypes.named(out_dtype, "out_dtype", _dtypes.WRITTEN)
            if out is None or isinstance(out, str):
                beside = "without out" if out is None else f"beside out = {out!r}"
                raise InvalidArgument(f"out_dtype = {wanted.name!r} {beside}; accepted: out={wanted.name!r} for a new array, or out_dtype beside yours of 8-bit integers")
            return wanted
        told = _dtypes.of_cache(out)
        return told if told is not None else None if _dtypes.is_fp32(out) else element

    @staticmethod
    def _check_output_scale(written: DType, o_scale: Any) -> None:
        """What C says of the number and of the array has one name here."""
        if written not in _dtypes.WRITTEN:
            if o_scale is not None:
                given = ": an array" if hasattr(o_scale, "__dlpack__") else f" = {_fields.shown(o_scale)}"
                raise InvalidArgument(f"o_scale{given} beside out of {written.name}; accepted: None, or out in 8 bits: {', '.join(repr(each.name) for each in _dtypes.WRITTEN)}")
        elif o_scale is None:
            raise InvalidArgument(f"o_scale is missing beside out of {written.name}; accepted: {ACCEPTED_SCALE}")
        elif isinstance(o_scale, int) or (hasattr(o_scale, "__float__") and not hasattr(o_scale, "__dlpack__")):
            number = o_scale if isinstance(o_scale, int) else float(o_scale)  # an integer may be beyond a float
            if not LEAST_SCALE <= number <= MOST_SCALE:
                raise InvalidArgument(f"o_scale = {_fields.shown(o_scale)}; accepted: {ACCEPTED_SCALE}")

    def _copy_back(self) -> None:
        for host, array in self._copies_back:
            host[...] = array._host_elements().reshape(host.shape)

    def supported(self) -> bool:
        """Whether there is a kernel for it on this target. What else the call would refuse is raised."""
        return self._answer(self._call.supported(), UNSUPPORTED)

    def why_unsupported(self) -> str | None:
        """None, or why there is no kernel for it."""
        status, detail = self._call.supported()
        return self._by_callers_dimensions(error_of(status, detail)).detail if status == UNSUPPORTED else None

    def is_ready(self) -> bool:
        """Whether its kernel is loaded, so that launching it neither reads the disk nor compiles."""
        return self._answer(self._call.ready(), NOT_READY)

    def prepare(self) -> None:
        """Loads its kernels without launching them: from disk, or compiled. `Engine.prepare` does so for many lines at once."""
        self._call.prepare()

    def describe(self) -> str:
        """The call as a problem descriptor: a line for `Engine.prepare` and `wavejit.prebuild`."""
        return self._call.describe()

    def explain(self, **options: Any) -> list[str]:
        """The call's route on the engine's target, as `wavejit.explain` tells it: what was chosen, and why nothing else."""
        return _offline.explain(self.describe(), self._engine.target, **options)

    def _answer(self, answer: tuple[int, str], no: int) -> bool:
        status, detail = answer
        if status not in (0, no):
            raise self._by_callers_dimensions(error_of(status, detail))
        return status == 0

    def _by_callers_dimensions(self, error: Error) -> Error:
        detail = self._in_callers_dimensions(error.detail)
        return error if detail == error.detail else type(error)(detail, error.status)


BSHD = "[batch, length, heads, head dim]"
UNIT_BYTES = 16
_OF_SCALES: dict[int, tuple[int | None, ...]] = {1: (None, None, 0, None), 2: (0, None, 1, None)}


def _vectorised(field: str, unit: int) -> str:
    if field == "k":
        return f"[pages, heads, head dim / {unit}, page size, {unit}]"
    return f"[pages, heads, head dim, page size], or [pages, heads, page size / {unit}, head dim, {unit}]"


def _units(field: str, array: DeviceArray) -> Order:
    """Vectorised pages as the C call describes them: [pages, page size, heads, head dim], and the strides inside 16 bytes."""
    shape, strides = array.shape, array.strides
    unit = UNIT_BYTES // array._dtype.bytes
    within = (shape[3], 1) if array.ndim == 4 else (unit * shape[3], unit, 1)
    if strides[2:] != within or shape[4:] not in ((), (unit,)):
        raise InvalidArgument(f"{field}: shape {shape}, strides {strides}; accepted: {_vectorised(field, unit)}, a head's part of a page dense")
    if field == "k":
        keys, dims, steps = shape[3], unit * shape[2], (unit, 1)
    elif array.ndim == 4:
        keys, dims, steps = shape[3], shape[2], (1, shape[3])
    else:
        keys, dims, steps = unit * shape[2], shape[3], (1, unit)
    return (shape[0], keys, shape[1], dims), (strides[0], steps[0], strides[1], steps[1])


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

    def _bias(self, dtype: DType, bias: Any, element: DType | None) -> DeviceArray:
        return self._tensor("bias", bias, _bias_type(bias, element), shape="[batch or 1, heads or 1, queries, keys]", dimensions=(2, 3, 4), row_multiple=8,
                            accepted=(dtype, _dtypes.FP32))

    def _table(self, block_table: Any, table_starts: Any, sequences: int, keys: _lengths.Keys) -> None:
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

    def _workspace_bytes(self) -> int:
        try:
            return self._call.workspace_bytes()  # type: ignore[union-attr]
        except Error as error:
            raise self._by_callers_dimensions(error) from None


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
        told = _dtypes.INT8 if integers else _dtypes.FP32 if wide else _dtypes.eight_bits(q)
        accepted = (*_dtypes.QUERIES, _dtypes.INT8, _dtypes.FP32)
        queries = self._tensor("q", q, told if told in accepted else element, shape=BSHD, dimensions=(4,), accepted=accepted)
        in_bytes = queries._dtype is _dtypes.E4M3
        cache: DType | None
        if integers:  # beside them v says the type
            cache = _dtypes.INT8
            keys = self._tensor("k", k, cache, shape=BSHD, dimensions=(4,))
            values = self._tensor("v", v, element, shape=BSHD, dimensions=(4,), accepted=_dtypes.NARROW)
            alike: tuple[DType, ...] = (values._dtype,)
            value_dim = values.shape[3]
        elif wide:  # rounded to the type of k and v, and beside 8 bits to that of out
            cache = _cache_type(k, element, cache_dtype, _dtypes.NARROW)
            keys, value_dim = self._keys_and_values(k, v, cache, block_table is not None, (*_dtypes.NARROW, *_dtypes.CACHES))
            alike = (keys._dtype,) if keys._dtype in _dtypes.NARROW else _dtypes.NARROW
        else:
            # O has q's type, or one of 16 bits beside queries of 8.
            alike = _dtypes.NARROW if in_bytes else (queries._dtype,)
            cache = _cache_type(k, queries._dtype if in_bytes else element, cache_dtype, (queries._dtype,))
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
        self._check_output_scale(written._dtype, o_scale)

        sequences = self._starts(queries, query_starts, key_starts)
        if lists is not None and getattr(lists, "alike", False) and isinstance(hints, (list, tuple)):
            self._words["hints"] = [*hints, "lists_alike"]
        self._set(sequences=sequences)
        told = self._lengths(queries, keys, query_starts, key_starts, key_lengths, first_keys, block_table is not None, max_query_length,
                             max_key_length, max_total_keys)
        self._table(block_table, table_starts, sequences, told)
        if lists is not None:
            self._lists(lists)
        list_heads = self._key_lists(queries, indices, counts, slots, keys.shape[2])
        self._second_list(queries, {"second_k": second_k, "second_v": second_v}, second_indices, second_counts, list_heads, cache, (keys._dtype,))
        self._cache_scale("q_scale", q_scale, integers)
        self._cache_scale("k_scale", k_scale, integers)
        self._cache_scale("v_scale", v_scale)
        if bias is not None:
            self._bias(written._dtype if written._dtype in alike else usual, bias, element)
        self.lse = self._lse(queries, lse, query_starts)

    def _keys_and_values(self, k: Any, v: Any, element: DType | None, paged: bool, alike: tuple[DType, ...]) -> tuple[DeviceArray, int]:
        """k, and the head dim of v. Pages of 5 dimensions are vectorised, and those of v say in which order."""
        if not paged or len(getattr(k, "shape", ())) != 5:
            keys = self._tensor("k", k, element, shape=BSHD, dimensions=(4,), accepted=alike)
            return keys, self._tensor("v", v, element, shape=BSHD, dimensions=(4,), accepted=(keys._dtype,)).shape[3]
        unit = UNIT_BYTES // (element or _dtypes.FP16).bytes
        keys = self._tensor("k", k, element, shape=_vectorised("k", unit), dimensions=(5,), order=_units, accepted=alike)
        values = self._tensor("v", v, element, shape=_vectorised("v", unit), dimensions=(4, 5), order=_units, accepted=(keys._dtype,))
        self._call.set_number("page_layout", values.ndim - 3)
        return keys, values.shape[values.ndim - 2]

    def workspace_bytes(self) -> int:
        """Device memory that the call uses beside its arrays: 0 unless it splits keys."""
        return self._workspace_bytes()

    def _lengths(self, queries: DeviceArray, keys: DeviceArray, query_starts: Any, key_starts: Any, key_lengths: Any, first_keys: Any,
                 paged: bool, max_query_length: int | None, max_key_length: int | None, max_total_keys: int | None) -> _lengths.Keys:
        """Sets them. What the host knows of them is checked."""
        max_query_length = _fields.whole_or_none("max_query_length", max_query_length)
        max_key_length = _fields.whole_or_none("max_key_length", max_key_length)
        max_total_keys = _fields.whole_or_none("max_total_keys", max_total_keys)
        starts = _lengths.known("query_starts", query_starts)
        _lengths.check_starts("query_starts", starts, queries.shape[1], max_query_length, "q", "max_query_length")
        # A page of vectorised keys: [heads, head dim / 8, keys, 8].
        told = _lengths.Keys(keys.shape[3 if keys.ndim == 5 else 1], keys.shape[0] if paged else None, max_key_length,
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

    def _lists(self, lists: BlockLists) -> None:
        """Batches, heads and row blocks are those of whatever has a shape that says so."""
        if not isinstance(lists, BlockLists):
            raise TypeError(f"lists: a {type(lists).__name__}; accepted: a wavejit.BlockLists")
        shape = None if lists.shape is None else tuple([_fields.whole("lists.shape", size) for size in lists.shape])
        for kind, indices, counts, starts in (("", lists.indices, lists.counts, lists.starts),
                                              ("full_", lists.full_indices, lists.full_counts, lists.full_starts)):
            if indices is None:
                if counts is not None or starts is not None:
                    raise InvalidArgument(f"lists: {kind}counts or {kind}starts without {kind}indices; accepted: both, or neither")
                continue
            if counts is not None and starts is not None:
                raise InvalidArgument(f"lists: {kind}counts beside {kind}starts, which say how long each list is; accepted: one of them")
            entries = self._int32(f"lists.{kind}indices", indices, 1 if starts is not None else 4, "entries" if starts is not None
                                  else "batch or 1, heads or 1, row blocks, room")
            self._call.set_number(f"{kind or 'list_'}capacity", entries.shape[-1])
            if starts is not None:
                if shape is None:
                    raise InvalidArgument("lists: starts without shape; accepted: shape=(batch or 1, heads or 1, row blocks)")
                self._numbers(f"lists.{kind}starts", starts, shape[0] * shape[1] * shape[2] + 1, "lists + 1")
                continue
            shape = shape or entries.shape[:3]  # type: ignore[assignment]
            if entries.shape[:3] != tuple(shape):  # type: ignore[arg-type]
                raise InvalidArgument(f"lists.{kind}indices: shape {entries.shape}; accepted: {[*shape, 'room']}")  # type: ignore[misc]
            if counts is not None:
                numbers = self._int32(f"lists.{kind}counts", counts, 3, "batch or 1, heads or 1, row blocks")
                if numbers.shape != tuple(shape):  # type: ignore[arg-type]
                    raise InvalidArgument(f"lists.{kind}counts: shape {numbers.shape}; accepted: {[*shape]}")  # type: ignore[misc]
        if lists.indices is None and lists.full_indices is None or shape is None:
            raise InvalidArgument("lists: neither indices nor full_indices; accepted: one of them, or both")
        for field, number in (("list_batches", shape[0]), ("list_heads", shape[1]), ("list_row_blocks", shape[2]), ("list_rows", lists.rows),
                              ("list_keys", lists.keys)):
            self._call.set_number(field, number)

    def _key_lists(self, queries: DeviceArray, indices: Any, counts: Any, slots: bool, kv_heads: int = 1) -> int:
        """A list of keys for each query, or one for each of its kv heads. How many lists a query has."""
        if indices is None:
            for field, given in (("counts", counts), ("slots", slots)):
                if given is not None and given is not False:
                    raise InvalidArgument(f"{field} without indices; accepted: both, or neither")
            return 1
        array = self._int32_at("indices", indices)
        heads = kv_heads if array.ndim == 4 and kv_heads > 1 and array.shape[2] == kv_heads else 1
        if heads > 1:
            self._call.set_number("key_list_heads", heads)
        self._set_key_lists("indices", ("key_indices", "top_k", "key_indices_row_stride"), array, queries, heads)
        self._set_counts("counts", "key_counts", counts, queries, heads)
        self._call.set_number("key_slots", int(_fields.yes("slots", slots)))
        return heads

    def _second_list(self, queries: DeviceArray, caches: dict[str, Any], indices: Any, counts: Any, heads: int, element: DType | None,
                     alike: tuple[DType, ...]) -> None:
        """A second list of each query, over a cache of its own."""
        if indices is None:
            for field, given in (*caches.items(), ("second_counts", counts)):
                if given is not None:
                    raise InvalidArgument(f"{field} without second_indices; accepted: both, or neither")
            return
        for field, given in caches.items():
            if given is None:
                raise InvalidArgument(f"second_indices without {field}; accepted: both, or neither")
            self._tensor(field, given, element, shape="[pages, page size, heads, head dim]", dimensions=(4,), accepted=alike)
        array = self._int32_at("second_indices", indices)
        self._set_key_lists("second_indices", ("second_indices", "second_top_k", "second_indices_row_stride"), array, queries, heads)
        self._set_counts("second_counts", "second_counts", counts, queries, heads)

    def _set_key_lists(self, field: str, c_names: tuple[str, str, str], array: DeviceArray, queries: DeviceArray, heads: int) -> None:
        """Rows side by side or a stride of their own apart."""
        rows = queries.shape[0] * queries.shape[1]
        address, top_k, row_stride = c_names
        stride = None
        if heads > 1:
            if array.ndim != 4 or array.shape[:3] != (*queries.shape[:2], heads) or not array._is_dense():
                raise InvalidArgument(f"{field}: shape {array.shape}, strides {array.strides}; accepted: [{queries.shape[0]}, {queries.shape[1]}, {heads} (kv heads), "
                                      "keys of a list], dense")
        else:
            leading = [(size, stride) for size, stride in zip(array.shape[:-1], array.strides[:-1]) if size != 1]
            in_step = all(stride == behind * below for (_, stride), (behind, below) in zip(leading, leading[1:]))
            count = 1
            for size, _ in leading:
                count *= size
            if array.ndim < 2 or count != rows or array.strides[-1] != 1 or not in_step:
                raise InvalidArgument(f"{field}: shape {array.shape}, strides {array.strides}; accepted: [{queries.shape[0]}, {queries.shape[1]}, keys of a list] "
                                      f"or [{rows}, keys of a list], rows evenly apart")
            stride = leading[-1][1] if leading else None
        self._call.set_address(address, array._address)
        self._call.set_number(top_k, array.shape[-1])
        if stride is not None:
            self._call.set_number(row_stride, stride)

    def _set_counts(self, field: str, c_name: str, counts: Any, queries: DeviceArray, heads: int) -> None:
        if counts is None:
            return
        lists = queries.shape[0] * queries.shape[1] * heads
        numbers = self._int32_at(field, counts)
        size = 1
        for part in numbers.shape:
            size *= part
        if size != lists or not numbers._is_dense():
            raise InvalidArgument(f"{field}: shape {numbers.shape}, strides {numbers.strides}; accepted: [{lists}], a number for each list, side by side")
        self._call.set_address(c_name, numbers._address)

    def _int32_at(self, field: str, given: Any) -> DeviceArray:
        kind = str(getattr(given, "dtype", "int32")).removeprefix("torch.")
        if kind != "int32":
            raise InvalidArgument(f"{field}: dtype {kind}; accepted: int32")
        array, _ = _arrays.on_device(self._engine, given, field, self._stream, _dtypes.INT32, copies=True)
        self._take(array)
        return array

    def _int32(self, field: str, given: Any, dimensions: int, what: str) -> DeviceArray:
        kind = str(getattr(given, "dtype", "int32")).removeprefix("torch.")
        if kind != "int32":
            raise InvalidArgument(f"{field}: dtype {kind}; accepted: int32")
        array, _ = _arrays.on_device(self._engine, given, field, self._stream, _dtypes.INT32, copies=True)
        if array.ndim != dimensions or not array._is_dense():
            raise InvalidArgument(f"{field}: shape {array.shape}, strides {array.strides}; accepted: [{what}], dense")
        self._take(array)
        self._call.set_address(self._c_names[field], array._address)
        return array

    def _cache_scale(self, field: str, given: Any, of_rows: bool = False) -> None:
        """A number, one element, [heads], [batch, heads], [batch, length, heads] of tokens, or what C has: [batch or 1, 1, heads or 1, 1]. Of
        integers sizes of rows may be 1, too, and k_scale of more is of tokens."""
        if given is None:
            return
        array = _scale_array(self._engine, field, given, self._stream)
        places = _OF_SCALES.get(array.ndim)
        if array.ndim == 3 and not of_rows and isinstance(self, AttentionForwardCall):
            array = array[:, :, :, None]
            self._call.set_number("token_scales", 1)
        elif array.size == 1:
            array = array._view(array._address, (1, 1, 1, 1), (1, 1, 1, 1))
        elif array.ndim == 1:
            array = array[None, None, :, None]
        elif array.ndim == 2:
            array = array[:, None, :, None]
        elif array.ndim == 3 and of_rows:
            array = array[..., None]
        if of_rows and field == "k_scale" and array.ndim == 4 and array.shape[1] > 1:
            self._call.set_number("token_scales", 1)
        accepted = "[batch or 1, rows or 1, heads or 1]" if of_rows else "[batch or 1, 1, heads or 1, 1], or of tokens [batch, length, heads]"
        self._tensor(field, array, _dtypes.FP32, shape=f"[heads], [batch, heads], {accepted}", dimensions=(4,), places=places)

    def _lse(self, queries: DeviceArray, lse: Any, query_starts: Any) -> Any:
        unwritten = float("-inf") if _lengths.leave_rows("query_starts", query_starts, queries.shape[1]) else None
        return _row_sums(self, lse, (queries.shape[0], queries.shape[2], queries.shape[1]), unwritten)


def _cache_type(k: Any, element: DType | None, cache_dtype: Any, wide: tuple[DType, ...]) -> DType | None:
    """The type of k and v: what the caller says, what k says of 8 bits, else q's. `wide`: the types of 16 bits that are taken."""
    if cache_dtype is not None:
        return _dtypes.named(cache_dtype, "cache_dtype", (*wide, *_dtypes.CACHES))
    return _dtypes.of_cache(k) or element


def _scale_array(engine: OpenedDevice, field: str, given: Any, stream: int) -> DeviceArray:
    """On the device. Numbers of the host are copied there, whatever the device; an array says fp32."""
    import numpy

    if isinstance(given, (int, float, numpy.floating)):
        given = numpy.asarray(_fields.in_fp32(field, given), numpy.float32)
    elif isinstance(given, (list, tuple)):
        given = numpy.asarray(given, numpy.float32)
    array, _ = _arrays.on_device(engine, given, field, stream, _dtypes.FP32, copies=True)
    return array


def _bias_type(bias: Any, element: DType | None) -> DType | None:
    """fp32 of an array that says so, else q's."""
    wide = bias._dtype is _dtypes.FP32 if isinstance(bias, DeviceArray) else str(getattr(bias, "dtype", "")) in ("float32", "torch.float32")
    return _dtypes.FP32 if wide else element


def _row_sums(call: Call, lse: Any, shape: tuple[int, int, int], unwritten: float | None = None) -> Any:
    """lse: False and None for none, True for one of wavejit's own, else the caller's, [batch, heads, rows]."""
    if lse is None or lse is False:
        return None
    given = _arrays.allocate_output(call._engine, shape, _dtypes.FP32, unwritten) if lse is True else lse
    call._tensor("lse", given, _dtypes.FP32, shape="[batch, heads, rows]", dimensions=(3, 4), output=True, lead=False)
    return given


class SoftmaxLseCall(Call):
    """The softmax of raw scores with its arguments. `weights` and `lse` are the outputs, or None.

    >>> import wavejit
    >>> engine = wavejit.Engine("sim:gfx950")
    >>> call = engine.softmax_lse_call(engine.empty((1, 8, 16, 64), "bf16"), None, lse=True)
    >>> call.weights, call.lse.shape
    (None, (1, 8, 16))
    """

    _outputs = ("weights", "lse")
    weights: Any
    lse: Any

    @keeps_words
    def __init__(self, engine: OpenedDevice, scores: Any, weights: Any = True, *, lse: Any = False, scale: float | None = None, causal: bool = False,
                 window: Sequence[int | None] | None = None, causal_prefix: int | None = None, key_lengths: Any = None, compile: str = "wait",
                 check_lengths: bool = False, dtype: Any = None, stream: object = None) -> None:
        super().__init__(engine, _wavejit.calls.softmax_lse(engine._open()), stream)
        element = None if dtype is None else _dtypes.named(dtype, accepted=_dtypes.ELEMENTS)
        shape = "[batch, heads, queries, keys]"
        raw = self._tensor("scores", scores, element, shape=shape, dimensions=(4,))
        self.weights = None
        if weights is not None and weights is not False:
            if weights is True or isinstance(weights, str):
                weights = _arrays.allocate(engine, raw.shape, raw._dtype if weights is True else _dtypes.named(weights, "weights", _dtypes.ELEMENTS))
            self._tensor("weights", weights, None, shape=shape, dimensions=(4,), output=True)
            self.weights = weights
        self.lse = _row_sums(self, lse, raw.shape[:3])  # type: ignore[arg-type]
        self._set(batch=raw.shape[0])
        _lengths.check_keys(_lengths.Keys(raw.shape[3], None, None, None, _lengths.known("key_lengths", key_lengths), None))
