# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A device that was opened: its handle, what must stay until it has done its work, its end."""
from __future__ import annotations

import atexit
import weakref
from collections.abc import Callable
from typing import Any, Self

from . import _device, _offline, _wavejit
from ._errors import Error, InvalidArgument, NoDevice

# Where a kernel came from, by the number that wavejit.h tells.
ORIGINS = {0: None, 1: "memory", 2: "disk", 3: "compiled"}
# Calls over borrowed memory that nobody has waited for. When there are this many, the device is waited for.
KEPT_CALLS = 256

# Engines whose threads may call Python: at its end they no longer do.
_calling_back: weakref.WeakSet[OpenedDevice] = weakref.WeakSet()


@atexit.register
def _forget_callbacks() -> None:
    for engine in list(_calling_back):
        if engine._handle is not None:
            engine._handle.forget_callbacks()


class OpenedDevice:
    """What arrays and calls know of the engine that they belong to. `Engine` is one, and says what the options are."""

    def __init__(self, device: str | None = None, *, cache_dir: Any = None, on_compile: Callable[[dict[str, Any]], object] | None = None,
                 on_log: Callable[[int, str], object] | None = None, **options: Any) -> None:
        for field, function in (("on_compile", on_compile), ("on_log", on_log)):
            if function is not None and not callable(function):
                raise TypeError(f"{field}: a {type(function).__name__}; accepted: a function")
        told = None
        if on_compile is not None:
            function = on_compile

            def told(event: dict[str, Any]) -> None:
                event["origin"] = ORIGINS.get(event["origin"], event["origin"])
                function(event)

        texts = _offline.option_texts({"device": device, "cache_dir": cache_dir, **options})
        self._handle: _wavejit.EngineHandle | None = None
        self._device = _device.chosen(texts.get("device"))
        if self._device in _wavejit.targets():
            raise NoDevice(f"device: {self._device!r} is a target; accepted: 'sim:{self._device}' for a simulated GPU, or 'hip'")
        # For the program of the package, where it works for this engine: what that misses is no news of this one.
        self._options = {**texts, "device": self._device, "miss_log": ""}
        self._handle = _wavejit.EngineHandle(texts, told, on_log)
        self._target = self._handle.target()
        self._kept: set[Any] = set()
        self._plans: dict[Any, Any] = {}  # calls that wavejit.torch has checked, by shapes; empty once closed
        self._torch_calls: dict[str, Any] = {}  # the same, as the extension remembers them
        if told is not None or on_log is not None:
            _calling_back.add(self)

    # ---- what it is

    @property
    def device(self) -> str:
        return self._device

    @property
    def device_name(self) -> str:
        """For people."""
        return self._open().device_name()

    @property
    def target(self) -> str:
        """ "gfx950" """
        return self._target

    @property
    def is_simulated(self) -> bool:
        return _device.is_simulated(self._device)

    @property
    def ordinal(self) -> int:
        """The device's number: of ROCm tensors that the engine takes and gives."""
        return _device.ordinal(self._device)

    @property
    def is_closed(self) -> bool:
        return self._handle is None

    def close(self) -> None:
        """Waits for the device and lets go of it; arrays that still live keep their memory. Also the end of `with`."""
        if self._handle is not None:
            handle, self._handle = self._handle, None
            try:
                handle.synchronize()
            finally:
                self._kept.clear()
                self._plans.clear()
                self._torch_calls.clear()
                handle.forget_callbacks()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"wavejit.Engine({self._device!r})" + (" (closed)" if self.is_closed else "")

    def _open(self) -> _wavejit.EngineHandle:
        if self._handle is None:
            raise InvalidArgument("engine: it is closed; accepted: an open one")
        return self._handle

    def _keep(self, call: Any) -> None:
        """Borrowed memory stays until the device has done what was launched over it."""
        if len(self._kept) >= KEPT_CALLS:
            self.synchronize()
        self._kept.add(call)

    def synchronize(self) -> None:
        """Waits for all work of the device. A kernel that failed is told here."""
        handle = self._open()
        kept, self._kept = self._kept, set()
        try:
            handle.synchronize()
        except Error:
            self._kept |= kept
            raise
