# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What all layers of a step share: where sequences begin, how long they are, in which pages their keys lie.

vLLM's tensors are taken as they are: kernels read lengths and tables on the device, so nothing is planned from them here, and a
captured step may be replayed over other ones.
"""
from __future__ import annotations

import dataclasses
from typing import Any

import torch
from vllm.v1.attention.backend import AttentionMetadata

from ..torch import _dispatch
from ._serving import Serving


@dataclasses.dataclass
class WavejitMetadata(AttentionMetadata):
    num_actual_tokens: int
    query_starts: torch.Tensor  # [sequences + 1]
    key_lengths: torch.Tensor  # [sequences]
    block_table: torch.Tensor  # [sequences, columns]
    max_query_length: int
    max_key_length: int
    causal: bool | torch.Tensor  # of each sequence, if it is a tensor
    serving: Serving
    # Checked calls by the kind of a layer.
    plans: dict[Any, Any] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        # Where a step's own tensors lie, by the engine's words.
        self.at = {"query_starts": self.query_starts.data_ptr(), "key_lengths": self.key_lengths.data_ptr(), "block_table": self.block_table.data_ptr()}
        self.workspace: torch.Tensor | None = None
        self.room = 0  # bytes of it

    def make_room(self, plan: _dispatch.Plan, device: torch.device) -> None:
        """Memory for partial results, which layers share: they follow each other on one stream."""
        self.workspace = _dispatch._workspace(plan, device)
        self.at["workspace"], self.room = self.workspace.data_ptr(), self.workspace.numel() * 4
