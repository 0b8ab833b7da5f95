# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sinks, biases, slopes, LSE and soft-caps as large as numbers are: results by their limit, on every target. Products with log2 e leave fp32 from
2.36e38 on."""
import functools
import unittest

import numpy
import reference

import wavejit

TARGETS = ("gfx942", "gfx950", "gfx1201")
ENGINES = {target: wavejit.Engine(f"sim:{target}") for target in TARGETS}
RANDOM = numpy.random.default_rng(49)
LARGEST = numpy.finfo(numpy.float32).max
HUGE = numpy.array([2.37e38, 3e38, LARGEST, numpy.inf], numpy.float32)  # one a head
LIMIT = numpy.float32(float.fromhex("0x1.62p127"))  # what biases and slopes beyond it count as (wavejit.h)


def draw(*shape):
    return RANDOM.standard_normal(shape).astype(numpy.float16)


def wide(array):
    return array.astype(numpy.float64)


def on(*targets):
    """A test of each target's engine."""
    def of(test):
        @functools.wraps(test)
        def run(self):
            for target in targets:
                with self.subTest(target=target):
                    test(self, ENGINES[target])
        return run
    return of


class Case(unittest.TestCase):
    def same(self, found, wanted):
        self.assertTrue(numpy.array_equal(found, wanted), f"{found} is not {wanted}")

    def near(self, found, wanted, tolerance=4e-3):
        self.assertLess(float(numpy.abs(wide(found) - wide(wanted)).max()), tolerance)


class Sinks(Case):
    # One chunk of keys; two, whose parts another launch merges; none.
    @on(*TARGETS)
    def test_take_the_whole_weight(self, engine):
        for keys, rows, words in ((33, 3, {}), (1100, 1, {"splits": 2}), (0, 2, {})):
            out, lse = engine.attention_forward(draw(1, rows, 4, 64), draw(1, keys, 4, 64), draw(1, keys, 4, 64), sinks=HUGE, lse=True, **words)
            self.same(out.numpy(), numpy.zeros((1, rows, 4, 64)))
            self.same(lse.numpy(), numpy.repeat(HUGE[None, :, None], rows, axis=2))

    @on(*TARGETS)
    def test_of_nan_and_of_rows_that_are_nan_stay_nan(self, engine):
        q, k = draw(1, 2, 4, 64), draw(1, 33, 4, 64)
        q[0, 1] = numpy.nan
        out, lse = engine.attention_forward(q, k, k, sinks=HUGE, lse=True)
        self.same(out.numpy()[0, 0], numpy.zeros((4, 64)))
        self.assertTrue(numpy.isnan(out.numpy()[0, 1]).all() and numpy.isnan(lse.numpy()[0, :, 1]).all())
        out = engine.attention_forward(k[:, :2], k, k, sinks=numpy.full(4, numpy.nan, numpy.float32))
        self.assertTrue(numpy.isnan(out.numpy()).all())

    @on(*TARGETS)
    def test_gradients(self, engine):
        q, k, v, d_out = draw(1, 70, 4, 64), draw(1, 70, 4, 64), draw(1, 70, 4, 64), draw(1, 70, 4, 64)
        d_lse = RANDOM.integers(-8, 9, (1, 4, 70)).astype(numpy.float32)
        out, lse = engine.attention_forward(q, k, v, sinks=HUGE, lse=True)
        dq, dk, dv, d_sinks = engine.attention_backward(q, k, v, out, lse, d_out, d_lse=d_lse, sinks=HUGE, d_sinks=True)
        for gradient in (dq, dk, dv):
            self.same(gradient.numpy(), numpy.zeros((1, 70, 4, 64)))
        self.same(d_sinks.numpy(), d_lse.sum(2))  # LSE is the sink

    @on("gfx942", "gfx950")
    def test_of_latent_attention(self, engine):
        q, cache = draw(1, 2, 4, 576), draw(1, 40, 1, 576)
        for words in ({}, {"indices": numpy.arange(40, dtype=numpy.int32).reshape(1, 1, 40).repeat(2, 1)}):
            out, lse = engine.attention_latent(q, cache, scale=0.1, sinks=HUGE, lse=True, **words)
            self.same(out.numpy(), numpy.zeros((1, 2, 4, 512)))
            self.same(lse.numpy(), numpy.repeat(HUGE[None, :, None], 2, axis=2))


class Biases(Case):
    # Row i has one large entry, at key 7 i + 1; the others are 0.
    rows, keys = 5, 70

    def bias(self, dtype):
        bias = numpy.zeros((1, 1, self.rows, self.keys), numpy.float32)
        for row, number in enumerate((2.37e38, 3e38, LARGEST, 1e38, -LARGEST)):
            bias[0, 0, row, 7 * row + 1] = number
        return reference.bf16_bits(numpy.minimum(bias, numpy.float32(float.fromhex("0x1.FEp127")))) if dtype == "bf16" else bias

    @on(*TARGETS)
    def test_take_the_whole_weight(self, engine):
        q, k, v = draw(1, self.rows, 1, 64), draw(1, self.keys, 1, 64), draw(1, self.keys, 1, 64)
        for dtype in ("fp16", "bf16"):
            given = [reference.bf16_bits(each) for each in (q, k, v)] if dtype == "bf16" else [q, k, v]
            bias = self.bias(dtype)
            out, lse = engine.attention_forward(*given, "fp32", bias=bias, lse=True, dtype=dtype if dtype == "bf16" else None)
            values = reference.from_bf16_bits(given[2]) if dtype == "bf16" else v
            for row in range(4):
                self.same(out.numpy()[0, row, 0], wide(values[0, 7 * row + 1, 0]))
            self.same(lse.numpy()[0, 0, :3], numpy.full(3, LIMIT))
            self.assertTrue(numpy.isfinite(out.numpy()).all() and abs(lse.numpy()[0, 0, 4]) < 10)

    @on(*TARGETS)
    def test_gradients(self, engine):
        q, k, v, d_out = draw(1, self.rows, 1, 64), draw(1, self.keys, 1, 64), draw(1, self.keys, 1, 64), draw(1, self.rows, 1, 64)
        bias = self.bias("fp32")
        out, lse = engine.attention_forward(q, k, v, "fp32", bias=bias, lse=True)
        dq, dk, dv, d_bias = engine.attention_backward(q, k, v, out, lse, d_out, bias=bias, d_bias=True, gradients="fp32")
        for row in range(4):  # one key has all of the weight: nothing moves the output but its value
            self.near(dq.numpy()[0, row], numpy.zeros((1, 64)), 2e-4)
            self.near(d_bias.numpy()[0, 0, row], numpy.zeros(self.keys), 2e-4)
        exact = numpy.zeros((self.keys, 64))
        for row in range(4):
            exact[7 * row + 1] += wide(d_out[0, row, 0])
        scores = wide(q[0, 4, 0]) @ wide(k[0, :, 0]).T / 8
        scores[7 * 4 + 1] = -numpy.inf
        weights = numpy.exp(scores - scores.max())
        exact += (weights / weights.sum())[:, None] * wide(d_out[0, 4, 0])
        self.near(dv.numpy()[0, :, 0], exact, 2e-3)
        self.assertTrue(numpy.isfinite(dk.numpy()).all())

    @on(*TARGETS)
    def test_of_infinity_and_nan_reach_their_row(self, engine):
        q, k = draw(1, 3, 1, 64), draw(1, 70, 1, 64)
        bias = numpy.zeros((1, 1, 3, 70), numpy.float32)
        bias[0, 0, 0, 3], bias[0, 0, 2, 5] = numpy.inf, numpy.nan
        out = engine.attention_forward(q, k, k, bias=bias).numpy()[0, :, 0]
        self.assertEqual([bool(numpy.isnan(out[row]).all()) for row in range(3)], [True, False, True])
        self.near(out[1], reference.attention(wide(q[0]), wide(k[0]), wide(k[0]))[0][1, 0])


class Slopes(Case):
    @on(*TARGETS)
    def test_leave_the_key_on_the_diagonal(self, engine):
        q, k, v, d_out = draw(1, 40, 4, 64), draw(1, 70, 4, 64), draw(1, 70, 4, 64), draw(1, 40, 4, 64)
        scores = numpy.einsum("ihd,ihd->hi", wide(q[0]), wide(k[0, 30:])) / 8
        out, lse = engine.attention_forward(q, k, v, "fp32", alibi=HUGE, causal=True, lse=True)
        self.same(out.numpy()[0], wide(v[0, 30:]))
        self.near(lse.numpy()[0], scores, 2e-5)
        _, _, dv = engine.attention_backward(q, k, v, out, lse, d_out, alibi=HUGE, causal=True, gradients="fp32")
        self.near(dv.numpy()[0, 30:], d_out[0], 4e-3)
        self.same(dv.numpy()[0, :30], numpy.zeros((30, 4, 64)))

    @on(*TARGETS)
    def test_count_as_the_limit_beside_the_diagonal(self, engine):
        q, k = draw(1, 1, 4, 64), draw(1, 1, 4, 64)
        # key 0 is one in front of the row
        out, lse = engine.attention_forward(q, k, k, "fp32", alibi=HUGE, causal=True, causal_prefix=1, lse=True)
        self.same(out.numpy(), wide(k))
        self.near(lse.numpy()[0, :, 0] / 2.0 ** 96, numpy.full(4, -1.0), 1e-6)

    @on(*TARGETS)
    def test_below_zero_leave_the_farthest_key(self, engine):
        q, k, v = draw(1, 40, 4, 64), draw(1, 70, 4, 64), draw(1, 70, 4, 64)
        for slopes in (-HUGE, numpy.array([-1e38, -7e28, -2.0 ** 96, -1e30], numpy.float32)):
            out, lse = engine.attention_forward(q, k, v, "fp32", alibi=slopes, causal=True, lse=True)
            self.same(out.numpy()[0], numpy.repeat(wide(v[0, :1]), 40, axis=0))
            distance = numpy.arange(40)[None, :] + 30.0
            limit = numpy.minimum(-slopes.astype(float), 2.0 ** 96)[:, None]
            self.near(lse.numpy()[0] / (limit * distance), numpy.ones((4, 40)), 1e-6)

    @on(*TARGETS)
    def test_of_nan_stay_nan(self, engine):
        q, k = draw(1, 3, 1, 64), draw(1, 40, 1, 64)
        out = engine.attention_forward(q, k, k, alibi=numpy.array([numpy.nan], numpy.float32), causal=True)
        self.assertTrue(numpy.isnan(out.numpy()).all())


class Merges(Case):
    @on(*TARGETS)
    def test_of_large_sums(self, engine):
        numbers = (3e38, -3e38, LARGEST, -LARGEST)
        pairs = [(a, b) for a in numbers for b in numbers]
        outs = RANDOM.standard_normal((2, len(pairs), 1, 64)).astype(numpy.float32)
        lses = numpy.array(pairs, numpy.float32).T.reshape(2, 1, len(pairs)).copy()
        out, lse = engine.attention_merge(list(outs), list(lses))
        self.same(lse.numpy()[0], lses.max(axis=(0, 1)))
        for row, (a, b) in enumerate(pairs):
            wanted = outs[0 if a > b else 1, row] if a != b else wide(outs[:, row]).mean(0)
            self.near(out.numpy()[row], wanted, 1e-6)


class SoftCaps(Case):
    @on(*TARGETS)
    def test_that_lose_the_score_are_refused(self, engine):
        q, k = draw(1, 3, 2, 64), draw(1, 40, 2, 64)
        exact = reference.attention(wide(q[0]), wide(k[0]), wide(k[0]), softcap=32768.0)[0]
        latent_q, cache = draw(1, 2, 4, 576), draw(1, 40, 1, 576)
        out, lse = engine.attention_forward(q, k, k, softcap=32768.0, lse=True)
        self.near(out.numpy()[0], exact, 2e-2)
        for cap in (32769.0, 1e6, 1e30, numpy.inf, numpy.nan, -1.0):
            refusal = self.assertRaisesRegex(wavejit.InvalidArgument, r"softcap = .*; accepted: 0 \(none\), or a positive number up to 32768 ")
            with refusal:
                engine.attention_forward(q, k, k, softcap=cap)
            with refusal:
                engine.attention_backward(q, k, k, out, lse, q, softcap=cap)
            if engine is not ENGINES["gfx1201"]:
                with refusal:
                    engine.attention_latent(latent_q, cache, scale=0.1, softcap=cap)


class RowsThatSawNoKey(Case):
    @on(*TARGETS)
    def test_give_nothing_whatever_stands_in_their_output(self, engine):
        q, k, v, d_out = draw(1, 70, 2, 64), draw(1, 33, 2, 64), draw(1, 33, 2, 64), draw(1, 70, 2, 64)
        sinks = numpy.full(2, -numpy.inf, numpy.float32)
        out, lse = engine.attention_forward(q, k, v, "fp32", causal=True, lse=True)
        kept = out.numpy().copy()
        self.same(lse.numpy()[0, :, :37], numpy.full((2, 37), -numpy.inf))
        wanted = engine.attention_backward(q, k, v, kept, lse, d_out, causal=True, sinks=sinks, d_sinks=True)
        kept[0, :37] = numpy.nan
        found = engine.attention_backward(q, k, v, kept, lse, d_out, causal=True, sinks=sinks, d_sinks=True)
        self.same(found[0].numpy()[0, :37], numpy.zeros((37, 2, 64)))
        for one, other in zip(found, wanted):
            self.same(one.numpy(), other.numpy())


if __name__ == "__main__":
    unittest.main()
