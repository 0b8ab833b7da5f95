# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention for vLLM's engine: a plug-in that vLLM finds by itself where wavejit is installed.

    vllm serve meta-llama/Llama-3.1-8B --attention-backend CUSTOM            # on ROCm
    vllm serve deepseek-ai/DeepSeek-V3 --attention-backend WAVEJIT_MLA
    vllm serve deepseek-ai/DeepSeek-V3.2 --attention-backend WAVEJIT_MLA_SPARSE
    WAVEJIT_DEVICE=sim:gfx950 vllm serve …                                   # vLLM for CPUs: a simulated GPU computes

Prefill, chunks of prompts and decode go in one call over vLLM's own pages. A row's bits do not depend on the rows beside it, so
VLLM_BATCH_INVARIANT=1 is served. Kernels are prepared when the engine starts, from the model's configuration, and none is compiled
after that. docs/vllm.md begins there.
"""
from __future__ import annotations

import importlib
import importlib.util
from typing import Any

# Engine versions whose own tests have run here; another one is told by a warning.
TRIED = ("0.32",)
COMMAND = "python -m pip install vllm"
_LATER = {"WavejitBackend": "_backend", "WavejitMetadata": "_step", "WavejitMetadataBuilder": "_metadata", "WavejitAttention": "_layer", "use": "_serving",
          "WavejitLatentBackend": "_latent_backend", "WavejitLatentMetadata": "_latent_step", "WavejitLatentMetadataBuilder": "_latent_backend", "WavejitLatentAttention": "_latent_layer",
          "WavejitSparseLatentBackend": "_sparse_backend", "WavejitSparseLatentAttention": "_sparse_layer"}
__all__ = ["TRIED", "WavejitAttention", "WavejitBackend", "WavejitLatentAttention", "WavejitLatentBackend", "WavejitLatentMetadata",
           "WavejitLatentMetadataBuilder", "WavejitMetadata", "WavejitMetadataBuilder", "WavejitSparseLatentAttention", "WavejitSparseLatentBackend", "register", "use"]


def register() -> None:
    """What vLLM calls in each of its processes (entry point `vllm.general_plugins`). Twice does no harm.

    The backend is vLLM's `CUSTOM`: `--attention-backend CUSTOM`. That of latent attention is `WAVEJIT_MLA`, over lists of keys `WAVEJIT_MLA_SPARSE`. vLLM for CPUs has no choice of backends: there it takes the place of
    CPU_ATTN and of CPU_MLA where WAVEJIT_DEVICE names a simulated GPU.
    """
    from . import _plugin

    _plugin.register()


def __getattr__(name: str) -> Any:
    """Classes over vLLM's own are loaded when they are asked for: vLLM must be there then."""
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        module = importlib.import_module(f".{_LATER[name]}", __name__)
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in ("torch", "vllm") or importlib.util.find_spec(package) is not None:
            raise
        raise ModuleNotFoundError(f"wavejit.vllm: the package {package} is not installed; accepted: `{COMMAND}`, which brings both vllm and torch", name=error.name) from error
    return getattr(module, name)
