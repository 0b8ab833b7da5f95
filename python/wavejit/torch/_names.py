# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the operators' words are called in flash-attn's functions: refusals are told by the names that their callers know."""
from __future__ import annotations

DENSE = {"scale": "softmax_scale", "q_scale": "q_descale", "k_scale": "k_descale", "v_scale": "v_descale", "alibi": "alibi_slopes", "window_left": "window_size", "window_right": "window_size", "window": "window_size"}
PACKED = {**DENSE, "query_starts": "cu_seqlens_q", "key_starts": "cu_seqlens_k", "key_lengths": "cu_seqlens_k", "max_query_length": "max_seqlen_q",
          "max_key_length": "max_seqlen_k", "splits": "num_splits", "sinks": "s_aux", "sink": "s_aux"}
USED = {**PACKED, "key_lengths": "seqused_k"}  # cu_seqlens_k is key_starts there, if it is given
DENSE_QKV = {**DENSE, "q": "qkv", "k": "qkv", "v": "qkv"}
DENSE_KV = {**DENSE, "k": "kv", "v": "kv"}
PACKED_QKV = {**PACKED, **DENSE_QKV, "query_starts": "cu_seqlens", "key_starts": "cu_seqlens", "max_query_length": "max_seqlen", "max_key_length": "max_seqlen"}
PACKED_KV = {**PACKED, **DENSE_KV}
CACHE = {**DENSE, "k": "k_cache", "v": "v_cache", "key_lengths": "cache_seqlens", "first_keys": "cache_leftpad", "splits": "num_splits",
         "table_columns": "block_table"}
# cache_append's, which flash_attn_with_kvcache calls: k and v are its new keys and values.
APPENDED = {"cos": "rotary_cos", "sin": "rotary_sin", "rotary_dim": "rotary_cos", "k_scale": "k_descale", "v_scale": "v_descale"}
