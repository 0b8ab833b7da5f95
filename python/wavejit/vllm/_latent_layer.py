# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One layer of latent attention in vLLM (MLA): new rows into its cache, and all rows of a step over it in one call.

Every row is absorbed, of prompts as of decode, so that it has the same bits in either. vLLM expands keys and values of prompts where a
backend asks for it, and merges what stood in the cache before: then a row's bits show where its prompt was cut.
"""
from __future__ import annotations

from typing import Any

import torch
from vllm.v1.attention.backend import MLAAttentionImpl

from .._errors import Unsupported
from . import _calls, _latent_cache, _latent_calls, _latent_limits
from ._serving import serving


class WavejitLatentAttention(MLAAttentionImpl[Any]):
    """Refuses, when it is made, what no kernel does: before weights are loaded."""

    supports_quant_query_input = False
    supports_pcp = False
    supports_dcp = True
    can_return_lse_for_decode = True

    def __init__(self, num_heads: int, head_size: int, scale: float, num_kv_heads: int | None = None, alibi_slopes: list[float] | None = None,
                 sliding_window: int | None = None, kv_cache_dtype: str = "auto", logits_soft_cap: float | None = None, attn_type: str = "decoder",
                 kv_sharing_target_layer_name: str | None = None, *, kv_lora_rank: int, **more: Any) -> None:
        words = {"alibi_slopes": alibi_slopes, "sliding_window": sliding_window, "logits_soft_cap": logits_soft_cap, "kv_cache_dtype": kv_cache_dtype,
                 "attn_type": getattr(attn_type, "value", attn_type), "kv_sharing_target_layer_name": kv_sharing_target_layer_name, **more}
        dtype = torch.get_default_dtype()  # while a model is made, its dtype is the default one
        reasons = _latent_limits.reasons_of_layer(words, num_heads * self.dcp_world_size, head_size, kv_lora_rank, dtype, self.entries())
        if reasons:
            raise Unsupported(f"wavejit.vllm: {'; '.join(reasons)}")
        # Ranks that share keys have all their heads gathered.
        self.kind = _latent_limits.kind_of(num_heads * self.dcp_world_size, head_size, kv_lora_rank, dtype, kv_cache_dtype, self.entries())._replace(lse=self.dcp_world_size > 1)
        self.num_heads, self.head_size, self.num_kv_heads = num_heads, head_size, 1
        self.scale, self.kv_cache_dtype, self.kv_lora_rank = float(scale), kv_cache_dtype, kv_lora_rank
        self.words = _latent_calls.Words(self.kind, self.scale)

    def entries(self) -> int:
        """The entries of a row's list of keys; 0: rows see all keys."""
        return 0

    def lists(self, rows: int) -> torch.Tensor | None:
        return None

    def forward_mqa(self, q: torch.Tensor | tuple[torch.Tensor, torch.Tensor], kv_c_and_k_pe_cache: torch.Tensor, attn_metadata: Any,
                    layer: Any) -> tuple[torch.Tensor, torch.Tensor | None]:
        """q [rows, heads, columns], or the latent's columns and the rope's by themselves, which are read where they lie. Where ranks share
        keys also LSE [rows, heads], natural logarithms; −∞ of a row that has no key here."""
        latent, rope = q if isinstance(q, tuple) else (q, None)
        out = attn_metadata.output(latent, self.kv_lora_rank)
        sums = torch.full((1, latent.shape[1], latent.shape[0]), float("-inf"), dtype=torch.float32, device=latent.device) if self.kind.lse else None
        if latent.shape[0]:
            tensors: _calls.Tensors = {} if rope is None or rope.shape[-1] == 0 else {"q_rope": rope}
            scale, lists = self.scale_of_cache(layer._k_scale), self.lists(latent.shape[0])
            if scale is not None:
                tensors["k_scale"] = scale
            if lists is not None:
                tensors["indices"] = lists
            _latent_calls.attend(self.words, attn_metadata, latent, kv_c_and_k_pe_cache, out, tensors, sums)
        return out, None if sums is None else sums[0].T.contiguous()

    def do_kv_cache_update(self, kv_c_normed: torch.Tensor, k_pe: torch.Tensor, kv_cache: torch.Tensor, slot_mapping: torch.Tensor, kv_cache_dtype: str,
                           k_scale: torch.Tensor) -> None:
        """The latent and the rope of each new row: one launch."""
        _latent_cache.append(serving(kv_cache.device).engine, kv_c_normed, k_pe, kv_cache, slot_mapping.flatten(), self.kind, self.scale_of_cache(k_scale))

    def scale_of_cache(self, scale: torch.Tensor) -> torch.Tensor | None:
        """vLLM's, where numbers of the cache count in one for all."""
        return scale if self.kind.cache and not self.kind.rows else None
