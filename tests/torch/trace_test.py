# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What traces the operators: torch.library's own checks, torch.compile, torch.export."""
import glob
import os
import pathlib
import shutil
import tempfile
import unittest

import torch
import torch._inductor.config

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


def clang_with_gccs_openmp(folder):
    """A compiler for inductor where there is no g++: Debian's clang has no OpenMP of its own beside it, but GCC's headers are there."""
    (header, *_) = glob.glob("/usr/lib/gcc/*/*/include/omp.h")
    compiler = pathlib.Path(folder) / "clang++"
    compiler.write_text(f'#!/bin/sh\nexec clang++-22 "$@" -fopenmp=libgomp -idirafter {os.path.dirname(header)}\n')
    compiler.chmod(0o755)
    return str(compiler)


@unittest.skipUnless(os.environ.get("WAVEJIT_TEST_WHOLE") == "1", "in ./dev soak torch: inductor compiles C++ for a minute")
class Inductor(Case):
    """torch.compile as it comes. What stands around the operators is compiled anew, and rounds where it likes; the operators get what they
    got, where nothing stands in between."""

    def setUp(self):
        super().setUp()
        if not shutil.which("g++"):
            folder = self.enterContext(tempfile.TemporaryDirectory())
            self.enterContext(torch._inductor.config.patch({"cpp.cxx": (None, clang_with_gccs_openmp(folder))}))

    def test_forward_and_backward_have_the_bits_of_eager(self):
        def attend(q, k, v, bias):
            first = wavejit.torch.flash_attn_func(q, k, v, causal=True, window_size=(9, 0))
            return wavejit.torch.scaled_dot_product_attention(first.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), bias, enable_gqa=True)

        inputs = [each.requires_grad_() for each in (draw(2, 20, 4, 64), draw(2, 20, 2, 64), draw(2, 20, 2, 64), torch.randn(1, 4, 20, 20))]
        weights = draw(2, 4, 20, 64)
        compiled = torch.compile(attend, fullgraph=True)
        out, exact = compiled(*inputs), attend(*inputs)
        self.assertTrue(torch.equal(out, exact))
        for one, other in zip(torch.autograd.grad(out, inputs, weights), torch.autograd.grad(exact, inputs, weights)):
            self.assertEqual(one.stride(), other.stride())
            self.assertTrue(torch.equal(one, other))

    def test_a_module_that_trains(self):
        torch.manual_seed(17)
        layer = torch.nn.Linear(64, 3 * 64).bfloat16()

        def loss(x):
            q, k, v = layer(x).unflatten(-1, (3, 1, 64)).unbind(2)
            return wavejit.torch.flash_attn_func(q, k, v, causal=True).float().square().sum()

        x, found = torch.randn(2, 24, 64).bfloat16(), []
        for function in (loss, torch.compile(loss, fullgraph=True)):
            layer.zero_grad()
            function(x).backward()
            found.append(layer.weight.grad.clone().double())
        self.assertLess(float((found[1] - found[0]).norm() / found[0].norm()), 2e-3)


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
