# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How the backend gets into SGLang's table of backends, and among those that deterministic inference takes."""
from __future__ import annotations

import logging
from typing import Any

import sglang

from . import NAME, TRIED

logger = logging.getLogger("sglang.wavejit")


def register() -> None:
    version = str(getattr(sglang, "__version__", "without a number"))
    if version not in TRIED:
        logger.warning("wavejit.sglang: SGLang %s has not been tried with this version of wavejit; tried: %s", version, ", ".join(TRIED))
    try:
        from sglang.srt import server_args
        from sglang.srt.layers.attention.attention_registry import ATTENTION_BACKENDS, register_attention_backend
    except ImportError as error:
        logger.warning("wavejit.sglang: SGLang %s has no registry of attention backends (%s), so wavejit is not among them; tried: %s", version, error, TRIED[-1])
        return
    if NAME in ATTENTION_BACKENDS:
        return
    register_attention_backend(NAME)(_made)
    # Deterministic: a row's bits are those of the row alone, behind a cached prefix too.
    for choices in ("add_attention_backend_choices", "add_deterministic_attention_backend_choices", "add_radix_supported_deterministic_attention_backend_choices"):
        getattr(server_args, choices)([NAME])


def _made(runner: Any) -> Any:
    from ._backend import WavejitBackend

    return WavejitBackend(runner)
