# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention kernels for AMD GPUs, emitted at the first call that needs them.

    import numpy, wavejit

    engine = wavejit.Engine("sim:gfx950")                     # or "hip": the GPU of this machine
    q = numpy.random.randn(1, 64, 8, 128).astype("float16")   # [batch, length, heads, head dim]
    k = v = numpy.random.randn(1, 256, 2, 128).astype("float16")
    out = engine.attention_forward(q, k, v, causal=True).numpy()

The package carries the compiler and a simulated GPU; importing it loads neither. docs/python.md begins there.
"""
from ._arrays import DeviceArray
from ._calls import AttentionForwardCall, Call, SoftmaxLseCall
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
from ._offline import cache_entries, cache_sweep, explain, kernel_texts, prebuild, supported, targets
from ._wavejit import version as _version

__version__: str = _version()

__all__ = [
    "AttentionForwardCall", "Call", "CompileFailed", "DeviceArray", "DeviceError", "Engine", "Error", "Internal", "InvalidArgument", "IoError",
    "LaunchFailed", "NoCompiler", "NoDevice", "NotFound", "NotReady", "OutOfMemory", "Prepared", "Sealed", "SoftmaxLseCall", "Unsupported",
    "__version__", "cache_entries", "cache_sweep", "explain", "kernel_texts", "prebuild", "supported", "targets",
]  # fmt: skip
