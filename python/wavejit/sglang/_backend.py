# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""SGLang's backend: new keys and values into its pool, and all rows of a batch over the pool in one call of attention_forward."""
from __future__ import annotations

import dataclasses
import logging
from typing import Any

import torch
from sglang.srt.layers.attention.base_attn_backend import AttentionBackend
from sglang.srt.mem_cache.memory_pool import KVWriteLoc

from .. import _device
from .._engine import Engine
from .._errors import InvalidArgument, Unsupported
from ..torch import _latent_dispatch, _dispatch
from ..vllm._serving import Serving
from . import NAME, _limits

logger = logging.getLogger("sglang.wavejit")


@dataclasses.dataclass
class WavejitMetadata:
    """What all layers of a batch share. Lengths and tables are read on the device: a captured batch may be replayed over other ones."""

    query_starts: torch.Tensor  # int32 [sequences + 1]
    key_lengths: torch.Tensor  # int32 [sequences]
    block_table: torch.Tensor  # int32 [sequences, columns]
    max_query_length: int
    max_key_length: int
    rows: int | None = None  # of all sequences; None: as many as there are queries


class WavejitBackend(AttentionBackend):
    needs_cpu_seq_lens = False

    def __init__(self, runner: Any) -> None:
        super().__init__()
        self.pool, self.requests, self.page = runner.token_to_kv_pool, runner.req_to_token_pool, int(runner.page_size)
        self.device = torch.device(runner.device)
        self.most_keys = int(runner.model_config.context_len)
        kinds = _limits.kinds_of(runner)
        self.latent = _limits.is_latent(runner)
        name = _name(self.device)
        self.serving = Serving(Engine(name), True, "wavejit.sglang", logger)
        for kind in kinds:
            _limits.check(kind, self.page, self.serving.engine.target)
        arguments = runner.server_args
        sequences = int(getattr(runner, "max_running_requests", None) or self.requests.size)
        rows = max(int(arguments.chunked_prefill_size or 0), int(arguments.max_prefill_tokens or 0), sequences, 1)
        self.serving.prepare([each for kind in kinds for each in _limits.lines_of(kind, sequences, rows, self.most_keys, self.page)])
        if self.latent:
            _absorb_all_rows()
        self.captured: WavejitMetadata | None = None
        self.forward_metadata: WavejitMetadata | None = None

    # ---- What a batch says

    def init_forward_metadata(self, forward_batch: Any) -> None:
        batch = forward_batch.batch_size
        lengths = forward_batch.seq_lens.to(torch.int32)
        on_host = getattr(forward_batch, "seq_lens_cpu", None)
        keys = int(on_host.max()) if on_host is not None and batch else self.most_keys
        if forward_batch.forward_mode.is_decode_or_idle():
            starts, rows, all_rows = torch.arange(batch + 1, dtype=torch.int32, device=lengths.device), 1, batch
        else:
            starts = torch.zeros(batch + 1, dtype=torch.int32, device=lengths.device)
            starts[1:] = forward_batch.extend_seq_lens.cumsum(0)
            rows, all_rows = max(forward_batch.extend_seq_lens_cpu, default=1), sum(forward_batch.extend_seq_lens_cpu)
        self.forward_metadata = WavejitMetadata(starts, lengths, self._table(forward_batch.req_pool_indices, keys), max(1, int(rows)), max(1, keys), int(all_rows))
        self.serving.seal()

    def _table(self, requests: torch.Tensor, keys: int) -> torch.Tensor:
        """The pages of each sequence: every page's first slot, of as many columns as the longest sequence needs."""
        columns = -(-max(1, keys) // self.page)
        slots = self.requests.req_to_token[requests, : columns * self.page : self.page]
        return (slots if self.page == 1 else slots // self.page).to(torch.int32)

    # ---- Captured decode: tensors that stay, written before each replay

    def init_cuda_graph_state(self, max_bs: int, max_num_tokens: int) -> None:
        columns = -(-self.most_keys // self.page)
        self.captured = WavejitMetadata(torch.arange(max_bs + 1, dtype=torch.int32, device=self.device), torch.zeros(max_bs, dtype=torch.int32, device=self.device),
                                        torch.zeros(max_bs, columns, dtype=torch.int32, device=self.device), 1, self.most_keys)

    def init_forward_metadata_out_graph(self, forward_batch: Any, in_capture: bool = False) -> None:
        kept = self.captured
        if kept is None:
            raise InvalidArgument("wavejit.sglang: a captured batch before init_cuda_graph_state")
        if not forward_batch.forward_mode.is_decode_or_idle():
            raise Unsupported("wavejit.sglang: a captured batch that is no decode; accepted: --disable-prefill-cuda-graph")
        batch = forward_batch.batch_size
        kept.key_lengths[:batch].copy_(forward_batch.seq_lens[:batch])
        kept.block_table[:batch].copy_(self._table(forward_batch.req_pool_indices[:batch], self.most_keys))
        self.forward_metadata = WavejitMetadata(kept.query_starts[: batch + 1], kept.key_lengths[:batch], kept.block_table[:batch], 1, self.most_keys, batch)

    def get_cuda_graph_seq_len_fill_value(self) -> int:
        return 1

    # ---- A layer

    def forward_extend(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, layer: Any, forward_batch: Any, save_kv_cache: bool = True, **words: Any) -> torch.Tensor:
        sinks = words.pop("sinks", words.pop("sink", None))
        unknown = sorted(name for name, value in words.items() if value is not None)
        if unknown:  # before the pool is written
            raise Unsupported(f"wavejit.sglang: {', '.join(unknown)}: not known to this version of wavejit; --attention-backend triton may have it")
        if save_kv_cache and k is not None and v is not None:
            where = KVWriteLoc.for_batch(forward_batch)
            if self.latent:
                self.pool.set_kv_buffer(layer, where, k, v)
            else:
                self.pool.set_kv_buffer(layer, where, k, v, layer.k_scale, layer.v_scale)
        return self.attend(q, layer, sinks)

    forward_decode = forward_extend

    def attend(self, q: torch.Tensor, layer: Any, sinks: torch.Tensor | None) -> torch.Tensor:
        metadata = self.forward_metadata
        assert metadata is not None
        query = q.reshape(-1, layer.tp_q_head_num, layer.qk_head_dim)
        out = torch.empty((query.shape[0], layer.tp_q_head_num, layer.v_head_dim), dtype=q.dtype, device=q.device)
        if metadata.rows is not None and query.shape[0] > metadata.rows:
            out[metadata.rows :].zero_()  # no kernel writes those of a padded batch
        if query.shape[0]:
            (self._run_latent if self.latent else self._run)(query, layer, metadata, sinks, out)
        return out.view(-1, layer.tp_q_head_num * layer.v_head_dim)

    def _run(self, query: torch.Tensor, layer: Any, metadata: WavejitMetadata, sinks: torch.Tensor | None, out: torch.Tensor) -> None:
        k, v = (self.paged(buffer) for buffer in (self.pool.get_key_buffer(layer.layer_id), self.pool.get_value_buffer(layer.layer_id)))
        given: dict[str, Any] = {"scale": layer.scaling, "causal": True, "query_starts": metadata.query_starts, "key_lengths": metadata.key_lengths,
                                 "block_table": metadata.block_table, "max_query_length": metadata.max_query_length, "max_key_length": metadata.max_key_length}
        if layer.sliding_window_size is not None and layer.sliding_window_size > -1:
            given["window_left"] = layer.sliding_window_size
        if layer.logit_cap:
            given["softcap"] = float(layer.logit_cap)
        if sinks is not None:
            given["sinks"] = sinks.to(torch.float32)
        if k.dtype in _limits.FORMATS:  # what the pool has divided by
            given.update({name: scale.to(torch.float32).reshape(1) for name, scale in (("k_scale", layer.k_scale), ("v_scale", layer.v_scale)) if scale is not None})
        engine = self.serving.engine
        if query.is_cpu:
            _dispatch.copied_into(engine, query.unsqueeze(0), k, v, out.unsqueeze(0), None, given)
        else:
            _dispatch.launched_into(engine, query.unsqueeze(0), k, v, out.unsqueeze(0), None, None, given)

    def _run_latent(self, query: torch.Tensor, layer: Any, metadata: WavejitMetadata, sinks: torch.Tensor | None, out: torch.Tensor) -> None:
        """Every row is absorbed, of prompts as of decode: the pool's rows are keys, and their first columns values."""
        given: dict[str, Any] = {"scale": layer.scaling, "value_dim": layer.v_head_dim, "query_starts": metadata.query_starts, "key_lengths": metadata.key_lengths,
                                 "block_table": metadata.block_table, "max_query_length": metadata.max_query_length, "max_key_length": metadata.max_key_length}
        if metadata.max_query_length > 1:  # one row sees all keys
            given["causal"] = True
        if sinks is not None:
            given["sinks"] = sinks.to(torch.float32)
        _latent_dispatch.run(self.serving.engine, query.unsqueeze(0), self.paged(self.pool.get_key_buffer(layer.layer_id)), out.unsqueeze(0), False, given)

    def paged(self, slots: torch.Tensor) -> torch.Tensor:
        """The pool's rows as [pages, page size, heads, dim]: a view."""
        return slots[: slots.shape[0] // self.page * self.page].unflatten(0, (-1, self.page))


def _absorb_all_rows() -> None:
    """SGLang would expand keys and values of prompts: then a row's bits show where its prompt was cut."""
    from sglang.srt.models.deepseek_common import attention_backend_handler as handlers

    handlers.AttentionBackendRegistry.register(NAME, lambda attention, batch: handlers.AttnForwardMethod.MLA)


def _name(device: torch.device) -> str:
    if device.type != "cpu":
        return f"hip:{device.index or 0}"
    name = _device.chosen(None)
    if not _device.is_simulated(name):
        raise InvalidArgument(f"WAVEJIT_DEVICE: the device is {name}, and SGLang's tensors are on the CPU; accepted: WAVEJIT_DEVICE=sim:gfx950")
    return name
