# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""wavejit.jax.dot_product_attention beside jax.nn's own in float64, and its signature beside jax.nn's."""
import inspect
import unittest

import jax
import numpy
from exact import Case, draw, wavejit, wide
from jax import numpy as jnp

OWN = jax.nn.dot_product_attention


def lengths(*numbers):
    return jnp.array(numbers, jnp.int32)


class BesideJax(Case):
    def beside(self, words, shape=(2, 24, 40, 4, 2, 64), dtype=jnp.bfloat16):
        batch, rows, keys, heads, kv_heads, dim = shape
        arrays = draw(1, batch, rows, heads, dim, dtype=dtype), draw(2, batch, keys, kv_heads, dim, dtype=dtype), draw(3, batch, keys, kv_heads, dim, dtype=dtype)
        found = jax.jit(lambda *each: wavejit.jax.dot_product_attention(*each, **words))(*arrays)
        with jax.enable_x64(True):
            widened = {name: wide(each)[0] if isinstance(each, jax.Array) and each.dtype in (jnp.bfloat16, jnp.float32) else each for name, each in words.items()}
            want = jax.jit(lambda *each: OWN(*each, **widened))(*wide(*arrays))
        self.assertEqual(found.dtype, dtype)
        self.near(found, want)

    def test_masks(self):
        mask = (draw(4, 1, 1, 24, 40) > 0).at[..., 0].set(True)  # of a row that sees nothing the two have other opinions
        for words in (
            {}, {"is_causal": True}, {"scale": 0.2}, {"local_window_size": 7}, {"local_window_size": (9, 2)}, {"is_causal": True, "local_window_size": (5, 0)},
            {"key_value_seq_lengths": lengths(40, 13)}, {"query_seq_lengths": lengths(24, 7)}, {"is_causal": True, "key_value_seq_lengths": lengths(31, 40)},
            {"mask": mask}, {"mask": mask[0, 0, 0]}, {"bias": draw(6, 40), "mask": mask[0, 0, 0]}, {"bias": draw(5, 2, 4, 24, 40)}, {"bias": draw(5, 1, 1, 24, 40, dtype=jnp.float32), "mask": mask, "is_causal": True},
            {"query_seq_lengths": lengths(3, 24), "key_value_seq_lengths": lengths(40, 22)},
        ):
            with self.subTest(str({name: getattr(each, "shape", each) for name, each in words.items()})):
                self.beside(words)

    def test_fp16_and_equal_lengths(self):
        for words in ({"is_causal": True}, {"local_window_size": (4, 0), "is_causal": True}):
            self.beside(words, (1, 40, 40, 6, 3, 128), jnp.float16)

    def test_without_a_batch(self):
        q, k = draw(1, 12, 4, 64), draw(2, 20, 4, 64)
        out, residual = wavejit.jax.dot_product_attention(q, k, k, is_causal=True, return_residual=True)
        with jax.enable_x64(True):
            want, sums = OWN(*wide(q, k, k), is_causal=True, return_residual=True)
        self.near(out, want)
        self.assertEqual(residual.shape, (12, 4))
        self.near(residual, sums, 80)

    def test_gradients(self):
        q, k, v = draw(1, 2, 24, 4, 64), draw(2, 2, 40, 2, 64), draw(3, 2, 40, 2, 64)
        bias, weights = draw(4, 1, 4, 24, 40, dtype=jnp.float32), draw(5, 2, 24, 4, 64)
        words = {"is_causal": True, "key_value_seq_lengths": lengths(40, 30), "query_seq_lengths": lengths(24, 20)}

        def loss(function, weights):
            return lambda q, k, v, bias: (function(q, k, v, bias, **words).astype(weights.dtype) * weights).sum()

        found = jax.jit(jax.grad(loss(wavejit.jax.dot_product_attention, weights.astype(jnp.float32)), (0, 1, 2, 3)))(q, k, v, bias)
        with jax.enable_x64(True):
            want = jax.grad(loss(OWN, wide(weights)[0]), (0, 1, 2, 3))(*wide(q, k, v, bias))
        self.both_near(found, want, 40)

    def test_signature(self):
        theirs, ours = (list(inspect.signature(each).parameters.values()) for each in (OWN, wavejit.jax.dot_product_attention))
        self.assertEqual([(each.name, each.kind, each.default) for each in ours], [(each.name, each.kind, each.default) for each in theirs])

    def test_refused(self):
        q = draw(1, 1, 8, 2, 64)
        with self.assertRaisesRegex(wavejit.Unsupported, "dtype float32; accepted: float16 or bfloat16"):
            wavejit.jax.dot_product_attention(*(q.astype(jnp.float32),) * 3)
        pair = draw(1, 2, 5, 2, 64)
        with self.assertRaisesRegex(wavejit.InvalidArgument, r"query_seq_lengths: shape \(1,\); accepted: \[2\], one for each batch"):
            wavejit.jax.dot_product_attention(pair, pair, pair, query_seq_lengths=lengths(3))
        with self.assertRaisesRegex(wavejit.InvalidArgument, "implementation = 'cudnn'; accepted: None, 'wavejit'"):
            wavejit.jax.dot_product_attention(q, q, q, implementation="cudnn")
        with self.assertRaisesRegex(wavejit.InvalidArgument, "mask: dtype int32; accepted: bool"):
            wavejit.jax.dot_product_attention(q, q, q, mask=numpy.zeros((1, 1, 8, 8), numpy.int32))

    def test_refused_in_the_words_of_this_function(self):
        q = draw(1, 1, 8, 4, 64)
        for words, told in (
            ({"local_window_size": (3.5, 1)}, r"local_window_size = \(3\.5, 1\); accepted: \(left, right\)"),
            ({"key": q[:, :, :3], "value": q[:, :, :3]}, "query: 4 heads, and 3 of key; accepted: a multiple of them$"),
            ({"key": q[..., :32]}, "key: head dim 32; accepted: 64, that of query$"),
            ({"value": q[:, :5]}, r"value: shape \(1, 5, 4, 64\); accepted: \(1, 8, 4, 'head dim'\), as key$"),
            ({"key": q.astype(jnp.float16), "value": q.astype(jnp.float16), "query": q.astype(jnp.bfloat16)}, "key: dtype float16; accepted: bfloat16, query's, "),
            ({"mask": numpy.ones((1, 3, 8, 8), bool)}, r"mask: shape \(1, 3, 8, 8\); accepted: "),
            ({"bias": numpy.ones((1, 3, 8, 8), numpy.float32)}, r"bias: shape \(1, 3, 8, 8\); accepted: "),
            ({"key_value_seq_lengths": numpy.ones(1, numpy.float32)}, "key_value_seq_lengths: dtype float32; accepted: int32$"),
        ):
            with self.subTest(told), self.assertRaisesRegex(wavejit.InvalidArgument, f"^{told}"):
                wavejit.jax.dot_product_attention(**{"query": q, "key": q, "value": q, **words})


if __name__ == "__main__":
    unittest.main()
