# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Latent attention over tensors of 8 bits: FlashMLA's rows and tensors with one scale, with the bits of the call on what they say in 16 bits."""
import unittest

import torch
from latent_test import SCALE  # tests/python

import wavejit
import wavejit.torch
from wavejit import latent

ENGINE = wavejit.torch.engine("cpu")
E4M3 = torch.float8_e4m3fn
DRAWN = torch.Generator().manual_seed(7)


def draw(*shape, dtype=torch.bfloat16):
    return torch.randn(*shape, generator=DRAWN).to(dtype)


def of_bytes(*parts):
    """Side by side, as float8."""
    return torch.cat([part.contiguous().view(torch.uint8) for part in parts], -1).view(E4M3)


def scaled_rows(pages):
    """(rows of 656 bytes, the keys that they stand for): 512 in e4m3, a scale in fp32 for each 128, 64 of the rope in bf16."""
    latents, rope = draw(pages, 64, 1, 512, dtype=E4M3), draw(pages, 64, 1, 64)
    scales = 0.01 + 2 * torch.rand(pages, 64, 1, 4, generator=DRAWN)
    return of_bytes(latents, scales, rope), torch.cat([(latents.float() * scales.repeat_interleave(128, -1)).bfloat16(), rope], -1)


def rows_with_exponents(pages):
    """(rows of 584 bytes, their keys): 448 in e4m3 and 64 in bf16, and behind a page's rows E8M0 for each 64 of the 448."""
    latents, rope = draw(pages, 64, 1, 448, dtype=E4M3), draw(pages, 64, 1, 64)
    exponents = torch.randint(122, 131, (pages, 64, 1, 8), generator=DRAWN, dtype=torch.uint8)
    rows = of_bytes(of_bytes(latents, rope).reshape(pages, -1), exponents.reshape(pages, -1)).reshape(pages, 64, 1, 584)
    factors = torch.exp2(exponents[..., :7].float() - 127).repeat_interleave(64, -1)
    return rows, torch.cat([(latents.float() * factors).bfloat16(), rope], -1)


class Case(unittest.TestCase):
    def setUp(self):
        torch._dynamo.reset()
        self.table, self.lengths = torch.tensor([[2, 0], [1, 1], [0, 2]], dtype=torch.int32), torch.tensor([100, 64, 1], dtype=torch.int32)

    def same(self, found, expected):
        for one, other in zip(found, expected, strict=True):
            self.assertEqual((one.dtype, one.shape), (other.dtype, other.shape))
            self.assertTrue(torch.equal(one, other))

    def flash_mla(self, q, cache, **words):
        return wavejit.torch.flash_mla_with_kvcache(q, cache, self.table, self.lengths, 512, softmax_scale=SCALE, is_fp8_kvcache=cache.dtype is not q.dtype, **words)


class Rows(Case):
    def test_have_the_bits_of_their_keys(self):
        lists = {"indices": torch.randint(-1, 192, (3, 2, 70), generator=DRAWN, dtype=torch.int32), "topk_length": torch.tensor([70, 9, 40], dtype=torch.int32)}
        for made, columns in ((scaled_rows, 576), (rows_with_exponents, 512)):
            rows, keys = made(3)
            others, other_keys = made(3)
            q, sinks = draw(3, 2, 12, columns), torch.randn(12, generator=DRAWN)
            second = {"extra_indices_in_kvcache": lists["indices"][..., :20].contiguous()}
            for words, wide_words in (({"causal": True}, {"causal": True}), ({"attn_sink": sinks}, {"attn_sink": sinks}), (lists, lists),
                                      ({**lists, **second, "extra_k_cache": others}, {**lists, **second, "extra_k_cache": other_keys})):
                with self.subTest(rows=rows.shape[-1], words=list(words)):
                    self.same(self.flash_mla(q, rows, **words), self.flash_mla(q, keys, **wide_words))

    def test_the_other_door_has_the_same_bits(self):
        rows, keys = scaled_rows(3)
        q = draw(3, 2, 12, 576)
        found = latent.flash_mla_with_kvcache(ENGINE, q, rows.view(torch.uint8), self.table, self.lengths, 512, softmax_scale=SCALE, is_fp8_kvcache=True, cache_dtype="e4m3")
        for one, other in zip(found, self.flash_mla(q, keys)):
            self.assertTrue((one.numpy("float32") == other.float().numpy()).all())

    def test_in_one_graph(self):
        rows, keys = scaled_rows(3)
        q = draw(3, 1, 12, 576)

        def step(q, rows):
            return self.flash_mla(2 * q, rows)

        self.same(torch.compile(step, backend="aot_eager", fullgraph=True)(q, rows), step(q, keys))

    def test_refused_by_name(self):
        rows, _ = scaled_rows(3)
        q = draw(3, 1, 12, 576)
        for pattern, error, call in (
            ("k_cache: dtype torch.uint8 beside is_fp8_kvcache; .*k_cache.view", wavejit.InvalidArgument, lambda: self.flash_mla(q, rows.view(torch.uint8))),
            ("is_fp8_kvcache with rows of 655 bytes", wavejit.Unsupported, lambda: self.flash_mla(q, rows[..., :655])),
            ("whose rope is in bf16", wavejit.Unsupported, lambda: self.flash_mla(q.half(), rows)),
            ("scales of their own", wavejit.InvalidArgument, lambda: self.flash_mla(q, rows, k_scale=2.0)),
            ("extra_k_cache: dtype torch.bfloat16; accepted: torch.float8_e4m3fn, k_cache's", wavejit.InvalidArgument,
             lambda: self.flash_mla(q, rows, indices=self.table[:, None], extra_k_cache=q, extra_indices_in_kvcache=self.table[:, None])),
        ):
            with self.subTest(pattern), self.assertRaisesRegex(error, pattern):
                call()


class OneScale(Case):
    def test_has_the_bits_of_the_widened_cache(self):
        q, each = draw(3, 2, 12, 576), torch.tensor([0.5, 2.0, 4.0])
        cache = draw(3, 64, 1, 576, dtype=E4M3)
        self.same(self.flash_mla(q, cache), self.flash_mla(q, cache.bfloat16()))
        self.same(self.flash_mla(q, cache, k_scale=0.25), self.flash_mla(q, cache.bfloat16() * 0.25))
        integers = torch.randint(-128, 128, (3, 64, 1, 576), generator=DRAWN, dtype=torch.int8)
        words = {"scale": SCALE, "causal": True, "return_lse": True}
        for narrow in (cache, integers, cache.to(torch.float8_e5m2)):
            wide = narrow.bfloat16() * each[:, None, None, None].bfloat16()
            for scale in (each, each[:, None]):
                self.same(wavejit.torch.attention_latent(q, narrow, k_scale=scale, **words), wavejit.torch.attention_latent(q, wide, **words))
        apart = {"q_rope": q[..., 512:], "k_rope": cache[..., 512:].contiguous()}
        self.same(wavejit.torch.attention_latent(q[..., :512], cache[..., :512].contiguous(), k_scale=torch.tensor(2.0), **apart, **words),
                  wavejit.torch.attention_latent(q, cache.bfloat16() * 2, **words))

    def test_refused_by_name(self):
        q, cache = draw(3, 1, 12, 576), draw(3, 64, 1, 576, dtype=E4M3)
        for pattern, words in (("k_scale: dtype torch.float64", {"k_scale": torch.ones(1).double()}), ("k_scale.sizes", {"k_scale": torch.ones(2)}),
                               ("e4m3_fnuz", {"k": cache.to(torch.float8_e4m3fnuz)}), ("k_rope: dtype torch.bfloat16", {"k_rope": q[..., :64]}),
                               ("^k_scale: given; accepted: None beside k of bf16", {"k": cache.bfloat16(), "k_scale": 2.0})):
            with self.subTest(pattern), self.assertRaisesRegex(wavejit.Error, pattern):
                wavejit.torch.attention_latent(q, words.pop("k", cache), scale=SCALE, **words)


if __name__ == "__main__":
    unittest.main()
