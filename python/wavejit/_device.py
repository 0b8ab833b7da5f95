# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a device's name says: whether it is simulated, and its number for DLPack."""
from __future__ import annotations

import os

from ._errors import InvalidArgument

# kDLCPU, kDLCUDAHost, kDLROCM, kDLROCMHost
HOST_DEVICES = (1, 3, 11)
ROCM = 10
NAMES = {1: "cpu", 2: "cuda", 3: "cuda_host", 4: "opencl", 7: "vulkan", 8: "metal", 10: "rocm", 11: "rocm_host", 13: "cuda_managed", 14: "oneapi"}


def chosen(device: str | None) -> str:
    """The device that an engine opens: the option, else WAVEJIT_DEVICE, else "hip"."""
    return device or os.environ.get("WAVEJIT_DEVICE") or "hip"


def is_simulated(device: str) -> bool:
    return device.startswith("sim:")


def ordinal(device: str) -> int:
    """The number in "hip:1" and "sim:gfx950x8:1"; 0 without one."""
    parts = device.split(":")[2 if is_simulated(device) else 1 :]
    return int(parts[0]) if parts and parts[0].isdigit() else 0


def stream_number(stream: object) -> int:
    """A hipStream_t as a number. None and 0 are the default stream; torch's streams have theirs in `cuda_stream`, CuPy's in `ptr`."""
    if stream is None:
        return 0
    number = getattr(stream, "cuda_stream", getattr(stream, "ptr", stream))
    if isinstance(number, bool) or not isinstance(number, int):
        raise TypeError(f"stream: a {type(stream).__name__}; accepted: None, a hipStream_t as an int, or an object with cuda_stream or ptr")
    if number < 0 or number in (1, 2):
        raise InvalidArgument(f"stream = {number}; accepted: None or 0 (the default stream), or a hipStream_t")
    return number
