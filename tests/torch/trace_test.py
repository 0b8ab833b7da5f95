# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What traces the operators: torch.library's own checks, torch.compile, torch.export."""
import unittest

import torch

import wavejit
import wavejit.torch


def draw(*shape):
    return torch.randn(*shape, dtype=torch.float32).half()


def block(x, mask=None):
    """Attention between two other operations, as a layer has it."""
    q, k, v = (2 * x).unflatten(-1, (3, 2, 64)).permute(2, 0, 3, 1, 4)
    causal = mask is None
    out = wavejit.torch.scaled_dot_product_attention(q, k, v, mask, is_causal=causal)
    packed = wavejit.torch.flash_attn_func(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), causal=True, window_size=(4, 0))
    return out.transpose(1, 2).flatten(2) + packed.flatten(2)


class Block(torch.nn.Module):
    def forward(self, x, mask=None):
        return block(x, mask)


class Case(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(17)
        torch._dynamo.reset()


class Operators(Case):
    def test_torch_librarys_own_checks(self):
        q, k = draw(1, 5, 2, 64), draw(1, 9, 2, 64)
        starts = torch.tensor([0, 2, 5], dtype=torch.int32)
        for words in ({"causal": True}, {"bias": torch.rand(1, 1, 5, 9) > 0.2, "scale": 0.5}, {"query_starts": starts, "key_starts": starts, "max_query_length": 3, "max_key_length": 3}):
            keys = k[:, :5] if "key_starts" in words else k
            for operator in (torch.ops.wavejit.attention_forward.default, torch.ops.wavejit.attention_forward_lse.default):
                told = torch.library.opcheck(operator, (q, keys, keys), words)
                self.assertEqual(set(told.values()), {"SUCCESS"})


class Compile(Case):
    def test_one_graph_and_the_same_bits(self):
        x, mask = draw(2, 11, 384), torch.rand(11, 11) > 0.3
        for backend in ("eager", "aot_eager"):
            compiled = torch.compile(block, backend=backend, fullgraph=True)
            self.assertTrue(torch.equal(compiled(x), block(x)))
            self.assertTrue(torch.equal(compiled(x, mask), block(x, mask)))

    def test_lengths_that_change(self):
        seen = []

        def backend(graph, inputs):
            seen.append(graph)
            return graph

        compiled = torch.compile(block, backend=backend, fullgraph=True, dynamic=True)
        for rows in (5, 11, 24):
            x = draw(1, rows, 384)
            self.assertTrue(torch.equal(compiled(x), block(x)))
        self.assertEqual(len(seen), 1)
        self.assertIn("wavejit.attention_forward", seen[0].code)

    def test_training_behind_a_mask(self):
        x, mask, weights = draw(1, 5, 384).requires_grad_(), torch.rand(5, 5) > 0.3, draw(1, 5, 128)
        (plain,) = torch.autograd.grad(block(x, mask), x, weights)
        for backend in ("eager", "aot_eager"):
            (found,) = torch.autograd.grad(torch.compile(block, backend=backend, fullgraph=True)(x, mask), x, weights)
            self.assertTrue(torch.equal(found, plain))


class Export(Case):
    def test_a_program_with_the_operator(self):
        x = draw(2, 11, 384)
        program = torch.export.export(Block(), (x,), dynamic_shapes={"x": {1: torch.export.Dim("rows", min=2, max=64)}})
        self.assertIn("torch.ops.wavejit.attention_forward.default", program.graph_module.code)
        for rows in (11, 20):
            x = draw(2, rows, 384)
            self.assertTrue(torch.equal(program.module()(x), block(x)))


class Meta(Case):
    def test_shapes_without_a_device(self):
        before = wavejit.torch.engine("cpu").statistics()["calls"]
        with torch.device("meta"):
            q, k, v = torch.empty(2, 5, 4, 192).half(), torch.empty(2, 9, 2, 192).half(), torch.empty(2, 9, 2, 128).half()
        out, lse = torch.ops.wavejit.attention_forward_lse(q, k, v)
        self.assertEqual((out.shape, out.dtype, lse.shape, lse.dtype), ((2, 5, 4, 128), torch.float16, (2, 4, 5), torch.float32))
        self.assertEqual(wavejit.torch.engine("cpu").statistics()["calls"], before)


if __name__ == "__main__":
    unittest.main()
