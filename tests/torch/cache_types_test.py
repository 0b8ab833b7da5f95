# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Caches of float8 as engines pass them: the bits of the call on the widened cache, scales, traces, and what is refused."""
import unittest

import torch
from flash_test import Case, draw

import wavejit
import wavejit.torch

FLASH = wavejit.torch


def narrow(tensor, dtype=torch.float8_e4m3fn):
    return (tensor * 4).round().to(dtype) if dtype is torch.int8 else tensor.to(dtype)


class EightBits(Case):
    def same(self, one, other):
        self.assertTrue(torch.equal(one.view(torch.int16), other.view(torch.int16)))

    def test_dense_caches_of_both_targets(self):
        earlier = FLASH.engine("cpu")
        self.addCleanup(FLASH.use, earlier)
        for target, dtypes in (("sim:gfx950", (torch.float8_e4m3fn, torch.float8_e5m2, torch.int8)), ("sim:gfx942", (torch.float8_e4m3fnuz, torch.float8_e5m2fnuz, torch.int8))):
            FLASH.use(target)
            for dtype in dtypes:
                with self.subTest(target=target, dtype=dtype):
                    q, k, v = draw(2, 3, 4, 64), narrow(draw(2, 48, 2, 64), dtype), narrow(draw(2, 48, 2, 64), dtype)
                    words = {"cache_seqlens": torch.tensor([7, 48], dtype=torch.int32), "causal": True}
                    exact = FLASH.flash_attn_with_kvcache(q, k.half(), v.half(), **words)
                    self.same(FLASH.flash_attn_with_kvcache(q, k, v, **words), exact)
                    self.same(FLASH.flash_attn_with_kvcache(q, k, v, return_softmax_lse=True, **words)[0], exact)
                    # Powers of two are exact wherever they stand.
                    twice = FLASH.flash_attn_with_kvcache(q, k, v, k_descale=0.5, v_descale=2, **words)
                    self.same(twice, FLASH.flash_attn_with_kvcache(q, k.half() * 0.5, v.half() * 2, **words))

    def test_pages_packed_rows_and_left_padding(self):
        q, cache = draw(6, 4, 64), narrow(draw(5, 2, 16, 2, 64))
        table, starts = torch.tensor([[3, 1], [0, 4]], dtype=torch.int32), torch.tensor([0, 5, 6], dtype=torch.int32)
        lengths = torch.tensor([0, 20, 52], dtype=torch.int32)

        def call(pages, **words):
            return FLASH.flash_attn_varlen_func(q, pages[:, 0], pages[:, 1], starts, lengths, 5, 32, causal=True, block_table=table, **words)

        self.same(call(cache), call(cache.half()))
        # vLLM's: the layer's scale for every sequence and head, which takes no memory.
        scale = torch.tensor(0.25)
        self.same(call(cache, k_descale=scale.expand(2, 2), v_descale=scale.expand(2, 2)), call(cache.half() * 0.25))
        heads = torch.tensor([0.5, 2.0])
        self.same(call(cache, k_descale=heads, v_descale=heads), call(cache.half() * heads.half()[:, None]))
        integers = narrow(draw(5, 2, 16, 2, 64), torch.int8)
        self.same(call(integers, k_descale=heads, v_descale=heads), call(integers.half() * heads.half()[:, None]))
        rows = draw(2, 3, 4, 64)
        k, v = narrow(draw(2, 48, 2, 64)), narrow(draw(2, 48, 2, 64))
        words = {"cache_seqlens": torch.tensor([40, 48]), "cache_leftpad": torch.tensor([6, 0]), "causal": True}
        self.same(FLASH.flash_attn_with_kvcache(rows, k, v, **words), FLASH.flash_attn_with_kvcache(rows, k.half(), v.half(), **words))

    def test_in_prompts_and_traces(self):
        q, k = draw(1, 20, 4, 64), narrow(draw(1, 40, 2, 64))
        exact = FLASH.flash_attn_func(q, k.half() * 2, k.half() * 0.5, causal=True, softcap=3.0)
        words = {"causal": True, "softcap": 3.0, "k_descale": torch.full((1,), 2.0), "v_descale": torch.full((1, 2), 0.5)}
        self.same(FLASH.flash_attn_func(q, k, k, **words), exact)
        compiled = torch.compile(lambda q, k: FLASH.flash_attn_func(q, k, k, **words), backend="aot_eager", fullgraph=True)
        self.same(compiled(q, k), exact)
        with torch.autocast("cpu", dtype=torch.float16):  # the cache is no input of autocast's
            self.same(FLASH.flash_attn_func(q.float(), k, k, **words), exact)

    def test_queries_of_8_bits(self):
        q, k, v = (narrow(draw(2, rows, heads, 128)) for rows, heads in ((37, 4), (50, 2), (50, 2)))
        scale = torch.tensor([[0.5, 1.25], [0.75, 1.5]])
        words = {"causal": True, "q_descale": scale, "k_descale": 0.75, "v_descale": scale[0]}
        out, lse, _ = FLASH.flash_attn_func(q, k, v, return_attn_probs=True, **words)
        self.assertEqual((out.dtype, out.shape), (torch.bfloat16, q.shape))
        wide = [each.double().transpose(1, 2) * factor for each, factor in zip((q, k, v), (scale.double().repeat_interleave(2, 1)[..., None, None], 0.75, scale[0].double()[:, None, None]))]
        wide[1:] = [each.repeat_interleave(2, 1) for each in wide[1:]]
        mask = torch.ones(37, 50, dtype=torch.bool).tril(13)
        exact = torch.nn.functional.scaled_dot_product_attention(*wide, attn_mask=mask).transpose(1, 2)
        noise = (out.double() - exact).square().sum()
        self.assertGreater(10 * torch.log10(exact.square().sum() / noise), 31)
        self.same(FLASH.flash_attn_func(q, k, v, **words), out)
        starts, lengths = torch.tensor([0, 37, 74], dtype=torch.int32), torch.tensor([0, 50, 100], dtype=torch.int32)
        packed = FLASH.flash_attn_varlen_func(q.flatten(0, 1), k.flatten(0, 1), v.flatten(0, 1), starts, lengths, 37, 50, **words)
        self.same(packed, out.flatten(0, 1))
        self.same(FLASH.flash_attn_with_kvcache(q, k, v, **words), out)
        traced = torch.compile(lambda *each: FLASH.flash_attn_func(*each, **words), backend="aot_eager", fullgraph=True)
        self.same(traced(q, k, v), out)

    def test_refused_by_name(self):
        q, k = draw(1, 3, 4, 64), narrow(draw(1, 40, 2, 64))
        unsupported = wavejit.Unsupported
        other = narrow(draw(1, 40, 2, 64), torch.float8_e4m3fnuz)
        self.refuses(r"^k_cache\.dtype = e4m3_fnuz: .* use a cache in e4m3, e5m2", FLASH.flash_attn_with_kvcache, q, other, other, error=unsupported)
        self.refuses("^v_cache: dtype torch.float16; accepted: torch.float8_e4m3fn, k_cache's", FLASH.flash_attn_with_kvcache, q, k, k.half())
        self.refuses("^k: dtype torch.float32; accepted: torch.float16, q's, torch.float8_e4m3fn", FLASH.flash_attn_func, q, k.float(), k.float())
        self.refuses("^q: dtype torch.float8_e5m2; accepted: .*torch.float8_e4m3fn", FLASH.flash_attn_func, narrow(q, torch.float8_e5m2), k, k)
        self.refuses("^k: dtype torch.float16; accepted: torch.float8_e4m3fn, q's", FLASH.flash_attn_func, narrow(q), k.half(), k.half())
        self.refuses("^q_descale: given; accepted: None", FLASH.flash_attn_func, q, k, k, q_descale=torch.ones(1))
        self.refuses("^v_descale: a builtins.list; accepted: a torch tensor", FLASH.flash_attn_func, q, k, k, v_descale=[1.0], error=TypeError)
        self.refuses("^k_descale: dtype torch.float64; accepted: torch.float32", FLASH.flash_attn_func, q, k, k, k_descale=torch.ones(1).double())
        self.refuses(r"^k_descale: given; accepted: None beside k of fp16: only caches of 8 bits have scales", FLASH.flash_attn_func, q, k.half(), k.half(), k_descale=0.5)
        self.refuses("^k_descale: it requires grad", FLASH.flash_attn_func, q, k, k, k_descale=torch.ones(1).requires_grad_(), error=unsupported)
        for words in ({}, {"return_attn_probs": True}, {"k_descale": 1.0}):
            self.refuses("^k: dtype torch.float8_e4m3fn, and q, k or v requires grad", FLASH.flash_attn_func, q.clone().requires_grad_(), k, k, **words, error=unsupported)
        with torch.no_grad():
            self.same(FLASH.flash_attn_func(q.clone().requires_grad_(), k, k), FLASH.flash_attn_func(q, k.half(), k.half()))


if __name__ == "__main__":
    unittest.main()
