# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What vLLM asks of a backend before it makes layers: what it can do, and how its caches may lie."""
from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

import torch
from vllm.utils.torch_utils import get_dtype_size
from vllm.v1.attention.backend import AttentionBackend, MultipleOf
from vllm.v1.kv_cache_interface import KVCacheLayout

from . import _limits
from ._layer import WavejitAttention
from ._lines import Kind
from ._metadata import WavejitMetadataBuilder

# Pages of whole tiles: long queries are a little dearer in others (docs/serving.md).
TILE = 64


# The two scales of a token, which lie after its keys and values. They take 16 bytes, so that the next token begins at a multiple of 16.
SCALE_BYTES = 16


class WavejitBackend(AttentionBackend):
    forward_includes_kv_cache_update: bool = False
    supported_dtypes: ClassVar[list[torch.dtype]] = list(_limits.DTYPES)
    supported_kv_cache_dtypes: ClassVar[list[Any]] = list(_limits.CACHES)

    @classmethod
    def customize_spec(cls, spec: Any) -> Any:
        if spec.state_content_bytes is not None or not spec.kv_quant_mode.is_per_token_head:
            return spec
        return dataclasses.replace(spec, state_content_bytes=(spec.head_size + spec.head_size_v) * get_dtype_size(spec.dtype) + SCALE_BYTES)

    @staticmethod
    def get_name() -> str:
        return "CUSTOM"  # a name of vLLM's own table

    @staticmethod
    def get_impl_cls() -> type[WavejitAttention]:
        return WavejitAttention

    @staticmethod
    def get_builder_cls() -> type[WavejitMetadataBuilder]:
        return WavejitMetadataBuilder

    @staticmethod
    def get_supported_kernel_block_sizes(kv_cache_spec: Any = None) -> list[int | MultipleOf]:
        return [MultipleOf(16)]

    @classmethod
    def get_preferred_block_size(cls, default_block_size: int) -> int:
        return default_block_size if default_block_size % TILE == 0 else TILE

    @classmethod
    def supported_kv_cache_layouts(cls) -> tuple[KVCacheLayout, ...]:
        # Heads and keys lie inside of a page, in either order: distances between heads then stay small.
        return (KVCacheLayout.LBHNC, KVCacheLayout.LBNHC, KVCacheLayout.BLHNC, KVCacheLayout.BLNHC)

    @classmethod
    def supports_head_size(cls, head_size: int) -> bool:
        return _limits.without_a_kernel(Kind("bf16", 1, 1, head_size, head_size, None, 0.0, False, False, "")) is None

    @classmethod
    def supports_sink(cls) -> bool:
        return True

    @classmethod
    def supports_sliding_window(cls) -> bool:
        return True

    @classmethod
    def supports_non_causal(cls) -> bool:
        return True

    @classmethod
    def supports_batch_invariance(cls) -> bool:
        return True  # a row's bits are those of the row alone: docs/canonical-arithmetic.md

    @classmethod
    def supports_device_cpu_query_lens_mismatch(cls) -> bool:
        return False  # a launch has as many rows of a sequence as the host says

    @classmethod
    def validate_configuration(cls, head_size: int, dtype: torch.dtype, kv_cache_dtype: Any, *given: Any, **words: Any) -> list[str]:
        """vLLM's own reasons, and beside those which kernels there are, and who has more."""
        found = super().validate_configuration(head_size, dtype, kv_cache_dtype, *given, **words)
        if "MLA not supported" in found:
            return [*found, "latent attention has a backend of its own: --attention-backend WAVEJIT_MLA"]
        if dtype not in _limits.DTYPES or kv_cache_dtype not in (None, *_limits.CACHES):
            return [*found, f"accepted with wavejit: float16 and bfloat16, kv_cache_dtype {', '.join(_limits.CACHES)}; {_limits.others()} may have it"] if found else found
        kind = Kind(_limits.DTYPES[dtype], 1, 1, head_size, head_size, None, 0.0, False, False, _limits.cache_format(kv_cache_dtype), kv_cache_dtype in _limits.OF_TOKENS)
        refusal = _limits.without_a_kernel(kind)
        return found if refusal is None else [*found, refusal]
