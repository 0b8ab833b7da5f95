# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Q and K in int8: scales of tensors, heads and rows beside float64, rocMLIR's rounding, and what is refused."""
import unittest

import numpy
import reference
from attention_test import ENGINE, Case, draw, wide

import wavejit

OTHER = wavejit.Engine("sim:gfx942")
RANDOM = numpy.random.default_rng(31)


def integers(*shape):
    return RANDOM.integers(-128, 128, shape).astype(numpy.int8)


def scales(*shape):
    return (RANDOM.uniform(0.5, 1.5, shape) / 64).astype(numpy.float32)


class Integers(Case):
    def test_scales_of_tensors_heads_and_rows(self):
        q, k, v = integers(2, 19, 4, 64), integers(2, 45, 2, 64), draw(2, 45, 2, 64)
        given = (
            (0.02, 0.015),
            (numpy.float32(0.02), [0.01, 0.02]),
            (scales(4), scales(2)),
            (scales(2, 4), scales(2, 2)),
            (scales(2, 19, 4), scales(2, 45, 2)),
            (scales(2, 1, 4, 1), scales(1, 45, 1, 1)),
        )

        def rows(scale):
            scale = numpy.asarray(scale, numpy.float64)
            return scale[:, None, :, None] if scale.ndim == 2 else scale[..., None] if scale.ndim in (1, 3) else scale

        for engine in (ENGINE, OTHER):
            for q_scale, k_scale in given:
                with self.subTest(target=engine.target, q=numpy.shape(q_scale), k=numpy.shape(k_scale)):
                    out, lse = engine.attention_forward(q, k, v, q_scale=q_scale, k_scale=k_scale, causal=True, lse=True)
                    self.assertEqual((out.dtype, lse.dtype), ("fp16", "fp32"))
                    counts = (wide(q) * rows(q_scale), wide(k) * rows(k_scale))
                    for b in range(2):
                        exact, exact_lse = reference.attention(counts[0][b], counts[1][b], wide(v[b]), causal=True)
                        self.close(out.numpy()[b], exact)
                        self.close(lse.numpy()[b], exact_lse)

    def test_the_type_is_vs(self):
        q, k, v = integers(1, 7, 2, 64), integers(1, 40, 1, 64), reference.bf16_bits(draw(1, 40, 1, 64))
        call = ENGINE.attention_forward_call(q, k, v, dtype="bf16", q_scale=0.02, k_scale=0.02)
        self.assertEqual(call.describe(), "attention_forward bf16 b1 q7 k40 h2/1 d64 qk=i8")
        out = call.run()
        self.assertEqual(out.dtype, "bf16")
        exact, _ = reference.attention(wide(q[0]) * 0.02, wide(k[0]) * 0.02, reference.from_bf16_bits(v[0]))
        self.close(out.numpy("float32")[0], exact, 1e-2)
        bias = RANDOM.standard_normal((7, 40)).astype(numpy.float32)
        found = ENGINE.attention_forward(q, k, v, "fp32", dtype="bf16", q_scale=0.02, k_scale=0.02, bias=bias)
        self.close(found.numpy()[0], reference.attention(wide(q[0]) * 0.02, wide(k[0]) * 0.02, reference.from_bf16_bits(v[0]), bias=wide(bias))[0], 1e-2)

    def test_arrays_of_the_device_and_other_orders(self):
        q, k, v = integers(1, 21, 2, 64), integers(1, 50, 2, 64), draw(1, 50, 2, 64)
        exact = ENGINE.attention_forward(q, k, v, q_scale=0.02, k_scale=0.02).numpy()
        on_device = [ENGINE.array(each) for each in (q, k, v)]
        self.assertEqual([each.dtype for each in on_device], ["int8", "int8", "fp16"])
        self.assertTrue(numpy.array_equal(on_device[0].numpy(), q))
        self.assertTrue(numpy.array_equal(ENGINE.attention_forward(*on_device, q_scale=0.02, k_scale=0.02).numpy(), exact))
        # [B, H, D, S]
        turned = [ENGINE.array(numpy.ascontiguousarray(each.transpose(0, 2, 3, 1))).permute(0, 3, 1, 2) for each in (q, k, v)]
        call = ENGINE.attention_forward_call(*turned, q_scale=0.02, k_scale=0.02)
        self.assertIn("qk=i8 trans_q trans_k trans_v", call.describe())
        self.assertTrue(numpy.array_equal(call.run().numpy(), exact))

    def test_scores_rounded_as_rocmlir_does(self):
        q, k, v = integers(1, 9, 1, 64) // 32, integers(1, 33, 1, 64) // 32, draw(1, 33, 1, 64)
        bias = RANDOM.standard_normal((9, 33)).astype(numpy.float16)
        out, lse = ENGINE.attention_forward(q, k, v, scale=0.1, bias=bias, score_rounding="fp16", lse=True)
        sums = numpy.einsum("ihd,jhd->ij", q[0].astype(numpy.int64), k[0].astype(numpy.int64)).astype(numpy.float32)
        x = (sums * numpy.float32(0.1) + bias.astype(numpy.float32)).astype(numpy.float16).astype(numpy.float64)
        weights = numpy.exp(x - x.max(axis=1, keepdims=True))
        self.close(lse.numpy()[0, 0], numpy.log(weights.sum(axis=1)) + x.max(axis=1), 1e-6)
        self.close(out.numpy()[0, :, 0], weights / weights.sum(axis=1, keepdims=True) @ wide(v[0, :, 0]))

    def test_refused_by_name(self):
        q, k, v = integers(1, 3, 4, 64), integers(1, 32, 2, 64), draw(1, 32, 2, 64)
        bad, unsupported = wavejit.InvalidArgument, wavejit.Unsupported
        for kind, pattern, given, words in (
            (bad, "k: dtype fp16; accepted: int8$", (q, ENGINE.array(v), v), {}),
            (bad, "v: dtype int8; accepted: fp16, bf16$", (q, k, k), {}),
            (bad, "v: dtype fp16; accepted: int8$", (draw(1, 3, 4, 64), k, v), {}),
            (bad, r"^q_scale\.sizes\[0\] = 3; accepted: 1 or 4", (q, k, v), {"q_scale": [1.0, 2.0, 3.0]}),
            (bad, r"^q_scale: given; accepted: None beside q of fp16: only q in 8 bits has a scale", (draw(1, 3, 4, 64), v, v), {"q_scale": 0.5}),
            (bad, "^v_scale: given; accepted: None beside v of fp16", (q, k, v), {"v_scale": 0.5}),
            (bad, "score_rounding = 'bf16'; accepted: 'fp32', 'fp16'$", (q, k, v), {"score_rounding": "bf16"}),
            (bad, "score_rounding = 1; accepted: 0 beside q", (draw(1, 3, 4, 64), v, v), {"score_rounding": "fp16"}),
            (unsupported, "^q.dtype = int8: .*pages", (q, k.reshape(2, 16, 2, 64), v.reshape(2, 16, 2, 64)), {"block_table": [[0, 1]], "key_lengths": [32]}),
        ):
            with self.subTest(pattern=pattern), self.assertRaisesRegex(kind, pattern):
                if "block_table" in words:
                    words["block_table"] = numpy.array(words["block_table"], numpy.int32)
                ENGINE.attention_forward(*given, **words)


if __name__ == "__main__":
    unittest.main()
