# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What vLLM has a step's metadata made by. When it is made itself, a model's layers are known: their kernels are prepared then, and
with the first step the engine is sealed."""
from __future__ import annotations

from typing import Any, ClassVar

import torch
from vllm.config import VllmConfig, get_layers_from_vllm_config
from vllm.model_executor.layers.attention import Attention
from vllm.v1.attention.backend import AttentionCGSupport, AttentionMetadataBuilder, CommonAttentionMetadata

from .._errors import Unsupported
from ._layer import WavejitAttention
from ._lines import append_line, line
from ._ranks import Ranks, graphs_of_ranks, rows_of
from ._serving import serving
from ._step import WavejitMetadata


class WavejitMetadataBuilder(AttentionMetadataBuilder[WavejitMetadata]):
    # Grids follow from the host's maxima, which are those of the captured batch; all else is read on the device.
    _cudagraph_support: ClassVar[AttentionCGSupport] = AttentionCGSupport.ALWAYS

    @classmethod
    def get_cudagraph_support(cls, vllm_config: VllmConfig, kv_cache_spec: Any) -> AttentionCGSupport:
        return graphs_of_ranks(vllm_config, cls._cudagraph_support)

    def __init__(self, kv_cache_spec: Any, layer_names: list[str], vllm_config: VllmConfig, device: torch.device) -> None:
        super().__init__(kv_cache_spec, layer_names, vllm_config, device)
        layers = get_layers_from_vllm_config(vllm_config, Attention, layer_names)
        self.kinds = {kind for layer in layers.values() if isinstance(layer.impl, WavejitAttention) for kind in layer.impl.kinds}
        self.page = kv_cache_spec.block_size
        self.serving = serving(device)
        self.ranks = Ranks.of(vllm_config)
        self.keys = self.ranks.most_keys_of(vllm_config.model_config.max_model_len)
        self.prepared_for: set[bool] = set()
        non_causal = vllm_config.attention_config.use_non_causal or getattr(kv_cache_spec, "non_causal", False)
        for causal in (True, False) if non_causal else (True,):
            self._prepare(causal)

    def _prepare(self, causal: bool) -> None:
        """All that may come of these layers: a step has as many rows as the scheduler allows, a sequence as many keys as the model."""
        scheduler = self.vllm_config.scheduler_config
        sequences, rows = scheduler.max_num_seqs, max(scheduler.max_num_batched_tokens, scheduler.max_num_seqs)
        kinds = sorted(self.kinds, key=repr)
        self.serving.prepare([*(line(kind, sequences, rows, self.keys, self.page, causal) for kind in kinds), *(append_line(kind, self.page) for kind in kinds)])
        self.prepared_for.add(causal)

    def build(self, common_prefix_len: int, common_attn_metadata: CommonAttentionMetadata, fast_build: bool = False) -> WavejitMetadata:
        common = common_attn_metadata
        causal = common.causal
        if causal is not True and False not in self.prepared_for:
            self._prepare(False)
        if causal is not True and self.ranks.count > 1:
            raise Unsupported("wavejit.vllm: rows that are not causal where ranks share keys: accepted are causal ones (--decode-context-parallel-size 1)")
        # By now every builder of the model has been made.
        self.serving.seal()
        if self.ranks.count > 1:
            return WavejitMetadata(common.num_actual_tokens, *rows_of(self.ranks, common), 1, self.ranks.most_keys_of(common.max_seq_len), True, self.serving)
        return WavejitMetadata(common.num_actual_tokens, common.query_start_loc, common.seq_lens, common.block_table_tensor, common.max_query_len, common.max_seq_len,
                               causal, self.serving)
