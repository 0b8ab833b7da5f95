# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Scales of numbers of 8 bits: those of inputs as a call takes them, and that of an output."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import _arrays, _dtypes, _fields
from ._arrays import DeviceArray
from ._dtypes import DType
from ._errors import InvalidArgument

if TYPE_CHECKING:
    from ._calls import Call
    from ._opened_device import OpenedDevice

# An output of 8 bits is divided by its scale, and multiplied by one over it.
LEAST_SCALE, MOST_SCALE = 2.0**-126, 2.0**126
ACCEPTED_SCALE = "a number from 2^-126 to 2^126, or fp32 of one element on the device: out is divided by it"
# Which dimension of an array's each of C's four is.
PLACES: dict[int, tuple[int | None, ...]] = {1: (None, None, 0, None), 2: (0, None, 1, None)}


def scale_array(engine: OpenedDevice, field: str, given: Any, stream: int) -> DeviceArray:
    """On the device. Numbers of the host are copied there, whatever the device; an array says fp32."""
    import numpy

    if isinstance(given, (int, float, numpy.floating)):
        given = numpy.asarray(_fields.in_fp32(field, given), numpy.float32)
    elif isinstance(given, (list, tuple)):
        given = numpy.asarray(given, numpy.float32)
    array, _ = _arrays.on_device(engine, given, field, stream, _dtypes.FP32, copies=True)
    return array


def set_scale(call: Call, field: str, given: Any, of_rows: bool = False) -> None:
    """A number, one element, [heads], [batch, heads], [batch, length, heads] of tokens, or what C has: [batch or 1, 1, heads or 1, 1]. Of
    integers sizes of rows may be 1, too, and k_scale of more is of tokens."""
    if given is None:
        return
    array = scale_array(call._engine, field, given, call._stream)
    places = PLACES.get(array.ndim)
    if array.ndim == 3 and not of_rows:
        array = array[:, :, :, None]
        call._call.set_number("token_scales", 1)
    elif array.size == 1:
        array = array._view(array._address, (1, 1, 1, 1), (1, 1, 1, 1))
    elif array.ndim == 1:
        array = array[None, None, :, None]
    elif array.ndim == 2:
        array = array[:, None, :, None]
    elif array.ndim == 3 and of_rows:
        array = array[..., None]
    if of_rows and field == "k_scale" and array.ndim == 4 and array.shape[1] > 1:
        call._call.set_number("token_scales", 1)
    accepted = "[batch or 1, rows or 1, heads or 1]" if of_rows else "[batch or 1, 1, heads or 1, 1], or of tokens [batch, length, heads]"
    call._tensor(field, array, _dtypes.FP32, shape=f"[heads], [batch, heads], {accepted}", dimensions=(4,), places=places)


def check_output_scale(written: DType, o_scale: Any) -> None:
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
