# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What arrays and calls know of the engine that they belong to."""
from __future__ import annotations

from typing import Any, Protocol

from . import _wavejit


class OpenedDevice(Protocol):
    """A device that was opened, and what must stay until it has done its work. `Engine` is one."""

    _handle: _wavejit.EngineHandle | None

    @property
    def device(self) -> str: ...
    @property
    def target(self) -> str: ...
    @property
    def is_simulated(self) -> bool: ...
    @property
    def ordinal(self) -> int: ...
    def synchronize(self) -> None: ...
    def _open(self) -> _wavejit.EngineHandle: ...
    def _keep(self, call: Any) -> None: ...
