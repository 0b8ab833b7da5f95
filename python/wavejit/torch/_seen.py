# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls of shapes that were seen before, remembered by the extension: it reads torch's tensors and makes them by torch's functions in
C, at a fraction of what Python's cost (python/bindings/torch_calls.cpp).

PyTorch has all of those from 2.14 on. Before, nothing is remembered here, and the dispatch in Python does it instead.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import torch

from .. import _wavejit
from .._engine import Engine
from .._errors import Unsupported

CALLS = {"forward": _wavejit.TorchForwardCalls, "backward": _wavejit.TorchBackwardCalls}
# Beyond, Python asks for a workspace: no room is an exception there, and a call that splits keys asks for less.
LARGEST_WORKSPACE = 16 << 20


def _torch() -> Any:
    try:
        return _wavejit.TorchTensors(torch.Tensor)
    except Unsupported:
        return None


TORCH = _torch()


class Caller(NamedTuple):
    """By which tensors a call is remembered, where the operator has views of them."""

    variant: int
    tensors: tuple[torch.Tensor, ...]
    outside: tuple[Callable[[torch.Tensor], torch.Tensor], ...]  # outputs as the caller has them, in their order


def all_of(others: Mapping[str, torch.Tensor], words: Mapping[str, Any]) -> bool:
    """Whether the tensors among the words were read where they lie: as they are, or, where all batches or heads share a bias, its first
    part. The key does not record how far the memory behind a bias reaches, so its rows must be whole ones."""
    where_they_lie = all([words[name] is tensor or words[name].data_ptr() == tensor.data_ptr() for name, tensor in others.items()])
    return where_they_lie and ("bias" not in others or others["bias"].shape[-1] % 8 == 0)


def remember(engine: Engine, kind: str, caller: Caller, words: Mapping[str, Any], plan: Any, names: Any, outputs: dict[str, torch.Tensor],
             before: Sequence[float] = ()) -> None:
    """A call that was launched, and its outputs. `names`: of the tensors. `before`: what stands in each output before the launch, which
    may leave something out."""
    if TORCH is None or plan.workspace > LARGEST_WORKSPACE:
        return
    calls: Any = engine._torch_calls.get(kind)
    if calls is None:
        calls = engine._torch_calls[kind] = CALLS[kind](engine._open(), TORCH)
    among = [name for name, value in words.items() if isinstance(value, torch.Tensor)]
    like = torch.empty(0, dtype=torch.float32, device=caller.tensors[0].device) if plan.workspace else None
    made = tuple([change(tensor) for change, tensor in zip(caller.outside, outputs.values())])
    calls.remember(caller.variant, caller.tensors, words, plan.call, [*names, *among], list(outputs), made, list(before), like, plan.workspace)
