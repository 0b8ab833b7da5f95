# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which engine computes for a device of JAX's: one each, made at the first call of a program that runs there, or given with `use`."""
from __future__ import annotations

import re
import threading

import jax

from .. import _device, _masks, _wavejit
from .._dtypes import DType
from .._engine import Engine
from .._errors import Error, InvalidArgument, NoDevice

PLATFORMS = {"cpu": "cpu", "rocm": "rocm", "gpu": "rocm"}
# sim:<target>, or a board of one's own; x<how many>; :<which>
GROUP = re.compile(r"sim:(?P<target>gfx[0-9a-f]+(?:@[0-9]+x[0-9]+)?)(?:x(?P<count>[0-9]+))?(?::(?P<ordinal>[0-9]+))?")
_of: dict[tuple[str, int], Engine] = {}
_lock = threading.Lock()


def use(given: Engine | str) -> Engine:
    """From now on programs on this device go through this engine, also those that are compiled already. Returns it.

    given
        An engine, or a device's name. "sim:gfx950" serves JAX's first CPU device, whose arrays are copied in and out;
        "sim:gfx950x2" its first two, each with a simulated GPU of its own (the engine of the first returns); "hip:1" is JAX's
        second ROCm device. An engine of your own is the way to options (a cache folder, layers, `seal`).

    Without it, ROCm devices find the engine of their number, and CPU devices that of WAVEJIT_DEVICE if it is simulated.

    >>> import wavejit.jax
    >>> wavejit.jax.use("sim:gfx950")
    wavejit.Engine('sim:gfx950')
    """
    if not isinstance(given, (Engine, str)):
        raise TypeError(f"engine: a {type(given).__name__}; accepted: a wavejit.Engine, or a device's name")
    if isinstance(given, str):
        engines = [Engine(_numbered(given, ordinal)) for ordinal in range(_count(given))] if _is_group(given) else [Engine(given)]
    else:
        engines = [given]
    for engine in engines:
        _give("cpu" if engine.is_simulated else "rocm", engine.ordinal, engine)
    return engines[0]


def engine(platform: str = "cpu", ordinal: int = 0) -> Engine:
    """The engine of a device of JAX's (`device.platform`, `device.local_hardware_id`), made now if there is none.

    >>> import wavejit.jax
    >>> engine = wavejit.jax.use("sim:gfx950")
    >>> wavejit.jax.engine("cpu") is engine
    True
    """
    if platform not in PLATFORMS:
        raise InvalidArgument(f"platform = {platform!r}; accepted: {', '.join(PLATFORMS)}")
    platform = PLATFORMS[platform]
    with _lock:
        found = _of.get((platform, ordinal))
    if found is not None and not found.is_closed:
        return found
    made = Engine(_name(platform, ordinal))
    _give(platform, ordinal, made)
    return made


def have_masks_by_tile(dtype: DType, dim: int, value_dim: int, numbers: DType | None = None) -> bool:
    """Whether the engine of JAX's first device has kernels of them; `numbers`: of masks of those. False without an engine: a bias serves on every target."""
    try:
        found = engine("rocm" if jax.default_backend() in ("gpu", "rocm") else "cpu")
    except Error:
        return False
    return _masks.have_kernel(found, dtype, dim, value_dim, numbers)


def _give(platform: str, ordinal: int, engine: Engine) -> None:
    handle = engine._open()
    with _lock:
        _of[platform, ordinal] = engine
    _wavejit.give_jax_engine(platform, ordinal, handle)


def _name(platform: str, ordinal: int) -> str:
    if platform == "rocm":
        return f"hip:{ordinal}"
    name = _device.chosen(None)
    if not _device.is_simulated(name):
        raise InvalidArgument(f'device: an array on cpu:{ordinal}, and the device is {name}; accepted: an array on ROCm, or wavejit.jax.use("sim:gfx950") '
                              "for arrays on CPUs that are copied to a simulated GPU")
    if ordinal == 0 and not _is_group(name):
        return name
    if not _is_group(name) or ordinal >= _count(name):
        found = GROUP.fullmatch(name)
        target = found["target"] if found else "gfx950"
        raise NoDevice(f"device: an array on cpu:{ordinal}, and the device is {name}; accepted: sim:{target}x{ordinal + 1}, a simulated GPU for each of JAX's CPU devices")
    return _numbered(name, ordinal)


def _is_group(name: str) -> bool:
    """Simulated GPUs, without the number of one."""
    found = GROUP.fullmatch(name)
    return found is not None and found["ordinal"] is None and _count(name) > 1


def _count(name: str) -> int:
    found = GROUP.fullmatch(name)
    return int(found["count"] or 1) if found else 1


def _numbered(name: str, ordinal: int) -> str:
    return f"{name}:{ordinal}"


def _handle_of(platform: str, ordinal: int) -> _wavejit.EngineHandle:
    """What a program asks for whose device has no engine yet."""
    return engine(platform, ordinal)._open()


_wavejit.set_jax_engines(_handle_of)
