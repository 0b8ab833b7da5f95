# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How callers have their tensors, and how the operators have them: [batch, length, heads, head dim].

A function hands its caller's own tensors on, and says which face they have. Views are made where a shape comes for the first time;
afterwards the extension knows addresses and strides, and makes outputs as the caller wants them (_seen.py).
"""
from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch

Change = Callable[[torch.Tensor], torch.Tensor]


class Layout(NamedTuple):
    inside: Change  # a caller's tensor, as the operators have it
    outside: Change


def _same(tensor: torch.Tensor) -> torch.Tensor:
    return tensor


def _transposed(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.transpose(1, 2)


def _in_one_batch(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.unsqueeze(0)


def _without_batch(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.squeeze(0)


_AS_IT_IS = Layout(_same, _same)
_HEADS_FIRST = Layout(_transposed, _transposed)  # [batch, heads, length, head dim]
_ROWS = Layout(_in_one_batch, _without_batch)  # [rows, heads, head dim]


class Face(NamedTuple):
    """The layouts of q, of k and v, and of the output; a gradient has the layout of its tensor."""

    number: int
    q: Layout
    keys: Layout
    out: Layout

    def inside(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        return self.q.inside(q), self.keys.inside(k), self.keys.inside(v)


DENSE = Face(0, _AS_IT_IS, _AS_IT_IS, _AS_IT_IS)
HEADS_FIRST = Face(1, _HEADS_FIRST, _HEADS_FIRST, _HEADS_FIRST)
PACKED = Face(2, _ROWS, _ROWS, _ROWS)
PAGED = Face(3, _ROWS, _AS_IT_IS, _ROWS)
ROWS_OUT = Face(4, _HEADS_FIRST, _HEADS_FIRST, _AS_IT_IS)  # as transformers has it
FACES = (DENSE, HEADS_FIRST, PACKED, PAGED, ROWS_OUT)
