# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The engine of a device as a serving engine has it: lines are prepared while vLLM starts, and then it is sealed.

It is not wavejit.torch's: what else a process computes through that is not sealed along with it.
"""
from __future__ import annotations

import logging
import threading
import time
from typing import Any

import torch

from .. import _device
from .._engine import Engine
from .._errors import Error, InvalidArgument, error_of_lines

logger = logging.getLogger("vllm.wavejit")
_of: dict[torch.device, Serving] = {}
_lock = threading.Lock()


class Serving:
    """An engine, what was prepared of it, and whether a call may still compile."""

    def __init__(self, engine: Engine, seal: bool, who: str = "wavejit.vllm", told: logging.Logger = logger) -> None:
        self.who, self.told = who, told
        self.engine = engine
        self.prepared: set[str] = set()
        self.may_seal = seal
        self.sealed = False

    def prepare(self, lines: list[str]) -> None:
        """Loads every kernel that these lines may need. Raises with the lines that failed."""
        missing = [line for line in dict.fromkeys(lines) if line not in self.prepared]
        if not missing:
            return
        if self.sealed:
            self.engine.unseal()
            self.sealed = False
        for line in missing:
            self.told.debug("%s: prepares '%s'", self.who, line)
        begun = time.perf_counter()
        kernels: dict[str, Any] = {}
        try:
            self.engine.prepare(missing, progress=kernels.update)
        except Error as error:
            raise error_of_lines(error.status, f"{self.who}: {error.detail}") from None
        self.prepared.update(missing)
        self.told.info("%s: %d kinds of calls prepared on %s in %.1f s: %d kernels, %d of them compiled", self.who, len(missing), self.engine.device,
                       time.perf_counter() - begun, kernels.get("total", 0), kernels.get("compiled", 0))

    def seal(self) -> None:
        """From now on a call whose kernel is not loaded is an error, and never a stall."""
        if self.may_seal and not self.sealed and self.prepared:
            self.engine.seal()
            self.sealed = True


def use(engine: Engine, *, seal: bool = True) -> None:
    """Layers of this device go through this engine: the way to options, such as cache_layers. Before vLLM makes its engine, in the
    process that computes: a plug-in of yours does. `seal` False: what was not prepared is compiled when it comes."""
    if not isinstance(engine, Engine):
        raise TypeError(f"engine: a {type(engine).__name__}; accepted: a wavejit.Engine")
    kind = "cpu" if engine.is_simulated else "cuda"
    with _lock:
        _of[torch.device(kind) if kind == "cpu" else torch.device(kind, engine.ordinal)] = Serving(engine, seal)


def serving(device: torch.device) -> Serving:
    found = _of.get(device)
    if found is not None:
        return found
    with _lock:
        if device not in _of:
            _of[device] = Serving(Engine(_name(device)), True)
        return _of[device]


def _name(device: torch.device) -> str:
    if device.type != "cpu":
        return f"hip:{device.index or 0}"
    name = _device.chosen(None)
    if not _device.is_simulated(name):
        raise InvalidArgument(f"WAVEJIT_DEVICE: the device is {name}, and vLLM's tensors are on the CPU; accepted: WAVEJIT_DEVICE=sim:gfx950")
    return name
