# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention for Hugging Face's transformers: one line, and a model attends through wavejit.

    import wavejit.transformers

    wavejit.transformers.register()
    model = AutoModelForCausalLM.from_pretrained(…, dtype="bfloat16", attn_implementation="wavejit")
    with torch.inference_mode():
        model.generate(…)

The mask is registered along with it, so that padded batches are masked. Models train through it, under autocast or in 16 bits.
docs/pytorch.md has the rest.
"""
from __future__ import annotations

from typing import Any

import torch
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.masking_utils import causal_mask_function, sdpa_mask

from ._errors import InvalidArgument
from .torch import _faces, _operators, _dispatch, scaled_dot_product_attention

__all__ = ["attention_forward", "mask", "register"]
# What the operator's words are called here.
NAMES = {"q": "query", "k": "key", "v": "value", "bias": "attention_mask", "sinks": "s_aux"}


def register(name: str = "wavejit") -> None:
    """Makes `name` an attention implementation of transformers, and its mask with it: `attn_implementation=name` of
    from_pretrained, or `model.set_attn_implementation(name)`. Twice does no harm.

    >>> import transformers, wavejit.transformers
    >>> wavejit.transformers.register()
    >>> "wavejit" in transformers.AttentionInterface()
    True
    """
    AttentionInterface.register(name, attention_forward)
    AttentionMaskInterface.register(name, mask)


def mask(*arguments: Any, dtype: torch.dtype | None = None, **words: Any) -> torch.Tensor | None:
    """The mask of a forward, made once for all its layers: transformers' own of "sdpa", as a bias of the model's dtype.

    None where a causal mask says all: no padding, and queries from the first key on, or one query. What a sliding window and padding
    behind the sequences say is known as that: `attention_forward` tells the kernel a window and lengths, which hide keys that are
    never read, and have gradients.
    """
    seen = sdpa_mask(*arguments, **words)
    if seen is None:
        return None
    known = None if arguments else _known(**words)
    if known is not None:
        # On the tensor itself: whatever else is made of it is a mask as any.
        setattr(seen, KNOWN, known)
        return seen
    return seen if dtype not in (torch.float16, torch.bfloat16) else _dispatch.bias_of(seen, dtype)


KNOWN = "wavejit_known"


def _known(*, local_size: int | None = None, allow_is_causal_skip: bool = True, q_length: Any = 0, kv_length: Any = 0, q_offset: Any = 0, kv_offset: Any = 0,
           mask_function: Any = causal_mask_function, attention_mask: torch.Tensor | None = None, **_: Any) -> dict[str, Any] | None:
    """The operator's words, if they say all that the mask says beside causal."""
    if not allow_is_causal_skip or torch.compiler.is_compiling() or type(q_offset) is not int or type(kv_offset) is not int:
        return None
    if q_offset != 0 or kv_offset != 0 or q_length != kv_length:
        return None
    words: dict[str, Any] = {}
    if local_size is None:
        if mask_function is not causal_mask_function:
            return None
    else:
        # Chunks have a local size, too. Row w sees keys 1 … w of a window of w, and key w of a chunk. A window that goes both ways shows
        # row 0 key 1.
        row, key, none = (torch.tensor(number) for number in (local_size, 1, 0))
        if (local_size > 1 and not bool(mask_function(none, none, row, key))) or bool(mask_function(none, none, row, none)):
            return None
        if bool(mask_function(none, none, none, key)):
            return None
        words["window_left"] = local_size - 1
    if attention_mask is not None:
        there = attention_mask.to(torch.bool)
        if there.shape[-1] != kv_length:
            return None
        if not bool(there.all()):
            if not bool(there[:, 0].all()) or bool((there[:, 1:] & ~there[:, :-1]).any()):
                return None  # in front, or in between
            # Rows stand at the keys of their own number, whatever the sequence's length is.
            words |= {"key_lengths": there.sum(-1, dtype=torch.int32), "causal_prefix": 0}
    return words


def attention_forward(module: torch.nn.Module, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, attention_mask: torch.Tensor | None,
                      dropout: float = 0.0, scaling: float | None = None, is_causal: bool | None = None, softcap: float | None = None,
                      s_aux: torch.Tensor | None = None, position_bias: torch.Tensor | None = None, cache: Any = None,
                      **words: Any) -> tuple[torch.Tensor, None]:
    """What transformers calls in each layer.

    query [B, Hq, Sq, D], key [B, Hkv, Sk, D], value [B, Hkv, Sk, Dv] → [B, Sq, Hq, Dv], and no weights
        fp16 or bf16. Key and value heads are read as they are: nothing is repeated.
    attention_mask [B, 1 or Hq, Sq, Sk]
        bool or a bias, from `mask`. None: causal from the first key on, if the layer is causal.
    softcap, s_aux
        The cap of scores; sinks [Hq], a logit for each head that has no value.

    Windows come in attention_mask, and so does padding. Refused by name: dropout, position_bias, cache (transformers' paged
    one), output_attentions.
    """
    for field, given in (("dropout", dropout), ("position_bias", position_bias), ("cache", cache), ("output_attentions", words.get("output_attentions"))):
        if given is not None and given is not False and not (isinstance(given, float) and given == 0.0):
            raise InvalidArgument(f"{field}: given; accepted: a call without it, or another attention implementation (eager has it)")
    rows = query.shape[2]
    causal = getattr(module, "is_causal", True) if is_causal is None else is_causal
    causal = rows > 1 and attention_mask is None and causal
    if causal and key.shape[2] > rows:
        # The first piece of a prompt into a cache of fixed length: no query sees what lies behind.
        key, value = key[:, :, :rows], value[:, :, :rows]
    known = getattr(attention_mask, KNOWN, None) if key.shape[2] == rows else None
    if known is not None:
        attention_mask, causal = None, True
    if softcap is None and s_aux is None and known is None:
        out = scaled_dot_product_attention(query, key, value, attention_mask, 0.0, causal, scaling, True).transpose(1, 2)
        return out, None
    sinks = None if s_aux is None else s_aux.to(torch.float32).contiguous()
    given = {"scale": scaling, "causal": causal, "softcap": softcap or 0.0, "bias": attention_mask, "sinks": sinks, **(known or {})}
    return _operators.called(NAMES, _faces.ROWS_OUT, query, key, value, given), None
