# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""wavejit.torch.sparse_indexer beside torch's own operations."""
import unittest

import torch

import wavejit
import wavejit.torch


class Indexer(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(19)
        self.queries = torch.randn(2, 2, 64, 128).bfloat16()
        self.keys = torch.randn(2, 300, 128).bfloat16()
        self.weights = torch.randn(2, 2, 64)

    def test_is_what_torch_says(self):
        indices, values = wavejit.torch.sparse_indexer(self.queries, self.keys, self.weights, 32, causal=True, return_values=True)
        products = torch.einsum("bqhd,bkd->bqhk", self.queries.double(), self.keys.double()).relu()
        scores = torch.einsum("bqhk,bqh->bqk", products, self.weights.double())
        scores[:, 0, 299:] = float("-inf")
        found, keys = scores.topk(32)
        self.assertEqual(indices.dtype, torch.int32)
        self.assertTrue(torch.equal(indices.long(), keys.sort().values))
        self.assertTrue(torch.allclose(values.double().sort(descending=True).values, found, rtol=1e-4, atol=1e-3))
        alone = wavejit.torch.sparse_indexer(self.queries[1:], self.keys[1:], self.weights[1:], 32, causal=True)
        self.assertTrue(torch.equal(alone, indices[1:]))

    def test_float8_has_the_bits_of_the_same_numbers_in_bf16(self):
        queries, keys = self.queries.to(torch.float8_e4m3fn), self.keys.to(torch.float8_e4m3fn)
        words = {"key_scales": torch.rand(2, 300), "causal": True, "return_values": True}
        found = wavejit.torch.sparse_indexer(queries, keys, self.weights, 32, **words)
        wide = wavejit.torch.sparse_indexer(queries.bfloat16(), keys.bfloat16(), self.weights, 32, **words)
        for one, other in zip(found, wide):
            self.assertTrue(torch.equal(one, other))
        with self.assertRaisesRegex(wavejit.Error, "gfx950 reads the encoding of the Open Compute Project"):
            wavejit.torch.sparse_indexer(self.queries.to(torch.float8_e4m3fnuz), self.keys.to(torch.float8_e4m3fnuz), self.weights, 32)

    def test_pages(self):
        table = torch.randperm(40, dtype=torch.int32)[:38].reshape(2, 19)
        pages = torch.full((40, 16, 128), float("nan")).bfloat16()
        for b in range(2):
            for key in range(300):
                pages[table[b, key // 16], key % 16] = self.keys[b, key]
        lengths = torch.tensor([300, 77], dtype=torch.int32)
        indices = wavejit.torch.sparse_indexer(self.queries, pages, self.weights, 100, key_lengths=lengths, block_table=table, max_key_length=300)
        dense = wavejit.torch.sparse_indexer(self.queries, self.keys, self.weights, 100, key_lengths=lengths)
        self.assertTrue(torch.equal(indices, dense))
        self.assertTrue((dense[1, :, 77:] == -1).all() and (dense[1, :, :77] >= 0).all())

    def test_the_operator_is_traced(self):
        def lists(queries, keys, weights):
            indices, values = wavejit.torch.sparse_indexer(2 * queries, keys, weights, 16, causal=True, window=(100, None), return_values=True)
            return indices, values, wavejit.torch.sparse_indexer(queries, keys, weights, 8)

        inputs = self.queries, self.keys, self.weights
        plain = lists(*inputs)
        graphs = []

        def keep(graph, _):
            graphs.append(graph.code)
            return graph

        for backend in ("aot_eager", keep):
            for one, other in zip(torch.compile(lists, backend=backend, fullgraph=True)(*inputs), plain):
                self.assertTrue(torch.equal(one, other))
        self.assertEqual((len(graphs), graphs[0].count("torch.ops.wavejit.sparse_indexer.default(")), (1, 2))
        for words in ({}, {"values": True, "causal": True}):
            told = torch.library.opcheck(torch.ops.wavejit.sparse_indexer.default, (*inputs, 16), words, test_utils=("test_schema", "test_faketensor", "test_autograd_registration"))
            self.assertEqual(set(told.values()), {"SUCCESS"})

    def test_a_choice_has_no_gradient(self):
        indices, values = wavejit.torch.sparse_indexer(self.queries.requires_grad_(), self.keys, self.weights.requires_grad_(), 16, return_values=True)
        self.assertFalse(indices.requires_grad or values.requires_grad)

    def test_refusals(self):
        with self.assertRaisesRegex(wavejit.InvalidArgument, "queries and scores are missing"):
            wavejit.torch.sparse_indexer(None, None, None, 4)
        with self.assertRaisesRegex(wavejit.InvalidArgument, "keys: dtype"):
            wavejit.torch.sparse_indexer(self.queries, self.keys.double(), self.weights, 4)


if __name__ == "__main__":
    unittest.main()
