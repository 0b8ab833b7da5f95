# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How the backend gets into vLLM's table of backends."""
from __future__ import annotations

import logging
import os
from typing import Any

import vllm

from .. import _device
from . import TRIED

# Below vLLM's own name, so that its lines look as vLLM's do.
logger = logging.getLogger("vllm.wavejit")
PATH = "wavejit.vllm.WavejitBackend"
LATENT_PATH = "wavejit.vllm.WavejitLatentBackend"
SPARSE_PATH = "wavejit.vllm.WavejitSparseLatentBackend"
# One name of vLLM's own stands for one backend, so latent attention has names of ours.
NAMES = {"WAVEJIT_MLA": LATENT_PATH, "WAVEJIT_MLA_SPARSE": SPARSE_PATH}


def register() -> None:
    version = str(vllm.__version__)
    if not any(version == tried or version.startswith(f"{tried}.") for tried in TRIED):
        logger.warning("wavejit.vllm: vLLM %s has not been tried with this version of wavejit; tried: %s", version, ", ".join(f"{tried}.x" for tried in TRIED))
    try:
        from vllm.platforms import current_platform
        from vllm.v1.attention.backends.registry import AttentionBackendEnum, register_backend
    except ImportError as error:
        logger.warning("wavejit.vllm: vLLM %s has no registry of attention backends (%s), so wavejit is not among them; tried: %s.x", version, error, TRIED[-1])
        return
    _take(AttentionBackendEnum.CUSTOM, register_backend, PATH)
    for ours, path in NAMES.items():
        if ours not in AttentionBackendEnum.__members__:
            register_backend(ours, path)
    if current_platform.is_rocm():
        from . import _sparse_models

        _sparse_models.watch()
    name = os.environ.get("WAVEJIT_DEVICE", "")
    if current_platform.is_cpu() and _device.is_simulated(name):
        for member, path in (("CPU_ATTN", PATH), ("CPU_MLA", LATENT_PATH), ("AMX_MLA", LATENT_PATH)):
            if member in AttentionBackendEnum.__members__:
                _take(AttentionBackendEnum[member], register_backend, path)
        logger.info("wavejit.vllm: attention of this engine is computed by the simulated GPU %s (WAVEJIT_DEVICE)", name)


def _take(member: Any, register_backend: Any, path: str) -> None:
    if member.is_overridden() and member.get_path() != path:
        logger.warning("wavejit.vllm: %s is %s already, and stays it; to have wavejit, let no other plug-in load: VLLM_PLUGINS=wavejit", member.name, member.get_path())
        return
    register_backend(member, path)
