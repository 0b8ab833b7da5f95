# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What vLLM asks of a backend of sparse latent attention: as latent attention's, over lists that its indexer makes."""
from __future__ import annotations

from typing import Any, ClassVar

from . import _latent_limits
from ._latent_backend import WavejitLatentBackend
from ._sparse_layer import WavejitSparseLatentAttention


class WavejitSparseLatentBackend(WavejitLatentBackend):
    supported_kv_cache_dtypes: ClassVar[list[Any]] = list(_latent_limits.SPARSE_CACHES)

    @staticmethod
    def get_name() -> str:
        return _latent_limits.SPARSE

    @staticmethod
    def get_impl_cls() -> type[WavejitSparseLatentAttention]:
        return WavejitSparseLatentAttention

    @classmethod
    def is_sparse(cls) -> bool:
        return True
