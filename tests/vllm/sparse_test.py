# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sparse latent attention of vLLM's (DeepSeek V3.2, GLM-5) layer by layer: lists as its indexer makes them, over CPU tensors and over
tensors of the device, in every cache that it may have; and who is told which backend to take."""
import importlib
import os
import sys
import types
import unittest
from unittest import mock

import numpy
import rocm_test
import torch
from exact import of_pages
from latent_dispatch_test import LAYER, Batch
from plugin_test import reasons
from rocm_test import ENGINE, host, rocm
from vllm.v1.attention.backends.registry import AttentionBackendEnum

import wavejit
import wavejit.vllm
from wavejit.vllm import WavejitLatentAttention, WavejitLatentBackend, WavejitLatentMetadata, WavejitSparseLatentAttention, WavejitSparseLatentBackend, _cache, _latent_lines, _serving, _sparse_models

HEADS, LATENT, ROPE, PAGE, PAGES, ENTRIES = 12, 512, 64, 16, 48, 32
RANDOM = numpy.random.default_rng(31)


def serving(engine):
    return _serving.Serving(engine, False)


def layer(buffer, dtype=torch.float16, **words):
    default = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        return WavejitSparseLatentAttention(HEADS, LATENT + ROPE, 192**-0.5, kv_lora_rank=LATENT, topk_indices_buffer=buffer, **words)
    finally:
        torch.set_default_dtype(default)


def lists_of(batch):
    """Some of the keys that each row sees, in no order, −1 behind them; a row of few keys has them all."""
    made = numpy.full((batch.rows + 3, ENTRIES), -1, numpy.int32)
    for sequence, length in enumerate(batch.lengths):
        begin, end = batch.starts[sequence : sequence + 2]
        for row in range(begin, end):
            seen = RANDOM.permutation(length - (end - 1 - row))[:ENTRIES]
            made[row, : len(seen)] = seen
    return made


def attended(q, pages, batch, lists, scale):
    """[rows, heads, latent] in float64 over what each list names."""
    out = numpy.zeros((batch.rows, HEADS, LATENT))
    for sequence, length in enumerate(batch.lengths):
        keys = of_pages(pages, torch.from_numpy(batch.table[sequence]), int(length))[:, 0].numpy()
        for row in range(*batch.starts[sequence : sequence + 2]):
            listed = keys[lists[row][lists[row] >= 0]]
            scores = q[row].astype(numpy.float64) @ listed.T * scale
            weights = numpy.exp(scores - scores.max(1, keepdims=True))
            out[row] = weights / weights.sum(1, keepdims=True) @ listed[:, :LATENT]
    return out


class OnCopies(unittest.TestCase):
    def setUp(self):
        self.enterContext(torch.inference_mode())

    @classmethod
    def setUpClass(cls):
        cls.serving = serving(wavejit.Engine(os.environ["WAVEJIT_DEVICE"]))
        wavejit.vllm.use(cls.serving.engine, seal=False)

    def metadata(self, batch):
        return WavejitLatentMetadata(batch.rows, *map(torch.from_numpy, (batch.starts, batch.lengths, batch.table)), *batch.most, True, self.serving)

    def test_each_row_sees_its_list(self):
        for rows, keys in (((1, 37, 5, 1), (90, 37, 61, 12)), ((1, 1), (300, 40))):
            batch = Batch(rows, keys)
            lists = lists_of(batch)
            implementation = layer(torch.from_numpy(lists))
            q = torch.from_numpy(batch.latent), torch.from_numpy(batch.query)[:, :, 128:]
            found, sums = implementation.forward_mqa(q, torch.from_numpy(batch.cache), self.metadata(batch), LAYER)
            exact = attended(torch.cat(q, 2).numpy(), torch.from_numpy(batch.cache).unsqueeze(2), batch, lists, implementation.scale)
            self.assertLess(float(numpy.abs(found.double().numpy() - exact).max()), 4e-3)
            self.assertIsNone(sums)
            # A row by itself, as decode would have it: the same bits.
            row, sequence = int(batch.starts[1]) + rows[1] // 2, 1
            length = int(batch.lengths[1]) - (int(batch.starts[2]) - 1 - row)
            alone = WavejitLatentMetadata(1, torch.tensor([0, 1], dtype=torch.int32), torch.tensor([length], dtype=torch.int32),
                                          torch.from_numpy(batch.table[sequence : sequence + 1]), 1, length, True, self.serving)
            implementation.topk_indices_buffer = torch.from_numpy(lists[row : row + 1])
            single, _ = implementation.forward_mqa(tuple(each[row : row + 1].clone() for each in q), torch.from_numpy(batch.cache), alone, LAYER)
            self.assertTrue(torch.equal(single.view(torch.int16), found[row : row + 1].view(torch.int16)))

    def test_the_indexers_buffer_is_asked_each_time(self):
        batch = Batch((2, 1), (40, 30))
        lists = lists_of(batch)
        indexer = types.SimpleNamespace(topk_indices_buffer=torch.zeros(8, ENTRIES, dtype=torch.int32))
        implementation = layer(None, indexer=indexer)
        indexer.topk_indices_buffer = torch.from_numpy(lists)  # vLLM's drafts share the target's
        q = torch.from_numpy(batch.latent), torch.from_numpy(batch.query)[:, :, 128:]
        found, _ = implementation.forward_mqa(q, torch.from_numpy(batch.cache), self.metadata(batch), LAYER)
        exact = attended(torch.cat(q, 2).numpy(), torch.from_numpy(batch.cache).unsqueeze(2), batch, lists, implementation.scale)
        self.assertLess(float(numpy.abs(found.double().numpy() - exact).max()), 4e-3)

    def test_caches_of_8_bits(self):
        """One scale for all, and rows of 656 bytes: what was written is what is read."""
        batch = Batch((3, 1), (3, 1))
        lists = lists_of(batch)
        latent, rope = torch.randn(4, LATENT).bfloat16(), torch.randn(4, 1, ROPE).bfloat16()
        slots = torch.tensor([int(batch.table[0, 0]) * PAGE + key for key in range(3)] + [int(batch.table[1, 0]) * PAGE])
        q = torch.from_numpy(batch.latent).bfloat16(), torch.from_numpy(batch.query)[:, :, 128:].bfloat16()
        scale = torch.tensor(0.02)
        for name, width in (("fp8", LATENT + ROPE), ("fp8_ds_mla", 656)):
            implementation = layer(torch.from_numpy(lists), torch.bfloat16, kv_cache_dtype=name)
            self.assertEqual((implementation.kind.rows, implementation.kind.top_k), (width == 656, ENTRIES))
            kept = torch.zeros(PAGES, PAGE, width, dtype=torch.uint8)
            implementation.do_kv_cache_update(latent, rope, kept, slots, name, scale)
            found, _ = implementation.forward_mqa(q, kept, self.metadata(batch), types.SimpleNamespace(_k_scale=scale))
            numbers = _cache.of_type(kept, implementation.kind.cache).float()
            if width == 656:
                scales = kept[..., LATENT : LATENT + 16].contiguous().view(torch.float32).repeat_interleave(128, 2)
                pages = torch.cat([numbers[..., :LATENT] * scales, kept[..., LATENT + 16 :].contiguous().view(torch.bfloat16).float()], 2)
            else:
                pages = numbers * float(scale)
            stored = torch.stack([pages[slot // PAGE, slot % PAGE] for slot in slots.tolist()])
            self.assertLess(float((stored - torch.cat([latent, rope[:, 0]], 1).float()).abs().max()), 0.3)
            exact = attended(torch.cat(q, 2).float().numpy(), pages.unsqueeze(2), batch, lists, implementation.scale)
            self.assertLess(float(numpy.abs(found.double().numpy() - exact).max()), 4e-2)


class OnTheDevice(rocm_test.Case):
    def test_lists_are_read_where_they_lie_and_every_kernel_was_prepared(self):
        batch = Batch((1, 37, 5, 1), (90, 37, 61, 12))
        lists = lists_of(batch)
        implementation, mine = layer(rocm(lists)), _serving.Serving(ENGINE, True)
        mine.prepare([*_latent_lines.lines(implementation.kind, 8, 512, PAGE * PAGES, PAGE), _latent_lines.append_line(implementation.kind, PAGE)])
        mine.seal()
        self.addCleanup(ENGINE.unseal)
        before = ENGINE.statistics()
        q, cache = batch.on_device()
        metadata = WavejitLatentMetadata(batch.rows, rocm(batch.starts), rocm(batch.lengths), rocm(batch.table), *batch.most, True, mine)
        found, _ = implementation.forward_mqa(q, cache, metadata, LAYER)
        again, _ = implementation.forward_mqa(q, cache, metadata, LAYER)
        whole = numpy.concatenate([batch.latent, batch.query[:, :, 128:]], 2)
        self.close(host(found), attended(whole, torch.from_numpy(batch.cache).unsqueeze(2), batch, lists, implementation.scale))
        self.assertEqual(len(metadata.plans), 1)
        one = Batch((1,), (760,))
        implementation.topk_indices_buffer = rocm(lists_of(one))
        implementation.forward_mqa(*one.on_device()[:1], one.on_device()[1], WavejitLatentMetadata(1, rocm(one.starts), rocm(one.lengths), rocm(one.table), *one.most, True, mine), LAYER)
        after = ENGINE.statistics()
        self.assertEqual((after["compiled"], after["refused_sealed"]), (before["compiled"], 0))


class Asked(Exception):
    """Instead of a layer."""


class Backends(unittest.TestCase):
    def test_by_its_name(self):
        wavejit.vllm.register()
        self.assertIs(AttentionBackendEnum["WAVEJIT_MLA_SPARSE"].get_class(), WavejitSparseLatentBackend)
        self.assertIs(AttentionBackendEnum["WAVEJIT_MLA"].get_class(), WavejitLatentBackend)
        self.assertTrue(WavejitSparseLatentBackend.is_sparse() and WavejitSparseLatentBackend.supports_batch_invariance())

    def test_who_is_told_which_to_take(self):
        sparse = {"backend": WavejitSparseLatentBackend, "use_mla": True, "head_size": 576, "use_sparse": True}
        for words in ({}, {"kv_cache_dtype": "fp8_ds_mla"}, {"kv_cache_dtype": "fp8"}):
            self.assertEqual(reasons(**{**sparse, **words}), [])
        for words, told in (({"backend": WavejitLatentBackend}, "--attention-backend WAVEJIT_MLA_SPARSE"), ({"use_sparse": False}, "--attention-backend WAVEJIT_MLA has it"),
                            ({"use_dcp": True}, "--decode-context-parallel-size 1"), ({"dtype": torch.float16, "kv_cache_dtype": "fp8_ds_mla"}, "fp16|bf16")):  # fmt: skip
            with self.subTest(words):
                self.assertRegex("; ".join(reasons(**{**sparse, **words})), told)

    def test_models_that_name_their_backend_ask_for_ours(self):
        """DeepSeek V3.2 and GLM-5 on ROCm: vLLM's own layer, as far as it is made on a CPU."""
        sys.modules.pop(_sparse_models.MODULE, None)
        before = list(sys.meta_path)
        _sparse_models.watch()
        _sparse_models.watch()
        self.assertEqual(len(sys.meta_path), len(before) + 1)
        module = importlib.import_module(_sparse_models.MODULE)
        self.assertEqual(sys.meta_path, before)
        layer, theirs = getattr(module, _sparse_models.LAYER), getattr(module, _sparse_models.THEIRS)
        wrapped = layer.__init__
        _sparse_models.watch()
        self.assertIs(layer.__init__, wrapped)
        self.addCleanup(setattr, layer, "__init__", wrapped.__wrapped__)

        def made(name, cache):
            config = types.SimpleNamespace(attention_config=types.SimpleNamespace(backend=AttentionBackendEnum[name]), cache_config=types.SimpleNamespace(cache_dtype=cache))
            indexer, shuffled = layer.indexer_cls, []

            def asked(*_, **__):
                shuffled.append(layer.indexer_cls.indexer_cache_cls.uses_shuffled_layout)
                raise Asked

            with mock.patch.object(layer.__bases__[0], "__init__", side_effect=asked) as base, self.assertRaises(Asked):
                layer(config, None, "layers.0.self_attn")
            self.assertIs(getattr(module, _sparse_models.THEIRS), theirs)
            self.assertIs(layer.indexer_cls, indexer)
            # wavejit's lists of keys read an indexer's cache side by side.
            self.assertEqual([each is False for each in shuffled], [name == "WAVEJIT_MLA_SPARSE"])
            return base.call_args.kwargs["attn_backend"]

        wavejit.vllm.register()
        self.assertIs(made("ROCM_AITER_MLA_SPARSE", "auto"), theirs)
        self.assertIs(made("WAVEJIT_MLA_SPARSE", "auto"), WavejitSparseLatentBackend)
        for cache in ("fp8", "fp8_ds_mla"):
            with self.assertRaisesRegex(wavejit.Unsupported, f"kv_cache_dtype {cache}: .* queries in 8 bits beside it; accepted: --kv-cache-dtype auto"):
                made("WAVEJIT_MLA_SPARSE", cache)

    def test_layers_when_they_are_made(self):
        with self.assertRaisesRegex(wavejit.Unsupported, "no topk_indices_buffer.*WAVEJIT_MLA"):
            layer(None)
        buffer = torch.zeros(8, ENTRIES, dtype=torch.int32)
        with self.assertRaisesRegex(wavejit.Unsupported, "--attention-backend WAVEJIT_MLA_SPARSE has it"):
            WavejitLatentAttention(HEADS, LATENT + ROPE, 0.07, kv_lora_rank=LATENT, topk_indices_buffer=buffer)
        with self.assertRaisesRegex(wavejit.Unsupported, "kv_cache_dtype int8_per_token_head: accepted .*fp8_ds_mla"):
            layer(buffer, kv_cache_dtype="int8_per_token_head")


if __name__ == "__main__":
    unittest.main()
