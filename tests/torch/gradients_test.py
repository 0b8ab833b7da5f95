# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Gradients through the operators beside PyTorch's own in float64: sdpa, flash-attn's functions, what traces; what is refused."""
import copy
import os
import unittest

import torch
import torch.nn.functional as F
import torch.utils.checkpoint

import wavejit
import wavejit.torch


def draw(*shape, dtype=torch.bfloat16):
    return torch.randn(*shape, dtype=torch.float32).to(dtype)


def exact_flash(q, k, v, causal=False, window=(-1, -1), softcap=0.0, alibi=None):
    """[B, S, H, D] in float64, by definition; rows that see nothing are 0."""
    group = q.shape[2] // k.shape[2]
    k, v = (each.repeat_interleave(group, 2) for each in (k, v))
    scores = torch.einsum("bqhd,bkhd->bhqk", q, k) * q.shape[3] ** -0.5
    if softcap:
        scores = softcap * torch.tanh(scores / softcap)
    row = torch.arange(q.shape[1])[:, None] + k.shape[1] - q.shape[1]
    key = torch.arange(k.shape[1])[None]
    if alibi is not None:
        scores = scores - alibi.double()[:, None, None] * (row - key).abs()
    seen = torch.ones(q.shape[1], k.shape[1], dtype=torch.bool)
    left, right = window
    if causal:
        right = 0
    if left >= 0:
        seen &= key >= row - left
    if right >= 0:
        seen &= key <= row + right
    weights = torch.softmax(scores.masked_fill(~seen, -1e300), -1) * seen
    return torch.einsum("bhqk,bkhd->bqhd", weights, v), torch.logsumexp(scores.masked_fill(~seen, float("-inf")), -1)


class Case(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(17)
        torch._dynamo.reset()

    def close(self, found, exact, decibels=40):
        self.assertEqual(found.shape, exact.shape)
        self.assertTrue(bool(torch.isfinite(found).all()))
        error = (found.double() - exact).square().sum()
        self.assertGreater(float(10 * torch.log10(exact.square().sum() / error)), decibels)

    def gradients(self, function, *inputs):
        """Those of the sum of outputs, weighed by fixed numbers."""
        leaves = [each.detach().clone().requires_grad_() for each in inputs]
        out = function(*leaves)
        weights = torch.linspace(-1, 1, out.numel(), dtype=torch.float64).reshape(out.shape).to(out.dtype)
        return torch.autograd.grad(out, leaves, weights)

    def beside(self, function, exact, *inputs):
        found = self.gradients(function, *inputs)
        for one, other in zip(found, self.gradients(exact, *(each.double() for each in inputs))):
            self.assertEqual(one.dtype, inputs[0].dtype)
            self.close(one, other)
        return found


class Sdpa(Case):
    def test_both_types_and_causal(self):
        for dtype in (torch.float16, torch.bfloat16):
            inputs = draw(2, 3, 33, 64, dtype=dtype), draw(2, 3, 50, 64, dtype=dtype), draw(2, 3, 50, 64, dtype=dtype)
            for causal in (False, True):
                def function(q, k, v, of=wavejit.torch.scaled_dot_product_attention):
                    return of(q, k, v, is_causal=causal)

                self.beside(function, lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=causal), *inputs)

    def test_grouped_heads(self):
        inputs = draw(1, 4, 20, 128), draw(1, 2, 40, 128), draw(1, 2, 40, 128)
        self.beside(lambda q, k, v: wavejit.torch.scaled_dot_product_attention(q, k, v, enable_gqa=True),
                    lambda q, k, v: F.scaled_dot_product_attention(q, k, v, enable_gqa=True), *inputs)

    def test_some_inputs_only(self):
        q, k = draw(1, 2, 9, 64).requires_grad_(), draw(1, 2, 9, 64)
        out = wavejit.torch.scaled_dot_product_attention(q, k, k)
        out.sum().backward()
        self.assertIsNotNone(q.grad)
        self.assertIsNone(k.grad)


class Flash(Case):
    def test_masks_and_modifiers(self):
        inputs = draw(1, 40, 4, 64), draw(1, 60, 2, 64), draw(1, 60, 2, 64)
        slopes = torch.tensor([0.5, 0.25, 0.125, 0.0625])
        for words, exact in (({"causal": True}, {"causal": True}),
                             ({"causal": True, "window_size": (10, 0)}, {"window": (10, 0)}),
                             ({"softcap": 2.0, "alibi_slopes": slopes}, {"softcap": 2.0, "alibi": slopes})):
            self.beside(lambda q, k, v: wavejit.torch.flash_attn_func(q, k, v, deterministic=True, **words), lambda q, k, v: exact_flash(q, k, v, **exact)[0], *inputs)

    def test_wide_heads(self):
        if os.environ.get("WAVEJIT_DEVICE") == "sim:gfx1201":
            q, k, v = (draw(1, 20, 2, dims).requires_grad_() for dims in (192, 192, 128))
            with self.assertRaisesRegex(wavejit.Unsupported, "d192/128 takes more than the 256 registers of a wave"):
                wavejit.torch.flash_attn_func(q, k, v, causal=True).float().sum().backward()
            return
        for dims, of_values in ((192, 128), (256, 256)):
            inputs = draw(1, 20, 4, dims), draw(1, 40, 2, dims), draw(1, 40, 2, of_values)
            self.beside(lambda q, k, v: wavejit.torch.flash_attn_func(q, k, v, causal=True), lambda q, k, v: exact_flash(q, k, v, causal=True)[0], *inputs)

    def test_loss_through_the_lse(self):
        inputs = draw(1, 20, 2, 64), draw(1, 30, 2, 64), draw(1, 30, 2, 64)

        def function(q, k, v):
            out, lse, _ = wavejit.torch.flash_attn_func(q, k, v, return_attn_probs=True)
            return out.transpose(1, 2).float().sum(-1) + lse

        def exact(q, k, v):
            out, lse = exact_flash(q, k, v)
            return out.transpose(1, 2).sum(-1) + lse

        for one, other in zip(self.gradients(function, *inputs), self.gradients(exact, *(each.double() for each in inputs))):
            self.close(one, other, 35)

    def test_packed_sequences_have_the_bits_of_single_ones(self):
        starts = torch.tensor([0, 7, 7, 40], dtype=torch.int32)
        q, k, v = draw(40, 4, 64), draw(40, 2, 64), draw(40, 2, 64)
        together = self.gradients(lambda q, k, v: wavejit.torch.flash_attn_varlen_func(q, k, v, starts, starts, 33, 33, causal=True), q, k, v)
        weights = torch.linspace(-1, 1, 40 * 4 * 64, dtype=torch.float64).reshape(40, 4, 64).bfloat16()
        for begin, end in ((0, 7), (7, 40)):
            leaves = [each[begin:end][None].clone().requires_grad_() for each in (q, k, v)]
            out = wavejit.torch.flash_attn_func(*leaves, causal=True)
            for one, other in zip(torch.autograd.grad(out, leaves, weights[begin:end][None]), together):
                self.assertTrue(torch.equal(one[0], other[begin:end]))


class Bias(Case):
    """attn_mask: what is added to the scores has a gradient, of its own sizes and type."""

    def masked(self, mask, *inputs, decibels=40):
        def function(q, k, v, mask):
            return wavejit.torch.scaled_dot_product_attention(q, k, v, mask, enable_gqa=True)

        found = self.gradients(function, *inputs, mask)
        exact = self.gradients(lambda q, k, v, mask: F.scaled_dot_product_attention(q, k, v, mask, enable_gqa=True), *(each.double() for each in (*inputs, mask)))
        for one, other, given in zip(found, exact, (*inputs, mask)):
            self.assertEqual(one.dtype, given.dtype)
            self.close(one, other, decibels)
        return found

    def test_of_every_element_and_broadcast(self):
        inputs = draw(2, 4, 20, 64), draw(2, 2, 33, 64), draw(2, 2, 33, 64)
        for sizes in ((2, 4, 20, 33), (1, 4, 20, 33), (2, 1, 20, 33), (20, 33)):
            for dtype in (torch.bfloat16, torch.float32):
                with self.subTest(sizes=sizes, dtype=dtype):
                    self.masked(draw(*sizes, dtype=dtype), *inputs)

    def test_other_types_and_rows_that_share_it(self):
        inputs = draw(1, 2, 20, 64, dtype=torch.float16), draw(1, 2, 24, 64, dtype=torch.float16), draw(1, 2, 24, 64, dtype=torch.float16)
        self.masked(draw(1, 2, 20, 24, dtype=torch.bfloat16).double(), *inputs)
        self.masked(draw(24, dtype=torch.float32)[None], *inputs)

    def test_sums_are_in_order_and_the_same_twice(self):
        inputs = [each.requires_grad_() for each in (draw(2, 2, 20, 64), draw(2, 2, 33, 64), draw(2, 2, 33, 64), draw(1, 1, 20, 33, dtype=torch.float32))]
        weights = draw(2, 2, 20, 64)
        out = wavejit.torch.scaled_dot_product_attention(*inputs)
        first = torch.autograd.grad(out, inputs, weights, retain_graph=True)
        for one, other in zip(first, torch.autograd.grad(out, inputs, weights)):
            self.assertTrue(torch.equal(one, other))
        # Without the bias' own gradient the others have the same bits; and it alone, too.
        constant = wavejit.torch.scaled_dot_product_attention(*inputs[:3], inputs[3].detach())
        for one, other in zip(first, torch.autograd.grad(constant, inputs[:3], weights)):
            self.assertTrue(torch.equal(one, other))
        alone = wavejit.torch.scaled_dot_product_attention(*[each.detach() for each in inputs[:3]], inputs[3])
        self.assertTrue(torch.equal(first[3], torch.autograd.grad(alone, inputs[3], weights)[0]))

    def test_bools_and_rows_that_see_nothing(self):
        inputs, seen = (draw(1, 2, 9, 64), draw(1, 2, 20, 64), draw(1, 2, 20, 64)), torch.rand(9, 20) > 0.3
        seen[4] = False
        found = self.gradients(lambda q, k, v: wavejit.torch.scaled_dot_product_attention(q, k, v, seen), *inputs)
        leaves = [each.double().requires_grad_() for each in inputs]
        weights = torch.softmax((leaves[0] @ leaves[1].mT / 8).masked_fill(~seen, -1e300), -1) * seen
        out = weights @ leaves[2]
        exact = torch.autograd.grad(out, leaves, torch.linspace(-1, 1, out.numel(), dtype=torch.float64).reshape(out.shape).bfloat16().double())
        for one, other in zip(found, exact):
            self.close(one, other)
        self.assertEqual(found[0][:, :, 4].abs().max(), 0)
        hidden = torch.zeros(9, 20).masked_fill(~seen, float("-inf"))
        *same, d_bias = self.gradients(lambda *given: wavejit.torch.scaled_dot_product_attention(*given), *inputs, hidden)
        self.assertTrue(all(torch.equal(one, other) for one, other in zip(same, found)))
        self.assertEqual(d_bias[~seen].abs().max(), 0)

    def test_compiled_beside_sinks_and_torch_librarys_own_checks(self):
        def function(q, k, v, bias, sinks):
            return torch.ops.wavejit.attention_forward(2 * q, k, v, causal=True, bias=bias, sinks=sinks)

        inputs = draw(2, 12, 2, 64), draw(2, 20, 2, 64), draw(2, 20, 2, 64), draw(1, 2, 12, 20, dtype=torch.float32), torch.tensor([0.5, 3.0])
        plain = self.gradients(function, *inputs)
        found = self.gradients(torch.compile(function, backend="aot_eager", fullgraph=True), *inputs)
        self.assertTrue(all(torch.equal(one, other) for one, other in zip(plain, found)))
        q, k, v, bias, sinks = inputs
        out, lse = torch.ops.wavejit.attention_forward_lse(q, k, v, bias=bias, sinks=sinks)
        rows = q, k, v, out, lse, q
        for operator, given, words in (("attention_backward", (), {"bias": bias}), ("attention_backward_bias", (draw(2, 1, 12, 20),), {"causal": True}),
                                       ("attention_backward_bias", (draw(12, 15).double(),), {}), ("attention_backward_sinks_bias", (sinks, bias), {})):
            keys = slice(0, given[-1].shape[-1] if given else 20)
            told = torch.library.opcheck(getattr(torch.ops.wavejit, operator).default, (q, k[:, keys], v[:, keys], *rows[3:], *given), words)
            self.assertEqual(set(told.values()), {"SUCCESS"})


class InOneTensor(Case):
    """qkv and kv: the gradients of the parts, in one tensor, with the bits of tensors apart."""

    def gradient(self, function, leaf, *others):
        leaf = leaf.clone().requires_grad_()
        out = function(leaf, *others)
        weights = torch.linspace(-1, 1, out.numel(), dtype=torch.float64).reshape(out.shape).to(out.dtype)
        return torch.autograd.grad(out, leaf, weights)[0]

    def test_dense(self):
        qkv, words = draw(2, 20, 3, 2, 64), {"causal": True, "window_size": (9, 0), "softcap": 3.0, "deterministic": True}
        apart = self.gradients(lambda q, k, v: wavejit.torch.flash_attn_func(q, k, v, **words), *qkv.unbind(2))
        found = self.gradient(lambda qkv: wavejit.torch.flash_attn_qkvpacked_func(qkv, **words), qkv)
        self.assertTrue(torch.equal(found, torch.stack(apart, 2)))
        found = self.gradient(lambda kv: wavejit.torch.flash_attn_kvpacked_func(qkv[:, :, 0], kv, **words), qkv[:, :, 1:])
        self.assertTrue(torch.equal(found, torch.stack(apart[1:], 2)))
        self.assertTrue(torch.equal(wavejit.torch.flash_attn_qkvpacked_func(qkv, return_attn_probs=True)[1], wavejit.torch.flash_attn_func(*qkv.unbind(2), return_attn_probs=True)[1]))

    def test_packed_sequences(self):
        qkv, starts, slopes = draw(40, 3, 2, 64), torch.tensor([0, 7, 7, 40], dtype=torch.int32), torch.tensor([0.5, 0.25])
        words = {"causal": True, "alibi_slopes": slopes}
        apart = self.gradients(lambda q, k, v: wavejit.torch.flash_attn_varlen_func(q, k, v, starts, starts, 33, 33, **words), *qkv.unbind(1))
        found = self.gradient(lambda qkv: wavejit.torch.flash_attn_varlen_qkvpacked_func(qkv, starts, 33, **words), qkv)
        self.assertTrue(torch.equal(found, torch.stack(apart, 1)))
        found = self.gradient(lambda kv: wavejit.torch.flash_attn_varlen_kvpacked_func(qkv[:, 0], kv, starts, starts, 33, 33, **words), qkv[:, 1:])
        self.assertTrue(torch.equal(found, torch.stack(apart[1:], 1)))


class Graphs(Case):
    def test_what_a_node_saved_is_watched_and_may_lie_elsewhere(self):
        starts, rows = torch.tensor([0, 7, 20], dtype=torch.int32), draw(20, 2, 64)

        def through(q):
            return wavejit.torch.flash_attn_varlen_func(q, q, q, starts, starts, 13, 13, causal=True)

        plain = self.gradients(through, rows)
        for changed in (lambda out: starts.add_(0), lambda out: out.detach().mul_(2)):
            leaf = rows.clone().requires_grad_()
            out = through(leaf)
            changed(out)
            with self.assertRaisesRegex(RuntimeError, "modified by an inplace operation"):
                out.sum().backward()
        for layout in (through, lambda q: wavejit.torch.scaled_dot_product_attention(q[None], q[None], q[None])):
            leaf = rows.clone().requires_grad_()
            out = layout(leaf)
            self.assertFalse(out._is_view())
            with self.assertRaisesRegex(RuntimeError, "modified by an inplace operation"):
                out.mul_(2).sum().backward()  # it is its caller's own, and a node's that needs it
        packed = []
        with torch.autograd.graph.saved_tensors_hooks(lambda tensor: packed.append(tensor.clone()) or len(packed) - 1, lambda number: packed[number]):
            found = self.gradients(through, rows)
        self.assertEqual(len(packed), 7)  # q, k, v, out, LSE and both starts
        self.assertTrue(torch.equal(found[0], plain[0]))

    def test_compiled_in_one_graph(self):
        q, k = draw(1, 20, 2, 64), draw(1, 30, 2, 64)

        def block(q, k):
            return wavejit.torch.flash_attn_func(2 * q, k, k, causal=True) * 3

        plain = self.gradients(block, q, k)
        for one, other in zip(self.gradients(torch.compile(block, backend="aot_eager", fullgraph=True), q, k), plain):
            self.assertTrue(torch.equal(one, other))

    def test_the_backward_graph_has_the_operator(self):
        from torch._dynamo.backends.common import aot_autograd
        from torch._functorch.aot_autograd import make_boxed_func

        graphs, starts = [], torch.tensor([0, 7, 20], dtype=torch.int32)

        def keep(graph, inputs):
            graphs.append(graph.code)
            return make_boxed_func(graph)

        def block(qkv):
            packed = wavejit.torch.flash_attn_varlen_qkvpacked_func(2 * qkv[0], starts, 13, causal=True)
            return wavejit.torch.flash_attn_qkvpacked_func(qkv, softcap=3.0)[0] + packed

        compiled = torch.compile(block, backend=aot_autograd(fw_compiler=keep, bw_compiler=keep), fullgraph=True)
        qkv = draw(1, 20, 3, 2, 64)
        plain, found = self.gradients(block, qkv), self.gradients(compiled, qkv)
        self.assertTrue(torch.equal(plain[0], found[0]))
        forward, backward = graphs
        self.assertEqual((forward.count("wavejit.attention_forward_lse"), backward.count("wavejit.attention_backward")), (2, 2))

    def test_who_looks_sees_the_operators(self):
        from torch.utils._python_dispatch import TorchDispatchMode

        seen = []

        class Look(TorchDispatchMode):
            def __torch_dispatch__(self, operator, types, given=(), words=None):
                seen.append(str(operator))
                return operator(*given, **(words or {}))

        q = draw(1, 20, 2, 64)
        plain = self.gradients(lambda q: wavejit.torch.flash_attn_func(q, q, q), q)
        with Look():
            looked_at = self.gradients(lambda q: wavejit.torch.flash_attn_func(q, q, q), q)
        self.assertTrue(torch.equal(plain[0], looked_at[0]))
        self.assertEqual([name for name in seen if "wavejit" in name], ["wavejit.attention_forward_lse.default", "wavejit.attention_backward.default"])
        self.assertTrue(torch.equal(plain[0], self.gradients(lambda q: torch.ops.wavejit.attention_forward(q, q, q), q)[0]))

    def test_deterministic_or_not(self):
        inputs = draw(2, 70, 4, 64), draw(2, 70, 2, 64), draw(2, 70, 2, 64)
        first, *others = (self.gradients(lambda q, k, v: wavejit.torch.flash_attn_func(q, k, v, causal=True, deterministic=each), *inputs) for each in (True, False, True))
        for other in others:
            self.assertTrue(all(torch.equal(one, two) for one, two in zip(first, other)))

    def test_checkpoints_and_twice_on_one_graph(self):
        q = draw(1, 20, 2, 64)

        def block(q):
            return wavejit.torch.flash_attn_func(q, q, q, causal=True)

        (plain,) = self.gradients(block, q)
        for reentrant in (False, True):
            leaf = q.clone().requires_grad_()
            out = torch.utils.checkpoint.checkpoint(block, leaf, use_reentrant=reentrant)
            out.backward(torch.linspace(-1, 1, out.numel(), dtype=torch.float64).reshape(out.shape).to(out.dtype))
            self.assertTrue(torch.equal(plain, leaf.grad))
        leaf = q.clone().requires_grad_()
        out = block(leaf).float().sum()
        (first,) = torch.autograd.grad(out, leaf, retain_graph=True)
        self.assertTrue(torch.equal(first, torch.autograd.grad(out, leaf)[0]))

    def test_autocast(self):
        layer = torch.nn.Linear(64, 3 * 64)

        def loss(of):
            x = torch.linspace(-1, 1, 10 * 64).reshape(1, 10, 64)
            q, k, v = of(x).unflatten(-1, (3, 1, 64)).permute(2, 0, 3, 1, 4)
            return q, k, v

        with torch.autocast("cpu", dtype=torch.bfloat16):
            wavejit.torch.scaled_dot_product_attention(*loss(layer), is_causal=True).float().square().sum().backward()
        other = copy.deepcopy(layer).double()
        other.zero_grad()
        x = torch.linspace(-1, 1, 10 * 64, dtype=torch.float64).reshape(1, 10, 64)
        q, k, v = other(x).unflatten(-1, (3, 1, 64)).permute(2, 0, 3, 1, 4)
        F.scaled_dot_product_attention(q, k, v, is_causal=True).square().sum().backward()
        self.close(layer.weight.grad, other.weight.grad, 30)

    def test_torch_librarys_own_checks(self):
        q, k = draw(1, 5, 2, 64), draw(1, 9, 2, 64)
        out, lse = torch.ops.wavejit.attention_forward_lse(q, k, k)
        told = torch.library.opcheck(torch.ops.wavejit.attention_backward.default, (q, k, k, out, lse, q), {"causal": True})
        self.assertEqual(set(told.values()), {"SUCCESS"})
        told = torch.library.opcheck(torch.ops.wavejit.attention_forward_lse.default, (q.requires_grad_(), k, k), {})
        self.assertEqual(set(told.values()), {"SUCCESS"})


class Refused(Case):
    def test_by_name(self):
        q = draw(1, 2, 5, 64).requires_grad_()
        for field, call in (("query: head dims 32", lambda: wavejit.torch.scaled_dot_product_attention(*[draw(1, 2, 5, 32).requires_grad_()] * 3)),
                            ("alibi_slopes: they require grad, and slopes have no gradient", lambda: wavejit.torch.flash_attn_func(q, q, q, alibi_slopes=torch.ones(5).requires_grad_())),
                            ("block_table", lambda: wavejit.torch.flash_attn_with_kvcache(draw(1, 1, 2, 64).requires_grad_(), draw(4, 16, 2, 64), draw(4, 16, 2, 64),
                                                                                          cache_seqlens=5, block_table=torch.zeros(1, 1, dtype=torch.int32)))):
            with self.subTest(field=field), self.assertRaisesRegex(wavejit.Unsupported, field):
                call()
        for words in ({"local_chunk": 3}, {"causal_flags": torch.tensor([True])}):
            with self.assertRaisesRegex(wavejit.Unsupported, f"^{next(iter(words))}.*there is no backward of it yet"):
                torch.ops.wavejit.attention_forward(q, q, q, causal=True, **words)

    def test_dropout_and_what_is_not_packed(self):
        q, qkv, starts = draw(5, 2, 64).requires_grad_(), draw(5, 3, 2, 64).requires_grad_(), torch.tensor([0, 5], dtype=torch.int32)
        flash = wavejit.torch
        for field, call in (("dropout_p = 0.1", lambda: flash.flash_attn_func(q[None], q[None], q[None], 0.1)),
                            ("dropout_p = 0.1", lambda: flash.flash_attn_varlen_func(q, q, q, starts, starts, 5, 5, 0.1)),
                            ("dropout_p = 0.1", lambda: flash.flash_attn_qkvpacked_func(qkv[None], 0.1)),
                            ("dropout_p = 0.1", lambda: flash.flash_attn_kvpacked_func(q[None], qkv[None, :, 1:], 0.1)),
                            ("dropout_p = 0.1", lambda: flash.flash_attn_varlen_qkvpacked_func(qkv, starts, 5, 0.1)),
                            ("dropout_p = 0.1", lambda: flash.flash_attn_varlen_kvpacked_func(q, qkv[:, 1:], starts, starts, 5, 5, 0.1)),
                            ("dropout_p = 0.1", lambda: flash.scaled_dot_product_attention(q[None], q[None], q[None], dropout_p=0.1)),
                            (r"qkv: shape \(5, 3, 2, 64\); accepted: \[batch, length, 3, heads, head dim\]", lambda: flash.flash_attn_qkvpacked_func(qkv)),
                            (r"kv: shape \(5, 3, 2, 64\); accepted: \[total, 2, heads, head dim\]", lambda: flash.flash_attn_varlen_kvpacked_func(q, qkv, starts, starts, 5, 5)),
                            (r"qkv: dtype torch\.float32", lambda: flash.flash_attn_qkvpacked_func(qkv[None].float())),
                            (r"cu_seqlens\[1\] = 9", lambda: flash.flash_attn_varlen_qkvpacked_func(qkv, torch.tensor([0, 9], dtype=torch.int32), 5))):
            with self.subTest(field=field), self.assertRaisesRegex(wavejit.Error, field):
                call()

    def test_gradients_of_gradients(self):
        q = draw(1, 5, 2, 64).requires_grad_()
        out = wavejit.torch.flash_attn_func(q, q, q)
        with self.assertRaisesRegex(wavejit.Unsupported, "create_graph: gradients of gradients have no kernel"):
            torch.autograd.grad(out.sum(), q, create_graph=True)


if __name__ == "__main__":
    unittest.main()
