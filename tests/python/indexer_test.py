# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The indexer of sparse attention from Python, beside numpy."""
import unittest

import numpy

import wavejit

ENGINE = wavejit.Engine("sim:gfx950")
RANDOM = numpy.random.default_rng(23)
NAN = float("nan")


def halves(*shape):
    return RANDOM.standard_normal(shape).astype(numpy.float16)


def exact_scores(queries, keys, weights, scales=None):
    products = numpy.einsum("bqhd,bkd->bqhk", queries.astype(numpy.float64), keys.astype(numpy.float64))
    scores = numpy.einsum("bqhk,bqh->bqk", numpy.maximum(products, 0), weights.astype(numpy.float64))
    return scores if scales is None else scores * scales[:, None, :].astype(numpy.float64)


def exact_list(scores, top):
    """The first of (value descending, then lower key), ascending; −1 behind them."""
    order = sorted(range(len(scores)), key=lambda key: (-scores[key], key))[:top]
    return sorted(order) + [-1] * (top - len(order))


class SparseIndexer(unittest.TestCase):
    def setUp(self):
        self.queries, self.keys = halves(2, 3, 40, 128), halves(2, 150, 128)
        self.weights = RANDOM.standard_normal((2, 3, 40)).astype(numpy.float32)
        self.scales = RANDOM.uniform(0.5, 2, (2, 150)).astype(numpy.float32)

    def test_scores_and_lists(self):
        indices, values, counts, scores = ENGINE.sparse_indexer(self.queries, self.keys, self.weights, 20, key_scales=self.scales, values=True, counts=True, scores=True)
        found = scores.numpy()
        exact = exact_scores(self.queries, self.keys, self.weights, self.scales)
        self.assertLess(numpy.abs(found - exact).max(), 1e-3)
        for b in range(2):
            for q in range(3):
                listed = exact_list(found[b, q], 20)
                self.assertEqual(indices.numpy()[b, q].tolist(), listed)
                self.assertEqual(values.numpy()[b, q].tolist(), found[b, q][listed].tolist())
        self.assertEqual(counts.numpy().tolist(), [[20] * 3] * 2)
        self.assertTrue((ENGINE.sparse_indexer(self.queries, self.keys, self.weights).numpy() == ENGINE.sparse_indexer(self.queries, self.keys, self.weights, scores=True).numpy()).all())

    def test_eight_bits(self):
        """Pages as DeepSeek V3.2 has them: 64 keys of 128 bytes, then their 64 scales."""
        cache = numpy.full((6, 64 * 132), 0x7F, numpy.uint8)  # NaN
        keys, scales = cache[:, : 64 * 128].reshape(6, 64, 128), cache[:, 64 * 128 :].view(numpy.float32)
        bits = lambda *shape: RANDOM.integers(0x20, 0x48, shape).astype(numpy.uint8) | (RANDOM.integers(0, 2, shape) << 7).astype(numpy.uint8)
        queries = bits(1, 2, 40, 128)
        table = numpy.array([[4, 1, 3]], numpy.int32)
        wide = numpy.zeros((150, 128), numpy.float16)
        for key in range(150):
            page = table[0, key // 64]
            keys[page, key % 64] = bits(128)
            scales[page, key % 64] = self.scales[0, key]
            wide[key] = wavejit._dtypes.widened(keys[page, key % 64], wavejit._dtypes.E4M3)
        widened = wavejit._dtypes.widened(queries, wavejit._dtypes.E4M3).astype(numpy.float16)
        same = ENGINE.sparse_indexer(widened, wide[None], self.weights[:1, :2], 20, key_scales=self.scales[:1], values=True)
        words = {"key_scales": scales, "block_table": table, "key_lengths": [150], "values": True}
        found = ENGINE.sparse_indexer(queries, keys, self.weights[:1, :2], 20, dtype="e4m3", **words)
        for one, other in zip(found, same):
            self.assertEqual(one.numpy().tobytes(), other.numpy().tobytes())
        typed = ENGINE.sparse_indexer(ENGINE.array(queries, "e4m3"), ENGINE.array(keys, "e4m3"), self.weights[:1, :2], 20, **words)
        self.assertEqual(typed[0].numpy().tobytes(), same[0].numpy().tobytes())
        for wrong, refusal in (("e5m2", "accepted: fp16, bf16, e4m3, e4m3_fnuz"), ("e4m3_fnuz", "gfx950 reads the encoding of the Open Compute Project")):
            with self.assertRaisesRegex((wavejit.InvalidArgument, wavejit.Unsupported), refusal):
                ENGINE.sparse_indexer(queries, keys, self.weights[:1, :2], 20, dtype=wrong, **words)

    def test_what_rows_see(self):
        whole = ENGINE.sparse_indexer(self.queries, self.keys, self.weights).numpy()
        indices = ENGINE.sparse_indexer(self.queries, self.keys, self.weights, 9, causal=True, key_lengths=[150, 5]).numpy()
        for b, length in enumerate((150, 5)):
            for q in range(3):
                self.assertEqual(indices[b, q].tolist(), exact_list(whole[b, q][: length - 2 + q], 9))
        begins, ends = [0, 10, 20, 30, 40, 149], [3, 20, 20, 100, 150, 150]
        indices = ENGINE.sparse_indexer(self.queries, self.keys, self.weights, 9, key_begins=begins, key_ends=ends).numpy()
        for row, (begin, end) in enumerate(zip(begins, ends)):
            listed = [key if key < 0 else key + begin for key in exact_list(whole.reshape(6, 150)[row][begin:end], 9)]
            self.assertEqual(indices.reshape(6, 9)[row].tolist(), listed)

    def test_pages(self):
        whole = ENGINE.sparse_indexer(self.queries, self.keys, self.weights, 30).numpy()
        pages = numpy.full((13, 16, 128), NAN, numpy.float16)
        table = numpy.arange(20, dtype=numpy.int32).reshape(2, 10) * 7 % 13
        with self.assertRaisesRegex(wavejit.InvalidArgument, "max_key_length is missing"):
            ENGINE.sparse_indexer(self.queries[:1], pages, self.weights[:1], 30, block_table=ENGINE.array(table[:1], "int32"), key_lengths=ENGINE.array([150], "int32"))
        for key in range(150):
            pages[table[0, key // 16], key % 16] = self.keys[0, key]
        indices = ENGINE.sparse_indexer(self.queries[:1], pages, self.weights[:1], 30, block_table=table[:1], key_lengths=[150])
        self.assertEqual(indices.numpy().tolist(), whole[:1].tolist())

    def test_outputs_of_the_callers(self):
        host = numpy.zeros((2, 3, 8), numpy.int32)
        self.assertIs(ENGINE.sparse_indexer(self.queries, self.keys, self.weights, 8, indices=host), host)
        self.assertEqual(host.tolist(), ENGINE.sparse_indexer(self.queries, self.keys, self.weights, 8).numpy().tolist())
        call = ENGINE.sparse_indexer_call(self.queries, self.keys, self.weights, 8)
        workspace = ENGINE.empty((call.workspace_bytes(),), "fp16")
        again = ENGINE.sparse_indexer(self.queries, self.keys, self.weights, 8, workspace=workspace)
        self.assertEqual(again.numpy().tolist(), host.tolist())

    def test_given_scores(self):
        scores = numpy.array([[[1, 5, 5, -numpy.inf, 5, NAN, 0]]], numpy.float32)
        self.assertEqual(ENGINE.sparse_indexer(None, None, None, 3, scores=scores).numpy().tolist(), [[[1, 2, 5]]])
        self.assertEqual(ENGINE.sparse_indexer(None, None, None, 8, scores=scores).numpy().tolist(), [[[0, 1, 2, 4, 5, 6, -1, -1]]])

    def test_refusals(self):
        refused = (
            ("queries: shape", (self.queries[0], self.keys, self.weights, 3), {}),
            ("keys: shape", (self.queries, self.keys[0], self.weights, 3), {}),
            ("queries.sizes\\[3\\]", (halves(2, 3, 40, 64), halves(2, 150, 64), self.weights, 3), {}),
            ("weights.sizes\\[2\\]", (self.queries, self.keys, self.weights[:, :, :39].copy(), 3), {}),
            ("indices: shape", (self.queries, self.keys, self.weights, 3), {"indices": numpy.zeros((2, 3, 4), numpy.int32)}),
            ("values without top_k", (self.queries, self.keys, self.weights), {"values": True}),
            ("queries and scores are missing", (None, None, None, 3), {}),
            ("keys without queries", (None, self.keys, None, 3), {"scores": numpy.zeros((1, 1, 4), numpy.float32)}),
            ("max_key_length without block_table", (self.queries, self.keys, self.weights, 3), {"max_key_length": 4}),
            ("top_k = -1", (self.queries, self.keys, self.weights, -1), {}),
            ("key_lengths\\[0\\] = 151", (self.queries, self.keys, self.weights, 3), {"key_lengths": [151, 1]}),
            ("key_begins: shape", (self.queries, self.keys, self.weights, 3), {"key_begins": [1, 2]}),
        )
        for pattern, given, words in refused:
            with self.assertRaisesRegex(wavejit.InvalidArgument, pattern):
                ENGINE.sparse_indexer(*given, **words)


if __name__ == "__main__":
    unittest.main()
