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
    # Checked calls by the kind of a layer, and memory for partial results: layers follow each other on one stream.
    plans: dict[Any, Any] = dataclasses.field(default_factory=dict)
    workspace: torch.Tensor | None = None

    def __post_init__(self) -> None:
        # Where a step's own tensors lie, by the engine's words.
        self.at: dict[str, int] = {name: getattr(self, name).data_ptr() for name in ("query_starts", "key_lengths", "block_table")}
