# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Parts of one query, each over other keys, become one result, as a call."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import _arrays, _dtypes, _scales, _wavejit
from ._arrays import DeviceArray
from ._calls import Call
from ._errors import InvalidArgument
from ._fields import keeps_words

if TYPE_CHECKING:
    from ._opened_device import OpenedDevice

OUTPUTS = "[tokens, heads, head dim], or [batch, tokens, heads, head dim]"
SUMS = "[heads, tokens], or [batch, heads, tokens]"
MOST_TENSORS = 8
OF_TWO = (None, 0, 1, None)  # which dimension of [heads, tokens] each of the C call's four is


class AttentionMergeCall(Call):
    """Parts of one query on their way to one result, with the arguments of `Engine.attention_merge`. `out` and `lse` are the outputs.

    >>> import wavejit
    >>> engine = wavejit.Engine("sim:gfx950")
    >>> o, lse = engine.empty((3, 4, 64), "bf16"), engine.empty((4, 3), "fp32")
    >>> call = engine.attention_merge_call([o, o], [lse, lse])
    >>> call.out.shape, call.lse.shape, call.describe()
    ((3, 4, 64), (4, 3), 'attention_merge bf16 b1 q3 h4 d64 parts=2 lse')
    """

    _outputs = ("out", "lse")
    out: Any
    lse: Any

    @keeps_words
    def __init__(self, engine: OpenedDevice, outs: Any, lses: Any, *, out: Any = None, lse: Any = True, o_scale: Any = None, out_dtype: Any = None, compile: str = "wait", dtype: Any = None,
                 stream: object = None) -> None:
        super().__init__(engine, _wavejit.calls.attention_merge(engine._open()), stream)
        element = None if dtype is None else _dtypes.named(dtype, accepted=_dtypes.ELEMENTS)
        first = self._stack(outs, lses, element) if _is_one(outs) else self._list(outs, lses, element)
        kind = first._dtype
        sizes = first.shape[1:] if _is_one(outs) else first.shape
        wide = (kind,) if kind is not _dtypes.FP32 else (_dtypes.BF16, _dtypes.FP16)
        of_out = self._result_type(out, element, out_dtype)
        if out is None or isinstance(out, str):
            of_out = None
            out = _arrays.allocate(engine, sizes, kind if out is None else _dtypes.named(out, "out", (*wide, *_dtypes.RESULTS)))
        written = self._tensor("out", out, of_out, shape=OUTPUTS, dimensions=(3, 4), output=True, accepted=(*wide, *_dtypes.RESULTS))
        _scales.check_output_scale(written._dtype, o_scale)
        self.out = out
        self.lse = None
        if lse is not None and lse is not False:
            of_rows = (*sizes[:-3], sizes[-2], sizes[-3])
            self.lse = _arrays.allocate(engine, of_rows, _dtypes.FP32) if lse is True else lse
            self._tensor("lse", self.lse, _dtypes.FP32, shape=SUMS, dimensions=(2, 3), order=_as_rows, places=_places_of_sums(self.lse), output=True, accepted=(_dtypes.FP32,))
        self._set()

    def _list(self, outs: Any, lses: Any, element: Any) -> DeviceArray:
        if _is_one(lses) or len(outs) != len(lses) or not 1 <= len(outs) <= MOST_TENSORS:
            raise InvalidArgument(f"outs and lses: {len(outs)} and {len(lses)}; accepted: as many of each, 1 to {MOST_TENSORS}; more parts in one array, the first dimension of which counts them")
        self._call.set_number("part_count", len(outs))
        arrays: list[DeviceArray] = []
        for index, (o, lse) in enumerate(zip(outs, lses)):
            kind = arrays[0]._dtype if arrays else element
            arrays.append(self._tensor(f"outs[{index}]", o, kind, shape=OUTPUTS, dimensions=(3, 4), accepted=_dtypes.ELEMENTS if kind is None else (kind,)))
            self._tensor(f"lses[{index}]", lse, _dtypes.FP32, shape=SUMS, dimensions=(2, 3), order=_as_rows, places=_places_of_sums(lse), accepted=(_dtypes.FP32,))
        return arrays[0]

    def _stack(self, outs: Any, lses: Any, element: Any) -> DeviceArray:
        if not _is_one(lses):
            raise InvalidArgument("lses: a sequence; accepted: one array beside outs, the first dimension of which counts the parts")
        self._call.set_number("part_count", 1)
        parts = self._tensor("outs", outs, element, shape=f"parts of {OUTPUTS}", dimensions=(4, 5), order=_behind_parts)
        sums = self._tensor("lses", lses, _dtypes.FP32, shape=f"parts of {SUMS}", dimensions=(3, 4), order=lambda field, array: _as_rows(field, array, 1),
                            accepted=(_dtypes.FP32,))
        # What is told of a stack is told of its first part.
        self._dimensions["outs[0]"] = (*(None,) * (5 - parts.ndim), *range(parts.ndim - 1))
        self._dimensions["lses[0]"] = (0, 1, 2, None) if sums.ndim == 4 else OF_TWO
        if parts.shape[0] != sums.shape[0] or parts.shape[0] < 1:
            raise InvalidArgument(f"outs and lses: {parts.shape[0]} and {sums.shape[0]} parts; accepted: as many of each, 1 and more")
        for field, count in (("count", parts.shape[0]), ("o_stride", parts.strides[0]), ("lse_stride", sums.strides[0])):
            self._call.set_number(f"parts[0].{field}", count)
        return parts


def _is_one(given: Any) -> bool:
    """An array, not a sequence of them."""
    return hasattr(given, "shape")


def _places_of_sums(given: Any) -> tuple[int | None, ...] | None:
    return OF_TWO if len(getattr(given, "shape", ())) == 2 else None


def _behind_parts(_field: str, array: DeviceArray) -> tuple[tuple[int, ...], tuple[int, ...]]:
    ones = (1,) * (5 - array.ndim)
    return (*ones, *array.shape[1:]), (*ones, *array.strides[1:])


def _as_rows(_field: str, array: DeviceArray, skipped: int = 0) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """[…, heads, tokens] as the C call's four dimensions."""
    sizes, strides = array.shape[skipped:], array.strides[skipped:]
    ones = (1,) * (3 - len(sizes))
    return (*ones, *sizes, 1), (*ones, *strides, 1)
