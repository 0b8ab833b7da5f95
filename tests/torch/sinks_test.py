# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The gradient of sinks: beside float64, of packed sequences, and through the log-sum-exp where there are no keys."""
import unittest

import torch
from gradients_test import Case, draw

import wavejit.torch


class Sinks(Case):
    @staticmethod
    def exact(q, k, v, sinks):
        """Causal, in float64: a sink is a logit for each head that has no value."""
        group = q.shape[2] // k.shape[2]
        scores = torch.einsum("bqhd,bkhd->bhqk", q, k.repeat_interleave(group, 2)) * q.shape[3] ** -0.5
        scores = scores.masked_fill(~torch.ones(q.shape[1], k.shape[1], dtype=torch.bool).tril(k.shape[1] - q.shape[1]), float("-inf"))
        both = torch.cat([scores, sinks[None, :, None, None].expand(*scores.shape[:3], 1)], -1)
        return torch.einsum("bhqk,bkhd->bqhd", torch.softmax(both, -1)[..., :-1], v.repeat_interleave(group, 2))

    def test_their_gradient(self):
        inputs, sinks = (draw(2, 40, 4, 64), draw(2, 60, 2, 64), draw(2, 60, 2, 64)), torch.tensor([0.5, 3.0, -1.0, 1.0])
        found = self.gradients(lambda *given: torch.ops.wavejit.attention_forward(*given[:3], causal=True, sinks=given[3]), *inputs, sinks)
        for one, other in zip(found, self.gradients(self.exact, *(each.double() for each in (*inputs, sinks)))):
            self.close(one, other, 38)
        self.assertEqual(found[3].dtype, torch.float32)
        # Gradients of sinks alone, and in one graph: the same bits.
        alone = self.gradients(lambda sinks: torch.ops.wavejit.attention_forward(*inputs, causal=True, sinks=sinks), sinks)
        self.assertTrue(torch.equal(alone[0], found[3]))
        compiled = torch.compile(lambda *given: torch.ops.wavejit.attention_forward(*given[:3], causal=True, sinks=given[3]), backend="aot_eager", fullgraph=True)
        self.assertTrue(all(torch.equal(one, other) for one, other in zip(self.gradients(compiled, *inputs, sinks), found)))

    def test_of_packed_sequences_each_by_itself(self):
        starts, sinks = torch.tensor([0, 7, 20], dtype=torch.int32), torch.tensor([0.5, 3.0])
        q, d_out = draw(1, 20, 2, 64), draw(1, 20, 2, 64)
        words = {"causal": True, "query_starts": starts, "key_starts": starts, "max_query_length": 13, "max_key_length": 13}
        out, lse = torch.ops.wavejit.attention_forward_lse(q, q, q, sinks=sinks, **words)
        *_, together = torch.ops.wavejit.attention_backward_sinks(q, q, q, out, lse, d_out, sinks, **words)
        self.assertEqual(together.shape, (2, 2))
        for place, (begin, end) in enumerate(((0, 7), (7, 20))):
            rows = [each[:, begin:end].contiguous() for each in (q, q, q, out)]
            *_, alone = torch.ops.wavejit.attention_backward_sinks(*rows, lse[:, :, begin:end].contiguous(), d_out[:, begin:end].contiguous(), sinks, causal=True)
            self.assertTrue(torch.equal(alone[0], together[place]))
        told = torch.library.opcheck(torch.ops.wavejit.attention_backward_sinks.default, (q, q, q, out, lse, d_out, sinks), words)
        self.assertEqual(set(told.values()), {"SUCCESS"})

    def test_without_keys_the_lse_is_the_sink(self):
        q, k, sinks = draw(1, 5, 2, 64), draw(1, 0, 2, 64), torch.tensor([0.5, 3.0], requires_grad=True)
        out, lse = torch.ops.wavejit.attention_forward_lse(q, k, k, sinks=sinks)
        (found,) = torch.autograd.grad((lse * torch.arange(5.0)).sum() + out.sum(), sinks)
        self.assertEqual(found.tolist(), [10.0, 10.0])
        # With a bias of no keys, too.
        bias = torch.zeros(1, 2, 5, 0, requires_grad=True)
        _, lse = torch.ops.wavejit.attention_forward_lse(q, k, k, sinks=sinks, bias=bias)
        found, of_bias = torch.autograd.grad((lse * torch.arange(5.0)).sum(), (sinks, bias))
        self.assertEqual((found.tolist(), of_bias.shape), ([10.0, 10.0], bias.shape))
        # Each packed sequence has its own rows' sum, and rows behind the last are none of theirs.
        starts = torch.tensor([0, 2, 4], dtype=torch.int32)
        words = {"query_starts": starts, "key_starts": torch.zeros(3, dtype=torch.int32), "max_query_length": 2, "max_key_length": 0}
        d_lse = torch.tensor([1.0, 2.0, 4.0, 8.0, torch.nan]).expand(1, 2, 5)
        out, lse = torch.ops.wavejit.attention_forward_lse(q, k, k, sinks=sinks.detach(), **words)
        *gradients, found = torch.ops.wavejit.attention_backward_sinks(q, k, k, out, lse, torch.zeros_like(out), sinks.detach(), d_lse=d_lse, **words)
        self.assertEqual(found.tolist(), [[3.0, 3.0], [12.0, 12.0]])
        self.assertFalse(any(bool(gradient.any()) for gradient in gradients))

    def test_through_the_lse_of_packed_calls_without_keys(self):
        q, k, sinks = draw(7, 2, 64), draw(0, 2, 64), torch.tensor([0.5, 3.0], requires_grad=True)
        starts, key_starts = torch.tensor([0, 3, 7], dtype=torch.int32), torch.zeros(3, dtype=torch.int32)

        def sums(sinks):
            return wavejit.torch.flash_attn_varlen_func(q, k, k, starts, key_starts, 4, 0, s_aux=sinks, return_softmax_lse=True)[1].sum()

        for call in (sums, torch.compile(sums, backend="aot_eager", fullgraph=True)):
            self.assertEqual(torch.autograd.grad(call(sinks), sinks)[0].tolist(), [7.0, 7.0])

    def test_of_another_number_of_heads_by_the_callers_names(self):
        import wavejit.transformers

        q, k, starts = draw(5, 4, 64), draw(5, 2, 64), torch.tensor([0, 5], dtype=torch.int32)
        heads_first = draw(1, 4, 5, 64)
        for call in (lambda sinks: wavejit.torch.flash_attn_varlen_func(q, k, k, starts, starts, 5, 5, s_aux=sinks),
                     lambda sinks: wavejit.transformers.attention_forward(torch.nn.Module(), heads_first, heads_first, heads_first, None, s_aux=sinks)):  # fmt: skip
            with self.assertRaisesRegex(wavejit.InvalidArgument, r"^s_aux.sizes\[0\] = 3; accepted: 4 \(q(uery)?.sizes\[2\]\)$"):
                call(torch.zeros(3))


if __name__ == "__main__":
    unittest.main()
