# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""vLLM's indexer of sparse attention (DeepSeek V3.2, GLM-5) by wavejit: from its queries, keys and weights to each row's list.

vLLM lets a plug-in replace it: an operator registered from outside its tree under that name (`CustomOp.register_oot`) is made instead.
Of equal scores the lower key is chosen, and lists ascend, so a row's list is that of the row alone. What vLLM's own top-k chooses is left open.
"""
from __future__ import annotations

import logging
from typing import Any

import torch
from vllm.config import get_current_vllm_config
from vllm.forward_context import get_forward_context
from vllm.model_executor.custom_op import CustomOp, op_registry_oot
from vllm.model_executor.layers.sparse_attn_indexer import SparseAttnIndexer
from vllm.platforms import current_platform

from ..torch import _dispatch
from . import _calls, _limits
from ._serving import serving

logger = logging.getLogger("vllm.wavejit")
NAME = SparseAttnIndexer.__name__
DIM, SCALE_BYTES = 128, 4
# Rows of a sequence for which kernels differ: neighbours may share their keys, depending on the number of rows.
ROWS_OF_KERNELS = (1, 2, 3, 4)
# Scores of a call, beyond which its rows go in rounds (docs/sparse-indexer.md).
MOST_WORKSPACE = 256 << 20


def register() -> None:
    """From now on vLLM makes ours. Twice does no harm, and another plug-in's stays."""
    if NAME not in op_registry_oot:
        CustomOp.register_oot(WavejitSparseAttnIndexer, name=NAME)
    elif op_registry_oot[NAME] is not WavejitSparseAttnIndexer:
        logger.warning("wavejit.vllm: %s is %s already, and stays it: lists of keys are not wavejit's", NAME, op_registry_oot[NAME].__name__)


def plainly_cached(indexer: Any) -> Any:
    """A class of vLLM's indexer whose cache has a key's numbers side by side: its property says what the cache's reader expects."""
    cache = type(indexer.indexer_cache_cls.__name__, (indexer.indexer_cache_cls,), {"uses_shuffled_layout": False})
    return type(indexer.__name__, (indexer,), {"indexer_cache_cls": cache})


def line(dtype: str, heads: int, top_k: int, keys: int, rows: int) -> str:
    return f"sparse_indexer {dtype} b2 q{rows} k{keys} h{heads} page=64 key_scales top={top_k}"


def parts_of(cache: torch.Tensor, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    """A page has its keys' numbers, and behind them their scales: [pages, keys, 128] and [pages, keys], views."""
    pages, keys, page = cache.shape[0], cache.shape[1], cache.stride(0)
    start = cache.storage_offset()
    numbers = cache.as_strided((pages, keys, DIM), (page, DIM, 1)).view(dtype)
    # A view of four bytes needs offsets of whole ones, of the storage as of each page.
    floats = cache.as_strided((pages, keys * (DIM + SCALE_BYTES)), (page, 1), start).view(torch.float32)
    return numbers, floats.narrow(1, keys * DIM // SCALE_BYTES, keys)


class WavejitSparseAttnIndexer(SparseAttnIndexer):
    """Where no kernel does what is asked for, vLLM's own does it, and the log says why."""

    def __init__(self, *given: Any, **words: Any) -> None:
        super().__init__(*given, **words)
        self.ours = False
        reason = self._reason()
        if reason is not None:
            logger.warning("wavejit.vllm: lists of keys are made by vLLM's own indexer: %s", reason)
            return
        config = get_current_vllm_config().model_config
        self.serving = serving(self.topk_indices_buffer.device)
        heads = int(config.hf_text_config.index_n_heads)
        self.serving.prepare([line(_limits.cache_format("fp8"), heads, self.topk_tokens, max(config.max_model_len, rows), rows) for rows in ROWS_OF_KERNELS])
        self.ours = True

    def _reason(self) -> str | None:
        """Why no kernel makes these lists."""
        cpu = current_platform.is_cpu()
        if self.topk_indices_buffer is None:
            return "no topk_indices_buffer"
        if self.head_dim != DIM or self.quant_block_size != DIM:
            return f"keys of {self.head_dim} numbers with a scale for each {self.quant_block_size}; accepted: {DIM} with one"
        if self.use_fp4_cache or self.compress_ratio != 1 or self.candidate_blocks is not None:
            return "keys of 4 bits, keys that stand for several, or lists of two levels"
        if self.dcp_world_size > 1 or self.use_pcp:
            return "ranks that share keys"
        if not cpu and not self.skip_k_cache_insert:
            return "a model whose keys it would have to write, too"
        if not cpu and self.k_cache.uses_shuffled_layout:
            return "a cache whose pages are shuffled"
        if cpu and _limits.target() in _limits.FNUZ:
            return f"{_limits.target()} reads e4m3_fnuz, and vLLM for CPUs writes e4m3"
        return None

    def forward_hip(self, hidden_states: torch.Tensor, q_quant: Any, k: torch.Tensor | None, weights: torch.Tensor) -> Any:
        if not self.ours:
            return super().forward_hip(hidden_states, q_quant, k, weights)
        return self._lists(hidden_states.shape[0], q_quant, weights)

    def forward_cpu(self, hidden_states: torch.Tensor, q_quant: Any, k: torch.Tensor | None, weights: torch.Tensor) -> Any:
        if not self.ours:
            return super().forward_cpu(hidden_states, q_quant, k, weights)
        metadata = self._metadata()
        if metadata is not None and k is not None and not self.skip_k_cache_insert:
            self._write(k, metadata.slot_mapping, q_quant.dtype)
        return self._lists(hidden_states.shape[0], q_quant, weights)

    def _metadata(self) -> Any:
        """The metadata of this step; None while vLLM measures its memory, and a call has no sequences."""
        step = get_forward_context().attn_metadata
        return step[self.k_cache.prefix] if isinstance(step, dict) else None

    def _write(self, k: torch.Tensor, slots: torch.Tensor, dtype: torch.dtype) -> None:
        """As vLLM's models for GPUs write keys: of the queries' type, each with a scale that is a power of two."""
        kept = slots >= 0
        rows, places = k[: slots.shape[0]][kept].float(), slots[kept]
        scale = torch.exp2(torch.ceil(torch.log2(rows.abs().amax(1).clamp(min=1e-4) / torch.finfo(dtype).max)))
        numbers, scales = parts_of(self.k_cache.kv_cache, dtype)
        page, key = places // numbers.shape[1], places % numbers.shape[1]
        numbers.view(torch.uint8)[page, key] = (rows / scale[:, None]).to(dtype).view(torch.uint8)
        scales[page, key] = scale

    def _lists(self, rows: int, queries: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
        buffer, metadata = self.topk_indices_buffer, self._metadata()
        if metadata is None:
            if not buffer.is_cpu:
                torch.empty(MOST_WORKSPACE, dtype=torch.uint8, device=buffer.device)  # vLLM measures what a step may take
            return buffer
        buffer[:rows] = -1
        weights = weights.float()
        for chunk in metadata.prefill.chunks if metadata.num_prefills else ():
            begin, end = chunk.token_start, chunk.token_end
            seen = chunk.cu_seqlen_ke - chunk.cu_seqlen_ks
            if chunk.num_reqs == 1:  # neighbours share their keys
                self._call(queries[begin:end], weights[begin:end], chunk.block_table[:1], seen, begin, metadata.max_seq_len)
            else:
                sequences = torch.searchsorted(chunk.cu_seq_lens, chunk.cu_seqlen_ks, right=True) - 1
                self._call(queries[begin:end], weights[begin:end], chunk.block_table[sequences], seen, begin, metadata.max_seq_len)
        decoded = metadata.num_decode_tokens
        if decoded:
            self._call(queries[:decoded], weights[:decoded], *self._decoded(metadata, decoded), 0, metadata.max_seq_len)
        return buffer

    @staticmethod
    def _decoded(metadata: Any, rows: int) -> tuple[torch.Tensor, torch.Tensor]:
        """The table of each sequence, all of which have as many rows, and the keys that each row sees."""
        decode = metadata.decode
        seen = decode.seq_lens.reshape(-1)
        if seen.shape[0] == rows and not decode.requires_padding:
            return decode.block_table, seen
        # Sequences of unlike numbers of rows: each row is one. Nothing waits for the device.
        lengths = decode.decode_lens
        sequences = torch.repeat_interleave(torch.arange(lengths.shape[0], device=lengths.device), lengths, output_size=rows)
        behind = lengths.cumsum(0)[sequences] - torch.arange(rows, device=lengths.device)  # itself, and the rows of its sequence that follow
        return decode.block_table[sequences], metadata.seq_lens[sequences] - behind + 1

    def _call(self, queries: torch.Tensor, weights: torch.Tensor, table: torch.Tensor, seen: torch.Tensor, first: int, longest: int) -> None:
        """One call over neighbouring rows of a step, as many rows of each sequence of the table."""
        engine, rows, sequences = self.serving.engine, queries.shape[0], table.shape[0]
        numbers, scales = parts_of(self.k_cache.kv_cache, queries.dtype)
        mine = self.topk_indices_buffer.narrow(0, first, rows).narrow(1, 0, self.topk_tokens)
        made = mine if mine.is_contiguous() else torch.empty_like(mine, memory_format=torch.contiguous_format)
        given: dict[str, Any] = {"queries": _of_each(queries, sequences), "keys": numbers, "weights": _of_each(weights, sequences), "key_scales": scales,
                 "block_table": table.to(torch.int32), "key_ends": seen.to(torch.int32), "indices": _of_each(made, sequences)}  # fmt: skip
        words: dict[str, Any] = {"max_key_length": _calls.rounded_up(longest, table.shape[1] * numbers.shape[1])}
        if not queries.is_cpu:
            given = {field: _dispatch._array(engine, field, tensor) for field, tensor in given.items()}
            words["stream"] = _dispatch.current_stream(queries.device)
        call = engine.sparse_indexer_call(given.pop("queries"), given.pop("keys"), given.pop("weights"), self.topk_tokens, **given, **words)
        if not queries.is_cpu and call.workspace_bytes():  # torch's memory, which a captured graph keeps
            call._give_workspace(_dispatch._array(engine, "workspace", torch.empty(call.workspace_bytes() // 4, dtype=torch.int32, device=queries.device)))
        call.launch()
        if made is not mine:
            mine.copy_(made)


def _of_each(rows: torch.Tensor, sequences: int) -> torch.Tensor:
    """[sequences, rows of each, …]"""
    if sequences == 1:
        return rows.unsqueeze(0)
    return rows.unsqueeze(1) if sequences == rows.shape[0] else rows.unflatten(0, (sequences, -1))
