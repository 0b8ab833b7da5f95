# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How keys and values lie: rows of a sequence, and pages, also vectorised ones."""
from __future__ import annotations

from typing import TYPE_CHECKING

from ._arrays import DeviceArray
from ._errors import InvalidArgument

if TYPE_CHECKING:
    from ._fields import Order

BSHD = "[batch, length, heads, head dim]"
UNIT_BYTES = 16


def shape_of_units(field: str, unit: int) -> str:
    if field == "k":
        return f"[pages, heads, head dim / {unit}, page size, {unit}]"
    return f"[pages, heads, head dim, page size], or [pages, heads, page size / {unit}, head dim, {unit}]"


def as_units(field: str, array: DeviceArray) -> Order:
    """Vectorised pages as the C call describes them: [pages, page size, heads, head dim], and the strides inside 16 bytes."""
    shape, strides = array.shape, array.strides
    unit = UNIT_BYTES // array._dtype.bytes
    within = (shape[3], 1) if array.ndim == 4 else (unit * shape[3], unit, 1)
    if strides[2:] != within or shape[4:] not in ((), (unit,)):
        raise InvalidArgument(f"{field}: shape {shape}, strides {strides}; accepted: {shape_of_units(field, unit)}, a head's part of a page dense")
    if field == "k":
        keys, dims, steps = shape[3], unit * shape[2], (unit, 1)
    elif array.ndim == 4:
        keys, dims, steps = shape[3], shape[2], (1, shape[3])
    else:
        keys, dims, steps = unit * shape[2], shape[3], (1, unit)
    return (shape[0], keys, shape[1], dims), (strides[0], steps[0], strides[1], steps[1])
