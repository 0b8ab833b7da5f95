# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A layer of vLLM's with keys and values of its own where ranks share a sequence's keys (context parallelism of decode): each rank's part,
merged, against float64 over all keys. Ranks are played one after the other: vLLM's gathering and merging need a GPU.
"""
import os
import types
import unittest
from unittest import mock

import numpy
import rocm_test
import torch
from exact import attention
from plugin_test import reasons
from rocm_test import ENGINE, host, rocm
from vllm.v1.attention.backend import AttentionCGSupport
from vllm.v1.attention.backends.utils import get_dcp_local_seq_lens

import wavejit
import wavejit.vllm
from wavejit.vllm import WavejitAttention, WavejitBackend, WavejitMetadata, WavejitMetadataBuilder, _calls, _lines, _ranks, _serving
from wavejit.vllm._ranks import Ranks

RANDOM = numpy.random.default_rng(41)
LAYER = types.SimpleNamespace(_k_scale=None, _v_scale=None)
HEADS, DIM, PAGE = 12, 64, 16


def layer(ranks, kv_heads=1, dtype=torch.float16, **words):
    default = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        made = WavejitAttention.__new__(WavejitAttention)
        made.dcp_world_size, made.dcp_rank = ranks.count, ranks.mine
        made.__init__(HEADS // ranks.count, DIM, DIM**-0.5, kv_heads, **words)
        return made
    finally:
        torch.set_default_dtype(default)


class Batch:
    """Sequences of this many rows and keys. A key is a row: K's columns, then V's."""

    def __init__(self, rows, keys):
        self.starts, self.lengths = numpy.array([0, *numpy.cumsum(rows)], numpy.int32), numpy.array(keys, numpy.int32)
        self.rows, self.most = int(self.starts[-1]), (max(rows), max(keys))
        self.query = RANDOM.standard_normal((self.rows, HEADS, DIM)).astype(numpy.float16)
        self.keys = [RANDOM.standard_normal((each, 2 * DIM)).astype(numpy.float16) for each in keys]

    def cache_of(self, ranks):
        """As vLLM lays it out [pages, kv heads, page, K and V], and the table."""
        columns = [self.of_rank(ranks, each) for each in self.keys]
        wide = max(1, *(-(-len(each) // PAGE) for each in columns))
        cache = numpy.full((len(columns) * wide, 1, PAGE, 2 * DIM), numpy.nan, numpy.float16)
        table = numpy.arange(len(columns) * wide, dtype=numpy.int32).reshape(len(columns), wide)[::-1].copy()
        for sequence, each in enumerate(columns):
            for key, row in enumerate(each):
                cache[table[sequence, key // PAGE], 0, key % PAGE] = row
        return torch.from_numpy(cache), torch.from_numpy(table)

    @staticmethod
    def of_rank(ranks, keys):
        return keys[(numpy.arange(len(keys)) // ranks.interleave) % ranks.count == ranks.mine]

    def exact(self, **words):
        cache, table = self.cache_of(Ranks(1, 0, 1))
        pages = cache.nan_to_num().transpose(1, 2)
        return attention(torch.from_numpy(self.query), pages[..., :DIM], pages[..., DIM:], *map(torch.from_numpy, (self.starts, self.lengths)), table, scale=DIM**-0.5, **words)[0]


class Merged(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.serving = _serving.Serving(wavejit.Engine(os.environ["WAVEJIT_DEVICE"]), False)

    def setUp(self):
        self.enterContext(torch.inference_mode())

    def metadata(self, ranks, batch, table, **words):
        """As the builder makes it, of what vLLM's runner tells."""
        builder = WavejitMetadataBuilder.__new__(WavejitMetadataBuilder)
        builder.serving, builder.ranks, builder.prepared_for = self.serving, ranks, {True, False}
        lengths = torch.from_numpy(batch.lengths)
        local = get_dcp_local_seq_lens(lengths, ranks.count, ranks.mine, ranks.interleave)
        told = {"causal": True, "num_actual_tokens": batch.rows, "max_query_len": batch.most[0], "max_seq_len": batch.most[1], "block_table_tensor": table,
                "query_start_loc": torch.from_numpy(batch.starts), "seq_lens": lengths, "dcp_local_seq_lens": local}  # fmt: skip
        return builder.build(0, types.SimpleNamespace(**{**told, **words}))

    def part(self, ranks, batch, **words):
        """What this rank gives to be merged; its output has what merging gave, and nothing else."""
        implementation, (cache, table) = layer(ranks, **words), batch.cache_of(ranks)
        own, seen = HEADS // ranks.count, []
        query, output = torch.from_numpy(batch.query), torch.full((batch.rows + 2, own, DIM), 7, dtype=torch.float16)

        def merged(part, sums, by_all_to_all):
            self.assertFalse(by_all_to_all)
            seen.append((part, sums))
            return part[:, ranks.mine * own : (ranks.mine + 1) * own]

        mine = query[:, ranks.mine * own : (ranks.mine + 1) * own]
        with mock.patch.object(_ranks, "gathered", lambda rows: query if torch.equal(rows, mine) else self.fail("other rows")), mock.patch.object(_ranks, "merged", merged):
            implementation.forward(LAYER, torch.cat([mine, mine[:2]]), None, None, cache, self.metadata(ranks, batch, table), output)
        self.assertTrue(torch.equal(output[: batch.rows], seen[0][0][:, ranks.mine * own : (ranks.mine + 1) * own]))
        self.assertTrue((output[batch.rows :] == 7).all())
        return seen[0]

    def test_parts_of_ranks_are_the_whole(self):
        for rows, lengths, words in (((1, 37, 5, 1), (90, 37, 61, 12), {}), ((1, 1, 1), (200, 40, 1), {"logits_soft_cap": 20.0})):
            batch = Batch(rows, lengths)
            exact = batch.exact(**({"softcap": 20.0} if words else {}))
            for count, interleave in ((2, 1), (3, 4), (2, 16)):
                parts = [self.part(Ranks(count, mine, interleave), batch, **words) for mine in range(count)]
                for out, lse in parts:
                    self.assertEqual(tuple(lse.shape), (batch.rows, HEADS))
                    self.assertFalse(out[torch.isneginf(lse)].any())
                weights = torch.softmax(torch.stack([lse.double() for _, lse in parts]), 0)[..., None]
                self.assertLess(float(((weights * torch.stack([out.double() for out, _ in parts])).sum(0) - exact).abs().max()), 4e-3)

    def test_a_row_alone_has_the_same_bits(self):
        ranks, batch = Ranks(2, 1, 4), Batch((1, 37, 5, 1), (90, 37, 61, 12))
        out, sums = self.part(ranks, batch)
        alone = Batch((1,), (59,))  # the third sequence's third row
        row = int(batch.starts[2]) + 2
        alone.query, alone.keys = batch.query[row : row + 1], [batch.keys[2][:59]]
        found, lse = self.part(ranks, alone)
        self.assertTrue(torch.equal(found[0].view(torch.int16), out[row].view(torch.int16)))
        self.assertTrue(torch.equal(lse[0].view(torch.int32), sums[row].view(torch.int32)))

    def test_declared_prepared_and_refused(self):
        self.assertEqual(reasons(use_dcp=True), [])
        for size, told in ((1, AttentionCGSupport.ALWAYS), (2, AttentionCGSupport.UNIFORM_SINGLE_TOKEN_DECODE)):
            config = types.SimpleNamespace(parallel_config=types.SimpleNamespace(decode_context_parallel_size=size))
            self.assertEqual(WavejitMetadataBuilder.get_cudagraph_support(config, None), told)
        self.assertTrue(WavejitBackend.supports_dcp() and not WavejitBackend.supports_pcp())
        made = layer(Ranks(2, 0, 1))
        self.assertEqual((made.kind.heads, made.kind.kv_heads, made.kind.lse, made.lse_base_on_e), (HEADS, 1, True, True))
        self.assertEqual(_lines.line(made.kind, 4, 48, 96, 16), "attention_forward fp16 b48 q1 k0..96 h12/1 d64 causal lse layout=paged:16")
        for words, named in (({"sliding_window": 24}, "sliding_window"), ({"sinks": torch.zeros(HEADS)}, "sinks"), ({"alibi_slopes": [0.5] * HEADS}, "alibi_slopes"),
                             ({"kv_heads": 2}, "num_kv_heads 2")):  # fmt: skip
            with self.assertRaisesRegex(wavejit.Unsupported, f"{named}.*where ranks share keys: accepted.*"):
                layer(Ranks(2, 0, 1), **words)
        batch = Batch((2,), (9,))
        with self.assertRaisesRegex(wavejit.Unsupported, "not causal where ranks share keys"):
            self.metadata(Ranks(2, 0, 1), batch, torch.zeros(1, 1, dtype=torch.int32), causal=False)

    def test_a_sealed_engine_has_what_was_prepared(self):
        ranks, batch = Ranks(2, 0, 4), Batch((1, 37, 5, 1), (90, 37, 61, 12))
        cache, table = batch.cache_of(ranks)
        with wavejit.Engine(os.environ["WAVEJIT_DEVICE"]) as engine:
            serving = _serving.Serving(engine, True)
            serving.prepare([_lines.line(layer(ranks).kind, 4, 48, ranks.most_keys_of(192), PAGE)])
            serving.seal()
            for each in (batch, Batch((1, 1), (150, 33))):
                cache, table = each.cache_of(ranks)
                metadata = self.metadata(ranks, each, table)
                metadata.serving = serving
                part, sums = torch.empty(each.rows, HEADS, DIM, dtype=torch.float16), torch.empty(1, HEADS, each.rows)
                _calls.attend(layer(ranks).words, metadata, torch.from_numpy(each.query), cache, part, {}, sums)
                self.assertTrue(part.isfinite().all())


class OnTheDevice(rocm_test.Case):
    def test_parts_and_sums_are_those_of_copies(self):
        batch, ranks = Batch((1, 37, 5, 1), (90, 37, 61, 12)), Ranks(2, 1, 1)
        cache, table = batch.cache_of(ranks)
        rows = _ranks.one_by_one(ranks, batch.rows, torch.from_numpy(batch.starts), torch.from_numpy(batch.lengths), table)
        words, most = layer(ranks).words, ranks.most_keys_of(batch.most[1])
        out, sums = torch.empty(batch.rows, HEADS, DIM, dtype=torch.float16), torch.empty(1, HEADS, batch.rows)
        with torch.inference_mode(), wavejit.Engine(os.environ["WAVEJIT_DEVICE"]) as copies:
            here = WavejitMetadata(batch.rows, *rows, 1, most, True, _serving.Serving(copies, False))
            _calls.attend(words, here, torch.from_numpy(batch.query), cache, out, {}, sums)
        there = WavejitMetadata(batch.rows, *(rocm(each.contiguous().numpy()) for each in rows), 1, most, True, _serving.Serving(ENGINE, False))
        found, found_sums = rocm(numpy.zeros((batch.rows, HEADS, DIM), numpy.float16)), rocm(numpy.zeros((1, HEADS, batch.rows), numpy.float32))
        _calls.attend(words, there, rocm(batch.query), rocm(cache.numpy()), found, {}, found_sums)
        self.assertTrue(numpy.array_equal(host(found).view(numpy.int16), out.numpy().view(numpy.int16)))
        self.assertTrue(numpy.array_equal(host(found_sums).view(numpy.int32), sums.numpy().view(numpy.int32)))


if __name__ == "__main__":
    unittest.main()
