# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What Triton's AMD driver asks of PyTorch, and no more: tensors on the current device, in memory that HIP itself hands out."""
import ctypes
import os

import numpy

HIP = ctypes.CDLL(os.environ["TRITON_LIBHIP_PATH"])
TO_DEVICE, TO_HOST = 1, 2


def called(name, *arguments):
    error = getattr(HIP, name)(*arguments)
    if error != 0:
        HIP.hipGetErrorString.restype = ctypes.c_char_p
        raise RuntimeError(f"{name}: {HIP.hipGetErrorString(error).decode()} ({error})")


class dtype:
    """Its name is what Triton reads; numpy holds the bits."""

    def __init__(self, name, held):
        self.name, self.held = name, numpy.dtype(held)

    def __str__(self):
        return f"torch.{self.name}"

    def __hash__(self):
        return hash(self.name)

    def __eq__(self, other):
        return isinstance(other, dtype) and self.name == other.name


float64, float32, float16 = dtype("float64", numpy.float64), dtype("float32", numpy.float32), dtype("float16", numpy.float16)
int64, int32, int8, uint8 = dtype("int64", numpy.int64), dtype("int32", numpy.int32), dtype("int8", numpy.int8), dtype("uint8", numpy.uint8)
bfloat16 = dtype("bfloat16", numpy.uint16)
float8_e4m3fn, float8_e5m2 = dtype("float8_e4m3fn", numpy.uint8), dtype("float8_e5m2", numpy.uint8)
float8_e4m3fnuz, float8_e5m2fnuz = dtype("float8_e4m3fnuz", numpy.uint8), dtype("float8_e5m2fnuz", numpy.uint8)


class Tensor:
    """Rows one after another, in memory of its own that frees itself."""

    def __init__(self, shape, kind):
        self.shape, self.dtype = tuple(shape), kind
        self.bytes = int(numpy.prod(self.shape)) * kind.held.itemsize
        self.address = ctypes.c_void_p()
        called("hipMalloc", ctypes.byref(self.address), ctypes.c_size_t(max(self.bytes, 1)))

    def __del__(self):
        HIP.hipFree(self.address)

    def data_ptr(self):
        return self.address.value

    def element_size(self):
        return self.dtype.held.itemsize

    def ptr_range(self):
        return self.bytes

    def stride(self, dimension=None):
        strides = [1]
        for size in self.shape[:0:-1]:
            strides.insert(0, strides[0] * size)
        return tuple(strides) if dimension is None else strides[dimension]

    def held(self):
        """The bits, on the host."""
        array = numpy.empty(self.shape, self.dtype.held)
        called("hipMemcpy", array.ctypes.data_as(ctypes.c_void_p), self.address, ctypes.c_size_t(self.bytes), TO_HOST)
        return array


def from_held(array, kind):
    array = numpy.ascontiguousarray(array, kind.held)
    tensor = Tensor(array.shape, kind)
    called("hipMemcpy", tensor.address, array.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(tensor.bytes), TO_DEVICE)
    return tensor


class version:
    hip = "7.2"


class cuda:
    @staticmethod
    def is_available():
        return True

    @staticmethod
    def current_device():
        number = ctypes.c_int()
        called("hipGetDevice", ctypes.byref(number))
        return number.value

    @staticmethod
    def set_device(number):
        called("hipSetDevice", number)

    @staticmethod
    def get_device_capability(_=None):
        return (9, 4)

    class current_stream:
        cuda_stream = 0  # the default stream

        def __init__(self, _=None):
            pass

    @staticmethod
    def synchronize():
        called("hipDeviceSynchronize")
