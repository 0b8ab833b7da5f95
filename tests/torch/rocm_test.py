# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""ROCm tensors on the simulated HIP (tests/torch/CMakeLists.txt): PyTorch's tensors made from capsules of ROCm memory.

PyPI's PyTorch takes such a capsule and has no ROCm beyond that. The few operations of it that a call needs are made here, over
memory of the simulated device.
"""
import contextlib
import ctypes
import math
import sys
import threading
import unittest
from unittest import mock

import numpy
import reference
import torch

import wavejit
import wavejit.torch
from wavejit import _masks, _wavejit
from wavejit.torch import _backward_dispatch, _faces, _plainly, _dispatch
from wavejit.torch._plainly import Plainly

ENGINE = wavejit.torch.use(wavejit.Engine("hip"))
HIP = ctypes.CDLL("libamdhip64.so.7")
ROOM, ASKED = 1 << 40, None  # bytes that torch's allocator has, and what it was asked for
FILLED = None  # the byte that lies in its memory
ARRAYS = {}  # by address: what a tensor lies in
NAMES = {torch.float16: "fp16", torch.bfloat16: "bf16", torch.float32: "fp32", torch.int32: "int32"}


def tensor_of(array):
    ARRAYS[array.data_ptr] = array
    return torch.from_dlpack(array.__dlpack__())


def rocm(host):
    return tensor_of(ENGINE.array(host, "int32" if host.dtype == numpy.int32 else None))


def view(elements, *index):
    """A tensor with these elements: torch's own indexing would ask for a GPU."""
    array = ENGINE.array(elements)
    ARRAYS[array.data_ptr] = array
    return torch.from_dlpack(array[index].__dlpack__())


def host(tensor):
    """What lies in a tensor that begins where its array does."""
    return ARRAYS[tensor.data_ptr()].numpy().reshape(tuple(tensor.shape))


def empty(size, dtype=None, **_):
    if ASKED is not None:
        ASKED.append(math.prod(size) * dtype.itemsize)
        if ASKED[-1] > ROOM:
            raise torch.OutOfMemoryError("there is no room")
    tensor = tensor_of(ENGINE.empty(list(size), NAMES[dtype]))
    return tensor if FILLED is None else filled(tensor, FILLED)


def filled(tensor, byte):
    assert HIP.hipMemset(ctypes.c_void_p(tensor.data_ptr()), byte, ctypes.c_size_t(tensor.numel() * tensor.element_size())) == 0
    return tensor


def empty_strided(size, stride, dtype=None, **_):
    """Dense, whatever the order of its dimensions."""
    if list(stride) == [math.prod(size[place + 1 :]) for place in range(len(size))]:
        return empty(size, dtype)
    assert 1 + sum((length - 1) * step for length, step in zip(size, stride)) == math.prod(size)
    return as_strided(empty([math.prod(size)], dtype), size, stride)


def as_strided(tensor, size, stride, offset=None):
    bytes_of = tensor.element_size()
    code = {torch.float16: 2, torch.bfloat16: 4, torch.float32: 2, torch.int32: 0, torch.float8_e4m3fn: 10}[tensor.dtype]
    return torch.from_dlpack(_wavejit.export_dlpack(tensor, tensor.data_ptr() + (offset or 0) * bytes_of, code, 8 * bytes_of, list(size), list(stride), 10, 0, False))


def clone(tensor, memory_format=None):
    """By way of the host, each element by its strides."""
    (array,) = [each for each in ARRAYS.values() if each.data_ptr <= tensor.data_ptr() < each.data_ptr + each.nbytes]
    flat = numpy.ascontiguousarray(array.numpy()).reshape(-1)[(tensor.data_ptr() - array.data_ptr) // tensor.element_size() :]
    view = numpy.lib.stride_tricks.as_strided(flat, tuple(tensor.shape), [step * tensor.element_size() for step in tensor.stride()])
    return rocm(view.copy())


def zero_(tensor):
    assert tensor.is_contiguous()
    return filled(tensor, 0)


def fill_(tensor, number):
    """Numbers of fp32, which a log-sum-exp has before a launch."""
    array = ARRAYS[tensor.data_ptr()]
    array.copy_from(numpy.full(array.shape, number, numpy.float32))
    return tensor


LIBRARY = torch.library.Library("aten", "IMPL")
for operation, function in (("empty.memory_format", empty), ("empty_strided", empty_strided), ("as_strided", as_strided), ("clone", clone), ("zero_", zero_),
                            ("fill_.Scalar", fill_)):
    LIBRARY.impl(operation, function, "HIP")
# What torch has for ROCm only.
NO_STREAM = mock.patch.object(_dispatch, "current_stream", lambda device: 0)
RANDOM = numpy.random.default_rng(17)


def draw(*shape):
    return RANDOM.standard_normal(shape).astype(numpy.float16)


def wide(array):
    return array.astype(numpy.float64)


class Case(unittest.TestCase):
    def setUp(self):
        NO_STREAM.start()
        self.addCleanup(NO_STREAM.stop)

    def close(self, found, exact):
        found = wide(found)
        self.assertEqual(found.shape, exact.shape)
        self.assertTrue(numpy.isfinite(found).all())
        self.assertLess(float((numpy.abs(found - exact) / (1 + numpy.abs(exact))).max()), 2e-3)


class Road(Case):
    def test_gradients_have_the_bits_of_the_engines(self):
        q, d_out, k, v = draw(2, 19, 4, 64), draw(2, 19, 4, 64), draw(2, 45, 2, 64), draw(2, 45, 2, 64)
        out, lse = ENGINE.attention_forward(*(ENGINE.array(each) for each in (q, k, v)), causal=True, lse=True)
        self.gradients(q, k, v, out.numpy(), lse.numpy(), d_out, causal=True)

    def test_gradients_of_sinks_have_the_bits_of_the_engines(self):
        rows, d_out, sinks = draw(2, 19, 4, 64), draw(2, 19, 4, 64), numpy.array([0.5, 3.0, -1.0, 1.0], numpy.float32)
        arrays = [ENGINE.array(rows)] * 3
        out, lse = ENGINE.attention_forward(*arrays, sinks=ENGINE.array(sinks), lse=True)
        *_, exact = ENGINE.attention_backward(*arrays, out, lse, ENGINE.array(d_out), sinks=ENGINE.array(sinks), d_sinks=True)
        *_, found = torch.ops.wavejit.attention_backward_sinks(*map(rocm, (rows, rows, rows, out.numpy(), lse.numpy(), d_out, sinks)))
        self.assertEqual(found.shape, (2, 4))
        self.assertTrue(numpy.array_equal(host(found), exact.numpy()))

    def test_gradients_of_a_bias_have_the_bits_of_the_engines(self):
        q, d_out, k = draw(2, 19, 4, 64), draw(2, 19, 4, 64), draw(2, 48, 2, 64)
        for bias in (draw(1, 4, 19, 48), draw(2, 1, 19, 48).astype(numpy.float32)):
            arrays, given = [ENGINE.array(each) for each in (q, k, k)], ENGINE.array(bias)
            out, lse = ENGINE.attention_forward(*arrays, bias=given, lse=True)
            exact = ENGINE.attention_backward(*arrays, out, lse, ENGINE.array(d_out), bias=given, d_bias=True)
            found = torch.ops.wavejit.attention_backward_bias(*map(rocm, (q, k, k, out.numpy(), lse.numpy(), d_out, bias)))
            for one, other in zip(found, exact):
                self.assertEqual(one.shape, other.shape)
                self.assertTrue(numpy.array_equal(host(one), other.numpy()))

    def test_masks_of_bools_by_tile_have_the_bits_of_a_bias(self):
        for _ in range(2):  # the second of a shape that was seen, over other memory
            q, k, shown = draw(1, 70, 4, 64), draw(1, 136, 2, 64), RANDOM.random((1, 1, 70, 136)) > 0.5
            held = ENGINE.array(shown.view(numpy.int8))
            ARRAYS[held.data_ptr] = held
            mask = torch.from_dlpack(_wavejit.export_dlpack(held, held.data_ptr, 6, 8, list(held.shape), list(held.strides), 10, 0, False))
            bias = ENGINE.array(numpy.where(shown, 0, -numpy.inf).astype(numpy.float16))
            exact = ENGINE.attention_forward(*(ENGINE.array(each) for each in (q, k, k)), bias=bias)
            with mock.patch.object(_dispatch, "bias_of", side_effect=AssertionError):
                found = torch.ops.wavejit.attention_forward(*map(rocm, (q, k, k)), bias=mask)
            self.assertTrue(numpy.array_equal(host(found), exact.numpy()))

    def test_masks_of_numbers_by_tile_have_the_bits_of_a_bias(self):
        q, k = draw(1, 70, 4, 64), draw(1, 136, 2, 64)
        shapes = len(ENGINE._plans)
        for _ in range(3):  # the last ones of a shape that was seen, over other memory
            bias = numpy.where(RANDOM.random((1, 1, 70, 136)) > 0.5, 0, -numpy.inf).astype(numpy.float16)
            bias[..., 64:, :64] = 0
            exact = ENGINE.attention_forward(*(ENGINE.array(each) for each in (q, k, k)), bias=ENGINE.array(bias))
            with mock.patch.object(_masks, "LEAST_SCORES_OF_NUMBERS", 1):
                found = torch.ops.wavejit.attention_forward(*map(rocm, (q, k, k)), bias=rocm(bias))
            self.assertTrue(numpy.array_equal(host(found), exact.numpy()))
        self.assertTrue(any("bias_by_tile" in shape for shape in list(ENGINE._plans)[shapes:]))

    def test_gradients_of_more_rows_than_a_run(self):
        # 512 query heads a kv head: a run is 64 rows, and sums of runs stand in the workspace beside delta.
        rows, keys = draw(1, 65, 512, 64), draw(1, 1, 1, 64)
        self.gradients(rows, keys, keys, rows, numpy.zeros((1, 512, 65), numpy.float32), rows)

    def test_gradients_of_a_shape_seen_before_and_of_strides(self):
        shapes = len(ENGINE._plans)
        for _ in range(2):
            rows, d_out = draw(2, 19, 2, 64), draw(2, 19, 2, 64)
            out, lse = ENGINE.attention_forward(*[ENGINE.array(rows)] * 3, lse=True)
            self.gradients(rows, rows, rows, out.numpy(), lse.numpy(), d_out, d_lse=lse.numpy())
        self.assertEqual(len(ENGINE._plans), shapes + 1)
        exact = ENGINE.attention_backward(*(ENGINE.array(each) for each in (rows, rows, rows)), out, lse, ENGINE.array(d_out))
        # q lies heads first, k begins at 2 bytes, d_out is one row for all: the latter two are copied.
        q, k = numpy.ascontiguousarray(rows.transpose(0, 2, 1, 3)), numpy.zeros((2, 19, 2, 72), numpy.float16)
        k[..., 1:65] = rows
        given = [view(q, ...).transpose(1, 2), view(k, ..., slice(1, 65)), *map(rocm, (rows, out.numpy(), lse.numpy())), rocm(d_out)]
        for one, other in zip(torch.ops.wavejit.attention_backward(*given), exact):
            self.assertTrue(numpy.array_equal(host(one).view(numpy.uint16), other.numpy().view(numpy.uint16)))
        one_row = rocm(d_out[:1, :1])
        found = torch.ops.wavejit.attention_backward(*given[:5], one_row.expand(2, 19, 2, 64))
        exact = ENGINE.attention_backward(*(ENGINE.array(each) for each in (rows, rows, rows)), out, lse, ENGINE.array(numpy.broadcast_to(d_out[:1, :1], d_out.shape).copy()))
        for one, other in zip(found, exact):
            self.assertTrue(numpy.array_equal(host(one).view(numpy.uint16), other.numpy().view(numpy.uint16)))
        with self.assertRaisesRegex(wavejit.InvalidArgument, "d_out: a tensor on cpu; accepted: hip:0, where q is"):
            torch.ops.wavejit.attention_backward(*given[:5], torch.from_numpy(d_out))

    def gradients(self, *inputs, **words):
        def both(of):
            return [of(each) for each in inputs], {name: of(value) if name == "d_lse" else value for name, value in words.items()}

        (given, known), (tensors, named) = both(ENGINE.array), both(rocm)
        exact = ENGINE.attention_backward(*given, **known)
        found = torch.ops.wavejit.attention_backward(*tensors, **named)
        for one, other in zip(found, exact):
            self.assertEqual(one.device, torch.device("hip", 0))
            self.assertTrue(numpy.array_equal(host(one).view(numpy.uint16), other.numpy().view(numpy.uint16)))

    def test_nothing_is_copied(self):
        q, k, v = draw(2, 19, 4, 64), draw(2, 45, 2, 64), draw(2, 45, 2, 64)
        tensors = [rocm(each) for each in (q, k, v)]
        self.assertEqual(tensors[0].device, torch.device("hip", 0))
        clones = mock.Mock(side_effect=AssertionError("copied"))
        with mock.patch.object(torch.Tensor, "contiguous", clones), mock.patch.object(torch.Tensor, "clone", clones):
            out, lse, _ = wavejit.torch.flash_attn_func(*tensors, causal=True, return_attn_probs=True)
        self.assertEqual((out.device, out.dtype), (tensors[0].device, torch.float16))
        for b in range(2):
            exact, exact_lse = reference.attention(wide(q[b]), wide(k[b]), wide(v[b]), causal=True)
            self.close(host(out)[b], exact)
            self.close(host(lse)[b], exact_lse)

    def test_caches_of_8_bits_are_read_as_they_lie(self):
        formats = {torch.float8_e4m3fn: "e4m3", torch.float8_e5m2: "e5m2"}
        shapes = len(ENGINE._plans)
        for dtype, name in formats.items():
            for _ in range(2):
                q, (k, v) = draw(2, 1, 4, 64), (RANDOM.integers(0, 0x48, (2, 45, 2, 64), numpy.uint8) for _ in range(2))
                scales = RANDOM.uniform(0.5, 2, (2, 2)).astype(numpy.float32)
                arrays = [ENGINE.array(each, name) for each in (k, v)]
                exact = ENGINE.attention_forward(ENGINE.array(q), *arrays, causal=True, k_scale=ENGINE.array(scales), v_scale=ENGINE.array(scales[0]))
                cache, of_q, of_scales = [tensor_of(each) for each in arrays], rocm(q), [rocm(scales), rocm(scales[0])]
                self.assertEqual(cache[0].dtype, dtype)
                clones = mock.Mock(side_effect=AssertionError("copied"))
                with mock.patch.object(torch.Tensor, "contiguous", clones), mock.patch.object(torch.Tensor, "clone", clones):
                    out = wavejit.torch.flash_attn_with_kvcache(of_q, *cache, causal=True, k_descale=of_scales[0], v_descale=of_scales[1])
                self.assertTrue(numpy.array_equal(host(out).view(numpy.uint16), exact.numpy().view(numpy.uint16)))
        self.assertEqual(len(ENGINE._plans), shapes + 2)

    def test_queries_of_8_bits_are_read_as_they_lie(self):
        for _ in range(2):
            arrays = [ENGINE.array(RANDOM.integers(0, 0x48, (2, rows, heads, 128), numpy.uint8), "e4m3") for rows, heads in ((7, 4), (45, 2), (45, 2))]
            scales = RANDOM.uniform(0.5, 2, (3, 2, 2)).astype(numpy.float32)
            exact = ENGINE.attention_forward(*arrays, causal=True, **{name: ENGINE.array(each) for name, each in zip(("q_scale", "k_scale", "v_scale"), scales)})
            given, of_scales = [tensor_of(each) for each in arrays], dict(zip(("q_descale", "k_descale", "v_descale"), map(rocm, scales)))
            clones = mock.Mock(side_effect=AssertionError("copied"))
            with mock.patch.object(torch.Tensor, "contiguous", clones), mock.patch.object(torch.Tensor, "clone", clones):
                out = wavejit.torch.flash_attn_func(*given, causal=True, **of_scales)
            self.assertEqual(out.dtype, torch.bfloat16)
            self.assertTrue(numpy.array_equal(ARRAYS[out.data_ptr()].numpy("uint16"), exact.numpy("uint16")))

    def test_scales_of_tokens_are_read_as_they_lie(self):
        q, (k, v) = draw(2, 1, 4, 64), (RANDOM.integers(0, 0x48, (2, 45, 2, 64), numpy.uint8) for _ in range(2))
        of_k, of_v = (RANDOM.uniform(0.5, 2, (2, 45, 2)).astype(numpy.float32) for _ in range(2))
        arrays = [ENGINE.array(each, "e4m3") for each in (k, v)]
        exact = ENGINE.attention_forward(ENGINE.array(q), *arrays, causal=True, k_scale=ENGINE.array(of_k), v_scale=ENGINE.array(of_v))
        cache, of_q = [tensor_of(each) for each in arrays], rocm(q)
        heads_first = rocm(numpy.ascontiguousarray(of_v.transpose(0, 2, 1))).transpose(1, 2)
        for scales in ([rocm(of_k), rocm(of_v)], [rocm(of_k), heads_first]):
            for _ in range(2):
                out = wavejit.torch.flash_attn_with_kvcache(of_q, *cache, causal=True, k_descale=scales[0], v_descale=scales[1])
                self.assertTrue(numpy.array_equal(host(out).view(numpy.uint16), exact.numpy().view(numpy.uint16)))

    def test_a_shape_seen_before_reads_other_memory(self):
        shapes = len(ENGINE._plans)
        for _ in range(3):
            q, k = draw(1, 7, 2, 64), draw(1, 33, 2, 64)
            out = wavejit.torch.flash_attn_func(rocm(q), rocm(k), rocm(k))
            self.close(host(out)[0], reference.attention(wide(q[0]), wide(k[0]), wide(k[0]))[0])
        self.assertEqual(len(ENGINE._plans), shapes + 1)

    def test_heads_first_and_strides(self):
        q, k, v = draw(1, 2, 9, 64), draw(1, 2, 32, 64), draw(1, 2, 32, 64)
        out = wavejit.torch.scaled_dot_product_attention(rocm(q), rocm(k), rocm(v), is_causal=True)
        exact, _ = reference.attention(*(wide(each[0]).transpose(1, 0, 2) for each in (q, k, v)), causal=True, prefix=0)
        self.close(host(out.transpose(1, 2))[0], exact)
        # One row apart from what a kernel takes: begins at 2 bytes, or is 65 wide. These are copied.
        q, wide_k = draw(1, 9, 2, 65), draw(1, 32, 2, 65)
        out = wavejit.torch.flash_attn_func(view(q, ..., slice(1, 65)), *[view(wide_k, ..., slice(0, 64))] * 2)
        self.close(host(out)[0], reference.attention(wide(q[0, ..., 1:]), wide(wide_k[0, ..., :64]), wide(wide_k[0, ..., :64]))[0])
        q = draw(1, 9, 2, 72)
        out = wavejit.torch.flash_attn_func(view(q, ..., slice(4, 68)), view(q, ..., slice(8, 72)), view(q, ..., slice(0, 64)))
        self.close(host(out)[0], reference.attention(wide(q[0, ..., 4:68]), wide(q[0, ..., 8:]), wide(q[0, ..., :64]))[0])

    def test_packed_paged_and_modified(self):
        q, k, v = draw(20, 2, 64), draw(42, 1, 64), draw(42, 1, 64)
        starts, key_starts = numpy.array([0, 3, 20], numpy.int32), numpy.array([0, 20, 42], numpy.int32)
        out = wavejit.torch.flash_attn_varlen_func(*map(rocm, (q, k, v, starts, key_starts)), 17, 22, causal=True)
        for b in range(2):
            rows, columns = slice(starts[b], starts[b + 1]), slice(key_starts[b], key_starts[b + 1])
            self.close(host(out)[rows], reference.attention(wide(q[rows]), wide(k[columns]), wide(v[columns]), causal=True)[0])
        q, cache, table, lengths = draw(2, 1, 4, 64), draw(9, 2, 16, 2, 64), numpy.array([[4, 1, 7], [8, 0, 99]], numpy.int32), numpy.array([40, 21], numpy.int32)
        pages = view(cache, slice(None), 0), view(cache, slice(None), 1)
        slopes = numpy.array([0.5, 0.25, 0.125, 1.0], numpy.float32)
        with mock.patch.object(torch.Tensor, "to", lambda tensor, *_: tensor):
            out = wavejit.torch.flash_attn_with_kvcache(rocm(q), *pages, cache_seqlens=rocm(lengths), block_table=rocm(table), softcap=3.0,
                                                        alibi_slopes=rocm(slopes))
        for b in range(2):
            k, v = (wide(cache[table[b, : -(-lengths[b] // 16)], which]).reshape(-1, 2, 64)[: lengths[b]] for which in (0, 1))
            self.close(host(out)[b], reference.attention(wide(q[b]), k, v, softcap=3.0, alibi=slopes)[0])
        q, k, bias = draw(1, 2, 5, 64), draw(1, 2, 24, 64), draw(1, 1, 5, 24)
        out = wavejit.torch.scaled_dot_product_attention(rocm(q), rocm(k), rocm(k), rocm(bias))
        exact, _ = reference.attention(*(wide(each[0]).transpose(1, 0, 2) for each in (q, k, k)), bias=wide(bias[0]))
        self.close(host(out.transpose(1, 2))[0], exact)

    def test_a_bias_is_copied_only_if_a_kernel_would_read_past_it(self):
        for keys in (19, 24):
            mask = torch.rand(2, 1, 5, keys) > 0.5
            bias = _dispatch.bias_of(mask, torch.float16)
            self.assertTrue(torch.equal(bias == 0, mask))
            self.assertIs(_dispatch._readable(bias, torch.float16), bias)
            self.assertIsNot(_dispatch._readable(bias, torch.bfloat16), bias)
            self.assertIsNot(_dispatch._readable(bias[..., 1:], torch.float16), bias)
        for size, copied in ((43, True), (48, False)):
            rows = torch.zeros(size).half().as_strided((2, 19), (24, 1))
            found = _dispatch._readable(rows, torch.float16)
            self.assertEqual((found is not rows, found.shape, found.stride(0)), (copied, (2, 19), 24))

    def test_a_call_that_is_checked_launches_nothing(self):
        """What flash_attn_with_kvcache asks before it writes."""
        q, cache = rocm(draw(2, 1, 4, 64)), rocm(draw(2, 48, 2, 64))
        words = {"causal": True, "key_lengths": rocm(numpy.array([7, 48], numpy.int32))}
        shapes, calls = len(ENGINE._plans), ENGINE.statistics()["calls"]
        for _ in range(2):
            _dispatch.check(ENGINE, q, cache, cache, None, True, words)
        for changed, pattern in (({"softcap": -1.0}, "softcap = -1"), ({"splits": -1}, "splits = -1"), ({"first_keys": rocm(numpy.zeros(3, numpy.int32))}, r"first_keys: shape \(3,\)")):
            for _ in range(2):
                with self.assertRaisesRegex(wavejit.InvalidArgument, f"^{pattern}"):
                    _dispatch.check(ENGINE, q, cache, cache, None, True, {**words, **changed})
        self.assertEqual((len(ENGINE._plans), ENGINE.statistics()["calls"]), (shapes + 1, calls))

    def test_no_rows(self):
        out = wavejit.torch.flash_attn_func(*(empty(size, torch.float16) for size in ((2, 0, 4, 64), (2, 5, 4, 64), (2, 5, 4, 64))))
        self.assertEqual(out.shape, (2, 0, 4, 64))

    def test_the_stream_is_torchs_current_one(self):
        stream = ctypes.c_void_p()
        self.assertEqual(HIP.hipStreamCreate(ctypes.byref(stream)), 0)
        asked = []
        rows = rocm(draw(1, 7, 2, 64))
        with mock.patch.object(_dispatch, "current_stream", lambda device: asked.append(device) or stream.value):
            out = wavejit.torch.flash_attn_func(rows, rows, rows)
        self.assertEqual(set(asked), {rows.device})
        self.assertEqual(HIP.hipStreamSynchronize(stream), 0)
        self.assertTrue(numpy.isfinite(host(out)).all())
        bad = mock.patch.object(_dispatch, "current_stream", lambda device: 2**64)
        with bad, self.assertRaises((TypeError, OverflowError, wavejit.Error)):
            wavejit.torch.flash_attn_func(rows, rows, rows)

    def test_threads_share_a_shape(self):
        inputs = [draw(1, 7, 2, 64) for _ in range(4)]
        tensors = [rocm(each) for each in inputs]
        failures = []

        def run(which):
            try:
                for _ in range(10):
                    # torch's modes belong to a thread, a patched stream does not
                    out = wavejit.torch.flash_attn_func(tensors[which], tensors[which], tensors[which])
                    self.close(host(out)[0], reference.attention(*[wide(inputs[which][0])] * 3)[0])
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=run, args=(which,)) for which in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])


class Context:
    """What autograd gives its node. PyPI's PyTorch has no engine for ROCm tensors, so nodes are called by hand here; gradients_test.py has engines."""

    def save_for_backward(self, *tensors):
        self.saved_tensors = tensors


class Node(Case):
    """The node's two functions in the extension, and what it remembers of calls."""

    def twice(self, face, sizes, words, more=None, **of_engine):
        """A shape that comes for the first time, and then without Python's dispatch: both have the bits of the engine's own calls."""
        for time in range(2):
            context, inputs, d_out = Context(), [rocm(draw(*size)) for size in sizes], rocm(draw(*sizes[0]))
            with self.no_dispatch() if time else contextlib.nullcontext():
                out = Plainly.forward(context, face.number, *inputs, words)
                nothing, *gradients, none = Plainly._backward_cls.apply(context, d_out)
                alone = _plainly.attend(face.number, *inputs, words) if time else out
            self.assertEqual((nothing, none, len(gradients), len(context.saved_tensors)), (None, None, 3, 5 + sum(isinstance(word, torch.Tensor) for word in words.values())))
            given = [self.array(face, each) for each in (*inputs, d_out)]
            exact, lse = ENGINE.attention_forward(*given[:3], lse=True, **of_engine)
            exacts = ENGINE.attention_backward(*given[:3], exact, lse, given[3], **of_engine)
            for one, like, other in zip((out, alone, *gradients), (d_out, d_out, *inputs), (exact, exact, *exacts)):
                self.assertEqual((one.shape, one.device), (like.shape, like.device))
                if more is None:
                    self.assertTrue(numpy.array_equal(self.inside(face, one).view(numpy.uint16), other.numpy().view(numpy.uint16)))
                else:
                    more(host(one), other.numpy()[0])
            _plainly.attend(face.number, *inputs, words)  # remembered from here on

    @contextlib.contextmanager
    def no_dispatch(self):
        no = mock.Mock(side_effect=AssertionError("a call of a shape seen before went through Python"))
        with mock.patch.object(_dispatch, "_on_device", no), mock.patch.object(_backward_dispatch, "_on_device", no):
            yield

    def inside(self, face, tensor):
        """An output as the engine has it: it was made so, whatever its caller sees."""
        sizes = tuple(tensor.shape)
        return ARRAYS[tensor.data_ptr()].numpy().reshape((sizes[0], sizes[2], sizes[1], sizes[3]) if face is _faces.HEADS_FIRST else sizes)

    def array(self, face, tensor):
        dense = host(tensor)
        if face is _faces.HEADS_FIRST:
            return ENGINE.array(numpy.ascontiguousarray(dense.transpose(0, 2, 1, 3)))
        return ENGINE.array(dense[None] if face is _faces.PACKED else dense)

    def test_dense(self):
        self.twice(_faces.DENSE, ((2, 19, 4, 64), (2, 45, 2, 64), (2, 45, 2, 64)), {"scale": None, "causal": True, "window_left": 7}, causal=True, window=(7, 0))

    def test_heads_first(self):
        self.twice(_faces.HEADS_FIRST, ((2, 4, 21, 64), (2, 2, 21, 64), (2, 2, 21, 64)), {"scale": 0.25, "causal": True}, causal=True, scale=0.25)

    def test_packed_and_rows_of_no_sequence(self):
        # Rows 18 and 19 are nobody's: they have no gradient, whatever lay in their memory.
        starts, rows = numpy.array([0, 5, 18], numpy.int32), slice(0, 18)

        def close(one, other):
            self.assertTrue(numpy.array_equal(one[rows].view(numpy.uint16), other[rows].view(numpy.uint16)))

        numbers = {"query_starts": starts, "key_starts": starts, "max_query_length": 13, "max_key_length": 13}
        words = {**numbers, "query_starts": rocm(starts), "key_starts": rocm(starts), "scale": None, "causal": True}
        sizes = [(20, 2, 64)] * 3
        with mock.patch.object(sys.modules[__name__], "FILLED", 0x3C):
            self.twice(_faces.PACKED, sizes, words, more=close, causal=True, **numbers)
            for _ in range(2):
                context = Context()
                Plainly.forward(context, _faces.PACKED.number, *[rocm(draw(*size)) for size in sizes], words)
                for gradient in Plainly._backward_cls.apply(context, rocm(draw(*sizes[0])))[1:4]:
                    self.assertTrue(host(gradient)[rows].any(axis=(1, 2)).all())
                    self.assertFalse(host(gradient)[18:].any())

    def test_what_was_seen_is_not_what_is_refused(self):
        q, slopes = rocm(draw(1, 7, 2, 64)), rocm(numpy.array([0.5, 0.25], numpy.float32))
        with mock.patch.object(torch.Tensor, "to", lambda tensor, *_: tensor):
            for _ in range(2):
                wavejit.torch.flash_attn_func(q, q, q, alibi_slopes=slopes)
            with self.assertRaisesRegex(wavejit.Unsupported, "alibi_slopes: they require grad"):
                wavejit.torch.flash_attn_func(q, q, q, alibi_slopes=slopes.requires_grad_())
            with self.assertRaisesRegex(wavejit.InvalidArgument, "dropout_p = 0.5"):
                wavejit.torch.flash_attn_func(q, q, q, dropout_p=0.5)
        q, k = rocm(draw(1, 4, 7, 64)), rocm(draw(1, 2, 7, 64))
        for _ in range(2):
            wavejit.torch.scaled_dot_product_attention(q, k, k, enable_gqa=True)
        with self.assertRaisesRegex(wavejit.InvalidArgument, "or enable_gqa=True"):
            wavejit.torch.scaled_dot_product_attention(q, k, k)


def allocator(room=1 << 40):
    """What torch's allocator is asked for meanwhile; of more than `room` it has none."""
    return mock.patch.multiple(__name__, ASKED=[], ROOM=room)


class Workspace(Case):
    """Calls that split keys: their workspace is torch's, also in a graph."""

    def setUp(self):
        super().setUp()
        self.q, cache = draw(3, 1, 8, 64), draw(1200, 2, 16, 2, 64)
        self.tensors = rocm(self.q), view(cache, slice(None), 0), view(cache, slice(None), 1)
        self.table = RANDOM.permutation(1200).astype(numpy.int32).reshape(3, 400)
        self.words = {"cache_seqlens": rocm(numpy.array([6400, 3000, 5], numpy.int32)), "block_table": rocm(self.table), "causal": True}
        whole, self.lse = self.decode(num_splits=1)
        self.whole = host(whole).copy()
        for b, length in enumerate((6400, 3000, 5)):
            k, v = (wide(cache[self.table[b], which]).reshape(-1, 2, 64)[:length] for which in (0, 1))
            self.close(self.whole[b], reference.attention(wide(self.q[b]), k, v, causal=True)[0])
        self.bytes = 3 * 8 * 7 * (64 + 4) * 4  # rows, heads, chunks of 1,024 keys, a record

    def decode(self, **words):
        return wavejit.torch.flash_attn_with_kvcache(*self.tensors, return_softmax_lse=True, **self.words, **words)

    def test_it_is_torchs(self):
        for splits in (0, 3):
            with self.subTest(splits=splits), allocator():
                out, _ = self.decode(num_splits=splits)
                self.assertTrue(any(self.bytes <= asked <= self.bytes + 256 for asked in ASKED), ASKED)
            self.assertTrue(numpy.array_equal(host(out), self.whole))

    def test_a_captured_decode_splits(self):
        self.decode()  # its kernels are loaded
        for stream_words in ({}, {"num_splits": 4}):
            with self.subTest(**stream_words):
                self.decode(**stream_words)
                stream, graph, running, count = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_size_t()
                self.assertEqual(HIP.hipStreamCreate(ctypes.byref(stream)), 0)
                with mock.patch.object(_dispatch, "current_stream", lambda device: stream.value), allocator():
                    self.assertEqual(HIP.hipStreamBeginCapture(stream, 2), 0)  # relaxed: memory comes from the graph's pool meanwhile
                    out, _ = self.decode(**stream_words)
                    self.assertEqual(HIP.hipStreamEndCapture(stream, ctypes.byref(graph)), 0)
                    self.assertTrue(any(self.bytes <= asked <= self.bytes + 256 for asked in ASKED), ASKED)
                self.assertEqual(HIP.hipGraphGetNodes(graph, None, ctypes.byref(count)), 0)
                self.assertEqual(count.value, 1)  # the last workgroup to arrive merges
                self.assertEqual(HIP.hipGraphInstantiate(ctypes.byref(running), graph, None, None, 0), 0)
                self.assertEqual(HIP.hipGraphLaunch(running, stream), 0)
                self.assertEqual(HIP.hipStreamSynchronize(stream), 0)
                self.assertTrue(numpy.array_equal(host(out), self.whole))

    def test_where_torch_has_no_room_fewer_sequences_go_at_a_time(self):
        for room in (self.bytes - 4, self.bytes // 2, 8000):
            with self.subTest(room=room), allocator(room):
                out, _ = self.decode()
                self.assertTrue(numpy.array_equal(host(out), self.whole))
                self.assertGreater(max(ASKED), room)
        with allocator(8000), self.assertRaisesRegex(torch.OutOfMemoryError, "no room"):
            self.decode(num_splits=3)  # as many as the caller says, or none


class Refused(Case):
    def test_by_name_and_without_a_launch(self):
        q = rocm(draw(1, 7, 2, 64))
        before = ENGINE.statistics()["memory_hits"]
        on_the_host = torch.ones(1, 7, 2, 64, dtype=torch.float16)
        for _ in range(2):  # nothing of a refused call is remembered
            with self.assertRaisesRegex(wavejit.InvalidArgument, "v: a tensor on cpu; accepted: hip:0, where q is"):
                _dispatch.on_device(ENGINE, q, q, on_the_host, False, {})
            with self.assertRaisesRegex(wavejit.Error, "k.dtype|dtype"):
                wavejit.torch.flash_attn_func(q, rocm(draw(1, 7, 2, 64).astype(numpy.float32)), q)
            with self.assertRaisesRegex(wavejit.InvalidArgument, "max_query_length is missing"):
                torch.ops.wavejit.attention_forward(q, q, q, query_starts=rocm(numpy.array([0, 7], numpy.int32)))
            with self.assertRaisesRegex(wavejit.InvalidArgument, r"key_lengths: shape \(2,\); accepted: \[sequences\], which is \[1\]"):
                torch.ops.wavejit.attention_forward(q, q, q, key_lengths=rocm(numpy.array([1, 2], numpy.int32)))
        self.assertEqual(ENGINE.statistics()["memory_hits"], before)

    def test_a_closed_engine(self):
        mine = wavejit.torch.use(wavejit.Engine("hip"))
        rows = rocm(draw(1, 7, 2, 64))
        try:
            wavejit.torch.flash_attn_func(rows, rows, rows)
            mine.close()
            self.assertEqual(mine._plans, {})
            with self.assertRaisesRegex(wavejit.InvalidArgument, "engine: it is closed"):
                wavejit.torch.flash_attn_func(rows, rows, rows)
        finally:
            wavejit.torch.use(ENGINE)


if __name__ == "__main__":
    unittest.main()
