# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""vLLM's engine with a tiny model of sparse latent attention (DeepSeek V3.2): its layers, scheduler and caches over the simulated GPU.

vLLM for CPUs has neither sparse attention nor kernels of this model's indexer. So here the platform is told that it has the first. Lists are
made by wavejit, through vLLM's own door, from vLLM's own metadata; on gfx942, whose numbers of 8 bits vLLM for CPUs does not write, in PyTorch.
"""
import contextlib
from unittest import mock

import torch
import vllm.model_executor.models.deepseek_v2 as model
import vllm.v1.attention.backends.mla.indexer as indexer_of_vllm
from engine_test import Case
from engines import MODELS
from exact import of_pages
from latent_engines import LatentWitness, as_on_a_gpu
from vllm.forward_context import get_forward_context
from vllm.models.deepseek_v4.cpu.cpu_mla import DeepseekV4CPUIndexerMetadataBuilder
from vllm.platforms.cpu import CpuPlatform
from vllm.v1.attention.backend import MultipleOf
from vllm.v1.attention.backends.mla.indexer import DeepseekV32IndexerBackend

from wavejit.vllm import WavejitLatentMetadata, WavejitSparseLatentAttention, _cache, _limits, _sparse_indexer
from wavejit.vllm._sparse_indexer import WavejitSparseAttnIndexer

ENTRIES, DIM = 24, 128
OURS = _limits.target() not in _limits.FNUZ
MODELS["deepseek_sparse"] = ("DeepseekV32", {**MODELS["deepseek"][1], "q_lora_rank": 64, "index_topk": ENTRIES, "index_n_heads": 2, "index_head_dim": DIM})


class WithItsStep(DeepseekV4CPUIndexerMetadataBuilder):
    """vLLM's own for CPUs, beside what it was made from."""

    def build(self, common_prefix_len, common_attn_metadata, fast_build=False):
        made = super().build(common_prefix_len, common_attn_metadata, fast_build)
        made.step = common_attn_metadata
        return made


class IndexerBackend(DeepseekV32IndexerBackend):
    @staticmethod
    def get_builder_cls():
        return WithItsStep

    @staticmethod
    def get_supported_kernel_block_sizes(kv_cache_spec=None):
        return [MultipleOf(16)]


def rows_of_chunk(query_starts, lengths, keys_before, row_starts, sequence_of_key, begins, ends, first, end, *_, **__):
    """What vLLM has a Triton kernel for: which of a chunk's gathered keys each of its rows sees."""
    for sequence, length in enumerate(lengths.tolist()):
        sequence_of_key[keys_before[sequence] : keys_before[sequence + 1]] = sequence
        starts, stops = query_starts[sequence : sequence + 2].tolist()
        for row in range(max(starts, first), min(stops, end)):
            begins[row - first], ends[row - first] = row_starts[sequence], row_starts[sequence] + length - (stops - 1 - row)


def in_groups(x, group_size, **_):
    scale = x.float().abs().amax(-1, keepdim=True).clamp(min=1e-6) / 448
    return (x.float() / scale).to(torch.float8_e4m3fn), scale


def scored(indexer, q, weights):
    """The number of each row of a step, and the scores of the keys that it sees, in float64."""
    step = get_forward_context().attn_metadata[indexer.k_cache.prefix].step
    numbers, scales = _sparse_indexer.parts_of(indexer.k_cache.kv_cache, torch.float8_e4m3fn)
    starts = step.query_start_loc.tolist()
    for sequence, length in enumerate(step.seq_lens.tolist()):
        table = step.block_table_tensor[sequence]
        keys = of_pages(numbers.float().double() * scales.double().unsqueeze(2), table, length)
        begin, end = starts[sequence : sequence + 2]
        for row in range(begin, end):
            seen = keys[: length - (end - 1 - row)]
            yield row, (torch.relu(q[row].double() @ seen.T) * weights[row].double()[:, None]).sum(0)


def lists(indexer, hidden_states, q, k, weights):
    """Keys of 132 bytes into the indexer's cache; of each row the keys of the largest scores, −1 behind them."""
    metadata = indexer._metadata()
    if metadata is not None:
        WavejitSparseAttnIndexer._write(indexer, k, metadata.slot_mapping, q.dtype)
        indexer.topk_indices_buffer[: hidden_states.shape[0]] = -1
        for row, scores in scored(indexer, q, weights):
            found = scores.topk(min(ENTRIES, scores.numel())).indices
            indexer.topk_indices_buffer[row, : found.numel()] = found.int()
    return indexer.topk_indices_buffer


class Lists:
    """Holds each list against scores in float64."""

    def __init__(self):
        self.rows = self.full = self.steps = 0
        self.forward = WavejitSparseAttnIndexer.forward_cpu

    def patch(self):
        def watched(indexer, hidden_states, q, k, weights):
            assert indexer.ours
            found = self.forward(indexer, hidden_states, q, k, weights)
            if indexer._metadata() is not None:
                self.saw(indexer, q, weights, found)
            return found

        return mock.patch.object(WavejitSparseAttnIndexer, "forward_cpu", watched)

    def saw(self, indexer, q, weights, found):
        self.steps += 1
        for row, scores in scored(indexer, q, weights):
            listed = [key for key in found[row].tolist() if key >= 0]
            assert listed == sorted(set(listed)) and len(listed) == min(ENTRIES, scores.numel()), (row, listed, scores.numel())
            assert found[row, len(listed) :].eq(-1).all()
            self.rows += 1
            if scores.numel() > ENTRIES:
                self.full += 1
                left = torch.ones(scores.numel(), dtype=torch.bool)
                left[listed] = False
                assert scores[listed].min() >= scores[left].max() - 1e-5 * scores.abs().max(), row


@contextlib.contextmanager
def with_an_indexer():
    chosen = CpuPlatform.get_attn_backend_cls.__func__

    def backend(cls, selected, attn_selector_config, **words):
        return "wavejit.vllm.WavejitSparseLatentBackend" if attn_selector_config.use_sparse else chosen(cls, selected, attn_selector_config, **words)

    _sparse_indexer.register()
    seen = Lists() if OURS else None
    with (as_on_a_gpu(), mock.patch.object(CpuPlatform, "get_attn_backend_cls", classmethod(backend)), mock.patch.object(WavejitSparseAttnIndexer, "forward_cpu", lists) if seen is None else seen.patch(),
          mock.patch.object(model, "per_token_group_quant_fp8", in_groups), mock.patch.object(model.DeepseekV32IndexerCache, "get_attn_backend", lambda _: IndexerBackend),
          mock.patch.object(indexer_of_vllm, "_BUILD_PREFILL_CHUNK_METADATA_KERNEL", rows_of_chunk)):  # fmt: skip
        yield seen


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
        self.lists = self.enterContext(with_an_indexer())

    def test_deepseek_v32_in_chunks_mixes_and_behind_a_prefix(self):
        seen = self.serve("deepseek_sparse")
        self.assertEqual({(kind.width, kind.heads, kind.top_k) for _, kind in seen.layers}, {(576, 4, ENTRIES)})
        if OURS:
            self.assertGreater(self.lists.full, 20)
            self.assertGreater(self.lists.rows, self.lists.full)
