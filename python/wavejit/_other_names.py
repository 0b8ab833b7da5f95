# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The refusal of an argument that a call does not have, with the name that it has here."""
from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Callable, Iterable
from typing import ParamSpec, TypeVar

Words = ParamSpec("Words")
Answer = TypeVar("Answer")

# What other libraries call an argument, and what it is called here where the call has it.
OTHER_NAMES = {"sm_scale": "scale", "softmax_scale": "scale", "scaling": "scale", "window_size": "window", "sliding_window": "window", "window_left": "window",
               "is_causal": "causal", "logits_soft_cap": "softcap", "logit_cap": "softcap", "attn_logit_softcapping": "softcap", "alibi_slopes": "alibi",
               "attn_bias": "bias", "attn_mask": "mask", "attention_mask": "mask", "s_aux": "sinks", "return_lse": "lse", "return_softmax_lse": "lse",
               "return_attn_probs": "lse", "num_splits": "splits", "cu_seqlens_q": "query_starts", "cu_seqlens_k": "key_starts", "seqused_k": "key_lengths",
               "cache_seqlens": "key_lengths", "seq_lens": "key_lengths", "max_seqlen_q": "max_query_length", "max_seqlen_k": "max_key_length",
               "block_tables": "block_table", "page_table": "block_table", "leftpad_k": "first_keys", "cache_leftpad": "first_keys", "q_descale": "q_scale",
               "k_descale": "k_scale", "v_descale": "v_scale", "slot_mapping": "slots"}  # fmt: skip


def refuse_unknown(name: str, known: list[str], words: Iterable[str]) -> None:
    """TypeError for the first of `words` that is not known. `name`: the function's, as its callers write it."""
    for word in words:
        if word in known:
            continue
        same = OTHER_NAMES.get(word)
        near = difflib.get_close_matches(word, known, 1)
        meant = f"; use {same}" if same in known else f" (did you mean {near[0]!r}?)" if near else ""
        raise TypeError(f"{name}: {word!r} is no argument{meant}; accepted: {', '.join(known)}") from None


def refuses_by_name(function: Callable[Words, Answer]) -> Callable[Words, Answer]:
    """A function whose unknown arguments are refused in these words. Python's own would guess k_scale for sm_scale."""
    known = list(inspect.signature(function).parameters)

    @functools.wraps(function)
    def asked(*given: Words.args, **words: Words.kwargs) -> Answer:
        try:
            return function(*given, **words)
        except TypeError:
            refuse_unknown(function.__name__, known, words)
            raise

    return asked
