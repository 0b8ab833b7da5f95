# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""wavejit.torch.cache_append and what flash_attn_with_kvcache appends, over CPU tensors, beside torch's own operations."""
import unittest

import torch

import wavejit
import wavejit.torch

E4M3 = torch.float8_e4m3fn


def draw(*shape):
    return torch.randn(*shape, dtype=torch.float32).half()


def turned(x, positions, cos, sin, interleaved):
    """Rotary embedding in float64: x [B, S, H, D], positions [B, S]."""
    pairs = cos.shape[1]
    c, s = (table.double()[positions][:, :, None, :] for table in (cos, sin))
    wide = x.double()
    some = wide[..., : 2 * pairs]
    a, b = (some[..., 0::2], some[..., 1::2]) if interleaved else (some[..., :pairs], some[..., pairs:])
    both = a * c - b * s, b * c + a * s
    some = torch.stack(both, -1).flatten(-2) if interleaved else torch.cat(both, -1)
    return torch.cat([some, wide[..., 2 * pairs :]], -1)


def tables(rows, pairs):
    angles = torch.arange(rows)[:, None] * 10000.0 ** (-torch.arange(pairs) / pairs)
    return angles.cos().float(), angles.sin().float()


class Case(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(29)

    def refuses(self, pattern, call, *tensors, **words):
        with self.assertRaisesRegex((wavejit.Error, TypeError), pattern):
            call(*tensors, **words)


class Append(Case):
    def test_into_pages_and_nowhere_else(self):
        k, v, cache = draw(5, 2, 64), draw(5, 2, 64), torch.full((2, 4, 16, 2, 64), 7.0).half()
        slots = torch.tensor([17, -1, 63, 0, 64])
        self.assertIsNone(wavejit.torch.cache_append(k, v, cache[0], cache[1], slots))
        exact = torch.full_like(cache, 7.0)
        for row, slot in enumerate(slots.tolist()):
            if 0 <= slot < 64:
                exact[0].view(64, 2, 64)[slot], exact[1].view(64, 2, 64)[slot] = k[row], v[row]
        self.assertTrue(torch.equal(cache, exact))

    def test_vectorised_pages(self):
        k, v = draw(3, 2, 64), draw(3, 2, 64)
        k_cache, v_cache = torch.zeros(4, 2, 8, 16, 8).half(), torch.zeros(4, 2, 64, 16).half()
        wavejit.torch.cache_append(k, v, k_cache, v_cache, torch.tensor([3, 40, -1]))
        self.assertTrue(torch.equal(k_cache.permute(0, 3, 1, 2, 4).reshape(64, 2, 64)[[3, 40]], k[:2]))
        self.assertTrue(torch.equal(v_cache.permute(0, 3, 1, 2).reshape(64, 2, 64)[[3, 40]], v[:2]))
        self.assertEqual(int((k_cache != 0).any(-1).sum()), 2 * 2 * 8)

    def test_turned_by_tables(self):
        k, q, cache = draw(6, 2, 64), draw(6, 4, 64), torch.zeros(4, 16, 2, 64).half()
        cos, sin = tables(40, 16)
        positions, slots = torch.tensor([3, 4, 39, 0, 7, 8]), torch.arange(6) + 11
        for style in ("halves", "interleaved"):
            out = wavejit.torch.cache_append(k, None, cache, None, slots, q=q, rotary=style, cos=cos, sin=sin, positions=positions)
            for found, given in ((out, q), (cache.view(64, 2, 64)[slots], k)):
                exact = turned(given[None], positions[None], cos, sin, style == "interleaved")[0]
                self.assertLess(float((found.double() - exact).abs().max()), 2e-3)

    def test_eight_bits(self):
        k, v, slots = draw(4, 2, 64), draw(4, 2, 64), torch.tensor([1, 2, 50, -1])
        cache = torch.zeros(2, 4, 16, 2, 64).to(E4M3)
        scale = torch.tensor([0.3, 0.01])
        wavejit.torch.cache_append(k, v, cache[0], cache[1], slots, k_scale=scale, v_scale=torch.tensor(0.5))
        for found, given, by in ((cache[0], k, scale[:, None]), (cache[1], v, 0.5)):
            exact = (given.float() / by).clamp(-448, 448).to(E4M3)
            self.assertTrue(torch.equal(found.view(torch.uint8).view(64, 2, 64)[slots[:3]], exact.view(torch.uint8)[:3]))
        # Found and stored, and attention reads them.
        integers, scales = torch.zeros(2, 4, 16, 2, 64, dtype=torch.int8), torch.zeros(2, 4, 16, 2)
        wavejit.torch.cache_append(k, v, integers[0], integers[1], slots, k_scale=scales[0], v_scale=scales[1])
        exact = k.float().abs().amax(-1) / 127
        self.assertTrue(torch.equal(scales[0].view(64, 2)[slots[:3]], exact[:3]))
        back = integers[0].view(64, 2, 64)[slots[:3]] * exact[:3, :, None]
        self.assertLess(float((back - k[:3]).abs().max()), float(exact.max()) * 0.51)
        self.assertEqual(int((scales != 0).sum()), 12)

    def test_rows_of_latent_attention(self):
        rope, latent = torch.randn(3, 1, 64).bfloat16(), torch.randn(3, 1, 512).bfloat16()
        cache = torch.zeros(2, 16, 1, 656, dtype=torch.uint8).view(E4M3)
        wavejit.torch.cache_append(rope, latent, cache, None, torch.tensor([5, 20, -1]))
        rows = cache.view(torch.uint8).view(32, 656)
        scales = latent.float().view(3, 4, 128).abs().amax(-1) / 448
        exact = (latent.float().view(3, 4, 128) / scales[..., None]).to(E4M3).view(torch.uint8).view(3, 512)
        for row, slot in ((0, 5), (1, 20)):
            self.assertTrue(torch.equal(rows[slot, :512], exact[row]))
            self.assertTrue(torch.equal(rows[slot, 512:528].contiguous().view(torch.float32), scales[row]))
            self.assertTrue(torch.equal(rows[slot, 528:].contiguous().view(torch.bfloat16), rope[row, 0]))
        self.assertEqual(int((rows != 0).any(-1).sum()), 2)

    def test_refused_by_name(self):
        k, cache, slots = draw(2, 1, 64), torch.zeros(4, 16, 1, 64).half(), torch.tensor([1, 2])
        call = wavejit.torch.cache_append
        self.refuses("rotary = 'neox'; accepted: None, 'halves', 'interleaved'", call, k, None, cache, None, slots, rotary="neox")
        self.refuses("v and v_cache", call, k, k, cache, None, slots)
        self.refuses("k_cache", call, k, None, cache.float(), None, slots)
        self.refuses(r"^k\.sizes\[1\] \(heads\) = 0", call, k[:, :0], None, cache[:, :, :0], None, slots, q=k, rotary="halves", rotary_base=1e4, positions=slots)  # q is not what memory held
        self.refuses("requires grad", call, k.requires_grad_(), None, cache, None, slots)

    def test_torch_compile_and_torch_librarys_own_checks(self):
        k, q, slots, positions = draw(3, 2, 64), draw(3, 4, 64), torch.tensor([5, -1, 9]), torch.tensor([1, 2, 3])
        words = {"q": q, "rotary": "halves", "rotary_base": 10000.0, "positions": positions}

        def step(k, cache):
            out = wavejit.torch.cache_append(2 * k, k, cache[0], cache[1], slots, **words)
            return out + 1, cache[0] * 1

        results = []
        for run in (step, torch.compile(step, backend="aot_eager", fullgraph=True)):
            cache = torch.zeros(2, 4, 16, 2, 64).half()
            results.append((*run(k, cache), cache))
        for one, other in zip(*results):
            self.assertTrue(torch.equal(one, other))
        self.assertGreater(float(results[0][2].abs().sum()), 0)
        told = torch.library.opcheck(torch.ops.wavejit.cache_append.default, (k, None, torch.zeros(4, 16, 2, 64).half(), None, slots), words,
                                     test_utils=("test_schema", "test_faketensor"))  # fmt: skip
        self.assertEqual(set(told.values()), {"SUCCESS"})


class KvCache(Case):
    """flash_attn_with_kvcache with new keys is the cache as torch would write it, and the call over that."""

    def same(self, interleaved, causal, rows, new=3, partial=32, paged=False, chosen=False, window=(-1, -1), leftpad=None):
        q, k, v = draw(2, rows, 4, 64), draw(2, new, 2, 64), draw(2, new, 2, 64)
        cos, sin = tables(64, partial // 2)
        lengths = torch.tensor([7, 40], dtype=torch.int32)
        table = torch.tensor([[4, 1, 7], [8, 0, 2]], dtype=torch.int32) if paged else None
        cache = draw(2, 9, 16, 2, 64) if paged else draw(2, 3, 48, 2, 64)[:, : 3 if chosen else 2].contiguous()
        index = torch.tensor([2, 0], dtype=torch.int32) if chosen else None
        expected = cache.clone()
        place = lengths.long()[:, None] + torch.arange(new)
        positions = place if leftpad is None else place - leftpad[:, None]
        begin = positions[:, :1]
        of_rows = begin + torch.arange(rows) if causal or window != (-1, -1) else begin.expand(2, rows)
        turned_k = turned(k, positions, cos, sin, interleaved)
        for b in range(2):
            for i in range(new):
                at = int(place[b, i])
                row = (int(table[b, at // 16]), at % 16) if paged else (int(index[b]) if chosen else b, at)
                expected[0][row], expected[1][row] = turned_k[b, i].half(), v[b, i]
        words = {"causal": causal, "window_size": window, "cache_leftpad": leftpad}
        out = wavejit.torch.flash_attn_with_kvcache(q, cache[0], cache[1], k, v, cos, sin, lengths, block_table=table, cache_batch_idx=index, rotary_interleaved=interleaved, **words)
        self.assertLess(float((cache - expected).abs().max()), 4e-3)
        exact_q = turned(q, of_rows, cos, sin, interleaved).half()
        own = cache if index is None else cache[:, index.long()]
        alone = wavejit.torch.flash_attn_with_kvcache(exact_q, own[0], own[1], cache_seqlens=lengths + new, block_table=table, **words)
        self.assertLess(float((out - alone).abs().max()), 8e-3)

    def test_new_keys_turned_with_q(self):
        for interleaved in (True, False):
            self.same(interleaved, True, 3)
            self.same(interleaved, False, 3)
        self.same(True, True, 2, partial=64)
        self.same(False, True, 3, paged=True)
        self.same(False, True, 1, new=1, chosen=True)
        self.same(True, False, 3, window=(5, 0))
        self.same(True, True, 3, leftpad=torch.tensor([2, 11], dtype=torch.int32))

    def test_without_rotation_and_beyond_the_end(self):
        q, k, cache = draw(2, 1, 4, 64), draw(2, 2, 2, 64), draw(2, 2, 16, 2, 64)
        before = cache.clone()
        out = wavejit.torch.flash_attn_with_kvcache(q, cache[0], cache[1], k, k, cache_seqlens=torch.tensor([3, 14], dtype=torch.int32), causal=True)
        for which in (0, 1):
            self.assertTrue(torch.equal(cache[which][0, 3:5], k[0]) and torch.equal(cache[which][1, 14:], k[1]))
            cache[which][0, 3:5], cache[which][1, 14:] = before[which][0, 3:5], before[which][1, 14:]
        self.assertTrue(torch.equal(cache, before))
        self.assertEqual(tuple(out.shape), (2, 1, 4, 64))

    def test_a_row_of_the_cache_for_each_sequence(self):
        q, cache, index = draw(2, 1, 4, 64), draw(2, 5, 48, 2, 64), torch.tensor([4, 1], dtype=torch.int32)
        lengths = torch.tensor([20, 48], dtype=torch.int32)
        call = wavejit.torch.flash_attn_with_kvcache
        alone = call(q, cache[0][index.long()], cache[1][index.long()], cache_seqlens=lengths)
        self.assertTrue(torch.equal(call(q, cache[0], cache[1], cache_seqlens=lengths, cache_batch_idx=index), alone))
        odd = cache[:, :, :45].contiguous()  # no page
        alone = call(q, odd[0][index.long()], odd[1][index.long()], cache_seqlens=20)
        self.assertTrue(torch.equal(call(q, odd[0], odd[1], cache_seqlens=20, cache_batch_idx=index), alone))

    def test_a_cache_of_8_bits(self):
        q, k, v = draw(2, 1, 4, 64), draw(2, 1, 2, 64), draw(2, 1, 2, 64)
        cache, lengths = draw(2, 2, 32, 2, 64).to(E4M3), torch.tensor([5, 31], dtype=torch.int32)
        out = wavejit.torch.flash_attn_with_kvcache(q, cache[0], cache[1], k, v, cache_seqlens=lengths, causal=True, k_descale=0.25, v_descale=torch.tensor([0.5, 2.0]))
        for b, at in enumerate((5, 31)):
            self.assertTrue(torch.equal(cache[0][b, at].view(torch.uint8), (k[b, 0].float() / 0.25).to(E4M3).view(torch.uint8)))
            self.assertTrue(torch.equal(cache[1][b, at].view(torch.uint8), (v[b, 0].float() / torch.tensor([[0.5], [2.0]])).to(E4M3).view(torch.uint8)))
        self.assertTrue(torch.isfinite(out).all())

    def test_refused_by_name(self):
        q, cache, k = draw(1, 1, 2, 64), draw(1, 16, 2, 64), draw(1, 1, 2, 64)
        call = wavejit.torch.flash_attn_with_kvcache
        cos, sin = tables(16, 16)
        self.refuses("v: given without k", call, q, cache, cache, v=k)
        self.refuses("rotary_cos: given without k", call, q, cache, cache, rotary_cos=cos)
        self.refuses("cache_seqlens: None beside k", call, q, cache, cache, k, k)
        self.refuses("rotary_cos, rotary_sin: one of them", call, q, cache, cache, k, k, cos, cache_seqlens=1)
        self.refuses("k, v: shapes", call, q, cache, cache, k, cache_seqlens=1)
        self.refuses("k: shape", call, q, cache, cache, draw(2, 1, 2, 64), draw(2, 1, 2, 64), cache_seqlens=1)
        self.refuses("cache_batch_idx: given beside block_table", call, q, cache, cache, cache_seqlens=1, cache_batch_idx=torch.zeros(1).int(), block_table=torch.zeros(1, 1).int())
        self.refuses("k_descale: given beside a cache of torch.float16", call, q, cache, cache, k, k, cache_seqlens=1, k_descale=2.0)
        self.refuses("requires grad", call, q, cache, cache, k.requires_grad_(), k, cache_seqlens=1)


if __name__ == "__main__":
    unittest.main()
