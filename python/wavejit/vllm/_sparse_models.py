# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""vLLM's models of sparse attention for ROCm (DeepSeek V3.2, GLM-5) name their backend in their code and ask no option: what
`--attention-backend WAVEJIT_MLA_SPARSE` says is put in its place while such a layer is made.

Lists of keys are made by wavejit then, too (_sparse_indexer.py), whose kernels read a key's numbers side by side, and not in AITER's order.

Their module is looked at when vLLM imports it, in the process that makes layers, and not before: it may open the device.

Those models also write the cache themselves, and give queries in 8 bits beside any cache of 8 bits; that is refused here.
"""
from __future__ import annotations

import functools
import importlib.abc
import importlib.util
import sys
from typing import Any

from .._errors import Unsupported
from . import _latent_limits

MODULE, LAYER, THEIRS = "vllm.models.deepseek_v32.amd.rocm", "DeepseekV32MLAAttention", "ROCMAiterMLASparseBackend"


class _Finder(importlib.abc.MetaPathFinder):
    """Finds that module as others do, and takes it when it is there."""

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        if name != MODULE:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is None or spec.loader is None:
            return spec
        execute = spec.loader.exec_module

        def executed(module: Any) -> None:
            execute(module)
            take(module)

        spec.loader.exec_module = executed  # type: ignore[method-assign]
        return spec


def watch() -> None:
    """Twice does no harm."""
    if MODULE in sys.modules:
        take(sys.modules[MODULE])
    elif not any(isinstance(each, _Finder) for each in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


def take(module: Any) -> None:
    """Its layers ask from now on."""
    layer = getattr(module, LAYER, None)
    if layer is not None and hasattr(module, THEIRS) and not hasattr(layer.__init__, "__wrapped__"):
        layer.__init__ = _asking(module, layer.__init__)


def _asking(module: Any, made: Any) -> Any:
    @functools.wraps(made)
    def asking(layer: Any, vllm_config: Any, *given: Any, **words: Any) -> None:
        if getattr(vllm_config.attention_config.backend, "name", "") != _latent_limits.SPARSE:
            made(layer, vllm_config, *given, **words)
            return
        cache = vllm_config.cache_config.cache_dtype
        if _latent_limits.SPARSE_CACHES.get(cache, "e4m3") not in ("", "fp16", "bf16"):
            raise Unsupported(f"wavejit.vllm: kv_cache_dtype {cache}: this model of vLLM's for ROCm gives queries in 8 bits beside it; accepted: --kv-cache-dtype auto, or ROCM_AITER_MLA_SPARSE")
        from . import _sparse_indexer
        from ._sparse_backend import WavejitSparseLatentBackend

        _sparse_indexer.register()
        theirs, kind, indexer = getattr(module, THEIRS), type(layer), type(layer).indexer_cls
        setattr(module, THEIRS, WavejitSparseLatentBackend)
        kind.indexer_cls = _sparse_indexer.plainly_cached(indexer)
        try:
            made(layer, vllm_config, *given, **words)
        finally:
            setattr(module, THEIRS, theirs)
            kind.indexer_cls = indexer

    return asking
