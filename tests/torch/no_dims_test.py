# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Heads whose queries and keys have no dims: every score is 0, so that a row has the mean of the values that it sees, in whatever memory out lies."""
import math
import unittest

import torch

import wavejit
import wavejit.torch


def draw(*shape, dtype=torch.bfloat16):
    return torch.randn(*shape, dtype=torch.float32).to(dtype)


class Case(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(17)
        torch.use_deterministic_algorithms(True)  # memory that nothing was written to is NaN
        self.addCleanup(torch.use_deterministic_algorithms, False)
        self.assertTrue(bool(torch.empty(4).isnan().all()))

    def close(self, found, exact, bound=1e-2):
        self.assertEqual(found.shape, exact.shape)
        self.assertTrue(bool(found.isfinite().all()))
        self.assertLess(float((found.double() - exact.double()).abs().max()), bound)


class NoDims(Case):
    def test_the_mean_of_the_values_that_a_row_sees(self):
        for of_values in (1 << 3, 64):
            q, k, v = draw(2, 7, 4, 0), draw(2, 19, 2, 0), draw(2, 19, 2, of_values)
            seen = torch.arange(19)[None, :] <= torch.arange(7)[:, None] + 12
            both = v.double().repeat_interleave(2, 2)
            whole = both.mean(1, keepdim=True).expand(2, 7, 4, of_values)
            causal = torch.einsum("ij,bjhd->bihd", seen / seen.sum(1, keepdim=True).double(), both)
            for _ in range(2):  # of a shape that was seen, too
                self.close(wavejit.torch.flash_attn_func(q, k, v), whole)
            out, lse, _ = wavejit.torch.flash_attn_func(q, k, v, causal=True, softcap=3.0, return_attn_probs=True)
            self.close(out, causal)
            self.close(lse, seen.sum(1).double().log().expand(2, 4, 7), 1e-5)
            into = torch.empty(2, 7, 4, of_values, dtype=v.dtype)
            wavejit.torch.flash_attn_func(q, k, v, causal=True, out=into)
            self.close(into, causal)
            compiled = torch.compile(wavejit.torch.flash_attn_func, backend="aot_eager", fullgraph=True)
            self.close(compiled(q, k, v), whole)

    def test_scaled_dot_product_attention_is_pytorchs(self):
        q, k, v = draw(1, 16, 16, 0), draw(1, 16, 16, 0), draw(1, 16, 16, 8)
        mask = torch.randn(16, 16)
        for words in ({}, {"is_causal": True}, {"attn_mask": mask}, {"attn_mask": mask > 0.5}):
            told = {name: value.double() if name == "attn_mask" and value.is_floating_point() else value for name, value in words.items()}
            exact = torch.nn.functional.scaled_dot_product_attention(q.double(), k.double(), v.double(), **told)
            self.close(wavejit.torch.scaled_dot_product_attention(q, k, v, **words), exact.nan_to_num(0))
        with self.assertRaisesRegex(wavejit.Error, "^value: head dim 1, beside query and key of 0; accepted: multiples of 8 up to 256"):
            wavejit.torch.scaled_dot_product_attention(q, k, v[..., :1])
        with self.assertRaisesRegex(wavejit.InvalidArgument, "^key: head dim 8; accepted: 0, that of q"):
            wavejit.torch.scaled_dot_product_attention(q, v, v)

    def test_packed_sequences_and_caches(self):
        rows, keys, values = draw(9, 4, 0), draw(20, 2, 0), draw(20, 2, 64)
        starts, key_starts = torch.tensor([0, 3, 9], dtype=torch.int32), torch.tensor([0, 7, 20], dtype=torch.int32)
        out = wavejit.torch.flash_attn_varlen_func(rows, keys, values, starts, key_starts, 6, 13)
        for part, of in ((slice(0, 3), slice(0, 7)), (slice(3, 9), slice(7, 20))):
            self.close(out[part], values[of].double().mean(0).repeat_interleave(2, 0).expand(out[part].shape))
        q, cache, lengths = draw(2, 1, 4, 0), draw(2, 48, 2, 64), torch.tensor([7, 48], dtype=torch.int32)
        for dtype in (torch.bfloat16, torch.float8_e4m3fn):
            of_values = cache.to(dtype)
            out, lse = wavejit.torch.flash_attn_with_kvcache(q, cache[..., :0].to(dtype), of_values, cache_seqlens=lengths, return_softmax_lse=True)
            for b, length in enumerate(lengths.tolist()):
                self.close(out[b, 0], of_values[b, :length].double().mean(0).repeat_interleave(2, 0))
                self.close(lse[b, :, 0], torch.full((4,), math.log(length)), 1e-5)

    def test_a_scale_that_is_no_number_is_refused_though_no_score_has_it(self):
        q, k, v = draw(2, 5, 4, 0), draw(2, 7, 2, 0), draw(2, 7, 2, 64)
        for scale, shown in ((math.nan, "nan"), (math.inf, "inf"), (3e38, r"3e\+38")):
            for call in (wavejit.torch.flash_attn_func, wavejit.torch.flash_attn_with_kvcache):
                with self.assertRaisesRegex(wavejit.InvalidArgument, f"^softmax_scale = {shown}; accepted: finite values whose product with log2 e is finite"):
                    call(q, k, v, softmax_scale=scale)
            with self.assertRaisesRegex(wavejit.InvalidArgument, f"^scale = {shown}"):
                wavejit.torch.scaled_dot_product_attention(*(each.transpose(1, 2) for each in (q, k, v)), scale=scale, enable_gqa=True)
        with self.assertRaisesRegex(wavejit.InvalidArgument, "^softmax_scale = a; accepted: a number"):
            wavejit.torch.flash_attn_func(q, k, v, softmax_scale="a")
        self.assertTrue(torch.equal(wavejit.torch.flash_attn_func(q, k, v, softmax_scale=-2.0), wavejit.torch.flash_attn_func(q, k, v)))

    def test_gradients(self):
        q, k, v = (draw(2, rows, 2, dim).requires_grad_() for rows, dim in ((7, 0), (19, 0), (19, 64)))
        d_out, bias = draw(2, 7, 2, 64), torch.randn(1, 2, 7, 19).requires_grad_()
        weights = bias.detach().double().softmax(-1).expand(2, 2, 7, 19)
        out = torch.ops.wavejit.attention_forward(q, k, v, bias=bias)
        out.backward(d_out)
        self.close(v.grad, torch.einsum("bhij,bihd->bjhd", weights, d_out.double()), 2e-2)
        self.assertEqual((q.grad.shape, k.grad.shape), (q.shape, k.shape))
        products = torch.einsum("bihd,bjhd->bhij", d_out.double(), v.detach().double())
        self.close(bias.grad, (weights * (products - (weights * products).sum(-1, keepdim=True))).sum(0, keepdim=True), 2e-2)
        v.grad = None
        wavejit.torch.flash_attn_func(q, k, v).backward(d_out)  # the short way
        self.close(v.grad, d_out.double().mean(1, keepdim=True).expand(v.shape) * 7 / 19, 2e-2)
        with self.assertRaisesRegex(wavejit.Unsupported, "^q: head dims 0 and 8 of v, and one of q, k, v requires grad"):
            wavejit.torch.flash_attn_func(q, k, v[..., :8])

    def test_values_without_dims_leave_the_log_sum_exp(self):
        q, k = draw(1, 5, 2, 64), draw(1, 9, 2, 64)
        out, lse, _ = wavejit.torch.flash_attn_func(q, k, k[..., :0], return_attn_probs=True)
        self.assertEqual(out.shape, (1, 5, 2, 0))
        self.assertTrue(torch.equal(lse, wavejit.torch.flash_attn_func(q, k, k, return_attn_probs=True)[1]))
        out, lse, _ = wavejit.torch.flash_attn_func(q[..., :0], k[..., :0], k[..., :0], return_attn_probs=True)
        self.close(lse, torch.full((1, 2, 5), math.log(9)), 1e-5)

    def test_refused_by_name_where_it_means_nothing(self):
        empty = draw(1, 1, 4, 0)
        with self.assertRaisesRegex(wavejit.Error, r"^q.*= 0"):
            wavejit.torch.attention_latent(empty, draw(1, 9, 1, 576), scale=1.0, value_dim=512)
        with self.assertRaisesRegex(wavejit.Error, r"^q.*= 0"):
            wavejit.torch.key_list_attention(empty, draw(1, 9, 2, 0), draw(1, 9, 2, 64), torch.zeros(1, 1, 4, dtype=torch.int32))
        with self.assertRaisesRegex(wavejit.Error, "head dim"):
            wavejit.torch.attention_merge([empty] * 2, [torch.zeros(1, 4, 1)] * 2)


if __name__ == "__main__":
    unittest.main()
