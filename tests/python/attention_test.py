# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls against float64: dense, packed, paged, padded, modified; softmax_lse; every element."""
import unittest

import numpy
import reference

import wavejit

ENGINE = wavejit.Engine("sim:gfx950")
RANDOM = numpy.random.default_rng(17)


def draw(*shape):
    return RANDOM.standard_normal(shape).astype(numpy.float16)


def wide(array):
    return array.astype(numpy.float64)


class Case(unittest.TestCase):
    def close(self, found, exact, tolerance=2e-3):
        found = wide(found)
        self.assertEqual(found.shape, exact.shape)
        self.assertTrue(numpy.array_equal(numpy.isinf(found), numpy.isinf(exact)))
        finite = numpy.isfinite(exact)
        self.assertTrue(numpy.isfinite(found[finite]).all())
        error = numpy.abs(found[finite] - exact[finite])
        self.assertLess(float((error / (1 + numpy.abs(exact[finite]))).max(initial=0)), tolerance)


class Dense(Case):
    def test_every_element_and_lse(self):
        q, k, v = draw(2, 19, 4, 64), draw(2, 45, 2, 64), draw(2, 45, 2, 64)
        out, lse = ENGINE.attention_forward(q, k, v, causal=True, lse=True)
        self.assertEqual((out.dtype, lse.dtype, lse.shape), ("fp16", "fp32", (2, 4, 19)))
        for b in range(2):
            exact, exact_lse = reference.attention(wide(q[b]), wide(k[b]), wide(v[b]), causal=True)
            self.close(out[b].numpy(), exact)
            self.close(lse[b].numpy(), exact_lse)

    def test_a_plain_call_has_no_mask_and_takes_a_scale(self):
        q, k, v = draw(1, 5, 2, 64), draw(1, 33, 2, 64), draw(1, 33, 2, 64)
        for scale in (None, 0.5, 0.0, 0):
            with self.subTest(scale=scale):
                out = ENGINE.attention_forward(q, k, v, scale=scale)
                self.close(out.numpy()[0], reference.attention(wide(q[0]), wide(k[0]), wide(v[0]), scale=scale)[0])

    def test_bf16_as_bits_of_numpy(self):
        bits = [reference.bf16_bits(draw(1, n, h, 64)) for n, h in ((7, 2), (40, 1), (40, 1))]
        out = ENGINE.attention_forward(*bits, dtype="bf16")
        self.assertEqual(out.dtype, "bf16")
        exact, _ = reference.attention(*(reference.from_bf16_bits(each[0]) for each in bits))
        self.close(out.numpy("float32")[0], exact, 1e-2)
        self.assertTrue(numpy.array_equal(reference.from_bf16_bits(out.numpy("uint16")), wide(out.numpy("float32"))))

    def test_outputs_of_the_callers(self):
        q, k, v = draw(1, 9, 2, 64), draw(1, 32, 2, 64), draw(1, 32, 2, 64)
        exact, exact_lse = reference.attention(wide(q[0]), wide(k[0]), wide(v[0]))
        host, host_lse = numpy.zeros_like(q), numpy.zeros((1, 2, 9), numpy.float32)
        returned = ENGINE.attention_forward(q, k, v, host, lse=host_lse)
        self.assertIs(returned[0], host)
        self.close(host[0], exact)
        self.close(host_lse[0], exact_lse)
        device = ENGINE.empty(q.shape, "fp16")
        self.assertIs(ENGINE.attention_forward(q, k, v, out=device), device)
        self.assertTrue(numpy.array_equal(device.numpy(), host))
        wide_out = numpy.zeros(q.shape, numpy.float32)
        ENGINE.attention_forward(q, k, v, wide_out)
        self.assertTrue(numpy.array_equal(wide_out.astype(numpy.float16), host))
        self.assertFalse(numpy.array_equal(wide_out, wide(host)))
        self.assertTrue(numpy.array_equal(ENGINE.attention_forward(q, k, v, "fp32").numpy(), wide_out))
        strided = numpy.zeros((1, 9, 4, 64), numpy.float16)
        ENGINE.attention_forward(q, k, v, strided[:, :, ::2])
        self.assertTrue(numpy.array_equal(strided[:, :, ::2], host))
        self.assertFalse(strided[:, :, 1::2].any())

    def test_out_in_8_bits(self):
        q, k, v = draw(1, 40, 4, 64), draw(1, 50, 2, 64), draw(1, 50, 2, 64)
        scaled = ENGINE.attention_forward(q, k, v, out="fp32").numpy() * (numpy.float32(1) / numpy.float32(0.05))
        whole = numpy.clip(numpy.rint(scaled), -128, 127).astype(numpy.int8)
        for scale in (0.05, numpy.float32(0.05), ENGINE.array(numpy.full(1, 0.05, numpy.float32))):
            self.assertTrue(numpy.array_equal(ENGINE.attention_forward(q, k, v, out="int8", o_scale=scale).numpy(), whole))
        host = numpy.zeros((1, 40, 4, 64), numpy.uint8)
        ENGINE.attention_forward(q, k, v, host, o_scale=0.05, out_dtype="e4m3")
        made = ENGINE.attention_forward(q, k, v, out="e4m3", o_scale=0.05)
        self.assertTrue(numpy.array_equal(made.numpy("uint8"), host))
        self.assertLess(float(numpy.abs(made.numpy("float32") - scaled).max()), 2.1)  # half of what numbers up to 64 are apart
        merged, _ = ENGINE.attention_merge([scaled[0]] * 2, [numpy.zeros((4, 40), numpy.float32)] * 2, out="int8", o_scale=1)
        self.assertTrue(numpy.array_equal(merged.numpy(), whole[0]))
        parts = [q[0]] * 2, [numpy.zeros((4, 40), numpy.float32)] * 2
        range_of_it = "accepted: a number from 2.-126 to 2.126, or fp32 of one element"
        for words, pattern in (({"out": "e4m3"}, "^o_scale is missing beside out of e4m3; " + range_of_it),
                               ({"o_scale": 1.0}, "^o_scale = 1.0 beside out of fp16; accepted: None, or out in 8 bits: 'e4m3', "),
                               ({"o_scale": numpy.ones(1, numpy.float32)}, "^o_scale: an array beside out of fp16; accepted: None, or out in 8 bits"),
                               ({"out": "fp32", "o_scale": 1}, "^o_scale = 1 beside out of fp32; accepted: None, or out in 8 bits"),
                               ({"out_dtype": "e4m3", "o_scale": 1.0}, "^out_dtype = 'e4m3' without out; accepted: out='e4m3' for a new array, or out_dtype beside yours"),
                               ({"out": "int8", "out_dtype": "e4m3", "o_scale": 1.0}, "^out_dtype = 'e4m3' beside out = 'int8'; accepted: out='e4m3'"),
                               ({"out": "e4m3", "o_scale": numpy.ones(2, numpy.float32)}, r"^o_scale: shape \(2,\); accepted: one element"),
                               ({"out": "e5m2", "o_scale": 1.0}, "^out: dtype e5m2; accepted"),
                               *(({"out": "e4m3", "o_scale": scale}, f"^o_scale = {told}; {range_of_it}")
                                 for scale, told in ((0, "0"), (-1.0, "-1.0"), (1e-50, "1e-50"), (1e39, "1e.39"), (10**400, "10{79}…"), (float("nan"), "nan"), (numpy.float32(0), r"np.float32\(0.0\)")))):
            with self.subTest(words=words), self.assertRaisesRegex(wavejit.InvalidArgument, pattern):
                ENGINE.attention_forward(q, k, v, **words)
            with self.subTest(words=words, call="merge"), self.assertRaisesRegex(wavejit.InvalidArgument, pattern):
                ENGINE.attention_merge(*parts, **words)
        self.assertRaisesRegex(TypeError, "o_scale: a str; accepted: a number, or an array", ENGINE.attention_forward, q, k, v, "e4m3", o_scale="1")

    def test_out_in_8_bits_of_any_head_dim(self):
        """Rows of O begin at multiples of 16 bytes: new arrays have space behind them, and copies of host memory. What is the caller's is refused by its strides."""
        for dim in (8, 40, 72):
            q, k = draw(1, 12, 2, dim), draw(1, 40, 1, dim)
            scaled = ENGINE.attention_forward(q, k, k, out="fp32").numpy() * (numpy.float32(1) / numpy.float32(0.05))
            whole = numpy.clip(numpy.rint(scaled), -128, 127).astype(numpy.int8)
            made = ENGINE.attention_forward(q, k, k, "int8", o_scale=0.05)
            self.assertEqual(made.shape, q.shape)
            self.assertTrue(numpy.array_equal(made.numpy(), whole))
            packed = ENGINE.attention_forward(q, k, k, "int8", o_scale=0.05, query_starts=[0, 7], key_starts=[0, 40])
            self.assertTrue((packed.numpy()[:, 7:] == 0).all())
            host = numpy.zeros(q.shape, numpy.int8)
            ENGINE.attention_forward(q, k, k, host, o_scale=0.05)
            self.assertTrue(numpy.array_equal(host, whole))
            room = ENGINE.empty((1, 12, 2, 80), "int8")[..., :dim]
            ENGINE.attention_forward(q, k, k, room, o_scale=0.05)
            self.assertTrue(numpy.array_equal(room.numpy(), whole))
            with self.assertRaisesRegex(wavejit.Unsupported, rf"^out.strides\[2\] = {dim}; accepted: multiples of 16, by space behind rows, beside o in 8 bits"):
                ENGINE.attention_forward(q, k, k, ENGINE.empty(q.shape, "int8"), o_scale=0.05)
        with self.assertRaisesRegex(wavejit.Unsupported, r"^out.strides\[2\] = 72; accepted: multiples of 16, "):
            ENGINE.attention_forward(*[draw(1, 12, 2, 64)] * 3, ENGINE.empty((1, 12, 2, 72), "e4m3")[..., :64], o_scale=1.0)
        with self.assertRaisesRegex(wavejit.Unsupported, r"^q.strides\[1\] = 76; accepted: multiples of 8, by space behind rows, beside head dim 72, which tiles pad"):
            ENGINE.attention_forward(ENGINE.empty((1, 12, 1, 76), "fp16")[..., :72], k, k)
        with self.assertRaisesRegex(wavejit.Unsupported, r"^q.strides\[3\] = 12; accepted: 1 beside head dim 72"):
            ENGINE.attention_forward(ENGINE.empty((1, 72, 1, 12), "fp16").permute(0, 3, 2, 1), k, k)

    def test_its_scale_is_not_written(self):
        """O may not move onto its own scale in a call that was launched before, nor LSE stand there."""
        q, k = draw(1, 4, 2, 64), draw(1, 70, 2, 64)
        scales = ENGINE.array(numpy.full(4096, 0.05, numpy.float32))
        call = ENGINE.attention_forward_call(q, k, k, out="e4m3", o_scale=scales[1024:1025])
        call.launch()
        call._call.set_tensor("o", scales._address + 4096, call.out._dtype.c, call.out.shape, call.out.strides)
        self.assertRaisesRegex(wavejit.InvalidArgument, "o_scale", call.launch)
        slopes = ENGINE.attention_forward_call(q, k, k, alibi=scales[1024:1026])
        slopes.launch()
        slopes._call.set_tensor("o", scales._address + 4096, slopes.out._dtype.c, slopes.out.shape, slopes.out.strides)
        self.assertRaisesRegex(wavejit.InvalidArgument, "alibi", slopes.launch)
        call = ENGINE.attention_forward_call(q, k, k, out="e4m3", o_scale=scales[:1], lse=True)
        call._call.set_address("o_scale", call.lse._address)
        self.assertRaisesRegex(wavejit.InvalidArgument, "o_scale", call.launch)
        merge = ENGINE.attention_merge_call([q[0]] * 2, [numpy.zeros((2, 4), numpy.float32)] * 2, out="e4m3", o_scale=scales[:1])
        merge._call.set_address("o_scale", merge.lse._address)
        self.assertRaisesRegex(wavejit.InvalidArgument, "o_scale", merge.launch)

    def test_parts_are_merged_into_types_that_the_target_has(self):
        """explain refuses what the merge behind split keys cannot write."""
        line = "attention_forward fp16 b1 q2 k2100 h2 d64 o=e4m3_fnuz splits=2 launches=2"
        self.assertRaises(wavejit.Unsupported, wavejit.explain, line, target="gfx950")
        wavejit.explain(line, target="gfx942")

    def test_queries_in_fp32_are_rounded_once(self):
        q, k, v = draw(1, 9, 2, 64), draw(1, 32, 2, 64), draw(1, 32, 2, 64)
        between = (wide(q) * (1 + 0.9 * 2**-13 * numpy.where(numpy.arange(64) % 2, 1, -1))).astype(numpy.float32)
        self.assertFalse(numpy.array_equal(between, wide(q)))
        self.assertTrue(numpy.array_equal(between.astype(numpy.float16), q))
        out = ENGINE.attention_forward(between, k, v)
        self.assertEqual(out.dtype, "fp16")
        self.assertTrue(numpy.array_equal(out.numpy(), ENGINE.attention_forward(q, k, v).numpy()))
        call = ENGINE.attention_forward_call(between, *(ENGINE.array(reference.bf16_bits(wide(each)), "bf16") for each in (k, v)))
        self.assertIn(" bf16 ", call.describe())
        self.assertIn(" q=fp32", call.describe())
        with self.assertRaisesRegex(wavejit.InvalidArgument, "k: dtype fp32; accepted: fp16, bf16, "):
            ENGINE.attention_forward(between, between, between)

    def test_heads_first(self):
        q, k, v = draw(1, 2, 9, 64), draw(1, 2, 32, 64), draw(1, 2, 32, 64)
        views = [ENGINE.array(each).permute(0, 2, 1, 3) for each in (q, k, v)]
        out = ENGINE.empty((1, 2, 9, 64), "fp16")
        ENGINE.attention_forward(*views, out.permute(0, 2, 1, 3))
        exact, _ = reference.attention(*(wide(each[0]).transpose(1, 0, 2) for each in (q, k, v)))
        self.close(out.numpy()[0].transpose(1, 0, 2), exact)

    def test_windows_prefix_and_modifiers(self):
        q, k, v = draw(1, 12, 2, 64), draw(1, 37, 2, 64), draw(1, 37, 2, 64)
        words = [
            ({"window": (5, 3)}, {"window": (5, 3)}),
            ({"window": (None, 0)}, {"window": (None, 0)}),
            ({"causal": True, "window": [4, None]}, {"causal": True, "window": (4, None)}),
            ({"causal": True, "causal_prefix": 7}, {"causal": True, "prefix": 7}),
            ({"causal": True, "local_chunk": 5}, {"causal": True, "chunk": 5}),
        ]
        bias = draw(1, 2, 12, 37)
        alibi, sinks = numpy.array([0.25, 0.5], numpy.float32), numpy.array([1.5, -3.0], numpy.float32)
        words.append(({"softcap": 2.0, "bias": bias, "alibi": alibi, "sinks": sinks}, {"softcap": 2.0, "bias": wide(bias[0]), "alibi": alibi, "sinks": sinks}))
        for given, meant in words:
            with self.subTest(**{name: str(value)[:20] for name, value in given.items()}):
                out, lse = ENGINE.attention_forward(q, k, v, lse=True, **given)
                exact, exact_lse = reference.attention(wide(q[0]), wide(k[0]), wide(v[0]), **meant)
                self.close(out.numpy()[0], exact)
                self.close(lse.numpy()[0], exact_lse)

    def test_flags_say_which_sequences_are_causal(self):
        q, k, v = draw(3, 12, 2, 64), draw(3, 37, 2, 64), draw(3, 37, 2, 64)
        causal, whole = (ENGINE.attention_forward(q, k, v, causal=each).numpy() for each in (True, False))
        for flags in ([True, False, True], numpy.array([1, 0, 7], numpy.int8), numpy.array([True, False, True]), ENGINE.array(numpy.array([-1, 0, 1], numpy.int8))):
            with self.subTest(kind=type(flags).__name__):
                out = ENGINE.attention_forward(q, k, v, causal=True, causal_flags=flags).numpy()
                for b, expected in enumerate((causal, whole, causal)):
                    self.assertTrue(numpy.array_equal(out[b], expected[b]), b)
        with self.assertRaisesRegex(wavejit.InvalidArgument, r"causal_flags: shape \(2,\); accepted: \[sequences\], which is \[3\]"):
            ENGINE.attention_forward(q, k, v, causal=True, causal_flags=[True, False])
        with self.assertRaisesRegex(wavejit.Unsupported, "^causal = False; accepted: causal, alone or with causal_prefix, beside causal_flags"):
            ENGINE.attention_forward(q, k, v, causal_flags=[True, False, True])
        with self.assertRaisesRegex(wavejit.InvalidArgument, "^local_chunk: given; accepted: local_chunk with causal and without window"):
            ENGINE.attention_forward(q, k, v, local_chunk=8)

    def test_masks(self):
        q, k, v = draw(1, 70, 4, 64), draw(1, 130, 2, 64), draw(1, 130, 2, 64)
        shown = numpy.arange(130)[None, :] <= numpy.arange(70)[:, None] + 60
        causal = ENGINE.attention_forward(q, k, v, causal=True).numpy()
        for mask in (shown[None, None], shown, numpy.broadcast_to(shown, (1, 4, 70, 130)), shown.astype(numpy.uint8) * 255, ENGINE.array(shown.astype(numpy.int8))):
            with self.subTest(shape=mask.shape, dtype=str(mask.dtype)):
                self.assertTrue(numpy.array_equal(ENGINE.attention_forward(q, k, v, mask=mask).numpy(), causal))
        call = ENGINE.attention_forward_call(q, k, v, mask=numpy.zeros((1, 4, 70, 130), bool), lse=True)
        self.assertIn(" bool_mask=h", call.describe())
        out, lse = call.run()
        self.assertFalse(out.numpy().any())
        self.assertTrue((lse.numpy() == -numpy.inf).all())
        with self.assertRaisesRegex(wavejit.InvalidArgument, r"^mask.sizes\[1\] = 129; accepted: 130"):
            ENGINE.attention_forward(q, k, v, mask=shown[:, :129])
        with self.assertRaisesRegex(wavejit.Unsupported, "^mask beside local chunks"):
            ENGINE.attention_forward(q, k, v, causal=True, local_chunk=7, mask=shown)

    def test_biases_by_tile(self):
        q, k, v = draw(1, 70, 4, 64), draw(1, 130, 2, 64), draw(1, 130, 2, 64)
        bias = numpy.where(numpy.arange(130)[None, :] <= numpy.arange(70)[:, None] + 60, 0, -numpy.inf)
        bias[5:9, :20] = 0.25
        for dtype in (numpy.float16, numpy.float32):
            with self.subTest(dtype=dtype.__name__):
                call = ENGINE.attention_forward_call(q, k, v, bias=bias.astype(dtype), bias_by_tile=True)
                self.assertIn(" bias_by_tile", call.describe())
                self.assertTrue(numpy.array_equal(call.run().numpy(), ENGINE.attention_forward(q, k, v, bias=bias.astype(dtype)).numpy()))
        with self.assertRaisesRegex(wavejit.InvalidArgument, "bias_by_tile = True without a bias"):
            ENGINE.attention_forward(q, k, v, bias_by_tile=True)

    def test_no_keys(self):
        out, lse = ENGINE.attention_forward(draw(1, 3, 2, 64), draw(1, 0, 2, 64), draw(1, 0, 2, 64), lse=True)
        self.assertFalse(out.numpy().any())
        self.assertTrue((lse.numpy() == -numpy.inf).all())

    def test_splits_with_a_workspace_show_in_no_bit(self):
        q, k, v = (ENGINE.array(each) for each in (draw(1, 1, 4, 64), draw(1, 2200, 2, 64), draw(1, 2200, 2, 64)))
        whole = ENGINE.attention_forward(q, k, v, splits=1).numpy()
        call = ENGINE.attention_forward_call(q, k, v, splits=3)
        self.assertEqual(call.workspace_bytes(), 4 * 3 * (64 + 4) * 4)
        workspace = ENGINE.empty((call.workspace_bytes() // 4,), "fp32")
        self.assertTrue(numpy.array_equal(ENGINE.attention_forward(q, k, v, splits=3, workspace=workspace).numpy(), whole))
        self.close(whole[0], reference.attention(*(wide(each.numpy()[0]) for each in (q, k, v)))[0])

    def test_one_launch_or_two_show_in_no_bit(self):
        q, k, v = (ENGINE.array(each) for each in (draw(1, 1, 4, 64), draw(1, 2200, 2, 64), draw(1, 2200, 2, 64)))
        outs = []
        for launches in (1, 2, None):
            call = ENGINE.attention_forward_call(q, k, v, splits=3, launches=launches)
            spec = call.launch_with_report()["kernel_spec"]
            if launches is not None:
                self.assertEqual(" merged " in spec, launches == 1, spec)
            outs.append(call.out.numpy())
        self.assertTrue(all(numpy.array_equal(each, outs[0]) for each in outs))
        self.assertTrue(outs[0].any())
        with self.assertRaisesRegex(wavejit.InvalidArgument, "launches = 3; accepted: None, 1, 2"):
            ENGINE.attention_forward(q, k, v, launches=3)

    def test_the_same_call_over_other_memory_by_names(self):
        first, other = ([ENGINE.array(draw(1, length, 2, 64)) for length in (5, 33, 33)] for _ in range(2))
        call, out = ENGINE.attention_forward_call(*first), ENGINE.empty((1, 5, 2, 64), "fp16")
        names = ["".join(name) for name in (("q",), ("k",), ("v",), ("o", "ut"))]  # of which one is not interned
        call._call.launch_over(0, {name: array._address for name, array in zip(names, (*other, out))}, 0)
        self.assertTrue(numpy.array_equal(out.numpy(), ENGINE.attention_forward(*other).numpy()))
        for name in ("scale", "o", 1):
            with self.subTest(name), self.assertRaisesRegex(TypeError, f"^{name!r} does not move from call to call$"):
                call._call.launch_over(0, {name: 0}, 0)


class Lengths(Case):
    def test_packed(self):
        query_lengths, key_lengths = [3, 0, 17], [20, 5, 17]
        q, k, v = draw(1, 20, 2, 64), draw(1, 42, 1, 64), draw(1, 42, 1, 64)
        starts, key_starts = numpy.cumsum([0, *query_lengths]), numpy.cumsum([0, *key_lengths])
        out, lse = ENGINE.attention_forward(q, k, v, query_starts=starts, key_starts=list(map(int, key_starts)), causal=True, lse=True, check_lengths=True)
        self.assertEqual(lse.shape, (1, 2, 20))
        for b in range(3):
            rows, columns = slice(starts[b], starts[b + 1]), slice(key_starts[b], key_starts[b + 1])
            exact, exact_lse = reference.attention(wide(q[0, rows]), wide(k[0, columns]), wide(v[0, columns]), causal=True)
            self.close(out.numpy()[0, rows], exact)
            self.close(lse.numpy()[0, :, rows], exact_lse)

    def test_packed_with_lengths_on_the_device(self):
        q, k = draw(1, 20, 2, 64), draw(1, 42, 1, 64)
        starts, key_starts = (ENGINE.array(numbers, "int32") for numbers in ([0, 3, 20], [0, 20, 42]))
        with self.assertRaisesRegex(wavejit.InvalidArgument, "max_query_length is missing"):
            ENGINE.attention_forward(q, k, k, query_starts=starts, key_starts=key_starts)
        out = ENGINE.attention_forward(q, k, k, query_starts=starts, key_starts=key_starts, max_query_length=17, max_key_length=22)
        self.close(out.numpy()[0, :3], reference.attention(wide(q[0, :3]), wide(k[0, :20]), wide(k[0, :20]))[0])
        self.close(out.numpy()[0, 3:], reference.attention(wide(q[0, 3:]), wide(k[0, 20:]), wide(k[0, 20:]))[0])

    def test_a_packed_batch_without_any_key(self):
        q, k = draw(1, 20, 2, 64), draw(1, 42, 1, 64)
        out, lse = ENGINE.attention_forward(q, k, k, query_starts=[0, 3, 20], key_starts=[0, 0, 0], lse=True)
        self.assertTrue((wide(out.numpy()) == 0).all())
        self.assertTrue((lse.numpy() == -numpy.inf).all())
        dq, _, _ = ENGINE.attention_backward(q, k, k, out, lse, q, query_starts=[0, 3, 20], key_starts=[0, 0, 0])
        self.assertTrue((dq.numpy() == 0).all())

    def test_gradients_of_sinks_and_sums_of_two_calls(self):
        q, k, v, d_out = draw(2, 20, 2, 64), draw(2, 40, 1, 64), draw(2, 40, 1, 64), draw(2, 20, 2, 64)
        sinks = numpy.array([0.5, 2.0], numpy.float32)
        out, lse = ENGINE.attention_forward(q, k, v, "fp32", sinks=sinks, lse=True)
        whole = ENGINE.attention_backward(q, k, v, out, lse, d_out, sinks=sinks, d_sinks=True, gradients="fp32")
        delta = (wide(out.numpy()) * wide(d_out)).sum(-1).swapaxes(1, 2)
        exact = -(numpy.exp(sinks[None, :, None] - wide(lse.numpy())) * delta).sum(-1)
        self.assertLess(abs(whole[3].numpy() - exact).max(), 1e-4)
        given = ENGINE.attention_backward(q, k, v, None, lse, d_out, delta=numpy.ascontiguousarray(delta, numpy.float32), gradients="fp32")
        self.assertLess(abs(given[0].numpy() - whole[0].numpy()).max(), 1e-2)
        dq = ENGINE.empty(q.shape, "fp32")
        ENGINE.attention_backward(q, k[:, :16].copy(), v[:, :16].copy(), out, lse, d_out, dq, gradients="fp32", sums_behind=["dq"])
        ENGINE.attention_backward(q, k[:, 16:].copy(), v[:, 16:].copy(), out, lse, d_out, dq, gradients="fp32", sums_before=["dq"])
        self.assertTrue((dq.numpy() == whole[0].numpy()).all())
        with self.assertRaisesRegex(wavejit.InvalidArgument, "sums_before = .*accepted: a list of 'dq', 'dk_dv'"):
            ENGINE.attention_backward(q, k, v, out, lse, d_out, dq, gradients="fp32", sums_before="dq")
        # Memory of the call's own holds no sums.
        with self.assertRaisesRegex(wavejit.InvalidArgument, r"sums_before = \['dk_dv'\] without dk and dv; accepted: the sums of the calls before"):
            ENGINE.attention_backward(q, k, v, out, lse, d_out, dq, gradients="fp32", sums_before=["dk_dv"])

    def test_gradient_of_a_bias(self):
        q, k, v, d_out = draw(2, 6, 2, 64), draw(2, 13, 1, 64), draw(2, 13, 1, 64), draw(2, 6, 2, 64)
        bias = draw(1, 2, 6, 13)
        out, lse = ENGINE.attention_forward(q, k, v, bias=bias, lse=True)
        given = ENGINE.attention_backward(q, k, v, out, lse, d_out, bias=bias, d_bias=True)
        self.assertEqual((len(given), given[3].shape), (4, (1, 2, 6, 13)))
        scores = numpy.einsum("bqhd,bkd->bhqk", wide(q), wide(k[:, :, 0])) / 8 + wide(bias)
        weights = numpy.exp(scores - wide(lse.numpy())[..., None])
        d_weights = numpy.einsum("bqhd,bkd->bhqk", wide(d_out), wide(v[:, :, 0]))
        delta = (wide(out.numpy()) * wide(d_out)).sum(-1).swapaxes(1, 2)
        exact = (weights * (d_weights - delta[..., None])).sum(0, keepdims=True)
        self.assertLess(abs(wide(given[3].numpy()) - exact).max(), 2e-2)
        of_my_own = numpy.zeros((1, 2, 6, 13), bias.dtype)
        ENGINE.attention_backward(q, k, v, out, lse, d_out, bias=bias, d_bias=of_my_own)
        self.assertTrue(numpy.array_equal(of_my_own, given[3].numpy()))
        with self.assertRaisesRegex(wavejit.InvalidArgument, "d_bias without a bias"):
            ENGINE.attention_backward(q, k, v, out, lse, d_out, d_bias=True)

    def test_key_lengths_and_left_padding(self):
        q, k, v = draw(2, 4, 2, 64), draw(2, 30, 1, 64), draw(2, 30, 1, 64)
        k[0, :6] = v[0, :6] = k[1, 25:] = v[1, 25:] = numpy.nan
        out = ENGINE.attention_forward(q, k, v, causal=True, first_keys=[6, 0], key_lengths=[20, 25])
        self.close(out.numpy()[0], reference.attention(wide(q[0]), wide(k[0, 6:26]), wide(v[0, 6:26]), causal=True)[0])
        self.close(out.numpy()[1], reference.attention(wide(q[1]), wide(k[1, :25]), wide(v[1, :25]), causal=True)[0])

    def test_pages_of_a_cache_with_k_and_v_in_turn(self):
        q = draw(2, 1, 4, 64)
        host = draw(9, 2, 16, 2, 64)  # pages, K and V, keys, heads, dim
        cache = ENGINE.array(host)
        table, lengths = numpy.array([[4, 1, 7], [8, 0, 99]], numpy.int32), [40, 21]
        out = ENGINE.attention_forward(q, cache[:, 0], cache[:, 1], block_table=table, key_lengths=lengths, causal=True)
        listed = ENGINE.attention_forward(q, cache[:, 0], cache[:, 1], block_table=[4, 1, 7, 8, 0], table_starts=[0, 3, 5], key_lengths=lengths, causal=True)
        self.assertTrue(numpy.array_equal(out.numpy(), listed.numpy()))
        for b in range(2):
            pages = table[b, : -(-lengths[b] // 16)]
            k, v = (wide(host[pages, which]).reshape(-1, 2, 64)[: lengths[b]] for which in (0, 1))
            self.close(out.numpy()[b], reference.attention(wide(q[b]), k, v, causal=True)[0])

    def test_vectorised_pages(self):
        q, k, v = draw(2, 3, 4, 64), draw(9, 16, 2, 64), draw(9, 16, 2, 64)
        words = {"block_table": [[4, 1, 7], [8, 0, 5]], "key_lengths": [40, 21], "causal": True}
        out = ENGINE.attention_forward(q, k, v, **words)
        k8 = numpy.ascontiguousarray(k.reshape(9, 16, 2, 8, 8).transpose(0, 2, 3, 1, 4))
        by_dims = numpy.ascontiguousarray(v.transpose(0, 2, 3, 1))
        by_keys = numpy.ascontiguousarray(v.reshape(9, 2, 8, 2, 64).transpose(0, 3, 1, 4, 2))
        for pages in (by_dims, by_keys):
            same = ENGINE.attention_forward(q, k8, pages, **words)
            self.assertTrue(numpy.array_equal(out.numpy(), same.numpy()))
        with self.assertRaisesRegex(wavejit.InvalidArgument, "k: shape .*accepted: .pages, heads, head dim / 8"):
            ENGINE.attention_forward(q, k8[..., :4], by_dims, **words)
        with self.assertRaisesRegex(wavejit.InvalidArgument, "v.sizes.1. .length. = 32"):
            ENGINE.attention_forward(q, k8, numpy.concatenate([by_dims, by_dims], 3), **words)

    def test_pages_with_packed_queries(self):
        q, cache = draw(1, 6, 2, 64), draw(4, 2, 16, 1, 64)
        table = ENGINE.array([[3, 1], [0, 2]], "int32")
        out = ENGINE.attention_forward(q, cache[:, 0], cache[:, 1], query_starts=[0, 5, 6], block_table=table, key_lengths=[20, 32], causal=True)
        for b, (rows, pages, length) in enumerate(((slice(0, 5), [3, 1], 20), (slice(5, 6), [0, 2], 32))):
            k, v = (wide(cache[pages, which]).reshape(-1, 1, 64)[:length] for which in (0, 1))
            self.close(out.numpy()[0, rows], reference.attention(wide(q[0, rows]), k, v, causal=True)[0])


class SoftmaxLse(Case):
    def test_weights_and_lse(self):
        scores = RANDOM.standard_normal((2, 2, 5, 70)).astype(numpy.float32)
        weights, lse = ENGINE.softmax_lse(scores, lse=True, scale=1.5, causal=True, key_lengths=[70, 66])
        for b, length in enumerate((70, 66)):
            x = 1.5 * wide(scores[b, :, :, :length])
            x[:, numpy.arange(length)[None, :] > numpy.arange(5)[:, None] + length - 5] = -numpy.inf
            exact = numpy.exp(x) / numpy.exp(x).sum(axis=-1, keepdims=True)
            self.close(weights.numpy()[b, :, :, :length], exact, 1e-5)
            self.assertFalse(weights.numpy()[b, :, :, length:].any())
            self.close(lse.numpy()[b], numpy.log(numpy.exp(x).sum(axis=-1)), 1e-5)

    def test_outputs_that_are_wanted(self):
        scores = numpy.zeros((1, 1, 2, 64), numpy.float32)
        self.assertEqual(ENGINE.softmax_lse(scores, "bf16").dtype, "bf16")
        only = ENGINE.softmax_lse(scores, None, lse=True)
        self.close(only.numpy(), numpy.full((1, 1, 2), numpy.log(64)), 1e-6)
        host = numpy.zeros_like(scores)
        self.assertIs(ENGINE.softmax_lse(scores, host), host)
        self.assertTrue((host == 1 / 64).all())


if __name__ == "__main__":
    unittest.main()
