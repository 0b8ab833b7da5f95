# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One layer's attention in vLLM: new keys into its cache, and all rows of a step over it in one call."""
from __future__ import annotations

from typing import Any

import torch
from vllm.model_executor.layers.quantization.utils.quant_utils import kFp8StaticTensorSym
from vllm.v1.attention.backend import AttentionImpl, AttentionType

from .._errors import Unsupported
from . import _cache, _calls, _limits, _ranks
from ._serving import serving


class WavejitAttention(AttentionImpl[Any]):
    """Refuses, when it is made, what no kernel does: before weights are loaded."""

    supports_quant_query_input = False
    supports_pcp = False
    supports_dcp = True
    can_return_lse_for_decode = True

    def __init__(self, num_heads: int, head_size: int, scale: float, num_kv_heads: int | None = None, alibi_slopes: list[float] | None = None,
                 sliding_window: int | None = None, kv_cache_dtype: str = "auto", logits_soft_cap: float | None = None, attn_type: str = AttentionType.DECODER,
                 kv_sharing_target_layer_name: str | None = None, sinks: torch.Tensor | None = None, head_size_v: int | None = None, **more: Any) -> None:
        shared = self.dcp_world_size > 1  # ranks share keys, and have all their heads gathered
        words = {"num_heads": num_heads * self.dcp_world_size, "head_size": head_size, "num_kv_heads": num_kv_heads or num_heads, "alibi_slopes": alibi_slopes,
                 "sliding_window": sliding_window, "kv_cache_dtype": kv_cache_dtype, "logits_soft_cap": logits_soft_cap, "attn_type": getattr(attn_type, "value", attn_type),
                 "sinks": sinks, "head_size_v": head_size_v, **more}
        unknown = sorted(name for name, value in more.items() if name not in ("use_alibi_sqrt", "chunk_lookback") and value not in (None, False))
        reasons = [f"{name}: not known to this version of wavejit; {_limits.others()} may have it" for name in unknown]
        # While a model is made, its dtype is the default one.
        reasons += _limits.reasons_of_layer(words, torch.get_default_dtype())
        if shared:
            reasons += _limits.reasons_of_ranks(words)
        if reasons:
            raise Unsupported(f"wavejit.vllm: {'; '.join(reasons)}")
        self.kind = _limits.kind_of(words, torch.get_default_dtype())._replace(lse=shared)
        self.has_scales = bool(self.kind.cache) and not self.kind.tokens  # of the layer, for all of its cache
        self.by_all_to_all = shared and _ranks.merges_by_all_to_all()
        self.num_heads, self.head_size, self.num_kv_heads = num_heads, head_size, words["num_kv_heads"]
        self.scale = float(scale)
        self.kv_cache_dtype = kv_cache_dtype
        self.sliding_window, self.logits_soft_cap = sliding_window, logits_soft_cap
        self.kv_sharing_target_layer_name = kv_sharing_target_layer_name
        self.attn_type = attn_type
        self.alibi_slopes = None if alibi_slopes is None else torch.tensor(alibi_slopes, dtype=torch.float32)
        self.sinks = sinks
        if sinks is not None and sinks.shape[0] != num_heads:
            raise Unsupported(f"wavejit.vllm: sinks: shape {tuple(sinks.shape)}; accepted: [{num_heads}], one for each query head")
        self._sinks: torch.Tensor | None = None
        self.words = _calls.Words(self.kind, self.scale)
        self.narrow_words: _calls.Words | None = None  # of an output of 8 bits, once vLLM has asked for one

    def fused_output_quant_supported(self, quant_key: Any) -> bool:
        """vLLM asks before it compiles a model whose projection behind the layer reads e4m3: the layer then writes that itself."""
        if quant_key != kFp8StaticTensorSym or self.kind.lse:
            return False
        kind = self.kind._replace(output=_limits.output_format())
        if _limits.without_a_kernel(kind) is not None:
            return False
        self.narrow_words = _calls.Words(kind, self.scale)
        return True

    @property
    def kinds(self) -> tuple[Any, ...]:
        """Those of all its calls: kernels of them are prepared before the first."""
        return (self.kind,) if self.narrow_words is None else (self.kind, self.narrow_words.kind)

    def process_weights_after_loading(self, act_dtype: torch.dtype) -> None:
        """Sinks as kernels read them, into the same memory each time: captured steps have its address."""
        if self.sinks is None:
            return
        if self._sinks is None or self._sinks.device != self.sinks.device:
            self._sinks = self.sinks.detach().to(torch.float32, copy=True)
        else:
            self._sinks.copy_(self.sinks.detach())

    def forward(self, layer: Any, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, kv_cache: torch.Tensor, attn_metadata: Any, output: torch.Tensor,
                output_scale: torch.Tensor | None = None, output_block_scale: torch.Tensor | None = None) -> torch.Tensor:
        """query [rows, heads, dim] → output [rows, heads, value dim], which is written. Rows of no sequence are left as they are. With
        `output_scale`, fp32 of one element, output is e4m3: a number times 1 / output_scale, rounded once."""
        if output_block_scale is not None:
            raise Unsupported("wavejit.vllm: output_block_scale: there is one scale for all of an output; accepted: none")
        if output_scale is not None and self.narrow_words is None and not self.fused_output_quant_supported(kFp8StaticTensorSym):
            raise Unsupported("wavejit.vllm: output_scale: this layer writes no output of 8 bits; accepted: none (vLLM fuses it only where a layer says it can)")
        if attn_metadata is None:  # vLLM looks how much memory a step takes
            return output.zero_()
        tensors = self.tensors_of(layer, query)
        if self.kind.lse:
            return self._of_ranks(attn_metadata, query, kv_cache, output, tensors)
        words = self.words
        if output_scale is not None and self.narrow_words is not None:
            words, tensors["o_scale"] = self.narrow_words, output_scale
        _calls.attend(words, attn_metadata, query, kv_cache, output, tensors)
        return output

    def tensors_of(self, layer: Any, query: torch.Tensor) -> _calls.Tensors:
        """What the layer gives to its calls, where the queries are."""
        tensors: _calls.Tensors = {}
        if self.alibi_slopes is not None:
            if self.alibi_slopes.device != query.device:
                self.alibi_slopes = self.alibi_slopes.to(query.device)
            tensors["alibi"] = self.alibi_slopes
        if self.sinks is not None:
            if self._sinks is None:
                self.process_weights_after_loading(query.dtype)
            tensors["sinks"] = self._sinks  # type: ignore[assignment]
        if self.has_scales:
            tensors["k_scale"], tensors["v_scale"] = layer._k_scale, layer._v_scale
        return tensors

    def _of_ranks(self, metadata: Any, query: torch.Tensor, kv_cache: torch.Tensor, output: torch.Tensor, tensors: _calls.Tensors) -> torch.Tensor:
        """The heads of all ranks over this rank's keys; then this rank's heads over all keys."""
        rows = metadata.num_actual_tokens
        query = _ranks.gathered(query[:rows])
        # Rows behind the last sequence, which a padded step has, are written by no call, and are merged with the others.
        part = query.new_zeros((rows, query.shape[1], self.kind.value_dim))
        sums = torch.full((1, query.shape[1], rows), float("-inf"), dtype=torch.float32, device=query.device)
        _calls.attend(self.words, metadata, query, kv_cache, part, tensors, sums)
        output[:rows].copy_(_ranks.merged(part, sums[0].T.contiguous(), self.by_all_to_all))
        return output

    def do_kv_cache_update(self, layer: Any, key: torch.Tensor, value: torch.Tensor, kv_cache: torch.Tensor, slot_mapping: torch.Tensor) -> None:
        """vLLM calls it before `forward`, and not for layers that read another layer's cache."""
        scales = (layer._k_scale, layer._v_scale) if self.has_scales else None
        _cache.append(serving(kv_cache.device).engine, key, value, kv_cache, slot_mapping, self.kind.cache, scales, self.kind.tokens)
