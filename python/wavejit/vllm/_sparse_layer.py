# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One layer of sparse latent attention in vLLM (DeepSeek V3.2, GLM-5): each row sees the keys that its list names.

Lists are [rows, entries] of numbers of a sequence's keys, −1 where there is none: the indexer makes them before, of all layers in one tensor.
Kernels go from a number to its page, so nothing is converted. Rows of prompts are absorbed as those of decode are.
"""
from __future__ import annotations

from typing import Any

import torch
from vllm.model_executor.layers.attention.sparse_mla_attention import SharedTopkIndicesBuffer

from .._errors import Unsupported
from . import _latent_limits
from ._latent_layer import WavejitLatentAttention


class WavejitSparseLatentAttention(WavejitLatentAttention, SharedTopkIndicesBuffer):
    is_sparse = True
    supports_dense_mha_prefill = False
    supports_dcp = False
    can_return_lse_for_decode = False

    def __init__(self, num_heads: int, head_size: int, scale: float, *given: Any, topk_indices_buffer: torch.Tensor | None = None, indexer: Any = None, **words: Any) -> None:
        self.init_topk_indices_buffer(indexer, topk_indices_buffer)
        if self.topk_indices_buffer is None:
            raise Unsupported(f"wavejit.vllm: no topk_indices_buffer, whose lists are attended to; accepted: a model with an indexer, others have {_latent_limits.DENSE}")
        super().__init__(num_heads, head_size, scale, *given, **words)

    def entries(self) -> int:
        """The entries of a row's list."""
        buffer = self.topk_indices_buffer
        return 0 if buffer is None else int(buffer.shape[-1])

    def lists(self, rows: int) -> torch.Tensor | None:
        """An indexer may be given another tensor after the layer is made, so it is asked each time."""
        buffer = self.topk_indices_buffer
        return None if buffer is None else buffer.narrow(0, 0, rows)

    def record_logical_topk_ready(self) -> None:
        """vLLM says that lists are made; there is nothing that waits for them elsewhere."""
