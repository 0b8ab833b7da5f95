# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Latent attention from Python, beside numpy before absorption; with the argument lists of FlashMLA and of AITER, too."""
import unittest

import numpy
import reference

import wavejit
from wavejit import latent

ENGINE = wavejit.Engine("sim:gfx950")
RANDOM = numpy.random.default_rng(29)
SCALE = 192**-0.5
LATENT, ROPE, NOPE = 512, 64, 128


def halves(*shape):
    return RANDOM.standard_normal(shape).astype(numpy.float16)


class Layer:
    """Up-projections of a layer whose absorption is exact: a column of `up_k` has one power of two."""

    def __init__(self, heads):
        self.heads = heads
        self.up_k = numpy.zeros((heads, NOPE, LATENT))
        for head in range(heads):
            rows = RANDOM.integers(0, NOPE, LATENT)
            self.up_k[head, rows, numpy.arange(LATENT)] = RANDOM.choice([-1, -0.5, 0.5, 1], LATENT)
        self.up_v = RANDOM.choice([-1.0, 1.0], (heads, NOPE, LATENT)) / 16

    def queries(self, *shape):
        """Before absorption, [..., heads, 128] of few bits and [..., heads, 64]; and absorbed, [..., heads, 576]."""
        nope = numpy.round(4 * RANDOM.uniform(-4, 4, (*shape, self.heads, NOPE))) / 4
        rope = halves(*shape, self.heads, ROPE)
        absorbed = numpy.einsum("...hn,hnc->...hc", nope, self.up_k)
        return nope, rope, numpy.concatenate([absorbed, rope], axis=-1).astype(numpy.float16)

    def exact(self, nope, rope, cache, **words):
        """One sequence as the model defines it: keys and values projected up, per head. (out [Sq, H, 128], lse [H, Sq])."""
        compressed, key_rope = cache[:, :LATENT].astype(numpy.float64), cache[:, LATENT:].astype(numpy.float64)
        keys = numpy.concatenate([numpy.einsum("kc,hnc->khn", compressed, self.up_k), numpy.repeat(key_rope[:, None], self.heads, 1)], axis=2)
        values = numpy.einsum("kc,hnc->khn", compressed, self.up_v)
        return reference.attention(numpy.concatenate([nope, rope.astype(numpy.float64)], axis=2), keys, values, scale=SCALE, **words)

    def behind(self, out):
        """What a model does with O: [..., heads, 512] to [..., heads, 128]."""
        return numpy.einsum("...hc,hnc->...hn", out.astype(numpy.float64), self.up_v)


def pages_of(caches, size, nobodys=2):
    """Caches [keys][576] in shuffled pages, NaN in free slots; block table with garbage behind each row; page lists."""
    counts = [-(-len(cache) // size) for cache in caches]
    ids = RANDOM.permutation(sum(counts) + nobodys)
    pages = numpy.full((len(ids), size, 1, LATENT + ROPE), numpy.nan, numpy.float16)
    table = numpy.full((len(caches), max(counts) + 1), 0x7FFFFFFF, numpy.int32)
    listed, at = [], 0
    for row, (cache, count) in enumerate(zip(caches, counts)):
        own = ids[at : at + count]
        at += count
        table[row, :count] = own
        listed.append(own.astype(numpy.int32))
        for key, values in enumerate(cache):
            pages[own[key // size], key % size, 0] = values
    return pages, table, listed


class Case(unittest.TestCase):
    def close(self, found, exact, tolerance=4e-3):
        self.assertEqual(found.shape, exact.shape)
        self.assertLess(float((numpy.abs(found - exact) / (1 + numpy.abs(exact))).max()), tolerance)

    def same(self, found, other):
        self.assertTrue(numpy.array_equal(found, other))


class Absorbed(Case):
    def test_every_element_behind_the_projection_of_values(self):
        for heads in (8, 12, 20):
            with self.subTest(heads=heads):
                layer = Layer(heads)
                nope, rope, q = layer.queries(2, 3)
                cache = halves(2, 70, 1, LATENT + ROPE)
                out, lse = ENGINE.attention_latent(q, cache, scale=SCALE, causal=True, lse=True)
                for b in range(2):
                    exact, exact_lse = layer.exact(nope[b], rope[b], cache[b, :, 0], causal=True)
                    self.close(layer.behind(out.numpy()[b]), exact)
                    self.close(lse.numpy()[b], exact_lse, 1e-4)

    def test_sinks_and_soft_cap(self):
        layer = Layer(8)
        nope, rope, q = layer.queries(1, 2)
        cache = halves(1, 40, 1, LATENT + ROPE)
        sinks = RANDOM.standard_normal(8).astype(numpy.float32)
        out, lse = ENGINE.attention_latent(q, cache, scale=SCALE, sinks=sinks, softcap=20.0, lse=True)
        exact, exact_lse = layer.exact(nope[0], rope[0], cache[0, :, 0], sinks=sinks.astype(numpy.float64), softcap=20.0)
        self.close(layer.behind(out.numpy()[0]), exact)
        self.close(lse.numpy()[0], exact_lse, 1e-4)

    def test_the_rope_apart_is_the_same_bits(self):
        q, cache = halves(2, 2, 12, LATENT + ROPE), halves(2, 50, 1, LATENT + ROPE)
        whole = ENGINE.attention_latent(q, cache, scale=SCALE).numpy()
        cut = [numpy.ascontiguousarray(part) for each in (q, cache) for part in (each[..., :LATENT], each[..., LATENT:])]
        self.same(ENGINE.attention_latent(cut[0], cut[2], q_rope=cut[1], k_rope=cut[3], scale=SCALE).numpy(), whole)
        self.same(ENGINE.attention_latent(q, cut[2], k_rope=cut[3], scale=SCALE).numpy(), whole)
        self.same(ENGINE.attention_latent(cut[0], cache, q_rope=cut[1], scale=SCALE).numpy(), whole)

    def test_prompts_in_pieces_decode_and_splits_are_the_same_bits(self):
        q, cache = halves(1, 7, 16, LATENT + ROPE), halves(1, 1100, 1, LATENT + ROPE)
        whole = ENGINE.attention_latent(q, cache, scale=SCALE, causal=True).numpy()
        for first, end in ((0, 4), (4, 6), (6, 7)):
            piece = ENGINE.attention_latent(q[:, first:end].copy(), cache[:, : 1100 - 7 + end].copy(), scale=SCALE, causal=True, splits=end)
            self.same(piece.numpy(), whole[:, first:end])

    def test_one_launch_or_two_are_the_same_bits(self):
        q, cache = halves(1, 1, 16, LATENT + ROPE), halves(1, 1100, 1, LATENT + ROPE)
        one, two = (ENGINE.attention_latent_call(q, cache, scale=SCALE, splits=2, launches=launches) for launches in (1, 2))
        self.assertIn(" merged ", one.launch_with_report()["kernel_spec"])
        self.assertNotIn(" merged ", two.launch_with_report()["kernel_spec"])
        self.same(one.out.numpy(), two.out.numpy())

    def test_widths(self):
        for columns, value in ((512, 512), (320, 256)):
            q, cache = halves(1, 1, 4, columns), halves(1, 30, 1, columns)
            out = ENGINE.attention_latent(q, cache, scale=0.05).numpy()
            exact, _ = reference.attention(q[0].astype(numpy.float64), cache[0].astype(numpy.float64), cache[0, :, :, :value].astype(numpy.float64), scale=0.05)
            self.close(out[0].astype(numpy.float64), exact)


class OtherArgumentLists(Case):
    def setUp(self):
        self.layer = Layer(12)
        self.lengths = (100, 33)
        self.nope, self.rope, self.q = self.layer.queries(2, 1)
        self.caches = [halves(length, LATENT + ROPE) for length in self.lengths]
        self.exact = [self.layer.exact(self.nope[b], self.rope[b], self.caches[b]) for b in range(2)]

    def test_flash_mla(self):
        pages, table, _ = pages_of(self.caches, 64)
        out, lse = latent.flash_mla_with_kvcache(ENGINE, self.q, pages, table, list(self.lengths), 512, softmax_scale=SCALE)
        for b in range(2):
            self.close(self.layer.behind(out.numpy()[b]), self.exact[b][0])
            self.close(lse.numpy()[b], self.exact[b][1], 1e-4)

    # O has its share of the sink, the LSE has none: FlashMLA's rule, not the family's.
    def test_the_lse_of_flash_mla_is_without_the_sink(self):
        pages, table, _ = pages_of(self.caches, 64)
        sinks = numpy.full(12, 6, numpy.float32)
        words = {"softmax_scale": SCALE}
        out, lse = latent.flash_mla_with_kvcache(ENGINE, self.q, pages, table, list(self.lengths), 512, attn_sink=sinks, **words)
        _, without = latent.flash_mla_with_kvcache(ENGINE, self.q, pages, table, list(self.lengths), 512, **words)
        self.same(lse.numpy(), without.numpy())
        for b in range(2):
            exact, with_sink = self.layer.exact(self.nope[b], self.rope[b], self.caches[b], sinks=sinks.astype(numpy.float64))
            self.close(self.layer.behind(out.numpy()[b]), exact)
            self.assertGreater(float((with_sink - lse.numpy()[b]).min()), 1e-3)

    # kv_indptr counts pages, and the last page of a sequence may be filled in part.
    def test_aiter_counts_pages_and_not_tokens(self):
        for size in (1, 16, 64):
            with self.subTest(page_size=size):
                pages, _, listed = pages_of(self.caches, size)
                starts = numpy.cumsum([0] + [len(each) for each in listed]).astype(numpy.int32)
                lasts = numpy.array([(length - 1) % size + 1 for length in self.lengths], numpy.int32)
                out = numpy.zeros((2, 12, LATENT), numpy.float16)
                nothing, lse = latent.mla_decode_fwd(ENGINE, self.q[:, 0].copy(), pages, out, numpy.array([0, 1, 2], numpy.int32), starts, numpy.concatenate(listed),
                                                     lasts, 1, page_size=size, sm_scale=SCALE, num_kv_splits=16, return_lse=True, max_key_length=100)
                self.assertIsNone(nothing)
                for b in range(2):
                    self.close(self.layer.behind(out[b]), self.exact[b][0][0])
                    self.close(numpy.asarray(lse[b]), self.exact[b][1][:, 0], 1e-4)

    def test_what_they_take_and_this_does_not_is_refused_by_name(self):
        pages, table, _ = pages_of(self.caches, 64)
        call = (ENGINE, self.q, pages, table, list(self.lengths), 512)
        with self.assertRaisesRegex(wavejit.InvalidArgument, "softmax_scale = None"):
            latent.flash_mla_with_kvcache(*call)
        # V is the first 512 columns of K, and no other part of it.
        with self.assertRaisesRegex(wavejit.Unsupported, r"576 with out.sizes\[3\] = 256; accepted: 576 with out.sizes\[3\] = 512"):
            latent.flash_mla_with_kvcache(*call[:5], 256, softmax_scale=SCALE)
        with self.assertRaisesRegex(wavejit.InvalidArgument, "is_fp8_kvcache: k_cache says no type of 8 bits"):
            latent.flash_mla_with_kvcache(*call, softmax_scale=SCALE, is_fp8_kvcache=True)
        rows = numpy.zeros((2, 64, 1, 655), numpy.uint8)
        with self.assertRaisesRegex(wavejit.Unsupported, "rows of 655 bytes; accepted: 656 or 584 bytes"):
            latent.flash_mla_with_kvcache(ENGINE, self.q, rows, *call[3:], softmax_scale=SCALE, is_fp8_kvcache=True, cache_dtype="e4m3")
        with self.assertRaisesRegex(wavejit.Unsupported, "q_scale"):
            latent.mla_decode_fwd(ENGINE, self.q[:, 0], pages, None, [0, 1, 2], [0, 2, 3], [0, 1, 2], [36, 33], 1, page_size=64, sm_scale=SCALE, q_scale=1.0)
        with self.assertRaisesRegex(wavejit.InvalidArgument, "nhead_kv = 2"):
            latent.mla_decode_fwd(ENGINE, self.q[:, 0], pages, None, [0, 1, 2], [0, 2, 3], [0, 1, 2], [36, 33], 1, page_size=64, sm_scale=SCALE, nhead_kv=2)


    def test_pages_that_the_buffer_does_not_have(self):
        pages, _, listed = pages_of(self.caches, 64)
        starts, lasts = numpy.cumsum([0] + [len(each) for each in listed]).astype(numpy.int32), [(length - 1) % 64 + 1 for length in self.lengths]
        given = {"kv_buffer": pages, "kv_indptr": starts, "kv_last_page_lens": lasts, "page_size": 64}
        for changed, pattern in (
            ({"page_size": 1}, "page_size = 1; accepted: 64, the keys of a page of kv_buffer"), ({"kv_buffer": pages.reshape(-1, 1, 1, 576)}, "page_size = 64; accepted: 1"),
            ({"kv_last_page_lens": [0, lasts[1]]}, r"kv_last_page_lens\[0\] = 0; accepted: 1 … 64"), ({"kv_last_page_lens": [lasts[0], -3]}, r"kv_last_page_lens\[1\] = -3"),
            ({"kv_last_page_lens": [*lasts, 5]}, "kv_last_page_lens: 3 numbers; accepted: 2"), ({"kv_last_page_lens": None}, "kv_last_page_lens: None beside page_size = 64"),
            ({"key_lengths": list(self.lengths), "max_key_length": 128}, "kv_last_page_lens: given beside key_lengths; accepted: one of them"), ({"cp_rank": 2}, "cp_rank = 2; accepted: 0"),
        ):  # fmt: skip
            out = numpy.zeros((2, 12, LATENT), numpy.float16)
            with self.subTest(pattern=pattern), self.assertRaisesRegex(wavejit.InvalidArgument, f"^{pattern}"):
                latent.mla_decode_fwd(ENGINE, self.q[:, 0].copy(), o=out, qo_indptr=[0, 1, 2], kv_indices=numpy.concatenate(listed), max_seqlen_q=1, sm_scale=SCALE, **{**given, **changed})
            self.assertFalse(out.any())

    def test_refusals_have_the_words_of_their_callers(self):
        pages, table, listed = pages_of(self.caches, 64)
        entries, starts = numpy.concatenate(listed).astype(numpy.int32), numpy.cumsum([0] + [len(each) for each in listed]).astype(numpy.int32)
        lasts = [(length - 1) % 64 + 1 for length in self.lengths]
        aiter = {"q": self.q[:, 0].copy(), "kv_buffer": pages, "qo_indptr": [0, 1, 2], "kv_indptr": starts, "kv_indices": entries, "kv_last_page_lens": lasts, "max_seqlen_q": 1,
                 "page_size": 64, "sm_scale": SCALE}
        beyond = numpy.where(numpy.arange(len(entries)) == 1, 99, entries)
        for changed, pattern in (
            ({"kv_indices": beyond}, r"kv_indices\[1\] = 99; accepted: 0 … "), ({"kv_indptr": [0, starts[1], starts[2] + 1]}, rf"kv_indptr\[2\] = {starts[2] + 1}; accepted: {starts[1]} … {starts[2]}, the entries"),
            ({"qo_indptr": [0, 2, 2]}, r"qo_indptr\[1\] = 2; accepted: 0 … 1 \(after 0, max_seqlen_q = 1\)"), ({"max_seqlen_q": 3}, "max_seqlen_q = 3; accepted: 1 to 2"),
            ({"num_kv_splits": -1}, "num_kv_splits = -1"), ({"logit_cap": -1.0}, "logit_cap = -1"), ({"sm_scale": float("nan")}, "sm_scale = nan"), ({"kv_indptr": [-1, *starts[1:]]}, r"kv_indptr\[0\] = -1"),
            ({"kv_last_page_lens": None, "key_lengths": [-1, 3], "max_key_length": 128}, r"key_lengths\[0\] = -1"),  # the caller's own word
        ):  # fmt: skip
            out = numpy.zeros((2, 12, LATENT), numpy.float16)
            with self.subTest(pattern=pattern), self.assertRaisesRegex(wavejit.InvalidArgument, f"^{pattern}"):
                latent.mla_decode_fwd(ENGINE, o=out, **{**aiter, **changed})
            self.assertFalse(out.any())
        mla = {"q": self.q, "k_cache": pages, "block_table": table, "cache_seqlens": list(self.lengths), "head_dim_v": 512, "softmax_scale": SCALE}
        for changed, pattern in (
            ({"cache_seqlens": [self.lengths[0], -1]}, r"cache_seqlens\[1\] = -1"), ({"softmax_scale": float("inf")}, "softmax_scale = inf"),
            ({"attn_sink": numpy.zeros(5, numpy.float32)}, "attn_sink"), ({"k_cache": pages.astype(numpy.float64)}, "k_cache: dtype float64"),
        ):  # fmt: skip
            with self.subTest(pattern=pattern), self.assertRaisesRegex(wavejit.InvalidArgument, f"^{pattern}"):
                latent.flash_mla_with_kvcache(ENGINE, **{**mla, **changed})
        with self.assertRaisesRegex(wavejit.InvalidArgument, "^sm_scale = nan"):
            latent.flash_mla_sparse_fwd(ENGINE, self.q[:, 0], self.caches[0][:, None], numpy.zeros((2, 1, 4), numpy.int32), float("nan"))

    def test_a_value_dim_beside_out(self):
        with self.assertRaisesRegex(wavejit.InvalidArgument, r"^value_dim = 256 beside out, whose shape is \(2, 1, 12, 512\)"):
            ENGINE.attention_latent(self.q, halves(2, 20, 1, 576), numpy.zeros((2, 1, 12, LATENT), numpy.float16), scale=SCALE, value_dim=256)


def bf16_bits(values):
    """fp32 → the nearest bf16, of two the even one."""
    bits = values.view(numpy.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(numpy.uint16)


class EightBits(Case):
    """What a byte says, times the scale, in the queries' type: the bits of the call on that."""

    def setUp(self):
        random = numpy.random.default_rng(8)
        self.bytes = random.integers(0x20, 0x48, (3, 64, 1, LATENT + ROPE), numpy.uint8) | (random.integers(0, 2, (3, 64, 1, LATENT + ROPE), numpy.uint8) << 7)
        self.wide = wavejit._dtypes.widened(self.bytes, wavejit._dtypes.E4M3)
        self.q = halves(3, 1, 12, LATENT + ROPE)

    def test_have_the_bits_of_the_widened_cache(self):
        scales = numpy.array([0.5, 2, 1], numpy.float32)
        out, lse = ENGINE.attention_latent(self.q, self.bytes, scale=SCALE, lse=True, cache_dtype="e4m3", k_scale=scales[:, None])
        expected, expected_lse = ENGINE.attention_latent(self.q, (self.wide * scales[:, None, None, None]).astype(numpy.float16), scale=SCALE, lse=True)
        self.same(out.numpy(), expected.numpy())
        self.same(lse.numpy(), expected_lse.numpy())

    def test_come_in_pages_with_the_words_of_flash_mla(self):
        lengths = ([[2, 0], [1, 1], [0, 2]], [100, 64, 1], 512)
        given = {"softmax_scale": SCALE}
        out, lse = latent.flash_mla_with_kvcache(ENGINE, self.q, self.bytes, *lengths, is_fp8_kvcache=True, cache_dtype="e4m3", k_scale=4.0, **given)
        expected, expected_lse = latent.flash_mla_with_kvcache(ENGINE, self.q, (self.wide * 4).astype(numpy.float16), *lengths, **given)
        self.same(out.numpy(), expected.numpy())
        self.same(lse.numpy(), expected_lse.numpy())

    def test_rows_of_656_bytes_are_those_of_flash_mla(self):
        """512 in e4m3, four scales in fp32, 64 in bf16: the bits of the call on round(byte · scale) in bf16."""
        random = numpy.random.default_rng(9)
        scales = random.uniform(0.01, 2, (3, 64, 1, 4)).astype(numpy.float32)
        rope = bf16_bits(random.standard_normal((3, 64, 1, ROPE)).astype(numpy.float32))
        rows = numpy.concatenate([self.bytes[..., :LATENT], scales.view(numpy.uint8), rope.view(numpy.uint8)], axis=-1)
        self.assertEqual(rows.shape, (3, 64, 1, 656))
        keys = bf16_bits(self.wide[..., :LATENT] * numpy.repeat(scales, 128, axis=-1))
        wide = ENGINE.array(numpy.concatenate([keys, rope], axis=-1), "bf16")
        q = ENGINE.array(bf16_bits(self.q.astype(numpy.float32)), "bf16")
        lengths, given = ([[2, 0], [1, 1], [0, 2]], [100, 64, 1], 512), {"softmax_scale": SCALE}
        lists = {"indices": random.integers(-1, 192, (3, 1, 70), numpy.int32)}
        for words in ({}, lists):
            expected = latent.flash_mla_with_kvcache(ENGINE, q, wide, *lengths, **words, **given)
            for cache, named in ((rows, {"cache_dtype": "e4m3"}), (ENGINE.array(rows, "e4m3"), {})):
                for one, other in zip(latent.flash_mla_with_kvcache(ENGINE, q, cache, *lengths, is_fp8_kvcache=True, **words, **named, **given), expected):
                    self.same(one.numpy("float32"), other.numpy("float32"))
        with self.assertRaisesRegex(wavejit.Unsupported, "q.dtype .* whose rope is in bf16"):
            latent.flash_mla_with_kvcache(ENGINE, self.q, rows, *lengths, is_fp8_kvcache=True, cache_dtype="e4m3", **given)

    def test_rows_of_584_bytes_are_those_of_flash_mla(self):
        """A page's rows, 448 in e4m3 and 64 in bf16, and behind them 8 bytes each, E8M0 for each 64: the bits of the call on that in bf16."""
        random = numpy.random.default_rng(10)
        exponents = random.integers(122, 131, (3, 64, 1, 8), numpy.uint8)
        rope = bf16_bits(random.standard_normal((3, 64, 1, ROPE)).astype(numpy.float32))
        rows = numpy.concatenate([self.bytes[..., :448], rope.view(numpy.uint8)], axis=-1)
        pages = numpy.concatenate([rows.reshape(3, -1), exponents.reshape(3, -1)], axis=-1).reshape(3, 64, 1, 584)
        keys = bf16_bits(self.wide[..., :448] * numpy.repeat(numpy.exp2(exponents[..., :7].astype(numpy.float32) - 127), 64, axis=-1))
        wide = ENGINE.array(numpy.concatenate([keys, rope], axis=-1), "bf16")
        q = ENGINE.array(bf16_bits(self.q[..., :512].astype(numpy.float32)), "bf16")
        lengths, given = ([[2, 0], [1, 1], [0, 2]], [100, 64, 1], 512), {"softmax_scale": SCALE}
        lists = {"indices": random.integers(-1, 192, (3, 1, 70), numpy.int32)}
        for words in ({}, lists):
            expected = latent.flash_mla_with_kvcache(ENGINE, q, wide, *lengths, **words, **given)
            for cache, named in ((pages, {"cache_dtype": "e4m3"}), (ENGINE.array(pages, "e4m3"), {})):
                for one, other in zip(latent.flash_mla_with_kvcache(ENGINE, q, cache, *lengths, is_fp8_kvcache=True, **words, **named, **given), expected):
                    self.same(one.numpy("float32"), other.numpy("float32"))
        told = {"cache_dtype": "e4m3", "scale": SCALE, "block_table": lengths[0], "key_lengths": lengths[1]}
        self.same(ENGINE.attention_latent(q, pages, row_scales="behind_rows", **told).numpy("float32"),
                  latent.flash_mla_with_kvcache(ENGINE, q, wide, *lengths, **given)[0].numpy("float32"))
        for pattern, row_scales in (("row_scales = 0; accepted: 2 .* rows that end in their own exponents", None), ("row_scales = 1; accepted: 2", "in_rows"),
                                    ("row_scales = 'at_ends'; accepted: None, 'in_rows', 'behind_rows'", "at_ends")):
            with self.subTest(pattern), self.assertRaisesRegex(wavejit.InvalidArgument, pattern):
                ENGINE.attention_latent(q, pages, row_scales=row_scales, **told)

    def test_refusals(self):
        for pattern, words in (("k_scale.sizes", {"cache_dtype": "e4m3", "k_scale": [1.0, 2.0]}), ("k.dtype = e4m3_fnuz|e4m3_fnuz", {"cache_dtype": "e4m3_fnuz"}),
                               ("^k_scale: given; accepted: None beside k of fp16", {"k_scale": 1.0, "wide": True})):
            with self.subTest(pattern), self.assertRaisesRegex(wavejit.Error, pattern):
                keys = self.wide.astype(numpy.float16) if words.pop("wide", False) else self.bytes
                ENGINE.attention_latent(self.q, keys, scale=SCALE, **words)

    def test_a_type_of_16_bits_may_be_said_of_the_cache(self):
        q, cache = ENGINE.empty((1, 1, 16, 576), "bf16"), ENGINE.empty((1, 40, 1, 576), "bf16")
        self.assertIn("bf16", ENGINE.attention_latent_call(q, cache, scale=SCALE, cache_dtype="bf16").describe())
        with self.assertRaisesRegex(wavejit.InvalidArgument, "cache_dtype: dtype fp32; accepted: bf16, e4m3"):
            ENGINE.attention_latent_call(q, cache, scale=SCALE, cache_dtype="fp32")


class Refusals(Case):
    def test_refusals(self):
        q, cache = halves(1, 1, 8, LATENT + ROPE), halves(1, 30, 1, LATENT + ROPE)
        with self.assertRaises(TypeError):
            ENGINE.attention_latent(q, cache)  # the scale has no default
        for pattern, given, words in (
            ("scale = 0", (q, cache[:, :, :, :]), {"scale": None}),
            ("q: 448 columns", (halves(1, 1, 8, 448), cache), {}),
            ("k.sizes\\[2\\] \\(heads\\) = 2", (q, halves(1, 30, 2, LATENT + ROPE)), {}),
            ("k.sizes\\[3\\]", (q, halves(1, 30, 1, 512)), {}),
        ):
            with self.subTest(pattern=pattern), self.assertRaisesRegex(wavejit.InvalidArgument, pattern):
                ENGINE.attention_latent(*given, **{"scale": SCALE, **words})


if __name__ == "__main__":
    unittest.main()
