# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""ROCm tensors on the simulated HIP: rows of no sequence in memory that held something, and what stands in memory once for many read where it
lies, forward and backward. What torch's allocator is asked for is watched."""
import unittest
from unittest import mock

import numpy
import rocm_test
import torch
from rocm_test import ARRAYS, ENGINE, Case, as_strided, draw, host, rocm, wide

import wavejit.torch
from wavejit.torch import _operators, _dispatch

OPERATORS = torch.ops.wavejit
INFINITY = float("inf")


def repeated(array, sizes, strides):
    """A tensor over less memory than its sizes have elements."""
    held = ENGINE.array(array)
    ARRAYS[held.data_ptr] = held
    return as_strided(torch.from_dlpack(held.__dlpack__()), sizes, strides)


class Rows(Case):
    def test_rows_of_no_sequence(self):
        rocm_test.FILLED = 0xFF
        self.addCleanup(setattr, rocm_test, "FILLED", None)
        starts = rocm(numpy.array([0, 2, 5], numpy.int32))
        words = {"query_starts": starts, "key_starts": starts, "max_query_length": 3, "max_key_length": 3}
        for _ in range(3):  # planned, then remembered
            q = rocm(draw(1, 9, 2, 64))
            out, lse = OPERATORS.attention_forward_lse(q, q, q, **words)
            self.assertTrue(numpy.isfinite(host(out)).all() and numpy.isfinite(host(lse)[..., :5]).all())
            self.assertFalse(host(out)[:, 5:].any())
            self.assertTrue((host(lse)[..., 5:] == -INFINITY).all())
            rows = wavejit.torch.flash_attn_varlen_func(*[rocm(draw(9, 2, 64))] * 3, starts, starts, 3, 3)
            self.assertFalse(host(rows)[5:].any())
            self.assertTrue(host(rows)[:5].any())
        latent = rocm(draw(1, 9, 4, 576))
        out, lse = OPERATORS.attention_latent_lse(latent, rocm(draw(1, 9, 1, 576)), scale=0.1, **words)
        self.assertTrue(numpy.isfinite(host(out)).all() and not host(out)[:, 5:].any() and (host(lse)[..., 5:] == -INFINITY).all())


class Repeats(Case):
    """[2, 8, 70, 72] of each: nothing of the size of all batches, heads and rows is asked for."""

    def watched(self, call, most):
        rocm_test.ASKED = []
        self.addCleanup(setattr, rocm_test, "ASKED", None)
        with mock.patch.object(torch.Tensor, "clone", mock.Mock(side_effect=AssertionError("copied"))), \
             mock.patch.object(torch.Tensor, "contiguous", mock.Mock(side_effect=AssertionError("copied"))), \
             mock.patch.object(_dispatch, "bias_of", mock.Mock(side_effect=AssertionError("copied"))):
            results = [call() for _ in range(2)][1]  # planned, and remembered
        self.assertLessEqual(max(rocm_test.ASKED), most)
        return results

    def test_biases(self):
        q, k = draw(2, 70, 8, 64), draw(2, 72, 8, 64)
        tensors, out_bytes = [rocm(each) for each in (q, k, k)], q.nbytes
        for sizes, strides in (((1, 1, 70, 72), (0, 0, 72, 1)), ((2, 1, 1, 72), (72, 0, 0, 1)), ((1, 8, 1, 72), (0, 72, 0, 1)), ((1, 1, 1, 72), (0, 0, 0, 1))):
            for dtype in (numpy.float16, numpy.float32):
                with self.subTest(sizes=sizes, dtype=dtype.__name__):
                    bias = numpy.random.default_rng(3).standard_normal(sizes).astype(dtype)
                    whole = ENGINE.array(numpy.ascontiguousarray(numpy.broadcast_to(bias, (2, 8, 70, 72))))
                    given = repeated(bias, (2, 8, 70, 72), strides)
                    out, lse = self.watched(lambda given=given: OPERATORS.attention_forward_lse(*tensors, bias=given), out_bytes)
                    exact, sums = ENGINE.attention_forward(*(ENGINE.array(each) for each in (q, k, k)), bias=whole, lse=True)
                    self.assertTrue(numpy.array_equal(host(out), exact.numpy()) and numpy.array_equal(host(lse), sums.numpy()))
                    inputs = [*tensors, out, lse, rocm(q)]
                    found = self.watched(lambda inputs=inputs, given=given: OPERATORS.attention_backward(*inputs, bias=given), 2 * out_bytes)
                    wanted = ENGINE.attention_backward(*(ENGINE.array(each) for each in (q, k, k)), exact, sums, ENGINE.array(q), bias=whole)
                    for one, other in zip(found, wanted):
                        self.assertTrue(numpy.array_equal(host(one), other.numpy()))

    def test_keys_and_values(self):
        of_q, of_k = (2, 70, 8, 64), (2, 72, 8, 64)
        q = draw(*of_q)
        for lead, strides in (((2, 72, 1), (72 * 64, 64, 0, 1)), ((1, 72, 8), (0, 512, 64, 1)), ((1, 72, 1), (0, 64, 0, 1)), ((1, 1, 8), (0, 0, 64, 1))):
            with self.subTest(sizes=lead):
                k, v = draw(*lead, 64), draw(*lead, 64)
                whole = [ENGINE.array(numpy.ascontiguousarray(numpy.broadcast_to(each, of_k))) for each in (k, v)]
                given = [repeated(each, of_k, strides) for each in (k, v)]
                tensors = [rocm(q), *given]
                out, lse = self.watched(lambda tensors=tensors: OPERATORS.attention_forward_lse(*tensors, causal=True), q.nbytes)
                exact, sums = ENGINE.attention_forward(ENGINE.array(q), *whole, causal=True, lse=True)
                self.assertTrue(numpy.array_equal(host(out), exact.numpy()) and numpy.array_equal(host(lse), sums.numpy()))
                inputs = [*tensors, out, lse, rocm(q)]
                found = self.watched(lambda inputs=inputs: OPERATORS.attention_backward(*inputs, causal=True), 2 * q.nbytes)
                for one, other in zip(found, ENGINE.attention_backward(ENGINE.array(q), *whole, exact, sums, ENGINE.array(q), causal=True)):
                    self.assertTrue(numpy.array_equal(host(one), other.numpy()))

    def test_what_is_converted_is_converted_once(self):
        for sizes in ((1, 1, 1, 72), (2, 1, 1, 72), (1, 1, 70, 72), (1, 8, 1, 72)):
            mask = torch.rand(sizes) > 0.5
            whole = mask.expand(2, 8, 70, 72)
            converted = [_dispatch.bias_of(whole, torch.float16),
                         _dispatch.bias_of(mask.double().expand(whole.shape), torch.float16),
                         _operators._in_dtype(mask.float().expand(whole.shape), torch.float16)]
            wanted = [torch.zeros(whole.shape).masked_fill(~whole, -INFINITY), whole.float(), whole.float()]
            for found, exact in zip(converted, wanted):
                self.assertTrue(torch.equal(found.float(), exact))
                self.assertEqual(found.untyped_storage().nbytes(), 2 * mask.numel())

    def test_one_query_for_all_heads(self):
        q, k = draw(3, 5, 1, 64), draw(3, 7, 4, 64)
        given = repeated(q, (3, 5, 4, 64), (5 * 64, 64, 0, 1))
        out = self.watched(lambda: OPERATORS.attention_forward(given, rocm(k), rocm(k)), 4 * q.nbytes)
        exact = ENGINE.attention_forward(ENGINE.array(numpy.repeat(q, 4, 2)), ENGINE.array(k), ENGINE.array(k))
        self.assertTrue(numpy.array_equal(host(out), exact.numpy()))
        self.assertTrue(numpy.isfinite(wide(host(out))).all())


if __name__ == "__main__":
    unittest.main()
