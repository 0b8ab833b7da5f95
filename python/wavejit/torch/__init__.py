# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention for PyTorch: what people call already, by the names and with the arguments that they know.

    import torch, wavejit.torch

    wavejit.torch.use("sim:gfx950")          # CPU tensors, copied to a simulated GPU; ROCm tensors need no such line
    q = torch.randn(1, 8, 64, 128, dtype=torch.bfloat16)
    k = v = torch.randn(1, 2, 256, 128, dtype=torch.bfloat16)
    out = wavejit.torch.scaled_dot_product_attention(q, k, v, enable_gqa=True)

`scaled_dot_product_attention` is torch.nn.functional's; `flash_attn_func`, `flash_attn_varlen_func`, their forms with kv or qkv in one
tensor and `flash_attn_with_kvcache` are flash-attn's. They end in the operators `torch.ops.wavejit.attention_forward` and `attention_forward_lse`, through which
torch.compile and torch.export trace. docs/pytorch.md begins there.

Where q, k, v, a mask of numbers or sinks require grad, they have gradients: head dims 64, 128, 192 with 128 for v, and 256 (as far as
the forward has them), every mask, soft-cap, ALiBi. `block_mask_attention` takes FlexAttention's BlockMask, `key_list_attention` a list of keys for each query, both without gradients. The same call twice gives the same bits. What has no gradient is refused by name.

`cache_append` writes new keys and values into a cache, with rotary embedding on the way. `attention_merge` makes one result of those over several pieces of the keys.

Latent attention: `attention_latent`, and `flash_mla_with_kvcache`, `flash_mla_sparse_fwd` and `mla_decode_fwd` with the arguments of FlashMLA and AITER. No gradients.
"""
from . import _front_ends as _front_ends
from ._append import cache_append
from ._blocks import block_mask_attention
from ._engines import engine, use
from ._flash import (
    flash_attn_func,
    flash_attn_kvpacked_func,
    flash_attn_qkvpacked_func,
    flash_attn_varlen_func,
    flash_attn_varlen_kvpacked_func,
    flash_attn_varlen_qkvpacked_func,
    flash_attn_with_kvcache,
)
from ._indexer import sparse_indexer
from ._key_lists import key_list_attention
from ._latent import attention_latent, flash_mla_sparse_fwd, flash_mla_with_kvcache, get_mla_metadata, mla_decode_fwd
from ._merge import attention_merge, merge_attn_states
from ._sdpa import scaled_dot_product_attention

__all__ = ["attention_latent", "attention_merge", "block_mask_attention", "cache_append", "engine", "flash_attn_func", "flash_attn_kvpacked_func", "flash_attn_qkvpacked_func", "flash_attn_varlen_func",
           "flash_attn_varlen_kvpacked_func", "flash_attn_varlen_qkvpacked_func", "flash_attn_with_kvcache", "flash_mla_sparse_fwd", "flash_mla_with_kvcache",
           "get_mla_metadata", "key_list_attention", "merge_attn_states", "mla_decode_fwd", "scaled_dot_product_attention", "sparse_indexer", "use"]
