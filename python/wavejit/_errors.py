# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Exceptions: one class a status of wavejit.h, all of them `wavejit.Error`."""
from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping

from . import _wavejit

class Error(RuntimeError):
    """What wavejit refuses or fails at.

    The text names the field, its value and what would do. `status` is the number of wavejit.h, `detail` the text.

    >>> import wavejit
    >>> try:
    ...     wavejit.explain("attention_forward bf16 b1", target="gfx950")
    ... except wavejit.Error as error:
    ...     print(type(error).__name__, error.status)
    InvalidArgument 1
    """

    status: int = 11
    detail: str
    _in_c: str | None = None  # the text as the C interface had it

    def __init__(self, detail: str, status: int | None = None) -> None:
        super().__init__(detail)
        self.detail = detail
        if status is not None:
            self.status = status


class InvalidArgument(Error, ValueError):
    """A field of the call cannot be right, whatever the device."""

    status = 1


class Unsupported(Error, NotImplementedError):
    """Right, but no kernel of this version and target does it."""

    status = 2


class NoDevice(Error):
    """The device asked for is not there."""

    status = 3


class CompileFailed(Error):
    """The compiler refused, crashed (contained) or ran out of time."""

    status = 4


class NoCompiler(Error):
    """The kernel is not in the cache, and there is no compiler."""

    status = 5


class LaunchFailed(Error):
    """HIP refused to load or launch; the detail has HIP's error."""

    status = 6


class OutOfMemory(Error, MemoryError):
    """Neither the device nor the host has so much memory."""

    status = 7


class IoError(Error):
    """A file that the caller named. The cache never fails a call."""

    status = 8


class NotFound(Error, LookupError):
    """What was asked for is not there."""

    status = 9


class DeviceError(Error):
    """A HIP call other than a launch failed, or an earlier kernel did."""

    status = 10


class Internal(Error):
    """A mistake of wavejit's own."""

    status = 11


class NotReady(Error):
    """The kernel is not loaded and cannot be now: the stream is being captured, or the call says compile="never"."""

    status = 12


class Sealed(Error):
    """The kernel is not loaded and the engine is sealed; the detail has the line to prebuild."""

    status = 13


_CLASSES: dict[int, type[Error]] = {
    kind.status: kind
    for kind in (
        InvalidArgument, Unsupported, NoDevice, CompileFailed, NoCompiler, LaunchFailed, OutOfMemory, IoError, NotFound,
        DeviceError, Internal, NotReady, Sealed,
    )
}  # fmt: skip


# Where the C call and the Python one have different names. What of a list's numbers C has apart stands in the list's shape here.
_PYTHON_NAMES = {field: told for _, field, told, _, _ in _wavejit.call_fields() if told != field and "[" not in field}
# "o" and "sink" are words of other sentences, too: a field stands in front, or has a part behind it.
_UNMISTAKABLE_IN_C = [name for name in _PYTHON_NAMES if "_" in name]
_C_FIELDS = re.compile(rf"(?<![\w.'=])(?:(?:{'|'.join(_UNMISTAKABLE_IN_C)})\b(?!=)|(?:o|sink)(?=\.(?:sizes|strides|dtype|data)\b)|^(?:o|sink)(?= = |: ))")
_PARTS = re.compile(r"\bparts\[(\d)\]\.(o|lse)\b")
_KINDS = {bit: (word, keyword) for bit, word, keyword in _wavejit.mask_kinds()}
_MASKS = {1: "causal", 2: "window", 4: "causal_prefix", **{bit: keyword for bit, (_, keyword) in _KINDS.items()}}
_MASK_WORDS = re.compile(rf"\b({'|'.join(map(str, _MASKS))}) \((?:{'|'.join(('causal', 'window', 'prefix', *(word for word, _ in _KINDS.values())))})\)")
_HINTS = {bit: word for word, bit in _wavejit.hints()}
_FLAG_OF_LISTS = re.compile(rf"^flags = \d+; accepted: ({'|'.join(map(str, _HINTS))}) \([^)]*\)")
_FLAGS_IN_C = (("flags = WAVEJIT_BIAS_BY_TILE", "bias_by_tile = True"), ("flags = WAVEJIT_CHECK_LENGTHS", "check_lengths = True"),
               ("accepted there: 0", "accepted there: False"), (" (0 with WAVEJIT_SCALE_IS_ZERO in flags)", ""))
_DTYPES = re.compile(r"\b\d \((fp16|bf16|fp32|e4m3|e5m2|e4m3_fnuz|e5m2_fnuz|int8)\)")


def in_pythons_words(detail: str) -> str:
    """What the C interface says of a call's fields, by Python's names, and without addresses where it matters only that something is given."""
    detail = _PARTS.sub(lambda found: f"{'outs' if found[2] == 'o' else 'lses'}[{found[1]}]", detail)
    detail = _C_FIELDS.sub(lambda found: _PYTHON_NAMES[found[0]], detail)
    detail = re.sub(r"^([\w.\[\]]+?)(?:\.data)? = 0x[0-9a-f]+(?=; accepted: null\b)", r"\1: given", detail)
    detail = re.sub(r"^([\w.\[\]]+?)(?:\.data)? = null(?=; )", r"\1: None", detail)
    detail = re.sub(r"(?<=accepted: )null\b|\bnull(?= beside\b)", "None", detail)
    detail = re.sub(r"(\b[a-z_]+)\.data\b(?! = )", r"\1", detail)
    detail = _DTYPES.sub(r"\1", detail)
    detail = re.sub(r"^(\w+)\.dtype = 0(?=; )", r"\1: None", detail)
    detail = re.sub(r"^(row_scales|sums_before|sums_behind) = (\d); accepted: 0(?: \(\w+\))?", lambda found: f"{found[1]}: given; accepted: none", detail)
    detail = _FLAG_OF_LISTS.sub(lambda found: f"hints = {_HINTS[int(found[1])]!r}; accepted: {_HINTS[int(found[1])]!r}", detail)
    for in_c, told in _FLAGS_IN_C:
        detail = detail.replace(in_c, told)
    detail = detail.replace("slots = 1", "slots = True").replace("token_scales = 1", "scales of tokens")
    mask = re.match(r"mask = (\d+); accepted: ", detail)
    if mask:
        given = [word for bit, word in _MASKS.items() if int(mask[1]) & bit]
        accepted = _MASK_WORDS.sub(lambda found: _MASKS[int(found[1])], detail[mask.end() :])
        accepted = re.sub(r"^0(?= beside)", "no mask", re.sub(r"^0 \(none\), or a sum of ", "none, or some of ", accepted))
        detail = f"{', '.join(given)}: given; accepted: {accepted}" if given else f"causal = False; accepted: {accepted}"
    return detail


def error_of(status: int, detail: str) -> Error:
    """The exception of a status that a call of the library gave. One that a later library has and this list has not is an `Error`."""
    is_of_fields = status in (InvalidArgument.status, Unsupported.status)
    error = error_of_lines(status, in_pythons_words(detail) if is_of_fields else detail)
    error._in_c = detail
    return error


def error_of_lines(status: int, detail: str) -> Error:
    """The exception of a status whose text speaks of problem descriptors: their words are those of C."""
    return _CLASSES.get(status, Error)(detail, status)


@contextlib.contextmanager
def speaking_of_lines() -> Iterator[None]:
    """What is refused inside is told in the words of problem descriptors."""
    try:
        yield
    except Error as error:
        if error._in_c is None or error._in_c == error.detail:
            raise
        raise error_of_lines(error.status, error._in_c) from None


# Words of the engine's that a sentence has behind its first one, and that mean nothing else there.
_UNMISTAKABLE = r"(?:query_starts|key_starts|key_lengths|first_keys|block_table|table_starts|max_query_length|max_key_length|max_total_keys)"
_WORDS = re.compile(rf"^[a-z_]+|\b{_UNMISTAKABLE}\b|\b[a-z_]+(?=\.sizes\[)|\b[a-z_]+(?='s\b)")
# Letters stand for nothing else in a sentence.
_LETTERS = re.compile(r"(?<![\w.'])[qkv](?![\w'=])")


def in_callers_words(error: Error, names: Mapping[str, str]) -> Error:
    """The same refusal by the names that a function's callers know: `names` has them, by the engine's."""
    detail = _WORDS.sub(lambda found: names.get(found[0], found[0]), error.detail)
    if len({names.get(letter, letter) for letter in "qkv"}) == 3:  # else one tensor has several of them
        detail = _LETTERS.sub(lambda found: names.get(found[0], found[0]), detail)
    return error if detail == error.detail else type(error)(detail, error.status)
