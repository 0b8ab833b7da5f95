# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What vLLM asks of a backend of latent attention, and what it has a step's metadata made by."""
from __future__ import annotations

from typing import Any, ClassVar

import torch
from vllm.config import VllmConfig, get_layers_from_vllm_config
from vllm.model_executor.layers.attention.mla_attention import MLAAttention
from vllm.v1.attention.backend import AttentionBackend, AttentionCGSupport, AttentionMetadataBuilder, CommonAttentionMetadata, MultipleOf

from .._errors import Unsupported
from .._latent import WIDTHS
from . import _latent_limits, _limits
from ._backend import TILE
from ._latent_layer import WavejitLatentAttention
from ._latent_lines import append_line, lines
from ._latent_step import WavejitLatentMetadata
from ._ranks import Ranks, graphs_of_ranks, rows_of
from ._serving import serving


# DeepSeek V3.2 and GLM-5 have it: a backend is asked before it knows the model's.
TYPICAL_LIST = 2048


class WavejitLatentMetadataBuilder(AttentionMetadataBuilder[WavejitLatentMetadata]):
    # Grids follow from the host's maxima, which are those of the captured batch; all else is read on the device.
    _cudagraph_support: ClassVar[AttentionCGSupport] = AttentionCGSupport.ALWAYS

    @classmethod
    def get_cudagraph_support(cls, vllm_config: VllmConfig, kv_cache_spec: Any) -> AttentionCGSupport:
        """Ranks that share keys capture only what vLLM keeps in tensors that stay: decode."""
        return graphs_of_ranks(vllm_config, cls._cudagraph_support)

    def __init__(self, kv_cache_spec: Any, layer_names: list[str], vllm_config: VllmConfig, device: torch.device) -> None:
        super().__init__(kv_cache_spec, layer_names, vllm_config, device)
        if getattr(kv_cache_spec, "non_causal_multi_token_decode", False):
            raise Unsupported("wavejit.vllm: non_causal_multi_token_decode: rows of latent attention are causal; TRITON_MLA may have it")
        self.serving, self.ranks = serving(device), Ranks.of(vllm_config)
        layers = get_layers_from_vllm_config(vllm_config, MLAAttention, layer_names)
        kinds = sorted({layer.impl.kind for layer in layers.values() if isinstance(layer.impl, WavejitLatentAttention)}, key=repr)
        scheduler = vllm_config.scheduler_config
        rows = max(scheduler.max_num_batched_tokens, scheduler.max_num_seqs)
        page, keys = kv_cache_spec.block_size, self.ranks.most_keys_of(vllm_config.model_config.max_model_len)
        self.serving.prepare([each for kind in kinds for each in (*lines(kind, scheduler.max_num_seqs, rows, keys, page), append_line(kind, page))])

    def build(self, common_prefix_len: int, common_attn_metadata: CommonAttentionMetadata, fast_build: bool = False) -> WavejitLatentMetadata:
        common = common_attn_metadata
        if common.causal is not True:
            raise Unsupported("wavejit.vllm: rows of latent attention that are not causal: accepted are causal ones; TRITON_MLA may have it")
        # By now every builder of the model has been made.
        self.serving.seal()
        if self.ranks.count > 1:
            return self._of_this_rank(common)
        return WavejitLatentMetadata(common.num_actual_tokens, common.query_start_loc, common.seq_lens, common.block_table_tensor, common.max_query_len, common.max_seq_len,
                                     True, self.serving)

    def _of_this_rank(self, common: CommonAttentionMetadata) -> WavejitLatentMetadata:
        return WavejitLatentMetadata(common.num_actual_tokens, *rows_of(self.ranks, common), 1, self.ranks.most_keys_of(common.max_seq_len), True, self.serving, seq_lens=common.seq_lens,
                                     query_start_loc=common.query_start_loc)


class WavejitLatentBackend(AttentionBackend):
    forward_includes_kv_cache_update: bool = False
    supported_dtypes: ClassVar[list[torch.dtype]] = list(_limits.DTYPES)
    supported_kv_cache_dtypes: ClassVar[list[Any]] = list(_latent_limits.CACHES)

    @staticmethod
    def get_name() -> str:
        return _latent_limits.DENSE

    @staticmethod
    def get_impl_cls() -> type[WavejitLatentAttention]:
        return WavejitLatentAttention

    @staticmethod
    def get_builder_cls() -> type[WavejitLatentMetadataBuilder]:
        return WavejitLatentMetadataBuilder

    @staticmethod
    def get_supported_kernel_block_sizes(kv_cache_spec: Any = None) -> list[int | MultipleOf]:
        return [MultipleOf(16)]

    @classmethod
    def get_preferred_block_size(cls, default_block_size: int) -> int:
        return default_block_size if default_block_size % TILE == 0 else TILE

    @classmethod
    def is_mla(cls) -> bool:
        return True

    @classmethod
    def supports_head_size(cls, head_size: int) -> bool:
        return _latent_limits.value_dim_of(head_size) is not None

    @classmethod
    def supports_batch_invariance(cls) -> bool:
        return True  # a row's bits are those of the row alone, in a prompt or decoded: docs/canonical-arithmetic.md

    @classmethod
    def validate_configuration(cls, head_size: int, dtype: torch.dtype, kv_cache_dtype: Any, *given: Any, **words: Any) -> list[str]:
        """vLLM's own reasons, and beside those which kernels there are, and who has more."""
        found = super().validate_configuration(head_size, dtype, kv_cache_dtype, *given, **words)
        value_dim = _latent_limits.value_dim_of(head_size)
        if value_dim is None:
            return [*found, f"rows of {head_size} elements: accepted are {', '.join(str(width) for width, _ in WIDTHS)}; {_latent_limits.others()} may have it"]
        if cls.is_sparse() and not words.get("use_sparse", True):
            found = [*found, f"a model without an indexer: --attention-backend {_latent_limits.DENSE} has it"]
        elif words.get("use_sparse") and not cls.is_sparse():
            found = [*found, f"lists of keys have a backend of their own: --attention-backend {_latent_limits.SPARSE}"]
        if words.get("use_dcp") and cls.is_sparse():
            found = [*found, "context parallelism of decode (--decode-context-parallel-size 1): each list names keys of all ranks; ROCM_AITER_MLA_SPARSE may have it"]
        caches = cls.supported_kv_cache_dtypes
        if dtype not in _limits.DTYPES or kv_cache_dtype not in (None, *caches):
            return [*found, f"accepted with wavejit: float16 and bfloat16, kv_cache_dtype {', '.join(caches)}; {_latent_limits.others()} may have it"] if found else found
        refusal = _latent_limits.without_a_kernel(_latent_limits.kind_of(16, head_size, value_dim, dtype, kv_cache_dtype, TYPICAL_LIST if cls.is_sparse() else 0))
        return found if refusal is None else [*found, refusal]
