# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""vLLM's engine with a tiny model of sparse latent attention (DeepSeek V3.2): its layers, scheduler and caches over the simulated GPU.

vLLM for CPUs has neither sparse attention nor this model's indexer. So here the platform is told that it has the first, and the indexer's
scores and lists are made in PyTorch, from the queries, keys and weights that vLLM's own layers give it.
"""
import contextlib
from unittest import mock

import torch
import vllm.model_executor.models.deepseek_v2 as model
from engine_test import Case
from engines import MODELS
from exact import of_pages
from latent_engines import LatentWitness, as_on_a_gpu
from vllm.forward_context import get_forward_context
from vllm.model_executor.layers.sparse_attn_indexer import SparseAttnIndexer
from vllm.platforms.cpu import CpuPlatform
from vllm.v1.attention.backend import AttentionBackend, AttentionMetadataBuilder, MultipleOf

from wavejit.vllm import WavejitLatentMetadata, WavejitSparseLatentAttention, _cache

ENTRIES, DIM = 24, 128
MODELS["deepseek_sparse"] = ("DeepseekV32", {**MODELS["deepseek"][1], "q_lora_rank": 64, "index_topk": ENTRIES, "index_n_heads": 2, "index_head_dim": DIM})


class AsItComes(AttentionMetadataBuilder):
    def __init__(self, *given, **words):
        super().__init__(*given, **words)

    def build(self, common_prefix_len, common_attn_metadata, fast_build=False):
        return common_attn_metadata


class IndexerBackend(AttentionBackend):
    @staticmethod
    def get_name():
        return "INDEXER_IN_PYTORCH"

    @staticmethod
    def get_impl_cls():
        return None

    @staticmethod
    def get_builder_cls():
        return AsItComes

    @staticmethod
    def get_supported_kernel_block_sizes(kv_cache_spec=None):
        return [MultipleOf(16)]


def in_groups(x, group_size, **_):
    scale = x.float().abs().amax(-1, keepdim=True).clamp(min=1e-6) / 448
    return (x.float() / scale).to(torch.float8_e4m3fn), scale


def lists(indexer, hidden_states, q, k, weights):
    """Keys of 132 bytes into the indexer's cache; of each row the keys of the largest scores, −1 behind them."""
    metadata = get_forward_context().attn_metadata
    if not isinstance(metadata, dict):
        return indexer.topk_indices_buffer
    common, cache = metadata[indexer.k_cache.prefix], indexer.k_cache.kv_cache
    rows = common.num_actual_tokens
    numbers, scales = in_groups(k[:rows], DIM)
    written = torch.cat([numbers.view(torch.uint8), scales.contiguous().view(torch.uint8)], 1)
    for row, slot in enumerate(common.slot_mapping[:rows].tolist()):
        if slot >= 0:
            cache[slot // cache.shape[1], slot % cache.shape[1]] = written[row]
    indexer.topk_indices_buffer[: hidden_states.shape[0]] = -1
    keys_of = cache[..., :DIM].view(torch.float8_e4m3fn).float() * cache[..., DIM:].contiguous().view(torch.float32)
    starts = common.query_start_loc.tolist()
    for sequence, length in enumerate(common.seq_lens.tolist()):
        keys = of_pages(keys_of, common.block_table_tensor[sequence], length).float()
        begin, end = starts[sequence : sequence + 2]
        for row in range(begin, end):
            seen = length - (end - 1 - row)
            scores = (torch.relu(q[row].float() @ keys[:seen].T) * weights[row].float()[:, None]).sum(0)
            found = scores.topk(min(ENTRIES, seen)).indices
            indexer.topk_indices_buffer[row, : found.numel()] = found.int()
    return indexer.topk_indices_buffer


@contextlib.contextmanager
def with_an_indexer():
    chosen = CpuPlatform.get_attn_backend_cls.__func__

    def backend(cls, selected, attn_selector_config, **words):
        return "wavejit.vllm.WavejitSparseLatentBackend" if attn_selector_config.use_sparse else chosen(cls, selected, attn_selector_config, **words)

    with (as_on_a_gpu(), mock.patch.object(CpuPlatform, "get_attn_backend_cls", classmethod(backend)), mock.patch.object(SparseAttnIndexer, "forward_cpu", lists),
          mock.patch.object(model, "per_token_group_quant_fp8", in_groups), mock.patch.object(model.DeepseekV32IndexerCache, "get_attn_backend", lambda _: IndexerBackend)):  # fmt: skip
        yield


class SparseWitness(LatentWitness):
    def saw_rows(self, layer_of, layer, q, kv_cache, metadata, output):
        """Against float64 over what each row's list names."""
        pages = _cache.of_type(kv_cache, layer_of.kind.cache).unsqueeze(2)
        listed = layer_of.lists(metadata.num_actual_tokens)
        joined = torch.cat(q, -1).double()
        exact, size = (torch.zeros(output.shape, dtype=torch.float64) for _ in range(2))
        for sequence, length in enumerate(metadata.key_lengths.tolist()):
            keys = of_pages(pages, metadata.block_table[sequence], length)[:, 0]
            for row in range(*metadata.query_starts[sequence : sequence + 2].tolist()):
                mine = keys[listed[row][listed[row] >= 0].long()]
                weights = torch.softmax(joined[row] @ mine.T * layer_of.scale, 1)
                exact[row], size[row] = weights @ mine[:, : layer_of.kind.value_dim], weights @ mine[:, : layer_of.kind.value_dim].abs()
        lengths = self.hold(layer, layer_of.kind, metadata, output, exact, size)
        self.row_by_itself(layer_of, layer, q, kv_cache, metadata, output, self.calls % lengths.numel())

    def row_by_itself(self, layer_of, layer, q, kv_cache, metadata, output, sequence):
        begin, end = metadata.query_starts[sequence : sequence + 2].tolist()
        row = begin + self.calls % (end - begin)
        length = int(metadata.key_lengths[sequence]) - (end - 1 - row)
        single = WavejitLatentMetadata(1, torch.tensor([0, 1], dtype=torch.int32), torch.tensor([length], dtype=torch.int32),
                                       metadata.block_table[sequence : sequence + 1].clone(), 1, length, True, metadata.serving)
        with mock.patch.object(WavejitSparseLatentAttention, "lists", lambda _, rows: layer_of.topk_indices_buffer[row : row + 1]):
            found, _ = self.forward(layer_of, tuple(each[row : row + 1].clone() for each in q), kv_cache, single, layer)
        assert torch.equal(found.view(torch.int16), output[row : row + 1].view(torch.int16)), f"row {row} of {metadata.query_starts.tolist()} has other bits alone"
        self.alone += 1


class Sparse(Case):
    witness = SparseWitness

    def setUp(self):
        self.enterContext(with_an_indexer())

    def test_deepseek_v32_in_chunks_mixes_and_behind_a_prefix(self):
        seen = self.serve("deepseek_sparse")
        self.assertEqual({(kind.width, kind.heads, kind.top_k) for _, kind in seen.layers}, {(576, 4, ENTRIES)})
