# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lists of keys, one for each query or for each of its kv heads, as arguments of a call."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import _fields
from ._arrays import DeviceArray
from ._errors import InvalidArgument

if TYPE_CHECKING:
    from ._calls import Call
    from ._dtypes import DType


def set_key_lists(call: Call, queries: DeviceArray, indices: Any, counts: Any, slots: bool, kv_heads: int = 1) -> int:
    """A list of keys for each query, or one for each of its kv heads. How many lists a query has."""
    if indices is None:
        for field, given in (("counts", counts), ("slots", slots)):
            if given is not None and given is not False:
                raise InvalidArgument(f"{field} without indices; accepted: both, or neither")
        return 1
    array = call._int32("indices", indices)
    heads = kv_heads if array.ndim == 4 and kv_heads > 1 and array.shape[2] == kv_heads else 1
    if heads > 1:
        call._call.set_number("key_list_heads", heads)
    _put_lists(call, "indices", ("key_indices", "top_k", "key_indices_row_stride"), array, queries, heads)
    _put_counts(call, "counts", "key_counts", counts, queries, heads)
    call._call.set_number("key_slots", int(_fields.yes("slots", slots)))
    return heads


def set_second_list(call: Call, queries: DeviceArray, caches: dict[str, Any], indices: Any, counts: Any, heads: int, element: DType | None,
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
        call._tensor(field, given, element, shape="[pages, page size, heads, head dim]", dimensions=(4,), accepted=alike)
    array = call._int32("second_indices", indices)
    _put_lists(call, "second_indices", ("second_indices", "second_top_k", "second_indices_row_stride"), array, queries, heads)
    _put_counts(call, "second_counts", "second_counts", counts, queries, heads)


def _put_lists(call: Call, field: str, c_names: tuple[str, str, str], array: DeviceArray, queries: DeviceArray, heads: int) -> None:
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
    call._call.set_address(address, array._address)
    call._call.set_number(top_k, array.shape[-1])
    if stride is not None:
        call._call.set_number(row_stride, stride)


def _put_counts(call: Call, field: str, c_name: str, counts: Any, queries: DeviceArray, heads: int) -> None:
    if counts is None:
        return
    lists = queries.shape[0] * queries.shape[1] * heads
    numbers = call._int32(field, counts)
    size = 1
    for part in numbers.shape:
        size *= part
    if size != lists or not numbers._is_dense():
        raise InvalidArgument(f"{field}: shape {numbers.shape}, strides {numbers.strides}; accepted: [{lists}], a number for each list, side by side")
    call._call.set_address(c_name, numbers._address)
