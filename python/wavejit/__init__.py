# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention kernels for AMD GPUs, emitted at the first call that needs them.

    import numpy, wavejit

    engine = wavejit.Engine("sim:gfx950")                     # or "hip": the GPU of this machine
    q = numpy.random.randn(1, 64, 8, 128).astype("float16")   # [batch, length, heads, head dim]
    k = v = numpy.random.randn(1, 256, 2, 128).astype("float16")
    out = engine.attention_forward(q, k, v, causal=True).numpy()

The package carries the compiler and a simulated GPU; importing it loads neither. docs/python.md begins there.
"""
from typing import TYPE_CHECKING as _TYPE_CHECKING

from ._arrays import DeviceArray
from ._backward import AttentionBackwardCall
from ._latent import AttentionLatentCall
from ._calls import Call
from ._append import CacheAppendCall
from ._engine import Engine, Prepared
from ._errors import (
    CompileFailed,
    DeviceError,
    Error,
    Internal,
    InvalidArgument,
    IoError,
    LaunchFailed,
    NoCompiler,
    NoDevice,
    NotFound,
    NotReady,
    OutOfMemory,
    Sealed,
    Unsupported,
)
from ._forward import AttentionForwardCall
from ._indexer import SparseIndexerCall
from ._lists import BlockLists
from ._merge import AttentionMergeCall
from ._offline import explain, kernel_texts, prebuild, supported, targets
from ._softmax import SoftmaxLseCall
from ._wavejit import version as _version

if _TYPE_CHECKING:
    from . import cache
    from ._profile import Comparison, Difference, Launch, ModelError, Profile, Waited, compare, profile
    from ._sweep import NotUnderstood, SweepOutcome, SweepResult, sweep

__version__: str = _version()

__all__ = [
    "AttentionBackwardCall", "AttentionForwardCall", "AttentionLatentCall", "AttentionMergeCall", "BlockLists", "CacheAppendCall", "Call", "Comparison", "CompileFailed", "DeviceArray", "DeviceError", "Difference", "Engine", "Error", "Internal",
    "InvalidArgument", "IoError", "Launch", "LaunchFailed", "ModelError", "NoCompiler", "NoDevice", "NotFound", "NotReady", "NotUnderstood",
    "OutOfMemory", "Prepared", "Profile", "Sealed", "SoftmaxLseCall", "SparseIndexerCall", "SweepOutcome", "SweepResult", "Unsupported", "Waited",
    "__version__", "cache", "compare", "explain", "kernel_texts", "prebuild", "profile", "supported", "sweep", "targets",
]  # fmt: skip

# Modules that are read when something of them is first asked for: importing wavejit stays quick.
_LATER = {
    "_profile": ("Comparison", "Difference", "Launch", "ModelError", "Profile", "Waited", "compare", "profile"),
    "_sweep": ("NotUnderstood", "SweepOutcome", "SweepResult", "sweep"),
    "cache": (),
}  # fmt: skip


def __getattr__(name: str) -> object:
    import importlib

    for module, names in _LATER.items():
        if name == module or name in names:
            read = importlib.import_module(f"{__name__}.{module}")
            globals().update({each: getattr(read, each) for each in names})
            return read if name == module else globals()[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
