# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A layer of latent attention of vLLM's over tensors of the device: those of tests/torch/rocm_test.py, on the simulated HIP."""
import types
import unittest
from unittest import mock

import numpy
import rocm_test
import torch
from exact import attention
from rocm_test import ENGINE, allocator, host, rocm, tensor_of
from dispatch_test import int32, int64

from wavejit.vllm import WavejitLatentAttention, WavejitLatentMetadata, _latent_lines, _serving

RANDOM = numpy.random.default_rng(29)
HEADS, LATENT, ROPE, PAGE, PAGES = 12, 512, 64, 16, 48
SERVING = _serving.Serving(ENGINE, True)
LAYER = types.SimpleNamespace(_k_scale=None)


def layer(**words):
    default = torch.get_default_dtype()
    torch.set_default_dtype(torch.float16)
    try:
        return WavejitLatentAttention(HEADS, LATENT + ROPE, 192**-0.5, kv_lora_rank=LATENT, **words)
    finally:
        torch.set_default_dtype(default)


class Batch:
    """Sequences of this many rows and keys in shuffled pages of one cache, on the host and on the device."""

    def __init__(self, rows, keys):
        self.starts, self.lengths = int32([0, *numpy.cumsum(rows)]), int32(keys)
        columns = max(-(-each // PAGE) for each in keys)
        self.table = int32(RANDOM.permutation(PAGES)[: len(rows) * columns].reshape(len(rows), columns))
        self.rows, self.most = int(self.starts[-1]), (max(rows), max(keys))
        # As vLLM has them: the latent's columns come of a product, the rope's are the last of each head's 192.
        self.latent = RANDOM.standard_normal((self.rows, HEADS, LATENT)).astype(numpy.float16)
        self.query = RANDOM.standard_normal((self.rows, HEADS, 128 + ROPE)).astype(numpy.float16)
        self.cache = RANDOM.standard_normal((PAGES, PAGE, LATENT + ROPE)).astype(numpy.float16)

    def on_device(self):
        return (rocm(self.latent), tensor_of(ENGINE.array(self.query)[:, :, 128:])), rocm(self.cache)

    def metadata(self):
        return WavejitLatentMetadata(self.rows, rocm(self.starts), rocm(self.lengths), rocm(self.table), *self.most, True, SERVING)

    def exact(self, implementation):
        pages = torch.from_numpy(self.cache).unsqueeze(2)
        q = torch.from_numpy(numpy.concatenate([self.latent, self.query[:, :, 128:]], 2))
        return attention(q, pages, pages[..., :LATENT], *map(torch.from_numpy, (self.starts, self.lengths, self.table)), scale=implementation.scale)[0]


class LatentRoad(rocm_test.Case):
    def test_mixes_against_float64_and_nothing_is_copied(self):
        clones = mock.Mock(side_effect=AssertionError("copied"))
        implementation = layer()
        for rows, keys in (((1, 37, 5, 1), (90, 37, 61, 12)), ((1, 1), (300, 40))):
            batch = Batch(rows, keys)
            with mock.patch.object(torch.Tensor, "contiguous", clones), mock.patch.object(torch.Tensor, "clone", clones):
                found, sums = implementation.forward_mqa(*batch.on_device(), batch.metadata(), LAYER)
            self.close(host(found), batch.exact(implementation).numpy())
            self.assertIsNone(sums)

    def test_nothing_is_allocated_after_the_first_layer_of_a_step(self):
        """Writes and attention of a step's layers: memory is torch's, an output and a workspace once, and no checked call that was not there."""
        implementation, batch = layer(), Batch((1, 1), (370, 21))
        q, cache = batch.on_device()
        latent, rope, slots = rocm(self.noise(2, LATENT)), rocm(self.noise(2, 1, ROPE)), int64([3, 40])

        def step(metadata, layers):
            for _ in range(layers):
                implementation.do_kv_cache_update(latent, rope, cache, slots, "auto", None)
                implementation.forward_mqa(q, cache, metadata, LAYER)

        # vLLM's device has a serving engine of its own; here it is the test's.
        with mock.patch("wavejit.vllm._latent_layer.serving", lambda device: SERVING), allocator(1 << 40):
            step(batch.metadata(), 1)
            known, metadata = len(ENGINE._plans), batch.metadata()
            del rocm_test.ASKED[:]
            step(metadata, 4)
            self.assertLessEqual(len(rocm_test.ASKED), 2)
        self.assertEqual(len(ENGINE._plans), known)

    def noise(self, *shape):
        return RANDOM.standard_normal(shape).astype(numpy.float16)

    def test_new_rows_go_into_the_cache_in_one_launch(self):
        implementation, pages = layer(), self.noise(PAGES, PAGE, LATENT + ROPE)
        latent, rope, slots = self.noise(5, LATENT), self.noise(5, 1, ROPE), [17, -1, 300, 4, 16]
        cache = ENGINE.array(pages)
        with mock.patch("wavejit.vllm._latent_layer.serving", lambda device: SERVING):
            implementation.do_kv_cache_update(rocm(latent), rocm(rope), tensor_of(cache), int64(slots), "auto", None)
        for row, slot in enumerate(slots):
            if slot >= 0:
                pages[slot // PAGE, slot % PAGE] = numpy.concatenate([latent[row], rope[row, 0]])
        self.assertTrue(numpy.array_equal(cache.numpy(), pages))

    def test_sealed_after_the_lines_of_a_layer(self):
        """Any step that the scheduler may make finds its kernels: decode, drafts, chunks, prompts, few sequences and many."""
        implementation = layer()
        kind = implementation.kind
        SERVING.prepare([*_latent_lines.lines(kind, 8, 512, PAGE * PAGES, PAGE), _latent_lines.append_line(kind, PAGE)])
        SERVING.seal()
        self.addCleanup(ENGINE.unseal)
        before = ENGINE.statistics()
        for rows in ((1,), (2,), (3, 1), (6, 1, 1), (12,), (40, 3), (1,) * 8):
            batch = Batch(rows, [min(each + 11, PAGE * (PAGES // len(rows))) for each in rows])
            implementation.forward_mqa(*batch.on_device(), batch.metadata(), LAYER)
        batch = Batch((1,), (760,))
        implementation.forward_mqa(*batch.on_device(), batch.metadata(), LAYER)
        after = ENGINE.statistics()
        self.assertEqual((after["compiled"], after["disk_hits"], after["refused_sealed"]), (before["compiled"], before["disk_hits"], 0))


if __name__ == "__main__":
    unittest.main()
