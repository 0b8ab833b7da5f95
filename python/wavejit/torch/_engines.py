# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which engine a tensor's device has: one each, made when the first tensor of it comes, or given with `use`."""
from __future__ import annotations

import threading

import torch

from .. import _device
from .._engine import Engine
from .._errors import InvalidArgument, NoDevice

# Read without the lock: a dict's lookup is whole.
_of: dict[torch.device, Engine] = {}
_lock = threading.Lock()
# torch on ROCm calls its devices "cuda"; tensors from ROCm capsules are on "hip" where torch was built for CUDA.
ROCM_TYPES = ("cuda", "hip")


def use(given: Engine | str) -> Engine:
    """From now on tensors of this device go through this engine. Returns it.

    given
        An engine, or a device's name: "hip:1" for ROCm tensors, which are on the engine's own device; "sim:gfx950" for CPU
        tensors, which are copied in and out. An engine of your own is the way to options (a cache folder, layers, `seal`).

    Without it, ROCm tensors find the engine of their device, and CPU tensors that of WAVEJIT_DEVICE if it is simulated.

    >>> import wavejit.torch
    >>> wavejit.torch.use("sim:gfx950")
    wavejit.Engine('sim:gfx950')
    """
    if not isinstance(given, (Engine, str)):
        raise TypeError(f"engine: a {type(given).__name__}; accepted: a wavejit.Engine, or a device's name")
    chosen = Engine(given) if isinstance(given, str) else given
    chosen._open()
    with _lock:
        if chosen.is_simulated:
            _of[torch.device("cpu")] = chosen
            _of[torch.device("hip", chosen.ordinal)] = chosen  # tensors over the simulated device's own memory
        else:
            _of.update({torch.device(kind, chosen.ordinal): chosen for kind in ROCM_TYPES})
    return chosen


def engine(device: torch.device | str) -> Engine:
    """The engine of a torch device, made now if there is none.

    >>> import wavejit.torch
    >>> engine = wavejit.torch.use("sim:gfx950")
    >>> wavejit.torch.engine("cpu") is engine
    True
    """
    device = torch.device(device)
    if device.type in ROCM_TYPES and device.index is None:
        _check_type(device, "device")
        try:
            device = torch.device(device.type, torch.cuda.current_device() if device.type == "cuda" else 0)
        except (RuntimeError, AssertionError) as error:  # torch has no driver, or no GPU
            raise NoDevice(f"device: {device}, of which torch says: {error}") from None
    return of_device(device, "device")


def of_device(device: torch.device, field: str) -> Engine:
    found = _of.get(device)
    if found is not None:
        return found
    name = _name(device, field)
    with _lock:
        if device not in _of:
            _of[device] = Engine(name)
        return _of[device]


def _name(device: torch.device, field: str) -> str:
    if device.type == "cpu":
        name = _device.chosen(None)
        if not _device.is_simulated(name):
            raise InvalidArgument(f'{field}: a tensor on cpu, and the device is {name}; accepted: a ROCm tensor, or wavejit.torch.use("sim:gfx950") '
                                  "for CPU tensors that are copied to a simulated GPU")
        return name
    _check_type(device, field)
    return f"hip:{device.index}"


def _check_type(device: torch.device, field: str) -> None:
    if device.type not in ROCM_TYPES or (device.type == "cuda" and torch.version.hip is None):
        kind = "a PyTorch for ROCm, where this one is for CUDA" if device.type == "cuda" else "ROCm tensors, and CPU tensors with a simulated device"
        raise InvalidArgument(f"{field}: {'' if field == 'device' else 'a tensor on '}{device}; accepted: {kind}")
