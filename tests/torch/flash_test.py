# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""flash-attn's functions beside float64, and what of their arguments is refused."""
import inspect
import re
import unittest

import numpy
import reference
import torch

import wavejit
import wavejit.torch

NAN = float("nan")


def draw(*shape):
    return torch.randn(*shape, dtype=torch.float32).half()


def wide(tensor):
    return tensor.detach().numpy().astype(numpy.float64)


class Case(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(17)

    def close(self, found, exact, tolerance=2e-3):
        found = wide(found)
        self.assertEqual(found.shape, exact.shape)
        self.assertTrue(numpy.isfinite(found).all())
        self.assertLess(float((numpy.abs(found - exact) / (1 + numpy.abs(exact))).max()), tolerance)

    def refuses(self, pattern, function, *arguments, error=wavejit.InvalidArgument, **words):
        with self.assertRaisesRegex(error, pattern):
            function(*arguments, **words)


class Dense(Case):
    def test_words(self):
        q, k, v = draw(2, 12, 4, 64), draw(2, 37, 2, 64), draw(2, 37, 2, 64)
        slopes = torch.tensor([0.5, 0.25, 0.125, 1.0])
        words = [
            ({}, {}),
            ({"causal": True}, {"causal": True}),
            ({"softmax_scale": 0.5, "deterministic": True}, {"scale": 0.5}),
            ({"window_size": (5, 3)}, {"window": (5, 3)}),
            ({"window_size": [-1, 0]}, {"window": (None, 0)}),
            ({"causal": True, "window_size": (4, -1)}, {"causal": True, "window": (4, None)}),
            ({"softcap": 2.0, "alibi_slopes": slopes}, {"softcap": 2.0, "alibi": wide(slopes)}),
        ]
        for given, meant in words:
            with self.subTest(**given):
                out, lse, nothing = wavejit.torch.flash_attn_func(q, k, v, return_attn_probs=True, **given)
                self.assertIsNone(nothing)
                self.assertTrue(torch.equal(out, wavejit.torch.flash_attn_func(q, k, v, **given)))
                for b in range(2):
                    exact, exact_lse = reference.attention(wide(q[b]), wide(k[b]), wide(v[b]), **meant)
                    self.close(out[b], exact)
                    self.close(lse[b], exact_lse)

    def test_local_chunks_and_causal_sequences_of_the_operator(self):
        q, k, v = (torch.randn(3, rows, 2, 64, dtype=torch.float16) for rows in (12, 37, 37))
        attend = torch.ops.wavejit.attention_forward
        chunked = attend(q, k, v, causal=True, local_chunk=5)
        row, column = torch.arange(12)[:, None] + 25, torch.arange(37)[None, :]
        mask = (column <= row) & (column // 5 == row // 5)
        scores = torch.einsum("bihd,bjhd->bhij", q.double(), k.double()) / 8
        exact = torch.einsum("bhij,bjhd->bihd", scores.masked_fill(~mask, float("-inf")).softmax(-1), v.double())
        self.assertLess((chunked.double() - exact).abs().max().item(), 2e-3)
        causal, whole = attend(q, k, v, causal=True), attend(q, k, v)
        flags = torch.tensor([True, False, True])
        for given in (flags, flags.to(torch.int8), flags.to(torch.uint8)):
            mixed = attend(q, k, v, causal=True, causal_flags=given)
            self.assertTrue(torch.equal(mixed, torch.where(flags[:, None, None, None], causal, whole)))
        traced = torch.compile(lambda q, k, v, flags: attend(q, k, v, causal=True, causal_flags=flags), backend="aot_eager", fullgraph=True)
        self.assertTrue(torch.equal(traced(q, k, v, flags), mixed))
        with self.assertRaisesRegex(wavejit.InvalidArgument, "causal_flags: dtype torch.int32; accepted: torch.bool, torch.int8, torch.uint8"):
            attend(q, k, v, causal=True, causal_flags=flags.int())

    def test_slopes_of_each_sequence(self):
        q, slopes = draw(2, 9, 2, 64), torch.tensor([[0.5, 0.25], [1.0, 2.0]])
        out = wavejit.torch.flash_attn_func(q, q, q, alibi_slopes=slopes)
        for b in range(2):
            self.close(out[b], reference.attention(*[wide(q[b])] * 3, alibi=wide(slopes[b]))[0])

    def test_queries_in_float32_are_rounded_once(self):
        q, k = draw(1, 5, 4, 64), draw(1, 70, 2, 64)
        between = q.float() * (1 + 0.9 * 2**-13)
        self.assertTrue(torch.equal(between.to(q.dtype), q))
        out = wavejit.torch.flash_attn_func(between, k, k)
        self.assertIs(out.dtype, q.dtype)
        self.assertTrue(torch.equal(out, wavejit.torch.flash_attn_func(q, k, k)))
        self.refuses("^q: dtype torch.float32 beside v of torch.float16, and q, k or v requires grad", wavejit.torch.flash_attn_func, between.requires_grad_(), k, k,
                     error=wavejit.Unsupported)

    def test_refused_by_name(self):
        q = draw(1, 4, 2, 64)
        self.refuses(r"dropout_p = 0\.5; accepted: 0", wavejit.torch.flash_attn_func, q, q, q, dropout_p=0.5)
        for window in (7, (1, 2, 3), (1.5, 0), "ab", None):
            self.refuses(rf"^window_size = {re.escape(str(window))}; accepted: \(left, right\)", wavejit.torch.flash_attn_func, q, q, q, window_size=window)
        self.refuses("^q: a numpy.ndarray; accepted: a torch tensor", wavejit.torch.flash_attn_func, q.numpy(), q, q, error=TypeError)
        self.refuses("^alibi_slopes: a builtins.list; accepted: a torch tensor", wavejit.torch.flash_attn_func, q, q, q, alibi_slopes=[1.0, 2.0], error=TypeError)
        self.refuses(r"^q: dtype torch\.float32; accepted: torch\.float16, torch\.bfloat16, torch\.float8_e4m3fn, torch\.int8$", wavejit.torch.flash_attn_func, q.float(), q.float(), q.float())
        self.refuses(r"q: shape \(4, 2, 64\); accepted: \[batch, length, heads, head dim\]", wavejit.torch.flash_attn_func, q[0], q, q)
        self.refuses("alibi_slopes: they require grad", wavejit.torch.flash_attn_func, q, q, q, alibi_slopes=torch.ones(2).requires_grad_(), error=wavejit.Unsupported)


class Packed(Case):
    def test_sequences_of_any_length(self):
        starts, key_starts = [0, 3, 3, 20], [0, 20, 25, 42]
        q, k, v = draw(20, 2, 64), draw(42, 1, 64), draw(42, 1, 64)
        for dtype in (torch.int32, torch.int64):
            out, lse, _ = wavejit.torch.flash_attn_varlen_func(q, k, v, torch.tensor(starts, dtype=dtype), torch.tensor(key_starts, dtype=dtype), 17, 20,
                                                               causal=True, return_attn_probs=True)
            self.assertEqual(lse.shape, (2, 20))
            for b in range(3):
                rows, columns = slice(starts[b], starts[b + 1]), slice(key_starts[b], key_starts[b + 1])
                exact, exact_lse = reference.attention(wide(q[rows]), wide(k[columns]), wide(v[columns]), causal=True)
                if starts[b] < starts[b + 1]:
                    self.close(out[rows], exact)
                    self.close(lse[:, rows], exact_lse)

    def test_used_keys_of_packed_ones(self):
        starts, key_starts, used = [0, 3, 3, 20], [0, 20, 25, 42], [11, 5, 0]
        q, k = draw(20, 2, 64), draw(42, 1, 64)
        for begin, count, end in zip(key_starts, used, key_starts[1:]):
            k[begin + count : end] = NAN
        leaves = [q.clone().requires_grad_(), k.clone().requires_grad_(), k.clone().requires_grad_()]
        call, numbers = wavejit.torch.flash_attn_varlen_func, [torch.tensor(each, dtype=torch.int32) for each in (starts, key_starts)]
        for dtype in (torch.int32, torch.int64):
            out, lse, _ = call(q, k, k, *numbers, 17, 20, causal=True, seqused_k=torch.tensor(used, dtype=dtype), return_attn_probs=True)
            for b in range(3):
                rows, columns = slice(starts[b], starts[b + 1]), slice(key_starts[b], key_starts[b] + used[b])
                if b != 1:
                    exact, exact_lse = reference.attention(wide(q[rows]), wide(k[columns]), wide(k[columns]), causal=True)
                    self.close(out[rows], exact)
                    self.assertTrue(numpy.allclose(wide(lse[:, rows]), exact_lse, atol=2e-3))
        weights = draw(20, 2, 64)
        (call(*leaves, *numbers, 17, 20, causal=True, seqused_k=torch.tensor(used)) * weights).sum().backward()
        alone = [each[rows][None].clone().requires_grad_() for each, rows in zip((q, k, k), (slice(0, 3), slice(0, 11), slice(0, 11)))]
        (wavejit.torch.flash_attn_func(*alone, causal=True) * weights[:3]).sum().backward()
        for one, other in zip(leaves, alone):
            self.assertTrue(torch.equal(one.grad[: other.shape[1]], other.grad[0]))
            self.assertTrue(bool(one.grad.isfinite().all()))
        for gradient in (leaves[1].grad, leaves[2].grad):
            for begin, count, end in zip(key_starts, used, key_starts[1:]):
                self.assertFalse(bool(gradient[begin + count : end].any()))
        self.refuses(r"^seqused_k\[1\] = 6; accepted: 0 … 5", call, q, k, k, *numbers, 17, 20, seqused_k=torch.tensor([11, 6, 0]))

    def test_the_longest_as_a_tensor_of_no_dimensions(self):
        starts = torch.tensor([0, 3, 3, 20], dtype=torch.int32)
        q, qkv, kv = draw(20, 2, 64), draw(20, 3, 2, 64), draw(20, 2, 2, 64)
        pages, table = draw(4, 16, 2, 64), torch.tensor([[3, 1], [0, 2], [1, 0]], dtype=torch.int32)
        functions = wavejit.torch

        def attend(q, qkv, kv, starts):
            longest = (starts[1:] - starts[:-1]).max()
            return (functions.flash_attn_varlen_func(q, q, q, starts, starts, longest, longest, causal=True),
                    functions.flash_attn_varlen_func(q, pages, pages, starts, None, longest, longest, block_table=table, seqused_k=torch.tensor([3, 9, 17])),
                    functions.flash_attn_varlen_qkvpacked_func(qkv, starts, longest), functions.flash_attn_varlen_kvpacked_func(q, kv, starts, starts, longest, longest))

        wanted = (functions.flash_attn_varlen_func(q, q, q, starts, starts, 17, 17, causal=True),
                  functions.flash_attn_varlen_func(q, pages, pages, starts, None, 17, 17, block_table=table, seqused_k=torch.tensor([3, 9, 17])),
                  functions.flash_attn_varlen_qkvpacked_func(qkv, starts, 17), functions.flash_attn_varlen_kvpacked_func(q, kv, starts, starts, 17, 17))
        for call in (attend, torch.compile(attend, backend="aot_eager", fullgraph=True)):
            for one, other in zip(call(q, qkv, kv, starts), wanted):
                self.assertTrue(torch.equal(one, other))
        for wrong in (torch.ones(2, dtype=torch.int32), torch.tensor(17.0)):
            self.refuses(r"^max_seqlen_q: .*accepted: a number, or a tensor of one integer", functions.flash_attn_varlen_func, q, q, q, starts, starts, wrong, 17)

    def test_a_longest_length_of_0_says_that_there_is_nothing(self):
        functions = wavejit.torch
        q, qkv, kv, pages, none = draw(20, 2, 64), draw(20, 3, 2, 64), draw(20, 2, 2, 64), draw(2, 16, 2, 64), torch.zeros(3, dtype=torch.int32)
        starts, table, lengths = torch.tensor([0, 0, 8, 20], dtype=torch.int32), torch.tensor([[1], [0]], dtype=torch.int32), torch.tensor([0, 3], dtype=torch.int32)
        of_q, of_k = (rf"^cu_seqlens_{name}\[2\] = 8; accepted: 0 \(after 0, max_seqlen_{name} = 0\)" for name in "qk")
        self.refuses(r"^cu_seqlens_q\[3\] = 20; accepted: 8 … 19 \(after 8, max_seqlen_q = 11\)", functions.flash_attn_varlen_func, q, q, q, starts, starts, 11, 12)
        self.refuses("^max_seqlen_k = -5; accepted: 0 and more", functions.flash_attn_varlen_func, q, q, q, starts, starts, 12, -5)
        used = r"^seqused_k\[1\] = 3; accepted: 0, as max_seqlen_k = 0"
        for zero in (0, torch.tensor(0)):
            self.refuses(of_q, functions.flash_attn_varlen_func, q, q, q, starts, starts, zero, 12)
            self.refuses(of_k, functions.flash_attn_varlen_func, q, q, q, starts, starts, 12, zero)
            self.refuses(used, functions.flash_attn_varlen_func, q, q, q, starts[1:], starts[1:], 12, zero, seqused_k=lengths)
            self.refuses(used, functions.flash_attn_varlen_func, q, pages, pages, starts[1:], None, 12, zero, block_table=table, seqused_k=lengths)
            self.refuses(of_q, functions.flash_attn_varlen_kvpacked_func, q, kv, starts, starts, zero, 12)
            self.refuses(of_k, functions.flash_attn_varlen_kvpacked_func, q, kv, starts, starts, 12, zero)
            self.refuses(r"^cu_seqlens\[2\] = 8; accepted: 0 \(after 0, max_seqlen = 0\)", functions.flash_attn_varlen_qkvpacked_func, qkv, starts, zero)
            self.assertFalse(bool(functions.flash_attn_varlen_func(q, q[:0], q[:0], starts[1:], none, 12, zero).any()))  # sequences without keys

    def test_pages(self):
        q, cache = draw(6, 2, 64), draw(4, 2, 16, 1, 64)
        cache[1, :, 4:] = cache[0, :, :0] = NAN
        table, starts = torch.tensor([[3, 1], [0, 2]], dtype=torch.int32), torch.tensor([0, 5, 6], dtype=torch.int32)
        out = wavejit.torch.flash_attn_varlen_func(q, cache[:, 0], cache[:, 1], starts, torch.tensor([0, 20, 52], dtype=torch.int32), 5, 32, causal=True, block_table=table)
        for b, (rows, length) in enumerate(((slice(0, 5), 20), (slice(5, 6), 32))):
            k, v = (wide(cache[table[b].tolist(), which]).reshape(-1, 1, 64)[:length] for which in (0, 1))
            self.close(out[rows], reference.attention(wide(q[rows]), k, v, causal=True)[0])

    def test_refused_by_name(self):
        q, starts = draw(4, 2, 64), torch.tensor([0, 4], dtype=torch.int32)
        call = wavejit.torch.flash_attn_varlen_func
        self.refuses("cu_seqlens_q: torch.float32, shape", call, q, q, q, starts.float(), starts, 4, 4)
        self.refuses("cu_seqlens_k: .*int32 of 1 dimension", call, q, q, q, starts, starts[None], 4, 4)
        self.refuses("cu_seqlens_k: a list", call, q, q, q, starts, [0, 4], 4, 4, error=TypeError)
        self.refuses("block_table: .*int32 of 2 dimensions", call, q, q[None], q[None], starts, starts, 4, 4, block_table=starts)
        self.refuses("dropout_p", call, q, q, q, starts, starts, 4, 4, 0.1)


    def test_starts_are_checked_and_named_as_they_were_given(self):
        q, call = draw(8, 2, 64), wavejit.torch.flash_attn_varlen_func
        right = torch.tensor([0, 5, 8], dtype=torch.int32)
        for wrong, pattern in (([0, 5, 3], r"\[2\] = 3; accepted: 5 … 8"), ([0, 5, 9], r"\[2\] = 9; accepted: 5 … 8"), ([1, 5, 8], r"\[0\] = 1; accepted: 0")):
            starts = torch.tensor(wrong, dtype=torch.int32)
            self.refuses(f"^cu_seqlens_q{pattern}", call, q, q, q, starts, right, 8, 8)
            self.refuses(f"^cu_seqlens_k{pattern}", call, q, q, q, right, starts, 8, 8)
        self.refuses(r"^cu_seqlens_q\[1\] = 5; accepted: 0 … 4", call, q, q, q, right, right, 4, 8)
        # Cut down to 32 bits it would be the right one.
        self.refuses("^cu_seqlens_q", call, q, q, q, right.long() + torch.tensor([0, 1 << 32, 0]), right, 8, 8)
        cache, table = draw(4, 16, 2, 64), torch.tensor([[3, 1], [0, 7]], dtype=torch.int32)
        call = wavejit.torch.flash_attn_with_kvcache
        for lengths, pattern in (([20, 33], r"cache_seqlens\[1\] = 33; accepted: 0 … 32"), ([-1, 20], r"cache_seqlens\[0\] = -1"), ([20, 20], r"block_table\[1\]\[1\] = 7; accepted: 0 … 3")):
            self.refuses(f"^{pattern}", call, draw(2, 1, 4, 64), cache, cache, cache_seqlens=torch.tensor(lengths), block_table=table)


class Cache(Case):
    def test_lengths(self):
        q, k, v = draw(2, 3, 4, 64), draw(2, 48, 2, 64), draw(2, 48, 2, 64)
        k[0, 7:] = v[0, 7:] = NAN
        lengths = torch.tensor([7, 48], dtype=torch.int32)
        out, lse = wavejit.torch.flash_attn_with_kvcache(q, k, v, cache_seqlens=lengths, causal=True, return_softmax_lse=True)
        for b in range(2):
            exact, exact_lse = reference.attention(wide(q[b]), wide(k[b, : lengths[b]]), wide(v[b, : lengths[b]]), causal=True)
            self.close(out[b], exact)
            self.close(lse[b], exact_lse)
        self.assertTrue(torch.equal(wavejit.torch.flash_attn_with_kvcache(q[:1], k[:1], v[:1], cache_seqlens=7, causal=True, num_splits=2), out[:1]))
        self.assertTrue(torch.equal(wavejit.torch.flash_attn_with_kvcache(q[1:], k[1:], v[1:], causal=True), out[1:]))

    def test_left_padding(self):
        q, k, v = draw(2, 2, 2, 64), draw(2, 30, 1, 64), draw(2, 30, 1, 64)
        k[0, :6] = v[0, :6] = k[0, 26:] = v[0, 26:] = NAN
        out = wavejit.torch.flash_attn_with_kvcache(q, k, v, cache_seqlens=torch.tensor([26, 30]), cache_leftpad=torch.tensor([6, 0]), causal=True)
        self.close(out[0], reference.attention(wide(q[0]), wide(k[0, 6:26]), wide(v[0, 6:26]), causal=True)[0])
        self.close(out[1], reference.attention(wide(q[1]), wide(k[1]), wide(v[1]), causal=True)[0])

    def test_pages(self):
        q, cache = draw(2, 1, 4, 64), draw(9, 2, 16, 2, 64)
        table, lengths = torch.tensor([[4, 1, 7], [8, 0, 99]], dtype=torch.int32), torch.tensor([40, 21], dtype=torch.int32)
        out = wavejit.torch.flash_attn_with_kvcache(q, cache[:, 0], cache[:, 1], cache_seqlens=lengths, block_table=table, causal=True)
        for b in range(2):
            pages = table[b, : -(-int(lengths[b]) // 16)].tolist()
            k, v = (wide(cache[pages, which]).reshape(-1, 2, 64)[: lengths[b]] for which in (0, 1))
            self.close(out[b], reference.attention(wide(q[b]), k, v, causal=True)[0])

    def test_lengths_as_vllm_says_them(self):
        q, cache = draw(7, 4, 64), draw(9, 2, 16, 2, 64)
        table, lengths = torch.tensor([[4, 1, 7], [8, 0, 5]], dtype=torch.int32), torch.tensor([40, 21], dtype=torch.int32)
        starts, sums = torch.tensor([0, 3, 7], dtype=torch.int32), torch.tensor([0, 40, 61], dtype=torch.int32)
        call, pages = wavejit.torch.flash_attn_varlen_func, (cache[:, 0], cache[:, 1])
        out = call(q, *pages, starts, None, 4, 40, causal=True, block_table=table, seqused_k=lengths)
        self.assertTrue(torch.equal(out, call(q, *pages, starts, sums, 4, 40, causal=True, block_table=table)))
        self.refuses("seqused_k: given without block_table and without cu_seqlens_k; accepted: beside one of them", call, q, q, q, starts, None, 4, 4, seqused_k=lengths)
        self.refuses("seqused_k: given beside block_table and cu_seqlens_k; accepted: beside one of them", call, q, *pages, starts, sums, 4, 40, block_table=table, seqused_k=lengths)
        self.refuses("cu_seqlens_k: None", call, q, q, q, starts, None, 4, 4)
        self.refuses(r"seqused_k\[1\] = 99; accepted: 0 … 40", call, q, *pages, starts, None, 4, 40, block_table=table, seqused_k=torch.tensor([40, 99]))

    def test_refused_by_name(self):
        q, cache = draw(1, 1, 2, 64), draw(1, 16, 2, 64)
        call = wavejit.torch.flash_attn_with_kvcache
        self.refuses("cache_seqlens = 17; accepted: 0 … 16", call, q, cache, cache, cache_seqlens=17)
        self.refuses("cache_seqlens: None beside block_table", call, q, cache, cache, block_table=torch.zeros(1, 1, dtype=torch.int32))


class Signatures(unittest.TestCase):
    def test_are_those_that_people_call(self):
        names = {
            "flash_attn_func": "q k v dropout_p softmax_scale causal window_size softcap alibi_slopes deterministic return_attn_probs "
                               "q_descale k_descale v_descale out",
            "flash_attn_varlen_func": "q k v cu_seqlens_q cu_seqlens_k max_seqlen_q max_seqlen_k dropout_p softmax_scale causal window_size softcap alibi_slopes "
                                      "deterministic return_attn_probs block_table q_descale k_descale v_descale seqused_k out "
                                      "num_splits s_aux return_softmax_lse",
            "flash_attn_with_kvcache": "q k_cache v_cache k v rotary_cos rotary_sin cache_seqlens cache_batch_idx cache_leftpad block_table softmax_scale causal "
                                       "window_size softcap rotary_interleaved alibi_slopes num_splits return_softmax_lse q_descale k_descale v_descale out",
            "scaled_dot_product_attention": "query key value attn_mask dropout_p is_causal scale enable_gqa",
        }  # fmt: skip
        for name, words in names.items():
            self.assertEqual(list(inspect.signature(getattr(wavejit.torch, name)).parameters), words.split())


if __name__ == "__main__":
    unittest.main()
