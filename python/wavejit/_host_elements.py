# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Elements that lie in host memory: numpy's, in lists, and in DLPack tensors of other libraries."""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from . import _device, _dtypes, _wavejit
from ._dtypes import DType
from ._errors import Error, InvalidArgument

if TYPE_CHECKING:
    import numpy

# What DLPack calls integers, by its codes.
HOST_INTEGERS = {0: "int", 1: "uint"}


def elements_of(given: Any, field: str, dtype: DType | None) -> numpy.ndarray | None:
    """What lies in host memory, in the type that numpy has for it; None: it is no array of the host's.

    `dtype` says what integers of 8 and 16 bits mean (the bits of bf16 or fp16, of e4m3 and its like).
    """
    found = typed_elements_of(given, field, dtype)
    return None if found is None else found[0]


def typed_elements_of(given: Any, field: str, dtype: DType | None, accepted: Sequence[DType] = _dtypes.ALL) -> tuple[numpy.ndarray, DType] | None:
    import numpy

    of_integers = dtype in (_dtypes.INT32, _dtypes.INT64)  # of the latter only what the former does not hold
    if isinstance(given, (list, tuple)) and of_integers:
        return _integers(given, field, dtype)
    if isinstance(given, numpy.ndarray):
        if given.dtype.byteorder == ">":
            raise InvalidArgument(f"{field}: dtype {given.dtype} in foreign byte order; accepted: the machine's own")
        if dtype is not None and given.dtype in (numpy.uint16, numpy.int16) and dtype.bits == 16:
            return given.view(dtype.host), dtype
        if dtype is not None and dtype in _dtypes.CACHES and given.dtype in (numpy.uint8, numpy.int8):
            return given.view(dtype.host), dtype
        if of_integers:
            return _integers(given, field, dtype)
        if given.dtype in (numpy.uint16, numpy.int16) and _dtypes.BF16 in accepted:
            raise InvalidArgument(f'{field}: dtype {given.dtype}; accepted: {_dtypes.names_of(accepted)} (with dtype="bf16" such numbers are its bits)')
        kind = _dtypes.named(given.dtype, field, accepted)
        _same_type(field, kind, dtype)
        return given.view(kind.host), kind
    if not hasattr(given, "__dlpack_device__") or int(given.__dlpack_device__()[0]) not in _device.HOST_DEVICES:
        return None
    tensor = _wavejit.BorrowedTensor(capsule(given, field, None))
    code, bits, lanes = tensor.dtype
    if of_integers and code in HOST_INTEGERS and lanes == 1:
        return _integers(_over(tensor, f"{HOST_INTEGERS[code]}{bits}"), field, dtype)
    if of_integers and lanes == 1:
        raise InvalidArgument(f"{field}: dtype {getattr(given, 'dtype', 'unknown')}; accepted: integers of any width")
    kind = _dtypes.of_dlpack(*tensor.dtype, field, accepted if dtype is None else (dtype,))
    _same_type(field, kind, dtype)
    return _over(tensor, kind.host), kind


def _integers(given: Any, field: str, widest: DType | None) -> tuple[numpy.ndarray, DType]:
    import numpy

    try:
        wide = numpy.asarray(given)
    except ValueError as error:  # rows of different lengths
        raise InvalidArgument(f"{field}: {error}") from error
    if wide.dtype.kind not in "iu" and wide.size:
        raise InvalidArgument(f"{field}: dtype {wide.dtype}; accepted: integers of any width")
    for kind in (_dtypes.INT32, _dtypes.INT64):
        narrow = wide.astype(kind.host)
        if numpy.array_equal(narrow, wide) and not (narrow.size and wide.dtype.kind == "u" and narrow.min() < 0):
            return narrow, kind
        if kind is widest:
            break
    raise InvalidArgument(f"{field}: a number beyond {kind.name}; accepted: −2^{kind.bits - 1} … 2^{kind.bits - 1} − 1")


def _same_type(field: str, kind: DType, wanted: DType | None) -> None:
    if wanted is not None and kind is not wanted:
        raise InvalidArgument(f"{field}: dtype {kind.name}; accepted: {wanted.name}")


def _over(tensor: Any, host: str) -> numpy.ndarray:
    """A numpy array over a borrowed tensor of host memory, which it keeps."""
    import ctypes

    import numpy

    shape, element = tensor.shape, numpy.dtype(host)
    if math.prod(shape) == 0:
        return numpy.empty(shape, element)
    span = 1 + sum((size - 1) * stride for size, stride in zip(shape, tensor.strides))
    held = (ctypes.c_char * (span * element.itemsize)).from_address(tensor.address)
    held.tensor = tensor  # numpy keeps `held`
    flat = numpy.frombuffer(held, element)
    if tensor.read_only:
        flat.flags.writeable = False
    return numpy.lib.stride_tricks.as_strided(flat, shape, [stride * element.itemsize for stride in tensor.strides])


def capsule(given: Any, field: str, stream: int | None) -> Any:
    """The tensor's capsule. A device's stream is named, a host has none."""
    words = {} if stream is None else {"stream": stream}
    try:
        try:
            return given.__dlpack__(max_version=(1, 1), **words)
        except TypeError:  # from before the protocol's version 1
            return given.__dlpack__(**words)
    except Error:
        raise
    except Exception as error:
        raise InvalidArgument(f"{field}: its __dlpack__ says: {error}") from error
