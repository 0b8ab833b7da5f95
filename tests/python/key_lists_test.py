# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lists of keys in latent attention against float64, as FlashMLA's users pass them, and what is refused of them."""
import unittest

import numpy
from attention_test import ENGINE, Case

import wavejit
from wavejit import latent

QUERIES, HEADS, PAGE, PAGES, TOP = 2, 5, 32, 6, 40
SCALE = 192**-0.5
random = numpy.random.default_rng(29)


def drawn(*shape):
    return random.standard_normal(shape).astype(numpy.float16)


def exact(q, rows):
    """q [H, D] over the rows that its list names, in float64: O and LSE of each head."""
    if not len(rows):
        return numpy.zeros((HEADS, 512)), numpy.full(HEADS, -numpy.inf)
    scores = q.astype(numpy.float64) @ rows.astype(numpy.float64).T * SCALE
    most = scores.max(axis=1, keepdims=True)
    weights = numpy.exp(scores - most)
    total = weights.sum(axis=1, keepdims=True)
    return weights / total @ rows[:, :512].astype(numpy.float64), (most + numpy.log(total))[:, 0]


class KeyLists(Case):
    def setUp(self):
        self.q, self.cache = drawn(2, QUERIES, HEADS, 576), drawn(PAGES, PAGE, 1, 576)
        self.slots = self.cache.reshape(PAGES * PAGE, 576)
        # Holes, repeats, and entries outside, anywhere.
        self.indices = random.integers(-20, PAGES * PAGE + 20, (2, QUERIES, TOP)).astype(numpy.int32)
        self.indices[0, 0, 3:6] = 7
        self.indices[1, 1] = -1

    def compare(self, out, lse, rows_of):
        for batch in range(2):
            for query in range(QUERIES):
                o, of_rows = exact(self.q[batch, query], rows_of(batch, query))
                self.close(out.numpy()[batch, query], o)
                self.assertTrue(numpy.allclose(lse.numpy()[batch, :, query], of_rows, atol=1e-3))

    def named(self, batch, query, count=TOP):
        entries = self.indices[batch, query, :count]
        return self.slots[entries[(entries >= 0) & (entries < PAGES * PAGE)]]

    def test_slots_as_flash_mla_has_them(self):
        out, lse = latent.flash_mla_with_kvcache(ENGINE, self.q, self.cache, None, None, 512, softmax_scale=SCALE, indices=self.indices)
        self.compare(out, lse, self.named)
        lengths = numpy.array([13, 40], numpy.int32)
        out, lse = latent.flash_mla_with_kvcache(ENGINE, self.q, self.cache, None, None, 512, softmax_scale=SCALE, indices=self.indices, topk_length=lengths)
        self.compare(out, lse, lambda batch, query: self.named(batch, query, lengths[batch]))

    def test_sparse_prefill_as_flash_mla_has_it(self):
        out, maxima, lse = latent.flash_mla_sparse_fwd(ENGINE, self.q[0], self.slots[:, None], self.indices[0][:, None], SCALE)
        self.assertIsNone(maxima)
        for query in range(QUERIES):
            o, of_rows = exact(self.q[0, query], self.named(0, query))
            self.close(out.numpy()[query], o)
            self.assertTrue(numpy.allclose(lse.numpy()[query], of_rows, atol=1e-3))

    def test_numbers_of_keys_through_a_block_table(self):
        table, lengths = numpy.array([[4, 0, 5], [1, 3, 2]], numpy.int32), numpy.array([90, 33], numpy.int32)
        out, lse = ENGINE.attention_latent(self.q, self.cache, scale=SCALE, lse=True, indices=self.indices, block_table=table, key_lengths=lengths)

        def rows_of(batch, query):
            entries = self.indices[batch, query]
            keys = entries[(entries >= 0) & (entries < lengths[batch])]
            return self.slots[table[batch][keys // PAGE] * PAGE + keys % PAGE]

        self.compare(out, lse, rows_of)
        # One row for each query, the rows wider than the lists.
        rows = numpy.full((2 * QUERIES, TOP + 9), 1, numpy.int32)
        rows[:, :TOP] = self.indices.reshape(-1, TOP)
        again = ENGINE.attention_latent(self.q, self.cache, scale=SCALE, indices=rows[:, :TOP], block_table=table, key_lengths=lengths)
        self.assertTrue(numpy.array_equal(again.numpy(), out.numpy()))

    def test_an_indexers_lists(self):
        keys = drawn(1, 100, 1, 576)
        indices, counts = ENGINE.sparse_indexer(drawn(1, 2, 4, 128), drawn(1, 100, 128), random.standard_normal((1, 2, 4)).astype(numpy.float32), 30,
                                                causal=True, counts=True)
        out, lse = ENGINE.attention_latent(self.q[:1], keys, scale=SCALE, lse=True, causal=True, indices=indices, counts=counts)
        for query in range(2):
            o, of_rows = exact(self.q[0, query], keys[0, indices.numpy()[0, query], 0])
            self.close(out.numpy()[0, query], o)
            self.assertTrue(numpy.allclose(lse.numpy()[0, :, query], of_rows, atol=1e-3))

    def test_what_is_refused(self):
        def refused(pattern, **words):
            given = {"scale": SCALE, "indices": self.indices, "slots": True, **words}
            with self.assertRaisesRegex(wavejit.InvalidArgument, pattern):
                ENGINE.attention_latent(self.q, self.cache, **given)

        refused("indices: dtype int64; accepted: int32", indices=self.indices.astype(numpy.int64))
        refused(r"indices: shape \(2, 40\)", indices=self.indices[0])
        refused(r"counts: shape \(3,\)", counts=numpy.array([1, 2, 3], numpy.int32))
        refused("^causal: given; accepted: no mask beside slots = True", causal=True)
        refused("counts without indices", indices=None, slots=False, counts=numpy.array([1, 2, 3, 4], numpy.int32))
        refused(r"^counts\[3\] = 41; accepted: 0 to 40", counts=numpy.array([1, 2, 3, 41], numpy.int32), check_lengths=True)
        with self.assertRaisesRegex(wavejit.InvalidArgument, "topk_length without indices"):
            latent.flash_mla_with_kvcache(ENGINE, self.q, self.cache, [[0], [1]], [3, 4], 512, softmax_scale=SCALE, topk_length=[1, 2])
        for pattern, words in (("extra_k_cache and extra_indices_in_kvcache: one of the two", {"extra_k_cache": self.cache}),
                               ("extra_topk_length without extra_indices_in_kvcache", {"extra_topk_length": [3, 4]}),
                               ("extra_k_cache, extra_indices_in_kvcache or extra_topk_length without indices", {"indices": None, "extra_k_cache": self.cache})):
            with self.assertRaisesRegex(wavejit.InvalidArgument, pattern):
                latent.flash_mla_with_kvcache(ENGINE, self.q, self.cache, None, None, 512, softmax_scale=SCALE, **{"indices": self.indices, **words})
        second = {"second_k": self.cache, "second_indices": self.indices}
        refused("second_k without second_indices", second_k=self.cache)
        refused("second_indices without second_k", second_indices=self.indices)
        refused("^second_indices: given; accepted: None, or slots", slots=False, **second)
        refused(r"second_indices: shape \(2, 40\)", **{**second, "second_indices": self.indices[0]})
        refused(r"second_k.sizes\[1\] = 16", **{**second, "second_k": self.cache[:, :16]})
        refused(r"second_counts\[3\] = 41; accepted: 0 to 40", second_counts=numpy.array([1, 2, 3, 41], numpy.int32), check_lengths=True, **second)

    def test_a_second_list_over_a_second_cache(self):
        others = drawn(4, PAGE, 1, 576)
        of_others = random.integers(-9, 4 * PAGE + 9, (2, QUERIES, 17)).astype(numpy.int32)

        def rows_of(batch, query, first=TOP, second=17):
            entries = of_others[batch, query, :second]
            return numpy.concatenate([self.named(batch, query, first), others.reshape(4 * PAGE, 576)[entries[(entries >= 0) & (entries < 4 * PAGE)]]])

        out, lse = latent.flash_mla_with_kvcache(ENGINE, self.q, self.cache, None, None, 512, softmax_scale=SCALE, indices=self.indices, extra_k_cache=others,
                                                 extra_indices_in_kvcache=of_others)
        self.compare(out, lse, rows_of)
        first, second = numpy.array([13, 0], numpy.int32), numpy.array([0, 11], numpy.int32)
        out, lse = latent.flash_mla_with_kvcache(ENGINE, self.q, self.cache, None, None, 512, softmax_scale=SCALE, indices=self.indices, topk_length=first,
                                                 extra_k_cache=others, extra_indices_in_kvcache=of_others, extra_topk_length=second)
        self.compare(out, lse, lambda batch, query: rows_of(batch, query, first[batch], second[batch]))


def exact_forward(q, keys, values):
    """One head's query [D] over the keys that its list names, in float64: O and LSE."""
    if not len(keys):
        return numpy.zeros(values.shape[1]), -numpy.inf
    scores = keys.astype(numpy.float64) @ q.astype(numpy.float64) / 8
    most = scores.max()
    weights = numpy.exp(scores - most)
    return weights / weights.sum() @ values.astype(numpy.float64), most + numpy.log(weights.sum())


class ForwardKeyLists(Case):
    def setUp(self):
        self.q, self.k, self.v = drawn(2, QUERIES, 6, 64), drawn(2, 90, 3, 64), drawn(2, 90, 3, 64)
        self.indices = random.integers(-20, 110, (2, QUERIES, 3, TOP)).astype(numpy.int32)

    def compare(self, out, lse, entries_of):
        for batch in range(2):
            for query in range(QUERIES):
                for head in range(6):
                    entries = entries_of(batch, query, head // 2)
                    entries = entries[(entries >= 0) & (entries < 90)]
                    o, of_row = exact_forward(self.q[batch, query, head], self.k[batch, entries, head // 2], self.v[batch, entries, head // 2])
                    self.close(out.numpy()[batch, query, head], o)
                    self.assertTrue(numpy.allclose(lse.numpy()[batch, head, query], of_row, atol=1e-3))

    def test_a_list_for_all_heads_and_for_each(self):
        out, lse = ENGINE.attention_forward(self.q, self.k, self.v, lse=True, indices=self.indices[:, :, 0])
        self.compare(out, lse, lambda batch, query, head: self.indices[batch, query, 0])
        counts = numpy.array([[[3, 40, 0]] * QUERIES] * 2, numpy.int32)
        out, lse = ENGINE.attention_forward(self.q, self.k, self.v, lse=True, indices=self.indices, counts=counts)
        self.compare(out, lse, lambda batch, query, head: self.indices[batch, query, head, : counts[batch, query, head]])

    def test_slots(self):
        slots = numpy.where((self.indices[:, :, 0] >= 0) & (self.indices[:, :, 0] < 90), self.indices[:, :, 0] + numpy.array([0, 90])[:, None, None], -1)
        out, lse = ENGINE.attention_forward(self.q, self.k, self.v, lse=True, indices=slots.astype(numpy.int32), slots=True)
        self.compare(out, lse, lambda batch, query, head: self.indices[batch, query, 0])

    def test_a_second_list_over_a_second_cache(self):
        keys, values = drawn(5, 16, 3, 64), drawn(5, 16, 3, 64)
        pages = [array.reshape(-1, 30, 3, 64) for array in (self.k, self.v)]
        # Pages of 30 keys are rows side by side; pages of another size are no second cache of them.
        with self.assertRaisesRegex(wavejit.InvalidArgument, r"second_k.sizes\[1\] = 16"):
            ENGINE.attention_forward(self.q, *pages, indices=self.indices, slots=True, second_k=keys, second_v=values, second_indices=self.indices)
        keys, values = drawn(2, 30, 3, 64), drawn(2, 30, 3, 64)
        others = random.integers(-20, 80, (2, QUERIES, 3, 9)).astype(numpy.int32)
        for heads in (1, 3):
            first, second = self.indices[:, :, :heads], others[:, :, :heads]
            given = [array[:, :, 0] if heads == 1 else array for array in (first, second)]
            out, lse = ENGINE.attention_forward(self.q, *pages, lse=True, indices=given[0], slots=True, second_k=keys, second_v=values, second_indices=given[1])
            for batch in range(2):
                for query in range(QUERIES):
                    for head in range(6):
                        rows = [[], []]
                        for entries, cache in ((first, [array.reshape(-1, 3, 64) for array in pages]), (second, (keys.reshape(-1, 3, 64), values.reshape(-1, 3, 64)))):
                            named = entries[batch, query, head // 2 if heads > 1 else 0]
                            named = named[(named >= 0) & (named < len(cache[0]))]
                            for to, array in zip(rows, cache):
                                to.append(array[named, head // 2])
                        o, of_row = exact_forward(self.q[batch, query, head], *map(numpy.concatenate, rows))
                        self.close(out.numpy()[batch, query, head], o)
                        self.assertTrue(numpy.allclose(lse.numpy()[batch, head, query], of_row, atol=1e-3))

    def test_what_is_refused(self):
        def refused(kind, pattern, **words):
            with self.assertRaisesRegex(kind, pattern):
                ENGINE.attention_forward(self.q, self.k, self.v, **{"indices": self.indices, **words})

        refused(wavejit.InvalidArgument, r"indices: shape \(2, 1, 3, 40\)", indices=self.indices[:, :1])
        refused(wavejit.InvalidArgument, r"counts: shape \(4,\).*accepted: \[12\]", counts=numpy.zeros(4, numpy.int32))
        refused(wavejit.Unsupported, "alibi", alibi=numpy.zeros(6, numpy.float32))
        refused(wavejit.InvalidArgument, "slots without indices", indices=None, slots=True)
        second = {"second_k": self.k, "second_v": self.v, "second_indices": self.indices}
        refused(wavejit.InvalidArgument, "second_v without second_indices", second_v=self.v)
        refused(wavejit.InvalidArgument, "second_indices without second_v", slots=True, **{**second, "second_v": None})
        refused(wavejit.InvalidArgument, r"second_indices: shape \(2, 2, 40\)", slots=True, **{**second, "second_indices": self.indices[:, :, 0]})


if __name__ == "__main__":
    unittest.main()
