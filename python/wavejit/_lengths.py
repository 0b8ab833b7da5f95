# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Starts, lengths and tables that the host knows (lists, numpy, CPU tensors): checked, which costs nothing beside copying them.

The rules are those of wavejit.h's WAVEJIT_CHECK_LENGTHS, which reads what lies on the device. None: the host does not know.
"""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from . import _dtypes, _host_elements
from ._arrays import DeviceArray
from ._errors import InvalidArgument

if TYPE_CHECKING:
    import numpy

Numbers = list[int] | None
# The most keys in pages, and so the most slots.
MOST_PAGED = 1 << 28


def known(field: str, given: Any) -> Numbers:
    """Numbers that the host can read without asking a device."""
    elements = _elements(field, given)
    return None if elements is None or elements.ndim != 1 else elements.tolist()


def _elements(field: str, given: Any) -> numpy.ndarray | None:
    if given is None or isinstance(given, DeviceArray):
        return None
    return _host_elements.elements_of(given, field, _dtypes.INT32)


def steps(starts: Numbers) -> Numbers:
    return None if starts is None else [after - before for before, after in zip(starts, starts[1:])]


def _refused(field: str, index: int, number: int, accepted: str) -> InvalidArgument:
    return InvalidArgument(f"{field}[{index}] = {number}; accepted: {accepted}")


def _up_to(least: int, most: int) -> str:
    return f"{least} … {most}" if most > least else str(least)


def check_starts(field: str, starts: Numbers, rows: int, longest: int | None, of: str, name_of_longest: str = "") -> None:
    """Ascending from 0, within `rows`; `longest` is what the caller said that the longest sequence has."""
    if not starts:
        return
    if starts[0] != 0:
        raise _refused(field, 0, starts[0], "0")
    for index, (before, after) in enumerate(zip(starts, starts[1:]), 1):
        if not before <= after <= rows:
            raise _refused(field, index, after, f"{_up_to(before, rows)} (after {before}, and {of} has {rows} rows)")
        if longest is not None and after - before > longest:
            raise _refused(field, index, after, f"{_up_to(before, min(before + longest, rows))} (after {before}, {name_of_longest} = {longest})")


class Keys(NamedTuple):
    """How the keys of a call lie, and what the host knows of them."""

    rows: int  # of dense and packed keys: of k; of paged ones: keys of a page
    pages: int | None  # of the cache; None: no pages
    longest: int | None  # as the caller said it
    starts: Numbers
    lengths: Numbers
    firsts: Numbers


def leave_rows(field: str, starts: Any, rows: int) -> bool:
    """Whether there may be rows of a packed tensor that are no sequence's: behind the last start, which the host may not know."""
    if starts is None:
        return False
    numbers = known(field, starts)
    return numbers is None or not numbers or numbers[0] != 0 or numbers[-1] != rows


def check_keys(keys: Keys) -> None:
    if keys.pages is not None and keys.rows == 0:
        raise InvalidArgument("k: pages of 0 keys; accepted: 1 key, or multiples of 16")
    check_starts("key_starts", keys.starts, keys.rows, keys.longest, "k", "max_key_length")
    most = keys.rows if keys.pages is None else MOST_PAGED
    for index, first in enumerate(keys.firsts or ()):
        if not 0 <= first <= most:
            raise _refused("first_keys", index, first, f"0 … {most}, " + ("the slots of its pages" if keys.pages is not None else "the rows of k and v"))
    lengths_of = steps(keys.starts)
    for index, length in enumerate(keys.lengths or ()):
        most = keys.rows if keys.pages is None else MOST_PAGED
        if lengths_of is not None:
            most = lengths_of[index]
        elif keys.longest is not None:
            most = min(most, keys.longest)
        if keys.firsts is not None and keys.pages is None:
            most -= keys.firsts[index]
        if not 0 <= length <= most:
            raise _refused("key_lengths", index, length, f"{_up_to(0, most)}, the keys of the sequence")


def check_table(keys: Keys, block_table: Any, table_starts: Any, columns: int) -> None:
    """The entries that a sequence reads are pages of the cache, and there are enough of them. Others may be anything."""
    starts = known("table_starts", table_starts)
    if starts is not None:
        before = 0
        for index, start in enumerate(starts):
            if not before <= start <= columns:
                raise _refused("table_starts", index, start, _up_to(before, columns))
            before = start
    if keys.lengths is None or (table_starts is not None and starts is None):
        return
    table = _elements("block_table", block_table)
    for index, length in enumerate(keys.lengths):
        padding = 0 if keys.firsts is None or length == 0 else keys.firsts[index]
        pages = -(-(padding + length) // keys.rows)
        present = columns if starts is None else starts[index + 1] - starts[index]
        if pages > present:
            behind = f" behind first_keys = {padding}" if padding else ""
            raise _refused("key_lengths", index, length, f"{_up_to(0, max(present * keys.rows - padding, 0))}, the keys of the sequence's {present} pages{behind}")
        if table is None:
            continue
        entries = table[index, :pages] if starts is None else table[starts[index] : starts[index] + pages]
        assert keys.pages is not None
        for column, page in enumerate(entries.tolist()):
            if not 0 <= page < keys.pages:
                place = f"block_table[{index}][{column}]" if starts is None else f"block_table[{starts[index] + column}]"
                raise InvalidArgument(f"{place} = {page}; accepted: {_up_to(0, keys.pages - 1)}, the pages of the cache")
