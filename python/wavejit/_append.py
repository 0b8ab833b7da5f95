# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""New keys and values into a cache, as a call."""
from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from . import _arrays, _device, _dtypes, _wavejit
from ._arrays import DeviceArray
from ._calls import Call
from ._errors import InvalidArgument
from ._fields import keeps_words
from ._pages import as_units, shape_of_units
from ._scales import scale_array

if TYPE_CHECKING:
    from ._dtypes import DType
    from ._opened_device import OpenedDevice

ROWS = "[tokens, heads, head dim], or [batch, tokens, heads, head dim]"
PAGES = "[pages, page size, heads, head dim]"
TABLE = "[positions, rotary dims / 2]"
# Numbers of heads are read; of tokens, where a scale has as many dimensions, they are written.
TOKEN_DIMENSIONS = 3
TOKEN_SCALES = "[pages, page size, heads], as the other's"
SCALES = f"a number, [heads]; {TOKEN_SCALES}"
# Rows of latent attention with scales of their own, in bytes.
LATENT_COLUMNS = (656, 584)
INTEGERS = (_dtypes.INT32, _dtypes.INT64)


class CacheAppendCall(Call):
    """Keys and values on their way into a cache, with the arguments of `Engine.cache_append`. `q_out` is the output beside
    the caches, or None.

    >>> import wavejit
    >>> engine = wavejit.Engine("sim:gfx950")
    >>> q, k, pages = engine.empty((3, 4, 64), "bf16"), engine.empty((3, 1, 64), "bf16"), engine.empty((9, 16, 1, 64), "bf16")
    >>> call = engine.cache_append_call(k, None, pages, None, [5, 6, 7], q=q, rotary="halves", rotary_base=10000, positions=[5, 6, 7])
    >>> call.q_out.shape, call.describe()
    ((3, 4, 64), 'cache_append bf16 b1 q3 h1 d64 page=16 queries=4 rotary=halves angles=base no_values')
    """

    _outputs = ("q_out",)
    q_out: Any

    @keeps_words
    def __init__(self, engine: OpenedDevice, k: Any, v: Any, k_cache: Any, v_cache: Any, slots: Any, *, q: Any = None, q_out: Any = None,
                 rotary: str | None = None, cos: Any = None, sin: Any = None, rotary_base: float | None = None, rotary_dim: int | None = None,
                 positions: Any = None, k_scale: Any = None, v_scale: Any = None, cache_dtype: Any = None, compile: str = "wait", dtype: Any = None, stream: object = None) -> None:
        super().__init__(engine, _wavejit.calls.cache_append(engine._open()), stream)
        element = None if dtype is None else _dtypes.named(dtype, accepted=_dtypes.NARROW)
        keys = self._tensor("k", k, element, shape=ROWS, dimensions=(3, 4), accepted=_dtypes.NARROW)
        kind = keys._dtype
        of_cache = _dtypes.cache_type(k_cache, kind, cache_dtype, (kind,))
        narrow = of_cache in _dtypes.CACHES
        in_rows = narrow and v is not None and v_cache is None and getattr(k_cache, "shape", (0,))[-1] in LATENT_COLUMNS
        if (v is None) != (v_cache is None) and not in_rows:
            raise InvalidArgument("v and v_cache: one of them; accepted: both, or None for both; v alone beside k_cache of 656 or 584 columns of 8 bits")
        self._cache("k_cache", k_cache, of_cache, vectorised=() if narrow else (5,), rows=(4,))
        if v is not None:
            self._tensor("v", v, kind, shape=ROWS, dimensions=(3, 4), accepted=(kind,))
        if v_cache is not None:
            by_units = _dimensions(k_cache) == 5
            values = self._cache("v_cache", v_cache, of_cache, vectorised=(4, 5) if by_units else (), rows=() if by_units else (4,))
            self._call.set_number("page_layout", values.ndim - 3 if by_units else 0)
        elif _dimensions(k_cache) == 5:
            self._call.set_number("page_layout", 1)
        self._set()
        self._scales(k_scale, v_scale)
        tokens = math.prod(keys.shape[:-2])
        self._integers("slot", slots, tokens)
        self._queries(q, q_out, kind)
        self._turn(rotary, cos, sin, rotary_base, rotary_dim, positions, tokens, keys.shape[-1])

    def _cache(self, field: str, given: Any, kind: DType, *, vectorised: tuple[int, ...], rows: tuple[int, ...]) -> DeviceArray:
        dimensions = _dimensions(given)
        if dimensions in vectorised:
            unit = _arrays_unit(kind)
            return self._tensor(field, given, kind, shape=shape_of_units(field[0], unit), dimensions=vectorised, order=lambda _, array: as_units(field[0], array), output=True,
                                accepted=(kind,))
        return self._tensor(field, given, kind, shape=PAGES, dimensions=rows or vectorised, output=True, accepted=(kind,))

    def _scales(self, k_scale: Any, v_scale: Any) -> None:
        found = any(_dimensions(given) == TOKEN_DIMENSIONS for given in (k_scale, v_scale))
        self._call.set_number("token_scales", int(found))
        for field, given in (("k_scale", k_scale), ("v_scale", v_scale)):
            if given is None:
                continue
            if found:
                self._tensor(field, given, _dtypes.FP32, shape=TOKEN_SCALES, dimensions=(TOKEN_DIMENSIONS,), lead=False, output=True, accepted=(_dtypes.FP32,))
            else:
                array = scale_array(self._engine, field, given, self._stream)
                self._tensor(field, array, _dtypes.FP32, shape=SCALES, dimensions=(0, 1), order=_as_heads, places=(None, None, 0, None), accepted=(_dtypes.FP32,))

    def _integers(self, name: str, given: Any, count: int, least: int | None = None) -> None:
        """Slots or positions. Host numbers of any width are copied to the device, as int32 where that holds all of them: one that is beyond it is no
        slot on either path."""
        field = name + "s"
        on_device = isinstance(given, DeviceArray) or (hasattr(given, "__dlpack_device__") and int(given.__dlpack_device__()[0]) not in _device.HOST_DEVICES)
        if on_device:
            array, _ = _arrays.on_device(self._engine, given, field, self._stream, accepted=INTEGERS)
        else:
            array, host = _arrays.on_device(self._engine, given, field, self._stream, _dtypes.INT64, copies=True)
            below = None if least is None or host is None else (host.reshape(-1) < least).nonzero()[0]
            if below is not None and below.size:
                raise InvalidArgument(f"{field}[{below[0]}] = {host.reshape(-1)[below[0]]}; accepted: {least} and more beside rotary_base")  # type: ignore[union-attr]
        if math.prod(array.shape) != count or not array._is_dense():
            raise InvalidArgument(f"{field}: shape {array.shape}, strides {array.strides}; accepted: {count} numbers side by side, one for each token")
        self._take(array)
        self._call.set_address(field, array._address)
        self._call.set_number(f"{name}_bytes", array._dtype.bytes)

    def _queries(self, q: Any, q_out: Any, kind: DType) -> None:
        self.q_out = None
        if q is None:
            if q_out is not None:
                raise InvalidArgument("q_out without q; accepted: both, or neither")
            return
        queries = self._tensor("q", q, kind, shape=ROWS, dimensions=(3, 4), accepted=(kind,))
        self.q_out = _arrays.allocate(self._engine, queries.shape, kind) if q_out is None else q_out
        self._tensor("q_out", self.q_out, kind, shape=ROWS, dimensions=(3, 4), output=True, accepted=(kind,))

    def _turn(self, rotary: str | None, cos: Any, sin: Any, rotary_base: float | None, rotary_dim: int | None, positions: Any, tokens: int, dims: int) -> None:
        if rotary is None:
            for field, word in (("cos", cos), ("sin", sin), ("rotary_base", rotary_base), ("rotary_dim", rotary_dim), ("positions", positions)):
                if word is not None:
                    raise InvalidArgument(f"{field} without rotary; accepted: rotary='halves' or 'interleaved' beside it")
            return
        if (cos is None) != (sin is None) or (cos is None) == (rotary_base is None):
            raise InvalidArgument("cos, sin and rotary_base; accepted: cos and sin, or rotary_base")
        if positions is None:
            raise InvalidArgument("positions = None; accepted: an integer for each token, with rotary")
        if rotary_base is None:
            table = self._tensor("cos", cos, None, shape=TABLE, dimensions=(2,), order=_as_rows, places=(None, 0, None, 1))
            self._tensor("sin", sin, table._dtype, shape=TABLE, dimensions=(2,), order=_as_rows, places=(None, 0, None, 1))
            dims = 2 * table.shape[1]
        self._call.set_number("rotary_dim", dims if rotary_dim is None else rotary_dim)
        self._integers("position", positions, tokens, None if rotary_base is None else 0)


def _as_heads(_field: str, array: DeviceArray) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """[heads] as the C call's four dimensions."""
    size, step = (array.shape[0], array.strides[0]) if array.ndim else (1, 1)
    return (1, 1, size, 1), (1, 1, step, 1)


def _dimensions(given: Any) -> int:
    return len(getattr(given, "shape", ()))


def _arrays_unit(kind: DType) -> int:
    return 16 // kind.bytes


def _as_rows(_field: str, array: DeviceArray) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """[positions, pairs] as the C call's four dimensions."""
    (rows, pairs), (row, pair) = array.shape, array.strides
    return (1, rows, 1, pairs), (1, row, 1, pair)
