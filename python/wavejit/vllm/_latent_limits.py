# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Latent attention in vLLM that has no kernel is refused before a model loads."""
from __future__ import annotations

from typing import Any

import torch
from vllm.platforms import current_platform

from .._latent import WIDTHS
from . import _limits
from ._latent_lines import LatentKind, line


DENSE, SPARSE = "WAVEJIT_MLA", "WAVEJIT_MLA_SPARSE"
# No scales of tokens: one of all numbers.
CACHES = {name: value for name, value in _limits.CACHES.items() if name not in _limits.OF_TOKENS}
# Rows of 656 bytes have scales of their own. Engines have them beside lists.
OF_ROWS = "fp8_ds_mla"
SPARSE_CACHES = {**CACHES, OF_ROWS: "e4m3"}


def others() -> str:
    """Which backend has more."""
    return "no other backend of vLLM's for CPUs" if current_platform.is_cpu() else "TRITON_MLA"


def kind_of(heads: int, width: int, value_dim: int, dtype: torch.dtype, kv_cache_dtype: str | None, top_k: int = 0) -> LatentKind:
    rows = kv_cache_dtype == OF_ROWS
    return LatentKind(_limits.DTYPES[dtype], heads, width, value_dim, _limits.cache_format("fp8" if rows else kv_cache_dtype), rows, top_k)


def value_dim_of(width: int) -> int | None:
    """A backend is asked with the width alone."""
    return dict(WIDTHS).get(width)


def without_a_kernel(kind: LatentKind, page: int = 16) -> str | None:
    return _limits.refusal(line(kind, 2, 2, 64, page), others())


def reasons_of_layer(words: dict[str, Any], heads: int, width: int, value_dim: int, dtype: torch.dtype, top_k: int = 0) -> list[str]:
    """Why a layer with these words of vLLM's is refused; empty if it is not."""
    found = [f"{name}: latent attention has none; {others()} may have it" for name in ("alibi_slopes", "sliding_window", "logits_soft_cap", "kv_sharing_target_layer_name")
             if words.get(name) and (name != "sliding_window" or _limits.window_of(words[name]) is not None)]
    if words["attn_type"] != "decoder":
        found.append(f"attention of type {words['attn_type']}: only decoders have latent attention")
    if words.get("indexer") is not None or words.get("topk_indices_buffer") is not None:
        found.append(f"lists of keys (sparse attention): --attention-backend {SPARSE} has it")
    if dtype not in _limits.DTYPES:
        return [*found, f"dtype {dtype}: accepted with wavejit are float16 and bfloat16 (--dtype bfloat16); {others()} has it"]
    cache, caches = words["kv_cache_dtype"], SPARSE_CACHES if top_k else CACHES
    if cache not in caches or caches[cache] in set(_limits.DTYPES.values()) - {_limits.DTYPES[dtype]}:
        return [*found, f"kv_cache_dtype {cache}: accepted with wavejit are {', '.join(caches)} (--kv-cache-dtype auto); {others()} may have it"]
    refusal = None if found else without_a_kernel(kind_of(heads, width, value_dim, dtype, cache, top_k))
    return found if refusal is None else [*found, refusal]
