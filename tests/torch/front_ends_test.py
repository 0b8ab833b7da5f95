# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""PyTorch's own functions for attention where wavejit was activated as its flash attention: bits, gradients, what sdpa_kernel chooses, what is refused."""
import os
import unittest
import warnings
from unittest import mock

import torch
import torch.nn.functional as F
from gradients_test import exact_flash
from torch.nn import attention
from torch.nn.attention.varlen import AuxRequest, varlen_attn, varlen_attn_out

import wavejit
import wavejit.torch
from wavejit.torch import _engines


def draw(*shape, dtype=torch.bfloat16):
    return torch.randn(*shape, dtype=torch.float32).to(dtype)


def near(found, exact):
    return float(10 * torch.log10(exact.square().sum() / (found.double() - exact).square().sum()))


class Case(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(5)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # PyTorch says of each operator that it is overridden
            attention.activate_flash_attention_impl("wavejit")
        self.addCleanup(attention.restore_flash_attention_impl, _raise_warn=False)

    def calls(self, function):
        engine = wavejit.torch.engine("cpu")
        before = engine.statistics()["calls"]
        return function(), engine.statistics()["calls"] - before


class Doors(Case):
    def test_one_line_there_and_back(self):
        q = draw(1, 2, 24, 64)
        self.assertIn("wavejit", attention.list_flash_attention_impls())
        self.assertEqual(attention.current_flash_attention_impl(), "wavejit")
        out, calls = self.calls(lambda: F.scaled_dot_product_attention(q, q, q))
        self.assertEqual(calls, 1)
        attention.restore_flash_attention_impl()
        self.assertIsNone(attention.current_flash_attention_impl())
        of_torch, calls = self.calls(lambda: F.scaled_dot_product_attention(q, q, q))
        self.assertEqual(calls, 0)
        self.assertGreater(near(out, of_torch.double()), 40)

    def test_sdpa_kernel_chooses(self):
        q = draw(1, 2, 24, 64)
        for backend, expected in ((attention.SDPBackend.MATH, 0), (attention.SDPBackend.FLASH_ATTENTION, 1)):
            with attention.sdpa_kernel(backend):
                self.assertEqual(self.calls(lambda: F.scaled_dot_product_attention(q, q, q))[1], expected)

    def test_not_without_a_device(self):
        attention.restore_flash_attention_impl(_raise_warn=False)
        with mock.patch.dict(_engines._of, clear=True), mock.patch.dict(os.environ, {"WAVEJIT_DEVICE": "hip"}):
            with self.assertRaisesRegex(wavejit.InvalidArgument, 'wavejit: this PyTorch is .*, not one for ROCm; accepted: wavejit.torch.use\\("sim:gfx950"\\)'):
                attention.activate_flash_attention_impl("wavejit")

    def test_refused(self):
        q = draw(1, 2, 24, 64, dtype=torch.float32)
        with self.assertRaisesRegex(wavejit.Unsupported, "query: dtype torch.float32; accepted: torch.float16, torch.bfloat16, or torch.nn.attention.sdpa_kernel"):
            F.scaled_dot_product_attention(q, q, q)
        q = draw(1, 2, 24, 96).requires_grad_()
        with self.assertRaisesRegex(wavejit.Unsupported, "q: head dims 96 and 96"):
            F.scaled_dot_product_attention(q, q, q).sum().backward()


class ScaledDotProduct(Case):
    def test_the_bits_are_those_of_the_function_here(self):
        q, k = draw(2, 4, 24, 64), draw(2, 4, 40, 64)
        for words in ({}, {"is_causal": True}, {"scale": 0.3}, {"attn_mask": torch.rand(24, 40) < 0.7}, {"attn_mask": draw(2, 4, 24, 40)}):
            with self.subTest(str(list(words))):
                out, calls = self.calls(lambda words=words: F.scaled_dot_product_attention(q, k, k, **words))
                self.assertEqual(calls, 1)
                self.assertTrue(torch.equal(out, wavejit.torch.scaled_dot_product_attention(q, k, k, **words)))
        grouped = F.scaled_dot_product_attention(q, k[:, :2], k[:, :2], enable_gqa=True)
        self.assertTrue(torch.equal(grouped, wavejit.torch.scaled_dot_product_attention(q, k[:, :2], k[:, :2], enable_gqa=True)))

    def test_gradients(self):
        q, k, v = draw(1, 4, 24, 64), draw(1, 4, 40, 64), draw(1, 4, 40, 64)
        for words in ({"is_causal": True}, {"attn_mask": draw(24, 40)}):
            found, wanted = ([each.detach().clone().requires_grad_() for each in (q, k, v)] for _ in range(2))
            F.scaled_dot_product_attention(*found, **words).sum().backward()
            wavejit.torch.scaled_dot_product_attention(*wanted, **words).sum().backward()
            for one, other in zip(found, wanted):
                self.assertTrue(torch.equal(one.grad, other.grad))

    def test_compiled(self):
        q = draw(1, 2, 24, 64)
        layer = torch.compile(lambda q: 2 * F.scaled_dot_product_attention(q, q, q, is_causal=True), backend="aot_eager", fullgraph=True)
        out, calls = self.calls(lambda: layer(q))
        self.assertEqual(calls, 1)
        self.assertTrue(torch.equal(out, 2 * wavejit.torch.scaled_dot_product_attention(q, q, q, is_causal=True)))

    def test_operators_of_the_device(self):
        """What ROCm tensors reach, by CPU tensors."""
        q = draw(1, 2, 24, 64)
        forward, backward = torch.ops.aten._scaled_dot_product_flash_attention, torch.ops.aten._scaled_dot_product_flash_attention_backward
        out, lse, starts, _, rows, keys, seed, offset, _ = forward(q, q, q, 0.0, True)
        self.assertTrue(torch.equal(out, wavejit.torch.scaled_dot_product_attention(q, q, q, is_causal=True)))
        self.assertEqual((lse.shape, lse.dtype, starts, rows, keys), (torch.Size([1, 2, 24]), torch.float32, None, 24, 24))
        leaf = q.clone().requires_grad_()
        (want,) = torch.autograd.grad(wavejit.torch.scaled_dot_product_attention(leaf, q, q, is_causal=True), leaf, q)
        dq, _, _ = backward(q, q, q, q, out, lse, None, None, 24, 24, 0.0, True, seed, offset)
        self.assertTrue(torch.equal(dq, want))
        with self.assertRaisesRegex(wavejit.InvalidArgument, "dropout_p = 0.5; accepted: 0"):
            forward(q, q, q, 0.5)


class Packed(Case):
    starts = torch.tensor([0, 5, 24], dtype=torch.int32)

    def test_forward(self):
        q, k = draw(24, 4, 64), draw(24, 2, 64)
        for window in ((-1, -1), (-1, 0), (7, 0), (3, 2)):
            with self.subTest(window):
                (out, lse), calls = self.calls(lambda window=window: varlen_attn(q, k, k, self.starts, self.starts, 19, 19, window_size=window, enable_gqa=True, return_aux=AuxRequest(lse=True)))
                self.assertEqual((calls, lse.shape), (1, torch.Size([4, 24])))
                for first, last in ((0, 5), (5, 24)):
                    exact, sums = exact_flash(*(each[None, first:last].double() for each in (q, k, k)), causal=window[1] == 0, window=window)
                    self.assertGreater(near(out[first:last], exact[0]), 44)
                    self.assertGreater(near(lse[:, first:last], sums[0]), 80)
        into = torch.empty_like(q)
        varlen_attn_out(into, q, k, k, self.starts, self.starts, 19, 19, enable_gqa=True)
        self.assertTrue(torch.equal(into, varlen_attn(q, k, k, self.starts, self.starts, 19, 19, enable_gqa=True)))

    def test_pages(self):
        pages, table = draw(6, 16, 2, 64), torch.tensor([[3, 1, 5], [0, 2, 4]], dtype=torch.int32)
        lengths, q = torch.tensor([40, 17], dtype=torch.int32), draw(24, 4, 64)
        out = varlen_attn(q, pages, pages, self.starts, None, 19, 48, window_size=(-1, 0), enable_gqa=True, seqused_k=lengths, block_table=table, num_splits=1)
        want = wavejit.torch.flash_attn_varlen_func(q, pages, pages, self.starts, None, 19, 48, causal=True, seqused_k=lengths, block_table=table)
        self.assertTrue(torch.equal(out, want))
        # Where keys begin says how many each sequence has, if nothing else does.
        starts = torch.tensor([0, 40, 57], dtype=torch.int32)
        out = torch.ops.aten._flash_attention_forward(q, pages, pages, self.starts, starts, 19, 48, 0.0, True, False, block_table=table)[0]
        self.assertTrue(torch.equal(out, want))

    def test_gradients(self):
        found, wanted = ([each.requires_grad_() for each in (draw(24, 4, 64), draw(24, 4, 64), draw(24, 4, 64))] for _ in range(2))
        for one, other in zip(found, wanted):
            other.data.copy_(one.data)
        varlen_attn(*found, self.starts, self.starts, 19, 19, window_size=(-1, 0)).sum().backward()
        wavejit.torch.flash_attn_varlen_func(*wanted, self.starts, self.starts, 19, 19, causal=True).sum().backward()
        for one, other in zip(found, wanted):
            self.assertTrue(torch.equal(one.grad, other.grad))


if __name__ == "__main__":
    unittest.main()
