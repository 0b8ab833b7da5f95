# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The operators, as torch.library knows them: their schema, what they do, and what they are when they are traced.

Both take the words of `Engine.attention_forward`, tensors [batch, length, heads, head dim]:

    torch.ops.wavejit.attention_forward(q, k, v, *, …) -> Tensor
    torch.ops.wavejit.attention_forward_lse(q, k, v, *, …) -> (Tensor, Tensor)     with LSE [batch, heads, length] fp32

Not torch.library.custom_op: what that does around a call costs as much as the rest of it.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from .._errors import Unsupported
from . import _engines, _roads

# bias: also bool, True where a key is seen. A window of −1 has no limit, a prefix of −1 is none, a length of 0 is not told.
ARGUMENTS = (
    "Tensor q, Tensor k, Tensor v, *, float? scale=None, bool causal=False, SymInt window_left=-1, SymInt window_right=-1, SymInt causal_prefix=-1, "
    "float softcap=0.0, Tensor? bias=None, Tensor? alibi=None, Tensor? sinks=None, Tensor? query_starts=None, Tensor? key_starts=None, "
    "Tensor? key_lengths=None, Tensor? first_keys=None, Tensor? block_table=None, SymInt max_query_length=0, SymInt max_key_length=0, int splits=0"
)
LIBRARY: Any = torch.library.Library("wavejit", "DEF")  # type: ignore[no-untyped-call,unused-ignore]
LIBRARY.define(f"attention_forward({ARGUMENTS}) -> Tensor", tags=(torch.Tag.pt2_compliant_tag,))
LIBRARY.define(f"attention_forward_lse({ARGUMENTS}) -> (Tensor, Tensor)", tags=(torch.Tag.pt2_compliant_tag,))


def inference_only(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *others: torch.Tensor | None) -> None:
    """Refuses what a backward would be needed for."""
    if not torch.is_grad_enabled():
        return
    for field, tensor in zip(("q", "k", "v", "bias", "alibi", "sinks"), (q, k, v, *others)):
        if tensor is not None and tensor.requires_grad:
            raise Unsupported(f"{field}: it requires grad, and there is no backward yet; accepted: torch.no_grad(), torch.inference_mode(), or detach()")


def _attention_forward(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, **words: Any) -> torch.Tensor:
    if torch.is_grad_enabled():
        inference_only(q, k, v, words.get("bias"), words.get("alibi"), words.get("sinks"))
    engine = _engines.of_device(q.device, "q")
    if q.is_cpu:
        return _roads.through_copies(engine, q, k, v, False, words)[0]
    return _roads.on_device(engine, q, k, v, False, words)[0]


def _attention_forward_lse(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, **words: Any) -> tuple[torch.Tensor, torch.Tensor]:
    inference_only(q, k, v, words.get("bias"), words.get("alibi"), words.get("sinks"))
    engine = _engines.of_device(q.device, "q")
    if q.is_cpu:
        return _roads.through_copies(engine, q, k, v, True, words)
    return _roads.on_device(engine, q, k, v, True, words)


def _traced(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, **words: Any) -> torch.Tensor:
    inference_only(q, k, v, words.get("bias"), words.get("alibi"), words.get("sinks"))
    return q.new_empty((q.shape[0], q.shape[1], q.shape[2], v.shape[3]))


def _traced_lse(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, **words: Any) -> tuple[torch.Tensor, torch.Tensor]:
    return _traced(q, k, v, **words), q.new_empty((q.shape[0], q.shape[2], q.shape[1]), dtype=torch.float32)


# One kernel for every device: what it cannot do, it refuses by name. torch.compile must not look inside, which it would where it
# runs a graph in pieces.
_untraced: Callable[..., Any] = torch.compiler.disable
LIBRARY.impl("attention_forward", _untraced(_attention_forward), "CompositeExplicitAutograd")
LIBRARY.impl("attention_forward_lse", _untraced(_attention_forward_lse), "CompositeExplicitAutograd")
torch.library.register_fake("wavejit::attention_forward", _traced, lib=LIBRARY)
torch.library.register_fake("wavejit::attention_forward_lse", _traced_lse, lib=LIBRARY)

attention_forward: Callable[..., torch.Tensor] = torch.ops.wavejit.attention_forward.default
attention_forward_lse: Callable[..., tuple[torch.Tensor, torch.Tensor]] = torch.ops.wavejit.attention_forward_lse.default
