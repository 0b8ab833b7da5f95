# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Caches of 8 bits: every way in, scales, bits beside those of the widened cache, and what is refused."""
import sys
import unittest
from unittest import mock

import numpy
import reference
from attention_test import ENGINE, Case, draw, wide

import wavejit

OTHER = wavejit.Engine("sim:gfx942")
NATIVE = ((ENGINE, "e4m3"), (ENGINE, "e5m2"), (OTHER, "e4m3_fnuz"), (OTHER, "e5m2_fnuz"))
DLPACK = {"e4m3": 10, "e4m3_fnuz": 11, "e5m2": 12, "e5m2_fnuz": 13}
RANDOM = numpy.random.default_rng(30)


def value(byte, format):
    """What a byte says, by the format's definition; None: NaN."""
    mantissa_bits = 3 if format.startswith("e4m3") else 2
    sign = -1.0 if byte & 0x80 else 1.0
    exponent, mantissa = (byte & 0x7F) >> mantissa_bits, byte % (1 << mantissa_bits)
    bias = {"e4m3": 7, "e5m2": 15, "e4m3_fnuz": 8, "e5m2_fnuz": 16}[format]
    if format.endswith("fnuz"):
        if byte == 0x80:
            return None
    elif format == "e4m3" and byte & 0x7F == 0x7F:
        return None
    elif format == "e5m2" and exponent == 31:
        return None if mantissa else sign * numpy.inf
    if exponent == 0:
        return sign * mantissa * 2.0 ** (1 - bias - mantissa_bits)
    return sign * (1 + mantissa / (1 << mantissa_bits)) * 2.0 ** (exponent - bias)


TABLES = {format: numpy.array([numpy.nan if value(byte, format) is None else value(byte, format) for byte in range(256)]) for format in DLPACK}


def bytes_of(format, *shape):
    """Bytes of values between −4 and 4."""
    calm = numpy.flatnonzero(numpy.abs(numpy.nan_to_num(TABLES[format], nan=9, posinf=9, neginf=9)) < 4).astype(numpy.uint8)
    return RANDOM.choice(calm, shape)


class Tensor:
    """Device memory as another library would hand it over."""

    def __init__(self, array, code, bits=8):
        self.array, self.code, self.bits = array, code, bits

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()

    def __dlpack__(self, *, stream=None, max_version=None):
        shape, strides = list(self.array.shape), list(self.array.strides)
        return wavejit._wavejit.export_dlpack(self.array, self.array.data_ptr, self.code, self.bits, shape, strides, *self.__dlpack_device__(), True)


class Formats(Case):
    def test_widened_without_ml_dtypes(self):
        every = numpy.arange(256, dtype=numpy.uint8)
        for format, table in TABLES.items():
            array = ENGINE.array(every, format)
            self.assertEqual((array.dtype, array.nbytes), (format, 256))
            numpy.testing.assert_array_equal(array.numpy("float32").astype(float), table)
            self.assertTrue(numpy.array_equal(numpy.signbit(array.numpy("float32"))[TABLES[format] == 0], every[TABLES[format] == 0] >= 0x80))
            self.assertTrue(numpy.array_equal(array.numpy("uint8"), every))

    def test_every_way_in_has_the_bits_of_the_widened_cache(self):
        for engine, format in NATIVE:
            with self.subTest(format=format):
                q, k, v = draw(2, 5, 4, 64), bytes_of(format, 2, 45, 2, 64), bytes_of(format, 2, 45, 2, 64)
                table = TABLES[format].astype(numpy.float16)
                out, lse = engine.attention_forward(q, table[k], table[v], causal=True, lse=True)
                of_engine = [engine.array(each, format) for each in (k, v)]
                given = {
                    "numpy's bytes": ((k, v.view(numpy.int8)), {"cache_dtype": format}),
                    "arrays": (of_engine, {}),
                    "DLPack": ([Tensor(each, DLPACK[format]) for each in of_engine], {}),
                    "DLPack's bytes": ([Tensor(each, 1) for each in of_engine], {"cache_dtype": format}),
                    "both": (of_engine, {"cache_dtype": format, "k_scale": 1.0, "v_scale": numpy.ones((2, 2), numpy.float32)}),
                }
                for way, (cache, words) in given.items():
                    with self.subTest(way=way):
                        found, found_lse = engine.attention_forward(q, *cache, causal=True, lse=True, **words)
                        self.assertTrue(numpy.array_equal(found.numpy().view(numpy.uint16), out.numpy().view(numpy.uint16)))
                        self.assertTrue(numpy.array_equal(found_lse.numpy().view(numpy.uint32), lse.numpy().view(numpy.uint32)))
                call = engine.attention_forward_call(q, *of_engine, k_scale=2.0, v_scale=[1.0, 3.0])
                self.assertIn(f" cache={format} cache_scales=h", call.describe())

    def test_nothing_is_copied(self):
        k = ENGINE.array(bytes_of("e4m3", 1, 40, 2, 64), "e4m3")
        q, k_scale = ENGINE.array(draw(1, 3, 4, 64)), ENGINE.array(numpy.ones(1, numpy.float32))
        call = ENGINE.attention_forward_call(q, Tensor(k, 10), k, k_scale=k_scale)
        first = call.run().numpy()
        k.copy_from(bytes_of("e4m3", 1, 40, 2, 64))
        self.assertFalse(numpy.array_equal(call.run().numpy(), first))  # what stands there then
        second = call.run().numpy()
        k_scale.copy_from(numpy.array([0.25], numpy.float32))
        self.assertFalse(numpy.array_equal(call.run().numpy(), second))  # scales too


class Integers(Case):
    random = numpy.random.default_rng(8)

    def drawn(self, rows, keys):
        q = self.random.standard_normal((2, rows, 4, 64)).astype(numpy.float16)
        return q, *(self.random.integers(-128, 128, (2, keys, 2, 64), numpy.int8) for _ in range(2))

    def test_every_way_in_has_the_bits_of_the_widened_cache(self):
        for engine in (ENGINE, OTHER):
            q, k, v = self.drawn(5, 45)
            words = {"causal": True, "lse": True, "scale": 0.001}
            out, lse = engine.attention_forward(q, k.astype(numpy.float16), v.astype(numpy.float16), **words)
            of_engine = [engine.array(each, "int8") for each in (k, v)]
            for way, cache, more in (
                ("numpy's", (k, v), {}),
                ("named", (k, v.view(numpy.uint8)), {"cache_dtype": "int8"}),
                ("arrays", of_engine, {"k_scale": 1.0}),
                ("DLPack", [Tensor(each, 0) for each in of_engine], {}),
            ):
                with self.subTest(way=way):
                    found, found_lse = engine.attention_forward(q, *cache, **words, **more)
                    self.assertTrue(numpy.array_equal(found.numpy().view(numpy.uint16), out.numpy().view(numpy.uint16)))
                    self.assertTrue(numpy.array_equal(found_lse.numpy().view(numpy.uint32), lse.numpy().view(numpy.uint32)))
            self.assertIn(" cache=i8 cache_scales=h", engine.attention_forward_call(q, *of_engine, v_scale=[0.5, 0.25]).describe())

    def test_scales_of_tokens(self):
        q, k, v = self.drawn(7, 40)
        ks, vs = (self.random.uniform(0.3, 1.8, (2, 40, 2)).astype(numpy.float32) / 64 for _ in range(2))
        out = ENGINE.attention_forward(q, k, v, k_scale=ks, v_scale=vs, causal=True).numpy()
        for b in range(2):
            keys, values = (each[b].astype(float) * scale[b][:, :, None] for each, scale in ((k, ks), (v, vs)))
            self.close(out[b], reference.attention(wide(q[b]), keys, values, causal=True)[0])


class Scales(Case):
    def test_of_a_tensor_of_heads_and_of_sequences(self):
        q, k, v = draw(3, 7, 4, 64), bytes_of("e4m3", 3, 40, 2, 64), bytes_of("e4m3", 3, 40, 2, 64)
        of_all = RANDOM.uniform(0.3, 1.8, (3, 2)).astype(numpy.float32)
        strided = ENGINE.array(RANDOM.uniform(0.3, 1.8, (2, 3, 2)).astype(numpy.float32))[0].permute(1, 0)
        for k_scale, v_scale in ((0.37, None), (None, 1.7), (numpy.float32(0.5), of_all[0]), (of_all[:1], [1.5, 0.3]), (of_all, of_all[::-1].copy()),
                                 (of_all.reshape(3, 1, 2, 1), of_all[:, :1].reshape(3, 1, 1, 1)), (strided.permute(1, 0), 2)):  # fmt: skip
            with self.subTest(k_scale=k_scale, v_scale=v_scale):
                out, lse = ENGINE.attention_forward(q, k, v, cache_dtype="e4m3", k_scale=k_scale, v_scale=v_scale, lse=True, causal=True)
                ks, vs = (self.broadcast(each) for each in (k_scale, v_scale))
                for b in range(3):
                    keys, values = (TABLES["e4m3"][each[b]] * scale[b][None, :, None] for each, scale in ((k, ks), (v, vs)))
                    exact, exact_lse = reference.attention(wide(q[b]), keys, values, causal=True)
                    self.close(out.numpy()[b], exact)
                    self.close(lse.numpy()[b], exact_lse)

    def test_of_tokens(self):
        q, k, v = draw(2, 7, 4, 64), bytes_of("e4m3", 2, 40, 2, 64), bytes_of("e4m3", 2, 40, 2, 64)
        ks, vs = (RANDOM.uniform(0.3, 1.8, (2, 40, 2)).astype(numpy.float32) for _ in range(2))
        heads_first = ENGINE.array(numpy.ascontiguousarray(vs.transpose(0, 2, 1))).permute(0, 2, 1)
        for of_v in (vs, heads_first):
            call = ENGINE.attention_forward_call(ENGINE.array(q), *(ENGINE.array(each, "e4m3") for each in (k, v)), k_scale=ks, v_scale=of_v, causal=True)
            self.assertIn(" cache=e4m3 cache_scales=token", call.describe())
            out = call.run().numpy()
            for b in range(2):
                keys, values = (TABLES["e4m3"][each[b]] * scale[b][:, :, None] for each, scale in ((k, ks), (v, vs)))
                self.close(out[b], reference.attention(wide(q[b]), keys, values, causal=True)[0])
        # Scales lie after the data of each page: 16 slots of 2 heads.
        page, nan = 16 * 2 * 64, 0x7F
        memory = numpy.full((6, page + 16 * 2 * 4), nan, numpy.uint8)
        of_pages = RANDOM.uniform(0.3, 1.8, (6, 16, 2)).astype(numpy.float32)
        cache = bytes_of("e4m3", 6, 16, 2, 64)
        memory[:, :page], memory[:, page:] = cache.reshape(6, page), of_pages.reshape(6, -1).view(numpy.uint8)
        table, lengths = [[4, 1], [5, 3]], [20, 32]
        device = ENGINE.array(memory.reshape(-1).view(numpy.float32))
        stride = memory.shape[1] // 4
        scales = device._view(device._address + page, (6, 16, 2), (stride, 2, 1))
        pages = ENGINE.array(memory.reshape(-1), "e4m3")
        pages = pages._view(pages._address, (6, 16, 2, 64), (memory.shape[1], 128, 64, 1))
        out = ENGINE.attention_forward(ENGINE.array(q[:, :1]), pages, pages, block_table=table, key_lengths=lengths, k_scale=scales, v_scale=scales).numpy()
        for b in range(2):
            counted = (TABLES["e4m3"][cache] * of_pages[..., None])[table[b]].reshape(32, 2, 64)[: lengths[b]]
            self.close(out[b], reference.attention(wide(q[b, :1]), counted, counted)[0])
        with self.assertRaisesRegex(wavejit.InvalidArgument, "^v_scale: None"):
            ENGINE.attention_forward(q, k, v, cache_dtype="e4m3", k_scale=ks)

    @staticmethod
    def broadcast(scale):
        """[3 sequences, 2 heads]"""
        if scale is None:
            return numpy.ones((3, 2))
        scale = scale.numpy() if isinstance(scale, wavejit.DeviceArray) else numpy.asarray(scale)
        return numpy.broadcast_to(scale[:, 0, :, 0] if scale.ndim == 4 else scale, (3, 2))

    def test_pages_and_lists_of_keys(self):
        q, cache, nan = draw(2, 1, 4, 64), bytes_of("e4m3", 6, 16, 2, 64), 0x7F
        table, lengths = [[4, 1], [5, 3]], [20, 32]
        cache[[0, 2]], cache[1, 4:] = nan, nan
        out = ENGINE.attention_forward(q, cache, cache, cache_dtype="e4m3", block_table=table, key_lengths=lengths, k_scale=0.5)
        for b in range(2):
            keys = TABLES["e4m3"][cache[table[b]].reshape(32, 2, 64)[: lengths[b]]]
            self.close(out.numpy()[b], reference.attention(wide(q[b]), keys * 0.5, keys)[0])
        slots = numpy.array([[[4 * 16 + 3, 17, 4 * 16 + 15, -1]], [[80, 48, 49, 95]]], numpy.int32)
        out = ENGINE.attention_forward(q, cache, cache, cache_dtype="e4m3", indices=slots, slots=True, v_scale=[0.5, 2.0])
        for b in range(2):
            keys = TABLES["e4m3"][cache.reshape(96, 2, 64)[slots[b, 0][slots[b, 0] >= 0]]]
            self.close(out.numpy()[b], reference.attention(wide(q[b]), keys, keys * numpy.array([0.5, 2.0])[:, None])[0])


class Queries(Case):
    """Q, K and V in e4m3: 30.5 dB of each result (31 is of N(0, 1); these are bytes at random), the same bits whichever way they came."""

    def test_every_way_in(self):
        q, k, v = (bytes_of("e4m3", 2, rows, heads, 128) for rows, heads in ((37, 4), (90, 2), (90, 2)))
        scales = RANDOM.uniform(0.3, 1.8, (3, 2, 2)).astype(numpy.float32)
        words = {"causal": True, "lse": True, "scale": 0.02, **dict(zip(("q_scale", "k_scale", "v_scale"), scales))}
        out, lse = ENGINE.attention_forward(q, k, v, dtype="e4m3", **words)
        self.assertEqual(out.dtype, "bf16")
        for b in range(2):
            of_q, of_k, of_v = (TABLES["e4m3"][each[b]] * numpy.repeat(scale[b], each.shape[2] // 2)[:, None] for each, scale in zip((q, k, v), scales))
            exact, exact_lse = reference.attention(of_q, of_k, of_v, causal=True, scale=0.02)
            self.assertGreater(decibels(out.numpy("float32")[b], exact), 30.5)
            self.assertLess(numpy.abs(lse.numpy()[b] - exact_lse).max(), 0.0607)
        arrays = [ENGINE.array(each, "e4m3") for each in (q, k, v)]
        call = ENGINE.attention_forward_call(*arrays, **words)
        self.assertRegex(call.describe(), " queries=e4m3 .*cache_scales=bh")
        for given in (arrays, [Tensor(each, DLPACK["e4m3"]) for each in arrays], (arrays[0], k, v)):
            found, found_lse = ENGINE.attention_forward(*given, **words)
            self.assertTrue(numpy.array_equal(found.numpy("uint16"), out.numpy("uint16")))
            self.assertTrue(numpy.array_equal(found_lse.numpy(), lse.numpy()))
        wide_out, _ = ENGINE.attention_forward(*arrays, out="fp32", **words)
        half, _ = ENGINE.attention_forward(*arrays, out="fp16", **words)
        self.assertTrue(numpy.array_equal(wide_out.numpy().astype(numpy.float16), half.numpy()))

    def test_nothing_is_copied(self):
        q = ENGINE.array(bytes_of("e4m3", 1, 40, 2, 128), "e4m3")
        scale = ENGINE.array(numpy.ones(1, numpy.float32))
        call = ENGINE.attention_forward_call(q, q, q, q_scale=scale)
        first = call.run().numpy("uint16")
        scale.copy_from(numpy.array([0.25], numpy.float32))
        second = call.run().numpy("uint16")
        self.assertFalse(numpy.array_equal(second, first))
        q.copy_from(bytes_of("e4m3", 1, 40, 2, 128))
        self.assertFalse(numpy.array_equal(call.run().numpy("uint16"), second))

    def test_refused_by_name(self):
        q = ENGINE.array(bytes_of("e4m3", 1, 40, 2, 128), "e4m3")
        rows, other = draw(1, 40, 2, 128), ENGINE.array(bytes_of("e5m2", 1, 40, 2, 128), "e5m2")
        for what, given, words in ((r"^q: dtype e5m2; accepted: fp16, bf16, e4m3", (other, q, q), {}), (r"^k\.dtype = e5m2;", (q, other, other), {}),
                                   (r"^o_scale is missing beside out of e4m3; accepted: a number from 2\^-126", (q, q, q), {"out": "e4m3"}),
                                   (r"^q_scale: given; accepted: None beside q of fp16", (rows, rows, rows), {"q_scale": 2.0}), ("leave softcap out", (q, q, q), {"softcap": 5.0})):  # fmt: skip
            with self.subTest(what=what), self.assertRaisesRegex(wavejit.Error, what):
                ENGINE.attention_forward(*given, **words)
        with self.assertRaisesRegex(wavejit.Unsupported, "gfx942"):
            OTHER.attention_forward(*[OTHER.array(bytes_of("e4m3", 1, 40, 2, 128), "e4m3")] * 3)


def nearest(values, format):
    """What the bytes nearest to values say; ties go either way."""
    table = numpy.unique(TABLES[format][numpy.isfinite(TABLES[format])])
    right = numpy.clip(numpy.searchsorted(table, values), 1, len(table) - 1)
    return numpy.where(values - table[right - 1] < table[right] - values, table[right - 1], table[right])


def decibels(found, exact):
    return 10 * numpy.log10((exact**2).mean() / ((found - exact) ** 2).mean())


class Numbers(Case):
    def test_nan_bytes_where_no_key_is_never_show(self):
        for engine, format in NATIVE:
            q, cache = draw(2, 3, 4, 64), bytes_of(format, 6, 16, 2, 64)
            nans = numpy.flatnonzero(numpy.isnan(TABLES[format])).astype(numpy.uint8)
            self.assertEqual(len(nans), {"e4m3": 2, "e5m2": 6}.get(format, 1))
            unused = numpy.ones((6, 16), bool)
            unused[[4, 5, 3]] = False  # of pages that the table names
            unused[1, :4] = False
            results = []
            for fill in (0, *nans):
                cache[unused] = fill
                words = {"block_table": [[4, 1], [5, 3]], "key_lengths": [20, 32], "cache_dtype": format, "lse": True}
                results.append([each.numpy() for each in engine.attention_forward(q, cache, cache, **words)])
            for out, lse in results[1:]:
                self.assertTrue(numpy.array_equal(out.view(numpy.uint16), results[0][0].view(numpy.uint16)))
                self.assertTrue(numpy.array_equal(lse.view(numpy.uint32), results[0][1].view(numpy.uint32)))

    def test_the_largest_numbers_do_not_overflow(self):
        # Widened, all are below fp16's 65,504; sums are f32, and a mean of values is no larger than they are but for the rounding of weights.
        for engine, format in NATIVE:
            most = numpy.nanmax(numpy.where(numpy.isinf(TABLES[format]), numpy.nan, TABLES[format]))
            largest = numpy.uint8(numpy.flatnonzero(TABLES[format] == most)[0])
            k, v = (numpy.where(RANDOM.random((1, 130, 2, 64)) < 0.5, largest, largest | 0x80).astype(numpy.uint8) for _ in range(2))
            v[..., :8] = largest
            for size in (2.0**-14, 2.0**-8, 2.0**11 / float(most)):
                with self.subTest(format=format, size=size):
                    q = numpy.where(RANDOM.random((1, 40, 4, 64)) < 0.5, size, -size).astype(numpy.float16)
                    out, lse = engine.attention_forward(q, k, v, cache_dtype=format, lse=True)
                    self.assertTrue(numpy.isfinite(lse.numpy()).all())
                    found = wide(out.numpy())
                    self.assertLessEqual(float(numpy.abs(found).max()), most * (1 + 2.0**-10))
                    self.assertLess(float(numpy.abs(found[..., :8] - most).max()), most * 2.0**-10)

    def test_the_error_budget_of_the_documents(self):
        """docs/low-precision.md: what each step leaves, N(0, 1), head dim 128, 1,024 keys."""
        random = numpy.random.default_rng(5)
        q, k, v = (random.standard_normal(shape) for shape in ((64, 4, 128), (1024, 1, 128), (1024, 1, 128)))
        q = reference.from_bf16_bits(reference.bf16_bits(q))
        exact, _ = reference.attention(q, k, v)
        of_bf16 = [reference.from_bf16_bits(reference.bf16_bits(each)) for each in (k, v)]
        found = {"bf16": [decibels(of_bf16[0], k), decibels(reference.attention(q, of_bf16[0], v)[0], exact),
                          decibels(reference.attention(q, k, of_bf16[1])[0], exact), decibels(reference.attention(q, *of_bf16)[0], exact)]}
        for engine, format in ((ENGINE, "e4m3"), (ENGINE, "e5m2")):
            kq, vq = nearest(k, format), nearest(v, format)
            whole, _ = reference.attention(q, kq, vq)
            found[format] = [decibels(kq, k), decibels(reference.attention(q, kq, v)[0], exact), decibels(reference.attention(q, k, vq)[0], exact), decibels(whole, exact)]
            order = numpy.argsort(TABLES[format], kind="stable")
            codes = [order[numpy.searchsorted(TABLES[format][order][: numpy.isfinite(TABLES[format]).sum() + 2], each)].astype(numpy.uint8) for each in (kq, vq)]
            for each, code in zip((kq, vq), codes):
                self.assertTrue(numpy.array_equal(TABLES[format][code], each))
            out = engine.attention_forward(reference.bf16_bits(q)[None], codes[0][None], codes[1][None], "fp32", dtype="bf16", cache_dtype=format)
            found[format].append(decibels(wide(out.numpy()[0]), whole))
        for format, told in BUDGET.items():
            self.assertEqual(len(found[format]), len(told))
            for one, other in zip(found[format], told):
                self.assertLess(abs(one - other), 0.3, f"{format}: {numpy.round(found[format], 1)}")


# dB: K itself; O with K rounded, with V, with both; what the kernel adds to that.
BUDGET = {"bf16": [55.6, 55.1, 55.5, 52.3], "e4m3": [31.5, 31.0, 31.6, 28.3, 55.5], "e5m2": [25.6, 25.1, 25.3, 22.2, 55.5]}


class Serving(Case):
    def test_a_sealed_engine_runs_what_its_descriptor_prepared(self):
        with wavejit.Engine("sim:gfx950", cache_mode="off") as engine:
            q, k = engine.array(draw(2, 1, 4, 64)), engine.array(bytes_of("e4m3", 2, 2100, 2, 64), "e4m3")
            # Keys that are cut: the walk, and what merges its parts with scales.
            call = engine.attention_forward_call(q, k, k, k_scale=0.5, v_scale=[1.0, 2.0], splits=2)
            engine.prepare([call.describe()])
            engine.seal()
            before = engine.statistics()
            out = call.run().numpy()
            after = engine.statistics()
            self.assertEqual(after["compiled"], before["compiled"])
            self.assertTrue(numpy.array_equal(out, ENGINE.attention_forward(q.numpy(), k.numpy("uint8"), k.numpy("uint8"), cache_dtype="e4m3", k_scale=0.5,
                                                                            v_scale=[1.0, 2.0]).numpy()))
            other = engine.array(k.numpy("uint8"), "e5m2")
            with self.assertRaisesRegex(wavejit.Sealed, "cache=e5m2 cache_scales=1"):
                engine.attention_forward(q, other, other, k_scale=0.5)
            self.assertEqual(engine.statistics()["refused_sealed"], 1)


class Refused(Case):
    def test_by_name(self):
        q, k = draw(1, 3, 4, 64), bytes_of("e4m3", 1, 40, 2, 64)
        bad, unsupported = wavejit.InvalidArgument, wavejit.Unsupported
        on_device, other = ENGINE.array(k, "e4m3"), ENGINE.array(k, "e5m2")
        for kind, pattern, engine, given, words in (
            (unsupported, r"^k\.dtype = e4m3_fnuz.* gfx950; use a cache in e4m3, e5m2, i8 or 16 bits; reason: cache=e4m3_fnuz: gfx950 ", ENGINE, (q, k, k), {"cache_dtype": "e4m3_fnuz"}),
            (unsupported, r"^k\.dtype = e4m3:.* gfx942; use a cache in e4m3_fnuz, e5m2_fnuz, i8 or 16 bits; ", OTHER, (q, k, k), {"cache_dtype": "e4m3"}),
            (bad, "v: dtype e5m2; accepted: e4m3$", ENGINE, (q, on_device, other), {}),
            (bad, "k: dtype e4m3; accepted: e5m2$", ENGINE, (q, on_device, on_device), {"cache_dtype": "e5m2"}),
            (bad, "k: dtype uint8; accepted: fp16, e4m3, e5m2, e4m3_fnuz, e5m2_fnuz, int8$", ENGINE, (q, k, k), {}),
            (bad, "k: dtype float8_e4m3; accepted", ENGINE, (q, Tensor(on_device, 8), on_device), {}),
            (bad, "cache_dtype: dtype fp8; accepted: fp16, e4m3, e5m2, e4m3_fnuz, e5m2_fnuz, int8$", ENGINE, (q, k, k), {"cache_dtype": "fp8"}),
            (bad, "q: dtype e5m2; accepted: fp16, bf16, e4m3, int8, fp32$", ENGINE, (ENGINE.array(bytes_of("e5m2", 1, 3, 4, 64), "e5m2"), k, k), {}),
            (bad, "k_scale.* only caches of 8 bits have scales", ENGINE, (q, draw(1, 40, 2, 64), draw(1, 40, 2, 64)), {"k_scale": 0.5}),
            (bad, "k_scale: dtype float64; accepted: fp32", ENGINE, (q, on_device, on_device), {"k_scale": numpy.ones(2)}),
            (bad, r"^v_scale\.sizes\[0\] = 3; accepted: 1 or 2", ENGINE, (q, on_device, on_device), {"v_scale": [1.0, 2.0, 3.0]}),
            (bad, r"v_scale: shape \(2, 2, 2, 1, 1\); accepted: \[heads\], \[batch, heads\]", ENGINE, (q, on_device, on_device), {"v_scale": numpy.ones((2, 2, 2, 1, 1), numpy.float32)}),
        ):
            with self.subTest(pattern=pattern), self.assertRaisesRegex(kind, pattern):
                engine.attention_forward(*given, **words)
        # None in sys.modules: importing it is an ImportError, whether it is installed or not.
        with mock.patch.dict(sys.modules, {"ml_dtypes": None}), self.assertRaisesRegex(bad, r'numpy has no e4m3 without ml_dtypes; accepted: numpy\("float32"\), numpy\("uint8"\)'):
            on_device.numpy()


if __name__ == "__main__":
    unittest.main()
