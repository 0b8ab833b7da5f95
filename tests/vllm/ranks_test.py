# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Latent attention of vLLM's where ranks share a sequence's keys (context parallelism of decode): what each rank's layer gives, merged as
vLLM does it, against float64 over all keys. Ranks are played one after the other: vLLM's own gathering and merging need a GPU.
"""
import os
import types
import unittest
from unittest import mock

import numpy
import rocm_test
import torch
from exact import attention
from latent_dispatch_test import HEADS, LATENT, PAGE, PAGES, ROPE, Batch
from plugin_test import reasons
from rocm_test import ENGINE, host, rocm
from vllm.v1.attention.backend import AttentionCGSupport
from vllm.v1.attention.backends.utils import get_dcp_local_seq_lens

import wavejit
import wavejit.vllm
from wavejit.vllm import WavejitLatentAttention, WavejitLatentBackend, WavejitLatentMetadata, WavejitLatentMetadataBuilder, _latent_calls, _serving
from wavejit.vllm._ranks import Ranks, one_by_one

LAYER = types.SimpleNamespace(_k_scale=None)


def layer(ranks):
    default = torch.get_default_dtype()
    torch.set_default_dtype(torch.float16)
    try:
        made = WavejitLatentAttention.__new__(WavejitLatentAttention)
        made.dcp_world_size, made.dcp_rank = ranks.count, ranks.mine
        made.__init__(HEADS // ranks.count, LATENT + ROPE, 192**-0.5, kv_lora_rank=LATENT)
        return made
    finally:
        torch.set_default_dtype(default)


def keys_of(batch):
    """The keys of each sequence, as its pages have them."""
    return [numpy.concatenate([batch.cache[page] for page in batch.table[sequence]])[:length] for sequence, length in enumerate(batch.lengths)]


def memory_of_nan():
    """torch.empty with NaN in it: what nobody writes shows."""
    empty = torch.empty

    def full(*given, **words):
        found = empty(*given, **words)
        return found.fill_(float("nan")) if found.is_floating_point() else found

    return mock.patch.object(torch, "empty", full)


def pages_of(ranks, keys):
    """A rank's cache: its keys of each sequence side by side, in pages of their own; and the table."""
    mine = [each[(numpy.arange(len(each)) // ranks.interleave) % ranks.count == ranks.mine] for each in keys]
    columns = max(1, *(-(-len(each) // PAGE) for each in mine))
    cache = numpy.full((PAGES, PAGE, LATENT + ROPE), numpy.nan, numpy.float16)
    table = numpy.arange(len(keys) * columns, dtype=numpy.int32).reshape(len(keys), columns)[::-1].copy()
    for sequence, each in enumerate(mine):
        for key, row in enumerate(each):
            cache[table[sequence, key // PAGE], key % PAGE] = row
    return torch.from_numpy(cache), torch.from_numpy(table)


class Merged(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.serving = _serving.Serving(wavejit.Engine(os.environ["WAVEJIT_DEVICE"]), False)
        wavejit.vllm.use(cls.serving.engine, seal=False)

    def setUp(self):
        self.enterContext(torch.inference_mode())

    def metadata(self, ranks, batch, table):
        """As the builder makes it, of what vLLM's runner tells."""
        builder = WavejitLatentMetadataBuilder.__new__(WavejitLatentMetadataBuilder)
        builder.serving, builder.ranks = self.serving, ranks
        lengths = torch.from_numpy(batch.lengths)
        local = get_dcp_local_seq_lens(lengths, ranks.count, ranks.mine, ranks.interleave)
        return builder.build(0, types.SimpleNamespace(causal=True, num_actual_tokens=batch.rows, max_query_len=batch.most[0], max_seq_len=batch.most[1], block_table_tensor=table,
                                                      query_start_loc=torch.from_numpy(batch.starts), seq_lens=lengths, dcp_local_seq_lens=local))

    def test_parts_of_ranks_are_the_whole(self):
        for rows, lengths in (((1, 37, 5, 1), (90, 37, 61, 12)), ((1, 1, 1), (200, 40, 1))):
            batch = Batch(rows, lengths)
            keys = keys_of(batch)
            q = torch.from_numpy(numpy.concatenate([batch.latent, batch.query[:, :, 128:]], 2))
            pages = torch.from_numpy(batch.cache).unsqueeze(2)
            scale = 192**-0.5
            exact = attention(q, pages, pages[..., :LATENT], *map(torch.from_numpy, (batch.starts, batch.lengths, batch.table)), scale=scale)[0]
            for count, interleave in ((2, 1), (3, 4), (2, 16)):
                outs, sums = [], []
                for mine in range(count):
                    ranks = Ranks(count, mine, interleave)
                    cache, table = pages_of(ranks, keys)
                    implementation, metadata = layer(ranks), self.metadata(ranks, batch, table)
                    self.assertEqual(implementation.kind.heads, HEADS)
                    self.assertEqual((metadata.num_decodes, metadata.decode.seq_lens.tolist()), (len(rows), list(lengths)))
                    out, lse = implementation.forward_mqa(q, cache, metadata, LAYER)
                    self.assertEqual(tuple(lse.shape), (batch.rows, HEADS))
                    empty = torch.isneginf(lse)
                    self.assertFalse(out[empty].any())
                    outs.append(out.double())
                    sums.append(lse.double())
                weights = torch.softmax(torch.stack(sums), 0)[..., None]
                self.assertLess(float(((weights * torch.stack(outs)).sum(0) - exact).abs().max()), 4e-3)
                merged, _ = wavejit.torch.attention_merge([each.half()[None] for each in outs], [each.float().T[None].contiguous() for each in sums])
                self.assertLess(float((merged[0].double() - exact).abs().max()), 6e-3)

    def test_rows_of_no_sequence_are_0_and_weigh_nothing(self):
        """A padded step has rows behind the last sequence. vLLM multiplies and merges them, too."""
        batch, ranks = Batch((1, 1), (40, 7)), Ranks(2, 0, 1)
        cache, table = pages_of(ranks, keys_of(batch))
        q = torch.from_numpy(numpy.concatenate([batch.latent, batch.query[:, :, 128:]], 2))
        with memory_of_nan():
            out, lse = layer(ranks).forward_mqa(torch.cat([q, q]), cache, self.metadata(ranks, batch, table), LAYER)
        self.assertTrue(torch.isfinite(out[:2]).all() and torch.isfinite(lse[:2]).all())
        self.assertFalse(out[2:].any())
        self.assertTrue(torch.isneginf(lse[2:]).all())

    def test_numbers_of_keys_are_vllms(self):
        lengths = torch.arange(0, 200, dtype=torch.int32)
        for count, interleave in ((1, 1), (2, 1), (3, 4), (8, 16)):
            for mine in range(count):
                ranks = Ranks(count, mine, interleave)
                self.assertTrue(torch.equal(ranks.keys_of(lengths), get_dcp_local_seq_lens(lengths, count, mine, interleave)))
                self.assertTrue(all(ranks.most_keys_of(length) >= int(ranks.keys_of(torch.tensor(length))) for length in range(200)))

    def test_declared(self):
        self.assertEqual(reasons(backend=WavejitLatentBackend, use_mla=True, head_size=576, use_dcp=True), [])
        for size, told in ((1, AttentionCGSupport.ALWAYS), (2, AttentionCGSupport.UNIFORM_SINGLE_TOKEN_DECODE)):
            config = types.SimpleNamespace(parallel_config=types.SimpleNamespace(decode_context_parallel_size=size))
            self.assertEqual(WavejitLatentMetadataBuilder.get_cudagraph_support(config, None), told)
        self.assertTrue(layer(Ranks(2, 0, 1)).lse_base_on_e)


class OnTheDevice(rocm_test.Case):
    def test_parts_and_sums_are_those_of_copies(self):
        batch, ranks = Batch((1, 37, 5, 1), (90, 37, 61, 12)), Ranks(2, 1, 1)
        cache, table = pages_of(ranks, keys_of(batch))
        q = numpy.concatenate([batch.latent, batch.query[:, :, 128:]], 2)
        rows = one_by_one(ranks, batch.rows, torch.from_numpy(batch.starts), torch.from_numpy(batch.lengths), table)
        implementation, most = layer(ranks), ranks.most_keys_of(batch.most[1])
        with torch.inference_mode(), wavejit.Engine(os.environ["WAVEJIT_DEVICE"]) as copies:
            here = WavejitLatentMetadata(batch.rows, *rows, 1, most, True, _serving.Serving(copies, False))
            want, want_sums = implementation.forward_mqa(torch.from_numpy(q), cache, here, LAYER)
        there = WavejitLatentMetadata(batch.rows, *(rocm(each.contiguous().numpy()) for each in rows), 1, most, True, _serving.Serving(ENGINE, False))
        out, sums = rocm(numpy.zeros((batch.rows, HEADS, LATENT), numpy.float16)), rocm(numpy.zeros((1, HEADS, batch.rows), numpy.float32))
        _latent_calls.attend(implementation.words, there, rocm(q), rocm(cache.numpy()), out, {}, sums)
        self.assertTrue(numpy.array_equal(host(out).view(numpy.int16), want.numpy().view(numpy.int16)))
        self.assertTrue(numpy.array_equal(host(sums)[0].T.copy().view(numpy.int32), want_sums.numpy().view(numpy.int32)))


if __name__ == "__main__":
    unittest.main()
