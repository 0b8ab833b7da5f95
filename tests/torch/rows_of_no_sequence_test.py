# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rows behind the last start of packed queries: 0, and a log-sum-exp of −∞, wherever wavejit makes the output; the caller's own stay as they are."""
import unittest

import numpy
import torch
import torch.nn.attention.varlen

import wavejit
import wavejit.torch

STARTS, ROWS = torch.tensor([0, 2, 5], dtype=torch.int32), 9
INFINITY = float("inf")


def draw(*shape):
    return torch.randn(*shape, dtype=torch.float32).bfloat16()


class Case(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(17)
        torch.use_deterministic_algorithms(True)  # memory that nothing was written to is NaN
        self.addCleanup(torch.use_deterministic_algorithms, False)
        self.assertTrue(bool(torch.empty(4).isnan().all()))

    def cleared(self, out, lse=None):
        """out [rows, heads, dim], lse [heads, rows]."""
        self.assertEqual(out.shape[0], ROWS)
        self.assertTrue(bool(out[:5].isfinite().all()) and bool(out[:5].any()))
        self.assertFalse(bool(out[5:].any()))
        if lse is not None:
            self.assertTrue(bool(lse[:, :5].isfinite().all()))
            self.assertTrue(bool((lse[:, 5:] == -INFINITY).all()))


class Cleared(Case):
    def test_packed_functions(self):
        q, k = draw(ROWS, 4, 64), draw(ROWS, 2, 64)
        qkv, kv = draw(ROWS, 3, 2, 64), draw(ROWS, 2, 2, 64)
        sinks = torch.ones(4)
        for _ in range(2):  # of a shape that was seen, too
            self.cleared(wavejit.torch.flash_attn_varlen_func(q, k, k, STARTS, STARTS, 3, 3, causal=True))
            out, lse, _ = wavejit.torch.flash_attn_varlen_func(q, k, k, STARTS, STARTS, 3, 3, s_aux=sinks, return_attn_probs=True)
            self.cleared(out, lse)
            self.cleared(wavejit.torch.flash_attn_varlen_qkvpacked_func(qkv, STARTS, 3))
            self.cleared(wavejit.torch.flash_attn_varlen_kvpacked_func(q, kv, STARTS, STARTS, 3, 3))
        compiled = torch.compile(lambda *given: wavejit.torch.flash_attn_varlen_func(*given, 3, 3, return_softmax_lse=True), backend="aot_eager", fullgraph=True)
        self.cleared(*compiled(q, k, k, STARTS, STARTS))
        pages, table = draw(2, 16, 2, 64), torch.tensor([[1], [0]], dtype=torch.int32)
        lengths = torch.tensor([9, 3], dtype=torch.int32)
        self.cleared(*wavejit.torch.flash_attn_varlen_func(q, pages, pages, STARTS, None, 3, 16, block_table=table, seqused_k=lengths, return_softmax_lse=True))

    def test_beneath_gradients(self):
        q, k = draw(ROWS, 2, 64).requires_grad_(), draw(ROWS, 2, 64)
        out = wavejit.torch.flash_attn_varlen_func(q, k, k, STARTS, STARTS, 3, 3)
        self.cleared(out.detach())
        out.sum().backward()
        self.assertTrue(bool(q.grad[:2].any()) and not bool(q.grad[5:].any()))

    def test_latent_attention_and_lists_of_keys(self):
        q, cache = draw(1, ROWS, 12, 576), draw(2, 16, 1, 576)
        words = {"scale": 0.1, "query_starts": STARTS, "key_lengths": torch.tensor([9, 3], dtype=torch.int32), "max_query_length": 3,
                 "block_table": torch.tensor([[1], [0]], dtype=torch.int32)}
        out, lse = wavejit.torch.attention_latent(q, cache, **words, return_lse=True)
        self.cleared(out[0], lse[0])
        mine = torch.full((1, ROWS, 12, 512), 7.0, dtype=q.dtype)
        _, lse = wavejit.torch.attention_latent(q, cache, **words, out=mine, return_lse=True)
        self.assertTrue(bool((mine[0, 5:] == 7).all()) and torch.equal(mine[0, :5], out[0, :5]))
        self.cleared(out[0], lse[0])
        rows, keys, lists = draw(1, ROWS, 4, 64), draw(1, 9, 2, 64), torch.tensor([[[0, 1]] * ROWS], dtype=torch.int32)
        out, lse = wavejit.torch.key_list_attention(rows, keys, keys, lists, query_starts=STARTS, key_starts=STARTS, max_query_length=3, max_key_length=3,
                                                    return_lse=True)
        self.cleared(out[0], lse[0])

    def test_pytorchs_own_entry(self):
        torch.nn.attention.activate_flash_attention_impl("wavejit")
        self.addCleanup(torch.nn.attention.restore_flash_attention_impl)
        q = draw(ROWS, 2, 64)
        forward, into = torch.ops.aten._flash_attention_forward, torch.ops.aten._flash_attention_forward_no_dropout_inplace
        out, lse, *_ = forward(q, q, q, STARTS, STARTS, 3, 3, 0.0, False, False)
        self.cleared(out, lse)
        mine = torch.full_like(q, 7.0)
        lse = into(mine, q, q, q, STARTS, STARTS, 3, 3, 0.0, False, False)
        self.assertTrue(bool((mine[5:] == 7).all()) and torch.equal(mine[:5], out[:5]))
        self.cleared(out, lse)

    def test_the_callers_rows_stay_as_they_are(self):
        q, mine = draw(ROWS, 2, 64), torch.full((ROWS, 2, 64), 7.0, dtype=torch.bfloat16)
        _, lse = wavejit.torch.flash_attn_varlen_func(q, q, q, STARTS, STARTS, 3, 3, out=mine, return_softmax_lse=True)
        self.assertTrue(bool((mine[5:] == 7).all()) and bool(mine[:5].isfinite().all()))
        self.cleared(torch.cat((mine[:5], torch.zeros(4, 2, 64))), lse)

    def test_arrays_of_numpy(self):
        engine = wavejit.torch.engine("cpu")
        q, latent = (numpy.random.default_rng(17).standard_normal(shape).astype(numpy.float16) for shape in ((1, ROWS, 2, 64), (1, ROWS, 12, 576)))
        held = engine.array(numpy.full((1 << 20,), numpy.nan, numpy.float32))
        held.free()  # what the next allocations find there
        for starts in ([0, 2, 5], engine.array(STARTS.numpy())):
            words = {"query_starts": starts, "key_starts": starts, "max_query_length": 3, "max_key_length": 3, "lse": True}
            out, lse = engine.attention_forward(q, q, q, **words)
            self.cleared(torch.from_numpy(out.numpy()[0]), torch.from_numpy(lse.numpy()[0]))
            out_latent, lse_latent = engine.attention_latent(latent, latent[:, :, :1], scale=0.1, **words)
            self.cleared(torch.from_numpy(out_latent.numpy()[0]), torch.from_numpy(lse_latent.numpy()[0]))
            del words["lse"]
            for gradient in engine.attention_backward(q, q, q, out, lse, q, **words):
                self.cleared(torch.from_numpy(gradient.numpy()[0]))


if __name__ == "__main__":
    unittest.main()
