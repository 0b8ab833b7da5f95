# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the backend cannot do, said when SGLang makes it: before a request comes."""
from __future__ import annotations

from typing import Any

import torch
from sglang.srt.layers.radix_attention import AttentionType, RadixAttention

from .. import _offline
from .._errors import Error, Unsupported
from ..vllm._lines import Kind, line

DTYPES = {torch.float16: "fp16", torch.bfloat16: "bf16"}


def kinds_of(runner: Any) -> list[Kind]:
    """Of all layers of the model, each once. Refuses what no kernel does, by name."""
    reasons = []
    if getattr(runner, "use_mla_backend", False):
        reasons.append("latent attention (MLA): wavejit.sglang has none; --attention-backend aiter or triton")
    if runner.dtype not in DTYPES:
        reasons.append(f"dtype {runner.dtype}: accepted are float16 and bfloat16 (--dtype bfloat16)")
    if runner.kv_cache_dtype != runner.dtype:
        reasons.append(f"kv_cache_dtype {runner.kv_cache_dtype}: accepted is the model's own (--kv-cache-dtype auto); --attention-backend triton may have it")
    if getattr(runner.server_args, "speculative_algorithm", None):
        reasons.append("speculation: trees of drafts are not in wavejit.sglang; --attention-backend triton has them")
    pool = runner.token_to_kv_pool
    if hasattr(pool, "translate_loc_from_full_to_swa") and getattr(pool, "swa_layer_nums", 0) > 0:
        reasons.append("a pool of its own for layers with windows: accepted is one pool for all (--disable-hybrid-swa-memory)")
    layers = [each for each in runner.model.modules() if isinstance(each, RadixAttention)]
    for each in layers:
        reasons += [f"layer {each.layer_id}: {told}" for told in _reasons_of_layer(each)]
    if reasons:
        raise Unsupported(f"wavejit.sglang: {'; '.join(dict.fromkeys(reasons))}")
    sinks = any(name.endswith("sinks") for name, _ in runner.model.named_parameters())
    return sorted({_kind_of(each, DTYPES[runner.dtype], sinks) for each in layers}, key=repr)


def _reasons_of_layer(layer: Any) -> list[str]:
    found = []
    if layer.is_cross_attention or layer.attn_type not in (AttentionType.DECODER,):
        found.append("attention that is not a decoder's own; --attention-backend triton has it")
    if (getattr(layer, "xai_temperature_len", -1) or -1) > 0:
        found.append("xai_temperature_len: wavejit has none; --attention-backend triton has it")
    if layer.logit_cap and getattr(layer, "logit_capping_method", "tanh") not in ("tanh", None):
        found.append(f"logit_capping_method {layer.logit_capping_method}: accepted is tanh")
    return found


def _kind_of(layer: Any, dtype: str, sinks: bool) -> Kind:
    window = layer.sliding_window_size if layer.sliding_window_size is not None and layer.sliding_window_size > -1 else None
    return Kind(dtype, layer.tp_q_head_num, layer.tp_k_head_num, layer.qk_head_dim, layer.v_head_dim, window, float(layer.logit_cap or 0.0), sinks, False, "")


def check(kind: Kind, page: int, target: str) -> None:
    """Refuses a layer that no kernel of this target does, with the kernels' own words."""
    try:
        _offline.explain(line(kind, 2, 64, 64, page).replace("q1..64", "q1").replace("k0..64", "k64"), target)
    except Error as error:
        raise Unsupported(f"wavejit.sglang: {error.detail}; --attention-backend triton may have it") from error
