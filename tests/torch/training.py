# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models that train through wavejit beside themselves in float32 with eager attention: losses, gradients, bits.

Parameters are float32, and autocast has products and attention in bf16, as trainers have it. WAVEJIT_TEST_WHOLE=1: all models, 20 steps.
"""
import copy
import os
import unittest
from unittest import mock

import torch
import transformers

import wavejit.transformers

WHOLE = os.environ.get("WAVEJIT_TEST_WHOLE") == "1"
STEPS = 20 if WHOLE else 2
SIZES = {"hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 64,
         "vocab_size": 61, "max_position_embeddings": 128, "pad_token_id": 0}  # fmt: skip
# Both experts for each token: which one is best is no question of rounding then.
KINDS = {
    "llama": (transformers.LlamaConfig, transformers.LlamaForCausalLM, {}),
    "gemma": (transformers.Gemma2Config, transformers.Gemma2ForCausalLM, {"sliding_window": 9, "attn_logit_softcapping": 20.0}),
    "gpt_oss": (transformers.GptOssConfig, transformers.GptOssForCausalLM, {"sliding_window": 9, "num_local_experts": 2, "num_experts_per_tok": 2}),
}
TRAINED = tuple(KINDS) if WHOLE else ("gpt_oss",)
SEQUENCES, ROWS = 4, 24
# Bounds of a step's loss, and of its gradients as one vector, as docs/pytorch.md has them.
LOSS_BOUND, GRADIENT_BOUND = 0.002, 0.04
wavejit.transformers.register()


def model_of(kind, implementation):
    configuration, model, words = KINDS[kind]
    torch.manual_seed(17)
    made = model(configuration(**{**SIZES, **words})).train()
    for name, parameter in made.named_parameters():
        if name.endswith("sinks"):
            parameter.data.normal_()
        elif parameter.ndim > 1:  # attention that is far from uniform
            parameter.data *= 3
    made.set_attn_implementation(implementation)
    return made


def batch(step):
    """Sequences that can be learned: each token follows from the one before."""
    torch.manual_seed(100 + step)
    first, stride = torch.randint(1, 61, (SEQUENCES, 1)), torch.randint(1, 4, (SEQUENCES, 1))
    return (first + stride * torch.arange(ROWS)) % 60 + 1


def backward(model, ids, autocast):
    """The micro-batch's share of the step's loss; gradients are added to those that are there."""
    with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
        loss = model(ids, labels=ids, num_items_in_batch=SEQUENCES * (ROWS - 1)).loss
    loss.backward()
    return float(loss.detach())


def gradient_of(model):
    return torch.cat([each.grad.flatten().double() for each in model.parameters()])


class Steps(unittest.TestCase):
    def test_beside_torchs_own_in_float32(self):
        for kind in TRAINED:
            with self.subTest(kind):
                exact, found = model_of(kind, "eager"), model_of(kind, "wavejit")
                optimisers = [torch.optim.AdamW(model.parameters(), lr=2e-3) for model in (exact, found)]
                losses = []
                for step in range(STEPS):
                    ids = batch(step)
                    for optimiser in optimisers:
                        optimiser.zero_grad()
                    told = [backward(model, ids, autocast) for model, autocast in ((exact, False), (found, True))]
                    losses.append(told[0])
                    self.assertLess(abs(told[1] - told[0]) / told[0], LOSS_BOUND, f"step {step}: {told}")
                    one, other = gradient_of(exact), gradient_of(found)
                    error = float((other - one).norm() / one.norm())
                    self.assertLess(error, GRADIENT_BOUND, f"step {step}")
                    for optimiser in optimisers:
                        optimiser.step()
                if WHOLE:
                    self.assertLess(losses[-1], 0.8 * losses[0])  # it learns


class Padding(unittest.TestCase):
    def test_behind_the_sequences(self):
        """A padded batch has the loss and the gradients that its sequences have one by one."""
        model, lengths = model_of("gemma", "wavejit"), (ROWS, 11)
        ids = batch(0)[:2]
        there = torch.arange(ROWS)[None] < torch.tensor(lengths)[:, None]
        found = []
        for rows in (slice(0, 2), slice(0, 1), slice(1, 2)):
            length = max(lengths[rows])
            model.zero_grad()
            with torch.autocast("cpu", torch.bfloat16):
                labels = ids.masked_fill(~there, -100)[rows, :length]
                loss = model(ids[rows, :length], attention_mask=there[rows, :length].long(), labels=labels, num_items_in_batch=sum(lengths)).loss
            loss.backward()
            found.append((float(loss.detach()), gradient_of(model)))
        together, one, other = found
        self.assertLess(abs(together[0] - one[0] - other[0]), 1e-3)
        self.assertLess(float((together[1] - one[1] - other[1]).norm() / together[1].norm()), 0.02)


class Splits(unittest.TestCase):
    """The gradients of q, k and v of a sequence have the same bits, whatever micro-batch it is in.

    torch's own products may take other sums for other batches, so here they are of one sequence each. The sum over sequences, the
    gradient of a weight, is torch's: it is not compared.
    """

    def gradients(self, model, ids, splits):
        """What each layer and sequence got, in the order of layers."""
        found, attention = {}, wavejit.transformers.attention_forward

        def keep(layer, field, gradient):
            found.setdefault((layer, field), []).append(gradient.detach().clone())

        def looked_at(module, query, key, value, *arguments, **words):
            for field, tensor in (("query", query), ("key", key), ("value", value)):
                tensor.register_hook(lambda gradient, field=field: keep(module.layer_idx, field, gradient))
            return attention(module, query, key, value, *arguments, **words)

        product = torch.nn.functional.linear

        def by_sequence(x, weight, bias=None):
            return torch.stack([product(each, weight, bias) for each in x]) if x.ndim == 3 else product(x, weight, bias)

        transformers.AttentionInterface.register("wavejit_looked_at", looked_at)
        transformers.AttentionMaskInterface.register("wavejit_looked_at", wavejit.transformers.mask)
        model.set_attn_implementation("wavejit_looked_at")
        with mock.patch("torch.nn.functional.linear", by_sequence):
            for piece in ids.split(splits):
                backward(model, piece, True)
        return {name: torch.cat(pieces) for name, pieces in found.items()}

    def test_of_micro_batches(self):
        experts = transformers.models.gpt_oss.modeling_gpt_oss.GptOssMLP
        at_once = experts.forward

        def by_sequence(layer, x):
            out, scores = zip(*(at_once(layer, each[None]) for each in x))
            return torch.cat(out), torch.cat(scores)

        # gpt_oss gives its experts the rows of all sequences at once.
        self.enterContext(mock.patch.object(experts, "forward", by_sequence))
        for kind in KINDS if WHOLE else ("gemma", "gpt_oss"):
            model = model_of(kind, "wavejit")
            optimiser = torch.optim.AdamW(model.parameters(), lr=2e-3)
            for step in range(STEPS):
                ids = batch(step)
                optimiser.zero_grad()
                whole = self.gradients(model, ids, [4])
                self.assertEqual(len(whole), 6)
                for splits in ([2, 2], [1, 3]) if WHOLE else ([1, 3],):
                    pieces = self.gradients(copy.deepcopy(model), ids, splits)
                    for name, exact in whole.items():
                        self.assertGreater(float(exact.abs().max()), 0)
                        self.assertTrue(torch.equal(pieces[name], exact), f"{kind}, step {step}, {splits}: {name}")
                optimiser.step()
