# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention into the caller's tensors, tables as lists (CSR), vectorised pages and hints, over CPU tensors: the bits of the call that
makes its own output from keys that lie as usual."""
import unittest

import torch

import wavejit
import wavejit.torch

OPERATORS = torch.ops.wavejit


def draw(*shape):
    return torch.randn(*shape, dtype=torch.float32).half()


class Into(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(37)
        self.q, self.k, self.v = draw(2, 7, 4, 64), draw(2, 40, 2, 64), draw(2, 40, 2, 64)
        # Six pages of sixteen keys, two or three a sequence.
        self.pages, self.table = draw(6, 2, 16, 2, 64), torch.tensor([[3, 1, 0], [0, 2, 5]], dtype=torch.int32)
        self.lengths = torch.tensor([30, 41], dtype=torch.int32)
        self.paged = {"key_lengths": self.lengths, "block_table": self.table, "max_key_length": 48, "causal": True}

    def refuses(self, pattern, call, *tensors, **words):
        with self.assertRaisesRegex((wavejit.Error, TypeError), pattern):
            call(*tensors, **words)

    def test_the_operator(self):
        wanted, sums = OPERATORS.attention_forward_lse(self.q, self.k, self.v, causal=True)
        out, lse = torch.full_like(wanted, 9), torch.full_like(sums, 9)
        self.assertIsNone(OPERATORS.attention_forward_out(self.q, self.k, self.v, out, lse, torch.empty(4096), causal=True))
        self.assertTrue(torch.equal(out, wanted) and torch.equal(lse, sums))
        # An output of other strides, and one in fp32: the same before its rounding.
        spread = torch.full((2, 7, 4, 128), 9.0).half()
        OPERATORS.attention_forward_out(self.q, self.k, self.v, spread[..., :64], causal=True)
        self.assertTrue(torch.equal(spread[..., :64], wanted) and bool((spread[..., 64:] == 9).all()))
        unrounded = torch.empty(2, 7, 4, 64)
        OPERATORS.attention_forward_out(self.q, self.k, self.v, unrounded, causal=True)
        self.assertTrue(torch.equal(unrounded.half(), wanted))

    def test_functions(self):
        call, out = wavejit.torch.flash_attn_func, torch.empty_like(self.q)
        wanted, sums, _ = call(self.q, self.k, self.v, causal=True, return_attn_probs=True)
        self.assertIs(call(self.q, self.k, self.v, causal=True, out=out), out)
        self.assertTrue(torch.equal(out, wanted))
        out.zero_()
        given = call(self.q, self.k, self.v, causal=True, return_attn_probs=True, out=out)
        self.assertTrue(given[0] is out and torch.equal(out, wanted) and torch.equal(given[1], sums))

        call, starts = wavejit.torch.flash_attn_varlen_func, torch.tensor([0, 7, 14], dtype=torch.int32)
        rows, out = self.q.reshape(14, 4, 64), torch.empty(14, 4, 64).half()
        words = {"causal": True, "block_table": self.table, "seqused_k": self.lengths, "s_aux": torch.tensor([0.5, -1, 2, 0]), "num_splits": 2}
        wanted, sums = call(rows, self.pages[:, 0], self.pages[:, 1], starts, None, 7, 48, return_softmax_lse=True, **words)
        given = call(rows, self.pages[:, 0], self.pages[:, 1], starts, None, 7, 48, return_softmax_lse=True, out=out, **words)
        self.assertTrue(given[0] is out and torch.equal(out, wanted) and torch.equal(given[1], sums))
        whole = call(rows, self.pages[:, 0], self.pages[:, 1], starts, None, 7, 48, **{**words, "num_splits": 0})
        self.assertTrue(torch.equal(whole, wanted))
        without = call(rows, self.pages[:, 0], self.pages[:, 1], starts, None, 7, 48, **{**words, "s_aux": None})
        self.assertFalse(torch.equal(without, wanted))

        call, out = wavejit.torch.flash_attn_with_kvcache, torch.empty_like(self.q)
        words = {"cache_seqlens": self.lengths, "block_table": self.table, "causal": True}
        wanted = call(self.q, self.pages[:, 0], self.pages[:, 1], **words)
        self.assertIs(call(self.q, self.pages[:, 0], self.pages[:, 1], out=out, **words), out)
        self.assertTrue(torch.equal(out, wanted))

    def test_tables_as_lists_and_a_hint(self):
        wanted = OPERATORS.attention_forward(self.q, self.pages[:, 0], self.pages[:, 1], **self.paged)
        lists = {**self.paged, "block_table": torch.tensor([3, 1, 0, 2, 5], dtype=torch.int32), "table_starts": torch.tensor([0, 2, 5], dtype=torch.int32)}
        self.assertTrue(torch.equal(OPERATORS.attention_forward(self.q, self.pages[:, 0], self.pages[:, 1], **lists), wanted))
        hinted = OPERATORS.attention_forward(self.q, self.pages[:, 0], self.pages[:, 1], max_total_keys=71, **self.paged)
        self.assertTrue(torch.equal(hinted, wanted))
        self.refuses("max_total_keys", OPERATORS.attention_forward, self.q, self.pages[:, 0], self.pages[:, 1], max_total_keys=-3, **self.paged)

    def test_vectorised_pages(self):
        k, v = self.pages[:, 0], self.pages[:, 1]
        units = k.reshape(6, 16, 2, 8, 8).permute(0, 2, 3, 1, 4).contiguous()  # [pages, heads, dim / 8, keys, 8]
        by_dims = v.permute(0, 2, 3, 1).contiguous()  # [pages, heads, dim, keys]
        by_keys = v.reshape(6, 2, 8, 2, 64).permute(0, 3, 1, 4, 2).contiguous()  # [pages, heads, keys / 8, dim, 8]
        wanted, sums = OPERATORS.attention_forward_lse(self.q, k, v, **self.paged)
        for values in (by_dims, by_keys):
            out, lse = OPERATORS.attention_forward_lse(self.q, units, values, **self.paged)
            self.assertTrue(torch.equal(out, wanted) and torch.equal(lse, sums))
            given = torch.empty_like(wanted)
            OPERATORS.attention_forward_out(self.q, units, values, given, **self.paged)
            self.assertTrue(torch.equal(given, wanted))
        words = {"cache_seqlens": self.lengths, "block_table": self.table, "causal": True}
        self.assertTrue(torch.equal(wavejit.torch.flash_attn_with_kvcache(self.q, units, by_dims, **words), wanted))

    def test_out_in_8_bits(self):
        wide, scale = torch.empty(2, 7, 4, 64), torch.tensor([0.03])
        OPERATORS.attention_forward_out(self.q, self.k, self.v, wide, causal=True)
        scaled = wide * (1.0 / scale)
        for kind, wanted in ((torch.float8_e4m3fn, scaled.clamp(-448, 448)), (torch.int8, scaled.round().clamp(-128, 127))):
            out, lse = torch.zeros(2, 7, 4, 64).to(kind), torch.empty(2, 4, 7)
            OPERATORS.attention_forward_out(self.q, self.k, self.v, out, lse, causal=True, o_scale=scale)
            self.assertTrue(torch.equal(out.view(torch.uint8), wanted.to(kind).view(torch.uint8)))
            self.refuses("o_scale is missing beside out of", OPERATORS.attention_forward_out, self.q, self.k, self.v, out)
            self.refuses(r"o_scale: shape \(2,\); accepted: one element", OPERATORS.attention_forward_out, self.q, self.k, self.v, out, o_scale=torch.ones(2))
        self.refuses("o_scale: an array beside out of fp16", OPERATORS.attention_forward_out, self.q, self.k, self.v, torch.empty_like(self.q), o_scale=scale)

    def test_refused_by_name(self):
        call, out = OPERATORS.attention_forward_out, torch.empty_like(self.q)
        for pattern, tensors, words in (
            (r"out: torch.float16, shape \(7, 4, 64\)", (self.q, self.k, self.v, out[0]), {}),
            ("out: torch.bfloat16", (self.q, self.k, self.v, out.bfloat16()), {}),
            ("lse: torch.float16", (self.q, self.k, self.v, out, torch.empty(2, 4, 7).half()), {}),
            ("workspace: strides", (self.q, self.k, self.v, out, None, torch.empty(8, 8).t()), {}),
            ("k: dtype torch.bfloat16", (self.q, self.k.bfloat16(), self.v, out), {}),
            ("requires grad", (self.q.clone().requires_grad_(), self.k, self.v, out), {}),
        ):
            self.refuses(pattern, call, *tensors, **words)
        self.refuses("softmax_scale", wavejit.torch.flash_attn_func, self.q, self.k, self.v, softmax_scale=float("nan"), out=out)
        self.refuses("out: a builtins.str", wavejit.torch.flash_attn_func, self.q, self.k, self.v, out="fp32")

    def test_torch_compile_and_torch_librarys_own_checks(self):
        def step(q, k, v, out):
            wavejit.torch.flash_attn_func(2 * q, k, v, causal=True, out=out)
            return out + 1

        results = []
        for run in (step, torch.compile(step, backend="aot_eager", fullgraph=True)):
            out = torch.zeros_like(self.q)
            results.append((run(self.q, self.k, self.v, out), out))
        self.assertTrue(torch.equal(results[0][0], results[1][0]) and torch.equal(results[0][1], results[1][1]))
        torch.library.opcheck(OPERATORS.attention_forward_out.default, (self.q, self.k, self.v, torch.empty_like(self.q), torch.empty(2, 4, 7)), {"causal": True})
        lists = {**self.paged, "block_table": torch.tensor([3, 1, 0, 2, 5], dtype=torch.int32), "table_starts": torch.tensor([0, 2, 5], dtype=torch.int32)}
        torch.library.opcheck(OPERATORS.attention_forward.default, (self.q, self.pages[:, 0], self.pages[:, 1]), lists)


if __name__ == "__main__":
    unittest.main()
