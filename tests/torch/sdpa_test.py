# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""scaled_dot_product_attention beside PyTorch's own in float64: shapes, masks, which way causal goes; what is refused."""
import unittest
from unittest import mock

import torch
from torch.autograd import forward_ad
import torch.nn.functional as F

import wavejit
import wavejit.torch
from wavejit import _masks

NAN = float("nan")


def draw(*shape, dtype=torch.float16):
    return torch.randn(*shape, dtype=torch.float32).to(dtype)


class Case(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(17)

    def beside_torch(self, q, k, v, **words):
        found = wavejit.torch.scaled_dot_product_attention(q, k, v, **words)
        mask = words.pop("attn_mask", None)
        if mask is not None:
            words["attn_mask"] = mask if mask.dtype == torch.bool else mask.to(q.dtype).double()
        exact = F.scaled_dot_product_attention(q.double(), k.double(), v.double(), **words)
        self.assertEqual((found.shape, found.dtype, found.device), (exact.shape, q.dtype, q.device))
        self.assertTrue(bool(torch.isfinite(found).all()))
        tolerance = 1e-2 if q.dtype == torch.bfloat16 else 2e-3
        self.assertLess(float(((found.double() - exact).abs() / (1 + exact.abs())).max()), tolerance)
        return found


class Semantics(Case):
    def test_plain_in_both_types(self):
        for dtype in (torch.float16, torch.bfloat16):
            self.beside_torch(draw(2, 4, 7, 64, dtype=dtype), draw(2, 4, 19, 64, dtype=dtype), draw(2, 4, 19, 64, dtype=dtype))

    def test_causal_is_aligned_top_left(self):
        for queries, keys in ((7, 19), (19, 7), (13, 13)):
            with self.subTest(queries=queries, keys=keys):
                q, k, v = draw(1, 2, queries, 64), draw(1, 2, keys, 64), draw(1, 2, keys, 64)
                out = self.beside_torch(q, k, v, is_causal=True)
                self.assertTrue(torch.equal(out[0, :, 0], v[0, :, 0]))  # row 0 sees key 0 alone

    def test_grouped_heads_only_when_asked_for(self):
        q, k, v = draw(1, 6, 5, 64), draw(1, 2, 9, 64), draw(1, 2, 9, 64)
        self.beside_torch(q, k, v, enable_gqa=True)
        self.beside_torch(q, k[:, :1], v[:, :1])  # one head broadcasts, as in PyTorch
        with self.assertRaisesRegex(wavejit.InvalidArgument, "heads: 6 of query, 2 of key, 2 of value; .*enable_gqa=True"):
            wavejit.torch.scaled_dot_product_attention(q, k, v)
        with self.assertRaisesRegex(wavejit.InvalidArgument, "of which 5 is a multiple"):
            wavejit.torch.scaled_dot_product_attention(q[:, :5], k, v, enable_gqa=True)

    def test_bool_masks_that_broadcast(self):
        q, k, v = draw(2, 4, 7, 64), draw(2, 4, 19, 64), draw(2, 4, 19, 64)
        for shape in ((7, 19), (1, 19), (2, 1, 1, 19), (2, 1, 7, 19), (1, 4, 7, 19), (2, 4, 7, 19), (4, 7, 19), (2, 4, 7, 1)):
            with self.subTest(shape=shape):
                mask = torch.rand(shape) > 0.5
                if shape[-1] > 1:
                    mask[..., 3] = True
                self.beside_torch(q, k, v, attn_mask=mask)
        # A mask of keys alone, which PyTorch wants with a dimension in front.
        for mask in (torch.arange(19) % 3 == 0, draw(19)):
            for leading in ((), (2, 4), (2, 2, 4)):
                inputs = [draw(*leading, rows, 64) for rows in (7, 19, 19)]
                out = wavejit.torch.scaled_dot_product_attention(*inputs, attn_mask=mask)
                self.assertTrue(torch.equal(out, self.beside_torch(*inputs, attn_mask=mask[None])))

    def test_bool_masks_by_tile_have_the_bits_of_a_bias(self):
        engine = wavejit.torch.engine("cpu")
        for rows, keys, dim in ((70, 200, 64), (33, 15, 128), (200, 333, 128), (9, 1200, 128)):
            q, k, v = draw(2, 4, rows, dim), draw(2, 2, keys, dim), draw(2, 2, keys, dim)
            for shape in ((rows, keys), (1, keys), (2, 1, rows, keys), (2, 4, rows, keys), (2, 4, rows, 1)):
                if rows <= _masks.MOST_ROWS_OF_SPLIT and len(shape) == 4 and shape[1] != 1:
                    continue  # a bias (below)
                with self.subTest(rows=rows, keys=keys, dim=dim, shape=shape):
                    mask = torch.rand(shape) > 0.5
                    mask[..., : shape[-2] // 3, :] = False  # rows that see nothing, or few
                    mask = mask.expand(2, 4, rows, keys)
                    bias = torch.zeros(2, 4, rows, keys, dtype=q.dtype).masked_fill(~mask, -torch.inf)
                    with mock.patch.object(engine, "attention_forward_call", wraps=engine.attention_forward_call) as launched:
                        found = wavejit.torch.scaled_dot_product_attention(q, k, v, attn_mask=mask, enable_gqa=True)
                        self.assertIn("mask", launched.call_args.kwargs)
                        self.assertNotIn("bias", launched.call_args.kwargs)
                        wanted = wavejit.torch.scaled_dot_product_attention(q, k, v, attn_mask=bias, enable_gqa=True)
                        self.assertIn("bias", launched.call_args.kwargs)
                    self.assertTrue(torch.equal(found, wanted))
                    self.beside_torch(q, k, v, attn_mask=mask, enable_gqa=True)

    def test_bool_masks_that_have_no_kernel_by_tile(self):
        engine = wavejit.torch.engine("cpu")
        for rows, dim, heads in ((32, 64, 2), (70, 80, 1)):  # few rows whose heads have masks of their own; a head dim that tiles pad
            q, k = draw(1, 2, rows, dim), draw(1, 2, 90, dim)
            with mock.patch.object(engine, "attention_forward_call", wraps=engine.attention_forward_call) as launched:
                self.beside_torch(q, k, k, attn_mask=torch.rand(heads, rows, 90) > 0.5)
                self.assertIn("bias", launched.call_args.kwargs)

    def test_masks_of_numbers(self):
        q, k, v = draw(2, 4, 7, 64), draw(2, 4, 24, 64), draw(2, 4, 24, 64)
        for dtype in (torch.float16, torch.float32):
            mask = draw(2, 1, 7, 24, dtype=dtype)
            mask[:, :, 2, 5:] = -torch.inf
            mask[:, :, 3, 4:9] = torch.finfo(dtype).min
            self.beside_torch(q, k, v, attn_mask=mask)
        self.beside_torch(q, k, v, attn_mask=draw(2, 4, 7, 48)[..., ::2])

    def test_masks_of_numbers_by_tile_have_the_bits_of_a_bias(self):
        engine = wavejit.torch.engine("cpu")
        for rows, keys, dim, dtype in ((70, 200, 64, torch.float16), (129, 333, 128, torch.float32), (40, 72, 64, torch.float64)):
            q, k, v = draw(2, 4, rows, dim), draw(2, 2, keys, dim), draw(2, 2, keys, dim)
            for shape in ((rows, keys), (2, 1, rows, keys)):
                with self.subTest(rows=rows, dtype=dtype, shape=shape), mock.patch.object(_masks, "LEAST_SCORES_OF_NUMBERS", 1):
                    mask = torch.zeros(shape, dtype=dtype).masked_fill(torch.rand(shape) > 0.5, torch.finfo(dtype).min)
                    mask[..., : rows // 3, : keys // 2] = -torch.inf
                    mask[..., rows // 2:, 64:] = 0.0
                    with mock.patch.object(engine, "attention_forward_call", wraps=engine.attention_forward_call) as launched:
                        found = wavejit.torch.scaled_dot_product_attention(q, k, v, attn_mask=mask, enable_gqa=True)
                        self.assertTrue(launched.call_args.kwargs["bias_by_tile"])
                        # Heads that have masks of their own.
                        of_heads = mask.expand(2, 4, rows, keys).contiguous()
                        wanted = wavejit.torch.scaled_dot_product_attention(q, k, v, attn_mask=of_heads, enable_gqa=True)
                        self.assertNotIn("bias_by_tile", launched.call_args.kwargs)
                    self.assertTrue(torch.equal(found, wanted))
        q = draw(1, 2, 70, 64)
        with mock.patch.object(engine, "attention_forward_call", wraps=engine.attention_forward_call) as launched:  # of so few scores it is no gain
            wavejit.torch.scaled_dot_product_attention(q, q, q, attn_mask=torch.zeros(70, 70, dtype=torch.float16))
            self.assertNotIn("bias_by_tile", launched.call_args.kwargs)

    def test_rows_of_the_least_number(self):
        # A finite number hides nothing: such a row has the mean of value, as PyTorch has it; in float16 scores show through.
        for dtype, of_mask in ((torch.float16, torch.float16), (torch.float16, torch.float32), (torch.bfloat16, torch.bfloat16), (torch.bfloat16, torch.float32)):
            with self.subTest(dtype=dtype, of_mask=of_mask):
                q, k, v = draw(1, 2, 5, 64, dtype=dtype), draw(1, 2, 16, 64, dtype=dtype), draw(1, 2, 16, 64, dtype=dtype)
                mask = torch.zeros(5, 16, dtype=of_mask)
                mask[1:] = torch.finfo(of_mask).min
                mask[2, :4] = -torch.inf
                out = wavejit.torch.scaled_dot_product_attention(q, k, v, attn_mask=mask).double()
                exact = F.scaled_dot_product_attention(q.double(), k.double(), v.double(), attn_mask=mask.double())
                self.assertLess(float((out - exact).abs().max()), 2e-2)
                if of_mask is not torch.float16:
                    mean = v.double().mean(2)
                    self.assertLess(float((out[:, :, 1] - mean).abs().max()), 5e-3)
                    self.assertLess(float((out[:, :, 4] - mean).abs().max()), 5e-3)
                    self.assertLess(float((out[:, :, 2] - v[:, :, 4:].double().mean(2)).abs().max()), 5e-3)

    def test_a_row_that_sees_nothing_is_zero(self):
        mask = torch.ones(5, 9, dtype=torch.bool)
        mask[2] = False
        out = self.beside_torch(draw(1, 2, 5, 64), draw(1, 2, 9, 64), draw(1, 2, 9, 64), attn_mask=mask)
        self.assertFalse(bool(out[0, :, 2].any()))

    def test_scales_and_values_of_another_width(self):
        self.beside_torch(draw(1, 2, 5, 64), draw(1, 2, 9, 64), draw(1, 2, 9, 64), scale=0.5)
        self.beside_torch(draw(1, 2, 5, 64), draw(1, 2, 9, 64), draw(1, 2, 9, 64), scale=0.0)
        self.beside_torch(draw(1, 2, 5, 192), draw(1, 2, 9, 192), draw(1, 2, 9, 128))

    def test_batches_of_any_number_of_dimensions(self):
        for shapes in (((7, 64), (19, 64)), ((3, 7, 64), (3, 19, 64)), ((2, 3, 4, 7, 64), (2, 3, 4, 19, 64)), ((2, 3, 4, 7, 64), (4, 19, 64)), ((2, 4, 7, 64), (1, 4, 19, 64)),
                       ((1, 4, 7, 64), (2, 4, 19, 64))):  # fmt: skip
            with self.subTest(shapes=shapes):
                q, k, v = draw(*shapes[0]), draw(*shapes[1]), draw(*shapes[1])
                self.beside_torch(q, k, v)
                self.beside_torch(q, k, v, attn_mask=torch.rand(7, 19) > 0.3)

    def test_one_head_broadcasts(self):
        for of_query, of_key, of_value in ((1, 4, 4), (4, 1, 1), (4, 4, 1), (4, 1, 4), (1, 1, 4)):
            for lead in ((3,), (), (2, 3)):
                with self.subTest(heads=(of_query, of_key, of_value), lead=lead):
                    inputs = draw(*lead, of_query, 5, 64), draw(*lead, of_key, 7, 64), draw(*lead, of_value, 7, 64)
                    self.beside_torch(*inputs)
                    leaves = [each.clone().requires_grad_() for each in inputs]
                    exact = [each.double().requires_grad_() for each in inputs]
                    weights = draw(*lead, 4, 5, 64)
                    (wavejit.torch.scaled_dot_product_attention(*leaves) * weights).sum().backward()
                    (F.scaled_dot_product_attention(*exact) * weights.double()).sum().backward()
                    for one, other in zip(leaves, exact):
                        self.assertEqual(one.grad.shape, other.shape)
                        self.assertLess(float((one.grad.double() - other.grad).abs().max()), 2e-2)

        with self.assertRaisesRegex(wavejit.InvalidArgument, "^heads: 1 of query, 3 of key, 2 of value; accepted: as many for all three"):
            wavejit.torch.scaled_dot_product_attention(draw(1, 1, 5, 64), draw(1, 3, 7, 64), draw(1, 2, 7, 64))

    def test_dimensions_without_elements(self):
        attend = wavejit.torch.scaled_dot_product_attention
        compiled = torch.compile(lambda *given, **words: attend(*given, **words), backend="aot_eager", fullgraph=True)
        for of_query, of_key in (((4, 3, 64), (4, 0, 64)), ((2, 3, 4, 0, 64), (2, 3, 4, 7, 64)), ((0, 3, 64), (0, 5, 64)), ((2, 0, 4, 5, 64), (2, 0, 4, 5, 64)),
                                 ((2, 3, 4, 5, 64), (2, 3, 4, 0, 64)), ((0, 2, 3, 4, 64), (2, 3, 4, 64)), ((0, 64), (5, 64))):  # fmt: skip
            with self.subTest(query=of_query, key=of_key):
                q, k = draw(*of_query).requires_grad_(), draw(*of_key).requires_grad_()
                for words in ({}, {"attn_mask": torch.ones(of_query[-2], of_key[-2], dtype=torch.bool)}):
                    out = attend(q, k, k, **words)
                    exact = F.scaled_dot_product_attention(q.detach(), k.detach(), k.detach(), **words)
                    self.assertEqual(out.shape, exact.shape)
                    self.assertFalse(bool(out.any()))
                    if words and len(of_query) != 5:
                        self.assertTrue(torch.equal(compiled(q, k, k, **words), out))
                    for gradient, of in zip(torch.autograd.grad(out.sum(), (q, k)), (q, k)):
                        self.assertEqual(gradient.shape, of.shape)
                        self.assertFalse(bool(gradient.any()))

    def test_views(self):
        heads_last = draw(2, 9, 4, 64)
        self.beside_torch(heads_last.transpose(1, 2), heads_last.transpose(1, 2), heads_last.transpose(1, 2), is_causal=True)
        packed = draw(2, 2, 9, 200)
        self.beside_torch(packed[..., :64], packed[..., 64:128], packed[..., 129:193])
        self.beside_torch(draw(1, 1, 5, 128)[..., ::2], draw(1, 1, 64, 9).transpose(2, 3), draw(1, 1, 1, 64).expand(1, 1, 9, 64))

    def test_no_rows_and_no_keys(self):
        self.assertEqual(wavejit.torch.scaled_dot_product_attention(draw(2, 2, 0, 64), draw(2, 2, 5, 64), draw(2, 2, 5, 64)).shape, (2, 2, 0, 64))
        out = wavejit.torch.scaled_dot_product_attention(draw(2, 2, 3, 64), draw(2, 2, 0, 64), draw(2, 2, 0, 64))
        self.assertFalse(bool(out.any()))


class Refused(Case):
    def refuses(self, pattern, *arguments, error=wavejit.InvalidArgument, **words):
        before = wavejit.torch.engine("cpu").statistics()["calls"]
        with self.assertRaisesRegex(error, pattern):
            wavejit.torch.scaled_dot_product_attention(*arguments, **words)
        self.assertLessEqual(wavejit.torch.engine("cpu").statistics()["calls"], before + 1)

    def test_by_name(self):
        q = draw(1, 2, 5, 64)
        self.refuses(r"dropout_p = 0\.1; accepted: 0", q, q, q, dropout_p=0.1)
        self.refuses("is_causal beside attn_mask", q, q, q, attn_mask=torch.ones(5, 5, dtype=torch.bool), is_causal=True)
        self.refuses("attn_mask: dtype torch.int64; accepted: bool", q, q, q, attn_mask=torch.ones(5, 5, dtype=torch.int64))
        self.refuses(r"attn_mask: shape \(\)", q, q, q, attn_mask=torch.ones((), dtype=torch.bool))
        self.refuses(r"attn_mask: shape \(1, 4\); accepted: what broadcasts to \[batch, heads, 5, 5\]", q, q, q, attn_mask=torch.ones(4, dtype=torch.bool))
        self.refuses(r"attn_mask: shape \(5, 6\); accepted: what broadcasts to \[batch, heads, 5, 5\]", q, q, q, attn_mask=torch.ones(5, 6, dtype=torch.bool))
        self.refuses(r"^attn_mask\.sizes", q, q, q, attn_mask=torch.ones(3, 1, 5, 5, dtype=torch.bool))
        self.refuses("attn_mask: ", q[None], q[None], q[None], attn_mask=torch.ones(3, 1, 5, 5, dtype=torch.bool))
        self.refuses("query, key and value: ", torch.cat([q, q, q]), torch.cat([q, q]), q)
        for other in (torch.float32, torch.float64, torch.float8_e5m2, torch.int32):
            each = q.to(other)
            self.refuses(rf"^query: dtype {other}; accepted: torch\.float16, torch\.bfloat16, torch\.float8_e4m3fn, torch\.int8$", each, each, each)
            if other is not torch.float8_e5m2:
                self.refuses(rf"^key: dtype {other}; accepted: torch\.float16, query's, torch\.float8_e4m3fn, ", q, each, q)
        for key, other in ((q, torch.bfloat16), (q, torch.float8_e4m3fn), (q.to(torch.float8_e4m3fn), torch.float16)):
            self.refuses(rf"^value: dtype {other}; accepted: {key.dtype}, key's$", q, key, q.to(other))
        for others in ((q.numpy(), q, q), (q, q.numpy(), q), (q, q, [1.0])):
            self.refuses("^(query|key|value): a (numpy.ndarray|builtins.list); accepted: a torch tensor", *others, error=TypeError)
        self.refuses("^attn_mask: a numpy.ndarray; accepted: a torch tensor", q, q, q, attn_mask=q.numpy(), error=TypeError)
        self.refuses("head", draw(1, 2, 5, 264), draw(1, 2, 5, 264), draw(1, 2, 5, 264), error=wavejit.Error)

    def test_what_requires_grad_without_a_graph(self):
        q, mask = draw(1, 2, 5, 64), draw(5, 5).requires_grad_()
        self.assertTrue(wavejit.torch.scaled_dot_product_attention(q, q, q, attn_mask=mask).requires_grad)
        with torch.inference_mode():
            wavejit.torch.scaled_dot_product_attention(q, q, q, attn_mask=mask)
        inputs = [q.clone().requires_grad_() for _ in range(3)]
        with torch.no_grad():
            self.assertFalse(wavejit.torch.scaled_dot_product_attention(*inputs, attn_mask=mask).requires_grad)

    def test_derivatives_of_forward_mode(self):
        """They were zeros, silently."""
        q, k = draw(1, 2, 5, 64), draw(1, 2, 9, 64)
        attend = wavejit.torch.scaled_dot_product_attention
        for index, word in enumerate(("query", "key", "value")):
            inputs = [q, k, k]

            def of_one(each, index=index, inputs=inputs):
                return attend(*inputs[:index], each, *inputs[index + 1 :])

            for differentiate in (lambda of_one, each: torch.func.jvp(of_one, (each,), (each,)), lambda of_one, each: torch.func.jacfwd(of_one)(each)):
                with self.assertRaisesRegex(wavejit.Unsupported, rf"^{word}: it has a tangent \(forward-mode AD, torch.func.jvp\)"):
                    differentiate(of_one, inputs[index])
        rows = q.transpose(1, 2)
        with self.assertRaisesRegex(wavejit.Unsupported, "^q: it has a tangent"):
            torch.func.jvp(lambda rows: wavejit.torch.flash_attn_func(rows, rows, rows), (rows,), (rows,))
        with self.assertRaisesRegex(wavejit.Unsupported, "^q: it has a tangent"):
            torch.func.jvp(lambda rows: torch.ops.wavejit.attention_forward(rows, rows, rows), (rows,), (rows,))
        with forward_ad.dual_level():
            dual = forward_ad.make_dual(q, q)
            with self.assertRaisesRegex(wavejit.Unsupported, "^attn_mask: it has a tangent"), torch.no_grad():
                attend(q, k, k, forward_ad.make_dual(torch.zeros(5, 9).half(), torch.ones(5, 9).half()))
            with self.assertRaisesRegex(wavejit.Unsupported, "^q: it has a tangent"):
                torch.ops.wavejit.attention_forward(dual.transpose(1, 2), rows, rows)
        # What is constant there has no derivative to lose.
        out, tangent = torch.func.jvp(lambda scale: attend(q, k, k) * scale, (torch.ones(()).half(),), (torch.ones(()).half(),))
        self.assertTrue(torch.equal(out, tangent))

    def test_other_devices(self):
        q = draw(1, 2, 5, 64)
        with self.assertRaisesRegex(wavejit.InvalidArgument, "k: a tensor on meta; accepted: cpu, where q is"):
            torch.ops.wavejit.attention_forward.default._op_dk(torch._C.DispatchKey.CompositeExplicitAutograd, q, q.to("meta"), q)
        for device in ("cuda", "cuda:0"):
            with self.assertRaisesRegex(wavejit.InvalidArgument, f"^device: {device}; accepted: a PyTorch for ROCm, where this one is for CUDA$"):
                wavejit.torch.engine(device)
        with self.assertRaisesRegex(wavejit.InvalidArgument, "^device: meta; accepted: ROCm tensors"):
            wavejit.torch.engine("meta")
        with mock.patch.object(torch.version, "hip", "7.2"), self.assertRaisesRegex(wavejit.NoDevice, "^device: cuda, of which torch says: "):
            wavejit.torch.engine("cuda")
        with self.assertRaisesRegex(TypeError, "engine: a int"):
            wavejit.torch.use(5)


class Autocast(Case):
    def test_it_casts_as_torchs_own_attention(self):
        q, k, mask = torch.randn(1, 2, 5, 64), torch.randn(1, 2, 9, 64), torch.randn(5, 9)
        for dtype in (torch.bfloat16, torch.float16):
            with torch.autocast("cpu", dtype):
                torchs = torch.nn.functional.scaled_dot_product_attention(q, k, k, mask)
                out = wavejit.torch.scaled_dot_product_attention(q, k, k, mask)
                packed, lse, _ = wavejit.torch.flash_attn_func(q.transpose(1, 2), k.transpose(1, 2), k.transpose(1, 2), return_attn_probs=True)
            self.assertEqual((out.dtype, packed.dtype, lse.dtype), (torchs.dtype, dtype, torch.float32))
            cast = [each.to(dtype) for each in (q, k, k, mask)]
            self.assertTrue(torch.equal(out, wavejit.torch.scaled_dot_product_attention(*cast)))
            self.assertLess(float((out.float() - torchs.float()).abs().max()), 3e-2)
        with torch.autocast("cpu", torch.bfloat16, enabled=False), self.assertRaisesRegex(wavejit.InvalidArgument, "^query: dtype torch.float32"):
            wavejit.torch.scaled_dot_product_attention(q, k, k)
        with torch.autocast("cpu", torch.bfloat16), self.assertRaisesRegex(wavejit.InvalidArgument, "^query: dtype torch.float64"):
            wavejit.torch.scaled_dot_product_attention(q.double(), k.double(), k.double())

    def test_compiled(self):
        attend = torch.compile(lambda q: wavejit.torch.scaled_dot_product_attention(q, q, q), backend="aot_eager", fullgraph=True)
        q = torch.randn(1, 2, 5, 64)
        with torch.autocast("cpu", torch.bfloat16):
            self.assertTrue(torch.equal(attend(q), wavejit.torch.scaled_dot_product_attention(q, q, q)))


class Engines(Case):
    def test_the_one_in_use(self):
        q = draw(1, 2, 5, 64)
        mine = wavejit.Engine("sim:gfx942")
        before = wavejit.torch.engine("cpu")
        try:
            self.assertIs(wavejit.torch.use(mine), mine)
            wavejit.torch.scaled_dot_product_attention(q, q, q)
            self.assertEqual(mine.statistics()["calls"], 1)
            mine.close()
            with self.assertRaisesRegex(wavejit.InvalidArgument, "engine: it is closed"):
                wavejit.torch.scaled_dot_product_attention(q, q, q)
            with self.assertRaisesRegex(wavejit.InvalidArgument, "engine: it is closed"):
                wavejit.torch.use(mine)
        finally:
            wavejit.torch.use(before)


if __name__ == "__main__":
    unittest.main()
