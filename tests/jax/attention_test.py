# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""wavejit.jax.attention beside float64, and beside the engine's own bits."""
import os
import unittest

import exact
import jax
import numpy
from exact import Case, draw, wavejit
from jax import numpy as jnp

WHOLE = os.environ.get("WAVEJIT_TEST_WHOLE") == "1"
# What a call is asked for, and over which shapes: [B, Sq, Sk, Hq, Hkv, D, Dv].
WORDS = {
    "plain": ({}, (2, 24, 40, 4, 2, 64, 64)),
    "causal": ({"causal": True}, (1, 40, 72, 4, 4, 128, 128)),
    "prefix": ({"causal": True, "causal_prefix": 3}, (1, 20, 48, 2, 1, 64, 64)),
    "window": ({"window": (9, 4)}, (1, 40, 40, 2, 2, 64, 64)),
    "causal window": ({"causal": True, "window": (12, None)}, (1, 40, 40, 6, 2, 64, 64)),
    "softcap": ({"softcap": 5.0, "scale": 0.3}, (1, 16, 40, 2, 2, 64, 64)),
    "scale of 0": ({"scale": 0.0}, (1, 8, 24, 2, 2, 64, 64)),
    "padded head dim": ({"causal": True}, (1, 24, 24, 2, 2, 96, 96)),
    "two head dims": ({}, (1, 16, 40, 2, 2, 192, 128)),
    "one row": ({"causal": True}, (3, 1, 150, 8, 2, 128, 128)),
}


def tensors(shape, dtype=jnp.bfloat16):
    batch, rows, keys, heads, kv_heads, dim, value_dim = shape
    return draw(1, batch, rows, heads, dim, dtype=dtype), draw(2, batch, keys, kv_heads, dim, dtype=dtype), draw(3, batch, keys, kv_heads, value_dim, dtype=dtype)


class Words(Case):
    def test_beside_float64(self):
        for dtype in (jnp.bfloat16, jnp.float16):
            for name, (words, shape) in WORDS.items():
                if dtype is jnp.float16 and not WHOLE and name not in ("causal", "softcap"):
                    continue
                with self.subTest(name, dtype=dtype):
                    q, k, v = tensors(shape, dtype)
                    out, lse = jax.jit(lambda q, k, v, words=words: wavejit.jax.attention(q, k, v, lse=True, **words))(q, k, v)
                    self.assertEqual((out.dtype, lse.dtype), (q.dtype, jnp.float32))
                    want = exact.forward(q, k, v, **words)
                    self.near(out, want[0])
                    self.near(lse, want[1], 80)

    def test_the_bits_are_the_engines(self):
        engine = wavejit.jax.engine("cpu")
        for name in ("causal window", "one row"):
            words, shape = WORDS[name]
            q, k, v = tensors(shape)
            out, lse = engine.attention_forward(*(numpy.asarray(each) for each in (q, k, v)), lse=True, **words)
            found = wavejit.jax.attention(q, k, v, lse=True, **words)
            self.same_bits(found[0].view(jnp.uint16), out.numpy("uint16"))
            self.same_bits(found[1], lse.numpy())

    def test_modifiers(self):
        q, k, v = tensors((2, 24, 37, 4, 2, 64, 64))
        bias = draw(4, 1, 4, 24, 37)
        others = {
            "bias": {"bias": bias}, "a row's bias for all": {"bias": draw(5, 2, 1, 1, 37, dtype=jnp.float32)},
            "bools": {"bias": bias > 0}, "sinks": {"sinks": draw(6, 4, dtype=jnp.float32)},
            "slopes": {"alibi": jnp.array([0.5, 0.25, 0.125, 0.0625]), "causal": True}, "slopes of each": {"alibi": jnp.abs(draw(7, 2, 4, dtype=jnp.float32))},
        }
        for name, words in others.items():
            with self.subTest(name):
                out, lse = wavejit.jax.attention(q, k, v, lse=True, **words)
                want = exact.forward(q, k, v, **words)
                self.near(out, want[0])
                self.near(lse, want[1], 80)

    def test_heads_without_dims(self):
        """Each score is 0: a row has the mean of the values that it sees."""
        q, k, v = tensors((2, 7, 19, 4, 2, 0, 64))
        seen = numpy.arange(19)[None, :] <= numpy.arange(7)[:, None] + 12
        weights = seen / seen.sum(1, keepdims=True)
        values = exact.in_float64(v).repeat(2, 2)
        attend = jax.jit(lambda q, k, v: wavejit.jax.attention(q, k, v, causal=True, lse=True))
        out, lse = attend(q, k, v)
        self.near(out, numpy.einsum("ij,bjhd->bihd", weights, values))
        self.near(lse, numpy.broadcast_to(numpy.log(seen.sum(1)), (2, 4, 7)), 80)
        d_out = draw(9, 2, 7, 4, 64)
        (dv,) = jax.vjp(lambda v: attend(q, k, v)[0], v)[1](d_out)
        self.near(dv, numpy.einsum("ij,bihd->bjhd", weights, exact.in_float64(d_out)).reshape(2, 19, 2, 2, 64).sum(3))
        of_bias = draw(4, 1, 4, 7, 19)
        softmax = numpy.exp(exact.in_float64(of_bias))
        self.near(wavejit.jax.attention(q, k, v, bias=of_bias), numpy.einsum("bhij,bjhd->bihd", numpy.broadcast_to(softmax / softmax.sum(-1, keepdims=True), (2, 4, 7, 19)), values))
        # Values without dims leave the log-sum-exp.
        q, k, v = tensors((1, 5, 9, 2, 2, 64, 0))
        out, lse = wavejit.jax.attention(q, k, v, lse=True)
        self.assertEqual(out.shape, (1, 5, 2, 0))
        self.same_bits(lse, wavejit.jax.attention(q, k, k, lse=True)[1])

    def test_split_keys_have_the_bits_of_whole_ones(self):
        q, k, v = tensors((1, 1, 2500, 4, 1, 64, 64))
        self.same_bits(wavejit.jax.attention(q, k, v, splits=3).view(jnp.uint16), wavejit.jax.attention(q, k, v, splits=1).view(jnp.uint16))


class Sequences(Case):
    def test_packed(self):
        q, k, v = tensors((1, 24, 24, 4, 2, 64, 64))
        starts = jnp.array([0, 5, 5, 20], jnp.int32)  # an empty one among them, and rows that are nobody's
        out, lse = jax.jit(lambda *each: wavejit.jax.attention(*each[:3], query_starts=each[3], key_starts=each[3], causal=True, lse=True))(q, k, v, starts)
        for first, last in ((0, 5), (5, 20)):
            want = exact.forward(*(each[:, first:last] for each in (q, k, v)), causal=True)
            self.near(out[:, first:last], want[0])
            self.near(lse[..., first:last], want[1], 80)
        self.assertFalse(out[:, 20:].any())
        self.assertTrue(bool((lse[..., 20:] == -jnp.inf).all()))

    def test_lengths(self):
        q, k, v = tensors((3, 4, 40, 2, 2, 64, 64))
        lengths = jnp.array([40, 17, 1], jnp.int32)
        out = wavejit.jax.attention(q, k, v, key_lengths=lengths, causal=True)
        self.near(out, exact.forward(q, k, v, key_lengths=lengths, causal=True)[0])

    def test_pages(self):
        q, k, v = tensors((2, 1, 48, 4, 2, 64, 64))
        lengths = jnp.array([48, 33], jnp.int32)
        table = jnp.array([[3, 1, 5], [0, 2, 4]], jnp.int32)
        pages = [jnp.zeros((6, 16, 2, 64), each.dtype).at[table].set(each.reshape(2, 3, 16, 2, 64)) for each in (k, v)]
        out = jax.jit(lambda *each: wavejit.jax.attention(*each[:3], block_table=each[3], key_lengths=each[4]))(q, *pages, table, lengths)
        self.same_bits(out.view(jnp.uint16), wavejit.jax.attention(q, k, v, key_lengths=lengths).view(jnp.uint16))

    def test_queries_in_float32_are_rounded_once(self):
        q, k, v = tensors((1, 5, 70, 4, 2, 64, 64))
        between = q.astype(jnp.float32) * (1 + 0.9 * 2**-9)
        self.assertTrue((between.astype(q.dtype) == q).all())
        out = jax.jit(wavejit.jax.attention)(between, k, v)
        self.assertEqual(out.dtype, q.dtype)
        self.assertTrue((out == wavejit.jax.attention(q, k, v)).all())
        with self.assertRaisesRegex(wavejit.Unsupported, "^q: dtype float32 beside v of "):
            jax.grad(lambda q: wavejit.jax.attention(q, k, v).astype(jnp.float32).sum())(between)

    def test_caches_of_8_bits(self):
        q, k, v = tensors((2, 1, 40, 4, 2, 64, 64))
        of_target = {"gfx942": jnp.float8_e4m3fnuz, "gfx950": jnp.float8_e4m3fn}[wavejit.jax.engine("cpu").target]
        k, v = (each.astype(of_target) for each in (k, v))
        k_scale, v_scale = jnp.full((1, 2), 0.5, jnp.float32), jnp.array([[1.0, 2.0]], jnp.float32)
        out = wavejit.jax.attention(q, k, v, k_scale=k_scale, v_scale=v_scale)
        wide_k, wide_v = (exact.in_float64(each) for each in (k, v))
        self.near(out, exact.forward(q, 0.5 * wide_k, numpy.array([1.0, 2.0])[:, None] * wide_v)[0])
        scales = jnp.abs(draw(8, 2, 40, 2, dtype=jnp.float32))
        out = wavejit.jax.attention(q, k, v, k_scale=scales, v_scale=scales)
        of_tokens = exact.in_float64(scales)[..., None]
        self.near(out, exact.forward(q, of_tokens * wide_k, of_tokens * wide_v)[0])


class Refused(Case):
    def test_by_name(self):
        q, k, v = tensors((1, 8, 16, 4, 2, 64, 64))
        of = wavejit.jax.attention
        for call, text in (
            (lambda: of(q.astype(jnp.float32), k.astype(jnp.float32), v), "q: dtype float32; accepted: float16, bfloat16"),
            (lambda: of(q, k.astype(jnp.float16), v), "k: dtype float16; accepted: bfloat16, q's"),
            (lambda: of(q, k, v.astype(jnp.float16)), "v: dtype float16; accepted: bfloat16, k's"),
            (lambda: of(q[0], k, v), "q: shape (8, 4, 64); accepted: [batch, length, heads, head dim]"),
            (lambda: of(q[:, :, :3], k, v), "q: 3 heads, and 2 of k; accepted: a multiple of them"),
            (lambda: of(q, k[..., :32], v), "k: head dim 32; accepted: 64, that of q"),
            (lambda: of(q, jnp.concatenate([k, k]), jnp.concatenate([v, v])), "k: a batch of 2; accepted: 1, that of q"),
            (lambda: of(q, k, v, window=(-3, 0)), "window = (-3, 0); accepted: (left, right)"),
            (lambda: of(q, k, v, window=5), "window = 5; accepted: (left, right), each an integer from 0 to 2147483647, or None for no limit"),
            *((lambda window=window: of(q, k, v, window=window), f"window = {window!r}; accepted: (left, right)")
              for window in ((1,), (1, 2, 3), (1.5, 0), (None, 2.0), (1 << 40, 0), (0, 1 << 31), "ab")),
            (lambda: of(q, k, v, sinks=jnp.zeros(3)), "sinks: shape (3,); accepted: [4]"),
            (lambda: of(q, k, v, bias=jnp.zeros((1, 1, 8, 15))), "bias: shape (1, 1, 8, 15); accepted:"),
            (lambda: of(q, k, v, key_lengths=jnp.zeros(1)), "key_lengths: dtype float32; accepted: int32"),
            (lambda: of(q, k, v, block_table=jnp.zeros((1, 1), jnp.int32)), "block_table without key_lengths"),
            (lambda: of(q, k, v, max_key_length=4), "max_key_length = 4; accepted: None beside arrays that are dense"),
            (lambda: of(q, k, v, softcap=-1.0), "softcap = -1.0; accepted: 0 or more"),
        ):
            with self.subTest(text), self.assertRaises(wavejit.InvalidArgument) as caught:
                call()
            self.assertIn(text, str(caught.exception))
        for field, given in (("splits", "3"), ("splits", numpy.float32(2.7)), ("causal_prefix", 2.0), ("max_key_length", "3"), ("scale", "3"), ("scale", 1e-50)):
            starts = {"key_starts": jnp.asarray([0, 40])} if field == "max_key_length" else {}
            with self.subTest(field), self.assertRaisesRegex(wavejit.InvalidArgument, f"^{field} = .*{given if isinstance(given, str) else ''}.*; accepted: an? (integer|number)"):
                wavejit.jax.attention(*tensors((1, 24, 40, 4, 2, 64, 64)), causal=True, **starts, **{field: given})
        with self.assertRaisesRegex(TypeError, "scale: a traced value; accepted: a number"):
            jax.jit(lambda scale: of(q, k, v, scale=scale))(0.5)
        with self.assertRaisesRegex(TypeError, "^attention: 'sm_scale' is no argument; use scale; accepted: q, k, v, scale, causal, "):
            of(q, k, v, sm_scale=0.5)

    def test_what_the_device_says(self):
        """XLA tells it when the program runs, in the same words."""
        q, k, v = tensors((2, 4, 40, 2, 2, 64, 64))
        with self.assertRaisesRegex(Exception, "INVALID_ARGUMENT: .*key_lengths"):
            jax.block_until_ready(wavejit.jax.attention(q, k, v, key_lengths=jnp.array([41, -1], jnp.int32)))
        odd = draw(1, 1, 8, 2, 60)
        with self.assertRaisesRegex(Exception, "(UNIMPLEMENTED|INVALID_ARGUMENT): .*60"):
            jax.block_until_ready(wavejit.jax.attention(odd, odd, odd))
        self.near(wavejit.jax.attention(q, k, v), wavejit.jax.attention(q, k, v, key_lengths=jnp.array([40, 40], jnp.int32)), 200)  # and goes on

    def test_nothing_to_do(self):
        q = draw(1, 2, 0, 4, 64)
        out, lse = wavejit.jax.attention(q, draw(2, 2, 8, 2, 64), draw(3, 2, 8, 2, 64), lse=True)
        self.assertEqual((out.shape, lse.shape), ((2, 0, 4, 64), (2, 4, 0)))
        out, lse = wavejit.jax.attention(draw(1, 1, 3, 2, 64), draw(2, 1, 0, 2, 64), draw(3, 1, 0, 2, 64), lse=True)
        self.assertFalse(out.any())
        self.assertTrue(bool((lse == -jnp.inf).all()))


if __name__ == "__main__":
    unittest.main()
