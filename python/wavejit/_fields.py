# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The fields of a call. Most are set from their argument alone, by the rows of bindings/call_kinds.h: `_set` does so for whatever a family's
`__init__` has. What needs the rest of the call stands in the families' own modules."""
from __future__ import annotations

import functools
import math
import operator
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, ParamSpec

from . import _arrays, _dtypes, _wavejit
from ._arrays import DeviceArray
from ._dtypes import DType
from ._errors import InvalidArgument

if TYPE_CHECKING:
    import numpy

    from ._opened_device import OpenedDevice

    # Sizes and strides.
    Order = tuple[tuple[int, ...], tuple[int, ...]]

# enum wavejit_mask
CAUSAL, WINDOW, PREFIX = 1, 2, 4
# Masks with a number of their own: the keyword, and the bit.
MASK_KINDS = {keyword: bit for bit, _, keyword in _wavejit.mask_kinds()}
_NUMBERED = {"causal_prefix": PREFIX, **MASK_KINDS}
_OF_MASKS = frozenset(("causal", "window", *_NUMBERED))
# Flags that show in no bit of a result, by name.
HINTS = dict(_wavejit.hints())
MOST_KEYS = (1 << 31) - 1  # of a side of a window
LEAST_FP32, MOST_FP32 = 2.0**-149, 2.0**128 - 2.0**104
MOST_SHOWN = 80
TYPES = {"fp32": _dtypes.FP32, "int32": _dtypes.INT32, "bool": _dtypes.INT8}


def _as_written(text: str) -> Any:
    return {"None": None, "True": True, "False": False}[text] if text[0].isupper() else text[1:-1] if text[0] == "'" else int(text)


# Arguments that are bits of flags: what they may be, and the bits of it.
FLAGS: dict[str, dict[Any, int]] = {}
for _word, _value, _bits in _wavejit.call_flags():
    FLAGS.setdefault(_word, {})[_as_written(_value)] = _bits
SCALE_IS_ZERO = FLAGS.pop("scale")[0]
_OF_FLAGS = frozenset((*FLAGS, "hints"))


def whole_or_none(field: str, given: Any) -> int | None:
    return None if given is None else whole(field, given)


def shown(given: Any) -> str:
    """A value as its caller would write it, of a line's length."""
    text = repr(given)
    return text if len(text) <= MOST_SHOWN else text[:MOST_SHOWN] + "…"


def whole(field: str, given: Any) -> int:
    """What operator.index takes: neither "3" nor numpy's 2.7."""
    try:
        return operator.index(given)
    except TypeError:
        raise InvalidArgument(f"{field} = {shown(given)}; accepted: an integer") from None


def chosen(field: str, given: Any, accepted: Mapping[Any, int]) -> int:
    """What stands for one of some values."""
    try:
        found = accepted[given]
    except (KeyError, TypeError):  # the latter where it has no hash
        found = None
    is_fraction = hasattr(given, "__float__") and not hasattr(given, "__index__") and not type(given).__name__.startswith("bool")
    if found is None or is_fraction:  # 2.0 is 2 to a dict
        raise InvalidArgument(f"{field} = {shown(given)}; accepted: {', '.join(map(repr, accepted))}")
    return found


def some_of(field: str, given: Any, accepted: Mapping[str, int]) -> int:
    """What stands for a list of some words, each of which has a bit."""
    if not isinstance(given, (list, tuple, set, frozenset)) or not all(isinstance(each, str) and each in accepted for each in given):
        raise InvalidArgument(f"{field} = {shown(given)}; accepted: a list of {', '.join(map(repr, accepted))}")
    return sum({accepted[each] for each in given})


def in_fp32(field: str, given: Any) -> float:
    """A number that fp32 does not round to 0 or to infinity, which would mean something else."""
    try:
        number = float(given)
    except OverflowError:
        number = math.inf
    if not math.isinf(number) and number != 0 and not LEAST_FP32 <= abs(number) <= MOST_FP32 or math.isinf(number) and isinstance(given, int):
        raise InvalidArgument(f"{field} = {shown(given)}; accepted: a number that fp32 holds, 0 or from 1.4e-45 to 3.4e38")
    return number


def yes(field: str, given: Any) -> bool:
    return bool(chosen(field, given, {True: 1, False: 0}))


def _as_int8(given: Any) -> Any:
    """An array of bool or uint8 as one of int8: the same bytes."""
    if str(getattr(given, "dtype", "")).removeprefix("torch.") not in ("bool", "uint8"):
        return given
    return given.view(sys.modules["torch"].int8 if type(given).__module__.startswith("torch") else "int8")


class Axes(NamedTuple):
    """The axes of a tensor, and by how many of them an array has what stands in front of it and behind it, and which of its dimensions each of
    C's four is."""

    shape: str
    ranks: dict[int, tuple[int, int, tuple[int | None, ...]]]


def _axes(names: Sequence[str]) -> Axes:
    behind = 0
    while names[-1 - behind] == "1":
        behind += 1
    own = names[: len(names) - behind]
    ranks: dict[int, tuple[int, int, tuple[int | None, ...]]] = {len(names): (0, 0, tuple(range(len(names))))}
    texts: list[str] = []
    for front in range(len(own)):
        if all(name == "1" or name.endswith(" or 1") for name in own[:front]):
            rank = len(own) - front
            ranks.setdefault(rank, (front, behind, (*(None,) * front, *range(rank), *(None,) * behind)))
            texts.insert(0, f"[{', '.join(own[front:])}]")
    return Axes(", or ".join(texts), ranks)


Setter = Callable[["Fields", str, Any], object]


def _number(c_name: str) -> Setter:
    return lambda call, _, given: call._call.set_number(c_name, given)


def _words(c_name: str, accepted: dict[Any, int], find: Callable[[str, Any, Any], int]) -> Setter:
    def put(call: Fields, field: str, given: Any) -> None:
        number = find(field, given, accepted)
        if number:
            call._call.set_number(c_name, number)

    return put


def _array(c_name: str, said: str) -> Setter:
    name, _, rest = said.partition(" ")
    dtype, names = TYPES[name], rest[1:-1].split(", ")
    if len(names) == 1:
        return lambda call, field, given: call._side_by_side(field, given, dtype, names[0], c_name)
    axes = _axes(names)
    if dtype is _dtypes.INT8:
        return lambda call, field, given: call._placed(field, _as_int8(given), dtype, axes)
    return lambda call, field, given: call._placed(field, given, dtype, axes)


def _either(number: Setter, array: Setter) -> Setter:
    def put(call: Fields, field: str, given: Any) -> None:
        if not hasattr(given, "__dlpack__") and hasattr(given, "__float__"):
            number(call, field, given)
        elif isinstance(given, DeviceArray) or hasattr(given, "__dlpack__"):
            array(call, field, given)
        else:
            raise TypeError(f"{field}: a {type(given).__name__}; accepted: a number, or an array of one element in fp32")

    return put


def _one_of(words: str) -> dict[Any, int]:
    return {None if word == "None" else word: place for place, word in enumerate(words.split())}


def words_of(family: str, field: str) -> dict[Any, int]:
    """What a field of some words may be."""
    return next(_one_of(how.removeprefix("one of ")) for kind, _, told, how, _ in _wavejit.call_fields() if (kind, told) == (family, field))


def _setter(c_name: str, how: str) -> Setter:
    if how == "number":
        return _number(c_name)
    kind, _, words = how.partition(" of ")
    if kind == "one":
        return _words(c_name, _one_of(words), chosen)
    if kind == "some":
        return _words(c_name, {word: 1 << place for place, word in enumerate(words.split())}, some_of)
    return _array(c_name, how)


# By the family: what C calls a call's fields, by Python's names; and what sets those that an argument sets by itself.
C_NAMES: dict[str, dict[str, str]] = {}
SETTERS: dict[str, dict[str, Setter]] = {}
for _kind, _field, _told, _how, _ in _wavejit.call_fields():
    C_NAMES.setdefault(_kind, {"outs": "parts[0].o", "lses": "parts[0].lse"}).setdefault(_told, _field)
    if _how:
        _of_family = SETTERS.setdefault(_kind, {})
        _of_family[_told] = _either(_setter(_field, _how), _of_family[_told]) if _told in _of_family else _setter(_field, _how)


def moved(family: str, *without: str) -> tuple[str, ...]:
    """Fields that launch_over moves, but for some, by Python's names."""
    return tuple([told for kind, _, told, _, moves in _wavejit.call_fields() if kind == family and moves and told not in without])


def types_of(family: str) -> dict[str, str]:
    """What rows tell of arrays: "fp32", "int32" or "bool", by Python's names."""
    return {told: how.partition(" ")[0] for kind, _, told, how, _ in _wavejit.call_fields() if kind == family and how.endswith("]")}


Given = ParamSpec("Given")


def keeps_words(make: Callable[Given, None]) -> Callable[Given, None]:
    """An `__init__` whose arguments that are given by name are kept for `_set`."""

    @functools.wraps(make)
    def made(*given: Given.args, **words: Given.kwargs) -> None:
        given[0]._words = words  # type: ignore[attr-defined]
        make(*given, **words)

    return made


class Fields:
    """A call's arguments on their way into the struct of wavejit.h."""

    _engine: OpenedDevice
    _call: _wavejit.NativeCall
    _stream: int
    _words: dict[str, Any]

    def __init__(self) -> None:
        family = type(self._call).__name__
        self._setters = SETTERS[family]
        self._c_names = C_NAMES[family]
        self._arrays: list[DeviceArray] = []
        self._written: list[list[int | None]] = []
        self._borrows = False
        self._copies_back: list[tuple[numpy.ndarray, DeviceArray]] = []
        # Which dimension of the caller's each of C's four is, where that is another one; None: none of them.
        self._dimensions: dict[str, tuple[int | None, ...]] = {}
        self._counts: dict[str, int] = {}

    def _set(self, **counts: int) -> None:
        """Everything that an argument says by itself: what rows set, the mask, the workspace, the flags. `counts`: of axes that must be so long."""
        self._counts = counts
        setters = self._setters
        for field, given in self._words.items():
            if given is not None:
                put = setters.get(field)
                if put is not None:
                    put(self, field, given)
        get = self._words.get
        self._mask()
        workspace = get("workspace")
        if workspace is not None:
            self._give_workspace(workspace)
        bits = 0
        if not _OF_FLAGS.isdisjoint(self._words):
            for field, accepted in FLAGS.items():
                if field in self._words:
                    bits |= chosen(field, self._words[field], accepted)
            bits |= some_of("hints", get("hints", ()), HINTS)
        scale = get("scale")
        if scale is not None and scale == 0:
            bits |= SCALE_IS_ZERO
        if bits:
            self._call.set_number("flags", bits)

    def _tensor(self, field: str, given: Any, dtype: DType | None, *, shape: str, dimensions: tuple[int, ...], row_multiple: int = 1, output: bool = False,
                lead: bool = True, order: Callable[[str, DeviceArray], Order] | None = None, places: tuple[int | None, ...] | None = None,
                accepted: Sequence[DType] = _dtypes.ELEMENTS) -> DeviceArray:
        """A tensor of 4 dimensions from one of `dimensions`, which is filled up with ones: in front, or behind. Or what `order`
        makes of it: sizes and strides; then `places` says which dimension of the array's each of them is."""
        array, host = _arrays.on_device(self._engine, given, field, self._stream, dtype, row_multiple=row_multiple, accepted=accepted)
        if array.ndim not in dimensions:
            raise InvalidArgument(f"{field}: shape {array.shape}; accepted: {shape}")
        self._take(array)
        if output:
            self._write(field, array, host)
        missing = 4 - array.ndim
        ones = (1,) * missing
        sizes, strides = array.shape, array.strides
        wide = (*ones, *sizes) if lead else (*sizes, *ones)
        steps = (*ones, *strides) if lead else (*strides, *ones)
        if order is not None:
            wide, steps = order(field, array)
        elif missing > 0 and lead:
            places = (*(None,) * missing, *range(array.ndim))
        if places is not None:
            self._dimensions[field] = places
        # Without elements there is nothing to point to.
        self._call.set_tensor(self._c_names[field], array._address if array.size else 0, array._dtype.c, wide, steps)
        return array

    def _placed(self, field: str, given: Any, dtype: DType, axes: Axes) -> None:
        """A tensor whose axes a row tells."""
        array, _ = _arrays.on_device(self._engine, given, field, self._stream, dtype)
        rank = axes.ranks.get(array.ndim)
        if rank is None:
            raise InvalidArgument(f"{field}: shape {array.shape}; accepted: {axes.shape}")
        self._take(array)
        front, behind, places = rank
        before, after = (1,) * front, (1,) * behind
        self._dimensions[field] = places
        self._call.set_tensor(self._c_names[field], array._address if array.size else 0, dtype.c, (*before, *array.shape, *after), (*before, *array.strides, *after))

    def _side_by_side(self, field: str, given: Any, dtype: DType, axis: str, c_name: str, count: int | None = None) -> DeviceArray:
        """Numbers on the device, as many as `axis` says. Host numbers are copied there, whatever the device."""
        if dtype is _dtypes.INT8:
            if not hasattr(given, "dtype"):
                import numpy

                given = numpy.asarray(given, bool)
            given = _as_int8(given)
        array, _ = _arrays.on_device(self._engine, given, field, self._stream, dtype, copies=True)
        if axis == "1":
            if array.size != 1:
                raise InvalidArgument(f"{field}: shape {array.shape}; accepted: one element")
        else:
            count = self._counts.get(axis, count)
            if array.ndim != 1 or (count is not None and array.shape[0] != count):
                raise InvalidArgument(f"{field}: shape {array.shape}; accepted: [{axis}]" + ("" if count is None else f", which is [{count}]"))
            if not array._is_dense():
                raise InvalidArgument(f"{field}: strides {array.strides}; accepted: numbers side by side")
        self._take(array)
        self._call.set_address(c_name, array._address)
        return array

    def _numbers(self, field: str, given: Any, count: int | None, what: str) -> DeviceArray | None:
        """int32 on the device, `count` of them side by side."""
        return None if given is None else self._side_by_side(field, given, _dtypes.INT32, what, self._c_names[field], count)

    def _int32(self, field: str, given: Any) -> DeviceArray:
        """int32 of any shape, and no other type. Host numbers are copied to the device."""
        kind = str(getattr(given, "dtype", "int32")).removeprefix("torch.")
        if kind != "int32":
            raise InvalidArgument(f"{field}: dtype {kind}; accepted: int32")
        array, _ = _arrays.on_device(self._engine, given, field, self._stream, _dtypes.INT32, copies=True)
        self._take(array)
        return array

    def _take(self, array: DeviceArray) -> None:
        # An array of its own: free() on the caller's leaves this one alone.
        self._arrays.append(array._view(array._address, array._shape, array._strides))
        self._borrows = self._borrows or not isinstance(array._memory, _wavejit.DeviceMemory)

    def _write(self, field: str, array: DeviceArray, host: numpy.ndarray | None) -> None:
        if array._read_only or (host is not None and not host.flags.writeable):
            raise InvalidArgument(f"{field}: memory for reading only; accepted: memory that may be written")
        self._written.append(array._written)
        if host is not None:
            self._copies_back.append((host, array))

    def _mask(self) -> None:
        words = self._words
        if _OF_MASKS.isdisjoint(words):
            return
        causal = words.get("causal", False)
        mask = CAUSAL if causal is not False and yes("causal", causal) else 0
        window = words.get("window")
        if window is not None:
            if not isinstance(window, (tuple, list)) or len(window) != 2:
                raise InvalidArgument(f"window = {window}; accepted: (left, right), each a number of keys, or None for no limit")
            if not all(side is None or (hasattr(side, "__index__") and -1 <= operator.index(side) <= MOST_KEYS) for side in window):
                raise InvalidArgument(f"window = {tuple(window)}; accepted: (left, right), each an integer from 0 to {MOST_KEYS}, or None for no limit")
            mask |= WINDOW
            for field, side in zip(("window_left", "window_right"), window):
                self._call.set_number(field, -1 if side is None else side)
        for field, bit in _NUMBERED.items():
            given = words.get(field)
            if given is not None:
                mask |= bit
                self._call.set_number(field, given)
        if mask:
            self._call.set_number("mask", mask)

    def _give_workspace(self, workspace: DeviceArray) -> None:
        if not isinstance(workspace, DeviceArray):
            raise TypeError(f"workspace: a {type(workspace).__name__}; accepted: a DeviceArray")
        workspace._require("workspace")
        if not workspace._is_dense() or workspace._read_only:
            raise InvalidArgument(f"workspace: strides {workspace.strides}; accepted: a dense array that may be written")
        self._take(workspace)
        self._call.set_address("workspace", workspace._address)
        self._call.set_number("workspace_bytes", workspace.nbytes)

    def _in_callers_dimensions(self, detail: str) -> str:
        """C's tensors have four dimensions; the caller's array may have fewer, and is told by its own."""

        def place(found: re.Match[str]) -> str:
            dimension = self._dimensions.get(found[1], (0, 1, 2, 3))[int(found[3])]
            return found[0] if dimension is None else f"{found[1]}.{found[2]}[{dimension}]"

        return _DIMENSION.sub(place, detail) if self._dimensions else detail


_DIMENSION = re.compile(r"(?<![\w.])([a-z_]+(?:\[\d\])?)\.(sizes|strides)\[(\d)\]")
