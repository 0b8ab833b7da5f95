# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Small models of transformers with random weights, attention by wavejit beside eager attention.

The judge is the model in float32. wavejit may err as eager attention in bf16 does, and half as much again.
WAVEJIT_TEST_WHOLE=1: more models and longer rows.
"""
import os
import unittest

import torch
import transformers
from training import Padding, Splits, Steps  # noqa: F401 - they run here: importing PyTorch costs as much as they do

import wavejit.torch
import wavejit.transformers

WHOLE = os.environ.get("WAVEJIT_TEST_WHOLE") == "1"
SIZES = {"hidden_size": 128, "intermediate_size": 160, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 64,
         "vocab_size": 97, "max_position_embeddings": 2048, "pad_token_id": 0}  # fmt: skip
KINDS = {
    "llama": (transformers.LlamaConfig, transformers.LlamaForCausalLM, {}),
    "qwen": (transformers.Qwen3Config, transformers.Qwen3ForCausalLM, {}),
}
if WHOLE:
    KINDS |= {
        "llama128": (transformers.LlamaConfig, transformers.LlamaForCausalLM, {"head_dim": 128, "num_attention_heads": 8, "num_key_value_heads": 1}),
        "mistral": (transformers.MistralConfig, transformers.MistralForCausalLM, {"sliding_window": 24}),
        "gemma": (transformers.Gemma2Config, transformers.Gemma2ForCausalLM, {"sliding_window": 24, "attn_logit_softcapping": 20.0}),
        "gpt_oss": (transformers.GptOssConfig, transformers.GptOssForCausalLM, {"sliding_window": 24, "num_local_experts": 2, "num_experts_per_tok": 1}),
    }
ROWS = 400 if WHOLE else 43
wavejit.transformers.register()
ENGINE = wavejit.torch.engine("cpu")


def model_of(kind):
    configuration, model, words = KINDS[kind]
    torch.manual_seed(17)
    made = model(configuration(**{**SIZES, **words})).eval()
    for parameter in made.parameters():  # attention that is far from uniform
        parameter.data *= 3 if parameter.ndim > 1 else 1
    return made.to(torch.bfloat16)


class Case(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(17)
        self.enterContext(torch.inference_mode())

    def logits(self, model, implementation, *arguments, **words):
        model.set_attn_implementation(implementation)
        before = ENGINE.statistics()["calls"]
        told = model(*arguments, **words).logits.float()
        layers = model.config.num_hidden_layers if implementation == "wavejit" else 0
        self.assertEqual(ENGINE.statistics()["calls"], before + layers)
        return told

    def beside_eager(self, model, rows, *arguments, **words):
        """Compares the logits at `rows`, and gives wavejit's."""
        exact = self.logits(model.float(), "eager", *arguments, **words)[rows]
        model.to(torch.bfloat16)
        eager = self.logits(model, "eager", *arguments, **words)
        found = self.logits(model, "wavejit", *arguments, **words)
        error, allowed = (found[rows] - exact).abs(), (eager[rows] - exact).abs()
        self.assertLess(float(error.mean()), 1.5 * float(allowed.mean()))
        self.assertLess(float(error.max()), 3 * float(allowed.max()))
        return found


class Models(Case):
    def each(self):
        for kind in KINDS:
            with self.subTest(kind):
                yield model_of(kind)

    def test_prefill(self):
        ids = torch.randint(1, 97, (2, ROWS))
        for model in self.each():
            self.beside_eager(model, torch.ones(2, ROWS, dtype=torch.bool), ids)

    def test_padded_batches(self):
        ids, mask = torch.randint(1, 97, (3, ROWS)), torch.ones(3, ROWS, dtype=torch.long)
        mask[0, :13], mask[2, -9:] = 0, 0
        for model in self.each():
            found = self.beside_eager(model, mask.bool(), ids, attention_mask=mask)
            unmasked = self.logits(model, "wavejit", ids)
            self.assertGreater(float((found - unmasked)[0, 13:].abs().max()), 0.1)  # padding would have shown
            shorter = self.logits(model, "wavejit", ids[:1, 13:], attention_mask=mask[:1, 13:])
            spread = float((found[0, 13:] - unmasked[0, 13:]).abs().mean())
            self.assertLess(float((found[0, 13:] - shorter[0]).abs().mean()), 0.25 * spread)

    def test_cached_decode(self):
        ids, mask = torch.randint(1, 97, (2, 12)), torch.ones(2, 12, dtype=torch.long)
        mask[0, :5] = 0
        steps = 5
        for model in self.each():
            # Fed the same tokens, so that one near tie does not part them.
            tokens = torch.randint(1, 97, (2, steps))
            caches, told = {}, {"eager": [], "wavejit": []}
            for implementation, logits in told.items():
                caches[implementation] = transformers.DynamicCache(config=model.config)
                seen = mask
                for step in range(steps):
                    given = ids if step == 0 else tokens[:, step - 1 : step]
                    logits.append(self.logits(model, implementation, given, attention_mask=seen, past_key_values=caches[implementation])[:, -1])
                    seen = torch.nn.functional.pad(seen, (0, 1), value=1)
            whole = torch.cat([ids, tokens[:, :-1]], 1)
            exact = self.logits(model.float(), "eager", whole, attention_mask=torch.nn.functional.pad(mask, (0, steps - 1), value=1))[:, -steps:]
            model.to(torch.bfloat16)
            error, allowed = ((torch.stack(told[name], 1) - exact).abs().mean() for name in ("wavejit", "eager"))
            self.assertLess(float(error), 1.5 * float(allowed))

    def test_generate(self):
        ids, mask = torch.randint(1, 97, (2, 12)), torch.ones(2, 12, dtype=torch.long)
        mask[0, :5] = 0
        model = model_of("llama")
        model.set_attn_implementation("wavejit")
        before = ENGINE.statistics()["calls"]
        tokens = model.generate(ids, attention_mask=mask, max_new_tokens=4, min_new_tokens=4, do_sample=False)
        self.assertEqual((tokens.shape, ENGINE.statistics()["calls"]), ((2, 16), before + 4 * 2))

    def test_compiled(self):
        ids, mask = torch.randint(1, 97, (2, ROWS)), torch.ones(2, ROWS, dtype=torch.long)
        mask[0, :13] = 0
        for model in self.each():
            plain = self.logits(model, "wavejit", ids, attention_mask=mask)
            for backend in ("eager", "aot_eager") if WHOLE else ("aot_eager",):
                torch._dynamo.reset()
                compiled = torch.compile(model, backend=backend, fullgraph=True)
                before = ENGINE.statistics()["calls"]
                self.assertTrue(torch.equal(compiled(ids, attention_mask=mask).logits.float(), plain))
                self.assertEqual(ENGINE.statistics()["calls"], before + model.config.num_hidden_layers)


class Masks(Case):
    def test_windows_and_padding_behind_are_known_as_such(self):
        from transformers import masking_utils as masks

        window, chunk = masks.sliding_window_causal_mask_function, masks.chunked_causal_mask_function(4, torch.zeros(2, dtype=torch.int))
        words = {"batch_size": 2, "q_length": 9, "kv_length": 9, "mask_function": window(4), "local_size": 4, "dtype": torch.bfloat16}
        whole, behind, front, between = torch.ones(4, 2, 9, dtype=torch.bool)
        behind[1, 5:] = front[0, :2] = between[0, 4] = False
        plain = {"mask_function": masks.causal_mask_function, "local_size": None}
        q, k = torch.randn(2, 2, 9, 64).bfloat16(), torch.randn(2, 1, 9, 64).bfloat16()
        for known, given in (({"window_left": 3}, {}), ({"window_left": 3}, {"attention_mask": whole}), ({"window_left": 0}, {"mask_function": window(1), "local_size": 1}),
                             ({"window_left", "key_lengths", "causal_prefix"}, {"attention_mask": behind}), ({"key_lengths", "causal_prefix"}, {"attention_mask": behind, **plain}),
                             (None, {"mask_function": chunk}), (None, {"mask_function": masks.sliding_window_bidirectional_mask_function(3)}), (None, {"attention_mask": front}), (None, {"attention_mask": between, **plain}), (None, {"q_length": 3, "q_offset": 6}),
                             (None, {"allow_is_causal_skip": False}), (None, {"q_offset": 1, "kv_offset": 1}),
                             (None, {"mask_function": masks.and_masks(masks.causal_mask_function, masks.causal_mask_function), "attention_mask": behind, "local_size": None})):
            with self.subTest(given=given):
                made = wavejit.transformers.mask(**{**words, **given})
                found = getattr(made, "wavejit_known", None)
                self.assertEqual(set(found) if isinstance(known, set) else found, known)
                self.assertTrue(torch.equal(made if made.dtype is torch.bool else made == 0, masks.sdpa_mask(**{**words, **given})))
                if known is not None:  # the bits of the mask as it stands, in rows of a sequence
                    outs = [wavejit.transformers.attention_forward(torch.nn.Identity(), q, k, k, mask)[0] for mask in (made, made.clone())]
                    rows = given.get("attention_mask", whole)
                    self.assertTrue(torch.equal(outs[0][rows], outs[1][rows]))


class Refused(unittest.TestCase):
    def test_by_name(self):
        layer = torch.nn.Identity()
        q = torch.zeros(1, 2, 4, 64, dtype=torch.bfloat16)
        for field, given in (("dropout", 0.1), ("position_bias", q), ("cache", object()), ("output_attentions", True)):
            with self.assertRaisesRegex(wavejit.InvalidArgument, f"^{field}: given"):
                wavejit.transformers.attention_forward(layer, q, q, q, None, **{field: given})

    def test_a_model_in_fp32(self):
        model = model_of("llama").float()
        model.set_attn_implementation("wavejit")
        with torch.no_grad(), self.assertRaisesRegex(wavejit.Error, r"query: dtype torch\.float32; accepted: torch\.float16, torch\.bfloat16"):
            model(torch.ones(1, 5, dtype=torch.long))


if __name__ == "__main__":
    unittest.main()
