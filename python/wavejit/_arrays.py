# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arrays in device memory: their views, and every way in and out of them."""
from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from . import _device, _dtypes, _host_elements, _wavejit
from ._dtypes import DType
from ._errors import InvalidArgument

if TYPE_CHECKING:
    import numpy
    from numpy import ndarray

    from ._opened_device import OpenedDevice


def dense_strides(shape: Sequence[int]) -> tuple[int, ...]:
    """Strides in elements of an array that lies row after row."""
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= size
    return tuple(reversed(strides))


class DeviceArray:
    """Elements in the memory of an engine's device. `Engine.array`, `Engine.empty` and `Engine.from_dlpack` make them.

    `shape` counts elements, `strides` too. Indices and slices (steps above 0), `permute` and `reshape` give views of the
    same memory. `numpy()` waits for the device and copies to the host. Libraries that read DLPack take the array as it is:
    on `hip` as a ROCm tensor, without a copy.

    The memory is given back when the last array, call and DLPack consumer of it is gone.

    >>> import numpy, wavejit
    >>> engine = wavejit.Engine("sim:gfx950")
    >>> rows = engine.array(numpy.arange(6, dtype=numpy.float32).reshape(2, 3))
    >>> rows.shape, rows.dtype, rows[1].numpy().tolist()
    ((2, 3), 'fp32', [3.0, 4.0, 5.0])
    """

    __slots__ = ("_address", "_dtype", "_engine", "_memory", "_read_only", "_shape", "_strides", "_written", "__weakref__")

    def __init__(self, engine: OpenedDevice, memory: Any, address: int, dtype: DType, shape: Sequence[int], strides: Sequence[int],
                 *, read_only: bool = False, written: list[int | None] | None = None) -> None:
        self._engine = engine
        self._memory = memory
        self._address = address
        self._dtype = dtype
        self._shape = tuple(shape)
        self._strides = tuple(strides)
        self._read_only = read_only
        # the stream of the last call that writes the memory, shared by its views; None: nothing is under way
        self._written: list[int | None] = written if written is not None else [None]

    @property
    def engine(self) -> OpenedDevice:
        return self._engine

    @property
    def shape(self) -> tuple[int, ...]:
        return self._shape

    @property
    def strides(self) -> tuple[int, ...]:
        """In elements."""
        return self._strides

    @property
    def dtype(self) -> str:
        """ "fp16", "bf16", "fp32", "int32", or of 8 bits "e4m3", "e5m2", "e4m3_fnuz", "e5m2_fnuz"."""
        return self._dtype.name

    @property
    def ndim(self) -> int:
        return len(self._shape)

    @property
    def size(self) -> int:
        return math.prod(self._shape)

    @property
    def nbytes(self) -> int:
        return self.size * self._dtype.bytes

    @property
    def data_ptr(self) -> int:
        """The device address of the first element."""
        self._require("array")
        return self._address

    @property
    def is_freed(self) -> bool:
        return self._memory is None

    def free(self) -> None:
        """Lets go of the memory now. Calls that are under way keep it; using this array from here on is an error."""
        self._memory = None

    def __repr__(self) -> str:
        state = ", freed" if self.is_freed else ""
        return f"wavejit.DeviceArray(shape={self._shape}, dtype={self.dtype}, device={self._engine.device!r}{state})"

    def __len__(self) -> int:
        if not self._shape:
            raise TypeError("an array without dimensions has no length")
        return self._shape[0]

    def _require(self, field: str) -> None:
        if self._memory is None:
            raise InvalidArgument(f"{field}: a freed array; accepted: one whose free() was not called")

    def _view(self, address: int, shape: Sequence[int], strides: Sequence[int]) -> DeviceArray:
        return DeviceArray(self._engine, self._memory, address, self._dtype, shape, strides, read_only=self._read_only, written=self._written)

    def _is_dense(self) -> bool:
        return self.size == 0 or all(size == 1 or stride == dense for size, stride, dense in zip(self._shape, self._strides, dense_strides(self._shape)))

    # ---- views

    def __getitem__(self, index: Any) -> DeviceArray:
        """A view: integers, slices with steps above 0, `...` and None."""
        self._require("array")
        items = list(index) if isinstance(index, tuple) else [index]
        taken = sum(item is not None and item is not Ellipsis for item in items)
        if taken > self.ndim or sum(item is Ellipsis for item in items) > 1:
            raise IndexError(f"index {index}: the array has {self.ndim} dimensions")
        if not any(item is Ellipsis for item in items):
            items.append(Ellipsis)
        offset, shape, strides, dimension = 0, [], [], 0
        for item in items:
            if item is None:
                shape.append(1)
                strides.append(1)
                continue
            if item is Ellipsis:
                rest = self.ndim - taken
                shape += self._shape[dimension : dimension + rest]
                strides += self._strides[dimension : dimension + rest]
                dimension += rest
                continue
            size, stride = self._shape[dimension], self._strides[dimension]
            if isinstance(item, slice):
                start, stop, step = item.indices(size)
                if step < 1:
                    raise IndexError(f"index {index}: step {step}; accepted: steps above 0")
                count = max(0, -(-(stop - start) // step))
                offset += start * stride if count else 0
                shape.append(count)
                strides.append(stride * step)
            elif hasattr(item, "__index__"):
                at = item.__index__()
                if not -size <= at < size:
                    raise IndexError(f"index {at} of dimension {dimension}, which has {size}")
                offset += at % size * stride
            else:
                raise TypeError(f"index: a {type(item).__name__}; accepted: integers, slices, ... and None")
            dimension += 1
        return self._view(self._address + offset * self._dtype.bytes, shape, strides)

    def permute(self, *dimensions: int) -> DeviceArray:
        """The dimensions in another order: a BHSD array is `permute(0, 2, 1, 3)` of what a call takes (BSHD)."""
        self._require("array")
        if sorted(dimensions) != list(range(self.ndim)):
            raise InvalidArgument(f"permute{dimensions}; accepted: each of 0 … {self.ndim - 1} once")
        return self._view(self._address, [self._shape[i] for i in dimensions], [self._strides[i] for i in dimensions])

    def reshape(self, *shape: int) -> DeviceArray:
        """Another shape of as many elements, of an array that lies row after row."""
        self._require("array")
        if math.prod(shape) != self.size or any(size < 0 for size in shape):
            raise InvalidArgument(f"reshape{shape} of {self._shape}; accepted: sizes whose product is {self.size}")
        if not self._is_dense():
            raise InvalidArgument(f"reshape{shape}: strides {self._strides} do not lie row after row; accepted: a dense array")
        return self._view(self._address, shape, dense_strides(shape))

    # ---- the host

    def numpy(self, dtype: Any = None) -> ndarray:
        """A copy in host memory, once the device has done all its work.

        bf16 becomes ml_dtypes' bfloat16 if that is installed. Without it: `numpy("float32")` widens exactly,
        `numpy("uint16")` gives the bits. Floats of 8 bits likewise, with `numpy("uint8")`.
        """
        import numpy

        self._require("array")
        wanted = None if dtype is None else numpy.dtype(dtype)
        foreign = self._dtype is _dtypes.BF16 or self._dtype in _dtypes.EIGHT_BITS
        if wanted is None and foreign:
            wanted = _of_ml_dtypes(self._dtype)
            if wanted is None:
                raise InvalidArgument(f'numpy(): numpy has no {self.dtype} without ml_dtypes; accepted: numpy("float32"), numpy("{self._dtype.host}")')
        bits = self._host_elements()
        if wanted is None or wanted == bits.dtype:
            return bits
        if foreign:
            if wanted.name in self._dtype.aliases:
                return bits.view(wanted)
            bits = (bits.astype(numpy.uint32) << 16).view(numpy.float32) if self._dtype is _dtypes.BF16 else _dtypes.widened(bits, self._dtype)
        return bits.astype(wanted)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> ndarray:
        if copy is False:
            raise ValueError("device memory is always copied to become a numpy array")
        return self.numpy(dtype)

    def _host_elements(self) -> ndarray:
        """In the type that numpy has for them."""
        import numpy

        self._engine.synchronize()
        if self.size == 0:
            return numpy.empty(self._shape, self._dtype.host)
        if not isinstance(self._memory, _wavejit.DeviceMemory):
            raise InvalidArgument("numpy(): memory of another library, taken through DLPack; accepted: that library's own way to the host")
        # What lies between the first and the last element, in one copy.
        span = 1 + sum((size - 1) * stride for size, stride in zip(self._shape, self._strides))
        flat = numpy.empty(span, self._dtype.host)
        self._memory.copy_out(self._address - self._memory.address, flat)
        bytes_of = [stride * self._dtype.bytes for stride in self._strides]
        return numpy.lib.stride_tricks.as_strided(flat, self._shape, bytes_of).copy()

    def copy_from(self, host: Any) -> None:
        """Fills a dense array from numpy or from a DLPack tensor in host memory, of the same shape and type."""
        self._require("array")
        elements = _host_elements.elements_of(host, "host", self._dtype)
        if elements is None:
            raise TypeError(f"host: a {type(host).__name__}; accepted: a numpy array, a DLPack tensor in host memory")
        if elements.shape != self._shape or not self._is_dense() or self._read_only or not isinstance(self._memory, _wavejit.DeviceMemory):
            raise InvalidArgument(f"host: shape {elements.shape} into {self._shape}; accepted: the same shape, into a dense array of wavejit's own")
        _copy_in(self, elements)

    # ---- DLPack

    def __dlpack_device__(self) -> tuple[int, int]:
        return _device.ROCM, self._engine.ordinal

    def __dlpack__(self, *, stream: int | None = None, max_version: tuple[int, int] | None = None,
                   dl_device: tuple[int, int] | None = None, copy: bool | None = None) -> Any:
        """A capsule for another library. `stream` is the consumer's: what was launched is seen by its work.

        `dl_device=(1, 0)` asks for a copy in host memory.
        """
        self._require("array")
        versioned = max_version is not None and max_version[0] >= 1
        if dl_device is not None and tuple(dl_device) == (1, 0):
            if copy is False:
                raise BufferError("device memory comes to the host as a copy only")
            host = self._host_elements()
            return _wavejit.export_dlpack(host, host.ctypes.data, self._dtype.code, self._dtype.bits, list(host.shape),
                                          list(dense_strides(host.shape)), 1, 0, versioned)
        if dl_device is not None and tuple(dl_device) != self.__dlpack_device__():
            raise BufferError(f"dl_device = {tuple(dl_device)}; accepted: {self.__dlpack_device__()}, or (1, 0) for a copy in host memory")
        if copy:
            raise BufferError("copy=True is not done on the device; dl_device=(1, 0) copies to the host")
        if self._read_only:
            raise BufferError("memory that was lent for reading only is not lent on")
        # -1: the consumer does not want to wait. The same stream is in order anyway.
        if stream != -1 and self._written[0] is not None and self._written[0] != (stream or 0):
            self._engine.synchronize()
        return _wavejit.export_dlpack(self._memory, self._address, self._dtype.code, self._dtype.bits, list(self._shape),
                                      list(self._strides), _device.ROCM, self._engine.ordinal, versioned)


def _of_ml_dtypes(dtype: DType) -> Any:
    import numpy

    try:
        import ml_dtypes  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        return None
    return numpy.dtype(getattr(ml_dtypes, dtype.aliases[0]))


def allocate(engine: OpenedDevice, shape: Sequence[int], dtype: DType) -> DeviceArray:
    try:
        sizes = [operator.index(size) for size in shape]
    except TypeError:
        raise TypeError(f"shape: {shape!r}; accepted: a sequence of integers") from None
    if any(size < 0 for size in sizes):
        raise InvalidArgument(f"shape = {tuple(sizes)}; accepted: sizes of 0 or more")
    memory = _wavejit.DeviceMemory(engine._open(), math.prod(sizes) * dtype.bytes)
    return DeviceArray(engine, memory, memory.address, dtype, sizes, dense_strides(sizes))


def allocate_output(engine: OpenedDevice, shape: Sequence[int], dtype: DType, unwritten: float | None, row_multiple: int = 1) -> DeviceArray:
    """`unwritten`: what stands in rows that no launch writes, since they are no sequence's; None: there is no such row. Rows of the last
    dimension begin at multiples of `row_multiple` elements."""
    if shape[-1] % row_multiple:
        padded = (*shape[:-1], -(-shape[-1] // row_multiple) * row_multiple)
        return allocate_output(engine, padded, dtype, unwritten)[..., : shape[-1]]
    if unwritten is None:
        return allocate(engine, shape, dtype)
    import numpy

    return upload(engine, numpy.full(tuple(shape), unwritten, dtype.host), dtype)


def _copy_in(array: DeviceArray, elements: numpy.ndarray) -> None:
    import numpy

    if elements.size:
        array._memory.copy_in(array._address - array._memory.address, numpy.ascontiguousarray(elements).reshape(-1))


def upload(engine: OpenedDevice, elements: numpy.ndarray, dtype: DType, row_multiple: int = 1) -> DeviceArray:
    """A copy on the device. Rows of the last dimension begin at multiples of `row_multiple` elements."""
    import numpy

    shape = elements.shape
    if shape and shape[-1] % row_multiple:
        padded = numpy.zeros((*shape[:-1], -(-shape[-1] // row_multiple) * row_multiple), elements.dtype)
        padded[..., : shape[-1]] = elements
        return upload(engine, padded, dtype)[..., : shape[-1]]
    array = allocate(engine, shape, dtype)
    _copy_in(array, elements)
    return array


def _one_of(field: str, kind: DType, accepted: Sequence[DType]) -> None:
    if kind not in accepted:
        raise InvalidArgument(f"{field}: dtype {kind.name}; accepted: {_dtypes.names_of(accepted)}")


def borrow(engine: OpenedDevice, given: Any, field: str, stream: int, accepted: Sequence[DType] = _dtypes.ALL) -> DeviceArray:
    """A tensor of another library on the engine's device, without a copy."""
    kind, number = (int(part) for part in given.__dlpack_device__())
    if kind != _device.ROCM:
        name = _device.NAMES.get(kind, f"device type {kind}")
        raise InvalidArgument(f"{field}: a tensor on {name}:{number}; accepted: rocm:{engine.ordinal}" + (", or host memory" if engine.is_simulated else ""))
    if number != engine.ordinal:
        raise InvalidArgument(f"{field}: a tensor on rocm:{number}; accepted: rocm:{engine.ordinal}, the engine's device")
    tensor = _wavejit.BorrowedTensor(_host_elements.capsule(given, field, stream))
    if tuple(tensor.device) != (kind, number):
        raise InvalidArgument(f"{field}: its capsule is on device {tuple(tensor.device)}, but it says {(kind, number)}; accepted: the same device")
    dtype = _dtypes.of_dlpack(*tensor.dtype, field, accepted)
    return DeviceArray(engine, tensor, tensor.address, dtype, tensor.shape, tensor.strides, read_only=tensor.read_only)


def on_device(engine: OpenedDevice, given: Any, field: str, stream: int, dtype: DType | None = None, *, row_multiple: int = 1,
              copies: bool | None = None, accepted: Sequence[DType] = _dtypes.ALL) -> tuple[DeviceArray, numpy.ndarray | None]:
    """What a call gets for an argument, and the host elements that it is a copy of.

    `dtype`: what it must have; None: one of `accepted`. `copies`: whether host memory may be copied; None: on simulated devices only.
    """
    if dtype is not None:
        accepted = (dtype,)
    if isinstance(given, DeviceArray):
        given._require(field)
        if given._engine is not engine and (given._engine.is_simulated, given._engine.target, given._engine.ordinal) != (engine.is_simulated, engine.target, engine.ordinal):
            raise InvalidArgument(f"{field}: an array on {given._engine.device}; accepted: {engine.device}, the engine's device")
        _one_of(field, given._dtype, accepted)
        return given, None
    found = _host_elements.typed_elements_of(given, field, dtype, accepted)
    if found is not None:
        if dtype is _dtypes.INT64:
            accepted = (_dtypes.INT32, _dtypes.INT64)
        if not (engine.is_simulated if copies is None else copies):
            raise InvalidArgument(f"{field}: in host memory, and the device is {engine.device}; accepted: a tensor on the device (engine.array copies one there)")
        elements, kind = found
        _one_of(field, kind, accepted)
        return upload(engine, elements, kind, row_multiple), elements
    if not hasattr(given, "__dlpack__") or not hasattr(given, "__dlpack_device__"):
        raise TypeError(f"{field}: a {type(given).__name__}; accepted: a DeviceArray, a numpy array, a tensor with __dlpack__")
    array = borrow(engine, given, field, stream, accepted)
    _one_of(field, array._dtype, accepted)
    return array, None
