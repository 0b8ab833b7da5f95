# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""vLLM's engine with a model of latent attention: prompts, chunks, decode and their mixes are absorbed rows of one call.

WAVEJIT_TEST_WHOLE=1: caches of 8 bits, larger pages.
"""
import os
import unittest

from engine_test import Case
from latent_engines import LatentWitness, as_on_a_gpu

WHOLE = os.environ.get("WAVEJIT_TEST_WHOLE") == "1"


class Latent(Case):
    witness = LatentWitness

    def setUp(self):
        self.enterContext(as_on_a_gpu())

    def test_deepseek_in_chunks_mixes_and_behind_a_prefix(self):
        seen = self.serve("deepseek")
        self.assertEqual({(kind.width, kind.value_dim, kind.heads) for _, kind in seen.layers}, {(576, 512, 4)})

    @unittest.skipUnless(WHOLE, "WAVEJIT_TEST_WHOLE=1 asks for all caches")
    def test_caches_of_8_bits_and_pages_of_other_sizes(self):
        for words in ({"kv_cache_dtype": "fp8"}, {"block_size": 16, "dtype": "float16"}, {"block_size": 64, "kv_cache_dtype": "fp8"}):
            with self.subTest(words):
                seen = self.serve("deepseek", **words)
                self.assertEqual({kind.cache[:4] for _, kind in seen.layers}, {"e4m3" if "kv_cache_dtype" in words else ""})
