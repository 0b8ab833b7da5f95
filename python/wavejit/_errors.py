# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Exceptions: one class a status of wavejit.h, all of them `wavejit.Error`."""
from __future__ import annotations

import re
from collections.abc import Mapping


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


def error_of(status: int, detail: str) -> Error:
    """The exception of a status. One that a later library has and this list has not is an `Error`."""
    return _CLASSES.get(status, Error)(detail, status)


# Words of the engine's that a sentence has behind its first one, and that mean nothing else there.
_UNMISTAKABLE = r"(?:query_starts|key_starts|key_lengths|first_keys|block_table|table_starts|max_query_length|max_key_length|max_total_keys)"
_WORDS = re.compile(rf"^[a-z_]+|\b{_UNMISTAKABLE}\b|\b[a-z_]+(?=\.sizes\[)")


def in_callers_words(error: Error, names: Mapping[str, str]) -> Error:
    """The same refusal by the names that a function's callers know: `names` has them, by the engine's."""
    detail = _WORDS.sub(lambda found: names.get(found[0], found[0]), error.detail)
    return error if detail == error.detail else type(error)(detail, error.status)
