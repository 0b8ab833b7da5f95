# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Q and K in int8 as diffusion models have them: scales by tensor, head and row beside float64, traces, and what is refused."""
import unittest

import numpy
import reference
import torch
from flash_test import Case, draw, wide

import wavejit
import wavejit.torch

FLASH = wavejit.torch


def quantized(tensor, dims):
    """Integers, and what each counts: one scale over `dims`."""
    scale = tensor.float().abs().amax(dims, keepdim=True) / 127
    return (tensor.float() / scale).round().to(torch.int8), scale


class Integers(Case):
    def test_scales_of_tensors_heads_and_rows(self):
        q, k, v = draw(2, 12, 4, 64), draw(2, 37, 2, 64), draw(2, 37, 2, 64)
        for dims, shape in (((0, 1, 2, 3), lambda scale: scale.reshape(1)), ((0, 1, 3), lambda scale: scale.reshape(-1)),
                            ((1, 3), lambda scale: scale[:, 0, :, 0]), ((3,), lambda scale: scale[..., 0])):
            with self.subTest(dims=dims):
                (qi, qs), (ki, ks) = quantized(q, dims), quantized(k, dims)
                words = {"q_descale": shape(qs), "k_descale": shape(ks), "causal": True}
                out, lse, _ = FLASH.flash_attn_func(qi, ki, v, return_attn_probs=True, **words)
                self.assertEqual((out.dtype, lse.dtype), (torch.float16, torch.float32))
                for b in range(2):
                    counts = (wide(qi[b]) * wide((qs * torch.ones(2, 1, 1, 1))[b]), wide(ki[b]) * wide((ks * torch.ones(2, 1, 1, 1))[b]))
                    exact, exact_lse = reference.attention(*counts, wide(v[b]), causal=True)
                    self.close(out[b], exact)
                    self.close(lse[b], exact_lse)
                self.assertTrue(torch.equal(FLASH.flash_attn_func(qi, ki, v, **words), out))

    def test_packed_rows_have_the_bits_of_dense_ones(self):
        q, k, v = draw(1, 12, 4, 64), draw(1, 37, 2, 64), draw(1, 37, 2, 64).bfloat16()
        (qi, qs), (ki, ks) = quantized(q, (3,)), quantized(k, (3,))
        dense = FLASH.flash_attn_func(qi, ki, v, q_descale=qs[..., 0], k_descale=ks[..., 0], causal=True)
        self.assertEqual(dense.dtype, torch.bfloat16)
        starts = [torch.tensor([0, n], dtype=torch.int32) for n in (12, 37)]
        packed = FLASH.flash_attn_varlen_func(qi[0], ki[0], v[0], *starts, 12, 37, causal=True, q_descale=qs[0, ..., 0], k_descale=ks[0, ..., 0])
        self.assertTrue(torch.equal(packed, dense[0]))

    def test_in_traces(self):
        q, k, v = quantized(draw(1, 20, 4, 64), (3,)), quantized(draw(1, 40, 2, 64), (3,)), draw(1, 40, 2, 64)
        words = {"q_descale": q[1][..., 0], "k_descale": k[1][..., 0], "window_size": (9, 4)}
        exact = FLASH.flash_attn_func(q[0], k[0], v, **words)
        compiled = torch.compile(lambda q, k, v: FLASH.flash_attn_func(q, k, v, **words), backend="aot_eager", fullgraph=True)
        self.assertTrue(torch.equal(compiled(q[0], k[0], v), exact))
        with torch.autocast("cpu", dtype=torch.float16):
            self.assertTrue(torch.equal(FLASH.flash_attn_func(q[0], k[0], v.float(), **words), exact))

    def test_scores_rounded_as_rocmlir_does(self):
        """The operators' word; the engine's own call has the same bits."""
        (q, _), (k, _), v = quantized(draw(1, 9, 2, 64), (3,)), quantized(draw(1, 70, 2, 64), (3,)), draw(1, 70, 2, 64)
        words = {"scale": 0.0007, "bias": draw(1, 2, 9, 72)[..., :70]}
        exact = torch.ops.wavejit.attention_forward(q, k, v, **words)
        rounded, lse = torch.ops.wavejit.attention_forward_lse(q, k, v, score_rounding="fp16", **words)
        scores = (wide(q[0]).transpose(1, 0, 2) @ wide(k[0]).transpose(1, 2, 0)).astype(numpy.float32)
        scores = (scores * numpy.float32(0.0007) + wide(words["bias"][0]).astype(numpy.float32)).astype(numpy.float16).astype(numpy.float64)
        weights = numpy.exp(scores - scores.max(-1, keepdims=True))
        self.close(lse[0], numpy.log(weights.sum(-1)) + scores.max(-1))
        self.close(rounded[0], numpy.einsum("hij,jhd->ihd", weights / weights.sum(-1, keepdims=True), wide(v[0])))
        self.assertFalse(torch.equal(rounded, exact))
        self.assertTrue(torch.equal(torch.ops.wavejit.attention_forward(q, k, v, score_rounding="fp32", **words), exact))
        traced = torch.compile(lambda q, k, v: torch.ops.wavejit.attention_forward(q, k, v, score_rounding="fp16", **words), backend="aot_eager", fullgraph=True)
        self.assertTrue(torch.equal(traced(q, k, v), rounded))
        self.refuses("^score_rounding = 'bf16'; accepted: fp32, fp16", torch.ops.wavejit.attention_forward, q, k, v, score_rounding="bf16")
        self.refuses("^score_rounding = 1; accepted: 0 beside q", torch.ops.wavejit.attention_forward, v, v, v, score_rounding="fp16")

    def test_refused_by_name(self):
        (q, _), (k, _), v = quantized(draw(1, 3, 4, 64), (3,)), quantized(draw(1, 40, 2, 64), (3,)), draw(1, 40, 2, 64)
        self.refuses("^k: dtype torch.float16; accepted: torch.int8, q's", FLASH.flash_attn_func, q, v, v)
        self.refuses("^v: dtype torch.int8; accepted: torch.float16, torch.bfloat16 beside q of torch.int8", FLASH.flash_attn_func, q, k, k)
        self.refuses("^v: dtype torch.float16; accepted: torch.int8, k's", FLASH.flash_attn_func, draw(1, 3, 4, 64), k, v)
        self.refuses("^v_descale: given; accepted: None, v has 16 bits", FLASH.flash_attn_func, q, k, v, v_descale=1.0)
        self.refuses(r"^q_descale\.sizes\[0\] = 3; accepted: 1 or 4", FLASH.flash_attn_func, q, k, v, q_descale=torch.ones(3))
        self.refuses("^q_descale: it requires grad", FLASH.flash_attn_func, q, k, v, q_descale=torch.ones(1).requires_grad_(), error=wavejit.Unsupported)
        for words in ({}, {"return_attn_probs": True}, {"q_descale": 1.0}):
            self.refuses("^q: dtype torch.int8, and v requires grad", FLASH.flash_attn_func, q, k, v.clone().requires_grad_(), error=wavejit.Unsupported, **words)
        with torch.no_grad():
            self.assertTrue(torch.equal(FLASH.flash_attn_func(q, k, v.clone().requires_grad_(), 0.0, 0.01), FLASH.flash_attn_func(q, k, v, 0.0, 0.01)))


if __name__ == "__main__":
    unittest.main()
