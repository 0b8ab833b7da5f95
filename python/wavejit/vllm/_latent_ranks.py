# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Context parallelism of decode (DCP) for latent attention: ranks share a sequence's keys, `interleave` at a time by turns.

Which keys of a rank a row sees is no diagonal, but a number: those that stand before the row's own. So each row of a prompt is a sequence
of its own here, with a length. vLLM gathers all ranks' heads before and merges by LSE behind: a row then fills a tile with its heads.
"""
from __future__ import annotations

from typing import Any, NamedTuple

import torch


class Ranks(NamedTuple):
    count: int
    mine: int
    interleave: int

    @classmethod
    def of(cls, vllm_config: Any) -> Ranks:
        """Of this process."""
        parallel = vllm_config.parallel_config
        count = int(parallel.decode_context_parallel_size)
        if count == 1:
            return cls(1, 0, 1)
        from vllm.distributed.parallel_state import get_dcp_group

        return cls(count, int(get_dcp_group().rank_in_group), int(parallel.cp_kv_cache_interleave_size))

    def keys_of(self, lengths: torch.Tensor) -> torch.Tensor:
        """How many of a sequence's first keys are this rank's."""
        turn = self.count * self.interleave
        whole = torch.div(lengths, turn, rounding_mode="floor")
        rest = (lengths - whole * turn - self.mine * self.interleave).clamp(0, self.interleave)
        return (whole * self.interleave + rest).to(torch.int32)

    def most_keys_of(self, length: int) -> int:
        return min(length, -(-length // (self.count * self.interleave)) * self.interleave)


class Rows(NamedTuple):
    """Sequences as a rank's call has them."""

    query_starts: torch.Tensor
    key_lengths: torch.Tensor
    block_table: torch.Tensor


def one_by_one(ranks: Ranks, rows: int, query_starts: torch.Tensor, lengths: torch.Tensor, block_table: torch.Tensor) -> Rows:
    """Each row a sequence. `lengths`: of the whole sequences, on all ranks. Rows that are nobody's see no key."""
    each = torch.arange(rows, dtype=torch.int32, device=query_starts.device)
    sequence = torch.bucketize(each, query_starts[1:], right=True)
    known = sequence < lengths.shape[0]
    sequence = sequence.clamp(max=lengths.shape[0] - 1)
    seen = lengths[sequence] - (query_starts[1:][sequence] - 1 - each)
    return Rows(torch.arange(rows + 1, dtype=torch.int32, device=query_starts.device), ranks.keys_of(torch.where(known, seen, 0).clamp(min=0)), block_table[sequence])
