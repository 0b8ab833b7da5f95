# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""vLLM's own speculation: drafts out of what a sequence has said already (n-grams), of a layer that the model has for it (MTP), of a
smaller model; 2 to 4 rows a sequence, verified in one call.

vLLM compiles its search by numba, which is not installed here: the same functions run as Python.
"""
import pathlib
import sys
import tempfile
import types
import unittest

from engines import Witness, engine, generate, prompt, save
from latent_engines import LatentWitness, as_on_a_gpu

NGRAMS = {"method": "ngram", "num_speculative_tokens": 3, "prompt_lookup_min": 1, "prompt_lookup_max": 3}


def as_python(*given, **_):
    """numba's jit and njit, with words or without."""
    return given[0] if given and callable(given[0]) else as_python


NUMBA = types.SimpleNamespace(jit=as_python, njit=as_python, prange=range, get_num_threads=lambda: 1, set_num_threads=lambda count: None)


class Speculation(unittest.TestCase):
    def setUp(self):
        sys.modules["numba"] = NUMBA
        self.addCleanup(sys.modules.pop, "numba")

    def serve(self, witness, kind):
        """Drafts were there, rows of 2 to 4 a sequence beside sequences without, and some were right: fewer steps than tokens. That tokens
        are those without drafts is not asked: vLLM's products on the CPU have other bits for other numbers of rows."""
        prompts = [prompt(6, 1) * 5, prompt(17, 2), prompt(3, 3) * 9]
        with witness().watching() as seen, engine(kind, speculative_config=NGRAMS) as made:
            found = [len(each.outputs[0].token_ids) for each in generate(made, prompts, 20)]
        self.assertEqual(found, [20, 20, 20])
        self.assertGreater(seen.drafts, 1)
        self.assertGreater(seen.alone, 1)
        self.assertLess(seen.calls, 2 * (20 + 2))

    def draft(self, witness, kind, layers, **config):
        """The drafting layers' own calls are held like the model's, and rows of drafts were verified beside them."""
        with witness().watching() as seen, engine(kind, speculative_config={"num_speculative_tokens": 2, **config}) as made:
            found = [len(each.outputs[0].token_ids) for each in generate(made, [prompt(30, 1), prompt(17, 2)], 8)]
        self.assertEqual(found, [8, 8])
        self.assertGreater(seen.drafts, 1)
        self.assertGreater(seen.alone, 1)
        self.assertEqual(len(seen.layers), layers)

    def test_drafts_of_a_layer_of_deepseeks(self):
        with as_on_a_gpu():
            self.draft(LatentWitness, "deepseek_mtp", 3, method="mtp")

    def test_drafts_of_another_model(self):
        with tempfile.TemporaryDirectory() as folder:
            save("llama", pathlib.Path(folder))
            self.draft(Witness, "llama", 4, method="draft_model", model=folder)

    def test_drafts_of_llama(self):
        self.serve(Witness, "llama")

    def test_drafts_of_latent_attention(self):
        with as_on_a_gpu():
            self.serve(LatentWitness, "deepseek")
