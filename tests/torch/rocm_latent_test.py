# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""wavejit.torch's latent attention on the path of ROCm tensors (rocm_test.py says how they are made)."""
import unittest
from unittest import mock

import numpy
import rocm_test
import torch
from rocm_test import ARRAYS, ENGINE, RANDOM, allocator, draw, empty, host, rocm, tensor_of, view

import wavejit
import wavejit.torch


class Latent(rocm_test.Case):
    """Latent attention over tensors of the device: nothing is copied, shapes are remembered, the workspace is torch's."""

    def setUp(self):
        super().setUp()
        self.q, self.pages = draw(2, 1, 12, 576), draw(140, 16, 1, 576)
        self.table, self.lengths = RANDOM.permutation(140).astype(numpy.int32).reshape(2, 70), numpy.array([1100, 33], numpy.int32)
        self.scale = 192**-0.5

    def decode(self, q=None, **words):
        return wavejit.torch.attention_latent(rocm(self.q) if q is None else q, rocm(self.pages), scale=self.scale, causal=True, key_lengths=rocm(self.lengths),
                                              block_table=rocm(self.table), return_lse=True, **words)

    def exact(self, q):
        out, lse = ENGINE.attention_latent(ENGINE.array(q), ENGINE.array(self.pages), scale=self.scale, causal=True, key_lengths=ENGINE.array(self.lengths),
                                           block_table=ENGINE.array(self.table), max_key_length=1120, lse=True)
        return out.numpy(), lse.numpy()

    def same(self, found, exact):
        for one, other in zip(found, exact):
            self.assertTrue(numpy.array_equal(host(one).view(numpy.uint16), other.view(numpy.uint16)))

    def test_the_bits_of_the_engine(self):
        shapes = len(ENGINE._plans)
        for _ in range(2):
            self.q = draw(2, 1, 12, 576)
            with mock.patch.object(torch.Tensor, "clone", mock.Mock(side_effect=AssertionError("copied"))):
                self.same(self.decode(), self.exact(self.q))
        self.assertEqual(len(ENGINE._plans), shapes + 1)
        out = empty([2, 1, 12, 512], torch.float16)
        self.assertIs(self.decode(out=out)[0], out)
        self.same([out], self.exact(self.q))
        # Queries that begin at 2 bytes are copied; a cache never is.
        room = numpy.zeros((2, 1, 12, 584), numpy.float16)
        room[..., 1:577] = self.q
        self.same(self.decode(view(room, ..., slice(1, 577))), self.exact(self.q))
        with self.assertRaisesRegex(wavejit.InvalidArgument, "^k"):
            wavejit.torch.attention_latent(rocm(self.q), view(draw(2, 20, 1, 577), ..., slice(1, 577)), scale=self.scale)

    def test_the_rope_apart_and_lists(self):
        keys, indices = draw(2, 90, 1, 576), RANDOM.integers(-1, 100, (2, 1, 70)).astype(numpy.int32)
        parts = [numpy.ascontiguousarray(each) for each in (self.q[..., :512], self.q[..., 512:], keys[..., :512], keys[..., 512:])]
        counts = numpy.array([70, 9], numpy.int32)
        exact = ENGINE.attention_latent(*(ENGINE.array(each) for each in (self.q, keys)), scale=self.scale, indices=ENGINE.array(indices), counts=ENGINE.array(counts), lse=True)
        found = wavejit.torch.attention_latent(rocm(parts[0]), rocm(parts[2]), scale=self.scale, q_rope=rocm(parts[1]), k_rope=rocm(parts[3]), indices=rocm(indices),
                                               counts=rocm(counts), return_lse=True)
        self.same(found, [each.numpy() for each in exact])

    def test_rows_of_656_bytes_are_read_as_they_lie(self):
        table, lengths = numpy.array([[2, 0], [1, 1]], numpy.int32), numpy.array([100, 64], numpy.int32)
        shapes = len(ENGINE._plans)
        for _ in range(2):
            rows = RANDOM.integers(0x20, 0x48, (3, 64, 1, 656)).astype(numpy.uint8)
            rows[..., 512:528] = RANDOM.uniform(0.5, 2, (3, 64, 1, 4)).astype(numpy.float32).view(numpy.uint8)
            q, cache = ENGINE.array((draw(2, 1, 12, 576).astype(numpy.float32).view(numpy.uint32) >> 16).astype(numpy.uint16), "bf16"), ENGINE.array(rows, "e4m3")
            exact = ENGINE.attention_latent(q, cache, scale=self.scale, block_table=ENGINE.array(table), key_lengths=ENGINE.array(lengths), max_key_length=128, lse=True)
            given = tensor_of(cache)
            with mock.patch.object(torch.Tensor, "clone", mock.Mock(side_effect=AssertionError("copied"))):
                found = wavejit.torch.flash_mla_with_kvcache(tensor_of(q), given, rocm(table), rocm(lengths), 512, softmax_scale=self.scale, is_fp8_kvcache=True)
            self.assertEqual(given.dtype, torch.float8_e4m3fn)
            self.assertTrue(numpy.array_equal(ARRAYS[found[0].data_ptr()].numpy("uint16"), exact[0].numpy("uint16")))
            self.assertTrue(numpy.array_equal(host(found[1]), exact[1].numpy()))
        self.assertEqual(len(ENGINE._plans), shapes + 1)

    def test_the_workspace_is_torchs(self):
        whole = [each.copy() for each in self.exact(self.q)]
        for splits, room in ((0, 1 << 40), (2, 1 << 40), (0, 40000)):
            with self.subTest(splits=splits, room=room), allocator(room):
                found = self.decode(splits=splits)
                self.assertTrue(any(asked >= 2 * 12 * 2 * 512 * 4 for asked in rocm_test.ASKED), rocm_test.ASKED)  # a record of each row, head and chunk
            self.same(found, whole)


if __name__ == "__main__":
    unittest.main()
