# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""wavejit.torch.attention_merge over CPU tensors, beside float64 and torch's own attention."""
import unittest

import torch

import wavejit
import wavejit.torch


def exact(outs, lses):
    """outs [parts, …, tokens, heads, dim], lses [parts, …, heads, tokens], in float64."""
    outs, lses = outs.double(), lses.double()
    whole = torch.logsumexp(lses, 0)
    weights = torch.exp(lses - whole).nan_to_num(0).transpose(-1, -2)[..., None]
    return (weights * outs).sum(0), whole


class Merge(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(31)
        self.outs, self.lses = torch.randn(3, 2, 5, 4, 64), 3 * torch.randn(3, 2, 4, 5)
        self.lses[1, 0, 2, 3] = -torch.inf

    def test_lists_and_stacks(self):
        for dtype, bound in ((torch.float32, 3e-6), (torch.float16, 2e-3), (torch.bfloat16, 2e-2)):
            outs = self.outs.to(dtype)
            out, lse = wavejit.torch.attention_merge(list(outs), list(self.lses))
            of_out, of_lse = exact(outs, self.lses)
            self.assertEqual((out.dtype, out.shape, lse.shape), (dtype, of_out.shape, of_lse.shape))
            self.assertLess(float((out.double() - of_out).abs().max()), bound)
            self.assertLess(float((lse.double() - of_lse).abs().max()), 3e-6)
            for again in (wavejit.torch.attention_merge(outs, self.lses), wavejit.torch.attention_merge(list(outs.unbind()), self.lses.unbind())):
                self.assertTrue(torch.equal(again[0], out) and torch.equal(again[1], lse))
        many = wavejit.torch.attention_merge(self.outs.repeat(4, 1, 1, 1, 1), self.lses.repeat(4, 1, 1, 1), dtype=torch.bfloat16)
        self.assertEqual(many[0].dtype, torch.bfloat16)
        self.assertLess(float((many[1].double() - exact(self.outs, self.lses)[1] - torch.log(torch.tensor(4.0))).abs().max()), 1e-5)

    def test_into_the_callers_tensors(self):
        outs = self.outs[:, 0].half()
        out, lse = wavejit.torch.attention_merge(list(outs), list(self.lses[:, 0]))
        first, sums = outs[0].clone(), self.lses[0, 0].clone()
        given = wavejit.torch.attention_merge([first, *outs[1:]], [sums, *self.lses[1:, 0]], out=first, lse=sums)
        self.assertIs(given[0], first)
        self.assertTrue(torch.equal(first, out) and torch.equal(sums, lse))
        output = torch.empty_like(outs[0])
        wavejit.torch.merge_attn_states(output, outs[0], self.lses[0, 0], outs[1], self.lses[1, 0])
        self.assertTrue(torch.equal(output, wavejit.torch.attention_merge(list(outs[:2]), list(self.lses[:2, 0]))[0]))

    def test_words_of_vllm(self):
        outs, lses = self.outs[:2, 0].half(), self.lses[:2, 0].clone()
        lses[0, 1, 2], lses[1, 3, 4] = torch.inf, torch.inf  # rows without keys, as some attention says it
        outs[0, 2, 1] = outs[1, 4, 3] = torch.nan
        clean = torch.where(lses == torch.inf, -torch.inf, lses)
        for tokens in (None, 5, 3, 0):
            output, lse = torch.empty_like(outs[0]), torch.empty_like(lses[0])
            wavejit.torch.merge_attn_states(output, outs[0], lses[0], outs[1], lses[1], lse, prefill_tokens_with_context=tokens)
            merged = wavejit.torch.attention_merge(list(outs), list(clean))
            count = 5 if tokens is None else tokens
            self.assertTrue(torch.equal(output[:count], merged[0][:count]) and torch.equal(lse[:, :count], merged[1][:, :count]))
            self.assertTrue(torch.equal(output[count:].nan_to_num(9), outs[1, count:].nan_to_num(9)) and torch.equal(lse[:, count:], lses[1][:, count:]))
        self.assertTrue(torch.equal(merged[0][2, 1], outs[1, 2, 1]) and bool(merged[0].isfinite().all()))
        scale, whole = torch.tensor([1 / 512]), exact(outs.nan_to_num(0), clean)[0]
        for dtype in (torch.float8_e4m3fn, torch.float8_e5m2):
            output = torch.empty(5, 4, 64, dtype=dtype)
            wavejit.torch.merge_attn_states(output, outs[0], lses[0], outs[1], lses[1], output_scale=scale)
            wanted = (whole * 512).clamp(-torch.finfo(dtype).max, torch.finfo(dtype).max)
            step = torch.finfo(dtype).eps * wanted.abs().clamp(min=1.0)
            self.assertTrue(bool(((output.double() - wanted).abs() <= step).all()))
        self.assertTrue(bool((torch.isfinite(output.float())).all()))
        for words, pattern in (({"output_scale": scale}, "^output_scale: given beside output of torch.float16; accepted: None"),
                               ({"prefill_tokens_with_context": 6}, "^prefill_tokens_with_context = 6; accepted: 0 … 5")):
            with self.assertRaisesRegex(wavejit.InvalidArgument, pattern):
                wavejit.torch.merge_attn_states(torch.empty_like(outs[0]), outs[0], lses[0], outs[1], lses[1], **words)
        with self.assertRaisesRegex(wavejit.InvalidArgument, "^output_scale: None beside output of torch.float8_e5m2; accepted: a tensor of one element"):
            wavejit.torch.merge_attn_states(output, outs[0], lses[0], outs[1], lses[1])

    def test_vllms_words_are_checked_before_the_first_write(self):
        outs, lses = self.outs[:2, 0].half(), self.lses[:2, 0].clone()
        output = torch.zeros(5, 4, 64, dtype=torch.float16)
        right = {"output": output, "prefix_output": outs[0], "prefix_lse": lses[0], "suffix_output": outs[1], "suffix_lse": lses[1], "output_lse": torch.zeros(4, 5)}
        with_scale = {"output": torch.zeros(5, 4, 64).to(torch.float8_e4m3fn), "output_scale": torch.tensor([1.0])}
        wider = torch.randn(4, 8)
        for pattern, words in (
            (r"suffix_output: shape \(1, 4, 64\); accepted: \(5, 4, 64\), as output has shape", {"suffix_output": outs[1][:1]}),
            (r"suffix_output: shape \(4, 4, 64\)", {"suffix_output": outs[1][:4]}),
            (r"suffix_output: shape \(8, 4, 64\)", {"suffix_output": torch.randn(8, 4, 64).half()}),
            (r"suffix_output: shape \(5, 1, 64\)", {"suffix_output": outs[1][:, :1]}),
            (r"suffix_output: shape \(5, 4, 1\)", {"suffix_output": outs[1][..., :1]}),
            ("suffix_output: torch.float64; accepted: torch.float16, as prefix_output", {"suffix_output": outs[1].double()}),
            (r"suffix_lse: shape \(1, 5\); accepted: \(4, 5\)", {"suffix_lse": lses[1][:1]}),
            (r"suffix_lse: shape \(4, 4\)", {"suffix_lse": lses[1][:, :4]}),
            ("suffix_lse: torch.float16; accepted: torch.float32", {"suffix_lse": lses[1].half()}),
            (r"prefix_output: shape \(4, 4, 64\)", {"prefix_output": outs[0][:4]}),
            ("prefix_output: torch.float64", {"prefix_output": outs[0].double()}),
            (r"prefix_lse: shape \(4, 8\)", {"prefix_lse": wider}),
            (r"output_lse: shape \(4, 8\)", {"output_lse": wider}),
            (r"output_lse: shape \(4, 5\), strides \(0, 1\)", {"output_lse": torch.zeros(1, 5).expand(4, 5)}),
            (r"output: shape \(5, 4, 64\), strides \(0, 64, 1\)", {"output": output[:1].clone().expand(5, 4, 64)}),
            (r"output: shape \(4, 64\); accepted: \[tokens, heads, head dim\]", {"output": output[0]}),
            ("output: torch.int8; accepted beside parts of torch.float16", {"output": output.to(torch.int8)}),
            ("output: torch.bfloat16", {"output": output.bfloat16()}),
            ("suffix_output: it requires grad", {"suffix_output": outs[1].clone().requires_grad_()}),
            ("suffix_output: a tensor on meta", {"suffix_output": outs[1].to("meta")}),
            (r"prefill_tokens_with_context = 2.5; accepted: 0 … 5, the tokens of output, as an integer", {"prefill_tokens_with_context": 2.5}),
            (r"prefill_tokens_with_context = 5.0", {"prefill_tokens_with_context": 5.0}),
            ("prefill_tokens_with_context = -1", {"prefill_tokens_with_context": -1}),
            *((f"output_scale = {value:g}; accepted: a positive number", {**with_scale, "output_scale": torch.tensor([value])}) for value in (0.0, -1.0, torch.nan, torch.inf, 1e-39)),
        ):  # fmt: skip
            for tokens in (0, 3, 5):
                given = {**right, "prefill_tokens_with_context": tokens, **words}
                before = [given[field].clone().float() for field in ("output", "output_lse")]
                with self.subTest(pattern=pattern, tokens=tokens), self.assertRaisesRegex(wavejit.Error, f"^{pattern}"):
                    wavejit.torch.merge_attn_states(**given)
                self.assertTrue(all(torch.equal(given[field].float(), as_it_was) for field, as_it_was in zip(("output", "output_lse"), before)), pattern)

    def test_what_the_engine_refuses_has_vllms_words(self):
        outs, lses = self.outs[:2, 0].half(), self.lses[:2, 0].clone()
        with self.assertRaisesRegex(wavejit.Error, "^prefix_output") as caught:
            wavejit.torch.merge_attn_states(torch.zeros(5, 4, 3).half(), outs[0][..., :3], lses[0], outs[1][..., :3], lses[1])
        self.assertNotIn("parts[", str(caught.exception))

    def test_pieces_of_attention(self):
        q, k, v = (torch.randn(2, rows, 4, 64).bfloat16() for rows in (7, 300, 300))
        parts = [torch.ops.wavejit.attention_forward_lse(q, k[:, begin:end], v[:, begin:end]) for begin, end in ((0, 100), (100, 101), (101, 300))]
        out, lse = wavejit.torch.attention_merge([part[0] for part in parts], [part[1] for part in parts])
        wide = (each.double().transpose(1, 2) for each in (q, k, v))
        whole = torch.nn.functional.scaled_dot_product_attention(*wide).transpose(1, 2)
        self.assertLess(float((out.double() - whole).abs().max()), 4e-3)
        self.assertLess(float((lse - torch.ops.wavejit.attention_forward_lse(q, k, v)[1]).abs().max()), 1e-4)

    def test_refused_by_name(self):
        call, outs, lses = wavejit.torch.attention_merge, list(self.outs), list(self.lses)
        for pattern, given, words in (
            ("outs and lses: 3 and 2", (outs, lses[:2]), {}),
            ("outs and lses: a tensor and a sequence", (self.outs, lses), {}),
            ("outs: no part", ([], []), {}),
            (r"^outs\[1\]: dtype fp16", ([outs[0], outs[1].half()], lses[:2]), {}),
            (r"^lses\[0\]: dtype", (outs, [lses[0].half(), *lses[1:]]), {}),
            ("outs: shape", ([outs[0][0, 0]], [lses[0]]), {}),
            ("parts.* and parts|12", (outs * 4, lses * 4), {}),
            ("dtype: torch.float16 beside out", (outs, lses), {"out": outs[0].clone(), "dtype": torch.float16}),
            ("requires grad", ([outs[0].clone().requires_grad_(), *outs[1:]], lses), {}),
        ):
            with self.assertRaisesRegex(wavejit.Error, pattern):
                call(*given, **words)

    def test_torch_compile_and_torch_librarys_own_checks(self):
        outs, lses = list(self.outs.half()), list(self.lses)

        def step(*tensors):
            out, lse = wavejit.torch.attention_merge([2 * tensors[0], tensors[1]], list(tensors[2:]))
            return out + 1, lse

        given = (*outs[:2], *lses[:2])
        compiled = torch.compile(step, backend="aot_eager", fullgraph=True)
        for found, wanted in zip(compiled(*given), step(*given)):
            self.assertTrue(torch.equal(found, wanted))
        torch.library.opcheck(torch.ops.wavejit.attention_merge.default, (outs, lses))
        torch.library.opcheck(torch.ops.wavejit.attention_merge_out.default, (outs, lses, torch.empty_like(outs[0]), torch.empty_like(lses[0])))


if __name__ == "__main__":
    unittest.main()
