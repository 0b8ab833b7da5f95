# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""wavejit.torch.key_list_attention beside torch's own operations, the engine's bits, and traces."""
import unittest

import torch

import wavejit
import wavejit.torch


class KeyLists(unittest.TestCase):
    def setUp(self):
        torch._dynamo.reset()
        torch.manual_seed(29)
        self.q = torch.randn(2, 2, 8, 64).bfloat16()
        self.k, self.v = torch.randn(2, 300, 2, 64).bfloat16(), torch.randn(2, 300, 2, 64).bfloat16()
        self.indices = torch.randint(-2, 320, (2, 2, 90), dtype=torch.int32)
        self.counts = torch.tensor([[90, 17], [0, 64]], dtype=torch.int32)

    def exact(self, k, v, lists):
        """What each query gets over (keys, values) of `lists[b][row]`."""
        out, lse = torch.zeros(2, 2, 8, 64).double(), torch.full((2, 8, 2), float("-inf")).double()
        for b in range(2):
            for row in range(2):
                named = lists(b, row)
                for head in range(8):
                    keys, values = (torch.stack([each[b][n, head // 4] for n in named]).double() if named else None for each in (k, v))
                    if keys is None:
                        continue
                    scores = keys @ self.q[b, row, head].double() / 8
                    out[b, row, head], lse[b, head, row] = scores.softmax(0) @ values, scores.logsumexp(0)
        return out, lse

    def close(self, found, exact):
        self.assertTrue(torch.allclose(found[0].double(), exact[0], rtol=1e-2, atol=1e-2))
        self.assertTrue(torch.allclose(found[1].double(), exact[1], rtol=1e-4, atol=1e-4))

    def same(self, one, other):
        for mine, others in zip(one, other, strict=True):
            self.assertEqual((mine.dtype, mine.shape), (others.dtype, others.shape))
            self.assertTrue(torch.equal(mine, others))

    def named(self, b, row):
        return [n for n in self.indices[b, row, : self.counts[b, row]].tolist() if 0 <= n < 300]

    def test_is_what_torch_says(self):
        found = wavejit.torch.key_list_attention(self.q, self.k, self.v, self.indices, counts=self.counts, return_lse=True)
        self.close(found, self.exact(self.k, self.v, self.named))
        self.assertEqual((found[0].dtype, found[1].shape), (torch.bfloat16, (2, 8, 2)))
        self.assertTrue(torch.equal(wavejit.torch.key_list_attention(self.q, self.k, self.v, self.indices, counts=self.counts), found[0]))
        heads = self.indices[:, :, None].expand(2, 2, 2, 90).contiguous()
        self.same(wavejit.torch.key_list_attention(self.q, self.k, self.v, heads, counts=self.counts[:, :, None].expand(2, 2, 2).contiguous(), return_lse=True), found)

    def test_lists_of_the_indexer(self):
        """A short row's list is full: the bits are those of attention over all that it sees."""
        queries, keys, weights = torch.randn(2, 2, 64, 128).bfloat16(), torch.randn(2, 300, 128).bfloat16(), torch.rand(2, 2, 64)
        lengths = torch.tensor([120, 33], dtype=torch.int32)
        lists = wavejit.torch.sparse_indexer(queries, keys, weights, 128, causal=True, key_lengths=lengths)
        found = wavejit.torch.key_list_attention(self.q, self.k, self.v, lists, causal=True, key_lengths=lengths, return_lse=True)
        self.same(found, torch.ops.wavejit.attention_forward_lse(self.q, self.k, self.v, causal=True, key_lengths=lengths))

    def pages(self, size=16):
        table = torch.randperm(40, dtype=torch.int32)[:38].reshape(2, 19)
        caches = [torch.full((40, size, 2, 64), float("nan")).bfloat16() for _ in range(2)]
        for b in range(2):
            for n in range(300):
                for cache, rows in zip(caches, (self.k, self.v)):
                    cache[table[b, n // size], n % size] = rows[b, n]
        return caches, table

    def test_pages_and_slots(self):
        whole = wavejit.torch.key_list_attention(self.q, self.k, self.v, self.indices, counts=self.counts, return_lse=True)
        caches, table = self.pages()
        lengths = torch.tensor([300, 300], dtype=torch.int32)
        self.same(wavejit.torch.key_list_attention(self.q, *caches, self.indices, counts=self.counts, block_table=table, key_lengths=lengths, return_lse=True), whole)
        inside = (self.indices >= 0) & (self.indices < 300)
        number = self.indices.clamp(0, 299).long()
        page = torch.stack([table[b][number[b] // 16] for b in range(2)])
        slots = torch.where(inside, page * 16 + (number % 16).int(), -1).int()
        self.same(wavejit.torch.key_list_attention(self.q, *caches, slots, counts=self.counts, slots=True, return_lse=True), whole)

    def test_a_second_cache(self):
        caches, second = [torch.randn(10, 16, 2, 64).bfloat16() for _ in range(2)], [torch.randn(10, 16, 2, 64).bfloat16() for _ in range(2)]
        lists = [torch.randint(0, 160, (2, 2, n), dtype=torch.int32) for n in (70, 300)]
        counts = torch.tensor([[300, 0], [1, 257]], dtype=torch.int32)
        found = wavejit.torch.key_list_attention(self.q, *caches, lists[0], slots=True, second_k=second[0], second_v=second[1], second_indices=lists[1],
                                                 second_counts=counts, return_lse=True)
        together = [torch.cat([one.flatten(0, 1), other.flatten(0, 1)]).expand(2, 320, 2, 64) for one, other in zip(caches, second)]
        self.close(found, self.exact(*together, lambda b, row: lists[0][b, row].tolist() + [160 + n for n in lists[1][b, row, : counts[b, row]].tolist()]))

    def test_a_cache_without_keys(self):
        cache = torch.empty(8, 0, 2, 64, dtype=torch.float16)
        out, lse = wavejit.torch.key_list_attention(torch.randn(1, 3, 4, 64).half(), cache, cache, torch.arange(15, dtype=torch.int32).view(1, 3, 5), slots=True, return_lse=True)
        self.assertEqual((int(torch.count_nonzero(out)), float(lse.max())), (0, -float("inf")))

    def test_caches_of_8_bits(self):
        narrow = [(each.float() * 4).to(torch.float8_e4m3fn) for each in (self.k, self.v)]
        wide = [each.to(torch.bfloat16) for each in narrow]
        scales = {"k_scale": torch.tensor([0.25]), "v_scale": torch.tensor([0.25])}
        found = wavejit.torch.key_list_attention(self.q, *narrow, self.indices, **scales, return_lse=True)
        self.same(found, wavejit.torch.key_list_attention(self.q, *(each / 4 for each in wide), self.indices, return_lse=True))

    def test_the_operators_are_traced(self):
        def step(q, k, v, indices, counts):
            out, lse = wavejit.torch.key_list_attention(2 * q, k, v, indices, counts=counts, softcap=20.0, return_lse=True)
            return out, lse, wavejit.torch.key_list_attention(q, k, v, indices, causal=True, splits=2)

        inputs = self.q, self.k, self.v, self.indices, self.counts
        plain = step(*inputs)
        graphs = []

        def keep(graph, _):
            graphs.append(graph.code)
            return graph

        for backend in ("aot_eager", keep):
            self.same(torch.compile(step, backend=backend, fullgraph=True)(*inputs), plain)
        self.assertEqual([graphs[0].count(f"torch.ops.wavejit.key_list_attention{name}.default(") for name in ("", "_lse")], [1, 1])
        for operator in (torch.ops.wavejit.key_list_attention.default, torch.ops.wavejit.key_list_attention_lse.default):
            told = torch.library.opcheck(operator, inputs[:4], {"counts": self.counts}, test_utils=("test_schema", "test_faketensor", "test_autograd_registration"))
            self.assertEqual(set(told.values()), {"SUCCESS"})
        self.assertEqual(wavejit.torch.key_list_attention(self.q[:, :0], self.k, self.v, self.indices[:, :0]).shape, (2, 0, 8, 64))

    def test_refusals(self):
        def refuses(what, error=wavejit.InvalidArgument, indices=self.indices, q=self.q, **words):
            with self.assertRaisesRegex(error, what):
                wavejit.torch.key_list_attention(q, self.k, self.v, indices, **words)

        refuses("indices: dtype torch.int64; accepted: torch.int32", indices=self.indices.long())
        refuses("indices: shape", indices=self.indices[:1])
        refuses("second_indices without second_k", slots=True, second_indices=self.indices)
        refuses("second_k: dtype torch.float16; accepted: torch.bfloat16, k's", slots=True, second_k=self.k.half(), second_v=self.v, second_indices=self.indices)
        refuses("q: it requires grad, and lists of keys have no backward", wavejit.Unsupported, q=self.q.clone().requires_grad_())
        refuses("indices: a builtins.list; accepted: a torch tensor", TypeError, indices=[[1]])


if __name__ == "__main__":
    unittest.main()
