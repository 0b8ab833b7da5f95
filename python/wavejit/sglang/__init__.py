# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention for SGLang's engine: a plug-in that SGLang finds by itself where wavejit is installed.

    python -m sglang.launch_server --model-path meta-llama/Llama-3.1-8B --attention-backend wavejit
    python -m sglang.launch_server … --attention-backend wavejit --enable-deterministic-inference

Prompts, pieces of them behind a cached prefix, decode and their mixes go in one call over SGLang's own pool of tokens. A row's bits do
not depend on the rows beside it. docs/sglang.md begins there.
"""
from __future__ import annotations

import importlib
import importlib.util
from typing import Any

# Engine versions whose own tests have run here; another one is told by a warning.
TRIED = ("0.5.23",)
COMMAND = "python -m pip install sglang"
NAME = "wavejit"
_LATER = {"WavejitBackend": "_backend", "WavejitMetadata": "_backend"}
__all__ = ["NAME", "TRIED", "WavejitBackend", "WavejitMetadata", "register"]


def register() -> None:
    """What SGLang calls in each of its processes (entry point `sglang.srt.plugins`). Twice does no harm."""
    from . import _plugin

    _plugin.register()


def __getattr__(name: str) -> Any:
    """Classes over SGLang's own are loaded when they are asked for: SGLang must be there then."""
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        module = importlib.import_module(f".{_LATER[name]}", __name__)
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in ("torch", "sglang") or importlib.util.find_spec(package) is not None:
            raise
        raise ModuleNotFoundError(f"wavejit.sglang: the package {package} is not installed; accepted: `{COMMAND}`, which brings both sglang and torch", name=error.name) from error
    return getattr(module, name)
