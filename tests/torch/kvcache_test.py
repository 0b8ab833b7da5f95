# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""flash_attn_with_kvcache: what is refused is refused before anything is written, and nothing is written outside a sequence's own keys."""
import unittest

import torch
from append_test import Case, draw, tables

import wavejit
import wavejit.torch
from wavejit.torch import _kvcache

CALL = wavejit.torch.flash_attn_with_kvcache


def int32(*values):
    return torch.tensor(values, dtype=torch.int32)


def exact(q, k, v, length):
    """One row over the first keys of a sequence, in float64. q [Hq, D], k and v [S, Hkv, D]."""
    group = q.shape[0] // k.shape[1]
    k, v = (each[:length].double().repeat_interleave(group, 1) for each in (k, v))
    weights = (torch.einsum("hd,shd->hs", q.double(), k) * q.shape[-1] ** -0.5).softmax(-1)
    return torch.einsum("hs,shd->hd", weights, v)


class Kept(Case):
    """A cache that has every bit of before, whatever was refused."""

    def keeps(self, pattern, q, cache, k, **words):
        before = cache.clone()
        with self.subTest(pattern=pattern):
            self.refuses(f"^{pattern}", CALL, q, cache[0], cache[1], k, k, **words)
            self.assertTrue(torch.equal(cache, before), "written, then refused")


class Lengths(Kept):
    def test_below_the_first_key(self):
        q, cache, k = draw(3, 2, 1, 64), draw(2, 3, 16, 1, 64), draw(3, 2, 1, 64)
        self.keeps(r"cache_seqlens\[1\] = -2; accepted: 0 … 14, as a sequence of the cache has room for 16 keys, and k has 2", q, cache, k, cache_seqlens=int32(3, -2, 4))
        self.keeps(r"cache_seqlens\[1\] = -1; accepted: 0 … 14", q, cache, k, cache_seqlens=int32(10, -1, 0))  # its keys would end at 0
        self.keeps(r"cache_seqlens = -1; accepted: 0 … 14", q, cache, k, cache_seqlens=-1)
        self.keeps(r"cache_seqlens\[2\] = -5", q, cache, k, cache_seqlens=int32(3, 3, -5), block_table=int32(0, 1, 2)[:, None])
        self.refuses(r"^cache_seqlens\[0\] = -1; accepted: 0 … 16, as a sequence of the cache has room for 16 keys$", CALL, q, cache[0], cache[1], cache_seqlens=int32(-1, 2, 2))

    def test_beyond_the_last_key(self):
        q, cache, k = draw(2, 4, 2, 64), draw(2, 2, 48, 2, 64), draw(2, 4, 2, 64)
        self.keeps(r"cache_seqlens\[0\] = 47; accepted: 0 … 44", q, cache, k, cache_seqlens=int32(47, 10), causal=True)
        self.keeps(r"cache_seqlens = 45; accepted: 0 … 44", q, cache, k, cache_seqlens=45)
        pages = cache.reshape(2, 6, 16, 2, 64)
        self.keeps(r"cache_seqlens\[1\] = 29; accepted: 0 … 28, as a sequence of the cache has room for 32 keys", q, pages, k, cache_seqlens=int32(5, 29), block_table=int32(0, 1, 2, 3).view(2, 2))
        self.keeps("k: 49 new keys; accepted: at most 48", q, cache, draw(2, 49, 2, 64), cache_seqlens=0)

    def test_of_a_device_lead_nowhere_else(self):
        """What no host has seen: each slot is the right one, or none of the cache's 3 · 16."""
        of = _kvcache.Places(int32(3, -2, 15), None, None, None, 16, 16)
        self.assertEqual(_kvcache.slots_of(of, 2).tolist(), [3, 4, -1, -1, 47, -1])
        self.assertEqual(_kvcache.slots_of(of._replace(lengths=int32(-1, -40, 1 << 30)), 2).tolist(), [-1] * 6)
        for rows in (int32(-1, 3, 1 << 27), int32(1 << 30, -(1 << 30), 9)):
            self.assertTrue(all(not 0 <= slot < 48 for slot in _kvcache.slots_of(of._replace(lengths=int32(0, 3, 14), rows=rows), 2).tolist()))
        table = int32(2, -1, 99, 0, 1, -7).view(3, 2)
        paged = of._replace(lengths=int32(15, 0, -16), table=table, room=32)
        self.assertEqual([slot if 0 <= slot < 48 else None for slot in _kvcache.slots_of(paged, 3).tolist()], [47, None, None, None, None, None, None, None, None])
        self.assertEqual([slot if 0 <= slot < 48 else None for slot in _kvcache.slots_of(paged._replace(lengths=int32(30, 31, 15)), 3).tolist()],
                         [None, None, None, 15, None, None, 31, None, None])

    def test_of_another_shape_or_beyond_int32(self):
        q, cache, k = draw(2, 1, 2, 64), draw(2, 2, 16, 2, 64), draw(2, 1, 2, 64)
        for lengths in (int32(3), int32(3, 4, 5)):
            self.keeps(rf"cache_seqlens: shape \({len(lengths)},\); accepted: \[2\], as q has 2 sequences", q, cache, k, cache_seqlens=lengths)
        self.keeps("cache_seqlens: torch.float32", q, cache, k, cache_seqlens=torch.tensor([3.0, 4.0]))
        self.keeps("cache_seqlens: 4294967299 is among it; accepted: -2147483648 … 2147483647", q, cache, k, cache_seqlens=torch.tensor([3 + (1 << 32), 4]))
        self.keeps(r"cache_seqlens: a tensor on meta; accepted: cpu, where q is", q, cache, k, cache_seqlens=int32(3, 4).to("meta"))


class Others(Kept):
    """Every other argument of a call whose keys are new."""

    def test_of_the_attention(self):
        q, cache, k = draw(2, 1, 2, 64), draw(2, 2, 16, 2, 64), draw(2, 1, 2, 64)
        out = torch.zeros_like(q)
        for pattern, words in (
            ("softcap = -1", {"softcap": -1.0}), (r"window_size = \(3,\)", {"window_size": (3,)}), (r"alibi_slopes", {"alibi_slopes": torch.ones(3)}),
            ("alibi_slopes", {"alibi_slopes": torch.ones(2, requires_grad=True)}), ("num_splits = -1", {"num_splits": -1}), ("softmax_scale = nan", {"softmax_scale": float("nan")}),
            (r"out: torch.float16, shape \(2, 1, 3, 64\)", {"out": draw(2, 1, 3, 64)}), ("out: torch.int32", {"out": out.int()}), ("q_descale: given", {"q_descale": 1.0}),
            ("k_descale: given beside a cache of torch.float16", {"k_descale": 1.0}), ("cache_leftpad: torch.float32", {"cache_leftpad": torch.zeros(2)}),
            (r"cache_leftpad: shape \(1,\)", {"cache_leftpad": int32(0)}), (r"cache_leftpad\[1\] = 9; accepted: 0 … 5, as cache_seqlens\[1\] = 4 and k has 1", {"cache_leftpad": int32(0, 9)}),
            (r"cache_leftpad\[0\] = -1", {"cache_leftpad": int32(-1, 0)}),
        ):  # fmt: skip
            self.keeps(pattern, q, cache, k, cache_seqlens=int32(3, 4), **words)
        self.keeps("q: it requires grad, and what is written to a cache has no gradient", q.clone().requires_grad_(), cache, k, cache_seqlens=3)
        self.keeps("out: it requires grad", q, cache, k, cache_seqlens=3, out=out.requires_grad_())
        self.keeps(r"k_cache.sizes\[2\] \(heads\) = 2; accepted: divisors of q.sizes\[2\] = 3", draw(2, 1, 3, 64), cache, k, cache_seqlens=3)  # heads that kv heads do not divide
        self.keeps(r"k: shape \(2, 1, 3, 64\); accepted: \[2, 1, 2, 64\], with the heads and dims of k_cache", q, cache, draw(2, 1, 3, 64), cache_seqlens=3)

    def test_rows_and_pages(self):
        q, cache, k = draw(2, 1, 2, 64), draw(2, 5, 16, 2, 64), draw(2, 1, 2, 64)
        for rows, pattern in ((int32(3, 9), r"cache_batch_idx\[1\] = 9; accepted: 0 … 4, the rows of the cache"), (int32(-1, 0), r"cache_batch_idx\[0\] = -1"),
                              (int32(1, 2, 3), r"cache_batch_idx: shape \(3,\); accepted: \[2\]")):
            self.keeps(pattern, q, cache, k, cache_seqlens=int32(3, 4), cache_batch_idx=rows)
            self.refuses(f"^{pattern}", CALL, q, cache[0], cache[1], cache_seqlens=int32(3, 4), cache_batch_idx=rows)
        for table, pattern in ((int32(0, 1, 2, 99), r"block_table\[1\]\[1\] = 99; accepted: 0 … 4, the pages of the cache"), (int32(0, 7, -1, 7), r"block_table\[1\]\[0\] = -1")):
            self.keeps(pattern, q, cache, k, cache_seqlens=int32(3, 16), block_table=table.view(2, 2))
        self.keeps(r"block_table: shape \(1, 2\); accepted: \[2, columns\]", q, cache, k, cache_seqlens=int32(3, 16), block_table=int32(0, 1)[None])
        self.keeps(r"k_cache: shape \(1, 16, 2, 64\); accepted: at least 2 rows", q, cache[:, :1], k, cache_seqlens=3)
        # Pages that no key stands in may be any.
        CALL(q, cache[0], cache[1], k, k, cache_seqlens=int32(3, 15), block_table=int32(0, -1, 2, 99).view(2, 2))

    def test_new_keys_have_a_row_or_a_page_of_their_own(self):
        q, cache, k = draw(3, 1, 2, 64), draw(2, 3, 16, 2, 64), draw(3, 2, 2, 64)
        self.keeps(r"cache_batch_idx\[1\] = 0, as cache_batch_idx\[0\] is; accepted beside k: another row of the cache", q, cache, k, cache_seqlens=int32(3, 5, 4), cache_batch_idx=int32(0, 0, 1))
        self.keeps(r"block_table\[1\]\[0\] = 0, as block_table\[0\]\[0\] is; accepted beside k: another page", q, cache, k, cache_seqlens=int32(3, 5, 4), block_table=int32(0, 0, 1)[:, None])
        self.keeps(r"block_table\[2\]\[0\] = 2, as block_table\[0\]\[1\] is", q, draw(2, 5, 16, 2, 64), k, cache_seqlens=int32(15, 5, 4), block_table=int32(0, 2, 1, 1, 2, 1).view(3, 2))
        for dimension, sizes in ((0, (1, 16, 2, 64)), (1, (3, 1, 2, 64)), (2, (3, 16, 1, 64))):
            whole, once = draw(3, 16, 2, 64), draw(*sizes)
            before, expanded = once.clone(), once.expand(3, 16, 2, 64)
            strides = rf"shape \(3, 16, 2, 64\), strides \({', '.join(map(str, expanded.stride()))}\); accepted: a stride of 0 in no dimension"
            for field, caches in (("k_cache", (expanded, whole)), ("v_cache", (whole, expanded))):
                self.refuses(f"^{field}: {strides}", CALL, q, *caches, k, k, cache_seqlens=3)
                self.assertTrue(torch.equal(once, before))
            CALL(q, expanded, expanded, cache_seqlens=3)  # reading it is no matter
        # Pages that all read and nobody writes to are shared.
        pages, table = draw(2, 4, 16, 2, 64), int32(0, 1, 0, 2, 0, 3).view(3, 2)
        CALL(q, pages[0], pages[1], k, k, cache_seqlens=int32(16, 20, 30), block_table=table)
        for b, (page, at) in enumerate(((1, 0), (2, 4), (3, 14))):
            self.assertTrue(torch.equal(pages[0, page, at : at + 2], k[b]))

    def test_scales_that_new_keys_are_divided_by(self):
        q, k = draw(2, 1, 2, 64), draw(2, 4, 2, 64)
        cache = draw(2, 2, 48, 2, 64).to(torch.float8_e4m3fn)
        before = cache.view(torch.uint8).clone()
        for field in ("k_descale", "v_descale"):
            for value in (0, 0.0, torch.nan, torch.inf):
                for given in (value, torch.tensor([float(value)]), torch.tensor([1.0, float(value)])):
                    self.refuses(f"^{field} = {value:g}; accepted beside k: finite numbers other than 0", CALL, q, cache[0], cache[1], k, k, cache_seqlens=3, **{field: given})
                    self.assertTrue(torch.equal(cache.view(torch.uint8), before))
        self.assertFalse(bool(CALL(q, cache[0], cache[1], cache_seqlens=3, v_descale=0.0).any()))  # keys that are read are multiplied by it

    def test_without_new_keys(self):
        q, cache = draw(2, 1, 2, 64), draw(2, 2, 16, 2, 64)
        for pattern, words in (
            (r"cache_leftpad\[0\] = 20; accepted: 0 … 10, as cache_seqlens\[0\] = 10$", {"cache_leftpad": int32(20, 0)}), (r"cache_leftpad: shape \(3,\); accepted: \[2\]", {"cache_leftpad": int32(0, 0, 0)}),
            (r"cache_seqlens: shape \(1,\)", {"cache_seqlens": int32(3)}), (r"cache_seqlens = 17; accepted: 0 … 16", {"cache_seqlens": 17}),
            (r"block_table\[1\]\[0\] = 2; accepted: 0 … 1", {"block_table": int32(0, 2)[:, None]}), (r"k_cache: shape \(2, 16, 2, 64\); accepted: at least 3 rows", {"q": draw(3, 1, 2, 64), "cache_seqlens": 3}),
        ):  # fmt: skip
            with self.subTest(pattern=pattern):
                given = {"q": q, "cache_seqlens": int32(10, 4), **words}
                self.refuses(f"^{pattern}", CALL, given.pop("q"), cache[0], cache[1], **given)

    def test_rotary_tables(self):
        q, cache, k = draw(2, 1, 2, 64), draw(2, 2, 48, 2, 64), draw(2, 1, 2, 64)
        cos, sin = tables(47, 16)
        turned = {"cache_seqlens": int32(3, 4), "rotary_cos": cos, "rotary_sin": sin}
        self.keeps("rotary_cos: 47 positions; accepted: at least 48, as many as a sequence of the cache has room for", q, cache, k, **turned)
        cos, sin = tables(48, 16)
        for pattern, words in (
            (r"rotary_sin: torch.float32, shape \(48, 8\); accepted: torch.float32, \(48, 16\), as rotary_cos", {"rotary_sin": sin[:, :8]}), (r"rotary_sin: torch.float32, shape \(47, 16\)", {"rotary_sin": sin[:47]}),
            ("rotary_sin: torch.float16", {"rotary_sin": sin.half()}), ("rotary_cos: torch.float64; accepted: torch.float32, torch.float16, torch.bfloat16", {"rotary_cos": cos.double()}),
            ("rotary_cos: torch.int32", {"rotary_cos": cos.int()}),
            (r"rotary_cos: shape \(48, 40\); accepted: \[positions, rotary dims / 2\], where rotary dims are a multiple of 16 up to 64", {"rotary_cos": torch.ones(48, 40), "rotary_sin": torch.ones(48, 40)}),
            (r"rotary_cos: shape \(48, 3\)", {"rotary_cos": cos[:, :3], "rotary_sin": sin[:, :3]}), (r"rotary_cos: shape \(48, 0\)", {"rotary_cos": cos[:, :0], "rotary_sin": sin[:, :0]}),
        ):  # fmt: skip
            self.keeps(pattern, q, cache, k, **{"cache_seqlens": 3, "rotary_cos": cos, "rotary_sin": sin, **words})
        self.keeps(r"rotary_cos: shape \(48,\)", q, cache, k, cache_seqlens=3, rotary_cos=cos[:, 0], rotary_sin=sin)
        # Three rows of q stand at one new key and behind it.
        self.keeps(r"rotary_cos: 48 positions; accepted: at least 50: 3 rows of q begin at position 47 of sequence 1", draw(2, 3, 2, 64), cache, k, causal=True,
                   cache_seqlens=int32(3, 47), rotary_cos=cos, rotary_sin=sin)
        self.keeps(r"cache_leftpad\[0\] = 4; accepted: 0 … 3, as cache_seqlens\[0\] = 3", q, cache, k, cache_seqlens=int32(3, 4), rotary_cos=cos, rotary_sin=sin, cache_leftpad=int32(4, 0))

    def test_sizes_of_nothing(self):
        k, none = draw(2, 1, 2, 64), draw(2, 1, 2, 0)
        v_cache = draw(2, 16, 2, 64)
        before = v_cache.clone()
        self.refuses(r"^k.sizes\[3\] = 0|^k\.sizes\[3\]", CALL, none, draw(2, 16, 2, 0), v_cache, none, k, cache_seqlens=3)  # the values were not written, silently
        self.assertTrue(torch.equal(v_cache, before))
        self.refuses("^k_cache: pages of 0 keys; accepted: 1 key, or multiples of 16", CALL, k, draw(3, 0, 2, 64), draw(3, 0, 2, 64), cache_seqlens=0, block_table=int32(0, 1)[:, None])
        self.refuses(r"^k_cache: shape \(0, 16, 2, 64\); accepted: 1 row or more", CALL, k, draw(0, 16, 2, 64), draw(0, 16, 2, 64), cache_batch_idx=int32(0, 0))
        self.refuses("^k: 1 new keys; accepted: at most 0", CALL, k, draw(2, 0, 2, 64), draw(2, 0, 2, 64), k, k, cache_seqlens=0)
        # No sequences, no rows of q, no new keys.
        cache = draw(2, 4, 16, 2, 64)
        self.assertEqual(CALL(k[:0], cache[0], cache[1], k[:0], k[:0], cache_seqlens=int32()).shape, (0, 1, 2, 64))
        self.assertEqual(CALL(k[:, :0], cache[0], cache[1], k, k, cache_seqlens=3).shape, (2, 0, 2, 64))
        self.assertTrue(torch.equal(cache[0, :2, 3], k[:, 0]))
        cos, sin = tables(16, 16)
        out = CALL(k, cache[0], cache[1], k[:, :0], k[:, :0], cos, sin, cache_seqlens=3)
        turned_q = wavejit.torch.cache_append(k, None, cache[0].clone(), None, torch.full((2,), -1), q=k, rotary="interleaved", cos=cos, sin=sin, positions=torch.full((2,), 3))
        self.assertTrue(torch.equal(out, CALL(turned_q, cache[0], cache[1], cache_seqlens=3)))

    def test_a_sealed_engine(self):
        engine = wavejit.torch.engine("cpu")
        q, cache, k = draw(1, 1, 2, 88), draw(2, 1, 16, 2, 88), draw(1, 1, 2, 88)
        wavejit.torch.cache_append(k, k, cache[0], cache[1], torch.tensor([2]))
        engine.seal()
        try:
            with self.assertRaises(wavejit.Sealed):
                before = cache.clone()
                CALL(q, cache[0], cache[1], k + 1, k, cache_seqlens=5, softcap=17.0)
            self.assertTrue(torch.equal(cache, before))
        finally:
            engine.unseal()

    def test_in_a_compiled_graph(self):
        def step(q, cache, k, lengths, **words):
            return CALL(2 * q, cache[0], cache[1], k, k, cache_seqlens=lengths, causal=True, **words) + 1

        cos, sin = tables(48, 16)
        q, k, start = draw(2, 2, 2, 64), draw(2, 2, 2, 64), draw(2, 2, 48, 2, 64)
        for words in ({}, {"rotary_cos": cos, "rotary_sin": sin, "cache_batch_idx": int32(1, 0)}):
            torch._dynamo.reset()
            compiled = torch.compile(step, backend="aot_eager", fullgraph=True)
            caches = [start.clone() for _ in range(3)]
            self.assertTrue(torch.equal(compiled(q, caches[0], k, int32(3, 46), **words), step(q, caches[1], k, int32(3, 46), **words)))
            self.assertTrue(torch.equal(caches[0], caches[1]))
            for lengths in (int32(3, 47), int32(3, -1)):
                with self.assertRaisesRegex(Exception, rf"cache_seqlens\[1\] = {lengths[1]}"):
                    compiled(q, caches[2], k, lengths, **words)
                self.assertTrue(torch.equal(caches[2], start))
        for name, given, pattern in (("alibi_slopes", torch.ones(5), r"^alibi_slopes.sizes\[0\] = 5; accepted: 2 \(q.sizes\[2\]\)"), ("num_splits", -1, "num_splits = -1"), ("softcap", -1.0, "softcap = -1")):
            torch._dynamo.reset()
            with self.assertRaisesRegex(Exception, f"^{pattern}"):
                torch.compile(step, backend="aot_eager", fullgraph=True)(q, caches[2], k, int32(3, 4), **{name: given})
            self.assertTrue(torch.equal(caches[2], start))

    def test_the_operator_that_checks(self):
        q, cache, lengths = draw(2, 1, 2, 64), draw(2, 3, 16, 2, 64), int32(3, 4)
        told = torch.library.opcheck(torch.ops.wavejit.kv_cache_slots.default, (q, cache[0], cache[1], lengths, None, None, None, 16, 16, 1, -1, 1, None, False),
                                     {"key_lengths": lengths + 1, "causal": True}, test_utils=("test_schema", "test_faketensor"))  # fmt: skip
        self.assertEqual(set(told.values()), {"SUCCESS"})


class Rows(Case):
    """Sequences that are some rows of a cache."""

    def test_rows_that_are_longer_than_a_page_can_be(self):
        q, lengths, index = draw(2, 1, 4, 64), int32(100, 8200), torch.tensor([3, 1])
        for keys in (16384, 8208):  # two pages, and three
            cache = draw(2, 4, keys, 1, 64)
            before = cache.clone()
            out = CALL(q, cache[0], cache[1], cache_seqlens=lengths, cache_batch_idx=index)
            for b in range(2):
                right = exact(q[b, 0], cache[0, index[b]], cache[1, index[b]], lengths[b])
                self.assertLess(float((out[b, 0].double() - right).abs().max()), 2e-3)
            self.assertTrue(torch.equal(out, CALL(q, cache[0, index], cache[1, index], cache_seqlens=lengths)))
            self.assertTrue(torch.equal(cache, before))
        lengths, cache, k = int32(100, 8191), draw(2, 4, 16384, 1, 64), draw(2, 2, 1, 64)
        before = cache.clone()
        out = CALL(q, cache[0], cache[1], k, k, cache_seqlens=lengths, cache_batch_idx=index)
        for b, at in enumerate(lengths.tolist()):
            for which in (0, 1):
                self.assertTrue(torch.equal(cache[which, index[b], at : at + 2], k[b]))
                before[which, index[b], at : at + 2] = k[b]
        self.assertTrue(torch.equal(cache, before))
        self.assertTrue(torch.equal(out, CALL(q, cache[0, index], cache[1, index], cache_seqlens=lengths + 2)))

    def test_more_than_once_and_apart(self):
        q, cache, lengths = draw(2, 1, 4, 64), draw(2, 5, 32, 2, 64), int32(20, 32)
        out = CALL(q, cache[0], cache[1], cache_seqlens=lengths, cache_batch_idx=int32(3, 3))
        self.assertTrue(torch.equal(out, CALL(q, *(each[[3, 3]] for each in cache), cache_seqlens=lengths)))
        wide = draw(2, 3, 8224, 1, 64)[:, :, :8208]  # rows are not side by side
        q, index = draw(1, 1, 1, 64), int32(2)
        self.assertTrue(torch.equal(CALL(q, wide[0], wide[1], cache_seqlens=70, cache_batch_idx=index), CALL(q, wide[0, 2:], wide[1, 2:], cache_seqlens=70)))

    def test_a_cache_of_more_sequences_than_q_has(self):
        q, cache, k, lengths = draw(2, 1, 4, 64), draw(2, 5, 24, 2, 64), draw(2, 1, 2, 64), int32(7, 23)
        alone = cache[:, :2].clone()
        self.assertTrue(torch.equal(CALL(q, cache[0], cache[1], cache_seqlens=lengths), CALL(q, alone[0], alone[1], cache_seqlens=lengths)))
        self.assertTrue(torch.equal(CALL(q, cache[0], cache[1]), CALL(q, alone[0], alone[1])))
        before = cache.clone()
        self.assertTrue(torch.equal(CALL(q, cache[0], cache[1], k, k, cache_seqlens=lengths), CALL(q, alone[0], alone[1], k, k, cache_seqlens=lengths)))
        self.assertTrue(torch.equal(cache[:, :2], alone) and torch.equal(cache[:, 2:], before[:, 2:]))
        for b, at in enumerate((7, 23)):
            self.assertTrue(torch.equal(cache[0, b, at], k[b, 0]))

    def test_new_keys_into_vectorised_pages(self):
        q, k, v, lengths, table = draw(2, 1, 4, 64), draw(2, 3, 2, 64), draw(2, 3, 2, 64), int32(15, 29), int32(4, 1, 0, 5).view(2, 2)
        rows = draw(2, 6, 16, 2, 64)
        keys, values = rows[0].reshape(6, 16, 2, 8, 8).permute(0, 2, 3, 1, 4).contiguous(), rows[1].permute(0, 2, 3, 1).contiguous()
        words = {"cache_seqlens": lengths, "block_table": table, "causal": True}
        self.assertTrue(torch.equal(CALL(q, keys, values, k, v, **words), CALL(q, rows[0], rows[1], k, v, **words)))
        self.assertTrue(torch.equal(keys.permute(0, 3, 1, 2, 4).reshape(6, 16, 2, 64), rows[0]))
        self.assertTrue(torch.equal(values.permute(0, 3, 1, 2), rows[1]))
        self.assertTrue(torch.equal(rows[0, 4, 15], k[0, 0]) and torch.equal(rows[0, 1, :2], k[0, 1:]) and torch.equal(rows[1, 5, 13:16], v[1]))


if __name__ == "__main__":
    unittest.main()
