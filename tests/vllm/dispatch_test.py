# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A layer of vLLM's over tensors of the device: those of tests/torch/rocm_test.py, on the simulated HIP.

Torch computes nothing there, so vLLM's engine cannot run; the implementation can, with caches as vLLM lays them out.
"""
import ctypes
import types
import unittest
from unittest import mock

import numpy
import rocm_test
import torch
from exact import attention
from rocm_test import ENGINE, allocator, host, rocm, tensor_of

import wavejit.vllm
from wavejit import _dtypes
from wavejit._arrays import DeviceArray
from wavejit.torch import _dispatch
from wavejit.vllm import WavejitAttention, WavejitMetadata, _cache, _lines
from wavejit.vllm._serving import Serving

RANDOM = numpy.random.default_rng(23)
LAYER = types.SimpleNamespace(_k_scale=None, _v_scale=None)
HEADS, KV_HEADS, DIM, PAGE, PAGES = 4, 2, 64, 16, 48
SERVING = Serving(ENGINE, True)


def layer(**words):
    default = torch.get_default_dtype()
    torch.set_default_dtype(torch.float16)
    try:
        return WavejitAttention(HEADS, DIM, DIM**-0.5, KV_HEADS, **words)
    finally:
        torch.set_default_dtype(default)


def hip(name, *given):
    assert getattr(rocm_test.HIP, name)(*given) == 0, name


def int32(numbers):
    return numpy.asarray(numbers, numpy.int32)


def int64(numbers):
    """As vLLM has slots. Arrays of wavejit's have none, so they come as two dwords each."""
    array = ENGINE.array(numpy.asarray(numpy.asarray(numbers, numpy.int64)).view(numpy.int32))
    return tensor_of(DeviceArray(ENGINE, array._memory, array._address, _dtypes.INT64, (len(numbers),), (1,)))


class Batch:
    """Sequences of this many rows and keys in shuffled pages of one cache, on the host and on the device."""

    def __init__(self, rows, keys, room=0):
        self.starts, self.lengths = int32([0, *numpy.cumsum(rows)]), int32(keys)
        columns = max(-(-each // PAGE) for each in keys)
        self.table = int32(RANDOM.permutation(PAGES)[: len(rows) * columns].reshape(len(rows), columns))
        self.most = max(rows), max(keys)
        self.rows = int(self.starts[-1])
        self.query = RANDOM.standard_normal((self.rows + room, HEADS, DIM)).astype(numpy.float16)
        self.cache = RANDOM.standard_normal((PAGES, KV_HEADS, PAGE, 2 * DIM)).astype(numpy.float16)

    def metadata(self, rows=None, most=None):
        longest, keys = most or self.most
        return WavejitMetadata(rows or self.rows, rocm(self.starts), rocm(self.lengths), rocm(self.table), longest, keys, True, SERVING)

    def exact(self, implementation):
        pages = torch.from_numpy(self.cache).transpose(1, 2)
        kind = implementation.kind
        return attention(torch.from_numpy(self.query[: self.rows]), pages[..., :DIM], pages[..., DIM:], *map(torch.from_numpy, (self.starts, self.lengths, self.table)),
                         scale=implementation.scale, window_left=kind.window_left, softcap=kind.softcap, sinks=implementation.sinks, slopes=implementation.alibi_slopes)[0]


class Road(rocm_test.Case):
    def run_layer(self, implementation, batch, output=None, **words):
        """The output as vLLM has it, on the host."""
        query = rocm(batch.query)
        output = rocm(numpy.full_like(batch.query, 7)) if output is None else output
        given = {"alibi": implementation.alibi_slopes, "sinks": implementation.sinks}
        tensors = {name: rocm(each.numpy()) for name, each in given.items() if each is not None}
        wavejit.vllm._calls.attend(implementation.words, batch.metadata(**words), query, rocm(batch.cache), output, tensors)
        return host(output)

    def test_mixes_against_float64_and_nothing_is_copied(self):
        cases = ({}, {"sliding_window": 24}, {"logits_soft_cap": 20.0}, {"sinks": torch.linspace(-1, 1, HEADS)}, {"alibi_slopes": [0.5, 0.25, 0.125, 0.0625]})
        clones = mock.Mock(side_effect=AssertionError("copied"))
        for words in cases:
            with self.subTest(words), mock.patch.object(torch.Tensor, "contiguous", clones), mock.patch.object(torch.Tensor, "clone", clones):
                implementation, batch = layer(**words), Batch((1, 37, 5, 1), (90, 37, 61, 12))
                self.close(self.run_layer(implementation, batch), batch.exact(implementation).numpy())

    def test_vllms_own_output_is_written_and_what_lies_behind_it_is_not(self):
        batch = Batch((3, 1), (50, 20), room=5)
        found = self.run_layer(layer(), batch)
        self.close(found[: batch.rows], batch.exact(layer()).numpy())
        self.assertTrue((found[batch.rows :] == 7).all())

    def test_steps_of_a_shape_share_a_checked_call(self):
        implementation = layer()
        self.run_layer(implementation, Batch((1, 1), (33, 21)))
        known = len(ENGINE._plans)
        for keys in range(34, 40):
            batch = Batch((1, 1), (keys, 21))
            self.close(self.run_layer(implementation, batch), batch.exact(implementation).numpy())
        self.assertEqual(len(ENGINE._plans), known)

    def test_layers_of_a_kind_may_have_one_scale_or_one_for_each_head(self):
        batch, implementation = Batch((1, 5), (33, 21)), layer(kv_cache_dtype="fp8_e4m3")
        codes = RANDOM.integers(0x20, 0x48, batch.cache.shape, numpy.uint8)
        metadata, pages = batch.metadata(), tensor_of(ENGINE.array(codes, "e4m3"))
        wide = torch.from_numpy(_dtypes.widened(codes, _dtypes.E4M3)).transpose(1, 2)
        for given in ([0.25], [0.25, 0.75]):
            scales, output = numpy.float32(given), rocm(numpy.zeros((batch.rows, HEADS, DIM), numpy.float16))
            tensors = {"k_scale": rocm(scales), "v_scale": rocm(scales)}
            wavejit.vllm._calls.attend(implementation.words, metadata, rocm(batch.query), pages, output, tensors)
            both = wide * torch.from_numpy(scales)[:, None]
            exact = attention(torch.from_numpy(batch.query), both[..., :DIM], both[..., DIM:], *map(torch.from_numpy, (batch.starts, batch.lengths, batch.table)), scale=implementation.scale)[0]
            self.close(host(output), exact.numpy())

    def append(self, rows, cache="", scales=None):
        """Keys and values as a projection makes them, side by side with queries, into a cache of noise: what was given, and the cache on the host."""
        qkv = RANDOM.standard_normal((rows, (HEADS + 2 * KV_HEADS) * DIM)).astype(numpy.float16)
        slots = RANDOM.permutation(PAGES * PAGE)[:rows].astype(numpy.int64)
        slots[rows // 2] = -1
        pages = RANDOM.integers(0, 100, (PAGES, KV_HEADS, PAGE, 2 * DIM)).astype(numpy.uint8 if cache else numpy.float16)
        array = ENGINE.array(pages, cache or None)
        held, on_device = tensor_of(array), ENGINE.array(qkv.reshape(rows, HEADS + 2 * KV_HEADS, DIM))
        key, value = (tensor_of(on_device[:, begin : begin + KV_HEADS]) for begin in (HEADS, HEADS + KV_HEADS))
        _cache.append(ENGINE, key, value, held, int64(slots), cache, None if scales is None else tuple(map(rocm, scales)))
        both = qkv[:, HEADS * DIM :].reshape(rows, 2, KV_HEADS, DIM).transpose(0, 2, 1, 3).reshape(rows, KV_HEADS, 2 * DIM)
        return both, slots, pages, array.numpy(pages.dtype)

    def test_new_keys_go_into_the_cache_in_one_launch(self):
        one, each = numpy.float32([0.25]), numpy.float32([0.125, 3])
        for cache, scales in (("", None), ("e4m3", (one, one)), ("e4m3", (one, each))):
            given, slots, expected, found = self.append(7, cache, scales)
            for row, slot in zip(given, slots):
                if slot < 0:
                    continue
                if cache:
                    by = numpy.concatenate([numpy.broadcast_to(scale[:, None] if scale.size > 1 else scale, (KV_HEADS, DIM)) for scale in scales], 1)
                    row = torch.from_numpy(row.astype(numpy.float32) / by).clamp(-448, 448).to(torch.float8_e4m3fn).view(torch.uint8).numpy()
                expected[slot // PAGE, :, slot % PAGE] = row
            self.assertTrue(numpy.array_equal(found, expected))

    def test_nothing_is_allocated_after_the_first_step(self):
        """A layer's write and its attention: no memory of torch's, no operation of torch's, no checked call that was not there."""
        implementation, batch = layer(), Batch((1, 1), (33, 21))
        tensors = rocm(batch.query), rocm(batch.cache), rocm(numpy.zeros_like(batch.query))
        key, slots, metadata = rocm(RANDOM.standard_normal((2, KV_HEADS, DIM)).astype(numpy.float16)), int64([3, 40]), batch.metadata()

        def step():
            _cache.append(ENGINE, key, key, tensors[1], slots, "", None)
            wavejit.vllm._calls.attend(implementation.words, metadata, *tensors, {})

        step()
        known = len(ENGINE._plans)
        with allocator(1 << 40):
            for _ in range(3):
                step()
            self.assertEqual(rocm_test.ASKED, [])
        self.assertEqual(len(ENGINE._plans), known)

    def test_a_padded_step_as_a_captured_one_has_it(self):
        """Rows for eight sequences where two are there; bounds are those of the capture."""
        implementation, batch = layer(), Batch((1, 1), (40, 9))
        exact = batch.exact(implementation).numpy()
        batch.starts, batch.lengths = int32([0, 1, *[2] * 7]), int32([40, 9, *[0] * 6])
        batch.table = numpy.concatenate([batch.table, numpy.zeros((6, batch.table.shape[1]), numpy.int32)])
        batch.query = numpy.concatenate([batch.query, batch.query, batch.query, batch.query])
        found = self.run_layer(implementation, batch, rows=8, most=(1, batch.table.shape[1] * PAGE))
        self.close(found[:2], exact)
        self.assertTrue((found[2:] == 7).all())

    def test_a_captured_step_replays_any_batch_that_it_has_room_for(self):
        """What AttentionCGSupport.ALWAYS says: prompts, chunks, decode and their mixes, from one graph, by what stands on the device."""
        implementation, room, tokens, columns = layer(sliding_window=24), 4, 48, PAGES // 4
        cache = Batch((1,), (1,)).cache
        table = int32(numpy.arange(PAGES).reshape(room, columns))
        tensors = {"starts": rocm(numpy.zeros(room + 1, numpy.int32)), "lengths": rocm(numpy.zeros(room, numpy.int32)), "table": rocm(table),
                   "query": rocm(numpy.zeros((tokens, HEADS, DIM), numpy.float16)), "cache": rocm(cache), "output": rocm(numpy.zeros((tokens, HEADS, DIM), numpy.float16))}  # fmt: skip
        metadata = WavejitMetadata(tokens, tensors["starts"], tensors["lengths"], tensors["table"], tokens, columns * PAGE, True, SERVING)

        def attend():
            wavejit.vllm._calls.attend(implementation.words, metadata, tensors["query"], tensors["cache"], tensors["output"], {})

        attend()  # kernels are loaded, and the workspace is there
        stream, graph, ready = (ctypes.c_void_p() for _ in range(3))
        hip("hipStreamCreate", ctypes.byref(stream))
        hip("hipStreamBeginCapture", stream, 1)
        with mock.patch.object(_dispatch, "current_stream", lambda device: stream.value):
            attend()
        hip("hipStreamEndCapture", stream, ctypes.byref(graph))
        hip("hipGraphInstantiate", ctypes.byref(ready), graph, None, None, 0)
        for rows, keys in (((1, 1, 1, 1), (40, 9, 180, 1)), ((30, 1, 16, 1), (30, 77, 120, 5)), ((48, 0, 0, 0), (190, 0, 0, 0)), ((3, 1, 0, 0), (3, 100, 0, 0))):
            batch = Batch(rows, keys, room=tokens - sum(rows))
            batch.cache, batch.table = cache, table
            for name, given in (("starts", batch.starts), ("lengths", batch.lengths), ("query", batch.query), ("output", numpy.full((tokens, HEADS, DIM), 7, numpy.float16))):
                hip("hipMemcpy", ctypes.c_void_p(tensors[name].data_ptr()), given.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(given.nbytes), 1)
            hip("hipGraphLaunch", ready, stream)
            hip("hipStreamSynchronize", stream)
            found = host(tensors["output"])
            self.close(found[: batch.rows], batch.exact(implementation).numpy())
            self.assertTrue((found[batch.rows :] == 7).all())
        hip("hipGraphExecDestroy", ready)
        hip("hipGraphDestroy", graph)
        hip("hipStreamDestroy", stream)

    def test_partial_results_are_in_torchs_memory_once_a_step(self):
        implementation, batch = layer(), Batch((1,), (700,))
        with allocator(1 << 40):
            metadata = batch.metadata()
            tensors = rocm(batch.query), rocm(batch.cache), rocm(numpy.zeros_like(batch.query))
            for _ in range(3):  # layers
                wavejit.vllm._calls.attend(implementation.words, metadata, *tensors, {})
            self.assertEqual(len(rocm_test.ASKED), 1)
        self.close(host(tensors[2]), batch.exact(implementation).numpy())

    def test_sealed_after_the_lines_of_a_layer(self):
        """Any step that the scheduler may make: rows, lengths and batches of all classes find their kernels."""
        implementation = layer(sliding_window=24)
        SERVING.prepare([_lines.line(implementation.kind, 8, 512, PAGE * PAGES, PAGE), _lines.append_line(implementation.kind, PAGE)])
        SERVING.seal()
        self.addCleanup(ENGINE.unseal)
        before = ENGINE.statistics()
        for rows in ((1,), (1, 1, 1), (33,), (300,), (1, 1, 280), (64, 1), (2, 2), (5, 7, 1)):
            self.run_layer(implementation, Batch(rows, [min(each + 11, PAGE * (PAGES // len(rows))) for each in rows]))
        self.run_layer(implementation, Batch((1,), (760,)))
        for rows in (1, 5, 300):
            self.append(rows)
        after = ENGINE.statistics()
        self.assertEqual((after["compiled"], after["disk_hits"], after["refused_sealed"]), (before["compiled"], before["disk_hits"], 0))


if __name__ == "__main__":
    unittest.main()
