# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What all layers of latent attention of a step share."""
from __future__ import annotations

import dataclasses
from typing import Any

import torch

from ._step import WavejitMetadata


@dataclasses.dataclass
class WavejitLatentMetadata(WavejitMetadata):
    """vLLM parts rows into those that decode, which are absorbed, and those of prompts: here all are absorbed."""

    prefill: None = None
    num_prefills: int = 0
    outputs: dict[Any, torch.Tensor] = dataclasses.field(default_factory=dict)
    # What vLLM asks for when it merges what ranks found: of its own sequences, of which each row may be one here.
    seq_lens: torch.Tensor | None = None
    query_start_loc: torch.Tensor | None = None

    def output(self, rows: torch.Tensor, value_dim: int) -> torch.Tensor:
        """The output of a layer, which vLLM multiplies before the next one writes it: layers follow each other on one stream.

        Rows behind the last sequence, which a padded step has, are written by no layer: they are 0, and vLLM multiplies them, too."""
        key = (rows.shape[0], rows.shape[1], rows.dtype)
        found = self.outputs.get(key)
        if found is None:
            found = self.outputs[key] = torch.zeros((rows.shape[0], rows.shape[1], value_dim), dtype=rows.dtype, device=rows.device)
        return found

    @property
    def num_decodes(self) -> int:
        return self.key_lengths.shape[0] if self.seq_lens is None else self.seq_lens.shape[0]

    @property
    def num_decode_tokens(self) -> int:
        return self.num_actual_tokens

    @property
    def decode(self) -> WavejitLatentMetadata:
        return self
