# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the backend cannot do, said when SGLang makes it: before a request comes."""
from __future__ import annotations

from typing import Any

import torch
from sglang.srt.layers.radix_attention import AttentionType, RadixAttention

from .. import _offline
from .._errors import Error, Unsupported
from ..vllm import _latent_lines
from ..vllm._latent_lines import LatentKind
from ..vllm._lines import Kind, line

DTYPES = {torch.float16: "fp16", torch.bfloat16: "bf16"}
FORMATS = {torch.float8_e4m3fn: "e4m3", torch.float8_e5m2: "e5m2", torch.float8_e4m3fnuz: "e4m3_fnuz", torch.float8_e5m2fnuz: "e5m2_fnuz"}


def is_latent(runner: Any) -> bool:
    return bool(getattr(runner, "use_mla_backend", False))


def kinds_of(runner: Any) -> list[Kind] | list[LatentKind]:
    """The kinds of all layers of the model, each once. Refuses what no kernel does, by name."""
    reasons = []
    if is_latent(runner) and getattr(runner.token_to_kv_pool, "use_dsa", False):
        reasons.append("latent attention over lists of keys (DSA): wavejit.sglang has none; --attention-backend dsa has it")
    if runner.dtype not in DTYPES:
        reasons.append(f"dtype {runner.dtype}: accepted are float16 and bfloat16 (--dtype bfloat16)")
    if runner.kv_cache_dtype != runner.dtype and runner.kv_cache_dtype not in FORMATS:
        reasons.append(f"kv_cache_dtype {runner.kv_cache_dtype}: accepted are the model's own (--kv-cache-dtype auto), fp8_e4m3 and fp8_e5m2; --attention-backend triton may have it")
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
    dtype, cache = DTYPES[runner.dtype], FORMATS.get(runner.kv_cache_dtype, "")
    if is_latent(runner):
        return sorted({LatentKind(dtype, each.tp_q_head_num, each.qk_head_dim, each.v_head_dim, cache) for each in layers if is_absorbed(each, runner.token_to_kv_pool)}, key=repr)
    sinks = any(name.endswith("sinks") for name, _ in runner.model.named_parameters())
    return sorted({_kind_of(each, dtype, sinks, cache) for each in layers}, key=repr)


def is_absorbed(layer: Any, pool: Any) -> bool:
    """Models of latent attention have a layer beside, whose keys and values are expanded: nothing comes by it."""
    return bool(layer.tp_k_head_num == 1 and layer.v_head_dim == pool.kv_lora_rank and layer.qk_head_dim == pool.kv_lora_rank + pool.qk_rope_head_dim)


def _reasons_of_layer(layer: Any) -> list[str]:
    found = []
    if layer.is_cross_attention or layer.attn_type not in (AttentionType.DECODER,):
        found.append("attention that is not a decoder's own; --attention-backend triton has it")
    if (getattr(layer, "xai_temperature_len", -1) or -1) > 0:
        found.append("xai_temperature_len: wavejit has none; --attention-backend triton has it")
    if layer.logit_cap and getattr(layer, "logit_capping_method", "tanh") not in ("tanh", None):
        found.append(f"logit_capping_method {layer.logit_capping_method}: accepted is tanh")
    return found


def _kind_of(layer: Any, dtype: str, sinks: bool, cache: str) -> Kind:
    window = layer.sliding_window_size if layer.sliding_window_size is not None and layer.sliding_window_size > -1 else None
    return Kind(dtype, layer.tp_q_head_num, layer.tp_k_head_num, layer.qk_head_dim, layer.v_head_dim, window, float(layer.logit_cap or 0.0), sinks, False, cache)


def lines_of(kind: Kind | LatentKind, sequences: int, rows: int, keys: int, page: int) -> list[str]:
    """All calls that an engine may make of such a layer."""
    return _latent_lines.lines(kind, sequences, rows, keys, page) if isinstance(kind, LatentKind) else [line(kind, sequences, rows, keys, page)]


def check(kind: Kind | LatentKind, page: int, target: str) -> None:
    """Refuses a layer that no kernel of this target does, with the kernels' own words."""
    try:
        _offline.explain(lines_of(kind, 2, 64, 64, page)[0].replace("q1..64", "q1").replace("k0..64", "k64"), target)
    except Error as error:
        raise Unsupported(f"wavejit.sglang: {error.detail}; --attention-backend triton may have it") from error
