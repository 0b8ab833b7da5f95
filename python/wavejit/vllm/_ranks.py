# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Context parallelism of decode (DCP): ranks share a sequence's keys, `interleave` at a time by turns.

Which keys of a rank a row sees is no diagonal, but a number: those that stand before the row's own. So each row of a prompt is a sequence
of its own here, with a length. All ranks' heads are gathered before, and merged by LSE behind: a row then fills a tile with its heads. Around
latent attention vLLM does both; other layers do it themselves, by vLLM's functions.
"""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from vllm.v1.attention.backend import AttentionCGSupport


@dataclass(frozen=True)
class Ranks:
    count: int
    mine: int
    interleave: int

    @classmethod
    def of(cls, vllm_config: Any) -> Ranks:
        """The ranks as this process has them."""
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


def rows_of(ranks: Ranks, common: Any) -> Rows:
    """The rows of a step, as vLLM tells it: what it keeps in tensors that stay, where all sequences decode."""
    if common.max_query_len == 1 and common.dcp_local_seq_lens is not None:
        return Rows(common.query_start_loc, common.dcp_local_seq_lens, common.block_table_tensor)
    return one_by_one(ranks, common.num_actual_tokens, common.query_start_loc, common.seq_lens, common.block_table_tensor)


def graphs_of_ranks(vllm_config: Any, otherwise: AttentionCGSupport) -> AttentionCGSupport:
    """Ranks that share keys capture only what vLLM keeps in tensors that stay: decode."""
    return AttentionCGSupport.UNIFORM_SINGLE_TOKEN_DECODE if vllm_config.parallel_config.decode_context_parallel_size > 1 else otherwise


def merges_by_all_to_all() -> bool:
    """--dcp-comm-backend a2a. While a model is made its configuration is known."""
    from vllm.config import get_current_vllm_config_or_none

    config = get_current_vllm_config_or_none()
    return config is not None and config.parallel_config.dcp_comm_backend == "a2a"


def gathered(query: torch.Tensor) -> torch.Tensor:
    """[rows, heads, dim] → [rows, heads of all ranks, dim]."""
    from vllm.distributed.parallel_state import get_dcp_group

    return get_dcp_group().all_gather(query.contiguous(), dim=1)


def merged(part: torch.Tensor, sums: torch.Tensor, by_all_to_all: bool) -> torch.Tensor:
    """This rank's heads, merged: from what it found for all heads [rows, heads of all ranks, dim] and its LSE [rows, heads of all ranks]."""
    from vllm.distributed.parallel_state import get_dcp_group
    from vllm.v1.attention.ops import dcp

    merge = dcp.dcp_a2a_lse_reduce if by_all_to_all else dcp.cp_lse_ag_out_rs
    return merge(part, sums, get_dcp_group())
