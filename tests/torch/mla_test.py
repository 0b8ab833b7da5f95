# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Latent attention over tensors, with the argument lists of FlashMLA and AITER: float64 before absorption, the engine's own bits, traces."""
import unittest
from unittest import mock

import numpy
import torch
from latent_test import LATENT, ROPE, SCALE, Layer, halves, pages_of  # tests/python

import wavejit
import wavejit.torch
from wavejit import latent

ENGINE = wavejit.torch.engine("cpu")


def int32(values):
    return torch.tensor(numpy.asarray(values, numpy.int32))


class Case(unittest.TestCase):
    heads, rows, lengths = 12, 1, (100, 33, 70)

    def setUp(self):
        torch._dynamo.reset()
        self.layer = Layer(self.heads)
        self.nope, self.rope, queries = self.layer.queries(len(self.lengths), self.rows)
        self.caches = [halves(length, LATENT + ROPE) for length in self.lengths]
        self.q = torch.from_numpy(queries)

    def close(self, out, lse, **words):
        """Each element behind the projection of values, beside the model's own definition. out [B, Sq, H, 512], LSE [B, H, Sq]."""
        for b, cache in enumerate(self.caches):
            exact, exact_lse = self.layer.exact(self.nope[b], self.rope[b], cache, **words)
            found = self.layer.behind(out[b].numpy())
            self.assertEqual(found.shape, exact.shape)
            self.assertLess(float((numpy.abs(found - exact) / (1 + numpy.abs(exact))).max()), 4e-3)
            self.assertLess(float(numpy.abs(lse[b].numpy() - exact_lse).max()), 1e-4)

    def same(self, one, other):
        self.assertEqual((one.dtype, one.shape), (other.dtype, other.shape))
        self.assertTrue(torch.equal(one, other))

    def paged(self, size):
        """Pages, a block table, and AITER's lists: where each sequence's entries begin, the entries, the keys of the last pages."""
        pages, table, listed = pages_of(self.caches, size)
        starts = numpy.cumsum([0] + [len(each) for each in listed])
        return torch.from_numpy(pages), int32(table), int32(starts), int32(numpy.concatenate(listed)), int32([(length - 1) % size + 1 for length in self.lengths])


class FlashMla(Case):
    rows = 2

    def test_pages(self):
        for size in (1, 16, 64):
            with self.subTest(size=size):
                pages, table, *_ = self.paged(size)
                metadata = wavejit.torch.get_mla_metadata(int32(self.lengths), self.heads, 1)
                out, lse = wavejit.torch.flash_mla_with_kvcache(self.q, pages, table, int32(self.lengths), 512, *metadata, softmax_scale=SCALE, causal=True)
                self.close(out, lse, causal=True)

    def test_sinks_show_in_out_alone(self):
        pages, table, *_ = self.paged(64)
        sinks = torch.full((self.heads,), 6.0)
        given = (self.q, pages, table, int32(self.lengths), 512)
        out, lse = wavejit.torch.flash_mla_with_kvcache(*given, softmax_scale=SCALE, causal=True, attn_sink=sinks)
        _, without = wavejit.torch.flash_mla_with_kvcache(*given, softmax_scale=SCALE, causal=True)
        self.same(lse, without)
        for b, cache in enumerate(self.caches):
            exact, _ = self.layer.exact(self.nope[b], self.rope[b], cache, causal=True, sinks=sinks.double().numpy())
            self.assertLess(float((numpy.abs(self.layer.behind(out[b].numpy()) - exact) / (1 + numpy.abs(exact))).max()), 4e-3)

    def test_lists_of_slots(self):
        pages, table, *_ = self.paged(64)
        # All keys of a sequence as slots, in no order, with holes; of each sequence this many entries count.
        slots = numpy.full((len(self.lengths), 2, 128), -1, numpy.int32)
        for b, length in enumerate(self.lengths):
            keys = numpy.random.default_rng(b).permutation(length)
            slots[b, :, numpy.arange(length)] = (table[b, keys // 64].numpy() * 64 + keys % 64)[:, None]
            slots[b, :, length:] = 0x7FFFFFFF if b else -1
        counts = int32([128, 33, 128])
        out, lse = wavejit.torch.flash_mla_with_kvcache(self.q, pages, None, None, 512, softmax_scale=SCALE, indices=torch.from_numpy(slots), topk_length=counts)
        self.close(out, lse)

    def test_a_second_list_over_a_second_cache(self):
        # The sequences' keys in two caches, those behind the 40th in the second one.
        first, second = torch.zeros(2, 64, 1, self.q.shape[-1]).to(self.q.dtype), torch.zeros(len(self.lengths) + 1, 64, 1, self.q.shape[-1]).to(self.q.dtype)
        counts, others = [], []
        for b, length in enumerate(self.lengths):
            cache = torch.from_numpy(self.caches[b])[:length]
            before = min(length, 40)
            first.view(128, -1)[40 * b : 40 * b + before] = cache[:before]
            second[b + 1, : length - before, 0] = cache[before:]
            counts.append(before)
            others.append(length - before)
        slots = int32(numpy.arange(40) + 40 * numpy.arange(len(self.lengths))[:, None, None] + numpy.zeros((1, 2, 1)))
        of_second = int32(numpy.arange(64) + 64 * (1 + numpy.arange(len(self.lengths)))[:, None, None] + numpy.zeros((1, 2, 1)))
        out, lse = wavejit.torch.flash_mla_with_kvcache(self.q, first, None, None, 512, softmax_scale=SCALE, indices=slots, topk_length=int32(counts),
                                                        extra_k_cache=second, extra_indices_in_kvcache=of_second, extra_topk_length=int32(others))
        self.close(out, lse)
        with self.assertRaisesRegex(wavejit.InvalidArgument, "extra_k_cache: dtype torch.float32"):
            wavejit.torch.flash_mla_with_kvcache(self.q, first, None, None, 512, softmax_scale=SCALE, indices=slots, extra_k_cache=second.float(),
                                                 extra_indices_in_kvcache=of_second)

    def test_sparse_prefill(self):
        cache = self.caches[0]
        indices = int32(numpy.stack([numpy.random.default_rng(5).permutation(120)] * 2)[:, None])  # 20 of them are behind the keys
        out, nothing, lse = wavejit.torch.flash_mla_sparse_fwd(self.q[0], torch.from_numpy(cache[:, None]), indices, SCALE)
        self.assertIsNone(nothing)
        self.caches = self.caches[:1]
        self.close(out[None], lse.T[None])

    def test_a_cache_without_keys(self):
        """The first chunk of a sequence, or a dummy run: nothing is seen."""
        indices = torch.full((4, 1, 64), -1, dtype=torch.int32)
        indices[1:] = torch.arange(64, dtype=torch.int32)
        out, _, lse = wavejit.torch.flash_mla_sparse_fwd(torch.randn(4, 16, 576, dtype=torch.bfloat16), torch.empty(0, 1, 576, dtype=torch.bfloat16), indices, 0.1)
        self.assertEqual((int(torch.count_nonzero(out)), float(lse.max())), (0, -numpy.inf))
        out, lse = wavejit.torch.attention_latent(torch.randn(1, 2, 16, 576, dtype=torch.bfloat16), torch.empty(8, 0, 1, 576, dtype=torch.bfloat16), scale=0.1, indices=indices[:2].view(1, 2, 64),
                                                  slots=True, return_lse=True)
        self.assertEqual((int(torch.count_nonzero(out)), float(lse.max())), (0, -numpy.inf))


class Aiter(Case):
    def test_pages(self):
        for size in (1, 16, 64):
            with self.subTest(size=size):
                pages, _, starts, entries, lasts = self.paged(size)
                out = torch.full((3, self.heads, LATENT), float("nan"), dtype=torch.float16)
                nothing, lse = wavejit.torch.mla_decode_fwd(self.q[:, 0], pages, out, int32([0, 1, 2, 3]), starts, entries, lasts, 1, page_size=size, sm_scale=SCALE,
                                                            num_kv_splits=16, work_meta_data=starts, return_lse=True, max_key_length=100)
                self.assertIsNone(nothing)
                self.close(out[:, None], lse[:, :, None])

    def test_what_the_host_is_not_told_shows_in_no_bit(self):
        pages, _, starts, entries, lasts = self.paged(16)
        found = []
        for words in ({"max_key_length": 100}, {"max_key_length": 5000, "num_kv_splits": 3}, {}):
            found.append(torch.zeros(3, self.heads, LATENT).half())
            self.assertEqual(wavejit.torch.mla_decode_fwd(self.q[:, 0], pages, found[-1], int32([0, 1, 2, 3]), starts, entries, lasts, 1, 16, sm_scale=SCALE, **words),
                             (None, None))
        self.same(found[1], found[0])
        self.same(found[2], found[0])

    def test_a_sequence_without_pages(self):
        pages, _, starts, entries, lasts = self.paged(64)
        out = torch.full((4, self.heads, LATENT), float("nan"), dtype=torch.float16)
        q = torch.cat([self.q[:, 0], self.q[:1, 0]])
        _, lse = wavejit.torch.mla_decode_fwd(q, pages, out, int32([0, 1, 2, 3, 4]), torch.cat([starts, starts[-1:]]), entries, torch.cat([lasts, lasts[:1]]), 1, 64,
                                              sm_scale=SCALE, return_lse=True)
        self.assertTrue((out[3] == 0).all() and (lse[3] == float("-inf")).all())
        self.close(out[:3, None], lse[:3, :, None])


    def decode(self, size, **changed):
        pages, _, starts, entries, lasts = self.paged(size)
        given = {"q": self.q[:, 0], "kv_buffer": pages, "o": torch.zeros(3, self.heads, LATENT).half(), "qo_indptr": int32([0, 1, 2, 3]), "kv_indptr": starts, "kv_indices": entries,
                 "kv_last_page_lens": lasts, "max_seqlen_q": 1, "page_size": size, "sm_scale": SCALE, **changed}
        wavejit.torch.mla_decode_fwd(**given)
        return given["o"]

    def test_pages_that_the_buffer_does_not_have(self):
        flat = self.paged(64)[0].reshape(-1, 1, 1, LATENT + ROPE)
        for size, changed, pattern in (
            (64, {"page_size": 1}, r"page_size = 1; accepted: 64, the keys of a page of kv_buffer, whose shape is \(\d+, 64, 1, 576\)"), (64, {"page_size": 16}, "page_size = 16; accepted: 64"),
            (64, {"kv_buffer": flat}, "page_size = 64; accepted: 1"), (64, {"kv_buffer": flat[:, 0]}, "kv_buffer: shape"),
            (64, {"kv_last_page_lens": int32([36, 0, 6])}, r"kv_last_page_lens\[1\] = 0; accepted: 1 … 64, the keys of a page"),
            (64, {"kv_last_page_lens": int32([-3, 33, 6])}, r"kv_last_page_lens\[0\] = -3; accepted: 1 … 64"), (64, {"kv_last_page_lens": int32([36, 33, 65])}, r"kv_last_page_lens\[2\] = 65"),
            (64, {"kv_last_page_lens": int32([36])}, "kv_last_page_lens: 1 numbers; accepted: 3, as kv_indptr has 4"), (1, {"kv_last_page_lens": int32([1, 2, 1])}, r"kv_last_page_lens\[1\] = 2; accepted: 1, as"),
            (64, {"kv_indptr": int32([0, 2, 1, 5])}, r"kv_indptr\[2\] = 1; accepted: at least 2"), (64, {"max_key_length": 99}, "max_key_length = 99; accepted: at least 100, the keys of sequence 0"),
            (64, {"cp_rank": 1}, "cp_rank = 1; accepted: 0"), (64, {"kv_indptr": int32([0, 2, 3, 9])}, r"kv_indptr\[3\] = 9; accepted: 3 … 5, the entries of kv_indices"),
            (64, {"kv_indptr": int32([-1, 2, 3, 5])}, r"kv_indptr\[0\] = -1; accepted: 0 … 5"), (64, {"max_seqlen_q": 0}, r"qo_indptr\[1\] = 1; accepted: 0 \(after 0, max_seqlen_q = 0\)"),
            (64, {"qo_indptr": int32([0, 1, 3, 3])}, r"qo_indptr\[2\] = 3; accepted: 1 … 2 \(after 1, max_seqlen_q = 1\)"),
        ):  # fmt: skip
            with self.subTest(pattern=pattern), self.assertRaisesRegex(wavejit.InvalidArgument, f"^{pattern}"):
                self.decode(size, **changed)
        self.close(self.decode(1, kv_last_page_lens=None)[:, None], [each[:, None] for each in self.lse()])

    def lse(self):
        return [torch.from_numpy(self.layer.exact(self.nope[b], self.rope[b], cache)[1][:, 0]) for b, cache in enumerate(self.caches)]

    def test_what_a_device_says_of_last_pages_stays_in_them(self):
        from wavejit.torch import _kvcache, _latent

        with mock.patch.object(_kvcache, "can_be_read", lambda tensor: False):
            found = _latent._aiter_lengths(64, 5, int32([0, 2, 3, 3, 5]), int32([36, -3, 0, 99]), None)
        self.assertEqual(found.tolist(), [100, 1, 0, 128])


class OfWavejit(Case):
    rows = 3

    def test_the_bits_of_the_engine(self):
        keys = torch.from_numpy(halves(3, 130, 1, LATENT + ROPE))
        words = {"scale": SCALE, "causal": True, "softcap": 30.0, "sinks": torch.randn(self.heads)}
        out, lse = wavejit.torch.attention_latent(self.q, keys, return_lse=True, **words)
        exact, exact_lse = ENGINE.attention_latent(self.q, keys, lse=True, **words)
        self.same(out, torch.from_numpy(exact.numpy()))
        self.same(lse, torch.from_numpy(exact_lse.numpy()))
        # The rope apart, as views of one tensor and on their own; out that is given.
        given = torch.empty_like(out)
        cut = {"q_rope": self.q[..., LATENT:], "k_rope": keys[..., LATENT:].contiguous()}
        self.assertIs(wavejit.torch.attention_latent(self.q[..., :LATENT], keys[..., :LATENT].contiguous(), out=given, **cut, **words), given)
        self.same(given, out)
        for prefix, splits in ((60, 0), (60, 2)):
            one = wavejit.torch.attention_latent(self.q, keys, scale=SCALE, causal_prefix=prefix, causal=True, splits=splits)
            self.same(one, torch.from_numpy(ENGINE.attention_latent(self.q, keys, scale=SCALE, causal_prefix=prefix, causal=True).numpy()))

    def test_no_rows_and_no_keys(self):
        keys = torch.from_numpy(halves(3, 5, 1, LATENT + ROPE))
        out, lse = wavejit.torch.attention_latent(self.q[:, :0], keys, scale=SCALE, return_lse=True)
        self.assertEqual((out.shape, lse.shape), ((3, 0, self.heads, LATENT), (3, self.heads, 0)))
        out, lse = wavejit.torch.attention_latent(self.q, keys[:, :0], scale=SCALE, return_lse=True)
        self.assertTrue((out == 0).all() and (lse == float("-inf")).all())


def step(q, pages, table, lengths, starts, entries, lasts, out):
    """Two of a layer's calls between other operations: one makes its output, one writes the caller's."""
    first, lse = wavejit.torch.flash_mla_with_kvcache(2 * q, pages, table, lengths, 512, softmax_scale=SCALE, causal=True)
    wavejit.torch.mla_decode_fwd(2 * q.flatten(0, 1), pages, out, torch.arange(0, q.shape[0] + 1, dtype=torch.int32), starts, entries, lasts, 1, 16, sm_scale=SCALE,
                                 max_key_length=100)
    return first + out[:, None], lse.exp(), wavejit.torch.attention_latent(q, pages[:3].nan_to_num(), scale=SCALE)


class Trace(Case):
    def inputs(self):
        pages, table, starts, entries, lasts = self.paged(16)
        return self.q, pages, table, int32(self.lengths), starts, entries, lasts

    def test_one_graph_and_the_same_bits(self):
        inputs, graphs = self.inputs(), []
        out = torch.zeros(3, self.heads, LATENT).half()
        plain = step(*inputs, out)

        def keep(graph, _):
            graphs.append(graph.code)
            return graph

        for backend in ("aot_eager", keep):
            given = torch.zeros_like(out)
            for one, other in zip(torch.compile(step, backend=backend, fullgraph=True)(*inputs, given), plain):
                self.same(one, other)
            self.same(given, out)
        self.assertEqual(len(graphs), 1)
        for operator in ("attention_latent", "attention_latent_lse", "attention_latent_out"):
            self.assertEqual(graphs[0].count(f"torch.ops.wavejit.{operator}.default("), 1, operator)

    def test_torch_librarys_own_checks(self):
        q, pages, table, lengths, *_ = self.inputs()
        words = {"scale": SCALE, "causal": True, "block_table": table, "key_lengths": lengths, "max_key_length": 100}
        for operator, tensors, more in ((torch.ops.wavejit.attention_latent, (q, pages), {}), (torch.ops.wavejit.attention_latent_lse, (q, pages), {}),
                                        (torch.ops.wavejit.attention_latent_out, (torch.zeros(3, 1, self.heads, LATENT).half(), q, pages), {"lse": True})):
            told = torch.library.opcheck(operator.default, tensors, {**words, **more})
            self.assertEqual(set(told.values()), {"SUCCESS"})

    def test_batches_that_change(self):
        seen = []

        def keep(graph, _):
            seen.append(graph)
            return graph

        def attend(q, keys):
            return wavejit.torch.attention_latent(2 * q, keys, scale=SCALE, causal=True)

        compiled = torch.compile(attend, backend=keep, fullgraph=True, dynamic=True)
        for rows in (3, 5, 8):
            q, keys = torch.from_numpy(halves(1, rows, 4, 576)), torch.from_numpy(halves(1, 40 + rows, 1, 576))
            self.same(compiled(q, keys), attend(q, keys))
        self.assertEqual(len(seen), 1)

    def test_shapes_without_a_device(self):
        before = ENGINE.statistics()["calls"]
        with torch.device("meta"):
            q, keys = torch.empty(2, 5, 20, 320).half(), torch.empty(2, 9, 1, 320).half()
        out, lse = torch.ops.wavejit.attention_latent_lse(q, keys, scale=SCALE)
        self.assertEqual((out.shape, out.dtype, lse.shape, lse.dtype), ((2, 5, 20, 256), torch.float16, (2, 20, 5), torch.float32))
        self.assertEqual(ENGINE.statistics()["calls"], before)


class Refused(Case):
    def test_by_the_callers_names(self):
        pages, table, starts, entries, lasts = self.paged(64)
        lengths = int32(self.lengths)
        dense = torch.from_numpy(halves(3, 20, 1, 576))
        given = (self.q, pages, table, lengths, 512)
        for pattern, error, call in (
            ("softmax_scale = None", wavejit.InvalidArgument, lambda: wavejit.torch.flash_mla_with_kvcache(*given)),
            ("k_cache: dtype torch.float16 beside is_fp8_kvcache; accepted: torch.float8_e4m3fn", wavejit.InvalidArgument,
             lambda: wavejit.torch.flash_mla_with_kvcache(*given, softmax_scale=SCALE, is_fp8_kvcache=True)),
            ("softmax_scale = 0|softmax_scale", wavejit.InvalidArgument, lambda: wavejit.torch.flash_mla_with_kvcache(*given, softmax_scale=float("nan"))),
            ("k_cache: dtype torch.float32; accepted: torch.float16, q's, torch.float8_e4m3fn", wavejit.InvalidArgument,
             lambda: wavejit.torch.flash_mla_with_kvcache(self.q, pages.float(), table, lengths, 512, softmax_scale=SCALE)),
            ("topk_length without indices", wavejit.InvalidArgument, lambda: wavejit.torch.flash_mla_with_kvcache(*given, softmax_scale=SCALE, topk_length=lengths)),
            ("block_table = None; accepted: int32", wavejit.InvalidArgument, lambda: wavejit.torch.flash_mla_with_kvcache(self.q, pages, None, lengths, 512, softmax_scale=SCALE)),
            ("cache_seqlens = None; accepted: int32", wavejit.InvalidArgument, lambda: wavejit.torch.flash_mla_with_kvcache(self.q, pages, table, None, 512, softmax_scale=SCALE)),
            ("is_fp8_kvcache = False beside a k_cache of 8 bits", wavejit.InvalidArgument,
             lambda: wavejit.torch.flash_mla_with_kvcache(self.q, pages.to(torch.float8_e4m3fn), table, lengths, 512, softmax_scale=SCALE, k_scale=1.0)),
            ("sm_scale = None", wavejit.InvalidArgument, lambda: wavejit.torch.mla_decode_fwd(self.q[:, 0], pages, self.q[:, 0], starts, starts, entries, lasts, 1, 64)),
            ("cp_world_size is given", wavejit.Unsupported,
             lambda: wavejit.torch.mla_decode_fwd(self.q[:, 0], pages, self.q[:, 0], starts, starts, entries, lasts, 1, 64, sm_scale=SCALE, cp_world_size=2)),
            ("kv_last_page_lens: None beside page_size = 64", wavejit.InvalidArgument,
             lambda: wavejit.torch.mla_decode_fwd(self.q[:, 0], pages, self.q[:, 0], starts, starts, entries, None, 1, 64, sm_scale=SCALE)),
            ("q: it requires grad, and latent attention has no backward", wavejit.Unsupported,
             lambda: wavejit.torch.attention_latent(self.q.clone().requires_grad_(), dense, scale=SCALE)),
            ("indices: dtype torch.int64; accepted: torch.int32", wavejit.InvalidArgument,
             lambda: wavejit.torch.attention_latent(self.q, dense, scale=SCALE, indices=torch.zeros(3, 1, 8, dtype=torch.int64))),
        ):
            with self.subTest(pattern=pattern), self.assertRaisesRegex(error, pattern):
                call()
        with torch.no_grad():
            wavejit.torch.attention_latent(self.q.clone().requires_grad_(), dense, scale=SCALE)

    def test_both_faces_take_the_same_words(self):
        import inspect

        for name in ("flash_mla_with_kvcache", "flash_mla_sparse_fwd", "mla_decode_fwd"):
            _, *of_engine = inspect.signature(getattr(latent, name)).parameters
            of_tensors = list(inspect.signature(getattr(wavejit.torch, name)).parameters)
            self.assertEqual([word for word in of_engine if word != "words"], [word for word in of_tensors if word not in ("max_key_length", "k_scale")])


if __name__ == "__main__":
    unittest.main()
