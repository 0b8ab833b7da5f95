# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""wavejit.torch's lists of keys on the path of ROCm tensors (rocm_test.py says how they are made)."""
import unittest
from unittest import mock

import numpy
import rocm_test
import torch
from rocm_test import ENGINE, RANDOM, allocator, draw, host, rocm

import wavejit
import wavejit.torch


class KeyLists(rocm_test.Case):
    """Nothing is copied, and the workspace is torch's."""

    def setUp(self):
        super().setUp()
        self.q, self.k, self.v = draw(2, 2, 8, 64), draw(40, 16, 2, 64), draw(40, 16, 2, 64)
        self.lists = [RANDOM.integers(-1, 640, (2, 2, n)).astype(numpy.int32) for n in (700, 300)]
        self.counts = numpy.array([[700, 9], [0, 300]], numpy.int32)

    def call(self, attend, array, **words):
        return attend(array(self.q), array(self.k), array(self.v), indices=array(self.lists[0]), counts=array(self.counts), slots=True, second_k=array(self.v),
                      second_v=array(self.k), second_indices=array(self.lists[1]), **words)

    def same(self, **words):
        exact = [each.numpy() for each in self.call(ENGINE.attention_forward, ENGINE.array, lse=True)]
        for one, other in zip(self.call(wavejit.torch.key_list_attention, rocm, return_lse=True, **words), exact):
            self.assertTrue(numpy.array_equal(host(one).view(numpy.uint16), other.view(numpy.uint16)))

    def test_the_bits_of_the_engine(self):
        with mock.patch.object(torch.Tensor, "clone", mock.Mock(side_effect=AssertionError("copied"))):
            self.same()

    def test_the_workspace_is_torchs(self):
        with allocator(1 << 40):
            self.same(splits=2)
            self.assertTrue(any(asked >= 4 * 8 * 5 * 64 * 4 for asked in rocm_test.ASKED), rocm_test.ASKED)  # a record of each row, head and part

    def test_a_tensor_elsewhere(self):
        with self.assertRaisesRegex(wavejit.InvalidArgument, "indices: a tensor on cpu"):
            wavejit.torch.key_list_attention(rocm(self.q), rocm(self.k), rocm(self.v), torch.from_numpy(self.lists[0]))


if __name__ == "__main__":
    unittest.main()
