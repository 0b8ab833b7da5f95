# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Gradients of wavejit.jax.attention beside those of float64, which JAX finds by itself; what is refused."""
import unittest

import exact
import jax
from exact import Case, draw, wavejit, wide
from jax import numpy as jnp


def loss(function, weights, of_sums, static):
    """A loss through the output, and through LSE where it has weights."""

    def call(arrays):
        out, lse = function(**arrays, **static)
        total = (out.astype(weights.dtype) * weights).sum()
        return total if of_sums is None else total + (lse * of_sums).sum()

    return call


def ours(**words):
    return wavejit.jax.attention(**words, lse=True)


class BesideFloat64(Case):
    def beside(self, static, shape=(2, 24, 40, 4, 2, 64, 64), dtype=jnp.bfloat16, others=None, through_sums=False):
        batch, rows, keys, heads, kv_heads, dim, value_dim = shape
        arrays = {"q": draw(1, batch, rows, heads, dim, dtype=dtype), "k": draw(2, batch, keys, kv_heads, dim, dtype=dtype), "v": draw(3, batch, keys, kv_heads, value_dim, dtype=dtype),
                  **(others or {})}
        weights = draw(4, batch, rows, heads, value_dim).astype(jnp.float32)
        sums = draw(5, batch, heads, rows, dtype=jnp.float32) if through_sums else None
        found = jax.jit(jax.grad(loss(ours, weights, sums, static)))(arrays)
        with jax.enable_x64(True):
            widened = {name: wide(each)[0] if isinstance(each, jax.Array) and each.dtype == jnp.float32 else each for name, each in static.items()}
            of_exact = loss(exact.attention, wide(weights)[0], None if sums is None else wide(sums)[0], widened)
            want = jax.jit(jax.grad(of_exact))({name: wide(each)[0] for name, each in arrays.items()})
        for name, gradient in found.items():
            with self.subTest(name):
                self.assertEqual(gradient.dtype, arrays[name].dtype)
                self.near(gradient, want[name], 40)

    def test_words(self):
        for static, shape in (
            ({}, (2, 24, 40, 4, 2, 64, 64)), ({"causal": True}, (1, 40, 40, 4, 1, 128, 128)), ({"causal": True, "window": (9, None), "softcap": 8.0}, (1, 40, 40, 2, 2, 64, 64)),
            ({"causal": True, "causal_prefix": 5, "scale": 0.2}, (1, 24, 40, 2, 2, 192, 128)), ({"key_lengths": jnp.array([40, 11], jnp.int32)}, (2, 24, 40, 2, 2, 64, 64)),
            ({"alibi": jnp.array([0.5, 0.25]), "causal": True}, (1, 24, 24, 2, 2, 64, 64)),
        ):
            with self.subTest(str(static)):
                self.beside(static, shape)
        self.beside({"causal": True}, dtype=jnp.float16)

    def test_through_the_sums(self):
        self.beside({"causal": True}, (1, 24, 40, 4, 2, 64, 64), through_sums=True)

    def test_sinks_and_bias(self):
        self.beside({}, others={"sinks": draw(6, 4, dtype=jnp.float32)})
        self.beside({}, others={"bias": draw(7, 1, 4, 24, 40, dtype=jnp.float32)})
        self.beside({"causal": True}, others={"bias": draw(7, 2, 1, 1, 40, dtype=jnp.float32), "sinks": draw(6, 4, dtype=jnp.float32)}, through_sums=True)

    def test_packed(self):
        q, k, v, weights = draw(1, 1, 24, 4, 64), draw(2, 1, 24, 2, 64), draw(3, 1, 24, 2, 64), draw(4, 1, 24, 4, 64)
        starts = jnp.array([0, 5, 5, 20], jnp.int32)

        def packed(q, k, v):
            out = wavejit.jax.attention(q, k, v, query_starts=starts, key_starts=starts, causal=True)
            return (out * weights).astype(jnp.float32).sum()

        def by_itself(q, k, v):
            pieces = [exact.attention(*(each[:, first:last] for each in (q, k, v)), causal=True)[0] for first, last in ((0, 5), (5, 20))]
            return (jnp.concatenate(pieces, 1) * wide_weights[:, :20]).sum()

        found = jax.grad(packed, (0, 1, 2))(q, k, v)
        *widened, wide_weights = wide(q, k, v, weights)
        with jax.enable_x64(True):
            want = jax.jit(jax.grad(by_itself, (0, 1, 2)))(*widened)
        self.both_near(found, want, 40)
        for each in found:
            self.assertFalse(each[:, 20:].any())

    def test_twice_has_the_same_bits(self):
        q, k = draw(1, 2, 24, 4, 64), draw(2, 2, 40, 2, 64)
        gradient = jax.jit(jax.grad(lambda q, k: wavejit.jax.attention(q, k, k, causal=True).astype(jnp.float32).sum(), (0, 1)))
        for one, other in zip(gradient(q, k), gradient(q, k)):
            self.same_bits(one.view(jnp.uint16), other.view(jnp.uint16))

    def test_gradients_nobody_wants_cost_nothing(self):
        """A bias that is a constant has no gradient computed: the program has no such result."""
        q, bias = draw(1, 1, 24, 2, 64), draw(2, 1, 2, 24, 24)
        text = jax.jit(jax.grad(lambda q: wavejit.jax.attention(q, q, q, bias=bias).astype(jnp.float32).sum())).lower(q).as_text()
        backward = next(line for line in text.splitlines() if "@wavejit_attention_backward(" in line)
        self.assertEqual(backward.split("->")[-1].count("tensor<"), 3)


class Refused(Case):
    def test_by_name(self):
        q = draw(1, 1, 8, 2, 64)
        narrow = draw(1, 1, 8, 2, 96)
        cache = q.astype(jnp.float8_e4m3fn)
        pages, table, lengths = draw(2, 3, 16, 2, 64), jnp.zeros((1, 1), jnp.int32), jnp.array([8], jnp.int32)
        of = wavejit.jax.attention
        for function, array, text in (
            (lambda x: of(x, x, x), narrow, "q: head dims 96 and 96 of v, and a gradient is wanted; accepted: 64, 128, 256"),
            (lambda x: of(x, cache, cache), q, "k: dtype float8_e4m3fn, and a gradient is wanted"),
            (lambda x: of(x, pages, pages, block_table=table, key_lengths=lengths), q, "block_table: given, and a gradient is wanted"),
            (lambda x: of(q, q, q, alibi=x), jnp.array([0.5, 0.25]), "alibi: a gradient is wanted of it, and slopes are constants"),
        ):
            with self.subTest(text), self.assertRaises(wavejit.Unsupported) as caught:
                jax.grad(lambda x, function=function: function(x).astype(jnp.float32).sum())(array)
            self.assertIn(text, str(caught.exception))
        with self.assertRaisesRegex(TypeError, "forward-mode|jvp"):
            jax.jvp(lambda x: of(x, x, x), (q,), (q,))


if __name__ == "__main__":
    unittest.main()
