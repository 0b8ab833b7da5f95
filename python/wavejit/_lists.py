# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lists of key blocks, as arguments of a call (docs/sparse.md)."""
from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from . import _fields
from ._errors import InvalidArgument

if TYPE_CHECKING:
    from ._arrays import DeviceArray
    from ._calls import Call


@dataclass(frozen=True, kw_only=True)
class BlockLists:
    """Which blocks of keys the blocks of query rows see. All arrays are int32.

    `indices` [batch or 1, heads or 1, row blocks, room] are numbers of key blocks, ascending in a list, and `counts` [batch or 1,
    heads or 1, row blocks] how many of each list count; without counts all do, and −1 is none. With `starts` [lists + 1] the lists
    stand one after the other in `indices` [entries], and `shape` is (batch or 1, heads or 1, row blocks).

    Rows see of these blocks what the mask shows. `full_indices`, `full_counts` and `full_starts` are the same of blocks that they
    see whole. `rows` and `keys` of a block are 64 or 128. `alike` is a hint that shows in no bit: neighbouring lists share most
    of their blocks.

    >>> import numpy, wavejit
    >>> engine = wavejit.Engine("sim:gfx950")
    >>> q = k = v = numpy.ones((1, 128, 1, 64), numpy.float16)
    >>> indices = numpy.array([0, 1, 1, 0], numpy.int32).reshape(1, 1, 2, 2)
    >>> lists = wavejit.BlockLists(indices=indices, counts=numpy.array([[[2, 1]]], numpy.int32))
    >>> out, lse = engine.attention_forward(q, k, v, lists=lists, lse=True)
    >>> [round(float(lse.numpy()[0, 0, row] - 8), 3) for row in (0, 127)]    # ln 128, ln 64
    [4.852, 4.159]
    """

    indices: Any = None
    counts: Any = None
    starts: Any = None
    full_indices: Any = None
    full_counts: Any = None
    full_starts: Any = None
    rows: int = 64
    keys: int = 64
    shape: tuple[int, int, int] | None = None
    alike: bool = False


def set_lists(call: Call, lists: BlockLists) -> None:
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
        entries = _int32(call, f"lists.{kind}indices", indices, 1 if starts is not None else 4, "entries" if starts is not None
                         else "batch or 1, heads or 1, row blocks, room")
        call._call.set_number(f"{kind or 'list_'}capacity", entries.shape[-1])
        if starts is not None:
            if shape is None:
                raise InvalidArgument("lists: starts without shape; accepted: shape=(batch or 1, heads or 1, row blocks)")
            call._numbers(f"lists.{kind}starts", starts, shape[0] * shape[1] * shape[2] + 1, "lists + 1")
            continue
        shape = shape or entries.shape[:3]
        if entries.shape[:3] != tuple(shape):
            raise InvalidArgument(f"lists.{kind}indices: shape {entries.shape}; accepted: {[*shape, 'room']}")
        if counts is not None:
            numbers = _int32(call, f"lists.{kind}counts", counts, 3, "batch or 1, heads or 1, row blocks")
            if numbers.shape != tuple(shape):
                raise InvalidArgument(f"lists.{kind}counts: shape {numbers.shape}; accepted: {[*shape]}")
    if lists.indices is None and lists.full_indices is None or shape is None:
        raise InvalidArgument("lists: neither indices nor full_indices; accepted: one of them, or both")
    for field, number in (("list_batches", shape[0]), ("list_heads", shape[1]), ("list_row_blocks", shape[2]), ("list_rows", lists.rows),
                          ("list_keys", lists.keys)):
        call._call.set_number(field, number)


def _int32(call: Call, field: str, given: Any, dimensions: int, what: str) -> DeviceArray:
    array = call._int32(field, given)
    if array.ndim != dimensions or not array._is_dense():
        raise InvalidArgument(f"{field}: shape {array.shape}, strides {array.strides}; accepted: [{what}], dense")
    call._call.set_address(call._c_names[field], array._address)
    return array
